"""Padding of arrays with constants, edge values, ramps, reflections or statistics."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from hlofront.base.dtypes import bit_width, issubdtype, to_inexact_dtype
from hlofront.base.elements import float32, host_number, int32
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import SymbolicSize, typeof
from hlofront.numpy.arrays.shape import as_array
from hlofront.numpy.indexing.selecting import host_value, in_dtype
from hlofront.numpy.support.like import like
from hlofront.numpy.support.promotion import as_operand, check_arraylike, choose, promote_dtypes
from hlofront.primitives.arrays import creation, reducing, shaping, slicing, sorting
from hlofront.primitives.elementwise import compare, elementwise
from hlofront.primitives.elementwise.converting import convert, strong
from hlofront.runtime.dispatch.operation import operation

# mode -> its keyword argument.
_KEYWORDS = {
    "constant": ("constant_values",),
    "edge": (),
    "empty": (),
    "linear_ramp": ("end_values",),
    "maximum": ("stat_length",),
    "mean": ("stat_length",),
    "median": ("stat_length",),
    "minimum": ("stat_length",),
    "reflect": ("reflect_type",),
    "symmetric": ("reflect_type",),
    "wrap": (),
}

Pairs = tuple[tuple[int, int], ...]
PadWidth = int | Sequence[int] | Sequence[Sequence[int]]


# ---- one axis ----------------------------------------------------------------------------------


def _part(a: ArrayLike, axis: int, start: int, stop: int) -> Array:
    return slicing.slice_in_dim(a, start, stop, axis=axis)


def _repeated_along(a: Array, axis: int, width: int) -> Array:
    """Repeat an array of size 1 along an axis `width` times."""
    shape = typeof(a).shape
    new_shape = (*shape[:axis], width, *shape[axis + 1 :])
    return shaping.broadcast_in_dim(a, new_shape, shaping.ascending(len(shape)))


def _beside(
    a: ArrayLike, axis: int, widths: tuple[int, int], padding: Callable[[int, int], Array]
) -> ArrayLike:
    """Join an array with the padding of each side that has a width.

    Args:
      a: the array.
      axis: the axis to pad.
      widths: the widths before and after.
      padding: a function of the side, 0 before and 1 after, and its width, which returns that many
        values.
    """
    before, after = [[padding(side, width)] if width else [] for side, width in enumerate(widths)]
    parts = [*before, *([a] if typeof(a).shape[axis] else []), *after]
    return slicing.concatenate(parts, axis) if len(parts) > 1 else (parts or [a])[0]


def _edge_of(a: ArrayLike, axis: int, side: int) -> Array:
    """Return the first or the last values along an axis, which remains, of size 1."""
    start = (typeof(a).shape[axis] - 1) * side
    return _part(a, axis, start, start + 1)


def _constant(
    a: ArrayLike, axis: int, widths: tuple[int, int], before: ArrayLike, after: ArrayLike
) -> Array:
    dtype = typeof(a).dtype
    row = [(0, 0, 0)] * typeof(a).ndim
    for value, config in ((before, (widths[0], 0, 0)), (after, (0, widths[1], 0))):
        if sum(config):
            value = in_dtype(value, dtype, typeof(a).weak_type)
            a = slicing.pad(a, value, (*row[:axis], config, *row[axis + 1 :]))
    return a


def _edge(a: ArrayLike, axis: int, widths: tuple[int, int]) -> ArrayLike:
    return _beside(
        a,
        axis,
        widths,
        lambda side, width: _repeated_along(_edge_of(a, axis, side), axis, width),
    )


def _ramp(
    a: ArrayLike, axis: int, width: int, end: ArrayLike, edge: ArrayLike, backwards: bool
) -> Array:
    """Return a linear ramp from `end` to `edge` along an axis, without the edge."""
    aval = typeof(a)
    dtype = to_inexact_dtype(aval.dtype)
    shape = (*aval.shape[:axis], width, *aval.shape[axis + 1 :])
    steps = creation.broadcasted_iota(int32, shape, axis)
    if backwards:
        steps = elementwise.sub(np.int32(width - 1), steps)
    end, edge = in_dtype(end, dtype), _repeated_along(convert(edge, dtype, False), axis, width)
    step = elementwise.div(elementwise.sub(edge, end), host_number(width, dtype))
    ramp = elementwise.add(end, elementwise.mul(convert(steps, dtype, False), step))
    if issubdtype(aval.dtype, np.integer):
        # NumPy's linspace rounds integers down.
        ramp = elementwise.floor(ramp)
    return convert(ramp, aval.dtype, aval.weak_type)


def _ramps(
    a: ArrayLike, axis: int, widths: tuple[int, int], before: Array, after: Array
) -> ArrayLike:
    return _beside(
        a,
        axis,
        widths,
        lambda side, width: _ramp(
            a, axis, width, (before, after)[side], _edge_of(a, axis, side), side == 1
        ),
    )


def _rounded(x: Array, dtype: np.dtype) -> Array:
    """Return a statistic in `dtype`, rounded half to even for integers."""
    if issubdtype(dtype, np.integer):
        x = elementwise.round(x, elementwise.RoundingMethod.TO_NEAREST_EVEN)
    return x


def _mean(a: Array, axis: int) -> Array:
    aval = typeof(a)
    dtype = to_inexact_dtype(aval.dtype)
    if bit_width(dtype) < 32:
        dtype = float32
    total = reducing.reduce_sum(convert(a, dtype, False), (axis,))
    mean = elementwise.div(total, host_number(aval.shape[axis], dtype))
    return shaping.expand_dims(_rounded(mean, aval.dtype), (axis,))


def _median(a: Array, axis: int) -> Array:
    aval = typeof(a)
    dtype = to_inexact_dtype(aval.dtype)
    size = aval.shape[axis]
    ordered = convert(sorting.sort(a, axis), dtype, False)
    low = _part(ordered, axis, (size - 1) // 2, (size - 1) // 2 + 1)
    high = _part(ordered, axis, size // 2, size // 2 + 1)
    middle = elementwise.mul(elementwise.add(low, high), host_number(0.5, dtype))
    # NaN sorts last and makes the median NaN.
    last = _part(ordered, axis, size - 1, size)
    middle = choose("pad", compare.ne(last, last), last, middle)
    return _rounded(middle, aval.dtype)


def _extreme(reduce: Callable[[Array, Sequence[int]], Array], a: Array, axis: int) -> Array:
    aval = typeof(a)
    extreme = shaping.expand_dims(reduce(strong(a), (axis,)), (axis,))
    return convert(extreme, aval.dtype, aval.weak_type)


_maximum = functools.partial(_extreme, reducing.reduce_max)
_minimum = functools.partial(_extreme, reducing.reduce_min)


_STATISTICS: dict[str, Callable[[Array, int], Array]] = {
    "maximum": _maximum,
    "mean": _mean,
    "median": _median,
    "minimum": _minimum,
}


def _statistics(
    a: ArrayLike, axis: int, mode: str, widths: tuple[int, int], lengths: tuple[int, int] | None
) -> ArrayLike:
    aval = typeof(a)
    size = aval.shape[axis]
    first, last = (size, size) if lengths is None else (min(n, size) for n in lengths)
    if not (first and last) and mode in ("maximum", "minimum"):
        raise ValueError("stat_length of 0 yields no value for padding")
    statistic = _STATISTICS[mode]

    @functools.cache
    def value(start: int, stop: int) -> Array:
        part = a if stop - start == size else _part(a, axis, start, stop)
        return convert(statistic(part, axis), aval.dtype, aval.weak_type)

    bounds = (0, first), (size - last, size)
    return _beside(
        a,
        axis,
        widths,
        lambda side, width: _repeated_along(value(*bounds[side]), axis, width),
    )


def _mirrored(
    a: ArrayLike, axis: int, widths: tuple[int, int], offset: int, reflect_type: str
) -> ArrayLike:
    """Pad an axis by repeated reflection; `offset` is 1 if the edge itself is not repeated."""
    if typeof(a).shape[axis] == 1 and offset:
        return _edge(a, axis, widths)
    before, after = widths
    while before or after:
        most = typeof(a).shape[axis] - offset
        left, right = min(before, most), min(after, most)
        a = _mirrored_once(a, axis, (left, right), offset, reflect_type)
        before, after = before - left, after - right
    return a


def _mirrored_once(
    a: ArrayLike, axis: int, widths: tuple[int, int], offset: int, reflect_type: str
) -> ArrayLike:
    size = typeof(a).shape[axis]

    def reflected(side: int, width: int) -> Array:
        start = size - offset - width if side else offset
        part = shaping.rev(_part(a, axis, start, start + width), (axis,))
        return _opposite(part, _edge_of(a, axis, side), axis) if reflect_type == "odd" else part

    return _beside(a, axis, widths, reflected)


def _opposite(part: Array, edge: Array, axis: int) -> Array:
    """Return values reflected about the edge: twice the edge minus the part."""
    edge = _repeated_along(edge, axis, typeof(part).shape[axis])
    return elementwise.sub(elementwise.add(edge, edge), part)


def _wrapped(a: ArrayLike, axis: int, widths: tuple[int, int]) -> ArrayLike:
    size = typeof(a).shape[axis]
    before, after = widths
    first, last = before % size, after % size
    parts: list[ArrayLike] = [a] * (before // size + 1 + after // size)
    if first:
        parts.insert(0, _part(a, axis, size - first, size))
    if last:
        parts.append(_part(a, axis, 0, last))
    return slicing.concatenate(parts, axis) if len(parts) > 1 else a


# ---- all axes ----------------------------------------------------------------------------------


@operation(static_argnames=("widths", "mode", "lengths", "reflect_type"))
def _pad(
    array: ArrayLike,
    values: ArrayLike | None,
    widths: Pairs,
    mode: str,
    lengths: Pairs | None,
    reflect_type: str,
) -> Array:
    if values is None and mode in ("constant", "linear_ramp"):
        values = 0
    if mode == "constant":
        uniform = typeof(values).ndim == 0
        if uniform and typeof(array).ndim:
            value = in_dtype(values, typeof(array).dtype, typeof(array).weak_type)
            return slicing.pad(array, value, tuple([(*pair, 0) for pair in widths]))
    pairs = None if values is None else _value_pairs(values, typeof(array).ndim)
    for axis, pair in enumerate(widths):
        if not sum(pair):
            continue
        if not typeof(array).shape[axis] and mode not in ("constant", "empty"):
            raise ValueError(
                f"Cannot apply '{mode}' padding to empty axis: axis {axis} of shape "
                f"{typeof(array).shape}"
            )
        if mode == "constant":
            array = _constant(array, axis, pair, *pairs[axis])
        elif mode == "empty":
            array = _constant(array, axis, pair, 0, 0)
        elif mode == "edge":
            array = _edge(array, axis, pair)
        elif mode == "linear_ramp":
            array = _ramps(array, axis, pair, *pairs[axis])
        elif mode == "wrap":
            array = _wrapped(array, axis, pair)
        elif mode in _STATISTICS:
            array = _statistics(array, axis, mode, pair, lengths and lengths[axis])
        else:
            array = _mirrored(array, axis, pair, int(mode == "reflect"), reflect_type)
    return as_array(array)


def _value_pairs(
    values: ArrayLike | Sequence[ArrayLike | Sequence[ArrayLike]], ndim: int
) -> list[tuple[Array, Array]]:
    """Return the pair (before, after) of padding values for each axis."""
    shape = typeof(values).shape
    _check_pairs("values", shape, ndim)
    table = shaping.broadcast_in_dim(values, (ndim, 2), tuple(range(2 - len(shape), 2)))
    cells = [
        [shaping.reshape(slicing.slice(table, (i, j), (i + 1, j + 1)), ()) for j in range(2)]
        for i in range(ndim)
    ]
    return [(before, after) for before, after in cells]


def _check_pairs(name: str, shape: tuple[int, ...], ndim: int) -> None:
    if shape not in ((ndim, 2), (1, 2), (2,), (1,), ()) and shape != (ndim, 1):
        raise ValueError(
            f"jnp.pad: {name} with nd={ndim} has unsupported shape {shape}. Valid shapes are "
            f"({ndim}, 2), (1, 2), (2,), (1,), or ()."
        )


def _is_pair(value: object) -> bool:
    return type(value) is tuple and len(value) == 2 and all(map(_is_width, value))


def _is_width(value: object) -> bool:
    return type(value) is int or isinstance(value, SymbolicSize)


def _static_pairs(name: str, value: PadWidth, ndim: int) -> Pairs:
    """Return integer pairs for the ends of each axis, from NumPy's shorter forms."""
    if _is_width(value):
        return ((value, value),) * ndim
    if type(value) is tuple and len(value) == ndim and all(map(_is_pair, value)):
        return value
    if isinstance(value, dict):
        filled = [(0, 0)] * ndim
        for axis, one in value.items():
            filled[axis] = (one, one) if np.ndim(one) == 0 else tuple(one)
        value = filled
    table = host_value(value, f"{name} argument of jnp.pad")
    if table.size and not issubdtype(table.dtype, np.integer):
        raise TypeError(f"`{name}` must be of integral type, got {table.dtype}.")
    _check_pairs(name, table.shape, ndim)
    return tuple([(before, after) for before, after in np.broadcast_to(table, (ndim, 2)).tolist()])


@like(np.pad)
def pad(
    array: ArrayLike,
    pad_width: PadWidth,
    mode: str | Callable[..., ArrayLike | None] = "constant",
    **kwargs: object,
) -> Array:
    """Pad an array at the ends of its axes, one axis after another.

    Args:
      array: an array.
      pad_width: the widths before and after each axis: rows of two integers, one row or one
        integer for all axes, or a dict of those by axis.
      mode: the padding: "constant", "edge", "empty" (zeros), "linear_ramp", "maximum", "mean",
        "median", "minimum", "reflect", "symmetric", "wrap"; or a function that is called with each
        padded line along an axis, the two widths, the axis and the keyword arguments, and returns
        the line.
      **kwargs: `constant_values` for mode "constant", 0 by default; `end_values` for "linear_ramp",
        0 by default; `stat_length` for statistics, the number of elements at each end that they
        summarize, by default all; `reflect_type` for "reflect" and "symmetric", "even" or "odd".

    Raises:
      TypeError: if the widths are not integers.
      ValueError: if the widths are negative or not as many as there are axes, or there are no
        values to pad with.
      NotImplementedError: if there is no such mode.

    Example:
      >>> jnp.pad(jnp.array([1, 2]), (1, 2))
      Array([0, 1, 2, 0, 0], dtype=int32)
    """
    check_arraylike("pad", array)
    array = as_operand(array)
    ndim = typeof(array).ndim
    widths = _static_pairs("pad_width", pad_width, ndim)
    if any(width < 0 for pair in widths for width in pair):
        raise ValueError(f"index can't contain negative values: pad_width is {widths}")
    if callable(mode):
        return _padded_by(array, widths, mode, kwargs)
    if mode not in _KEYWORDS:
        raise NotImplementedError(  # JAX raises this class.
            f"Unimplemented padding mode {mode!r} for np.pad: expected one of "
            f"{', '.join(_KEYWORDS)}."
        )
    if not kwargs and ndim:
        return _pad(array, None, widths, mode, None, "even")
    unknown = set(kwargs) - set(_KEYWORDS[mode])
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {unknown}")
    values, lengths = None, None
    if mode in ("constant", "linear_ramp"):
        values = kwargs.get(*_KEYWORDS[mode], 0)
        if isinstance(values, list | tuple):
            values = _table(values)
        check_arraylike("pad", values)
    elif kwargs.get("stat_length") is not None:
        lengths = _static_pairs("stat_length", kwargs["stat_length"], ndim)
        if any(length == 0 for pair in lengths for length in pair):
            raise ValueError("stat_length of 0 yields no value for padding")
        if any(length < 0 for pair in lengths for length in pair):
            raise ValueError(f"stat_length of jnp.pad must be positive, got {lengths}")
    reflect_type = kwargs.get("reflect_type", "even")
    if reflect_type not in ("even", "odd"):
        raise ValueError(f"reflect_type of jnp.pad must be 'even' or 'odd', got {reflect_type!r}")
    if not ndim:
        return as_array(array)
    return _pad(array, values, widths, mode, lengths, reflect_type)


def _table(values: Sequence[ArrayLike | Sequence[ArrayLike]]) -> np.ndarray:
    """Return nested lists of scalars as a NumPy array."""
    leaves = [leaf for row in values for leaf in (row if isinstance(row, list | tuple) else (row,))]
    if not any(hasattr(leaf, "aval") for leaf in leaves):
        return np.asarray(values)
    return _stacked_table(values)


@operation
def _stacked_table(values: Sequence[ArrayLike | Sequence[ArrayLike]]) -> Array:
    rows = [_stacked_table.when_traced(v) if isinstance(v, list | tuple) else v for v in values]
    return slicing.stack(promote_dtypes(*rows), 0)


def _padded_by(
    array: ArrayLike,
    widths: Pairs,
    function: Callable[..., ArrayLike | None],
    options: dict[str, object],
) -> Array:
    """Pad with zeros, then apply `function` to each vector along each axis."""
    padded = _pad(array, 0, widths, "constant", None, "even")
    shape = padded.shape
    for axis, pair in enumerate(widths):
        line_shape = (*shape[:axis], *shape[axis + 1 :])
        lines = _lines(padded, axis)
        count = lines.shape[0]
        if count:
            padded_lines = [function(lines[i], pair, axis, options) for i in range(count)]
            padded = _from_lines(padded_lines, line_shape, axis)
    return padded


@operation(static_argnames=("axis",))
def _lines(array: ArrayLike, axis: int) -> Array:
    shape = typeof(array).shape
    order = [i for i in range(len(shape)) if i != axis] + [axis]
    flat = shaping.transpose(array, order)
    return shaping.reshape(flat, (-(-typeof(array).size // max(shape[axis], 1)), shape[axis]))


@operation(static_argnames=("line_shape", "axis"))
def _from_lines(lines: list[Array], line_shape: tuple[int, ...], axis: int) -> Array:
    stacked = slicing.stack(promote_dtypes(*lines), 0)
    flat = shaping.reshape(stacked, (*line_shape, typeof(stacked).shape[1]))
    order = list(range(len(line_shape)))
    order.insert(axis, len(line_shape))
    return shaping.transpose(flat, order)
