"""Packing, unpacking and stochastic rounding, lowered as XLA's operations."""

import functools

import numpy as np

from hlofront.base.dtypes import bit_width, canonicalize_dtype, issubdtype
from hlofront.base.elements import bfloat16, uint32
from hlofront.base.typing import ArrayLike, DType
from hlofront.core.aval import typeof
from hlofront.lowering.core.formulas import by_tracing
from hlofront.pallas.packing import pack_elementwise_p, stochastic_round_p, unpack_elementwise_p
from hlofront.primitives.arrays.creation import full_like
from hlofront.primitives.elementwise.compare import select_n
from hlofront.primitives.elementwise.converting import bitcast_convert_type, convert
from hlofront.primitives.elementwise.elementwise import (
    add,
    bitwise_and,
    bitwise_or,
    is_finite,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
)


def _unsigned(x: ArrayLike) -> ArrayLike:
    """Return the bits of an array as unsigned integers."""
    return bitcast_convert_type(x, canonicalize_dtype(f"uint{bit_width(typeof(x).dtype)}"))


@by_tracing(pack_elementwise_p)
def _packed(*xs: ArrayLike, packed_dtype: DType) -> ArrayLike:
    wide = canonicalize_dtype(f"uint{bit_width(typeof(xs[0]).dtype)}")
    bits = bit_width(packed_dtype)
    parts: list[ArrayLike] = []
    for place, x in enumerate(xs):
        if packed_dtype == bfloat16:
            part = convert(_unsigned(convert(x, bfloat16, False)), wide, False)
        else:
            x = _unsigned(x)
            part = bitwise_and(x, full_like(x, (1 << bits) - 1))
        parts.append(shift_left(part, full_like(part, place * bits)))
    return functools.reduce(bitwise_or, parts)


@by_tracing(unpack_elementwise_p)
def _unpacked(x: ArrayLike, index: int, packed_dtype: DType, unpacked_dtype: DType) -> ArrayLike:
    bits, most = bit_width(packed_dtype), bit_width(unpacked_dtype)
    x = _unsigned(x)
    if not issubdtype(packed_dtype, np.integer):
        part = shift_right_logical(x, full_like(x, index * bits))
        narrow = canonicalize_dtype(f"uint{bits}")
        return convert(
            bitcast_convert_type(convert(part, narrow, False), packed_dtype), unpacked_dtype, False
        )
    # The highest bit of the part becomes the sign.
    is_signed = issubdtype(packed_dtype, np.signedinteger)
    x = bitcast_convert_type(x, canonicalize_dtype(f"{'' if is_signed else 'u'}int{most}"))
    x = shift_left(x, full_like(x, most - (index + 1) * bits))
    shift = shift_right_arithmetic if is_signed else shift_right_logical
    return convert(shift(x, full_like(x, most - bits)), unpacked_dtype, False)


@by_tracing(stochastic_round_p)
def _rounded(x: ArrayLike, random_bits: ArrayLike, target_dtype: DType) -> ArrayLike:
    dtype = typeof(x).dtype
    if target_dtype != bfloat16 or dtype != np.float32:
        raise NotImplementedError(  # JAX raises this class.
            f"stochastic_round of {dtype} to {target_dtype}: kernels that are interpreted round "
            "float32 to bfloat16"
        )
    bits = bitcast_convert_type(x, uint32)
    # The lower half is cut off. Adding a random number to it carries into the upper half with a
    # probability proportional to the lower half.
    lower = bitwise_and(random_bits, full_like(bits, 0xFFFF))
    upper = shift_right_logical(add(bits, lower), full_like(bits, 16))
    rounded = bitcast_convert_type(convert(upper, np.dtype(np.uint16), False), bfloat16)
    return select_n(is_finite(x), convert(x, bfloat16, False), rounded)
