"""Several narrow elements in each element of an array: packing, unpacking, stochastic rounding."""

import numpy as np

from hlofront.base.dtypes import bit_width, canonicalize_dtype, issubdtype
from hlofront.base.elements import bfloat16, float32, uint32
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, DType, DTypeLike
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.pallas.tpu_operations import bitcast
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import shift_right_logical
from hlofront.primitives.rules.batching import batch_elementwise

_INT2, _INT4, _INT8, _UINT2, _UINT4 = map(
    canonicalize_dtype, ("int2", "int4", "int8", "uint2", "uint4")
)

# Operands: one array per element of `packed_dtype` that fits in theirs, from the lowest bits on.
pack_elementwise_p = Primitive("pack_elementwise")
# The elements of `packed_dtype` at the place `index` in those of the operand, counted from the
# lowest bits, as `unpacked_dtype`.
unpack_elementwise_p = Primitive("unpack_elementwise")
# Operands: an array of float32, and one of random uint32.
stochastic_round_p = Primitive("stochastic_round")

for _primitive in (pack_elementwise_p, unpack_elementwise_p, stochastic_round_p):
    rules.lower.modules[_primitive.name] = ["hlofront.pallas.interpret.packing"]
    batch_elementwise(_primitive)


def _count(name: str, wide: DType, narrow: DType) -> int:
    """Return how many elements of a dtype fit in one of another."""
    if bit_width(wide) % bit_width(narrow):
        raise ValueError(
            f"{name}: Unpacked bitwidth must be a multiple of packed bitwidth, got "
            f"{bit_width(wide)} of {wide} and {bit_width(narrow)} of {narrow}"
        )
    return bit_width(wide) // bit_width(narrow)


def pack_elementwise(xs: ArrayLikes, *, packed_dtype: DTypeLike) -> Array:
    """Return an array whose elements hold those of several arrays in a narrower dtype.

    Args:
      xs: arrays of one shape and dtype: float32, or integers. The first is in the lowest bits.
      packed_dtype: bfloat16 for arrays of float32; else integers, whose higher bits are dropped.

    Returns:
      An array of unsigned integers, as wide as the elements of the arrays.

    Raises:
      ValueError: if shapes or dtypes differ, or the number of arrays is not that which fits.
    """
    return pack_elementwise_p.bind(*xs, packed_dtype=canonicalize_dtype(packed_dtype))


@rules.infer(pack_elementwise_p)
def _(*xs: ShapedArray, packed_dtype: DType) -> ShapedArray:
    if not xs:
        raise ValueError("pack_elementwise: At least one source is required, got none")
    for name in ("shape", "dtype"):
        given = [getattr(x, name) for x in xs]
        if any(each != given[0] for each in given):
            raise ValueError(
                f"pack_elementwise: All sources must have the same {name}, got "
                f"{', '.join(map(str, given))}"
            )
    dtype = xs[0].dtype
    integers = issubdtype(dtype, np.integer) and issubdtype(packed_dtype, np.integer)
    if not integers and (dtype, packed_dtype) != (float32, bfloat16):
        raise ValueError(
            "pack_elementwise: Only f32 -> bf16 and int -> int are supported. Got "
            f"{dtype} and {packed_dtype}: convert the sources first"
        )
    count = _count("pack_elementwise", dtype, packed_dtype)
    if len(xs) != count:
        raise ValueError(
            f"pack_elementwise: The number of sources must match the packing factor ({count}), "
            f"got {len(xs)}: an element of {dtype} holds {count} of {packed_dtype}"
        )
    return xs[0].update(dtype=canonicalize_dtype(f"uint{bit_width(dtype)}"))


def unpack_elementwise(
    x: ArrayLike, *, index: int, packed_dtype: DTypeLike, unpacked_dtype: DTypeLike
) -> Array:
    """Return one of the arrays that were packed by `pack_elementwise`.

    Args:
      x: the packed array.
      index: the number of the array; 0 is in the lowest bits.
      packed_dtype: the dtype of the packed elements.
      unpacked_dtype: the dtype of the result, which is as wide as the elements of `x`.

    Raises:
      ValueError: if the widths differ, or there is no such array.
    """
    return unpack_elementwise_p.bind(
        x,
        index=index,
        packed_dtype=canonicalize_dtype(packed_dtype),
        unpacked_dtype=canonicalize_dtype(unpacked_dtype),
    )


@rules.infer(unpack_elementwise_p)
def _(x: ShapedArray, *, index: int, packed_dtype: DType, unpacked_dtype: DType) -> ShapedArray:
    if bit_width(x.dtype) != bit_width(unpacked_dtype):
        raise ValueError(
            "unpack_elementwise: The bitwidth of `x` must match the bitwidth of `unpacked_dtype`, "
            f"but got {x.dtype} and {unpacked_dtype}: convert the result instead"
        )
    count = _count("unpack_elementwise", unpacked_dtype, packed_dtype)
    if not 0 <= index < count:
        raise ValueError(
            f"unpack_elementwise: Index {index} is out of bounds for packing factor {count}: an "
            f"element of {unpacked_dtype} holds {count} of {packed_dtype}"
        )
    return x.update(dtype=unpacked_dtype)


def stochastic_round(x: ArrayLike, random_bits: ArrayLike, *, target_dtype: DTypeLike) -> Array:
    """Return numbers in a narrower dtype, rounded up or down at random, more often to the nearer.

    Args:
      x: an array of float32.
      random_bits: an array of uint32 of its shape, such as a result of `prng_random_bits`.
      target_dtype: the dtype of the result, such as bfloat16.

    Raises:
      ValueError: if the random bits have another shape, or are not of uint32.
    """
    return stochastic_round_p.bind(x, random_bits, target_dtype=canonicalize_dtype(target_dtype))


@rules.infer(stochastic_round_p)
def _(x: ShapedArray, random_bits: ShapedArray, *, target_dtype: DType) -> ShapedArray:
    if x.shape != random_bits.shape:
        raise ValueError(
            "stochastic_round: The shape of `random_bits` must match the shape of `x`, but got "
            f"{random_bits.shape} and {x.shape}"
        )
    if random_bits.dtype != uint32:
        raise ValueError(
            "stochastic_round: The dtype of `random_bits` must be uint32, but got "
            f"{random_bits.dtype}: use random_bits.astype(jnp.uint32)"
        )
    return x.update(dtype=target_dtype)


# ---- parts of bytes ------------------------------------------------------------------------------


def join_bits(*, two_bits: Array | None = None, four_bits: Array | None = None) -> Array:
    """Return an array of int8 whose lowest bits are joined from narrower integers.

    Args:
      two_bits: an array of int2 or uint2: bits 4 and 5, or the lowest without `four_bits`.
      four_bits: an array of int4 or uint4: bits 0 to 3.

    Raises:
      ValueError: if both are missing, their shapes differ, or a dtype has another width.
    """
    for name, x, bits in (("two_bits", two_bits, 2), ("four_bits", four_bits, 4)):
        if x is not None and bit_width(x.dtype) != bits:
            raise ValueError(f"Expected {bits}-bit type, got {x.dtype} for {name}")
    if two_bits is None:
        if four_bits is None:
            raise ValueError("At least one bit segment must be specified: two_bits or four_bits.")
        return _converted(four_bits, _UINT4, _INT8)
    # In four bits, whose upper two are 0.
    upper = bitcast(_converted(two_bits, _UINT2, _UINT4), _INT4, -1)
    if four_bits is None:
        return _converted(upper, _INT8)
    if two_bits.shape != four_bits.shape:
        raise ValueError(
            f"Shapes of two_bits {two_bits.shape} and four_bits {four_bits.shape} must match."
        )
    parts = (_converted(four_bits, _INT4, _INT8), _converted(upper, _INT8))
    return _converted(pack_elementwise(parts, packed_dtype=_INT4), _INT8)


def split_bits(x: Array, bitwidths: tuple[int, ...]) -> tuple[Array, ...]:
    """Return the parts of the elements of an array of bytes as narrower integers.

    Args:
      x: an array of int8 or uint8.
      bitwidths: the widths of the parts, 2 or 4, from the lowest bits on.

    Returns:
      An array of int2 or int4 per width.

    Raises:
      ValueError: if the array is not of bytes, a width is not 2 or 4, or their sum exceeds 8.
    """
    if bit_width(x.dtype) != 8:
        raise ValueError(f"Expected 8-bit array, got {x.dtype}")
    if sum(bitwidths) > 8:
        raise ValueError(f"Total bitwidth {sum(bitwidths)} of {bitwidths} exceeds 8 bits.")
    parts: list[Array] = []
    first = 0
    whole = _converted(x, _INT8)
    for width in bitwidths:
        if width not in (2, 4):
            raise ValueError(f"Unsupported bitwidth: {width}. Only 2 and 4 are supported.")
        part = whole
        if first:
            part = shift_right_logical(whole, np.int8(first))
        parts.append(_converted(part, _INT4 if width == 4 else _INT2))
        first += width
    return tuple(parts)


def unpack_fp6(two_bits: Array, four_bits: Array) -> Array:
    """Return six-bit numbers, in bytes, joined from two arrays of their bits.

    Args:
      two_bits: an array of int2 or uint2: bits 4 and 5.
      four_bits: an array of int4 or uint4: bits 0 to 3.
    """
    return join_bits(two_bits=two_bits, four_bits=four_bits)


def pack_fp6(fp6_in_8b: Array) -> tuple[Array, Array]:
    """Return the bits of six-bit numbers, in bytes, as an array of int2 and one of int4.

    Args:
      fp6_in_8b: an array of bytes, each with a number in its lower six bits.

    Returns:
      (two_bits, four_bits): bits 4 and 5, and bits 0 to 3.
    """
    four_bits, two_bits = split_bits(fp6_in_8b, (4, 2))
    return two_bits, four_bits


def _converted(x: ArrayLike, *dtypes: DType) -> Array:
    for dtype in dtypes:
        x = x if typeof(x).dtype == dtype else convert(x, dtype, False)
    return x  # pyright: ignore[reportReturnType]
