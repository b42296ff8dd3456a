"""Buffers of the modeled memories: parts of them, bounds, contents, and a log of accesses."""

import logging
from collections.abc import Sequence
from types import EllipsisType
from typing import Any, cast

import numpy as np

from hlofront.base.dtypes import bit_width, iinfo, issubdtype
from hlofront.base.elements import bool_
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import DType, NumPyArray, Shape
from hlofront.core.references import NDIndexer, RefView
from hlofront.core.sizes.computed_slices import Slice
from hlofront.pallas.interpret.tpu.clocks import Key, Thread
from hlofront.pallas.interpret_params import InterpretParams

_logger = logging.getLogger(__name__)
# An index of NumPy that selects a view.
Index = tuple[slice | EllipsisType, ...]
# Where elements are read or written; None for everywhere.
Mask = NumPyArray | None


# ---- parts of buffers ----------------------------------------------------------------------------


class BufferPart(NamedTuple):
    """A part of a buffer: per axis a start, a number of elements and a stride.

    Attributes:
      starts, sizes, strides: those of the part, per axis of the buffer.
      shape: its shape, without the axes that an integer indexes.
      outside: an index that is out of bounds, for messages; None if none is.
    """

    starts: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    shape: Shape
    outside: str | None

    @property
    def ranges(self) -> list[range]:
        """Per axis the elements of the part."""
        parts = zip(self.starts, self.sizes, self.strides, strict=True)
        return [range(start, start + size * stride, stride) for start, size, stride in parts]

    @property
    def slices(self) -> Index:
        """NumPy's index of the part with all axes, which selects a view."""
        return (*[slice(r.start, r.stop, r.step) for r in self.ranges], ...)

    def overlaps(self, other: "BufferPart") -> bool:
        """Return whether two parts of one buffer have an element in common."""
        for a, b in zip(self.ranges, other.ranges, strict=True):
            if not (a and b) or a[-1] < b[0] or b[-1] < a[0]:
                return False
            if (a.step, b.step) != (1, 1) and set(a).isdisjoint(b):
                return False
        return True

    def covers(self, other: "BufferPart") -> bool:
        """Return whether a part has all elements of another part of the same buffer."""
        return all(
            a == b or (a.step == 1 and len(b) > 0 and a.start <= b[0] and b[-1] < a.stop)
            for a, b in zip(self.ranges, other.ranges, strict=True)
        )

    def __str__(self) -> str:
        texts: list[str] = []
        for r in self.ranges:
            step = "" if r.step == 1 else f":{r.step}"
            texts.append(str(r.start) if len(r) == 1 else f"{r.start}:{r.stop}{step}")
        return f"[{', '.join(texts)}]" if texts else ""


def part_of(shape: Shape, transforms: Sequence[NDIndexer]) -> BufferPart:
    """Return the part of an array that indexers, applied in order, select.

    Raises:
      ValueError: for indices that are arrays, which TPUs do not support.
    """
    starts, sizes, strides = [0] * len(shape), list(shape), [1] * len(shape)
    axes = list(range(len(shape)))
    outside = None
    for indexer in transforms:
        if isinstance(indexer, RefView):
            if not indexer.changes:
                continue
            raise ValueError(
                f"a view {indexer} of a reference: models of TPUs read and write by them, and copy "
                "without"
            )
        if indexer.int_indexer_shape:
            raise ValueError(
                "Advanced indexers are not supported on TPU: index a reference with integers and "
                "slices, and the array that is read with arrays"
            )
        kept: list[int] = []
        for place, (axis, index) in enumerate(zip(axes, indexer.indices, strict=True)):
            bound = sizes[axis]
            if isinstance(index, Slice):
                start, size, stride = int(index.start), int(index.size), index.stride or 1
                kept.append(axis)
            else:
                start, size, stride = int(np.asarray(index)), 1, 1
            last = start + (size - 1) * stride
            if size and not (0 <= start and last < bound):
                shown = f"{start}" if size == 1 else f"{start}:{last + 1}"
                outside = outside or f"index {shown} of axis {place}, whose size is {bound}"
            starts[axis] += start * strides[axis]
            sizes[axis] = size
            strides[axis] *= stride
        axes = kept
    kept_shape = tuple([sizes[axis] for axis in axes])
    return BufferPart(tuple(starts), tuple(sizes), tuple(strides), kept_shape, outside)


def before_views(
    transforms: Sequence[NDIndexer],
) -> tuple[Sequence[NDIndexer], Sequence[NDIndexer]]:
    """Return the indexers before the first view in another shape or dtype, and the others."""
    changes = [isinstance(each, RefView) and each.changes for each in transforms]
    views = [place for place, is_change in enumerate(changes) if is_change]
    count = views[0] if views else len(transforms)
    return transforms[:count], transforms[count:]


def selected(values: NumPyArray, transforms: Sequence[NDIndexer]) -> NumPyArray:
    """Return the part of an array that indexers and views, applied in order, select.

    Raises:
      IndexError: if an index is out of bounds.
    """
    for each in transforms:
        if isinstance(each, RefView):
            values = _seen(values, each)
        else:
            part = _checked_part(values, each)
            values = values[part.slices].reshape(part.shape)
    return values


def with_selected(
    values: NumPyArray, transforms: Sequence[NDIndexer], new: NumPyArray
) -> NumPyArray:
    """Return an array with the elements replaced that indexers and views select.

    Raises:
      IndexError: if an index is out of bounds.
    """
    if not transforms:
        return new
    first, rest = transforms[0], transforms[1:]
    if isinstance(first, RefView):
        changed = with_selected(_seen(values, first), rest, new)
        own = None if first.dtype is None else values.dtype
        return _seen(changed, RefView(first.new_shape, first.shape, own))
    part = _checked_part(values, first)
    result = values.copy()
    place = result[part.slices]
    place[...] = with_selected(place.reshape(part.shape), rest, new).reshape(place.shape)
    return result


def _checked_part(values: NumPyArray, indexer: NDIndexer) -> BufferPart:
    part = part_of(values.shape, [indexer])
    if part.outside is not None:
        raise IndexError(f"Out-of-bounds {part.outside} of a view of shape {values.shape}")
    return part


def _seen(values: NumPyArray, view: RefView) -> NumPyArray:
    """Return an array in the shape of a view, or its bits in the dtype of one."""
    if view.dtype is None:
        return values.reshape(view.new_shape)
    dtype: Any = view.dtype
    old, new = values.dtype.itemsize, dtype.itemsize
    if bit_width(values.dtype) < 8 or bit_width(view.dtype) < 8:
        raise ValueError(
            f"a view of {values.dtype} as {view.dtype}: models of TPUs have views of whole bytes"
        )
    if old == new:
        return np.ascontiguousarray(values).view(dtype)
    # Rows that are packed together are adjacent in memory.
    count = old // new or new // old
    if new < old:
        words = np.ascontiguousarray(values)[..., None].view(dtype)
        return np.swapaxes(words, -1, -2).reshape(view.new_shape)
    split = values.reshape(*values.shape[:-2], values.shape[-2] // count, count, values.shape[-1])
    return np.ascontiguousarray(np.swapaxes(split, -1, -2)).view(dtype)[..., 0]


def _inside(part: BufferPart, shape: Shape) -> tuple[Index, Index]:
    """Return the index of the overlap of a part and an array, in the array and in the part."""
    ours: list[slice] = []
    theirs: list[slice] = []
    for r, size in zip(part.ranges, shape, strict=True):
        places = [k for k, i in enumerate(r) if 0 <= i < size]
        first, last = (places[0], places[-1]) if places else (0, -1)
        theirs.append(slice(first, last + 1))
        ours.append(slice(r[first], r[last] + 1, r.step) if places else slice(0, 0))
    return (*ours, ...), (*theirs, ...)


def _padded(shape: Shape, dtype: DType) -> Shape:
    """Return the shape of an array padded to whole tiles of a TPU."""
    if not shape:
        return shape
    tile = [8 * max(32 // bit_width(dtype), 1), 128][-len(shape) :]
    lead = len(shape) - len(tile)
    rounded = [-(-n // t) * t for n, t in zip(shape[lead:], tile, strict=True)]
    return (*shape[:lead], *rounded)


# ---- contents and accesses -----------------------------------------------------------------------


class Access(NamedTuple):
    """A read or a write of a part of a buffer.

    Attributes:
      thread: the thread that did it.
      time: the thread's time of the access.
      part: the part.
      is_write: whether it was a write.
      line: the line of the user's program.
    """

    thread: Thread
    time: int
    part: BufferPart
    is_write: bool
    line: str

    def describe(self, buffer: str) -> str:
        """Return the text of the access, for messages."""
        kind = "write" if self.is_write else "read"
        return f"{kind} of {buffer}{self.part} by {self.thread.name} at {self.line}"


def uninitialized_value(dtype: DType, kind: str) -> float:
    """Return the value that memory has before it is written to."""
    if kind == "zero":
        return 0
    if dtype == bool_:
        return True
    return iinfo(dtype).max if issubdtype(dtype, np.integer) else np.nan


class Held(NamedTuple):
    """Elements, and which of them have been written; None for all of them."""

    values: NumPyArray
    written: NumPyArray | None


class Buffer:
    """A buffer in a memory of a core or of a device.

    Attributes:
      key: its name among those of the core; other cores use the same one.
      name: its name, for messages.
      values: its contents.
      written: which elements have been written to; None if that is not recorded.
      is_shared: whether the cores of a device share it, as in HBM.
    """

    __slots__ = ("_log", "is_shared", "key", "name", "params", "values", "written")

    def __init__(
        self, key: Key, name: str, values: NumPyArray, is_shared: bool, params: InterpretParams
    ):
        self.key = key
        self.name = name
        self.values = values
        self.is_shared = is_shared
        self.params = params
        is_checked = params.uninitialized_memory == "raise"
        self.written = np.ones(values.shape, np.bool_) if is_checked else None
        self._log: list[Access] = []

    @staticmethod
    def empty(
        key: Key, name: str, shape: Shape, dtype: DType, is_shared: bool, params: InterpretParams
    ) -> "Buffer":
        """Return a buffer of unwritten elements."""
        value = uninitialized_value(dtype, params.uninitialized_memory)
        buffer = Buffer(key, name, np.full(shape, value, cast(Any, dtype)), is_shared, params)
        buffer.forget()
        return buffer

    def like(self) -> "Buffer":
        """Return a buffer of the same kind for another core."""
        v = self.values
        return Buffer.empty(self.key, self.name, v.shape, v.dtype, self.is_shared, self.params)

    @property
    def shape(self) -> Shape:
        return self.values.shape

    def forget(self) -> None:
        """Make all elements unwritten again."""
        if self.written is not None:
            self.written[...] = False

    # ---- reads and writes

    def read(self, part: BufferPart, thread: Thread, line: str, mask: Mask = None) -> Held:
        """Return the elements of a part.

        Raises:
          IndexError: if it is out of bounds.
          RuntimeError: for a race.
        """
        self._access(part, thread, line, False)
        lenient = self.params.out_of_bounds_reads == "uninitialized"
        ours, theirs = self._places(part, "read", line, mask, lenient)

        def read(array: NumPyArray, outside: object) -> NumPyArray:
            result = np.full(part.sizes, outside, array.dtype)
            result[theirs] = array[ours]
            return result.reshape(part.shape)

        value = uninitialized_value(self.values.dtype, self.params.uninitialized_memory)
        written = None if self.written is None else read(self.written, False)
        return Held(read(self.values, value), written)

    def write(
        self, part: BufferPart, held: Held, thread: Thread, line: str, mask: Mask = None
    ) -> None:
        """Write elements to a part, where a mask is True.

        Raises:
          IndexError: if it is out of bounds.
          RuntimeError: for a race.
        """
        self._access(part, thread, line, True)
        ours, theirs = self._places(part, "write", line, mask)

        def placed(array: NumPyArray) -> NumPyArray:
            return array.reshape(part.sizes)[theirs]

        where = True if mask is None else placed(mask)
        np.copyto(self.values[ours], placed(held.values), where=where)
        if self.written is not None:
            known = np.ones(part.shape, np.bool_) if held.written is None else held.written
            np.copyto(self.written[ours], placed(known), where=where)

    def _places(
        self, part: BufferPart, kind: str, line: str, mask: Mask, lenient: bool = False
    ) -> tuple[Index, Index]:
        """Return the index of the elements of a part in the buffer, and that of them in the part.

        Raises:
          IndexError: if others are out of bounds, unless `lenient` or masked out.
        """
        if part.outside is None:
            return part.slices, (...,)
        ours, theirs = _inside(part, self.shape)
        if not (lenient or self._only_masked(part, theirs, mask)):
            raise IndexError(
                f"Out-of-bounds {kind} of {self.name}, whose shape is {self.shape}: "
                f"{part.outside}. It is at {line}"
            )
        return ours, theirs

    def _only_masked(self, part: BufferPart, theirs: Index, mask: Mask) -> bool:
        """Return whether all elements out of bounds are masked out, or are padding of tiles."""
        if mask is not None:
            rest = mask.reshape(part.sizes).copy()
            rest[theirs] = False
            return not rest.any()
        if self.params.buffer_bounds != "padded":
            return False
        limits = _padded(self.shape, self.values.dtype)
        return all(
            not r or (r[0] >= 0 and r[-1] < n) for r, n in zip(part.ranges, limits, strict=True)
        )

    # ---- races

    def _access(self, part: BufferPart, thread: Thread, line: str, is_write: bool) -> None:
        if not self.params.detect_races:
            return
        access = Access(thread, thread.time, part, is_write, line)
        kept: list[Access] = []
        for other in self._log:
            is_before = thread.follows(other.thread, other.time)
            matters = is_write or other.is_write
            if not is_before and matters and part.overlaps(other.part):
                self._report(access, other)
            # An earlier access may be dropped if this one covers it and conflicts with the same
            # accesses: whatever races with the earlier one then races with this one, too.
            if not (is_before and (is_write or not other.is_write) and part.covers(other.part)):
                kept.append(other)
        self._log = [*kept, access]

    def _report(self, access: Access, other: Access) -> None:
        message = (
            f"RACE DETECTED\n  {access.describe(self.name)}\n  {other.describe(self.name)}\n"
            "No semaphore orders the two: wait for a copy, or for a signal, in between."
        )
        if self.params.on_race == "raise":
            raise RuntimeError(message)
        _logger.warning("%s", message)
