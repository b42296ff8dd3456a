"""Bitwise operations: shifts, bit counts, and packed bits."""

from __future__ import annotations

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import bool_, uint8
from hlofront.base.typing import Array, ArrayLike, Axis
from hlofront.core.aval import typeof
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.numpy.elementwise.ufuncs import (
    any_operand,
    binary_operation,
    is_integer,
    scalar_like,
    unary_operation,
)
from hlofront.numpy.support.like import operation_like
from hlofront.numpy.support.promotion import promote_args_numeric
from hlofront.primitives.arrays import creation, reducing, shaping, slicing
from hlofront.primitives.elementwise import compare, converting, elementwise

bitwise_and = binary_operation(
    np.bitwise_and,
    """Compute the elementwise conjunction of the bits.

    Example:
      >>> jnp.bitwise_and(jnp.array([6, -1]), 3)
      Array([2, 3], dtype=int32)
    """,
    elementwise.bitwise_and,
)
bitwise_or = binary_operation(
    np.bitwise_or,
    """Compute the elementwise disjunction of the bits.

    Example:
      >>> jnp.bitwise_or(jnp.array([6, 8]), 3)
      Array([ 7, 11], dtype=int32)
    """,
    elementwise.bitwise_or,
)
bitwise_xor = binary_operation(
    np.bitwise_xor,
    """Compute the elementwise exclusive disjunction of the bits.

    Example:
      >>> jnp.bitwise_xor(jnp.array([6, 3]), 3)
      Array([5, 0], dtype=int32)
    """,
    elementwise.bitwise_xor,
)
invert = bitwise_not = bitwise_invert = unary_operation(
    np.invert,
    """Complement the bits elementwise; booleans are negated.

    Example:
      >>> jnp.invert(jnp.array([0, 5])), jnp.invert(jnp.array([True, False]))
      (Array([-1, -6], dtype=int32), Array([False,  True], dtype=bool))
    """,
    elementwise.bitwise_not,
    any_operand,
)


@operation_like(np.bitwise_count)
def bitwise_count(x: ArrayLike, /) -> Array:
    """Count the bits that are set in the absolute value of each element, as uint8.

    Example:
      >>> jnp.bitwise_count(jnp.array([7, -7]))
      Array([3, 3], dtype=uint8)
    """
    (x,) = promote_args_numeric("bitwise_count", x)
    if not issubdtype(typeof(x).dtype, np.unsignedinteger):
        x = elementwise.abs(x)
    return converting.convert(elementwise.population_count(x), uint8, False)


@operation_like(np.left_shift)
def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Compute `x << y` elementwise, of integers that broadcast; bits shifted out are lost.

    The elements of y must be at least 0 and less than the number of bits: otherwise the result is
    undefined.

    Raises:
      TypeError: if an operand is not an array or scalar of integers.

    Example:
      >>> jnp.left_shift(jnp.array([1, -1]), 3)
      Array([ 8, -8], dtype=int32)
    """
    return elementwise.shift_left(*promote_args_numeric("left_shift", x, y))


bitwise_left_shift = left_shift


def shift_right(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return `x1 >> x2` of promoted operands; signed integers keep their sign."""
    if issubdtype(typeof(x1).dtype, np.unsignedinteger):
        return elementwise.shift_right_logical(x1, x2)
    return elementwise.shift_right_arithmetic(x1, x2)


@operation_like(np.right_shift)
def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return `x1 >> x2` elementwise; signed integers keep their sign.

    Example:
      >>> jnp.right_shift(jnp.array([-8, 8]), 1), jnp.right_shift(jnp.array([248], jnp.uint8), 1)
      (Array([-4,  4], dtype=int32), Array([124], dtype=uint8))
    """
    return shift_right(*promote_args_numeric("right_shift", x1, x2))


bitwise_right_shift = right_shift


def _axis_last(x: ArrayLike, axis: int | None) -> tuple[Array, tuple[int, ...]]:
    """Return x with `axis` moved to the end, and the permutation that moves it back."""
    ndim = typeof(x).ndim
    if axis is None:
        return shaping.reshape(x, (typeof(x).size,)), (0,)
    axis = canonical_axis(axis, ndim)
    other_axes = [i for i in range(ndim) if i != axis]
    back = [*range(axis), ndim - 1, *range(axis, ndim - 1)]
    return shaping.transpose(x, (*other_axes, axis)), tuple(back)


def _check_bit_order(name: str, bitorder: str) -> None:
    if bitorder not in ("little", "big"):
        raise ValueError(f"{name}: 'bitorder' must be 'little' or 'big', got {bitorder!r}")


@operation_like(np.packbits, static_argnames=("axis", "bitorder"))
def packbits(a: ArrayLike, axis: Axis = None, bitorder: str = "big") -> Array:
    """Pack eight elements along an axis, each zero or not, into the bits of one byte.

    Args:
      a: an array of integers or booleans.
      axis: the axis, which is padded with zeros to whole bytes; None flattens the array first.
      bitorder: "big" if the first element is the byte's highest bit, "little" if the lowest.

    Returns:
      An array of uint8.

    Raises:
      TypeError: if the elements are neither integers nor booleans.
      ValueError: if bitorder is neither "big" nor "little".

    Example:
      >>> bits = jnp.array([1, 0, 1])
      >>> jnp.packbits(bits), jnp.packbits(bits, bitorder="little")
      (Array([160], dtype=uint8), Array([5], dtype=uint8))
    """
    a = any_operand("packbits", a)
    aval = typeof(a)
    if not is_integer(aval):
        raise TypeError(f"packbits expects integers or booleans, got dtype {aval.dtype}")
    _check_bit_order("packbits", bitorder)
    if aval.dtype != bool_:
        a = compare.ne(a, scalar_like(aval, 0))
    a, back = _axis_last(a, axis)
    *rest, size = typeof(a).shape
    missing = -size % 8
    a = converting.convert(a, uint8, False)
    a = slicing.pad(a, uint8.type(0), [(0, 0, 0)] * len(rest) + [(0, missing, 0)])
    a = shaping.reshape(a, (*rest, (size + missing) // 8, 8))
    bits = np.arange(8) if bitorder == "little" else np.arange(8)[::-1]
    weights = shaping.broadcast_in_dim((1 << bits).astype(uint8), typeof(a).shape, (len(rest) + 1,))
    packed = reducing.reduce_sum(elementwise.mul(a, weights), (len(rest) + 1,))
    return shaping.transpose(packed, back)


@operation_like(np.unpackbits, static_argnames=("axis", "count", "bitorder"))
def unpackbits(
    a: ArrayLike, axis: Axis = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """Unpack the bits of bytes along an axis into bytes that are 0 or 1.

    Args:
      a: an array of uint8.
      count: the number of bits to return, padded with zeros where there are fewer; a negative
        number is the number of bits to leave out, and None returns all.

    Raises:
      TypeError: if the elements are not bytes.
      ValueError: if bitorder is neither "big" nor "little".

    Example:
      >>> jnp.unpackbits(jnp.array([5], jnp.uint8))
      Array([0, 0, 0, 0, 0, 1, 0, 1], dtype=uint8)
    """
    a = any_operand("unpackbits", a)
    if typeof(a).dtype != uint8:
        raise TypeError(f"unpackbits expects uint8, got dtype {typeof(a).dtype}")
    _check_bit_order("unpackbits", bitorder)
    a, back = _axis_last(a, axis)
    shape = typeof(a).shape
    *rest, size = shape
    # Not a constant: XLA's CPU code loads the elements of a constant one by one.
    masks = elementwise.shift_left(creation.full((8,), 1, uint8), creation.iota(uint8, 8))
    if bitorder == "big":
        masks = shaping.rev(masks, (0,))
    shape = (*rest, size, 8)
    a = shaping.broadcast_in_dim(a, shape, range(len(rest) + 1))
    masks = shaping.broadcast_in_dim(masks, shape, (len(rest) + 1,))
    is_set = compare.ne(elementwise.bitwise_and(a, masks), uint8.type(0))
    bits = converting.convert(is_set, uint8, False)
    bits = shaping.reshape(bits, (*rest, size * 8))
    if count is not None:
        bit_count = size * 8 + count if count < 0 else count
        bits = slicing.pad(
            bits, uint8.type(0), [(0, 0, 0)] * len(rest) + [(0, max(bit_count, 0) - size * 8, 0)]
        )
    return shaping.transpose(bits, back)
