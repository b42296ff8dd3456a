"""Keeps the truth at the points, and how far jax is from it, in known.npz.

`python -m tests.against_jax.accuracy.keep [NAME ...]` makes anew what is of other points, or of
functions with these names, in a few minutes; with `--jax-alone` the truth stays, and only jax is
asked anew. It needs HLOFRONT_ORACLE_PYTHON, for jax.

XLA compiles for the instructions of the processor, and rounding differs between them (a fused
multiply-add rounds once). So jax is asked under each of INSTRUCTION_SETS, and its greatest error at
each point is kept: what a test allows is then what jax has on some processor.
"""

import math
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile

import mpmath as m
import numpy as np
from mpmath import mpf

from tests.against_jax.accuracy.compare import FILE
from tests.against_jax.accuracy.distributions import STATS
from tests.against_jax.accuracy.measure import digest, errors
from tests.against_jax.accuracy.of_one_number import DIGITS
from tests.against_jax.accuracy.points import POINTS, WIDE
from tests.against_jax.accuracy.special import SPECIAL
from tests.against_jax.oracle import ROOT, find_interpreter

TRUTH = SPECIAL | STATS
# Values of --xla_cpu_max_isa: without fused multiply-adds, with them, and the widest vectors.
INSTRUCTION_SETS = ("AVX", "AVX2", "AVX512")


def truth_of(name, args):
    known = {}
    values = []
    for row in zip(*args, strict=True):
        key = repr(row)
        if key not in known:
            known[key] = _truth_at(name, row)
        values.append(known[key])
    return np.array(values)


def _truth_at(name, row):
    function = TRUTH[name]
    with m.workdps(DIGITS):
        if np.iscomplexobj(row[0]):
            return complex(function(m.mpmathify(complex(row[0]))))
        if isinstance(row[0], np.ndarray):
            value = function([mpf(float(x)) for x in row[0]])
        elif any(x != x for x in row):
            value = [math.nan] * 5 if name == "bessel_jn4" else math.nan
        else:
            # A zero is the float itself: mpmath's have no sign.
            value = function(*[float(x) if x == 0 else mpf(float(x)) for x in row])
        if isinstance(value, list):
            return [float(v) for v in value]
        return complex(value) if name.startswith("sph") else float(value)


def ask_jax(names: list[str], instruction_set: str) -> dict[tuple[str, str], np.ndarray]:
    """Return what jax gives with these instructions, asked in a process of its own."""
    interpreter = find_interpreter()
    if interpreter is None:
        raise RuntimeError("no Python with jax: set HLOFRONT_ORACLE_PYTHON")
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_max_isa={instruction_set}"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "answers"
        command = [interpreter, "-m", "tests.against_jax.accuracy.by_jax", str(path), *names]
        environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": flags.strip()}
        subprocess.run(command, check=True, cwd=ROOT, env=environment)
        return pickle.loads(path.read_bytes())


def main(names, jax_alone):
    kept = dict(np.load(FILE)) if FILE.exists() else {}
    kept = {key: value for key, value in kept.items() if key.split("@")[0] in POINTS}
    anew = []
    for name, (grid, dtypes) in POINTS.items():
        marks = {dtype: np.array(digest(grid(dtype)), np.uint32) for dtype in dtypes}
        old = all(kept.get(f"{name}@{dtype}@points") == mark for dtype, mark in marks.items())
        if old and name not in names and not (jax_alone and not names):
            continue
        print(name, flush=True)
        anew.append(name)
        if old and jax_alone:
            continue
        for dtype, mark in marks.items():
            key = f"{name}@{dtype}"
            values = truth_of(name, grid(dtype))
            if dtype not in WIDE:
                with np.errstate(over="ignore", under="ignore"):
                    values = values.astype(np.float32)
            kept[key], kept[f"{key}@points"] = values, mark
    answers = [ask_jax(anew, instructions) for instructions in INSTRUCTION_SETS if anew]
    for name, dtype in answers[0] if answers else ():
        keep_errors(kept, name, dtype, [one[name, dtype] for one in answers])
    np.savez_compressed(FILE, **kept)


def keep_errors(kept, name, dtype, answers):
    """Keep how far jax is at most, by point: the logarithms are of a size that float16 holds."""
    key = f"{name}@{dtype}"
    count = len(POINTS[name][0](dtype)[0])
    by_point = [errors(one, kept[key], dtype).reshape(count, -1).max(axis=1) for one in answers]
    # It is infinite where jax misses a zero, or has no number, with some of the instructions.
    greatest = np.max(by_point, axis=0)
    with np.errstate(divide="ignore"):
        kept[f"{key}@jax"] = np.log2(greatest).astype(np.float16)


if __name__ == "__main__":
    main([name for name in sys.argv[1:] if name != "--jax-alone"], "--jax-alone" in sys.argv)
