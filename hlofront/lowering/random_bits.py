"""Random bits as StableHLO."""

import numpy as np

from hlofront.core.aval import ShapedArray
from hlofront.core.rules import lower
from hlofront.lowering import types
from hlofront.primitives import random_bits as r

_uint32, _uint64 = np.dtype(np.uint32), np.dtype(np.uint64)
_state = ShapedArray((2,), _uint64)
_halves = ShapedArray((2, 2), _uint32)


@lower(r.rng_bit_generator_p)
def _(build, key, *, algorithm, **_):
    (key_aval,), (new_key_aval, bits_aval) = build.avals_in, build.avals_out
    # The operation's state is of 64-bit words.
    in_halves = key_aval.dtype == _uint32
    if in_halves:
        key = build.op("stablehlo.bitcast_convert", (build.reshape(key, _halves),), _state)
    name = algorithm.name.removeprefix("RNG_")
    new_key, bits = build.ops(
        "stablehlo.rng_bit_generator",
        (key,),
        (_state, bits_aval),
        rng_algorithm=types.attribute(f"#stablehlo<rng_algorithm {name}>"),
    )
    if in_halves:
        new_key = build.op("stablehlo.bitcast_convert", (new_key,), _halves)
        new_key = build.reshape(new_key, new_key_aval)
    return [new_key, bits]


@lower(r.rng_uniform_p)
def _(build, a, b, *, shape):
    sizes = build.constant(np.array(shape, np.int64))
    return build.op(
        "stablehlo.rng",
        (a, b, sizes),
        rng_distribution=types.attribute("#stablehlo<rng_distribution UNIFORM>"),
    )
