"""Reductions over axes: sums, products, extremes, and the indices of extremes."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from hlofront.base.dtypes import (
    check_user_dtype_supported,
    default_dtype,
    is_complex,
    issubdtype,
    python_scalar_dtype,
    to_numeric_dtype,
)
from hlofront.base.elements import bfloat16, bool_, float32
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, ArrayLike, Axes, Axis, DType, DTypeLike, Shape
from hlofront.core.aval import typeof
from hlofront.core.sizes.dimensions import canonical_axes, canonical_axis
from hlofront.numpy.elementwise.ufuncs import any_operand, refuse_out
from hlofront.numpy.support.like import operation_like
from hlofront.numpy.support.promotion import choose, converted, host_scalar, operand
from hlofront.primitives.arrays import reducing
from hlofront.primitives.arrays.shaping import ascending, expand_dims, reshape
from hlofront.primitives.collectives.collectives import pmax, pmin, psum
from hlofront.primitives.elementwise import compare, elementwise
from hlofront.primitives.elementwise.converting import convert
from hlofront.runtime.dispatch.operation import operation

# The dtypes whose sums are computed in float32.
_halves = frozenset({np.dtype(np.float16), np.dtype(bfloat16)})


# Axes by number, and mesh or vmap axes by name.
NamedAxes: TypeAlias = "Axes | str | tuple[int | str, ...]"


# ---- helpers of all reductions -----------------------------------------------------------------


class Fold(NamedTuple):
    """A reduction of axes, by its binary operation and identity element."""

    name: str
    reduce: Callable[..., Array]
    # The function that combines the initial value with the reduced one.
    combine: Callable[..., Array]
    # The function that returns the identity element for a dtype.
    identity: Callable[[DType], ArrayLike]
    # The collective that reduces over named axes, or None.
    across: Callable[..., Array] | None = None


def reduced_axes(axis: Axes, ndim: int) -> tuple[int, ...]:
    """Return the axes that `axis` names, counted from 0: all of them for None.

    Raises:
      numpy.exceptions.AxisError: if there is no such axis.
      ValueError: if an axis is repeated.
      TypeError: if an axis is not an integer.
    """
    if axis is None:
        return ascending(ndim)
    axes = canonical_axes(axis, ndim)
    if len(axes) > 1 and len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axis': {axis}")
    return axes


def split_names(axis: NamedAxes) -> tuple[Axes, tuple[str, ...]]:
    """Split axes into those by number and those by name, which vmap and shard_map define.

    Raises:
      ValueError: if a name is repeated.
    """
    if isinstance(axis, str):
        return (), (axis,)
    if isinstance(axis, tuple) and builtins.any(isinstance(one, str) for one in axis):
        names = tuple([one for one in axis if isinstance(one, str)])
        if len(set(names)) != len(names):
            raise ValueError(f"duplicate value in 'axis': {axis}")
        return tuple([one for one in axis if not isinstance(one, str)]), names
    return axis, ()


def across_names(fold: Fold, result: Array, names: tuple[str, ...]) -> Array:
    """Reduce over named axes a result that is already reduced over positional axes.

    Raises:
      NotImplementedError: if there is no such collective.
      NameError: if there is no axis of the name.
    """
    if not names:
        return result
    if fold.across is None:
        raise NotImplementedError(  # JAX raises this class.
            f"jnp.{fold.name} has no named axes, got {names}. psum, pmax and pmin have."
        )
    return fold.across(result, names)


def is_inexact(dtype: np.dtype) -> bool:
    return issubdtype(dtype, np.inexact)


def sum_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype of sums and products of a dtype: at least the default one for integers."""
    if dtype == bool_:
        return python_scalar_dtype(int)
    if not issubdtype(dtype, np.integer):
        return dtype
    default = default_dtype("i" if issubdtype(dtype, np.signedinteger) else "u")
    return default if dtype.itemsize < default.itemsize else dtype


def working_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which elements of a dtype are summed by default."""
    return float32 if dtype in _halves else dtype


def sum_over(x: ArrayLike, axes: tuple[int, ...]) -> Array:
    """Return the sum over axes, in the dtype of `x`: 16-bit floats are summed in float32."""
    dtype = typeof(x).dtype
    total = reducing.reduce_sum(convert(x, working_dtype(dtype), False), axes)
    return convert(total, dtype, False)


def as_boolean(x: ArrayLike) -> ArrayLike:
    """Return elementwise whether an array is not zero."""
    dtype = typeof(x).dtype
    if is_complex(dtype):
        return compare.ne(x, host_scalar(0, dtype))
    return convert(x, bool_, False)


def as_numbers(x: ArrayLike, dtype: np.dtype) -> ArrayLike:
    """Convert an array to another dtype, booleans via integers; the result is not weak."""
    operand_dtype = typeof(x).dtype
    if operand_dtype == bool_ and dtype != bool_:
        x = convert(x, to_numeric_dtype(operand_dtype), False)
    return as_boolean(x) if dtype == bool_ else convert(x, dtype, False)


def fold_axes(
    fold: Fold,
    a: ArrayLike,
    axes: tuple[int, ...],
    keepdims: bool,
    initial: ArrayLike | None,
    where: ArrayLike | None,
) -> Array:
    """Reduce axes of an array in its dtype, from `initial`, over the elements in mask `where`."""
    if where is not None:
        a = _masked(fold, a, where)
    result = fold.reduce(a, axes)
    if initial is not None:
        result = fold.combine(_initial(initial, typeof(a).dtype), result)
    return expand_dims(result, axes) if keepdims else result


def _masked(fold: Fold, a: ArrayLike, where: ArrayLike) -> Array:
    check_mask(fold.name, where)
    operand_dtype = typeof(a).dtype
    return choose(
        f"jnp.{fold.name}", where, a, host_scalar(fold.identity(operand_dtype), operand_dtype)
    )


def check_mask(name: str, where: ArrayLike) -> None:
    """Raise ValueError unless a mask is boolean."""
    dtype = typeof(where).dtype
    if dtype != bool_:
        raise ValueError(
            f"jnp.{name}: where must be None or a boolean array; got where.dtype={dtype!r}. "
            "Compare first: where != 0."
        )


def _initial(initial: ArrayLike, dtype: np.dtype) -> ArrayLike:
    aval = typeof(initial)
    if aval.shape:
        raise ValueError(f"initial value must be a scalar. Got array of shape {aval.shape}")
    return as_boolean(initial) if dtype == bool_ else converted(initial, aval, dtype, False)


# ---- sum, prod ---------------------------------------------------------------------------------

SUM = Fold("sum", reducing.reduce_sum, elementwise.add, lambda dtype: 0, psum)
PROD = Fold("prod", reducing.reduce_prod, elementwise.mul, lambda dtype: 1)
ANY = Fold("any", reducing.reduce_or, elementwise.bitwise_or, lambda dtype: False)
ALL = Fold("all", reducing.reduce_and, elementwise.bitwise_and, lambda dtype: True)
MAX = Fold("max", reducing.reduce_max, elementwise.max, reducing.least_value, pmax)
MIN = Fold("min", reducing.reduce_min, elementwise.min, reducing.greatest_value, pmin)


def accumulated(
    fold: Fold,
    a: ArrayLike,
    axis: NamedAxes,
    dtype: DTypeLike | None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """Return the sum or product over axes, positional or named, in `dtype`.

    Args:
      fold: the reduction, SUM or PROD.
      promote_integers: whether, without a dtype, small integers are widened as NumPy does.
    """
    name = fold.name
    a, aval = operand(name, a)
    axis, names = split_names(axis)
    axes = reduced_axes(axis, aval.ndim)
    operand_dtype = aval.dtype
    if dtype is not None:
        result = working = check_user_dtype_supported(dtype, name)
        if working == bool_:
            fold = ANY if fold is SUM else ALL
    else:
        result = (
            sum_dtype(operand_dtype)
            if promote_integers or operand_dtype == bool_
            else operand_dtype
        )
        working = working_dtype(result)
    a = as_numbers(a, working)
    folded = fold_axes(fold, a, axes, keepdims, initial, where)
    return convert(across_names(fold, folded, names), result, False)


_SUM_NAMES = ("axis", "dtype", "keepdims", "promote_integers")


@operation_like(np.sum, static_argnames=_SUM_NAMES)
def sum(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """Compute the sum over axes: all of them, one, or several.

    Integers narrower than the default ones are summed in the default dtype, unless
    `promote_integers` is False; float16 and bfloat16 are summed in float32 and rounded once.
    Given a `dtype`, elements are converted to it and summed in it.

    Example:
      >>> x = jnp.array([[1, 2], [3, 4]])
      >>> jnp.sum(x, axis=0)
      Array([4, 6], dtype=int32)
      >>> jnp.sum(x, axis=1, keepdims=True).shape
      (2, 1)
    """
    refuse_out("sum", out)
    return accumulated(SUM, a, axis, dtype, keepdims, initial, where, promote_integers)


@operation_like(np.prod, static_argnames=_SUM_NAMES)
def prod(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """Compute the product over axes: all of them, one, or several.

    Integers narrower than the default ones are multiplied in the default dtype, unless
    `promote_integers` is False; float16 and bfloat16 are multiplied in float32 and rounded once.
    With a `dtype`, elements are converted to it and multiplied in it.

    Example:
      >>> jnp.prod(jnp.array([2, 3]))
      Array(6, dtype=int32)
    """
    refuse_out("prod", out)
    return accumulated(PROD, a, axis, dtype, keepdims, initial, where, promote_integers)


# ---- extremes ----------------------------------------------------------------------------------


def nothing_to_reduce(name: str, shape: Shape) -> ValueError:
    """Return the error for a reduction without identity of an array without elements."""
    return ValueError(
        f"zero-size array to reduction operation {name} which has no identity: the array has "
        f"shape {shape}. Give the value to start from as 'initial'."
    )


def extreme(
    fold: Fold,
    a: ArrayLike,
    axis: NamedAxes,
    keepdims: bool,
    initial: ArrayLike | None,
    where: ArrayLike | None,
) -> Array:
    """Return the greatest or least element over axes."""
    a, aval = operand(fold.name, a)
    axis, names = split_names(axis)
    axes = reduced_axes(axis, aval.ndim)
    if where is not None:
        check_mask(fold.name, where)
    if initial is None:
        if where is not None:
            raise ValueError(
                f"reduction operation {fold.name} does not have an identity, so to use a where "
                "mask one has to specify 'initial'"
            )
        for i in axes:
            if not aval.shape[i]:
                raise nothing_to_reduce(fold.name, aval.shape)
    folded = fold_axes(fold, convert(a, aval.dtype, False), axes, keepdims, initial, where)
    return across_names(fold, folded, names)


@operation_like(np.max, static_argnames=("axis", "keepdims"))
def max(
    a: ArrayLike,
    axis: Axes = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Return the greatest element over axes, or NaN if any element is NaN.

    Raises:
      ValueError: if there are no elements and no `initial`.

    Example:
      >>> jnp.max(jnp.array([[1, 4], [3, 2]]), axis=0)
      Array([3, 4], dtype=int32)
    """
    refuse_out("max", out)
    return extreme(MAX, a, axis, keepdims, initial, where)


@operation_like(np.min, static_argnames=("axis", "keepdims"))
def min(
    a: ArrayLike,
    axis: Axes = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Return the least element over axes, or NaN if any element is NaN.

    Raises:
      ValueError: if there are no elements and no `initial`.

    Example:
      >>> jnp.min(jnp.array([[1, 4], [3, 2]]), axis=0)
      Array([1, 2], dtype=int32)
    """
    refuse_out("min", out)
    return extreme(MIN, a, axis, keepdims, initial, where)


amax = max
amin = min


@operation(static_argnames=("axis", "keepdims"))
def minmax(
    a: ArrayLike,
    axis: Axes = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
    where: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """Return the least and the greatest element over axes, NaN for both if any element is NaN.

    The parameters are those of `min` and `max`.

    Args:
      a: an array or scalar.
      axis: the axes to reduce, or None for all of them.
      out: must be None.
      keepdims: whether reduced axes stay, with size 1.
      initial: the value that both begin with, or a pair of such values.
      where: a mask of the elements that count; `initial` is required with it.

    Returns:
      (least, greatest), of the dtype of `a`.

    Raises:
      ValueError: if there are no elements and no `initial`, or `initial` is a tuple of other than
        two values.

    Example:
      >>> jnp.minmax(jnp.array([3, 1, 2]))
      (Array(1, dtype=int32), Array(3, dtype=int32))
    """
    refuse_out("minmax", out)
    pair = initial if isinstance(initial, tuple) else (initial, initial)
    if len(pair) != 2:
        raise ValueError(
            f"initial of minmax must be one value, or a pair for minimum and maximum, got {pair}."
        )
    least = extreme(MIN._replace(name="minmax"), a, axis, keepdims, pair[0], where)
    return least, extreme(MAX._replace(name="minmax"), a, axis, keepdims, pair[1], where)


@operation_like(np.ptp, static_argnames=("axis", "keepdims"))
def ptp(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False) -> Array:
    """Return the difference of greatest and least element over axes; booleans raise TypeError.

    Example:
      >>> jnp.ptp(jnp.array([[1, 5], [2, 9]]), axis=1)
      Array([4, 7], dtype=int32)
    """
    refuse_out("ptp", out)
    a = any_operand("ptp", a)
    greatest = extreme(MAX, a, axis, keepdims, None, None)
    return elementwise.sub(greatest, extreme(MIN, a, axis, keepdims, None, None))


# ---- any, all ----------------------------------------------------------------------------------


def _logical(
    fold: Fold, a: ArrayLike, axis: NamedAxes, keepdims: bool, where: ArrayLike | None
) -> Array:
    a, aval = operand(fold.name, a)
    axis, names = split_names(axis)
    axes = reduced_axes(axis, aval.ndim)
    return across_names(fold, fold_axes(fold, as_boolean(a), axes, keepdims, None, where), names)


@operation_like(np.any, static_argnames=("axis", "keepdims"))
def any(
    a: ArrayLike,
    axis: Axes = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Return over axes whether any element is not zero.

    Example:
      >>> jnp.any(jnp.array([True, False]))
      Array(True, dtype=bool)
    """
    refuse_out("any", out)
    return _logical(ANY, a, axis, keepdims, where)


@operation_like(np.all, static_argnames=("axis", "keepdims"))
def all(
    a: ArrayLike,
    axis: Axes = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Return over axes whether all elements are not zero.

    Example:
      >>> jnp.all(jnp.array([True, False]))
      Array(False, dtype=bool)
    """
    refuse_out("all", out)
    return _logical(ALL, a, axis, keepdims, where)


@operation_like(np.count_nonzero, static_argnames=("axis", "keepdims"))
def count_nonzero(a: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Array:
    """Count the elements that are not zero, over axes.

    Example:
      >>> jnp.count_nonzero(jnp.array([[0, 1, 2], [0, 0, 3]]), axis=1)
      Array([2, 1], dtype=int32)
    """
    a, aval = operand("count_nonzero", a)
    nonzero = compare.ne(a, host_scalar(0, aval.dtype))
    return accumulated(SUM, nonzero, axis, None, keepdims)


# ---- indices of extremes -----------------------------------------------------------------------


def index_of_extreme(
    name: str, fold: Callable[..., Array], a: ArrayLike, axis: Axis, keepdims: bool | None
) -> Array:
    """Return the index of the extreme along an axis, or in the flattened array."""
    a, aval = operand(name, a)
    if axis is None:
        folded = ascending(aval.ndim)
        a, at = reshape(a, (aval.size,)), 0
        empty = not aval.size
    else:
        at = canonical_axis(axis, aval.ndim)
        folded = (at,)
        empty = not aval.shape[at]
    if empty:
        raise ValueError(
            f"attempt to get {name} of an empty sequence: the array has shape {aval.shape}"
        )
    result = fold(a, at, python_scalar_dtype(int))
    return expand_dims(result, folded) if keepdims else result


@operation_like(np.argmax, static_argnames=("axis", "keepdims"))
def argmax(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Return the index of the greatest element, or of the first NaN; None flattens the array.

    Raises:
      ValueError: if there are no elements.

    Example:
      >>> jnp.argmax(jnp.array([1, 5, 2]))
      Array(1, dtype=int32)
    """
    refuse_out("argmax", out)
    return index_of_extreme("argmax", reducing.argmax, a, axis, keepdims)


@operation_like(np.argmin, static_argnames=("axis", "keepdims"))
def argmin(
    a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Return the index of the least element, or of the first NaN; None flattens the array.

    Raises:
      ValueError: if there are no elements.

    Example:
      >>> jnp.argmin(jnp.array([3, 1, 2]))
      Array(1, dtype=int32)
    """
    refuse_out("argmin", out)
    return index_of_extreme("argmin", reducing.argmin, a, axis, keepdims)


ARRAY_METHODS: dict[str, Callable[..., Array]] = {
    "all": all,
    "any": any,
    "argmax": argmax,
    "argmin": argmin,
    "max": max,
    "min": min,
    "prod": prod,
    "ptp": ptp,
    "sum": sum,
}
