"""Differences of neighbors, gradients, interpolation, and integrals by trapezoids."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np

from hlofront.base.dtypes import finfo, is_complex, issubdtype
from hlofront.base.elements import bool_
from hlofront.base.typing import Array, ArrayLike, Axes
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.sizes.dimensions import canonical_axes, canonical_axis
from hlofront.numpy.arrays.sorting import searchsorted
from hlofront.numpy.elementwise.bitwise import bitwise_and
from hlofront.numpy.elementwise.division import floor_divide, remainder
from hlofront.numpy.elementwise.logic import equal, greater, less
from hlofront.numpy.elementwise.ufuncs import (
    absolute,
    add,
    divide,
    multiply,
    scalar_like,
    subtract,
)
from hlofront.numpy.indexing.selecting import where
from hlofront.numpy.indexing.taking import flattened
from hlofront.numpy.statistics.cumulative import cumsum
from hlofront.numpy.statistics.reductions import SUM, accumulated
from hlofront.numpy.support.like import like, operation_like
from hlofront.numpy.support.promotion import (
    broadcast_together,
    check_arraylike,
    choose,
    host_scalar,
    operand,
    operands,
    promote_dtypes,
    promote_dtypes_inexact,
    with_rank,
    with_shape,
)
from hlofront.primitives.arrays.gathering import GatherDimensionNumbers, GatherScatterMode, gather
from hlofront.primitives.arrays.shaping import expand_dims, transpose
from hlofront.primitives.arrays.slicing import concatenate, index_in_dim, slice_in_dim
from hlofront.primitives.arrays.sorting import sort_key_val
from hlofront.primitives.elementwise import compare, elementwise
from hlofront.primitives.elementwise.converting import as_array_of_trace, convert
from hlofront.primitives.elementwise.weak_types import strong_cotangents
from hlofront.runtime.dispatch.operation import operation

# ---- differences of neighbors ------------------------------------------------------------------


def _later_less_earlier(a: ArrayLike, axis: int) -> Array:
    """Return x[i + 1] - x[i] along an axis; for booleans, return whether neighbors differ."""
    aval = typeof(a)
    size = aval.shape[axis]
    later = slice_in_dim(a, min(1, size), size, axis=axis)
    earlier = slice_in_dim(a, 0, max(size - 1, 0), axis=axis)
    return (compare.ne if aval.dtype == bool_ else elementwise.sub)(later, earlier)


def _as_slab(x: ArrayLike, shape: tuple[int, ...], axis: int) -> Array:
    """Return a value to prepend or append along an axis, broadcast to size 1 if a scalar.

    A scalar becomes one element along the axis.
    """
    if typeof(x).shape:
        return x
    return with_shape(x, (), (*shape[:axis], 1, *shape[axis + 1 :]))


@operation_like(np.diff, static_argnames=("n", "axis"))
def diff(
    a: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Array:
    """Compute the n-th differences of neighbors, x[i + 1] - x[i], along an axis.

    Args:
      a: an array; for booleans, the result says whether neighbors differ.
      n: the order of the differences, a Python integer; each order makes the axis shorter by one.
      axis: the axis.
      prepend: a scalar, or an array of any size along the axis, to prepend first.
      append: a scalar, or an array of any size along the axis, to append first.

    Raises:
      TypeError: if n is not an integer, or `prepend` or `append` does not fit.
      ValueError: if n is negative, the array has no axes, or not this one.

    Example:
      >>> jnp.diff(jnp.array([1, 4, 9]))
      Array([3, 5], dtype=int32)
    """
    parts = [x for x in (prepend, a, append) if x is not None]
    check_arraylike("diff", a, *parts)
    n = operator.index(n)
    if n == 0:
        return as_array_of_trace(a)
    if n < 0:
        raise ValueError(f"diff: the order n must be non-negative but got {n}")
    a, aval = operand("diff", a)
    if not aval.ndim:
        raise ValueError("diff requires input that is at least one dimensional, got a scalar")
    axis = canonical_axis(axis, aval.ndim)
    if prepend is not None or append is not None:
        parts = [_as_slab(x, aval.shape, axis) for x in operands("diff", tuple(parts))[0]]
        a = concatenate(promote_dtypes(*parts), axis)
    for _ in range(n):
        a = _later_less_earlier(a, axis)
    return a


@operation_like(np.ediff1d)
def ediff1d(
    ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
) -> Array:
    """Compute the differences of neighbors in the flattened array.

    Args:
      ary: an array of numbers.
      to_end: numbers to append to the differences, in the dtype of `ary`.
      to_begin: numbers to prepend to the differences, in the dtype of `ary`.

    Raises:
      TypeError: for booleans; use `diff`, which compares them.

    Example:
      >>> jnp.ediff1d(jnp.array([[1, 4], [9, 16]]), to_begin=0)
      Array([0, 3, 5, 7], dtype=int32)
    """
    ends = [x for x in (to_begin, to_end) if x is not None]
    check_arraylike("ediff1d", ary, *ends)
    ary, aval = operand("ediff1d", ary)
    flat = flattened(ary)
    size = aval.size
    later = slice_in_dim(flat, min(1, size), size)
    result = elementwise.sub(later, slice_in_dim(flat, 0, max(size - 1, 0)))
    parts = [
        result
        if part is result
        else flattened(convert(operand("ediff1d", part)[0], aval.dtype, False))
        for part in (to_begin, result, to_end)
        if part is not None
    ]
    return concatenate(parts, 0) if ends else result


# ---- slopes ------------------------------------------------------------------------------------


def _check_spacing(step: ArrayLike, size: int) -> None:
    shape = typeof(step).shape
    if len(shape) > 1:
        raise ValueError(
            "gradient: spacing must be a scalar or an array of one axis, the coordinates: got "
            f"shape {shape}"
        )
    if shape and shape[0] != size:
        raise ValueError(
            "gradient: spacing arrays must have the same length as the dimension along which the "
            f"gradient is calculated: got {shape[0]} coordinates for {size} elements"
        )


def _scalar_of(aval: ShapedArray, value: float) -> ArrayLike:
    """Return a scalar of the dtype of an aval, weak where the aval is."""
    return host_scalar(value, aval.dtype, aval.weak_type)


def _slopes(f: Array, step: ArrayLike, axis: int) -> Array:
    """Compute central differences of f along an axis, and one-sided ones at both ends."""
    size = typeof(f).shape[axis]
    if size < 2:
        raise ValueError(
            "gradient: at least 2 elements are required along each axis, and axis "
            f"{axis} has {size}"
        )
    _check_spacing(step, size)
    ndim = typeof(f).ndim

    def part(start: int, stop: int) -> Array:
        return slice_in_dim(f, start, stop, axis=axis)

    first = elementwise.sub(part(1, 2), part(0, 1))
    last = elementwise.sub(part(size - 1, size), part(size - 2, size - 1))
    if not typeof(step).ndim:
        inside = elementwise.sub(part(2, size), part(0, size - 2))
        inside = elementwise.mul(inside, _scalar_of(typeof(inside), 0.5))
        slopes = [elementwise.div(x, step) for x in (first, inside, last)]
        return concatenate(slopes, axis)

    steps = elementwise.sub(slice_in_dim(step, 1, size), slice_in_dim(step, 0, size - 1))
    # The steps are shaped along their own axis, so that they broadcast with slices of f.
    other_axes = tuple([i for i in range(ndim) if i != axis])
    before = slice_in_dim(steps, 0, size - 2)
    after = slice_in_dim(steps, 1, size - 1)
    both = elementwise.add(before, after)
    # The weights of a point and its neighbors in the slope of the parabola through them.
    weights = (
        elementwise.div(elementwise.neg(after), elementwise.mul(before, both)),
        elementwise.div(elementwise.sub(after, before), elementwise.mul(before, after)),
        elementwise.div(before, elementwise.mul(after, both)),
    )
    inside = None
    for start, weight in enumerate(weights):
        values = part(start, start + size - 2)
        term = elementwise.mul(
            *broadcast_together("gradient", expand_dims(weight, other_axes), values)
        )
        inside = term if inside is None else elementwise.add(inside, term)
    gaps = [index_in_dim(steps, i, 0, keepdims=False) for i in (0, size - 2)]
    return concatenate(
        [elementwise.div(first, gaps[0]), inside, elementwise.div(last, gaps[1])], axis
    )


@operation(static_argnames=("axis",))
def _gradient(f: ArrayLike, steps: Sequence[ArrayLike], *, axis: Axes) -> Array | list[Array]:
    check_arraylike("gradient", f, *steps)
    f, *steps = promote_dtypes_inexact(*operands("gradient", (f, *steps))[0])
    ndim = typeof(f).ndim
    if axis is None:
        axes: Sequence[int] = range(ndim)
    elif isinstance(axis, tuple):
        axes = canonical_axes(axis, ndim)
    else:
        axes = (canonical_axis(axis, ndim),)
    if not steps:
        steps = [_scalar_of(typeof(f), 1)]
    if len(steps) == 1:
        steps = [*steps] * len(axes)
    elif len(steps) != len(axes):
        raise TypeError(
            f"gradient: got {len(steps)} spacing arguments for {len(axes)} axes: give none, one "
            "for all axes, or one for each"
        )
    slopes = [_slopes(f, step, i) for step, i in zip(steps, axes, strict=True)]
    return slopes[0] if len(slopes) == 1 else slopes


@like(np.gradient)
def gradient(
    f: ArrayLike, *varargs: ArrayLike, axis: Axes = None, edge_order: int | None = None
) -> Array | list[Array]:
    """Compute the gradient along axes: central differences, and one-sided ones at both ends.

    Args:
      f: values, at least two along each axis of the gradient.
      varargs: the spacing of f: nothing for 1, one scalar for all axes, or for each axis a
        scalar or its coordinates, an array of one axis.
      axis: an axis, several, or None for all.
      edge_order: must be None.

    Returns:
      An array of the shape of `f` for one axis; for another number of axes, a list of such arrays.

    Raises:
      ValueError: for too few values, or coordinates that do not fit them.
      TypeError: for another number of spacings.
      NotImplementedError: for an edge_order.

    Example:
      >>> jnp.gradient(jnp.array([1.0, 4.0, 9.0]))
      Array([3., 4., 5.], dtype=float32)
    """
    if edge_order is not None:
        raise NotImplementedError(  # JAX raises this class.
            f"gradient has no edge_order, got {edge_order!r}: slopes at both ends are one-sided "
            "differences."
        )
    return _gradient(f, varargs, axis=tuple(axis) if isinstance(axis, list) else axis)


# ---- lines between points ----------------------------------------------------------------------

_ROWS = GatherDimensionNumbers((), (0,), (0,))


def _at(values: ArrayLike, index: Array) -> Array:
    """Gather elements of a vector at indices, which must be in bounds."""
    return gather(
        values,
        expand_dims(index, (typeof(index).ndim,)),
        _ROWS,
        (1,),
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
    )


def _wrapped_points(
    x: Array, xp: Array, fp: Array, period: ArrayLike
) -> tuple[Array, Array, Array]:
    """Return points sorted within one period, with one more at each end."""
    period, aval = operand("interp", period)
    if aval.ndim:
        raise ValueError(f"interp: period must be a scalar; got an array of shape {aval.shape}")
    period = elementwise.abs(period)
    x, xp = remainder(x, period), remainder(xp, period)
    xp, fp = sort_key_val(xp, fp, 0)
    size = typeof(xp).shape[0]
    before = subtract(slice_in_dim(xp, size - 1, size), period)
    behind = add(slice_in_dim(xp, 0, 1), period)
    xp = concatenate([before, xp, behind], 0)
    fp = concatenate([slice_in_dim(fp, size - 1, size), fp, slice_in_dim(fp, 0, 1)], 0)
    return x, xp, fp


@operation(static_argnames=("extrapolated",))
def _interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | None,
    right: ArrayLike | None,
    period: ArrayLike | None,
    *,
    extrapolated: tuple[bool, bool],
) -> Array:
    check_arraylike("interp", x, xp, fp)
    (x, xp, fp), (_, xp_aval, values) = operands("interp", (x, xp, fp))
    if xp_aval.ndim != 1 or xp_aval.shape != values.shape:
        raise ValueError(
            "interp: xp and fp must be arrays of one axis and one size, got shapes "
            f"{xp_aval.shape} and {values.shape}"
        )
    x, xp = promote_dtypes_inexact(x, xp)
    if is_complex(typeof(x).dtype):
        raise ValueError("interp: x and xp must be real, and are complex. Values fp may be.")
    (fp,) = promote_dtypes_inexact(fp)
    if not xp_aval.size:
        raise TypeError("interp: there are no points xp to interpolate between")
    if period is not None:
        x, xp, fp = _wrapped_points(x, strong_cotangents(xp), fp, period)
    size = typeof(xp).shape[0]
    above = searchsorted(xp, x, "right")
    index = typeof(above).dtype
    above = elementwise.clamp(
        host_scalar(min(1, size - 1), index), above, host_scalar(size - 1, index)
    )
    if size > 1:
        previous = elementwise.sub(above, host_scalar(1, index))
    else:
        previous = above
    height, start = _at(fp, above), _at(fp, previous)
    rise = elementwise.sub(height, start)
    base = _at(xp, previous)
    run = elementwise.sub(_at(xp, above), base)
    # Where two points coincide, neither their slope nor its derivative may be NaN.
    dtype = typeof(run).dtype
    least = host_scalar(float(finfo(dtype).eps) ** 2, dtype)
    steep = compare.le(elementwise.abs(run), least)
    fraction = elementwise.div(subtract(x, base), choose("interp", steep, 1, run))
    result = add(start, multiply(fraction, rise))
    result = choose("interp", steep, start, result)
    if period is None:
        for value, at, beyond, keep in (
            (left, 0, compare.lt, extrapolated[0]),
            (right, size - 1, compare.gt, extrapolated[1]),
        ):
            if keep:
                continue
            if value is None:
                value = index_in_dim(fp, at, 0, keepdims=False)
            value, _ = operand("interp", value)
            limit = with_shape(index_in_dim(xp, at, 0, keepdims=False), (), typeof(x).shape)
            result = choose("interp", beyond(x, limit), value, result)
    return result


@like(np.interp)
def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | str | None = None,
    right: ArrayLike | str | None = None,
    period: ArrayLike | None = None,
) -> Array:
    """Interpolate linearly between points.

    Args:
      x: the coordinates at which to interpolate: real numbers, of any shape.
      xp: the coordinates of the points, an array of one axis, ascending unless there is a period.
      fp: the values at the points, which may be complex.
      left: the value before the first point; by default that of the first point. The string
        "extrapolate" extends the first segment.
      right: the value after the last point; by default that of the last point.
      period: the period of the values; `left` and `right` are not used then.

    Returns:
      An array of the shape of `x`.

    Raises:
      ValueError: for shapes that do not match, complex `x` or `xp`, or another string.
      TypeError: if an argument is not an array, or there are no points.

    Example:
      >>> jnp.interp(0.5, jnp.array([0.0, 1.0]), jnp.array([10.0, 20.0]))
      Array(15., dtype=float32)
    """
    for name, side in (("left", left), ("right", right)):
        if isinstance(side, str) and side != "extrapolate":
            raise ValueError(
                f"interp: the only valid string value of `{name}` is 'extrapolate', but got: "
                f"{side!r}"
            )
    extrapolated = isinstance(left, str), isinstance(right, str)
    left, right = (None if isinstance(side, str) else side for side in (left, right))
    return _interp(x, xp, fp, left, right, period, extrapolated=extrapolated)


# ---- areas -------------------------------------------------------------------------------------


def _to_last(a: Array, axis: int) -> Array:
    ndim = typeof(a).ndim
    if axis == ndim - 1:
        return a
    return transpose(a, (*[i for i in range(ndim) if i != axis], axis))


def _halved(a: Array) -> Array:
    return elementwise.mul(scalar_like(typeof(a), 0.5), a)


def _pairs(y: Array, axis: int) -> Array:
    """Return the sums of neighbors along an axis."""
    size = typeof(y).shape[axis]
    later = slice_in_dim(y, min(1, size), size, axis=axis)
    return elementwise.add(later, slice_in_dim(y, 0, max(size - 1, 0), axis=axis))


def _even_trapezoids(y: Array) -> Array:
    """Return the integral over the last axis with unit steps, by the trapezoidal rule."""
    aval = typeof(y)
    size = aval.shape[-1]
    if not size:
        raise IndexError(
            f"trapezoid: there are no values along the axis: the shape is {aval.shape}"
        )
    last = aval.ndim - 1
    ends = [index_in_dim(y, i, last, keepdims=False) for i in (0, size - 1)]
    return elementwise.sub(accumulated(SUM, y, -1, None), _halved(elementwise.add(*ends)))


@operation_like(np.trapezoid, static_argnames=("axis",))
def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """Compute the integral along an axis by the trapezoidal rule.

    Args:
      y: the values.
      x: the coordinates of the values, an array of one axis or of the shape of `y`.
      dx: the spacing of the values where `x` is not passed: a scalar, or an array that broadcasts
        with the gaps between them.
      axis: the axis.

    Returns:
      An array of the shape of `y` without the axis.

    Raises:
      ValueError: if there is no such axis, or `x` does not fit.

    Example:
      >>> jnp.trapezoid(jnp.array([1.0, 3.0, 5.0]), x=jnp.array([0.0, 1.0, 3.0]))
      Array(10., dtype=float32)
    """
    check_arraylike("trapezoid", y, dx, *(() if x is None else (x,)))
    if x is None:
        (y, dx), (aval, step) = operands("trapezoid", (y, dx))
        along = canonical_axis(axis, aval.ndim)
        (y,) = promote_dtypes_inexact(y)
        if not step.ndim:
            return multiply(dx, _even_trapezoids(_to_last(strong_cotangents(y), along)))
        # The steps broadcast with y unchanged, and may have more axes.
        if step.ndim < aval.ndim:
            dx = with_rank(dx, step.shape, aval.ndim)
        areas = multiply(dx, _pairs(y, along))
        return _halved(accumulated(SUM, areas, axis, None))
    (y, x), (aval, points) = operands("trapezoid", (y, x))
    y, x = promote_dtypes_inexact(y, x)
    if not points.ndim:
        raise ValueError("trapezoid: x must have the coordinates of all values, got a scalar")
    along = canonical_axis(axis, points.ndim) if points.ndim > 1 else 0
    gaps = _to_last(_later_less_earlier(x, along), along)
    y = _to_last(strong_cotangents(y), canonical_axis(axis, aval.ndim))
    return _halved(accumulated(SUM, multiply(gaps, _pairs(y, aval.ndim - 1)), -1, None))


# ---- angles ------------------------------------------------------------------------------------


@operation_like(np.unwrap, static_argnames=("axis",))
def unwrap(
    p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * math.pi
) -> Array:
    """Remove jumps of more than half a period along an axis, by adding multiples of the period.

    Args:
      p: an array of real numbers.
      discont: the least jump that is removed: at least half a period, which is the default.
      axis: the axis.
      period: the period of the numbers.

    Raises:
      ValueError: for complex numbers, or if there is no such axis.

    Example:
      >>> jnp.unwrap(jnp.array([350, 10, 20]), period=360)
      Array([350, 370, 380], dtype=int32)
    """
    arguments = (p, period) if discont is None else (p, period, discont)
    check_arraylike("unwrap", *arguments)
    p, period = promote_dtypes(*operands("unwrap", (p, period))[0])
    aval = typeof(p)
    if is_complex(aval.dtype):
        raise ValueError("unwrap does not support complex numbers: give their angles.")
    axis = canonical_axis(axis, aval.ndim)
    if not aval.shape[axis]:
        return p
    half = divide(period, 2)
    steps = _later_less_earlier(p, axis)
    if issubdtype(aval.dtype, np.integer):
        # Half of an odd period is between two integers, so no step is exactly half of it.
        whole = floor_divide(period, 2)
        ends_meet = compare.eq(remainder(period, 2), host_scalar(0, typeof(period).dtype))
    else:
        whole, ends_meet = half, None
    lowest = elementwise.neg(whole)
    nearest = subtract(remainder(add(steps, whole), period), whole)
    # A step of exactly half a period keeps its direction.
    upwards = bitwise_and(equal(nearest, lowest), greater(steps, 0))
    if ends_meet is not None:
        upwards = bitwise_and(upwards, ends_meet)
    nearest = where(upwards, whole, nearest)
    small = less(absolute(steps), half if discont is None else discont)
    change = cumsum(where(small, 0, subtract(nearest, steps)), axis)
    size = aval.shape[axis]
    first = slice_in_dim(p, 0, 1, axis=axis)
    rest = add(slice_in_dim(p, 1, size, axis=axis), change)
    return concatenate(promote_dtypes(first, rest), axis)
