"""Padding arrays, in all of NumPy's modes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from hlofront.base.dtypes import issubdtype, to_inexact_dtype
from hlofront.core.aval import typeof
from hlofront.core.trace import Tracer, process
from hlofront.numpy import creation
from hlofront.numpy.like import like
from hlofront.numpy.promotion import check_arraylike
from hlofront.numpy.ufuncs import any_operand
from hlofront.primitives import elementwise, reducing, shaping, slicing
from hlofront.primitives import sorting as lax
from hlofront.primitives.comparing import eq, select_n_p
from hlofront.primitives.converting import convert
from hlofront.primitives.creating import full, full_like, iota
from hlofront.runtime.operation import operation

Widths = tuple[tuple[int, int], ...]

_KEYWORDS = {
    "constant": {"constant_values": 0},
    "edge": {},
    "empty": {},
    "linear_ramp": {"end_values": 0},
    "maximum": {"stat_length": None},
    "mean": {"stat_length": None},
    "median": {"stat_length": None},
    "minimum": {"stat_length": None},
    "reflect": {"reflect_type": "even"},
    "symmetric": {"reflect_type": "even"},
    "wrap": {},
}


def _pairs(name: str, values: Any, ndim: int) -> list[list[Any]]:
    """A value for before and one for after each axis, of one for all, two for all, or all."""
    shape = np.shape(values) if not hasattr(values, "aval") else values.shape
    allowed = {(ndim, 2), (1, 2), (2,), (1,), ()}
    if shape not in allowed:
        raise ValueError(
            f"jnp.pad: {name} with nd={ndim} has unsupported shape {shape}. Valid shapes are "
            f"({ndim}, 2), (1, 2), (2,), (1,), or ()."
        )
    if hasattr(values, "aval"):
        rows = creation.asarray(values)
        flat = slicing.unstack(shaping.reshape(rows, (rows.size,)))
    else:
        flat = [x for row in values for x in row] if len(shape) == 2 else values
        flat = list(flat) if shape else [values]
    if len(flat) == 2 * ndim and shape == (ndim, 2):
        return [list(flat[2 * i : 2 * i + 2]) for i in range(ndim)]
    pair = list(flat) * 2 if len(flat) == 1 else list(flat)
    return [pair for _ in range(ndim)]


def _static_pairs(name: str, values: Any, ndim: int) -> Widths:
    return tuple([(int(low), int(high)) for low, high in _pairs(name, values, ndim)])


@like(np.pad)
def pad(array: Any, pad_width: Any, mode: str | Callable[..., Any] = "constant", **kwargs: Any):
    """Put elements before and after those of an array, along each axis.

    Args:
      pad_width: how many, which must be known while tracing: a number; `(before, after)`; or such a
        pair for each axis.
      mode: which elements: "constant", "edge", "empty", "linear_ramp", "maximum", "mean", "median",
        "minimum", "reflect", "symmetric", "wrap"; or a function `f(row, widths, axis, kwargs)`
        that returns the padded row, of arrays that come padded with zeros.
      kwargs: the mode's own: constant_values, end_values, stat_length, reflect_type.
    """
    check_arraylike("pad", array)
    ndim = typeof(array).ndim
    if isinstance(pad_width, Tracer):
        pad_width = np.asarray(pad_width)
    if np.asarray(pad_width, object).dtype == object and not isinstance(
        pad_width, int | list | tuple | np.ndarray | np.integer
    ):
        raise TypeError(f"`pad_width` must be of integral type, got {pad_width!r}.")
    given = np.asarray(pad_width)
    if given.size and given.dtype.kind not in "iu":
        raise TypeError(f"`pad_width` must be of integral type, got {pad_width!r}.")
    widths = _static_pairs("pad_width", given.tolist(), ndim)
    if any(width < 0 for pair in widths for width in pair):
        raise ValueError(f"index can't contain negative values: jnp.pad got pad_width={pad_width}")
    if callable(mode):
        return _by_function(creation.asarray(array), widths, mode, kwargs)
    if mode not in _KEYWORDS:
        raise NotImplementedError(  # the class that JAX raises
            f"Unimplemented padding mode {mode!r} for np.pad: wanted one of {sorted(_KEYWORDS)}."
        )
    unknown = set(kwargs) - set(_KEYWORDS[mode])
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode {mode!r}: {unknown}")
    options = _KEYWORDS[mode] | kwargs
    if mode in ("constant", "empty"):
        values = _pairs("constant_values", options.get("constant_values", 0), ndim)
        return _constant(array, widths, values)
    if mode == "linear_ramp":
        return _linear_ramp(array, widths, _pairs("end_values", options["end_values"], ndim))
    if mode in ("edge", "reflect", "symmetric", "wrap"):
        kind = options.get("reflect_type", "even")
        if kind not in ("even", "odd"):
            raise ValueError(f"unsupported value for reflect_type, must be either `even` or `odd`: {kind!r}")
        return _mirrored(array, widths, mode, kind == "odd")
    length = options["stat_length"]
    if length is not None:
        length = _static_pairs("stat_length", np.asarray(length).tolist(), ndim)
        if any(n < 1 for pair in length for n in pair):
            raise ValueError(f"stat_length of jnp.pad must be at least 1, got {options['stat_length']}")
    return _statistic(array, widths, mode, length)


@operation(static_argnames=("widths",))
def _constant(array, widths, values):
    array = any_operand("pad", array)
    dtype = typeof(array).dtype
    for axis, (low, high) in enumerate(widths):
        before, after = (convert(any_operand("pad", x), dtype, False) for x in values[axis])
        for width, value in (((low, 0), before), ((0, high), after)):
            if sum(width):
                rows = [(0, 0, 0)] * len(widths)
                rows[axis] = (*width, 0)
                array = slicing.pad(array, value, rows)
    return array


def _part(array: Any, axis: int, start: int, stop: int) -> Any:
    return slicing.slice_in_dim(array, start, stop, axis=axis)


def _refuse_empty(mode: str, widths: Widths, shape: tuple[int, ...]) -> None:
    for (low, high), size in zip(widths, shape, strict=True):
        if not size and (low or high):
            raise ValueError(f"Cannot apply '{mode}' padding to empty axis: the shape is {shape}")


@operation(static_argnames=("widths", "mode", "odd"))
def _mirrored(array, widths, mode, odd):
    array = any_operand("pad", array)
    _refuse_empty(mode, widths, typeof(array).shape)
    for axis, (low, high) in enumerate(widths):
        size = typeof(array).shape[axis]
        if mode == "edge" or (mode == "reflect" and size == 1):
            array = _with_edges(array, axis, low, high)
        elif mode == "wrap":
            array = _wrapped(array, axis, low, high)
        else:
            array = _reflected(array, axis, low, high, mode == "reflect", odd)
    return array


def _repeated(edge: Any, axis: int, count: int) -> Any:
    shape = typeof(edge).shape
    wanted = (*shape[:axis], count, *shape[axis + 1 :])
    return shaping.broadcast_in_dim(edge, wanted, range(len(shape)))


def _with_edges(array: Any, axis: int, low: int, high: int) -> Any:
    size = typeof(array).shape[axis]
    parts = [array]
    if low:
        parts.insert(0, _repeated(_part(array, axis, 0, 1), axis, low))
    if high:
        parts.append(_repeated(_part(array, axis, size - 1, size), axis, high))
    return slicing.concatenate(parts, axis) if len(parts) > 1 else array


def _wrapped(array: Any, axis: int, low: int, high: int) -> Any:
    size = typeof(array).shape[axis]
    copies, first = divmod(low, size)
    more, last = divmod(high, size)
    parts = [array] * (copies + 1 + more)
    if first:
        parts.insert(0, _part(array, axis, size - first, size))
    if last:
        parts.append(_part(array, axis, 0, last))
    return slicing.concatenate(parts, axis) if len(parts) > 1 else array


def _reflected(array: Any, axis: int, low: int, high: int, inside: bool, odd: bool) -> Any:
    """Reflect until there is enough on each side; `inside` leaves out the element at the edge."""
    skip = int(inside)
    while low or high:
        size = typeof(array).shape[axis]
        most = size - skip
        now_low, now_high = min(low, most), min(high, most)
        parts = [array]
        if now_low:
            part = shaping.rev(_part(array, axis, skip, skip + now_low), (axis,))
            if odd:
                part = _twice_less(_part(array, axis, 0, 1), part)
            parts.insert(0, part)
        if now_high:
            part = shaping.rev(_part(array, axis, most - now_high, most), (axis,))
            if odd:
                part = _twice_less(_part(array, axis, size - 1, size), part)
            parts.append(part)
        array = slicing.concatenate(parts, axis)
        low, high = low - now_low, high - now_high
    return array


def _twice_less(edge: Any, part: Any) -> Any:
    edge = shaping.broadcast_in_dim(edge, typeof(part).shape, range(typeof(part).ndim))
    return elementwise.sub(elementwise.mul(edge, full_like(edge, 2)), part)


@operation(static_argnames=("widths",))
def _linear_ramp(array, widths, values):
    array = any_operand("pad", array)
    dtype = typeof(array).dtype
    _refuse_empty("linear_ramp", widths, typeof(array).shape)
    for axis, (low, high) in enumerate(widths):
        size = typeof(array).shape[axis]
        parts = [array]
        before, after = values[axis]
        if low:
            parts.insert(0, _ramp(_part(array, axis, 0, 1), before, low, axis, dtype))
        if high:
            ramp = _ramp(_part(array, axis, size - 1, size), after, high, axis, dtype)
            parts.append(shaping.rev(ramp, (axis,)))
        array = slicing.concatenate(parts, axis) if len(parts) > 1 else array
    return array


def _ramp(edge: Any, end: Any, width: int, axis: int, dtype: Any) -> Any:
    """From an end value towards an edge, which is not reached."""
    work = to_inexact_dtype(dtype)
    shape = typeof(edge).shape
    wanted = (*shape[:axis], width, *shape[axis + 1 :])
    edge = shaping.broadcast_in_dim(convert(edge, work, False), wanted, range(len(shape)))
    end = full(wanted, convert(any_operand("pad", end), work, False))
    steps = elementwise.div(convert(iota(np.int32, width), work, False), full((width,), width, work))
    steps = shaping.broadcast_in_dim(steps, wanted, (axis,))
    ramp = elementwise.add(end, elementwise.mul(elementwise.sub(edge, end), steps))
    return convert(ramp, dtype, False)


@operation(static_argnames=("widths", "mode", "lengths"))
def _statistic(array, widths, mode, lengths):
    array = any_operand("pad", array)
    _refuse_empty(mode, widths, typeof(array).shape)
    for axis, (low, high) in enumerate(widths):
        size = typeof(array).shape[axis]
        first, last = (size, size) if lengths is None else (min(n, size) for n in lengths[axis])
        parts = [array]
        if low:
            found = _summary(_part(array, axis, 0, first), mode, axis)
            parts.insert(0, _repeated(found, axis, low))
        if high:
            found = _summary(_part(array, axis, size - last, size), mode, axis)
            parts.append(_repeated(found, axis, high))
        array = slicing.concatenate(parts, axis) if len(parts) > 1 else array
    return array


def _summary(part: Any, mode: str, axis: int) -> Any:
    dtype = typeof(part).dtype
    size = typeof(part).shape[axis]
    if mode == "maximum":
        found = reducing.reduce_max(part, (axis,))
    elif mode == "minimum":
        found = reducing.reduce_min(part, (axis,))
    else:
        work = to_inexact_dtype(dtype)
        part = convert(part, work, False)
        if mode == "mean":
            total = reducing.reduce_sum(part, (axis,))
            found = elementwise.div(total, full_like(total, size))
        else:
            part = lax.sort(part, axis)
            low = slicing.index_in_dim(part, (size - 1) // 2, axis, keepdims=False)
            high = slicing.index_in_dim(part, size // 2, axis, keepdims=False)
            mean = elementwise.add(
                elementwise.mul(low, full_like(low, 0.5)),
                elementwise.mul(high, full_like(high, 0.5)),
            )
            found = process(select_n_p, (eq(low, high), mean, low), {})
        if issubdtype(dtype, np.integer):
            found = elementwise.round(found, elementwise.RoundingMethod.TO_NEAREST_EVEN)
        found = convert(found, dtype, False)
    return shaping.expand_dims(found, (axis,))


def _by_function(array: Any, widths: Widths, function: Any, kwargs: Any) -> Any:
    array = _constant(array, widths, [[0, 0]] * len(widths))
    for axis, pair in enumerate(widths):
        shape = typeof(array).shape
        order = [i for i in range(len(shape)) if i != axis]
        rows = shaping.transpose(array, (*order, axis))
        rest = typeof(rows).shape[:-1]
        rows = shaping.reshape(rows, (int(np.prod(rest, dtype=int)), shape[axis]))
        padded = [function(row, pair, axis, kwargs) for row in slicing.unstack(rows)]
        rows = slicing.stack([creation.asarray(row) for row in padded], 0) if padded else rows
        array = shaping.reshape(rows, (*rest, typeof(rows).shape[-1]))
        array = shaping.transpose(array, [*range(axis), len(shape) - 1, *range(axis, len(shape) - 1)])
    return array
