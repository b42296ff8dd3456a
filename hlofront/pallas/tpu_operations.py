"""Operations on vectors that kernels for TPUs have: roll, bitcast, reciprocal."""

from hlofront.base.dtypes import bit_width, canonicalize_dtype
from hlofront.base.typing import Array, ArrayLike, DType, DTypeLike
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.references import is_known_integer

# Operands: an array and the number of places; `stride` and `stride_axis` are both None or neither.
roll_p = Primitive("roll")
# The operand's elements as those of the dtype `ty`, packed or unpacked along the axis `dim`.
bitcast_p = Primitive("bitcast")
# With `approx` accurate only to some bits; with `full_range` also right for subnormal numbers.
reciprocal_p = Primitive("reciprocal")

for _primitive in (roll_p, bitcast_p, reciprocal_p):
    rules.lower.modules[_primitive.name] = ["hlofront.pallas.interpret.operations"]


def roll(
    x: ArrayLike,
    shift: ArrayLike,
    axis: int,
    *,
    stride: int | None = None,
    stride_axis: int | None = None,
) -> Array:
    """Return an array rolled along an axis: elements moved past the end reappear at the start.

    Args:
      x: the array.
      shift: the number of places, not negative.
      axis: the axis.
      stride: the number of places by which each row along `stride_axis` is moved further than the
        previous one.
      stride_axis: an axis other than `axis`.

    Raises:
      ValueError: if the shift is negative, an axis is not one of the array, or only one of stride
        and stride_axis is given.

    Example:
      >>> jax.jit(lambda x: pltpu.roll(x, 1, 0))(jnp.arange(4))
      Array([3, 0, 1, 2], dtype=int32)
    """
    ndim = typeof(x).ndim
    if is_known_integer(shift) and int(shift) < 0:  # pyright: ignore[reportArgumentType]
        raise ValueError(f"shift must be non-negative: got {shift}. Add the size of the axis.")
    for name, each in (("axis", axis), ("stride_axis", stride_axis)):
        if each is not None and not 0 <= each < ndim:
            raise ValueError(f"{name} is out of range: got {each} for an array of {ndim} axes")
    if (stride is None) != (stride_axis is None):
        raise ValueError(
            f"stride and stride_axis must be both specified or not: got stride={stride} and "
            f"stride_axis={stride_axis}"
        )
    if stride is not None and stride < 0:
        raise ValueError(f"stride must be non-negative: got {stride}")
    if axis == stride_axis:
        raise ValueError(f"expected axis and stride_axis are different: got {axis} for both")
    return roll_p.bind(x, shift, axis=axis, stride=stride, stride_axis=stride_axis)


@rules.infer(roll_p)
def _(x: ShapedArray, shift: ShapedArray, **_: object) -> ShapedArray:
    return x


def bitcast(x: ArrayLike, ty: DTypeLike, dim: int = -2) -> Array:
    """Return the bits of an array as elements of another dtype.

    Each element of a wider dtype corresponds to several of a narrower one along the axis: the
    lowest bits come first.

    Args:
      x: the array.
      ty: the dtype of the result.
      dim: the axis along which elements are packed or unpacked.

    Raises:
      ValueError: if the array has no such axis, or its size is not a multiple of the elements that
        are packed into one.
    """
    aval = typeof(x)
    dtype = canonicalize_dtype(ty)
    axis = dim + aval.ndim if dim < 0 else dim
    if not 0 <= axis < aval.ndim:
        raise ValueError(
            f"bitcast along axis {dim} of an array of {aval.ndim} axes: give it another dim, such "
            "as dim=-1"
        )
    if aval.shape[axis] * bit_width(aval.dtype) % bit_width(dtype):
        raise ValueError(
            f"dim {axis} of size {aval.shape[axis]} cannot be perfectly packed or unpacked from "
            f"{aval.dtype} to {dtype}: its size must be a multiple of "
            f"{bit_width(dtype) // bit_width(aval.dtype)}"
        )
    return bitcast_p.bind(x, ty=dtype, dim=axis)


@rules.infer(bitcast_p)
def _(x: ShapedArray, *, ty: DType, dim: int) -> ShapedArray:
    shape = list(x.shape)
    shape[dim] = shape[dim] * bit_width(x.dtype) // bit_width(ty)
    return ShapedArray(tuple(shape), ty)


def reciprocal(x: ArrayLike, *, approx: bool = False, full_range: bool = True) -> Array:
    """Return 1 / x.

    Args:
      x: an array of floats.
      approx: whether the result may be less accurate, for speed.
      full_range: whether reciprocals of subnormal numbers must be right.
    """
    return reciprocal_p.bind(x, approx=approx, full_range=full_range)


@rules.infer(reciprocal_p)
def _(x: ShapedArray, **_: object) -> ShapedArray:
    return x
