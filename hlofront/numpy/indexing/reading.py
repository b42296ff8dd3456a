"""Reading by an index: `x[1:3, i, None, mask]` by NumPy's rules, as slices where possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from hlofront.base import errors
from hlofront.base.boundary import boundary, filter_traceback
from hlofront.base.config import check_static_indices
from hlofront.base.dtypes import default_dtype
from hlofront.base.elements import host_number, int32, int64
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, ArrayLike
from hlofront.bridge.client import ArrayImpl
from hlofront.core.aval import SymbolicSize, typeof
from hlofront.core.references import is_reference
from hlofront.core.sizes.symbolic import max_dim
from hlofront.core.trace import is_eager, process
from hlofront.numpy.indexing.entries import (
    ALL,
    Resolved,
    from_start,
    gather_plan,
    resolve,
    resolved_slice,
)
from hlofront.numpy.support.empty_gathers import empty_result, refuse_empty_axes
from hlofront.numpy.support.naming import named
from hlofront.primitives.arrays.dynamic_slicing import dynamic_slice_p
from hlofront.primitives.arrays.gathering import GatherDimensionNumbers, GatherScatterMode, gather
from hlofront.primitives.arrays.shaping import broadcast_in_dim_p, rev_p, squeeze_p
from hlofront.primitives.arrays.slicing import slice_in_dim, slice_p
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.references import references
from hlofront.runtime.dispatch.operation import operation

if TYPE_CHECKING:
    from hlofront.numpy.indexing.entries import Entry, Index

_MODE = GatherScatterMode
# The static part of an index is a key with an item for each entry: INDEX or ARRAY for an operand, a
# slice without its start, ALL, or None.
KeyItem: TypeAlias = Any
Key: TypeAlias = tuple[KeyItem, ...]
# In these modes an out-of-bounds index reads the nearest element, as dynamic_slice does.
_NEAREST = (None, _MODE.CLIP, _MODE.PROMISE_IN_BOUNDS)


class ReadOptions(NamedTuple):
    """The options of `x.at[index].get`, documented there."""

    mode: GatherScatterMode | None = None
    fill_value: ArrayLike | None = None
    indices_are_sorted: bool = False
    unique_indices: bool = False
    wrap: bool = True


_DEFAULT = ReadOptions()


def read(array: ArrayLike, resolved: Resolved, options: ReadOptions = _DEFAULT) -> Array:
    """Read the indexed part of an array by the fewest and simplest operations.

    An index of ints and slices becomes a slice, or a dynamic_slice where an int is computed or out
    of bounds; any other index becomes a gather.
    """
    mode, fill_value, indices_are_sorted, unique_indices, wrap = options
    entries, sizes, inserted, _ = resolved
    if mode in _NEAREST and not inserted:
        static, dynamic, axis = True, True, 0
        for entry in entries:
            if entry is None:
                continue
            kind = type(entry)
            if kind is int:
                # In clip mode an integer is clamped here, if the axis has elements.
                size = sizes[axis]
                static = static and (
                    size > 0
                    if mode == _MODE.CLIP
                    else (-size if wrap else 0) <= entry < size
                    if type(size) is int
                    else _is_within(entry, size, wrap)
                )
            elif kind is tuple:
                static = static and (type(entry[0]) is int or isinstance(entry[0], SymbolicSize))
                dynamic = dynamic and entry[2] in (1, -1)
            elif entry is not ALL:
                static = False
                dynamic = dynamic and not entry.ndim
            axis += 1
        if static:
            return _sliced(array, entries, sizes, wrap)
        if mode != _MODE.CLIP and check_static_indices.value:
            _refuse_outside(resolved)
        if dynamic:
            return _dynamically_sliced(array, entries, sizes, wrap)
    elif not inserted and all(entry is ALL or entry is None for entry in entries):
        # The whole axis is read in every mode.
        return _sliced(array, entries, sizes, wrap)
    return _gathered(array, resolved, mode, fill_value, indices_are_sorted, unique_indices, wrap)


def _is_within(entry: int, size: Any, wrap: bool) -> bool:
    """Return whether an index is certainly within an axis of a symbolic size."""
    try:
        return (-size if wrap else 0) <= entry < size
    except errors.InconclusiveDimensionOperation:
        return False


# ---- by slice ----------------------------------------------------------------------------------


def _sliced(array: Array, entries: list[Entry], sizes: tuple[int, ...], wrap: bool) -> Array:
    starts, limits, strides, dropped, backwards, new, shape = [], [], [], [], [], [], []
    axis = 0
    for entry in entries:
        if entry is None:
            new.append(len(shape))
            shape.append(1)
            continue
        size = sizes[axis]
        if entry is ALL:
            start, limit, stride = 0, size, 1
            shape.append(size)
        elif type(entry) is int:
            start = min(max(entry + size if wrap and entry < 0 else entry, 0), size - 1)
            limit, stride = start + 1, 1
            dropped.append(axis)
        else:
            start, count, step, stop = entry
            if step > 0:
                limit, stride = max_dim(start, stop), step
            else:
                high, stride = start, -step
                start = high + (count - 1) * step if count else stop + 1
                limit = high + 1 if count else start
                backwards.append(axis)
            shape.append(count)
        starts.append(start)
        limits.append(limit)
        strides.append(stride)
        axis += 1
    if any(starts) or tuple(limits) != sizes or any(stride != 1 for stride in strides):
        array = process(
            slice_p,
            (array,),
            {
                "start_indices": tuple(starts),
                "limit_indices": tuple(limits),
                "strides": None if all(stride == 1 for stride in strides) else tuple(strides),
            },
        )
    return _finished(array, dropped, backwards, new, shape)


def _finished(
    array: Array, dropped: list[int], backwards: list[int], new: list[int], shape: list[int]
) -> Array:
    """Reverse axes, squeeze the axes of integers, and insert new axes of size 1."""
    if backwards:
        array = process(rev_p, (array,), {"dimensions": tuple(backwards)})
    if dropped:
        array = process(squeeze_p, (array,), {"dimensions": tuple(dropped)})
    return _with_new_axes(array, new, tuple(shape))


def _with_new_axes(array: Array, new: tuple[int, ...] | list[int], shape: tuple[int, ...]) -> Array:
    if not new:
        return array
    old = tuple([axis for axis in range(len(shape)) if axis not in new])
    return process(
        broadcast_in_dim_p,
        (array,),
        {"shape": shape, "broadcast_dimensions": old, "sharding": None},
    )


# ---- by dynamic_slice --------------------------------------------------------------------------


def _dynamically_sliced(
    array: Array, entries: list[Entry], sizes: tuple[int, ...], wrap: bool
) -> Array:
    starts, counts, dropped, backwards, new, shape = [], [], [], [], [], []
    axis, beyond_int32 = 0, False
    for entry in entries:
        if entry is None:
            new.append(len(shape))
            shape.append(1)
            continue
        if entry is ALL or type(entry) is tuple:
            start, count, step, stop = (0, sizes[axis], 1, 0) if entry is ALL else entry
            if step < 0:
                start = start + 1 - count if count else stop + 1
                backwards.append(axis)
            shape.append(count)
        else:
            start, count = entry, 1
            dropped.append(axis)
        beyond_int32 |= type(start) is int and start > 0x7FFF_FFFF
        starts.append(_start(start))
        counts.append(count)
        axis += 1
    # The starts of several axes must have one dtype. A single start keeps its dtype, so that one
    # far out of bounds is clamped instead of wrapping around in int32.
    if len(starts) > 1:
        dtype = int64 if beyond_int32 else int32
        starts = [convert(start, dtype, False) for start in starts]
    if wrap:
        starts = [from_start(start, size) for start, size in zip(starts, sizes, strict=True)]
    array = process(dynamic_slice_p, (array, *starts), {"slice_sizes": tuple(counts)})
    return _finished(array, dropped, backwards, new, shape)


def _start(start: ArrayLike) -> ArrayLike:
    if type(start) is int:
        try:
            return np.int32(start)
        except OverflowError:
            return _wide(start)
    if isinstance(start, np.ndarray):
        start = start[()]
    return convert(start, typeof(start).dtype, False)


def _wide(index: int) -> np.generic:
    """Return an index that int32 does not hold in the default integer dtype.

    Raises:
      OverflowError: if that does not hold it, either.
    """
    dtype = default_dtype("i")
    try:
        return host_number(index, dtype)
    except OverflowError:
        raise OverflowError(
            f"Python int {index} too large to convert to {dtype}: as an index it is out of bounds "
            "of every array."
        ) from None


# ---- by gather ---------------------------------------------------------------------------------


def _gathered(
    array: Array,
    resolved: Resolved,
    mode: GatherScatterMode | None,
    fill_value: ArrayLike | None,
    indices_are_sorted: bool,
    unique_indices: bool,
    wrap: bool,
) -> Array:
    plan = gather_plan(resolved, wrap)
    array = with_inserted(array, resolved)
    refuse_empty_axes(plan, resolved.sizes)
    if 0 in plan.shape:
        result = empty_result(array, plan)
    else:
        result = gather(
            array,
            plan.indices,
            GatherDimensionNumbers(plan.window, plan.collapsed, plan.index_axes),
            plan.window_sizes,
            indices_are_sorted=indices_are_sorted or plan.ordered,
            unique_indices=unique_indices or plan.ordered,
            mode=mode,
            fill_value=fill_value,
        )
        if plan.reversed:
            result = process(rev_p, (result,), {"dimensions": plan.reversed})
    return _with_new_axes(result, plan.new_axes, plan.full_shape)


def with_inserted(array: Array, resolved: Resolved) -> Array:
    """Return the array with an axis of size 1 inserted for each scalar boolean of an index."""
    return _with_new_axes(array, resolved.inserted, resolved.sizes)


# ---- eager -------------------------------------------------------------------------------------
# An index is split in two. The static key decides the shape; integers and the starts of slices are
# operands. So x[0] and x[1], and x[i:i+2] for all i, share one executable.

INDEX, ARRAY = "index", "array"
_ONE = (INDEX,)
VECTOR = (ARRAY,)


@operation(static_argnames=("key",))
@named("getitem")
def _basic(array: ArrayLike, key: Key, *operands: ArrayLike) -> Array:
    """Read the part of an array that integers and slices select.

    `operands` hold indices counted from 0, and the least index of each slice.
    """
    sizes = typeof(array).shape
    remaining = iter(operands)
    starts, spans, strides, dropped, backwards, new, shape = [], [], [], [], [], [], []
    # The arguments of the static slice that follows the dynamic one.
    firsts, limits = [], []
    moved = False
    for part in key:
        if part is None:
            new.append(len(shape))
            shape.append(1)
            continue
        axis = len(starts)
        start, span, first, limit, stride = np.int32(0), sizes[axis], 0, None, 1
        if part is ALL:
            shape.append(span)
        elif part is INDEX:
            start, span, moved = convert(next(remaining), int32, False), 1, True
            dropped.append(axis)
        else:
            count, step, known_start = part
            stride = abs(step)
            length = (count - 1) * stride + 1 if count else 0
            if step < 0:
                backwards.append(axis)
            if known_start is None:
                start, span, moved = convert(next(remaining), int32, False), length, True
            else:
                first = known_start
            limit = first + length
            shape.append(count)
        starts.append(start)
        spans.append(span)
        firsts.append(first)
        limits.append(span if limit is None else limit)
        strides.append(stride)
    trailing = sizes[len(starts) :]
    starts += [np.int32(0)] * len(trailing)
    spans += trailing
    firsts += [0] * len(trailing)
    limits += trailing
    strides += [1] * len(trailing)
    shape += trailing
    if moved:
        array = process(dynamic_slice_p, (array, *starts), {"slice_sizes": tuple(spans)})
    if limits != spans or any(firsts) or any(stride != 1 for stride in strides):
        array = process(
            slice_p,
            (array,),
            {
                "start_indices": tuple(firsts),
                "limit_indices": tuple(limits),
                "strides": tuple(strides),
            },
        )
    return _finished(array, dropped, backwards, new, shape)


@operation(static_argnames=("key", "options"))
@named("getitem")
def _advanced(array: ArrayLike, key: Key, options: ReadOptions, *operands: ArrayLike) -> Array:
    """Read the part of an array that an index with integer or boolean arrays selects.

    `operands` hold the indices unchanged, and the first index of each slice.
    """
    return read(array, rebuilt(key, typeof(array).shape, operands), options)


def _read_eagerly(array: Array, shape: tuple[int, ...], index: Any) -> Array:
    """Read an array by an index of integers, slices and new axes; resolve any other index first."""
    key: list[KeyItem] = []
    operands: list[ArrayLike] = []
    axis = 0
    ndim = len(shape)
    for item in index if type(index) is tuple else (index,):
        kind = type(item)
        if item is None:
            key.append(None)
            continue
        if axis >= ndim:
            return _read_resolved(array, shape, index)
        size = shape[axis]
        if kind is int and size:
            key.append(INDEX)
            operands.append(item if 0 <= item < size else _within(item, size))
        elif kind is slice:
            if item.start is None and item.stop is None and item.step is None:
                key.append(ALL)
            else:
                _append_slice(key, operands, resolved_slice(item, size, axis), array, axis)
        else:
            return _read_resolved(array, shape, index)
        axis += 1
    while key and key[-1] is ALL:
        key.pop()
    return _basic(array, tuple(key), *operands) if key else array


def _append_slice(
    key: list[KeyItem], operands: list[ArrayLike], entry: Entry, array: Array, axis: int
) -> None:
    """Append a slice to a static key: its size, its step, and its least index if that is static.

    Otherwise the least index becomes an operand. It is static if it is 0, and for a slice with a
    step along a split axis: a span that ends with the last element need not divide evenly among
    devices.
    """
    if entry is ALL:
        key.append(ALL)
        return
    start, count, step, _ = entry
    if step < 0 and count:
        start += (count - 1) * step
    if not count:
        start = 0
    spec = array.aval.spec
    if start == 0 or (spec is not None and abs(step) != 1 and spec.partitions[axis] is not None):
        key.append((count, step, start))
    else:
        key.append((count, step, None))
        operands.append(start)


def _read_resolved(array: Array, shape: tuple[int, ...], index: object) -> Array:
    resolved = resolve(index, shape)
    key: list[KeyItem] = []
    operands: list[ArrayLike] = []
    axis = 0
    for entry in resolved.entries:
        kind = type(entry)
        if entry is None:
            key.append(None)
            continue
        if resolved.inserted or not (kind is int or kind is tuple or entry is ALL):
            if check_static_indices.value:
                _refuse_outside(resolved)
            return _advanced(array, *split(resolved, _DEFAULT))
        if kind is int:
            key.append(INDEX)
            operands.append(_within(entry, shape[axis]))
        else:
            _append_slice(key, operands, entry, array, axis)
        axis += 1
    while key and key[-1] is ALL:
        key.pop()
    return _basic(array, tuple(key), *operands) if key else array


def _within(index: int, size: int) -> int:
    """Clamp an index, counted from 0, to an axis of `size` elements."""
    if not -0x8000_0000 <= index <= 0x7FFF_FFFF:
        _wide(index)
    if check_static_indices.value and not -size <= index < size:
        raise _outside(index, size)
    if index < 0:
        index += size
        return 0 if index < 0 else index
    return size - 1 if index >= size else index


def split(resolved: Resolved, options: object) -> tuple[Any, ...]:
    """Split an index into a static key, the options, and operands; `rebuilt` is the inverse."""
    key: list[KeyItem] = []
    operands: list[ArrayLike] = []
    for entry in resolved.entries:
        kind = type(entry)
        if kind is int:
            key.append(INDEX)
            operands.append(min(max(entry, -0x8000_0000), 0x7FFF_FFFF))
        elif kind is tuple:
            start, count, step, _ = entry
            if start == 0 or not count:
                key.append(entry)
            else:
                key.append((count, step))
                operands.append(start)
        elif entry is None or entry is ALL:
            key.append(entry)
        else:
            key.append(ARRAY)
            operands.append(entry)
    if resolved.inserted or resolved.gap is not None:
        key.append(("besides", resolved.gap, *resolved.inserted))
    return tuple(key), options, *operands


def rebuilt(key: Key, shape: tuple[int, ...], operands: Sequence[ArrayLike]) -> Resolved:
    """Rebuild an index from the static key of `split` and traced operands."""
    remaining = iter(operands)
    entries: list[Entry] = []
    inserted: list[int] = []
    gap = None
    for part in key:
        if part is INDEX or part is ARRAY:
            entries.append(next(remaining))
        elif type(part) is tuple and part[0] == "besides":
            gap, inserted = part[1], list(part[2:])
        elif type(part) is not tuple or len(part) == 4:
            entries.append(part)
        else:
            entries.append((next(remaining), part[0], part[1], 0))
    for axis in inserted:
        shape = (*shape[:axis], 1, *shape[axis:])
    taken = sum(entry is not None for entry in entries)
    return Resolved(entries + [ALL] * (len(shape) - taken), shape, inserted, gap)


@boundary
def getitem(array: Array, index: Index) -> Array:
    """Return `array[index]` for an array, or a tracer of one or of a mutable reference."""
    if is_reference(array.aval):
        return references.get(array, index)
    return read(array, resolve(index, array.aval.shape))


def getitem_of_array(array: Array, index: Any) -> Array:
    """Return `array[index]` for an array on a device."""
    # This filters the traceback as `boundary` does, without the cost of a call.
    try:
        shape = array.aval.shape
        if not is_eager():
            return read(array, resolve(index, shape))
        if shape:
            kind = type(index)
            size = shape[0]
            if kind is int and size:
                within = 0 <= index < size
                return _basic(array, _ONE, index if within else _within(index, size))
            if kind is ArrayImpl and index.aval.dtype.kind in "iu" and size:
                return _advanced(array, VECTOR, _DEFAULT, index)
            if kind is not slice and kind is not tuple:
                return _read_resolved(array, shape, index)
        return _read_eagerly(array, shape, index)
    except Exception as error:
        filter_traceback(error)
        raise


def get(array: Array, index: Index, options: ReadOptions) -> Array:
    """Return `array[index]` with the options of `.at[index].get`."""
    resolved = resolve(index, array.aval.shape)
    if is_eager():
        if options.mode in (None, _MODE.PROMISE_IN_BOUNDS) and check_static_indices.value:
            _refuse_outside(resolved)
        return _advanced(array, *split(resolved, options))
    return read(array, resolved, options)


def _refuse_outside(resolved: Resolved) -> None:
    """Raise IndexError for an integer out of bounds if jax_check_static_indices is set."""
    spans = [entry for entry in resolved.entries if entry is not None]
    for entry, size in zip(spans, resolved.sizes, strict=False):
        if type(entry) is int and not -size <= entry < size:
            raise _outside(entry, size)


def _outside(index: int, size: int) -> IndexError:
    return IndexError(
        f"index {index} is out of bounds for an axis of size {size}: the option "
        "jax_check_static_indices requires static indices to be in bounds."
    )


# ---- iteration ---------------------------------------------------------------------------------


def iterate(array: Array) -> Iterator[Array]:
    """Iterate over the rows of a traced array, along its first axis.

    Raises TypeError for an array without axes.
    """
    if not array.aval.shape:
        raise TypeError("iteration over a 0-d array: it has no axis to go along.")
    return _rows(array)


def _rows(array: Array) -> Iterator[Array]:
    for i in range(array.aval.shape[0]):
        yield process(squeeze_p, (slice_in_dim(array, i, i + 1),), {"dimensions": (0,)})


def _iterate_array(array: Array) -> Iterator[Array]:
    return _rows_of_array(array)


_rows_of_array = ArrayImpl.__iter__

_iterate_array.when_traced = iterate  # type: ignore[attr-defined]
getitem_of_array.when_traced = getitem  # type: ignore[attr-defined]

ARRAY_METHODS = {"__getitem__": getitem_of_array, "__iter__": _iterate_array}
