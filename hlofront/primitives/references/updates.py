"""Reads and writes of arrays at the indexers of references, as operations on values."""

import operator
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from hlofront.base.dtypes import bit_width
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import ArrayLike, DType
from hlofront.core.aval import typeof
from hlofront.core.references import NDIndexer, RefView, is_known_integer
from hlofront.core.sizes.computed_slices import Slice
from hlofront.primitives.arrays.creation import full_like
from hlofront.primitives.arrays.dynamic_slicing import dynamic_slice, dynamic_update_slice
from hlofront.primitives.arrays.gathering import GatherDimensionNumbers, GatherScatterMode, gather
from hlofront.primitives.arrays.scattering import ScatterDimensionNumbers, scatter, scatter_add
from hlofront.primitives.arrays.shaping import reshape, transpose
from hlofront.primitives.arrays.slicing import concatenate
from hlofront.primitives.arrays.slicing import slice as static_slice
from hlofront.primitives.elementwise.compare import lt, select_n
from hlofront.primitives.elementwise.converting import bitcast_convert_type, convert
from hlofront.primitives.elementwise.elementwise import add

Update = Callable[[ArrayLike], ArrayLike]


def read_at(array: ArrayLike, transforms: Sequence[NDIndexer]) -> ArrayLike:
    """Return the part of an array that indexers, applied in order, select."""
    for indexer in transforms:
        if isinstance(indexer, RefView):
            array = _seen(array, indexer)
            continue
        part = _Part.of(indexer)
        array = part.gathered(part.squeezed(part.strided(part.window(array))))
    return array


def write_at(array: ArrayLike, transforms: Sequence[NDIndexer], value: ArrayLike) -> ArrayLike:
    """Return an array with a value in the part that indexers select."""
    return _updated(array, transforms, lambda _: value, scatter)


def add_at(array: ArrayLike, transforms: Sequence[NDIndexer], value: ArrayLike) -> ArrayLike:
    """Return an array with a value added to the part that indexers select."""
    return _updated(array, transforms, lambda old: add(old, value), scatter_add, value)


def _updated(
    array: ArrayLike,
    transforms: Sequence[NDIndexer],
    update: Update,
    scattered: Callable[..., ArrayLike],
    value: ArrayLike | None = None,
) -> ArrayLike:
    """Return an array in which `update` has replaced the part that indexers select.

    Args:
      array: the array.
      transforms: the indexers.
      update: a function from the old part to the new one.
      scattered: the scatter function for updates at arrays of indices.
      value: the updates of `scattered`; None for the result of `update`.
    """
    if not transforms:
        return update(array)
    first, rest = transforms[0], transforms[1:]
    if isinstance(first, RefView):
        new = _updated(_seen(array, first), rest, update, scattered, value)
        own = None if first.dtype is None else typeof(array).dtype
        return _seen(new, RefView(first.new_shape, first.shape, own))
    part = _Part.of(first)
    window = part.window(array)
    strided = part.strided(window)
    squeezed = part.squeezed(strided)
    if not part.arrays:
        new = _updated(squeezed, rest, update, scattered, value)
    elif rest or value is None:
        new = part.scattered(
            scatter, squeezed, _updated(part.gathered(squeezed), rest, update, scattered, value)
        )
    else:
        new = part.scattered(scattered, squeezed, value)
    new = reshape(new, typeof(strided).shape) if new is not squeezed else strided
    return part.with_window(array, part.with_strided(window, new))


def _seen(array: ArrayLike, view: RefView) -> ArrayLike:
    """Return an array reshaped, or with its bits reinterpreted, as a view shows it."""
    if view.dtype is None:
        return reshape(array, view.new_shape)
    return with_bits_as(array, view.dtype, len(view.shape) - 2)


def with_bits_as(array: ArrayLike, dtype: DType, axis: int) -> ArrayLike:
    """Reinterpret the bits of an array as a dtype, packing or unpacking elements along an axis."""
    aval: Any = typeof(array)
    shape = list(aval.shape)
    old, new = bit_width(aval.dtype), bit_width(dtype)
    rank = len(shape)
    if new < old:
        # The parts of an element form a new last axis, which moves to just after `axis`.
        parts = bitcast_convert_type(array, dtype)
        shape[axis] *= old // new
        order = [*range(axis + 1), rank, *range(axis + 1, rank)]
        return reshape(transpose(parts, order), shape)
    if new > old:
        count = new // old
        split = reshape(array, [*shape[:axis], shape[axis] // count, count, *shape[axis + 1 :]])
        array = transpose(split, [*range(axis + 1), *range(axis + 2, rank + 1), axis + 1])
    return bitcast_convert_type(array, dtype)


class _Part(NamedTuple):
    """The part of an array that an indexer selects, in steps that can each be read and written.

    First a contiguous window is sliced; along axes with a stride, every n-th element of it is kept;
    axes with one integer are removed; arrays of integers gather along the others.

    Attributes:
      shape: the shape of the array.
      starts: per axis the start of the window.
      sizes: per axis the size of the window.
      strides: per axis the distance between elements in the window.
      integers: the axes that one integer indexes, which are removed.
      arrays: for each axis that an array of integers indexes, its number among the remaining axes,
        and the indices.
      array_shape: the shape of these arrays.
      first_array_axis: the first axis of the result that comes from these arrays.
    """

    shape: tuple[int, ...]
    starts: tuple[Any, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    integers: tuple[int, ...]
    arrays: tuple[tuple[int, ArrayLike], ...]
    array_shape: tuple[int, ...]
    first_array_axis: int

    @classmethod
    def of(cls, indexer: NDIndexer) -> "_Part":
        """Return the part that an indexer selects."""
        starts: list[Any] = []
        sizes: list[int] = []
        strides: list[int] = []
        integers: list[int] = []
        arrays: list[tuple[int, ArrayLike]] = []
        for axis, (index, size) in enumerate(zip(indexer.indices, indexer.shape, strict=True)):
            start: ArrayLike = 0
            count, stride = size, 1
            if isinstance(index, Slice):
                start, stride = index.start, index.stride or 1
                count = (index.size - 1) * stride + 1 if index.size else 0
            elif indexer.int_indexer_shape:
                arrays.append((axis - len(integers), index))
            else:
                start, count = index, 1
                integers.append(axis)
            if is_known_integer(start):
                start = operator.index(cast(int, start))
                start = start + size if start < 0 else start
                start = min(max(start, 0), size - count)
            starts.append(start)
            sizes.append(count)
            strides.append(stride)
        return cls(
            indexer.shape,
            tuple(starts),
            tuple(sizes),
            tuple(strides),
            tuple(integers),
            tuple(arrays),
            indexer.int_indexer_shape,
            indexer.first_array_axis,
        )

    @property
    def is_known(self) -> bool:
        """True if all starts of the window are known at trace time."""
        return all(isinstance(start, int) for start in self.starts)

    def window(self, array: ArrayLike) -> ArrayLike:
        """Return the window of an array."""
        if self.sizes == self.shape:
            return array
        if self.is_known:
            limits = [start + size for start, size in zip(self.starts, self.sizes, strict=True)]
            return static_slice(array, self.starts, limits)
        return dynamic_slice(array, self._starts_of_one_dtype(), self.sizes)

    def with_window(self, array: ArrayLike, window: ArrayLike) -> ArrayLike:
        """Return an array with its window replaced."""
        if self.sizes == self.shape:
            return window
        return dynamic_update_slice(array, window, self._starts_of_one_dtype())

    def _starts_of_one_dtype(self) -> list[ArrayLike]:
        """Return the starts, some of them traced, in the widest dtype of the traced ones."""
        traced = [typeof(start).dtype for start in self.starts if not isinstance(start, int)]
        dtype = max(traced, key=_width, default=np.dtype("int32"))
        return [convert(start, dtype, False) for start in self.starts]

    def strided(self, window: ArrayLike) -> ArrayLike:
        """Return every n-th element of a window along the axes that have a stride."""
        if all(stride == 1 for stride in self.strides):
            return window
        return static_slice(window, (0,) * len(self.sizes), self.sizes, self.strides)

    def with_strided(self, window: ArrayLike, strided: ArrayLike) -> ArrayLike:
        """Return a window with the elements that `strided` reads replaced."""
        axes = [axis for axis, stride in enumerate(self.strides) if stride != 1]
        if not axes:
            return strided
        shape = typeof(strided).shape
        along = [np.arange(shape[axis], dtype=np.int32) * self.strides[axis] for axis in axes]
        indices = np.stack(np.meshgrid(*along, indexing="ij"), axis=-1)
        kept_axes = tuple(axis for axis in range(len(shape)) if axis not in axes)
        numbers = ScatterDimensionNumbers(kept_axes, tuple(axes), tuple(axes))
        return scatter(window, indices, strided, numbers)

    def squeezed(self, strided: ArrayLike) -> ArrayLike:
        """Return an array without the axes that are indexed by one integer."""
        if not self.integers:
            return strided
        shape = typeof(strided).shape
        return reshape(strided, [n for axis, n in enumerate(shape) if axis not in self.integers])

    def _numbers(self, array: ArrayLike) -> tuple[list[int], list[int], ArrayLike]:
        """Return the axes that arrays index, the result's axes of slices, and the indices."""
        axes = [axis for axis, _ in self.arrays]
        first, count = self.first_array_axis, len(self.array_shape)
        rest = typeof(array).ndim - len(axes)
        slice_axes = [axis if axis < first else axis + count for axis in range(rest)]
        sizes = typeof(array).shape
        columns = [
            reshape(_from_start(index, sizes[axis]), (*self.array_shape, 1))
            for axis, index in self.arrays
        ]
        indices = concatenate(columns, len(self.array_shape)) if len(columns) > 1 else columns[0]
        return axes, slice_axes, indices

    def gathered(self, array: ArrayLike) -> ArrayLike:
        """Return the elements of an array that the part's arrays of integers select."""
        if not self.arrays:
            return array
        axes, window_axes, indices = self._numbers(array)
        sizes = [1 if axis in axes else n for axis, n in enumerate(typeof(array).shape)]
        numbers = GatherDimensionNumbers(tuple(window_axes), tuple(axes), tuple(axes))
        return gather(array, indices, numbers, sizes, mode=GatherScatterMode.CLIP)

    def scattered(
        self, function: Callable[..., ArrayLike], array: ArrayLike, value: ArrayLike
    ) -> ArrayLike:
        """Update an array with a value by `function`, a scatter, where the index arrays select."""
        axes, window_axes, indices = self._numbers(array)
        numbers = ScatterDimensionNumbers(tuple(window_axes), tuple(axes), tuple(axes))
        return function(array, indices, value, numbers)


def _width(dtype: DType) -> int:
    return dtype.itemsize


def _from_start(index: ArrayLike, size: int) -> ArrayLike:
    """Normalize negative indices, which count from the end of an axis."""
    if not np.issubdtype(typeof(index).dtype, np.signedinteger):
        return index
    zeros = full_like(index, 0)
    return select_n(lt(index, zeros), index, add(index, full_like(index, size)))
