"""The most common value, ranks, and the standard error of the mean."""

from __future__ import annotations

import math

import numpy as np

import hlofront.numpy as jnp
from hlofront.base.choices import check_choice
from hlofront.base.dtypes import issubdtype, python_scalar_dtype
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.numpy.support.promotion import check_arraylike, promote_args_inexact
from hlofront.runtime.dispatch.operation import operation


class ModeResult(NamedTuple):
    """The most common value and its count, the result of `mode`."""

    mode: Array
    count: Array  # pyright: ignore[reportIncompatibleMethodOverride]  # It is SciPy's name.


def _check_policy(name: str, policy: str) -> None:
    check_choice(name, "nan_policy", policy, ("propagate", "omit", "raise"))
    if policy != "propagate":
        raise NotImplementedError(  # JAX raises this class.
            f"Logic for `nan_policy` of {policy} is not implemented: leave out NaNs before, as in "
            "x[~jnp.isnan(x)]."
        )


def _flattened(a: ArrayLike, axis: int | None) -> tuple[Array, int]:
    """Return an array of at least one axis, and the axis to reduce; None flattens the array."""
    a = jnp.asarray(a)
    if axis is None or not typeof(a).ndim:
        if axis is not None:
            canonical_axis(axis, 1)
        return a.reshape(-1), 0
    return a, canonical_axis(axis, typeof(a).ndim)


def _runs(rows: Array) -> tuple[Array, Array, Array]:
    """Return for elements of sorted rows whether they start a run, their run's start and number."""
    first = jnp.ones_like(rows[..., :1], dtype=bool)
    begins = jnp.concatenate([first, rows[..., 1:] != rows[..., :-1]], axis=-1)
    positions = jnp.arange(typeof(rows).shape[-1])
    start = jnp.maximum.accumulate(jnp.where(begins, positions, 0), axis=-1)
    return begins, start, jnp.cumsum(begins, axis=-1)


def mode(
    a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> ModeResult:
    """Return the most common value along an axis, the smallest if several tie, and its count.

    Args:
      a: an array. NaNs are equal to each other, and greater than numbers.
      axis: an axis, or None for all elements.
      nan_policy: must be "propagate".
      keepdims: whether the axis stays, with size 1.

    Returns:
      A named tuple (mode, count).

    Raises:
      ValueError: if there is no such axis, or the policy is unknown.
      NotImplementedError: if the policy is known to SciPy and not supported here.
    """
    check_arraylike("mode", a)
    _check_policy("mode", nan_policy)
    value, count = _mode(a, axis=axis, keepdims=keepdims)
    return ModeResult(value, count)


@operation(static_argnames=("axis", "keepdims"))
def _mode(a: ArrayLike, *, axis: int | None, keepdims: bool) -> tuple[Array, Array]:
    shape = typeof(a).shape
    a, position = _flattened(a, axis)
    size = typeof(a).shape[position]
    if size:
        rows = jnp.sort(jnp.moveaxis(a, position, -1), axis=-1)
        # NaNs, which sort last, count as one value.
        positions = jnp.arange(size)
        same = rows[..., 1:] == rows[..., :-1]
        if issubdtype(typeof(rows).dtype, np.inexact):
            same = same | jnp.isnan(rows[..., :-1])
        first = jnp.ones_like(rows[..., :1], dtype=bool)
        begins = jnp.concatenate([first, ~same], axis=-1)
        start = jnp.maximum.accumulate(jnp.where(begins, positions, 0), axis=-1)
        lengths = positions.reshape((1,) * (typeof(start).ndim - 1) + (-1,)) - start + 1
        best = jnp.argmax(lengths, axis=-1, keepdims=True)
        value = jnp.take_along_axis(rows, best, axis=-1)[..., 0]
        count = jnp.take_along_axis(lengths, best, axis=-1)[..., 0]
    else:
        (a,) = promote_args_inexact("mode", a)
        other_sizes = typeof(a).shape[:position] + typeof(a).shape[position + 1 :]
        value = jnp.full(other_sizes, jnp.nan, typeof(a).dtype)
        count = jnp.zeros(other_sizes, typeof(a).dtype)
    if keepdims:
        reduced = (1,) * len(shape)
        if axis is not None and shape:
            reduced = tuple(1 if i == position else n for i, n in enumerate(shape))
        value, count = value.reshape(reduced), count.reshape(reduced)
    return value, count


def rankdata(
    a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate"
) -> Array:
    """Return the ranks of elements, counted from 1, as floats.

    Args:
      a: an array. If any element is NaN, all ranks are NaN.
      method: the rank of equal elements: the "average" of their ranks, the "min" or "max" of them,
        ranks without gaps ("dense"), or distinct ranks in order ("ordinal").
      axis: an axis to rank along; None for all elements, flattened.
      nan_policy: must be "propagate".

    Raises:
      ValueError: if there is no such axis, method or policy.
      NotImplementedError: if the policy is known to SciPy and not supported here.
    """
    check_arraylike("rankdata", a)
    _check_policy("rankdata", nan_policy)
    check_choice("rankdata", "method", method, ("average", "min", "max", "dense", "ordinal"))
    return _rankdata(a, method=method, axis=axis)


@operation(static_argnames=("method", "axis"))
def _rankdata(a: ArrayLike, *, method: str, axis: int | None) -> Array:
    a, position = _flattened(a, axis)
    dtype = python_scalar_dtype(float)
    rows = jnp.moveaxis(a, position, -1)
    size = typeof(rows).shape[-1]
    if not size:
        return jnp.asarray(a, dtype)
    order = jnp.argsort(rows, axis=-1, stable=True)
    inverse = jnp.argsort(order, axis=-1)
    if method == "ordinal":
        ranks = jnp.asarray(inverse + 1, dtype)
    else:
        ordered = jnp.take_along_axis(rows, order, axis=-1)
        _, start, number = _runs(ordered)
        if method == "dense":
            of_runs = jnp.asarray(number, dtype)
        else:
            # Counted backwards, the last index of a run is one before the first of the next run.
            _, behind, _ = _runs(jnp.flip(ordered, axis=-1))
            end = size - 1 - jnp.flip(behind, axis=-1)
            least, greatest = (jnp.asarray(index + 1, dtype) for index in (start, end))
            choices = {"min": least, "max": greatest, "average": (least + greatest) / 2}
            of_runs = choices[method]
        ranks = jnp.take_along_axis(of_runs, inverse, axis=-1)
    undefined = jnp.any(jnp.not_equal(rows, rows), axis=-1, keepdims=True)
    return jnp.moveaxis(jnp.where(undefined, jnp.nan, ranks), -1, position)


def sem(
    a: ArrayLike,
    axis: int | None = 0,
    ddof: int = 1,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Array:
    """Compute the standard error of the mean: the standard deviation over sqrt(element count).

    Args:
      a: an array.
      axis: an axis, or None for all elements.
      ddof: the number subtracted from the number of elements to get the divisor of the sum of
        squares.
      nan_policy: "propagate", or "omit" to leave NaNs out.
      keepdims: whether the axis stays, with size 1.

    Raises:
      ValueError: if there is no such axis, or the policy is none of these.
    """
    check_arraylike("sem", a)
    check_choice("sem", "nan_policy", nan_policy, ("propagate", "omit"))
    return _sem(a, axis=axis, ddof=ddof, omit=nan_policy == "omit", keepdims=keepdims)


@operation(static_argnames=("axis", "ddof", "omit", "keepdims"))
def _sem(a: ArrayLike, *, axis: int | None, ddof: int, omit: bool, keepdims: bool) -> Array:
    (a,) = promote_args_inexact("sem", a)
    a = jnp.asarray(a)
    if omit:
        count = jnp.sum(~jnp.isnan(a), axis=axis, keepdims=keepdims)
        deviation = jnp.nanstd(a, axis=axis, ddof=ddof, keepdims=keepdims)
        return deviation / jnp.sqrt(jnp.asarray(count, typeof(deviation).dtype))
    shape = typeof(a).shape
    count = math.prod(shape) if axis is None else shape[canonical_axis(axis, len(shape))]
    deviation = jnp.std(a, axis=axis, ddof=ddof, keepdims=keepdims)
    return deviation / jnp.sqrt(jnp.asarray(count, typeof(deviation).dtype))
