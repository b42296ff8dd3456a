"""Histograms: counts of numbers or points in bins, in one dimension or several."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np

from hlofront.base.dtypes import python_scalar_dtype, to_inexact_dtype
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.core.programs.extension import concrete_or_error
from hlofront.numpy.arrays.ranges import linspace
from hlofront.numpy.arrays.sorting import searchsorted
from hlofront.numpy.statistics.correlation import add_at
from hlofront.numpy.statistics.reductions import (
    MAX,
    MIN,
    SUM,
    as_numbers,
    extreme,
    fold_axes,
    working_dtype,
)
from hlofront.numpy.support.annotations import OutSharding
from hlofront.numpy.support.like import like
from hlofront.numpy.support.promotion import (
    choose,
    host_scalar,
    operand,
    operands,
    promote_args_inexact,
    promote_dtypes,
    promote_dtypes_inexact,
    promote_own_dtypes,
)
from hlofront.primitives.arrays import creation
from hlofront.primitives.arrays.shaping import broadcast_in_dim, expand_dims, reshape
from hlofront.primitives.arrays.slicing import concatenate, index_in_dim, slice_in_dim
from hlofront.primitives.elementwise import compare, elementwise
from hlofront.primitives.elementwise.converting import as_array_of_trace, convert
from hlofront.primitives.sharding.resharding import reshard
from hlofront.runtime.dispatch.operation import operation

# ---- limits of bins ----------------------------------------------------------------------------


def _split(bins: ArrayLike | Sequence[ArrayLike]) -> tuple[ArrayLike | None, int | None]:
    """Split `bins` into (edges, None) or (None, number of bins), by its type.

    Raises:
      NotImplementedError: if `bins` is the name of a rule.
      TypeError: if `bins` is neither an integer nor an array of one axis.
    """
    if isinstance(bins, str):
        raise NotImplementedError(  # JAX raises this class.
            f"string values for `bins` not implemented: got {bins!r}. The number of bins would "
            "depend on values; compute the limits with numpy.histogram_bin_edges."
        )
    if isinstance(bins, list | tuple):
        bins = np.asarray(bins)
    bins, aval = operand("histogram", bins)
    if aval.ndim == 1:
        return bins, None
    if aval.ndim:
        raise TypeError(
            f"bins must be an integer or an array of one axis, got an array of shape {aval.shape}"
        )
    return None, concrete_or_error(operator.index, bins, "It is the number of bins.")


def _pair(
    range: Sequence[ArrayLike] | None, what: str = "range"
) -> tuple[ArrayLike, ArrayLike] | None:
    """Return a range as (least, greatest), or None. Raise ValueError if it is not a pair."""
    if range is None:
        return None
    try:
        low, high = range
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be a pair of limits or None, got {range!r}") from None
    return low, high


def _limits(
    a: Array,
    limits: ArrayLike | None,
    count: int | None,
    range: tuple[ArrayLike, ArrayLike] | None,
    dtype: np.dtype,
) -> ArrayLike:
    """Return the bin edges, a vector of a floating-point dtype."""
    if count is None:
        return as_numbers(limits, dtype)
    if count < 1:
        raise ValueError(f"`bins` must be positive when it is an integer, got {count}")
    if range is None:
        low, high = (
            extreme(MIN, a, None, False, None, None),
            extreme(MAX, a, None, False, None, None),
        )
    else:
        low, high = range
    low, high = (as_numbers(x, dtype) for x in operands("histogram", (low, high))[0])
    # Where all numbers are equal, the bins surround that number.
    half = host_scalar(0.5, dtype)
    narrow = compare.eq(low, high)
    low = choose("histogram", narrow, elementwise.sub(low, half), low)
    high = choose("histogram", narrow, elementwise.add(high, half), high)
    return linspace(low, high, count + 1, dtype=dtype)


@operation(static_argnames=("count",))
def _bin_edges(
    a: ArrayLike,
    limits: ArrayLike | None,
    range: tuple[ArrayLike, ArrayLike] | None,
    *,
    count: int | None,
) -> ArrayLike:
    a, aval = operand("histogram_bin_edges", a)
    return as_array_of_trace(_limits(a, limits, count, range, to_inexact_dtype(aval.dtype)))


@like(np.histogram_bin_edges)
def histogram_bin_edges(
    a: ArrayLike,
    bins: ArrayLike | Sequence[ArrayLike] = 10,
    range: Sequence[ArrayLike] | None = None,
    weights: ArrayLike | None = None,
) -> Array:
    """Return the bin edges of a histogram, one more than there are bins.

    Args:
      a: the numbers that are counted.
      bins: the number of bins, or their edges.
      range: the least and the greatest limit; by default the least and the greatest number.
      weights: has no effect.

    Raises:
      NotImplementedError: for the name of a rule instead of `bins`.
      ValueError: if there are no numbers and no limits are passed.

    Example:
      >>> jnp.histogram_bin_edges(jnp.array([0, 1, 4]), bins=4)
      Array([0., 1., 2., 3., 4.], dtype=float32)
    """
    limits, count = _split(bins)
    return _bin_edges(a, limits, _pair(range), count=count)


# ---- in one dimension --------------------------------------------------------------------------


def _bin_indices(edges: ArrayLike, x: ArrayLike) -> Array:
    """Return the bin number of each element of x, counted from 1.

    The number 0 is before all bins, and the greatest one after them.
    """
    last = typeof(edges).shape[0] - 1
    edges, x = promote_dtypes(edges, x)
    bins = searchsorted(edges, x, "right")
    dtype = typeof(bins).dtype
    end = index_in_dim(edges, last, 0, keepdims=False)
    # The last bin includes its upper limit.
    at_end = compare.eq(x, broadcast_in_dim(end, typeof(x).shape, ()))
    return choose("histogram", at_end, host_scalar(last, dtype), bins)


def _widths(edges: Array) -> Array:
    size = typeof(edges).shape[0]
    return elementwise.sub(slice_in_dim(edges, 1, size), slice_in_dim(edges, 0, size - 1))


@operation(static_argnames=("count", "density"))
def _histogram(
    a: ArrayLike,
    limits: ArrayLike | None,
    range: tuple[ArrayLike, ArrayLike] | None,
    weights: ArrayLike | None,
    *,
    count: int | None,
    density: bool,
) -> tuple[Array, ArrayLike]:
    if weights is None:
        (a,) = promote_args_inexact("histogram", a)
        dtype = typeof(a).dtype
        # Half precision cannot represent large counts.
        weights = creation.full(typeof(a).shape, host_scalar(1, working_dtype(dtype)))
    else:
        (a, weights), (aval, weights_aval) = operands("histogram", (a, weights))
        if aval.shape != weights_aval.shape:
            raise ValueError(
                f"weights should have the same shape as a: got {weights_aval.shape} and "
                f"{aval.shape}."
            )
        a, weights = promote_dtypes_inexact(a, weights)
        dtype = typeof(weights).dtype
    edges = _limits(a, limits, count, range, typeof(a).dtype)
    size = typeof(edges).shape[0]
    flat = (typeof(a).size,)
    bins = _bin_indices(edges, reshape(a, flat))
    counts = slice_in_dim(add_at(size, bins, reshape(weights, flat)), 1, size)
    if density:
        total = fold_axes(SUM, counts, (0,), True, None, None)
        widths = as_numbers(_widths(edges), typeof(counts).dtype)
        total = broadcast_in_dim(total, typeof(counts).shape, (0,))
        counts = elementwise.div(elementwise.div(counts, widths), total)
    return convert(counts, dtype, False), edges


@like(np.histogram)
def histogram(
    a: ArrayLike,
    bins: ArrayLike | Sequence[ArrayLike] = 10,
    range: Sequence[ArrayLike] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
    out_sharding: OutSharding = None,
) -> tuple[Array, Array]:
    """Count the numbers in each bin, and return the counts and the bin edges.

    Args:
      a: the numbers.
      bins: the number of bins, or their limits, which ascend.
      range: the least and the greatest limit; by default the least and the greatest number.
      weights: the weight of each number, instead of 1.
      density: whether to return densities, whose integral is 1, instead of counts.
      out_sharding: how the counts are split over a mesh.

    Returns:
      (counts, limits): counts in the floating-point dtype of `a` and the weights, and one limit
      more than there are bins.

    Raises:
      ValueError: if weights have another shape, or there are no numbers to take limits from.

    Example:
      >>> jnp.histogram(jnp.array([0.0, 1.0, 1.0]), bins=2)
      (Array([1., 2.], dtype=float32), Array([0. , 0.5, 1. ], dtype=float32))
    """
    limits, count = _split(bins)
    counts, edges = _histogram(a, limits, _pair(range), weights, count=count, density=bool(density))
    return counts if out_sharding is None else reshard(counts, out_sharding), edges


# ---- in several dimensions ---------------------------------------------------------------------


@operation(static_argnames=("counts", "density"))
def _histogramdd(
    sample: ArrayLike,
    all_limits: tuple[ArrayLike | None, ...],
    ranges: tuple[tuple[ArrayLike, ArrayLike] | None, ...],
    weights: ArrayLike | None,
    *,
    counts: tuple[int | None, ...],
    density: bool,
) -> tuple[Array, list[ArrayLike]]:
    (sample,) = promote_args_inexact("histogramdd", sample)
    aval = typeof(sample)
    number = aval.shape[0]
    if weights is None:
        weights = creation.full((number,), host_scalar(1, python_scalar_dtype(int)))
    else:
        weights, weights_aval = operand("histogramdd", weights)
        if weights_aval.shape != (number,):
            raise ValueError(
                f"weights should have shape {(number,)}, one per row of the sample: got "
                f"{weights_aval.shape}"
            )
    edges = []
    flat = creation.full((number,), host_scalar(0, python_scalar_dtype(int)))
    index = typeof(flat).dtype
    shape = tuple(
        [
            (typeof(limits).shape[0] if count is None else count + 1) + 1
            for limits, count in zip(all_limits, counts, strict=True)
        ]
    )
    for axis, (limits, count, range) in enumerate(zip(all_limits, counts, ranges, strict=True)):
        column = index_in_dim(sample, axis, 1, keepdims=False)
        limits = _limits(column, limits, count, range, aval.dtype)
        edges.append(limits)
        bin_index = convert(_bin_indices(limits, column), index, False)
        flat = elementwise.add(elementwise.mul(flat, host_scalar(shape[axis], index)), bin_index)
    # Points outside all bins are counted in extra bins, which are cut off.
    result = reshape(add_at(math.prod(shape), flat, weights), shape)
    for axis, size in enumerate(shape):
        result = slice_in_dim(result, 1, size - 1, axis=axis)
    if density:
        result = _density(result, edges)
    return result, edges


def _density(counts: ArrayLike, edges: Sequence[Array]) -> Array:
    aval = typeof(counts)
    widths = [_widths(limits) for limits in edges]
    (counts, *widths) = promote_dtypes_inexact(*promote_own_dtypes(counts, *widths))
    axes = tuple(range(aval.ndim))
    total = fold_axes(SUM, counts, axes, False, None, None)
    counts = elementwise.div(counts, total)
    for axis, width in enumerate(widths):
        counts = elementwise.div(counts, broadcast_in_dim(width, aval.shape, (axis,)))
    return counts


@like(np.histogramdd)
def histogramdd(
    sample: ArrayLike,
    bins: ArrayLike | Sequence[ArrayLike | Sequence[ArrayLike]] = 10,
    range: Sequence[Sequence[ArrayLike] | None] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """Count the points in each bin of a grid, and return the counts and the bin edges.

    Args:
      sample: points, of shape (n, dimensions).
      bins: the number of bins in each dimension; or a sequence with the number of bins, or their
        limits, for each dimension.
      range: a sequence with the least and the greatest limit, or None, for each dimension.
      weights: an array of shape (n,): the weight of each point, instead of 1.
      density: whether to return densities, whose integral is 1, instead of counts.

    Returns:
      (counts, limits): an array with one axis per dimension, and a list of arrays of limits.

    Raises:
      ValueError: if the shapes do not fit.

    Example:
      >>> counts, edges = jax.eval_shape(jnp.histogramdd, jnp.ones((100, 3)))
      >>> counts.shape, [x.shape for x in edges]
      ((10, 10, 10), [(11,), (11,), (11,)])
    """
    sample, aval = operand("histogramdd", sample)
    if aval.ndim != 2:
        raise ValueError(
            "histogramdd expects points of shape (n, dimensions), got an array of shape "
            f"{aval.shape}"
        )
    dimensions = aval.shape[1]
    each = [bins] * dimensions if hasattr(bins, "__index__") and not np.ndim(bins) else list(bins)
    if len(each) != dimensions:
        raise ValueError(
            f"should be a bin for each dimension: got {len(each)} for {dimensions} dimensions."
        )
    ranges = [None] * dimensions if range is None else list(range)
    if len(ranges) != dimensions:
        raise ValueError(
            f"For sample.shape={aval.shape}, range must be a sequence of {dimensions} pairs or "
            f"Nones; got range={range}"
        )
    split = [_split(one) for one in each]
    return _histogramdd(
        sample,
        tuple([limits for limits, _ in split]),
        tuple([_pair(one) for one in ranges]),
        weights,
        counts=tuple([count for _, count in split]),
        density=bool(density),
    )


@operation
def _points(x: ArrayLike, y: ArrayLike) -> Array:
    """Return two coordinate vectors (n,) as an array of points (n, 2)."""
    (x, y), (first, second) = operands("histogram2d", (x, y))
    if first.ndim != 1 or first.shape != second.shape:
        raise TypeError(
            f"histogram2d expects one-dimensional x and y of equal size: got shapes {first.shape} "
            f"and {second.shape}."
        )
    x, y = promote_dtypes_inexact(x, y)
    return concatenate([expand_dims(x, (1,)), expand_dims(y, (1,))], 1)


@like(np.histogram2d)
def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: ArrayLike | Sequence[ArrayLike | Sequence[ArrayLike]] = 10,
    range: Sequence[Sequence[ArrayLike] | None] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """Count the points in each bin of a plane, and return the counts and the bin edges.

    Args:
      x: an array of shape (n,) of one coordinate of the points, the first axis of the result.
      y: an array of shape (n,) of the other coordinates, the second axis of the result.
      bins: the number of bins along both axes, or their limits along both; or a pair for the two.
      range: a pair with the least and the greatest limit, or None, for each.
      weights: an array of shape (n,): the weight of each point, instead of 1.
      density: whether to return densities, whose integral is 1, instead of counts.

    Returns:
      (counts, limits along x, limits along y).

    Raises:
      TypeError: if x and y differ in shape, or `bins` is a string.
      ValueError: if `bins` holds a single number or limit.

    Example:
      >>> counts, x_edges, y_edges = jnp.histogram2d(jnp.arange(4), jnp.arange(4), bins=2)
      >>> counts
      Array([[2, 0],
             [0, 2]], dtype=int32)
    """
    if isinstance(bins, str):
        raise TypeError(f"histogram2d has no rules that choose bins: got bins={bins!r}")
    size = None if hasattr(bins, "__index__") and not np.ndim(bins) else len(bins)
    if size == 1:
        raise ValueError(
            f"histogram2d expects a number of bins or limits for each of two axes: got {bins!r}"
        )
    # An array holds edges for both axes; a pair holds a number of bins, or edges, for each.
    per_axis = bins if size in (None, 2) else [bins, bins]
    counts, (across, along) = histogramdd(_points(x, y), per_axis, range, weights, density)
    return counts, across, along
