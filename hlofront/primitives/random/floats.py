"""Samplers of random floats from random bits: uniform and normal."""

import numpy as np

from hlofront.base.dtypes import finfo
from hlofront.base.elements import NumPyDType, exact_dtype, host_number
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.primitives.arrays.shaping import broadcast_in_dim, reshape
from hlofront.primitives.elementwise.converting import bitcast_convert_type, convert_element_type
from hlofront.primitives.elementwise.elementwise import (
    add,
    bitwise_or,
    max,
    mul,
    shift_right_logical,
    sub,
)
from hlofront.primitives.elementwise.special import erf_inv
from hlofront.primitives.random.keys import random_bits


def uniforms(
    key: ArrayLike, shape: tuple[int, ...], dtype: NumPyDType, low: ArrayLike, high: ArrayLike
) -> Array:
    """Return uniform random floats in [low, high); the bounds broadcast to the shape.

    Random bits become the fraction of a float in [1, 2), which is then shifted and scaled.
    """
    low, high = _of_rank(low, shape), _of_rank(high, shape)
    info = finfo(dtype)
    # Bits come in units of 8, 16, 32 or 64: generate only as many as the fraction needs.
    width = 8 if info.nmant < 8 else info.bits
    bits = random_bits(key, width, shape)
    integer = np.dtype(f"uint{info.bits}")
    if width != info.bits:
        bits = convert_element_type(bits, integer)
    bits = shift_right_logical(bits, host_number(width - info.nmant, integer))
    one = np.ones((), dtype)
    floats = bitcast_convert_type(bitwise_or(bits, exact_dtype(one.view(integer)[()])), dtype)
    floats = sub(floats, exact_dtype(one[()]))
    floats = add(mul(floats, sub(high, low)), low)
    # Rounding must not take a sample below the lower bound.
    return max(low, reshape(floats, shape))


def _of_rank(x: ArrayLike, shape: tuple[int, ...]) -> ArrayLike:
    """Return x with leading axes of size one inserted, up to the rank of `shape`."""
    old_shape = typeof(x).shape
    missing = len(shape) - len(old_shape)
    if not missing:
        return x
    return broadcast_in_dim(x, (1,) * missing + old_shape, range(missing, len(shape)))


def normals(key: ArrayLike, shape: tuple[int, ...], dtype: NumPyDType) -> Array:
    """Return standard normal floats, by the inverse error function of uniform floats."""
    low = np.nextafter(np.array(-1, dtype), np.array(0, dtype), dtype=dtype)
    uniform = uniforms(key, shape, dtype, exact_dtype(low[()]), host_number(1, dtype))
    return mul(host_number(np.sqrt(2), dtype), erf_inv(uniform))
