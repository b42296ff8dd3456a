"""Writes tests/base/promotion_table.json: how jax promotes every pair of dtypes.

Run it where jax is installed: `python tests/against_jax/promotion_table.py`. The table holds, for
each promotion mode and with 64-bit types off and on, the promoted dtype of every pair out of all
dtypes, weak and not, and of some triples. Each result is one letter of "letters", whose place
is that of the type in "types" (a star says weak); `!` is a refusal, `?` a crash of jax.
"""

import itertools
import json
import pathlib
import random
import string

import jax
import jax.numpy as jnp
import numpy as np
from jax import dtypes

TARGET = pathlib.Path(__file__).parents[1] / "base" / "promotion_table.json"
NAMES = (
    "bool int1 int2 int4 int8 int16 int32 int64 uint1 uint2 uint4 uint8 uint16 uint32 uint64 "
    "float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3 float8_e8m0fnu "
    "float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz "
    "bfloat16 float16 float32 float64 complex64 complex128"
).split()
TYPES = [(name, weak) for name in NAMES for weak in (False, True)]
LETTERS = string.ascii_letters + string.digits + "+-*/"


def outcome(types):
    """The result of promoting tracers of these (name, weak): its letter, `!` or `?`."""
    found = []

    def promote(*operands):
        try:
            dtype, weak = dtypes.result_type(*operands, return_weak_type_flag=True)
            found.append(LETTERS[TYPES.index((dtype.name, weak))])
        except dtypes.TypePromotionError:
            found.append("!")
        except KeyError:  # jax knows no Python scalar type for some weak dtypes
            found.append("?")

    structs = [
        jax.ShapeDtypeStruct((), np.dtype(getattr(jnp, n, n)), weak_type=w) for n, w in types
    ]
    jax.eval_shape(promote, *structs)
    return found[0]


def table(triples):
    """The upper triangle of outcomes, a string per row, and the outcomes of the triples."""
    rows = []
    for i, first in enumerate(TYPES):
        rows.append("".join(outcome((first, second)) for second in TYPES[i:]))
        for second in TYPES[:i]:
            assert outcome((first, second)) == outcome((second, first))
    return {"pairs": rows, "triples": "".join(map(outcome, triples))}


def main():
    # Of types that promote widely: most triples that hold a narrow one are refused.
    wide = [t for t in TYPES if t[0].strip("uintflocmpexb") in ("", "8", "16", "32", "64", "128")]
    wide = [t for t in wide if t != ("bfloat16", True)]
    triples = random.Random(0).sample(list(itertools.product(wide, repeat=3)), 300)
    tables = {}
    for mode, x64 in itertools.product(("standard", "strict"), (False, True)):
        jax.config.update("jax_enable_x64", x64)
        jax.config.update("jax_numpy_dtype_promotion", mode)
        tables[f"{mode} {'x64' if x64 else 'x32'}"] = table(triples)
    contents = {
        "made with": f"jax {jax.__version__}",
        "types": " ".join(name + "*" * weak for name, weak in TYPES),
        "letters": LETTERS,
        "triples": " ".join("".join(LETTERS[TYPES.index(t)] for t in three) for three in triples),
        "tables": tables,
    }
    TARGET.write_text(json.dumps(contents, indent=1) + "\n")


if __name__ == "__main__":
    main()
