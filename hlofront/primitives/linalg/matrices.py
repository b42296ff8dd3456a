"""Helpers for matrix primitives: infer and batch rules, triangles, diagonals, products."""

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from hlofront.base.dtypes import is_complex
from hlofront.base.elements import NumPyDType, int32
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, DType, Shape
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import BatchResult
from hlofront.core.trace import process
from hlofront.primitives.arrays.creation import broadcasted_iota, full_like, index_like
from hlofront.primitives.arrays.gathering import GatherDimensionNumbers, gather
from hlofront.primitives.arrays.reducing import reduce_sum
from hlofront.primitives.arrays.shaping import broadcast_in_dim, expand_dims, squeeze, transpose
from hlofront.primitives.elementwise.compare import eq, ge, le, select_n
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import add, conj, real
from hlofront.primitives.elementwise.families import (
    COMPLEX,
    FLOAT,
    Kinds,
    check_dtype,
    check_same_dtypes,
    real_of,
)
from hlofront.primitives.linalg.dot_general import Precision, dot_general
from hlofront.primitives.rules.batching import batch_size, to_front
from hlofront.primitives.sharding.families import along_batches

INEXACT = FLOAT + COMPLEX

# The shape and dtype of each result of an operation on matrices, without batch axes.
CoreTypes = Sequence[tuple[Shape, DType]]
# The shapes of operands without their batch axes -> the types of the results.
CoreRule = Callable[..., CoreTypes]


# ---- rules -------------------------------------------------------------------------------------


def on_matrices(primitive: Primitive, kinds: Kinds, ranks: Sequence[int], rule: CoreRule) -> None:
    """Register the infer, batch and sharding rules of a primitive on matrices and vectors.

    Args:
      primitive: the primitive, whose operands have equal leading batch axes.
      kinds: the accepted kinds of dtypes; all operands have the same dtype.
      ranks: the number of axes of each operand after its batch axes.
      rule: a function `rule(*shapes, dtype, **params)` from the operands' shapes without batch axes
        to pairs of shape and dtype, one per result.
    """
    name = primitive.name

    def infer(*avals: ShapedArray, **params: object) -> ShapedArray | list[ShapedArray]:
        for index, (aval, rank) in enumerate(zip(avals, ranks, strict=True)):
            check_dtype(name, aval.dtype, kinds, index)
            if aval.ndim < rank:
                raise TypeError(
                    f"Input {index} to {name} must have rank at least {rank}, but got "
                    f"shape={aval.shape}"
                )
        if len(avals) > 1:
            check_same_dtypes(name, avals)
        batches = [aval.shape[: aval.ndim - rank] for aval, rank in zip(avals, ranks, strict=True)]
        if any(batch != batches[0] for batch in batches):
            shapes = ", ".join(str(aval.shape) for aval in avals)
            raise TypeError(
                f"All inputs to {name} must have the same batch dimensions: the axes before the "
                f"last {', '.join(map(str, ranks))} of shapes {shapes}. Use hlofront.vmap to map "
                "the axes of only one operand."
            )
        cores = [aval.shape[aval.ndim - rank :] for aval, rank in zip(avals, ranks, strict=True)]
        dtypes = [aval.dtype for aval in avals]
        core_shapes = rule(*cores, dtypes[0], **params)
        weak = all(aval.weak_type for aval in avals)
        results = [ShapedArray((*batches[0], *shape), dtype, weak) for shape, dtype in core_shapes]
        return results if primitive.multiple_results else results[0]

    def batch(values: ArrayLikes, axes: Sequence[int | None], /, **params: object) -> BatchResult:
        size = batch_size(values, axes)
        values = [to_front(x, axis, size) for x, axis in zip(values, axes, strict=True)]
        results = process(primitive, tuple(values), params)
        return results, [0] * len(results) if primitive.multiple_results else 0

    infer.__name__ = infer.__qualname__ = f"{name}_infer"
    rules.infer(primitive)(infer)
    if primitive not in rules.batch:
        batch.__name__ = batch.__qualname__ = f"{name}_batch"
        rules.batch(primitive)(batch)
    if primitive.name not in _SPLIT_OTHERWISE:
        along_batches(primitive, ranks)


# The matrices of solvers may be split; `sharding_products.py` has their rule.
_SPLIT_OTHERWISE = ("triangular_solve",)


def check_square(name: str, shape: tuple[int, ...]) -> int:
    """Return the number of rows of a shape (..., n, n); raise ValueError if it is not square."""
    if shape[-1] != shape[-2]:
        raise ValueError(f"The input to {name} must be a square matrix. Got shape {shape}.")
    return shape[-1]


# ---- transposes and products -------------------------------------------------------------------


def real_part(x: ArrayLike) -> Array:
    return real(x) if is_complex(typeof(x).dtype) else cast(Array, x)


def conjugate(x: ArrayLike) -> Array:
    return conj(x) if is_complex(typeof(x).dtype) else cast(Array, x)


def swap(x: ArrayLike) -> Array:
    """Return the transpose of each matrix of an array (..., m, n)."""
    ndim = typeof(x).ndim
    return transpose(x, (*range(ndim - 2), ndim - 1, ndim - 2))


def adjoint(x: ArrayLike) -> Array:
    """Return the conjugate transpose of each matrix of an array (..., m, n)."""
    return conjugate(swap(x))


def product(x: ArrayLike, y: ArrayLike) -> Array:
    """Return the products of matrices (..., m, k) and (..., k, n), at Precision.HIGHEST."""
    ndim = typeof(x).ndim
    batch = tuple(range(ndim - 2))
    numbers = (((ndim - 1,), (ndim - 2,)), (batch, batch))
    return dot_general(x, y, numbers, precision=Precision.HIGHEST)


def in_rows(x: ArrayLike) -> Array:
    """Reshape vectors (..., n) to matrices (..., 1, n), which broadcast over rows."""
    return expand_dims(x, (typeof(x).ndim - 1,))


def in_columns(x: ArrayLike) -> Array:
    """Reshape vectors (..., n) to matrices (..., n, 1), which broadcast over columns."""
    return expand_dims(x, (typeof(x).ndim,))


def along_rows(x: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Broadcast vectors (..., n) to matrices of a shape (..., m, n), all rows equal."""
    ndim = len(shape)
    return broadcast_in_dim(x, shape, (*range(ndim - 2), ndim - 1))


def along_columns(x: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Broadcast vectors (..., m) to matrices of a shape (..., m, n), all columns equal."""
    return broadcast_in_dim(x, shape, range(len(shape) - 1))


def broadcast_matrices(x: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Broadcast matrices to a shape by NumPy's rule: along axes of size one and missing axes."""
    old_shape = typeof(x).shape
    if old_shape == shape:
        return cast(Array, x)
    skipped = len(shape) - len(old_shape)
    dimensions = [i for i, size in enumerate(old_shape) if size == shape[skipped + i]]
    dropped = [i for i in range(len(old_shape)) if i not in dimensions]
    if dropped:
        x = squeeze(x, dropped)
    return broadcast_in_dim(x, shape, [skipped + i for i in dimensions])


# ---- triangles and diagonals -------------------------------------------------------------------


def _rows_and_columns(x: ArrayLike, offset: int) -> tuple[Array, Array]:
    """Return two int32 arrays like `x`: each element's row plus `offset`, and its column."""
    ndim = typeof(x).ndim
    rows = index_like(x, ndim - 2)
    if offset:
        rows = add(rows, np.int32(offset))
    return rows, index_like(x, ndim - 1)


def lower_triangle(x: ArrayLike, offset: int = 0) -> Array:
    """Return matrices with zeros above a diagonal; positive offsets are above the main one."""
    below = ge(*_rows_and_columns(x, offset))
    return select_n(below, full_like(x, 0), x)


def upper_triangle(x: ArrayLike, offset: int = 0) -> Array:
    """Return matrices with zeros below a diagonal; positive offsets are above the main one."""
    above = le(*_rows_and_columns(x, offset))
    return select_n(above, full_like(x, 0), x)


def identity(dtype: DType, shape: tuple[int, ...]) -> Array:
    """Return identity matrices of a shape (..., m, n), with zeros off the main diagonal."""
    ndim = len(shape)
    rows = broadcasted_iota(int32, shape, ndim - 2)
    return convert(eq(rows, broadcasted_iota(int32, shape, ndim - 1)), dtype, False)


def identity_like(x: ArrayLike) -> Array:
    """Return a single identity matrix of the dtype and size of the matrices x (..., m, n)."""
    aval = typeof(x)
    return identity(aval.dtype, aval.shape[-2:])


def diagonal(x: ArrayLike) -> Array:
    """Return the main diagonal of each matrix (..., m, n), of shape (..., min(m, n))."""
    aval = typeof(x)
    on = eq(*_rows_and_columns(x, 0))
    # Sum over the longer axis, which leaves one element of the diagonal per index of the other.
    axis = aval.ndim - (1 if aval.shape[-1] >= aval.shape[-2] else 2)
    return reduce_sum(select_n(on, full_like(x, 0), x), (axis,))


def real_dtype(dtype: NumPyDType) -> NumPyDType:
    """Return the dtype of a complex dtype's parts; other dtypes are unchanged."""
    return real_of(dtype)


# ---- rows --------------------------------------------------------------------------------------


def take_rows(x: ArrayLike, indices: ArrayLike) -> Array:
    """Return the rows of matrices (..., m, n) at in-bounds `indices` (..., k), as (..., k, n)."""
    aval = typeof(x)
    if not aval.size:
        return cast(Array, x)
    batch = tuple(range(aval.ndim - 2))
    row = aval.ndim - 2
    numbers = GatherDimensionNumbers(
        offset_dims=(aval.ndim - 1,),
        collapsed_slice_dims=(row,),
        start_index_map=(row,),
        operand_batching_dims=batch,
        start_indices_batching_dims=batch,
    )
    sizes = (*[1] * (aval.ndim - 1), aval.shape[-1])
    return gather(x, in_columns(indices), numbers, sizes)
