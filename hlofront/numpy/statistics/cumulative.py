"""Cumulative sums and products along an axis."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlofront.base.dtypes import check_user_dtype_supported, python_scalar_dtype
from hlofront.base.elements import bool_
from hlofront.base.typing import Array, ArrayLike, Axis, DTypeLike
from hlofront.core.aval import typeof
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.numpy.elementwise.ufuncs import refuse_out
from hlofront.numpy.statistics.reductions import as_boolean, as_numbers, is_inexact, sum_dtype
from hlofront.numpy.support.like import operation_like
from hlofront.numpy.support.promotion import host_scalar, operand
from hlofront.primitives.arrays import creation, cumulative, slicing
from hlofront.primitives.arrays.shaping import reshape
from hlofront.primitives.elementwise import compare
from hlofront.primitives.elementwise.converting import strong


def without_nan(x: ArrayLike, value: ArrayLike) -> ArrayLike:
    """Replace each NaN of an array by `value`."""
    aval = typeof(x)
    if not is_inexact(aval.dtype):
        return x
    is_nan, x = compare.ne(x, x), strong(x)
    filled = creation.full_like(x, host_scalar(value, aval.dtype))
    return compare.select_n(is_nan, x, filled)


def _scan(
    name: str,
    fold: Callable[..., Array],
    a: ArrayLike,
    axis: Axis,
    dtype: DTypeLike | None,
    nan_as: int | None = None,
) -> Array:
    a, aval = operand(name, a)
    if axis is None or not aval.ndim:
        a = reshape(a, (aval.size,))
    axis = 0 if axis is None else canonical_axis(axis, max(aval.ndim, 1))
    if nan_as is not None:
        a = without_nan(a, nan_as)
    if dtype is None:
        result = python_scalar_dtype(int) if aval.dtype == bool_ else aval.dtype
    else:
        result = check_user_dtype_supported(dtype, name)
    if result == bool_:
        # Elements are counted first, and the counts compared with zero.
        return as_boolean(fold(as_numbers(as_boolean(a), python_scalar_dtype(int)), axis))
    return fold(as_numbers(a, result), axis)


@operation_like(np.cumsum, static_argnames=("axis", "dtype"))
def cumsum(
    a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Compute the cumulative sum along an axis, or of the flattened array.

    The result has the dtype of the array, except that booleans are counted with integers.

    Example:
      >>> jnp.cumsum(jnp.array([1, 2, 3]))
      Array([1, 3, 6], dtype=int32)
    """
    refuse_out("cumsum", out)
    return _scan("cumsum", cumulative.cumsum, a, axis, dtype)


@operation_like(np.cumprod, static_argnames=("axis", "dtype"))
def cumprod(
    a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Compute the cumulative product of an array along an axis, or of the flattened array.

    Example:
      >>> jnp.cumprod(jnp.array([1, 2, 3]))
      Array([1, 2, 6], dtype=int32)
    """
    refuse_out("cumprod", out)
    return _scan("cumprod", cumulative.cumprod, a, axis, dtype)


@operation_like(np.nancumsum, static_argnames=("axis", "dtype"))
def nancumsum(
    a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Compute the cumulative sum along an axis, with each NaN counted as 0.

    Example:
      >>> jnp.nancumsum(jnp.array([2, jnp.nan, 3]))
      Array([2., 2., 5.], dtype=float32)
    """
    refuse_out("nancumsum", out)
    return _scan("nancumsum", cumulative.cumsum, a, axis, dtype, 0)


@operation_like(np.nancumprod, static_argnames=("axis", "dtype"))
def nancumprod(
    a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Compute the cumulative product along an axis, with each NaN counted as 1.

    Example:
      >>> jnp.nancumprod(jnp.array([2, jnp.nan, 3]))
      Array([2., 2., 6.], dtype=float32)
    """
    refuse_out("nancumprod", out)
    return _scan("nancumprod", cumulative.cumprod, a, axis, dtype, 1)


def _array_scan(
    name: str,
    fold: Callable[..., Array],
    x: ArrayLike,
    axis: Axis,
    dtype: DTypeLike | None,
    include_initial: bool,
    initial: int,
) -> Array:
    x, aval = operand(name, x)
    if not aval.ndim:
        raise ValueError(
            "The input must be non-scalar to take a cumulative sum, however a scalar value or "
            f"scalar array was given to {name}: {aval}."
        )
    if axis is None:
        if aval.ndim > 1:
            raise ValueError(
                f"The input array has rank {aval.ndim}, however axis was not set to an explicit "
                f"value. The axis argument of {name} is only optional for one-dimensional arrays."
            )
        axis = 0
    axis = canonical_axis(axis, aval.ndim)
    if dtype is None and fold is cumulative.cumsum:
        dtype = sum_dtype(aval.dtype)
    result = _scan(name, fold, x, axis, dtype)
    if not include_initial:
        return result
    aval = typeof(result)
    start = creation.full(
        (*aval.shape[:axis], 1, *aval.shape[axis + 1 :]), host_scalar(initial, aval.dtype)
    )
    return slicing.concatenate([start, result], axis)


@operation_like(
    getattr(np, "cumulative_sum", np.cumsum), static_argnames=("axis", "dtype", "include_initial")
)
def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """Compute the cumulative sum along an axis, as the array API standard defines it.

    Args:
      x: an array of at least one axis.
      axis: the axis; it is required if there are several.
      dtype: the dtype of the result; by default, that of the array, with integers widened to the
        default integer dtype.
      include_initial: whether to start with a 0, which makes the axis longer by one.

    Raises:
      ValueError: if x is a scalar, or the axis is missing.

    Example:
      >>> jnp.cumulative_sum(jnp.array([2, 3, 4]), include_initial=True)
      Array([0, 2, 5, 9], dtype=int32)
    """
    return _array_scan("cumulative_sum", cumulative.cumsum, x, axis, dtype, include_initial, 0)


@operation_like(
    getattr(np, "cumulative_prod", np.cumprod), static_argnames=("axis", "dtype", "include_initial")
)
def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """Compute the cumulative product along an axis, as the array API standard defines it.

    Args:
      x: an array of at least one axis.
      axis: the axis; it is required if there are several.
      dtype: the dtype of the result.
      include_initial: whether to start with a 1, which makes the axis longer by one.

    Raises:
      ValueError: if x is a scalar, or the axis is missing.

    Example:
      >>> jnp.cumulative_prod(jnp.array([2, 3, 4]), include_initial=True)
      Array([ 1,  2,  6, 24], dtype=int32)
    """
    return _array_scan("cumulative_prod", cumulative.cumprod, x, axis, dtype, include_initial, 1)


ARRAY_METHODS: dict[str, Callable[..., Array]] = {"cumprod": cumprod, "cumsum": cumsum}
