"""Replacements of products on CPUs: other products, or sums, where XLA's code is slow.

XLA uses libraries of kernels to multiply float32, float64, bytes with an int32 result, and bfloat16
with a float32 result. Other dtypes are converted to those, or multiplied by plain loops, and each
small matrix of a batch is a call.
"""

import math
from collections.abc import Callable, Sequence

import ml_dtypes
import numpy as np

from hlofront.base.dtypes import full_name, issubdtype
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, Shape
from hlofront.lowering.core.types import NumPyDType
from hlofront.lowering.min_sizes import MIN_SIZES
from hlofront.lowering.ops.dot_general import BELOW_A_BYTE
from hlofront.lowering.replacements import Candidate, Emit, replaces, traced
from hlofront.primitives.arrays.reducing import reduce_sum
from hlofront.primitives.arrays.shaping import broadcast_in_dim, reshape, transpose
from hlofront.primitives.arrays.slicing import index_in_dim
from hlofront.primitives.calls.barriers import optimization_barrier
from hlofront.primitives.elementwise import elementwise as e
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.linalg import dot_general as c
from hlofront.primitives.linalg.contraction_numbers import DotDimensionNumbers
from hlofront.primitives.linalg.dot_general import DotAlgorithm, DotAlgorithmPreset, dot_general

_int8, _uint8, _int32 = np.dtype(np.int8), np.dtype(np.uint8), np.dtype(np.int32)
_bfloat16, _float32 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)

# XLA's calls multiply larger matrices as fast; for 2 x 2 and 3 x 3 matrices it emits a loop.
_MAX_SMALL_SIZE = 8
_MAX_SMALL_SIZE_BFLOAT16 = 7
_MAX_IN_LOOP = 3
# The minimum numbers of products of two numbers, in total and in each element of a batch.
_MIN_SIZES = MIN_SIZES["dot_general"]


class _Sizes(NamedTuple):
    """The number of matrix products, and the rows, summed elements and columns of each."""

    batch: int
    rows: int
    summed: int
    columns: int


def _sizes_of(lhs: Shape, rhs: Shape, numbers: DotDimensionNumbers) -> _Sizes:
    (contracting, _), (batch, _) = numbers
    matrices, summed = (math.prod(lhs[axis] for axis in axes) for axes in (batch, contracting))
    rows, columns = (math.prod(shape) // (matrices * summed or 1) for shape in (lhs, rhs))
    return _Sizes(matrices, rows, summed, columns)


class _Kernel(NamedTuple):
    """The dtypes of the operands and of the result of a kernel."""

    operands: NumPyDType
    result: NumPyDType


def _kernel_of(lhs: NumPyDType, rhs: NumPyDType, result: NumPyDType) -> _Kernel | None:
    """Return a kernel whose products, converted to the result's dtype, are the required ones.

    Sums of integers are exact in the bits of the result.
    """
    operands = {lhs, rhs}
    if operands == {_bfloat16} and result in (_bfloat16, _float32):
        return _Kernel(_bfloat16, _float32)
    if operands == {result} == {np.dtype(np.bool_)}:
        return _Kernel(_int8, _int32)
    if all(issubdtype(dtype, np.integer) for dtype in (lhs, rhs, result)) and result.itemsize <= 4:
        are_bytes = operands <= {_int8, _uint8} or result.itemsize == 1
        return _Kernel(_int8 if are_bytes else _int32, _int32)
    return None


# A form of a product: a function of matrices, those on the right transposed, and the result's
# dtype.
_Form = Callable[[Array, Array, NumPyDType], Array]


def _form_of(equation: Candidate) -> _Form | None:
    """Return the form in which CPUs compute a product fast, or None to keep XLA's operation."""
    (lhs, rhs), (result,), params = equation.avals_in, equation.avals_out, equation.params
    dtypes = lhs.dtype, rhs.dtype, result.dtype
    if isinstance(params["precision"], DotAlgorithm | DotAlgorithmPreset):
        return None
    if any(full_name(dtype) in BELOW_A_BYTE for dtype in dtypes):
        return None
    sizes = _sizes_of(lhs.shape, rhs.shape, params["dimension_numbers"])
    products = math.prod(sizes)
    most = _MAX_SMALL_SIZE_BFLOAT16 if result.dtype == _bfloat16 else _MAX_SMALL_SIZE
    are_small = _MAX_IN_LOOP < max(sizes[1:]) and max(sizes[2:]) <= most
    are_small = are_small and min(sizes[1:]) > 1 and result.dtype != np.bool_
    if are_small and products >= _MIN_SIZES["small"]:
        return _sum_of_products
    kernel = _kernel_of(*dtypes)
    if kernel is None or (sizes.batch > 1 and math.prod(sizes[1:]) < _MIN_SIZES["batch"]):
        return None
    if any(_is_shifted(dtype, result.dtype) for dtype in dtypes[:2]):
        min_size = _MIN_SIZES["shifted"]
    elif min(sizes.rows, sizes.columns) == 1:
        min_size = _MIN_SIZES["vectors"]
    else:
        min_size = 0 if kernel.operands == _bfloat16 else _MIN_SIZES["bytes"]
    if products < min_size:
        return None
    if min(sizes.rows, sizes.columns) == 1:
        is_profitable = kernel.operands != _int32 and sizes.rows != sizes.columns
        return _of_equal_rows if is_profitable else None
    is_own = dtypes == (kernel.operands, kernel.operands, kernel.result)
    is_converted = kernel.operands == _int32 == result.dtype
    return None if is_own or is_converted else _by_kernel


def _is_shifted(dtype: NumPyDType, result: NumPyDType) -> bool:
    """Return whether operands of a dtype must be reduced by 128 for a kernel of signed bytes."""
    return dtype == _uint8 and issubdtype(result, np.integer) and result.itemsize > 1


@replaces(c.dot_general_p, needs_barriers=True)
def _(equation: Candidate) -> Emit | None:
    """Small matrices as sums of products; bytes and bfloat16 by kernels."""
    form, (result,) = _form_of(equation), equation.avals_out
    if form is None:
        return None
    numbers: DotDimensionNumbers = equation.params["dimension_numbers"]
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = numbers

    def of_arrays(lhs: Array, rhs: Array) -> Array:
        if form is _sum_of_products:
            # XLA would recompute the operands for each product.
            lhs, rhs = optimization_barrier((lhs, rhs))
        lhs = _matrices(lhs, lhs_batch, lhs_contracting)
        rhs = _matrices(rhs, rhs_batch, rhs_contracting)
        return reshape(form(lhs, rhs, result.dtype), result.shape)

    return traced(of_arrays, is_stored=form is _sum_of_products)


def _matrices(x: Array, batch: Sequence[int], contracting: Sequence[int]) -> Array:
    """Return an operand with its axes merged into three: batch, free and contracting."""
    free_axes = [axis for axis in range(x.ndim) if axis not in (*batch, *contracting)]
    sizes = [math.prod(x.shape[axis] for axis in axes) for axes in (batch, free_axes, contracting)]
    return reshape(transpose(x, (*batch, *free_axes, *contracting)), sizes)


_TRANSPOSED: DotDimensionNumbers = ((2,), (2,)), ((0,), (0,))


def _by_kernel(lhs: Array, rhs: Array, dtype: NumPyDType) -> Array:
    """Return products by a kernel for these dtypes."""
    kernel = _kernel_of(lhs.dtype, rhs.dtype, dtype)
    assert kernel is not None
    shifts = [kernel.operands == _int8 and _is_shifted(x.dtype, dtype) for x in (lhs, rhs)]
    x, y = (
        convert(e.bitwise_xor(x, np.uint8(128)) if shift else x, kernel.operands, False)
        for x, shift in zip((lhs, rhs), shifts)
    )
    # With a transpose on the left, XLA uses plain loops, and may fail for bfloat16.
    (x,) = optimization_barrier((x,))
    product = dot_general(x, y, _TRANSPOSED, None, kernel.result)
    # (x + 128) * (y + 128) is x * y + 128 * x + 128 * (y + 128).
    for axis, shift, summed in ((0, shifts[1], x), (1, shifts[0], rhs)):
        if shift:
            total = reduce_sum(convert(summed, _int32, False), (2,))
            total = e.mul(total, np.int32(128))
            product = e.add(product, broadcast_in_dim(total, product.shape, (0, axis + 1)))
    return convert(product, dtype, False)


def _of_equal_rows(lhs: Array, rhs: Array, dtype: NumPyDType) -> Array:
    """Return products of vectors with matrices, with each vector repeated as two rows.

    There are only kernels for matrices, which are faster with the larger matrix on the right.
    """
    vectors, matrices = (lhs, rhs) if lhs.shape[1] == 1 else (rhs, lhs)
    batch, _, summed = vectors.shape
    rows = broadcast_in_dim(vectors, (batch, 2, summed), (0, 1, 2))
    return index_in_dim(_by_kernel(rows, matrices, dtype), 0, 1, keepdims=False)


def _sum_of_products(lhs: Array, rhs: Array, dtype: NumPyDType) -> Array:
    """Return products as sums with a term per summed element."""
    is_narrow = issubdtype(dtype, np.floating) and dtype.itemsize < 4
    summed_dtype = _float32 if is_narrow else dtype
    lhs, rhs = (convert(x, summed_dtype, False) for x in (lhs, rhs))
    shape = (*lhs.shape[:2], rhs.shape[1])
    total: Array | None = None
    for i in range(lhs.shape[2]):
        columns, rows = (index_in_dim(x, i, 2, keepdims=False) for x in (lhs, rhs))
        product = e.mul(
            broadcast_in_dim(columns, shape, (0, 1)), broadcast_in_dim(rows, shape, (0, 2))
        )
        total = product if total is None else e.add(total, product)
    assert total is not None
    return convert(total, dtype, False)
