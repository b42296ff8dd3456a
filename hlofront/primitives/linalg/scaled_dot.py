"""The primitive scaled_dot, which contracts arrays with one scale per block of elements."""

import ml_dtypes
import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, DType, DTypeLike
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import BatchResult, infer
from hlofront.core.symbolic_zeros import (
    BatchAxes,
    Cotangent,
    Cotangents,
    Dual,
    Operand,
    Tangent,
    Tangents,
    Zero,
)
from hlofront.core.trace import process
from hlofront.primitives.arrays.creation import full
from hlofront.primitives.arrays.reducing import reduce_sum, without_axes
from hlofront.primitives.arrays.shaping import broadcast_in_dim, reshape
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import mul
from hlofront.primitives.linalg.contraction_numbers import (
    CanonicalNumbers,
    DotDimensionNumbers,
    batched_contraction,
    canonical_numbers,
    check_contraction,
)
from hlofront.primitives.linalg.dot_general import canonical_element_type, cotangent_of_factor
from hlofront.primitives.rules.batching import batch_size, to_front
from hlofront.primitives.rules.derivatives import add_tangents, aval_of_operand, is_linear, known

scaled_dot_p = Primitive("scaled_dot")


@boundary
def scaled_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    lhs_scale: ArrayLike | None = None,
    rhs_scale: ArrayLike | None = None,
    dimension_numbers: DotDimensionNumbers | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Compute a dot_general of arrays in microscaling formats, with one scale per block.

    Args:
      lhs: an array, usually of float8.
      rhs: an array.
      lhs_scale: scales of the shape of `lhs`, except that there is one per block along the
        contracted axis; None for ones.
      rhs_scale: scales of `rhs`, of the analogous shape; None for ones.
      dimension_numbers: ((contracting axes of lhs, of rhs), (batch axes of lhs, of rhs)), with one
        contracted axis; by default those of matrix products, with a leading batch axis if `lhs` has
        three axes.
      preferred_element_type: the dtype of the result, bfloat16 by default.

    Raises:
      TypeError: if shapes do not fit.
    """
    lhs_aval, rhs_aval = typeof(lhs), typeof(rhs)
    if dimension_numbers is None:
        if lhs_aval.ndim == 2:
            dimension_numbers = (((1,), (0,)), ((), ()))
        else:
            dimension_numbers = (((2,), (1,)), ((0,), (0,)))
    numbers = canonical_numbers(dimension_numbers)
    check_contraction("scaled_dot", lhs_aval, rhs_aval, numbers)
    if lhs_scale is None:
        lhs_scale = _ones_of_blocks(lhs_aval, numbers[0][0])
    if rhs_scale is None:
        rhs_scale = _ones_of_blocks(rhs_aval, numbers[0][1])
    result_dtype = canonical_element_type(preferred_element_type, "scaled_dot")
    params = {
        "dimension_numbers": numbers,
        "preferred_element_type": np.dtype(ml_dtypes.bfloat16)
        if result_dtype is None
        else result_dtype,
    }
    return process(scaled_dot_p, (lhs, rhs, lhs_scale, rhs_scale), params)


def _ones_of_blocks(aval: ShapedArray, axes: tuple[int, ...]) -> Array:
    shape = tuple(1 if axis in axes else size for axis, size in enumerate(aval.shape))
    one = full(shape, 1, ml_dtypes.bfloat16)
    return convert(one, np.dtype(ml_dtypes.float8_e8m0fnu), False)


@infer(scaled_dot_p)
def _(
    lhs: ShapedArray,
    rhs: ShapedArray,
    lhs_scale: ShapedArray,
    rhs_scale: ShapedArray,
    *,
    dimension_numbers: CanonicalNumbers,
    preferred_element_type: DType,
) -> ShapedArray:
    contracting, batch = dimension_numbers
    if len(contracting[0]) != 1:
        raise TypeError(
            f"scaled_dot sums over one axis of each operand, got dimension_numbers "
            f"{dimension_numbers}."
        )
    for name, aval, scale, (axis,) in (
        ("LHS", lhs, lhs_scale, contracting[0]),
        ("RHS", rhs, rhs_scale, contracting[1]),
    ):
        if aval.ndim != scale.ndim:
            raise TypeError(
                f"{name} and its scale must have the same number of axes, got shapes {aval.shape} "
                f"and {scale.shape}."
            )
        for i, (size, blocks) in enumerate(zip(aval.shape, scale.shape, strict=True)):
            if i != axis and size != blocks:
                raise TypeError(
                    f"{name} dim {i} of size {size} does not match scale dim size {blocks}."
                )
        size, blocks = aval.shape[axis], scale.shape[axis]
        if blocks == 0 or size % blocks:
            raise TypeError(
                f"{name} contracting dim {axis} of size {size} must be divisible by its scale's "
                f"dim size {blocks}."
            )
        if size // blocks < 2:
            raise TypeError(
                f"The ratio of {name} contracting dim {axis} to its scale's dim size ({blocks}) "
                "must be at least 2."
            )
    shape = (
        *(lhs.shape[axis] for axis in batch[0]),
        *without_axes(lhs.shape, (*batch[0], *contracting[0])),
        *without_axes(rhs.shape, (*batch[1], *contracting[1])),
    )
    return ShapedArray(shape, preferred_element_type)


# ---- derivatives and batches of scaled dot -------------------------------------------------------

_bfloat16, _float32 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)


def dequantized(x: ArrayLike, scale: ArrayLike, axis: int) -> Array:
    """Return `x` as bfloat16, with each element multiplied by the scale of its block."""
    factors = convert(_repeat_scales(scale, axis, typeof(x).shape), _bfloat16, False)
    return mul(convert(x, _bfloat16, False), factors)


def _repeat_scales(scale: ArrayLike, axis: int, new_shape: tuple[int, ...]) -> Array:
    """Repeat scales along `axis` to `new_shape`: from one per block to one per element."""
    shape = typeof(scale).shape
    split = (*shape[: axis + 1], new_shape[axis] // shape[axis], *shape[axis + 1 :])
    dimensions = [i for i in range(len(split)) if i != axis + 1]
    return reshape(broadcast_in_dim(scale, split, dimensions), new_shape)


@rules.jvp(scaled_dot_p)
def _(primals: ArrayLikes, tangents: Tangents, **params: object) -> Dual:
    result = process(scaled_dot_p, tuple(primals), params)
    total: Tangent = Zero.of(result)
    for i, tangent in enumerate(tangents):
        if type(tangent) is not Zero:
            varied = (*primals[:i], tangent, *primals[i + 1 :])
            total = add_tangents(total, process(scaled_dot_p, varied, params))
    return result, total


@rules.transpose(scaled_dot_p)
def _(
    cotangent: ArrayLike, *operands: Operand, dimension_numbers: CanonicalNumbers, **_: object
) -> Cotangents:
    contracting, batch = dimension_numbers
    last = is_linear(operands[1]) or is_linear(operands[3])
    own = 1 if last else 0
    x, scale = operands[own], operands[own + 2]
    (axis,), (other_axis,) = contracting[own], contracting[1 - own]
    other = dequantized(known(operands[1 - own]), known(operands[3 - own]), other_axis)
    numbers = (contracting[::-1], batch[::-1]) if last else dimension_numbers
    params = {"precision": None, "preferred_element_type": _float32, "out_sharding": None}
    aval = aval_of_operand(x).update(dtype=_float32)
    product = cotangent_of_factor(cotangent, aval, other, numbers, params, last=last)
    results: list[Cotangent | None] = [None] * 4
    if is_linear(x):
        factors = convert(_repeat_scales(known(scale), axis, aval.shape), _float32, False)
        results[own] = convert(mul(product, factors), x.aval.dtype, False)
    elif is_linear(scale):
        blocks = scale.aval.shape[axis]
        shape = (*aval.shape[:axis], blocks, aval.shape[axis] // blocks, *aval.shape[axis + 1 :])
        products = mul(product, convert(x, _float32, False))
        total = reduce_sum(reshape(products, shape), (axis + 1,))
        results[own + 2] = convert(total, scale.aval.dtype, False)
    return results


@rules.batch(scaled_dot_p)
def _(
    values: ArrayLikes,
    axes: BatchAxes,
    *,
    dimension_numbers: CanonicalNumbers,
    preferred_element_type: DType,
) -> BatchResult:
    # Compilers only implement the operation for equal batch axes of all operands.
    size = batch_size(values, axes)
    values = [to_front(x, axis, size) for x, axis in zip(values, axes, strict=True)]
    lhs_ndim, rhs_ndim = typeof(values[0]).ndim, typeof(values[1]).ndim
    numbers, axis = batched_contraction(lhs_ndim, rhs_ndim, (0, 0), dimension_numbers)
    params = {"dimension_numbers": numbers, "preferred_element_type": preferred_element_type}
    return process(scaled_dot_p, tuple(values), params), axis
