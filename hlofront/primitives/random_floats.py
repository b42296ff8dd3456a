"""Random floats out of random bits: uniform between two bounds, and normal ones."""

import numpy as np

from hlofront.base.dtypes import finfo
from hlofront.base.elements import exact_dtype, host_number
from hlofront.base.typing import Array, ArrayLike, DType
from hlofront.core.aval import typeof
from hlofront.primitives.converting import bitcast_convert_type, convert_element_type
from hlofront.primitives.elementwise import add, bitwise_or, max, mul, shift_right_logical, sub
from hlofront.primitives.keys import random_bits
from hlofront.primitives.shaping import broadcast_in_dim, reshape
from hlofront.primitives.special import erf_inv


def uniforms(
    key: ArrayLike, shape: tuple[int, ...], dtype: DType, low: ArrayLike, high: ArrayLike
) -> Array:
    """Floats of this shape, uniform from `low` on to below `high`, which broadcast to it.

    Random bits are the fraction of a number from one to two.
    """
    low, high = _of_rank(low, shape), _of_rank(high, shape)
    info = finfo(dtype)
    # Bits come by 8, 16, 32 or 64; no more of them are made than the fraction needs.
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
    # What is rounded must not fall below the bound.
    return max(low, reshape(floats, shape))


def _of_rank(x: ArrayLike, shape: tuple[int, ...]) -> Array:
    """x with as many axes as this shape has, of size one where it had none."""
    own = typeof(x).shape
    missing = len(shape) - len(own)
    if not missing:
        return x
    return broadcast_in_dim(x, (1,) * missing + own, range(missing, len(shape)))


def normals(key: ArrayLike, shape: tuple[int, ...], dtype: DType) -> Array:
    """Normal floats of this shape: where the distribution function has uniform values."""
    low = np.nextafter(np.array(-1, dtype), np.array(0, dtype), dtype=dtype)
    uniform = uniforms(key, shape, dtype, exact_dtype(low[()]), host_number(1, dtype))
    return mul(host_number(np.sqrt(2), dtype), erf_inv(uniform))
