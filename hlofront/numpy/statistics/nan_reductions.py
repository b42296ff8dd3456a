"""Reductions that ignore NaNs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlofront.base.typing import Array, ArrayLike, Axes, Axis, DType, DTypeLike
from hlofront.core.aval import typeof
from hlofront.numpy.elementwise.ufuncs import any_operand, refuse_out
from hlofront.numpy.statistics.cumulative import without_nan
from hlofront.numpy.statistics.moments import mean_over, moment_dtypes, variance
from hlofront.numpy.statistics.reductions import (
    ALL,
    MAX,
    MIN,
    PROD,
    SUM,
    Fold,
    accumulated,
    across_names,
    check_mask,
    extreme,
    fold_axes,
    index_of_extreme,
    is_inexact,
    reduced_axes,
    split_names,
)
from hlofront.numpy.support.like import operation_like
from hlofront.numpy.support.promotion import choose, host_scalar, operand
from hlofront.primitives.arrays import reducing
from hlofront.primitives.arrays.shaping import expand_dims
from hlofront.primitives.elementwise import compare, elementwise


def _numbers(name: str, a: ArrayLike, where: ArrayLike | None) -> ArrayLike | None:
    """Return a mask of the elements that are in the mask `where` and not NaN.

    Skip the test for dtypes without NaN.
    """
    if where is not None:
        check_mask(name, where)
    if not is_inexact(typeof(a).dtype):
        return where
    numbers = compare.eq(a, a)
    return numbers if where is None else choose(name, where, numbers, False)


# ---- sums and products -------------------------------------------------------------------------


@operation_like(np.nansum, static_argnames=("axis", "dtype", "keepdims"))
def nansum(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Sum over axes, with each NaN counted as 0.

    Args:
      a: an array.
      axis: an axis or several; all of them by default.
      dtype: the dtype that elements are converted to and summed in. By default integers narrower
        than the default ones are summed in the default dtype.
      out: must be None.
      keepdims: whether the reduced axes remain, with size 1.
      initial: a number to add to the sums.
      where: a mask of the elements that count.

    Example:
      >>> jnp.nansum(jnp.array([[2, jnp.nan], [jnp.nan, jnp.nan]]), axis=1)
      Array([2., 0.], dtype=float32)
    """
    refuse_out("nansum", out)
    a = without_nan(any_operand("nansum", a), 0)
    return accumulated(SUM, a, axis, dtype, keepdims, initial, where)


@operation_like(np.nanprod, static_argnames=("axis", "dtype", "keepdims"))
def nanprod(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Multiply over axes, with each NaN counted as 1.

    Args:
      a: an array.
      axis: an axis or several; all of them by default.
      dtype: the dtype that elements are converted to and multiplied in. By default integers
        narrower than the default ones are multiplied in the default dtype.
      out: must be None.
      keepdims: whether the reduced axes remain, with size 1.
      initial: a number to multiply the products by.
      where: a mask of the elements that count.

    Example:
      >>> jnp.nanprod(jnp.array([[2, jnp.nan], [jnp.nan, jnp.nan]]), axis=1)
      Array([2., 1.], dtype=float32)
    """
    refuse_out("nanprod", out)
    a = without_nan(any_operand("nanprod", a), 1)
    return accumulated(PROD, a, axis, dtype, keepdims, initial, where)


# ---- extremes ----------------------------------------------------------------------------------


def _extreme(
    name: str,
    fold: Fold,
    a: ArrayLike,
    axis: Axes,
    keepdims: bool,
    initial: ArrayLike | None,
    where: ArrayLike | None,
) -> Array:
    a, aval = operand(name, a)
    if not is_inexact(aval.dtype):
        return extreme(fold, a, axis, keepdims, initial, where)
    result = extreme(
        fold, without_nan(a, fold.identity(aval.dtype)), axis, keepdims, initial, where
    )
    if initial is not None:
        return result
    axis, names = split_names(axis)
    axes = reduced_axes(axis, aval.ndim)
    no_number = fold_axes(ALL, compare.ne(a, a), axes, keepdims, None, None)
    no_number = across_names(ALL, no_number, names)
    return choose(name, no_number, host_scalar(np.nan, aval.dtype), result)


@operation_like(np.nanmax, static_argnames=("axis", "keepdims"))
def nanmax(
    a: ArrayLike,
    axis: Axes = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Return the greatest element over axes that is not NaN, or NaN if all are.

    Raises:
      ValueError: if there are no elements and no `initial`.

    Example:
      >>> jnp.nanmax(jnp.array([[1, jnp.nan], [jnp.nan, jnp.nan]]), axis=1)
      Array([ 1., nan], dtype=float32)
    """
    refuse_out("nanmax", out)
    return _extreme("nanmax", MAX, a, axis, keepdims, initial, where)


@operation_like(np.nanmin, static_argnames=("axis", "keepdims"))
def nanmin(
    a: ArrayLike,
    axis: Axes = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Return the least element over axes that is not NaN, or NaN if all are.

    Raises:
      ValueError: if there are no elements and no `initial`.

    Example:
      >>> jnp.nanmin(jnp.array([[1, jnp.nan, 3]]), axis=1)
      Array([1.], dtype=float32)
    """
    refuse_out("nanmin", out)
    return _extreme("nanmin", MIN, a, axis, keepdims, initial, where)


def _index(
    name: str,
    fold: Callable[..., Array],
    worst: Callable[[DType], ArrayLike],
    a: ArrayLike,
    axis: Axis,
    keepdims: bool | None,
) -> Array:
    a, aval = operand(f"nan{name}", a)
    if not is_inexact(aval.dtype):
        return index_of_extreme(name, fold, a, axis, keepdims)
    result = index_of_extreme(name, fold, without_nan(a, worst(aval.dtype)), axis, keepdims)
    axes = reduced_axes(axis, aval.ndim)
    no_number = reducing.reduce_and(compare.ne(a, a), axes)
    if keepdims:
        no_number = expand_dims(no_number, axes)
    return choose(name, no_number, host_scalar(-1, typeof(result).dtype), result)


@operation_like(np.nanargmax, static_argnames=("axis", "keepdims"))
def nanargmax(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Return the index of the greatest element that is not NaN, or -1 if all are NaN.

    Raises:
      ValueError: if there are no elements.

    Example:
      >>> jnp.nanargmax(jnp.array([1, jnp.nan, 3])), jnp.nanargmax(jnp.array([jnp.nan]))
      (Array(2, dtype=int32), Array(-1, dtype=int32))
    """
    refuse_out("nanargmax", out)
    return _index("argmax", reducing.argmax, reducing.least_value, a, axis, keepdims)


@operation_like(np.nanargmin, static_argnames=("axis", "keepdims"))
def nanargmin(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Return the index of the least element that is not NaN, or -1 if all are NaN.

    Raises:
      ValueError: if there are no elements.

    Example:
      >>> jnp.nanargmin(jnp.array([jnp.nan, 3, 2]))
      Array(2, dtype=int32)
    """
    refuse_out("nanargmin", out)
    return _index("argmin", reducing.argmin, reducing.greatest_value, a, axis, keepdims)


# ---- means and variances -----------------------------------------------------------------------


@operation_like(np.nanmean, static_argnames=("axis", "dtype", "keepdims"))
def nanmean(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """Compute the mean over axes of the elements that are not NaN, or NaN where there are none.

    Example:
      >>> jnp.nanmean(jnp.array([1, jnp.nan, 3]))
      Array(2., dtype=float32)
    """
    refuse_out("nanmean", out)
    a, aval = operand("nanmean", a)
    where = _numbers("nanmean", a, where)
    axis, names = split_names(axis)
    axes = reduced_axes(axis, aval.ndim)
    dtypes = moment_dtypes("nanmean", aval.dtype, dtype)
    return mean_over(a, axes, *dtypes, keepdims, where, names)


def _variance(
    name: str,
    a: ArrayLike,
    axis: Axes,
    dtype: DTypeLike | None,
    ddof: int | float,
    keepdims: bool,
    where: ArrayLike | None,
    mean: ArrayLike | None,
) -> Array:
    a = any_operand(name, a)
    where = _numbers(name, a, where)
    # Squares of NaNs would make derivatives NaN even where they are ignored.
    return variance(without_nan(a, 0), axis, dtype, keepdims, where, mean, ddof)


@operation_like(np.nanvar, static_argnames=("axis", "dtype", "keepdims"))
def nanvar(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int | float = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """Compute the variance over axes of the elements that are not NaN.

    Example:
      >>> jnp.nanvar(jnp.array([1, jnp.nan, 3]), ddof=1)
      Array(2., dtype=float32)
    """
    refuse_out("nanvar", out)
    return _variance("nanvar", a, axis, dtype, ddof, keepdims, where, mean)


@operation_like(np.nanstd, static_argnames=("axis", "dtype", "keepdims"))
def nanstd(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int | float = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """Compute the standard deviation over axes of the elements that are not NaN.

    Example:
      >>> jnp.nanstd(jnp.array([1, jnp.nan, 3]))
      Array(1., dtype=float32)
    """
    refuse_out("nanstd", out)
    return elementwise.sqrt(_variance("nanstd", a, axis, dtype, ddof, keepdims, where, mean))
