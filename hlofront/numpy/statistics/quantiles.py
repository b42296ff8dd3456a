"""Medians, quantiles and percentiles, which include or ignore NaNs."""

from __future__ import annotations

import math

import numpy as np

from hlofront.base.dtypes import is_complex, python_scalar_dtype, to_inexact_dtype
from hlofront.base.elements import host_number
from hlofront.base.typing import Array, ArrayLike, Axes
from hlofront.core.aval import typeof
from hlofront.higher_order.shard_map.axis_types import with_sharding
from hlofront.numpy.statistics.reductions import (
    SUM,
    as_numbers,
    fold_axes,
    reduced_axes,
    working_dtype,
)
from hlofront.numpy.support.annotations import OutSharding
from hlofront.numpy.support.like import operation_like
from hlofront.numpy.support.promotion import (
    broadcast_together,
    choose,
    host_scalar,
    joint_dtype,
    operands,
)
from hlofront.primitives.arrays import creation, sorting
from hlofront.primitives.arrays.cumulative import cumsum
from hlofront.primitives.arrays.gathering import GatherDimensionNumbers, GatherScatterMode, gather
from hlofront.primitives.arrays.reducing import argmax, reduce_or
from hlofront.primitives.arrays.shaping import (
    broadcast_in_dim,
    expand_dims,
    reshape,
    rev,
    transpose,
)
from hlofront.primitives.arrays.slicing import index_in_dim
from hlofront.primitives.elementwise import compare, elementwise
from hlofront.primitives.elementwise.converting import convert

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


def _check(
    name: str, out: None, overwrite_input: bool, method: str, weights: ArrayLike | None
) -> None:
    if out is not None or overwrite_input:
        raise ValueError(
            f"jax.numpy.{name} does not support overwrite_input=True or out != None: arrays are "
            "immutable. Use the result that it returns."
        )
    if method not in _METHODS:
        raise ValueError(
            "method can only be 'linear', 'lower', 'higher', 'midpoint', 'nearest' or "
            f"'inverted_cdf', got {method!r}"
        )
    if weights is not None and method != "inverted_cdf":
        raise NotImplementedError(  # JAX raises this class.
            f"{method} doesn't support weights. Only method 'inverted_cdf' supports weights."
        )


def _rows(x: ArrayLike, axes: tuple[int, ...]) -> Array:
    """Reshape an array to rows: the reduced axes form the last axis, all others the first."""
    shape = typeof(x).shape
    kept_axes = [i for i in range(len(shape)) if i not in axes]
    x = transpose(x, (*kept_axes, *axes))
    count = math.prod([shape[i] for i in axes])
    return reshape(x, (math.prod([shape[i] for i in kept_axes]), count))


def _take(rows: Array, indices: Array) -> Array:
    """Return the elements of each of n rows at its k indices.

    Indices and result have shape (k, n).
    """
    return gather(
        rows,
        expand_dims(indices, (2,)),
        GatherDimensionNumbers(
            offset_dims=(),
            collapsed_slice_dims=(1,),
            start_index_map=(1,),
            operand_batching_dims=(0,),
            start_indices_batching_dims=(1,),
        ),
        (1, 1),
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
    )


def _quantile(
    name: str,
    a: ArrayLike,
    q: ArrayLike,
    axis: Axes,
    method: str,
    keepdims: bool,
    weights: ArrayLike | None,
    skip_nan: bool,
    percent: bool = False,
) -> Array:
    (a, q), (aval, which) = operands(name, (a, q))
    if is_complex(aval.dtype):
        raise ValueError(
            "quantile does not support complex input, as the operation is poorly defined: got "
            f"{aval.str_short()}."
        )
    if is_complex(which.dtype):
        raise TypeError(f"{name}: q must be real numbers, got dtype {which.dtype}")
    if which.ndim > 1:
        raise ValueError(f"q must be have rank <= 1, got shape {which.shape}")
    dtype = to_inexact_dtype(aval.dtype)
    # Fractional positions in a row need more bits than half precision has. They are
    # not promoted with the elements, so their dtype may differ.
    working = to_inexact_dtype(joint_dtype((dtype, False), (which.dtype, which.weak_type)))
    working = working_dtype(working)
    q = as_numbers(q, working)
    if percent:
        q = elementwise.div(q, host_scalar(100, working))
    axes = reduced_axes(axis, aval.ndim)
    rows = _rows(as_numbers(a, dtype), axes)
    if not typeof(rows).shape[1]:
        raise ValueError(f"{name} of no elements: got shape {aval.shape} and axis {axis}")
    q = reshape(q, (which.size,))
    if weights is None:
        result = _ranked(rows, q, method, skip_nan, working)
    else:
        result = _weighted(rows, q, _weight_rows(weights, aval.shape, axes), skip_nan, working)
    sizes = [1 if i in axes else size for i, size in enumerate(aval.shape)]
    if not keepdims:
        sizes = [size for i, size in enumerate(sizes) if i not in axes]
    return convert(reshape(result, (*which.shape, *sizes)), dtype, False)


def _ranked(rows: ArrayLike, q: Array, method: str, skip_nan: bool, working: np.dtype) -> Array:
    """Return quantiles (q.size, rows) of unweighted rows (rows, size)."""
    count, size = typeof(rows).shape
    numbers = None
    if skip_nan:
        is_number = as_numbers(compare.eq(rows, rows), working)
        numbers = fold_axes(SUM, is_number, (1,), False, None, None)
    # NaNs sort last.
    (rows,) = sorting.sort((rows,), 1)
    shape = (typeof(q).size, count)
    q = broadcast_in_dim(q, shape, (0,))
    if numbers is None:
        numbers = creation.full(shape, host_number(size, working))
    else:
        numbers = broadcast_in_dim(numbers, shape, (1,))
    zero, one = host_scalar(0, working), host_scalar(1, working)
    last = elementwise.sub(numbers, one)
    if method == "inverted_cdf":
        position = elementwise.sub(elementwise.ceil(elementwise.mul(q, numbers)), one)
    else:
        position = elementwise.mul(q, last)
    # A row of NaNs has no last number; its first NaN is taken.
    last = elementwise.max(last, zero)
    position = elementwise.clamp(zero, position, last)
    low, high = elementwise.floor(position), elementwise.ceil(position)
    share = elementwise.sub(position, low)
    if method == "nearest":
        # Halfway between two elements, the lower one is chosen.
        position = elementwise.ceil(elementwise.sub(position, host_scalar(0.5, working)))
    elif method in ("lower", "higher"):
        position = low if method == "lower" else high
    if method in ("lower", "higher", "nearest", "inverted_cdf"):
        result = _take(rows, _index(position))
    else:
        below, above = (as_numbers(_take(rows, _index(x)), working) for x in (low, high))
        result = _between(
            below, above, host_scalar(0.5, working) if method == "midpoint" else share
        )
    if skip_nan:
        return result
    # If a row has NaNs, its last element is NaN, and so is the result.
    greatest = broadcast_in_dim(index_in_dim(rows, size - 1, 1, keepdims=False), shape, (1,))
    nan = host_scalar(np.nan, typeof(result).dtype)
    return choose("quantile", compare.eq(greatest, greatest), result, nan)


def _index(position: Array) -> Array:
    return convert(position, python_scalar_dtype(int), False)


def _between(below: Array, above: Array, share: ArrayLike) -> Array:
    """Interpolate between numbers, and return an infinity where both are that infinity."""
    step = elementwise.mul(*broadcast_together("quantile", elementwise.sub(above, below), share))
    return compare.select_n(compare.eq(below, above), elementwise.add(below, step), below)


def _weight_rows(weights: ArrayLike, shape: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    """Return weights broadcast to `shape`, with the reduced axes reshaped to rows."""
    weights_shape = typeof(weights).shape
    if weights_shape != shape:
        if weights_shape != tuple([shape[i] for i in axes]):
            raise ValueError(
                "Shape of weights must be that of the array, or its shape along axis: got weights "
                f"of shape {weights_shape} for an array of shape {shape} and axes {axes}."
            )
        order = sorted(axes)
        weights = transpose(weights, tuple(map(axes.index, order)))
        weights = broadcast_in_dim(weights, shape, order)
    return _rows(weights, axes)


def _weighted(
    rows: ArrayLike, q: Array, weights: ArrayLike, skip_nan: bool, working: np.dtype
) -> Array:
    """Return the first element of each row at which cumulative weights reach the fraction q."""
    count, size = typeof(rows).shape
    zero = host_scalar(0, working)
    weights = as_numbers(weights, working)
    missing = compare.ne(rows, rows)
    if skip_nan:
        weights = choose("quantile", missing, zero, weights)
    rows, weights = sorting.sort((rows, weights), 1)
    running = cumsum(weights, 1)
    total = index_in_dim(running, size - 1, 1)
    shape = (typeof(q).size, count, size)
    share = broadcast_in_dim(
        elementwise.div(running, broadcast_in_dim(total, (count, size), (0, 1))), shape, (1, 2)
    )
    # Leading elements of zero weight are never chosen.
    reached = elementwise.bitwise_and(
        compare.ge(share, broadcast_in_dim(q, shape, (0,))),
        compare.gt(share, creation.full(shape, zero)),
    )
    # The last weighted element completes the sum, even if rounding makes it slightly less.
    some = compare.gt(weights, creation.full((count, size), zero))
    index = python_scalar_dtype(int)
    from_end = argmax(rev(some, (1,)), 1, index)
    last = elementwise.sub(host_scalar(size - 1, index), from_end)
    columns = creation.broadcasted_iota(index, (count, size), 1)
    is_last = compare.eq(columns, broadcast_in_dim(last, (count, size), (0,)))
    reached = elementwise.bitwise_or(reached, broadcast_in_dim(is_last, shape, (1, 2)))
    result = _take(rows, argmax(reached, 2, python_scalar_dtype(int)))
    if skip_nan:
        return result
    has_nan = broadcast_in_dim(reduce_or(missing, (1,)), shape[:2], (1,))
    return choose("quantile", has_nan, host_scalar(np.nan, typeof(rows).dtype), result)


_STATIC = ("axis", "overwrite_input", "method", "keepdims")


@operation_like(np.quantile, static_argnames=_STATIC)
def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axes = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Compute quantiles over axes: the values that a fraction q of the elements do not exceed.

    The result is NaN where an element is NaN.

    Args:
      a: an array of real numbers.
      q: a fraction from 0 to 1, or an array of them; its axis comes first in the result.
      axis: an axis or several; all of them by default.
      out: must be None.
      overwrite_input: must be False.
      method: the interpolation between two elements: "linear", "lower", "higher", "midpoint",
        "nearest" or "inverted_cdf".
      keepdims: whether the reduced axes remain, with size 1.
      weights: the weight of each element, in the shape of `a` or in its shape along `axis`; only
        for "inverted_cdf".

    Raises:
      ValueError: for another method, complex numbers, no elements, or q of several axes.

    Example:
      >>> jnp.quantile(jnp.array([1.0, 2.0, 3.0]), 0.25)
      Array(1.5, dtype=float32)
    """
    _check("quantile", out, overwrite_input, method, weights)
    return _quantile("quantile", a, q, axis, method, keepdims, weights, False)


@operation_like(np.nanquantile, static_argnames=_STATIC)
def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axes = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Compute quantiles over axes, ignoring NaNs.

    Args:
      a: an array of real numbers.
      q: a fraction from 0 to 1, or an array of them; its axis comes first in the result.
      axis: an axis or several; all of them by default.
      out: must be None.
      overwrite_input: must be False.
      method: the interpolation between two elements: "linear", "lower", "higher", "midpoint",
        "nearest" or "inverted_cdf".
      keepdims: whether the reduced axes remain, with size 1.
      weights: the weight of each element, in the shape of `a` or in its shape along `axis`; only
        for "inverted_cdf".

    Raises:
      ValueError: for another method, complex numbers, no elements, or q of several axes.

    Example:
      >>> jnp.nanquantile(jnp.array([1, jnp.nan, 3, 7]), jnp.array([0, 0.5, 1]))
      Array([1., 3., 7.], dtype=float32)
    """
    _check("quantile", out, overwrite_input, method, weights)
    return _quantile("nanquantile", a, q, axis, method, keepdims, weights, True)


@operation_like(np.percentile, static_argnames=(*_STATIC, "out_sharding"))
def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axes = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Compute percentiles over axes, the quantiles at q percent; NaN where an element is NaN.

    Args:
      a: an array of real numbers.
      q: a percentage from 0 to 100, or an array of them; its axis comes first in the result.
      axis: an axis or several; all of them by default.
      out: must be None.
      overwrite_input: must be False.
      method: the interpolation between two elements: "linear", "lower", "higher", "midpoint",
        "nearest" or "inverted_cdf".
      keepdims: whether the reduced axes remain, with size 1.
      weights: the weight of each element, in the shape of `a` or in its shape along `axis`; only
        for "inverted_cdf".
      out_sharding: how the result is split over a mesh.

    Raises:
      ValueError: for another method, complex numbers, no elements, or q of several axes.

    Example:
      >>> jnp.percentile(jnp.array([1.0, 2.0, 3.0]), 75)
      Array(2.5, dtype=float32)
    """
    _check("quantile", out, overwrite_input, method, weights)
    operands = (a, q) if weights is None else (a, q, weights)

    def compute(a: ArrayLike, q: ArrayLike, weights: ArrayLike | None = None) -> Array:
        return _quantile("percentile", a, q, axis, method, keepdims, weights, False, True)

    return with_sharding("percentile", compute, operands, out_sharding)


@operation_like(np.nanpercentile, static_argnames=_STATIC)
def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axes = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Compute percentiles over axes, ignoring NaNs: quantiles at q percent.

    Args:
      a: an array of real numbers.
      q: a percentage from 0 to 100, or an array of them; its axis comes first in the result.
      axis: an axis or several; all of them by default.
      out: must be None.
      overwrite_input: must be False.
      method: the interpolation between two elements: "linear", "lower", "higher", "midpoint",
        "nearest" or "inverted_cdf".
      keepdims: whether the reduced axes remain, with size 1.
      weights: the weight of each element, in the shape of `a` or in its shape along `axis`; only
        for "inverted_cdf".

    Raises:
      ValueError: for another method, complex numbers, no elements, or q of several axes.

    Example:
      >>> jnp.nanpercentile(jnp.array([1, jnp.nan, 3, 7]), 50)
      Array(3., dtype=float32)
    """
    _check("quantile", out, overwrite_input, method, weights)
    return _quantile("nanpercentile", a, q, axis, method, keepdims, weights, True, True)


@operation_like(np.median, static_argnames=("axis", "overwrite_input", "keepdims"))
def median(
    a: ArrayLike,
    axis: Axes = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """Compute the median over axes, the middle element or the mean of two; NaN where one is NaN.

    Example:
      >>> jnp.median(jnp.array([3.0, 1.0, 2.0]))
      Array(2., dtype=float32)
    """
    _check("quantile", out, overwrite_input, "midpoint", None)
    return _quantile("median", a, 0.5, axis, "midpoint", keepdims, None, False)


@operation_like(np.nanmedian, static_argnames=("axis", "overwrite_input", "keepdims"))
def nanmedian(
    a: ArrayLike,
    axis: Axes = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """Compute the median over axes, ignoring NaNs; it is NaN if all elements are NaN.

    Example:
      >>> jnp.nanmedian(jnp.array([1, jnp.nan, 3, 7]))
      Array(3., dtype=float32)
    """
    _check("quantile", out, overwrite_input, "midpoint", None)
    return _quantile("nanmedian", a, 0.5, axis, "midpoint", keepdims, None, True)
