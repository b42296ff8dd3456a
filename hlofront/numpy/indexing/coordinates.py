"""Coordinates of elements: open grids, flat and multiple indices, indices of masks."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence

import numpy as np

from hlofront.base.dtypes import (
    check_user_dtype_supported,
    iinfo,
    issubdtype,
    lattice_result,
    python_scalar_dtype,
)
from hlofront.base.elements import exact_dtype, host_number
from hlofront.base.typing import Array, ArrayLike, DTypeLike, Shape
from hlofront.core.aval import typeof
from hlofront.core.sizes.dimensions import canonical_shape
from hlofront.numpy.arrays.filling import ones
from hlofront.numpy.arrays.shape import as_array
from hlofront.numpy.elementwise.division import divmod
from hlofront.numpy.elementwise.logic import greater, less
from hlofront.numpy.elementwise.ufuncs import any_operand, scalar_like, subtract
from hlofront.numpy.indexing.selecting import (
    clamped,
    euclidean_remainder,
    host_value,
    nonzero,
    where,
)
from hlofront.numpy.support.like import like
from hlofront.numpy.support.promotion import broadcast_together, check_arraylike, promote_dtypes
from hlofront.primitives.arrays import shaping
from hlofront.primitives.elementwise import elementwise
from hlofront.primitives.elementwise.converting import convert
from hlofront.runtime.dispatch.operation import operation


@operation
def _open_grid(args: list[ArrayLike]) -> tuple[Array, ...]:
    count = len(args)
    grid = []
    for i, x in enumerate(args):
        x = any_operand("ix_", x)
        aval = typeof(x)
        if not aval.size and not issubdtype(aval.dtype, np.integer):
            x = convert(x, python_scalar_dtype(int), False)
        grid.append(shaping.reshape(x, (1,) * i + (aval.size,) + (1,) * (count - 1 - i)))
    return tuple(map(as_array, grid))


@like(np.ix_)
def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Return vectors as an open grid, an index with an axis for each; masks become indices.

    Raises:
      ValueError: if an array does not have one axis.
      ConcretizationTypeError: if a mask is traced.

    Example:
      >>> x = jnp.arange(12).reshape(3, 4)
      >>> x[jnp.ix_(jnp.array([0, 2]), jnp.array([1, 3]))]
      Array([[ 1,  3],
             [ 9, 11]], dtype=int32)
    """
    check_arraylike("ix_", *args)
    indices = []
    for x in args:
        aval = typeof(x)
        if aval.ndim != 1:
            raise ValueError(
                f"Arguments to jax.numpy.ix_ must be 1-dimensional, got shape {aval.shape}"
            )
        indices.append(nonzero(x)[0] if aval.dtype == bool else x)
    return _open_grid(indices) if indices else ()


@operation(static_argnames=("shape",))
def _unravelled(indices: ArrayLike, shape: Shape) -> tuple[Array, ...]:
    total = math.prod(shape)
    # Indices out of bounds are clamped; negative ones count from the end.
    flat = euclidean_remainder(clamped(indices, -total, total - 1), total)
    coordinates: list[Array] = []
    for size in shape[:0:-1]:
        divisor = scalar_like(typeof(flat), size)
        coordinates.append(elementwise.rem(flat, divisor))
        flat = elementwise.div(flat, divisor)
    return (flat, *coordinates[::-1])


@operation
def _unravelled_by_any(indices: ArrayLike, sizes: Sequence[ArrayLike]) -> tuple[Array, ...]:
    """Convert flat positions to indices, one array per axis, for traced sizes or other dtypes."""
    flat = any_operand("unravel_index", indices)
    coordinates: list[Array] = []
    for size in sizes[::-1]:
        flat, remainder = divmod(flat, size)
        coordinates.append(remainder)
    # Unsigned positions are never negative, and -1 would become their greatest value.
    unsigned = issubdtype(typeof(flat).dtype, np.unsignedinteger)
    beyond, before = greater(flat, 0), False if unsigned else less(flat, -1)
    for i, size in enumerate(sizes[::-1]):
        last = size - 1 if isinstance(size, int | float) else subtract(size, 1)
        coordinates[i] = where(beyond, last, where(before, 0, coordinates[i]))
    return tuple(map(as_array, coordinates[::-1]))


@like(np.unravel_index)
def unravel_index(indices: ArrayLike, shape: ArrayLike | Sequence[ArrayLike]) -> tuple[Array, ...]:
    """Convert positions in a flattened array to indices into an array of this shape, one per axis.

    Negative positions count from the end, and positions out of bounds are moved to the nearest one.

    Args:
      indices: the positions, an array or a number.
      shape: a size for each axis, or one number. They need not be known while tracing.

    Raises:
      ValueError: if the shape is an array of several axes.
      TypeError: if sizes or positions are not real numbers.

    Example:
      >>> jnp.unravel_index(jnp.array([0, 5]), (2, 3))
      (Array([0, 1], dtype=int32), Array([0, 2], dtype=int32))
    """
    if not isinstance(shape, tuple | list):
        check_arraylike("unravel_index", shape)
        ndim = typeof(shape).ndim
        if ndim > 1:
            raise ValueError(
                f"unravel_index: shape must be a scalar or have one axis, got {ndim} axes"
            )
        sizes = tuple(shape) if ndim else (shape,)
    else:
        sizes = tuple(shape)
    check_arraylike("unravel_index", indices, *sizes)
    aval = typeof(indices)
    known = sizes and all(type(size) is int and size > 0 for size in sizes)
    if known and issubdtype(aval.dtype, np.integer) and not aval.weak_type:
        if math.prod(sizes) <= iinfo(aval.dtype).max:
            return _unravelled(indices, sizes)
    return _unravelled_by_any(indices, sizes)


_MODES = ("raise", "wrap", "clip", "ignore")


@operation(static_argnames=("dims", "mode", "dtype"))
def _raveled(
    indices: Sequence[ArrayLike], dims: tuple[int, ...], mode: str, dtype: np.dtype
) -> Array:
    indices = broadcast_together("ravel_multi_index", *promote_dtypes(*indices))
    total: Array | None = None
    for x, size in zip(indices, dims, strict=True):
        if mode == "wrap":
            x = euclidean_remainder(x, max(size, 1))
        elif mode == "clip":
            x = clamped(x, 0, max(size - 1, 0))
        x = convert(x, dtype, False)
        total = (
            x
            if total is None
            else elementwise.add(elementwise.mul(total, host_number(size, dtype)), x)
        )
    return as_array(total)


@like(np.ravel_multi_index)
def ravel_multi_index(
    multi_index: Sequence[ArrayLike],
    dims: Sequence[int],
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """Convert indices, one array per axis, to positions in the flattened array.

    Args:
      multi_index: integers for each axis, which broadcast together.
      dims: the shape of the array.
      mode: treatment out of bounds: "wrap" takes indices modulo the sizes, "clip" moves them to the
        nearest, "ignore" does nothing, and "raise" raises an error and accepts no traced indices.
      order: "C", row by row, or "F", column by column.
      dtype: the dtype of the result; by default the common dtype of the indices.

    Raises:
      ValueError: if indices are not integers, or out of bounds with mode "raise", the mode or order
        is unknown, or the dtype does not hold the last position.

    Example:
      >>> jnp.ravel_multi_index((jnp.array([0, 1]), jnp.array([2, 0])), (2, 3))
      Array([2, 3], dtype=int32)
    """
    dims = canonical_shape(dims)
    indices = list(multi_index)
    if len(indices) != len(dims):
        raise AssertionError(f"len(multi_index)={len(indices)} != len(dims)={len(dims)}")
    check_arraylike("ravel_multi_index", *indices)
    for x in indices:
        if not issubdtype(typeof(x).dtype, np.integer):
            raise ValueError(f"dtype={typeof(x).dtype!r} is not an integer type.")
    if mode not in _MODES:
        raise ValueError(f"invalid mode={mode!r}. Expected 'raise', 'wrap', 'clip', or 'ignore'.")
    if order not in ("C", "F"):
        raise ValueError(f"invalid order={order!r}. Expected 'C' or 'F'")
    if mode == "raise":
        for x, size in zip(indices, dims, strict=True):
            values = host_value(
                x,
                "The error occurred because ravel_multi_index was jit-compiled with mode='raise'. "
                "Use mode='wrap' or mode='clip' instead.",
            )
            if ((values < 0) | (values >= size)).any():
                raise ValueError(
                    f"invalid entry in coordinates array: got {values.min()} to {values.max()} for "
                    f"an axis of size {size}. mode='wrap' and mode='clip' allow that."
                )
        mode = "ignore"
    if order == "F":
        indices, dims = indices[::-1], dims[::-1]
    if dtype is None:
        avals = [typeof(x) for x in indices]
        types = tuple([(aval.dtype, aval.weak_type) for aval in avals])
        dtype = lattice_result(types)[0] if types else python_scalar_dtype(int)
    else:
        dtype = check_user_dtype_supported(dtype, "ravel_multi_index")
        if not issubdtype(dtype, np.integer):
            raise ValueError(f"dtype={dtype!r} is not an integer type.")
    if math.prod(dims) - 1 > iinfo(dtype).max:
        raise ValueError(
            f"ravel_multi_index: {dtype} is not large enough to hold a position in an array of "
            f"shape {tuple(dims)}: give a wider one as dtype."
        )
    if not indices:
        return as_array(exact_dtype(np.zeros((), dtype)))
    return _raveled(indices, dims, mode, dtype)


@like(np.mask_indices)
def mask_indices(
    n: int, mask_func: Callable[..., ArrayLike], k: int = 0, *, size: int | None = None
) -> tuple[Array, Array]:
    """Return the indices at which `mask_func`, such as triu, leaves a matrix of ones nonzero.

    Args:
      n: the number of rows and columns.
      mask_func: is called with a matrix of ones and `k`.
      k: the second argument of `mask_func`, such as the number of a diagonal.
      size: the number of indices to return; see `nonzero`.

    Example:
      >>> jnp.mask_indices(3, jnp.triu, 1)
      (Array([0, 0, 1], dtype=int32), Array([1, 2, 2], dtype=int32))
    """
    n = operator.index(n)
    rows, columns = nonzero(mask_func(ones((n, n)), k), size=size)
    return rows, columns
