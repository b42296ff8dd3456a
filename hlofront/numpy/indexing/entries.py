"""The resolution of an index for a shape: an entry per axis, and its gather plan."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from types import EllipsisType
from typing import Any, TypeAlias

import numpy as np

from hlofront.base import errors, source
from hlofront.base.dtypes import array_dtype, default_dtype, iinfo, issubdtype
from hlofront.base.elements import bool_, host_number, int32
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, ArrayLike, Shape
from hlofront.core.aval import SymbolicSize, typeof
from hlofront.core.sizes.computed_slices import Slice
from hlofront.core.sizes.dimensions import as_size
from hlofront.core.sizes.symbolic import has_symbolic_size, max_dim, min_dim
from hlofront.core.trace import Tracer, process
from hlofront.primitives.arrays.creation import iota
from hlofront.primitives.arrays.shaping import (
    ascending,
    broadcast_in_dim_p,
    broadcast_shapes,
    rev_p,
)
from hlofront.primitives.arrays.slicing import concatenate_p
from hlofront.primitives.elementwise.compare import lt_p, select_n_p
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import add_p, mul

_INT32 = np.iinfo(np.int32)


# An item of an index, and a whole index: `x[item]` and `x[item, item]`.
IndexItem: TypeAlias = "ArrayLike | slice | Slice | EllipsisType | Sequence[IndexItem] | None"
Index: TypeAlias = "IndexItem | tuple[IndexItem, ...]"


class WholeAxis:
    """The type of `ALL`, the entry for an axis that is read whole."""

    __slots__ = ()

    def __repr__(self) -> str:
        return ":"


ALL = WholeAxis()
# A slice with its start counted from 0: start, count, step, stop.
SliceEntry: TypeAlias = "tuple[ArrayLike, int, int, int]"
# The entry of a resolved index: an int, a SliceEntry, ALL or an array of integers for an axis, or
# None for a new one. `type(entry)` distinguishes them, which type checkers do not follow.
Entry: TypeAlias = Any


class Resolved(NamedTuple):
    """An index resolved for one shape: an entry for each axis.

    Attributes:
      entries: in order, an entry per axis: an int, not yet counted from 0; an array of integers;
        ALL; or a slice as `(start, count, step, stop)`, counted from 0; and None for each new axis.
      sizes: the sizes of the axes that the entries are for: the array's, and 1 for each scalar
        boolean in the index.
      inserted: the axes of size 1 for scalar booleans.
      gap: the number of the entry before which an ellipsis stands for no axis: it keeps arrays on
        both sides of it separate, as an ellipsis for some axes would.
    """

    entries: list[Entry]
    sizes: tuple[int, ...]
    inserted: list[int]
    gap: int | None = None


def resolve(index: Index, shape: tuple[int, ...]) -> Resolved:
    """Resolve an index into one entry per axis, with no ellipsis or mask and slices counted from 0.

    Raises:
      IndexError: if there are too many indices, a mask of another shape, an axis without elements
        is indexed by an int, or something cannot be an index.
      NonConcreteBooleanIndexError: if there is a traced mask.
      TypeError: if an index is a list, a string or not of integers.
    """
    items = index if type(index) is tuple else _items(index)
    entries: list[Entry] = []
    sizes = shape
    inserted: list[int] = []
    axis = 0
    ellipsis = False
    gap = None
    for position, item in enumerate(items):
        kind = type(item)
        if kind is not int and kind is not slice and kind is not Slice:
            if item is None:
                entries.append(None)
                continue
            if item is Ellipsis:
                if ellipsis:
                    raise IndexError("an index can only have a single ellipsis ('...')")
                ellipsis = True
                missing = len(sizes) - axis - sum(map(_axes_taken, items[position + 1 :]))
                if missing < 0:
                    raise _too_many(items, shape)
                if not missing:
                    gap = len(entries)
                entries += (ALL,) * missing
                axis += missing
                continue
            item = as_index(item)
            kind = type(item)
            if kind is not int:
                if kind is bool:
                    sizes = (*sizes[:axis], 1, *sizes[axis:])
                    inserted.append(axis)
                    entries.append(np.zeros(int(item), default_dtype("i")))
                    axis += 1
                elif item.dtype == bool_:
                    entries += _positions(item, sizes, axis, position, items, shape)
                    axis += item.ndim
                else:
                    if axis >= len(sizes) or (not item.ndim and not sizes[axis]):
                        raise _no_element(items, shape, sizes, axis)
                    entries.append(item)
                    axis += 1
                continue
        if axis >= len(sizes):
            raise _too_many(items, shape)
        if kind is int:
            if not sizes[axis]:
                raise _no_element(items, shape, sizes, axis)
            entries.append(item)
        elif kind is Slice:
            entries.append(_resolved_window(item, sizes[axis], axis))
        else:
            entries.append(resolved_slice(item, sizes[axis], position))
        axis += 1
    if axis < len(sizes):
        entries += (ALL,) * (len(sizes) - axis)
    return Resolved(entries, sizes, inserted, gap)


def _items(index: Index) -> tuple[IndexItem, ...]:
    if isinstance(index, tuple):
        return tuple(index)
    if isinstance(index, list | range):
        kind = type(index).__name__
        advice = "jnp.array(indices)"
        if isinstance(index, list) and any(i is None or isinstance(i, slice) for i in index):
            advice = "tuple(indices)"
        raise TypeError(
            "Using a non-tuple sequence for multidimensional indexing is not allowed: got the "
            f"{kind} {source.shortened(repr(index))}. Use `x[{advice}]` instead of `x[indices]`."
        )
    return (index,)


def _too_many(items: tuple[IndexItem, ...], shape: tuple[int, ...]) -> IndexError:
    count = sum(map(_axes_taken, items))
    return IndexError(
        f"Too many indices: array is {len(shape)}-dimensional, but {count} were indexed: its shape "
        f"is {shape}."
    )


def _no_element(
    items: tuple[IndexItem, ...], shape: Shape, sizes: tuple[int, ...], axis: int
) -> IndexError:
    if axis >= len(sizes):
        return _too_many(items, shape)
    return IndexError(
        f"index is out of bounds for axis {axis} with size 0: an array of shape {shape} has no "
        "elements there."
    )


def _axes_taken(item: IndexItem) -> int:
    """Return the number of array axes that an item of an index covers."""
    if item is None or item is Ellipsis or isinstance(item, bool | np.bool_):
        return 0
    if getattr(item, "dtype", None) == bool_:
        return item.ndim
    if isinstance(item, list | tuple):
        array = np.asarray(item)
        return array.ndim if array.dtype == bool_ else 1
    return 1


def as_index(item: IndexItem) -> ArrayLike:
    """Return an index item as an int, a bool, or an array of integers or booleans.

    Host values become NumPy arrays.
    """
    if isinstance(item, bool | np.bool_):
        return bool(item)
    if isinstance(item, np.integer):
        return int(item)
    if hasattr(item, "__jax_array__"):
        item = item.__jax_array__()
    aval = getattr(item, "aval", None)
    if aval is None and isinstance(item, list | tuple):
        item = _from_sequence(item)
        aval = getattr(item, "aval", None)
    if aval is not None:
        dtype = aval.dtype
    elif isinstance(item, np.ndarray):
        dtype = item.dtype
        if dtype == bool_:
            return item if item.ndim else bool(item)
        if dtype.kind in "iu":
            narrow = array_dtype(dtype)
            return item if narrow == dtype else item.astype(narrow)
    elif isinstance(item, float | complex | np.generic):
        dtype = np.asarray(item).dtype
    elif isinstance(item, str | bytes):
        raise TypeError(
            f"JAX does not support string indexing; got idx={item!r}. Arrays have no named fields."
        )
    else:
        try:
            return int(operator.index(item))
        except TypeError:
            raise IndexError(
                "only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and integer or "
                f"boolean arrays are valid indices. Got {source.shortened(repr(item))}"
            ) from None
    if dtype == bool_:
        return concrete_mask(item)
    if not issubdtype(dtype, np.integer):
        raise TypeError(
            f"Indexer must have integer or boolean type, got indexer with type {dtype}. Convert it "
            "with .astype(int), or use // where it was divided."
        )
    return item


def _from_sequence(items: list[ArrayLike] | tuple[ArrayLike, ...]) -> np.ndarray:
    """Return a list inside an index as an array, of integers if the list is empty."""
    members = [_from_sequence(i) if isinstance(i, list | tuple) else i for i in items]
    if not any(hasattr(member, "aval") for member in members):
        array = np.asarray(members)
        return array if array.size else array.astype(np.int32)
    avals = [typeof(member) for member in members]
    shape = broadcast_shapes(*[aval.shape for aval in avals])
    dtype = np.result_type(*[aval.dtype for aval in avals])
    dims = ascending(len(shape) + 1)[1:]
    rows = [_broadcast(convert(m, dtype, False), (1, *shape), dims) for m in members]
    return process(concatenate_p, tuple(rows), {"dimension": 0})


def concrete_mask(mask: Array | np.ndarray) -> np.ndarray | bool:
    """Return a boolean mask on a device as a NumPy array, or a scalar mask as a bool.

    Raises an error for traced masks.
    """
    if isinstance(mask, Tracer):
        value = mask.to_concrete_value()
        if value is None:
            raise errors.NonConcreteBooleanIndexError(mask)
        mask = value
    mask = np.asarray(mask)
    return mask if mask.ndim else bool(mask)


def _positions(
    mask: np.ndarray,
    sizes: tuple[int, ...],
    axis: int,
    position: int,
    items: tuple[IndexItem, ...],
    shape: Shape,
) -> list[np.ndarray]:
    masked_sizes = sizes[axis : axis + mask.ndim]
    if len(masked_sizes) < mask.ndim:
        raise _too_many(items, shape)
    # An empty mask may be short along any axis, as it selects nothing.
    if any(own not in (0, size) for own, size in zip(mask.shape, masked_sizes, strict=True)):
        raise IndexError(
            f"boolean index did not match shape of indexed array in index {position}: got "
            f"{mask.shape}, expected {list(masked_sizes)}"
        )
    dtype = default_dtype("i")
    return [positions.astype(dtype) for positions in mask.nonzero()]


def resolved_slice(item: slice, size: int, position: int) -> SliceEntry | WholeAxis:
    if item.start is None and item.stop is None and item.step is None:
        return ALL
    try:
        start, stop, step = item.indices(size)
    except errors.TracerIntegerConversionError:
        raise IndexError(
            f"Slice entries must be static integers. Got {item} at position {position}. The shape "
            "of the result must be known while tracing. For a start that is computed, use "
            "lax.dynamic_slice_in_dim(x, start, size); for a size that is, keep the whole array "
            "and mask it: jnp.where(jnp.arange(n) < stop, x, 0)."
        ) from None
    except TypeError:
        if not has_symbolic_size((size, item.start, item.stop, item.step)):
            raise
        return _symbolic_slice(item, size)
    if step == 1:
        if start == 0 and stop == size:
            return ALL
        return start, max(0, stop - start), 1, stop
    count = len(range(start, stop, step))
    return start, count, step, stop


def _symbolic_slice(item: slice, size: Any) -> SliceEntry:
    """Return the entry of a slice where the axis or an end of the slice has a symbolic size.

    Raises:
      InconclusiveDimensionOperation: if it is not known whether an end counts from the end.
    """
    step = 1 if item.step is None else as_size(item.step)
    forward = step > 0
    # Backwards, the end before the first element is -1.
    lowest, highest = (0, size) if forward else (-1, size - 1)

    def clamped(end: Any, default: Any) -> Any:
        if end is None:
            return default
        end = as_size(end)
        return min_dim(highest, end) if end >= 0 else max_dim(lowest, size + end)

    start = clamped(item.start, lowest if forward else highest)
    stop = clamped(item.stop, highest if forward else lowest)
    distance, gap = (stop - start, step) if forward else (start - stop, -step)
    return start, max_dim(distance + gap - 1, 0) // gap, step, stop


def _resolved_window(item: Slice, size: int, axis: int) -> SliceEntry:
    """Resolve a Slice (`ds(start, size)`), whose elements all lie within the axis.

    A computed start is unchanged.
    """
    if item.is_dynamic_size or not item.stride:
        raise TypeError(
            f"Slices used as an index have a size that is known and a stride of at least 1: got "
            f"{item}"
        )
    count, step = operator.index(item.size), item.stride
    span = (count - 1) * step + 1 if count else 0
    if not 0 <= span <= size:
        raise TypeError(f"{item} is {span} elements long, and axis {axis} of the array {size}")
    start = item.start
    if not isinstance(start, int | np.integer) or isinstance(start, bool):
        aval = typeof(start)
        if aval.shape or not issubdtype(aval.dtype, np.integer):
            raise TypeError(f"the start of a Slice is an integer: got {start!r}")
    if item.is_dynamic_start:
        return start, count, step, 0
    start = operator.index(start)
    start = min(max(start + size if start < 0 else start, 0), size - span)
    return start, count, step, start + span


# ---- the gather plan ---------------------------------------------------------------------------


class GatherPlan(NamedTuple):
    """The operands and dimension numbers that express an index as a gather or a scatter.

    Attributes:
      indices: the indices for gather: integers, whose last axis has one per entry of `index_axes`.
      index_axes: the axis of the array that each index entry is for.
      collapsed: the axes of the array that the windows lack.
      window: the axes of the result, without new ones, that are axes of windows.
      window_sizes: the size of a window along each axis of the array.
      shape: the shape of the result, without new axes.
      full_shape: the shape of the result.
      new_axes: the axes of the result that None made.
      reversed: the axes of the result, without new ones, that go backwards.
      ordered: whether indices ascend and are unique, because they come from ints and slices only.
    """

    indices: Array | np.ndarray
    index_axes: tuple[int, ...]
    collapsed: tuple[int, ...]
    window: tuple[int, ...]
    window_sizes: tuple[int, ...]
    shape: tuple[int, ...]
    full_shape: tuple[int, ...]
    new_axes: tuple[int, ...]
    reversed: tuple[int, ...]
    ordered: bool


def gather_plan(resolved: Resolved, wrap: bool) -> GatherPlan:
    """Compute how a gather or scatter reads or writes the entries of an index.

    Arrays of one axis or more broadcast together, with ints and scalars. Their axes come where the
    first of these is, if no slice or new axis is between them; otherwise first. Negative indices
    count from the end if `wrap`.

    Raises ValueError if the arrays do not broadcast together.
    """
    entries, sizes, _, gap = resolved
    axes: dict[int, int] = {}
    values: dict[int, ArrayLike] = {}
    for k, entry in enumerate(entries):
        if entry is None:
            continue
        axis = axes[k] = len(axes)
        kind = type(entry)
        if kind is int:
            index = entry + sizes[axis] if entry < 0 and wrap else entry
            if isinstance(index, SymbolicSize):
                values[k] = host_number(index, int32)
            else:
                # Indices far out of bounds are clamped to the range of int32.
                values[k] = min(max(index, _INT32.min), _INT32.max)
        elif kind is not tuple and entry is not ALL:
            values[k] = from_start(entry, sizes[axis]) if wrap else entry
    group, block = _broadcast_together(values)
    order = range(len(entries))
    if group and (
        group[-1] - group[0] + 1 != len(group) or (gap is not None and group[0] < gap <= group[-1])
    ):
        order = group[:1] + [k for k in order if k not in values]

    components: list[tuple[ArrayLike, tuple[int, ...]]] = []
    index_axes: list[int] = []
    collapsed: list[int] = []
    window: list[int] = []
    window_sizes = list(sizes)
    shape: list[int] = []
    batch: list[int] = []
    full_shape: list[int] = []
    new_axes: list[int] = []
    backwards: list[int] = []
    for k in order:
        entry = entries[k]
        if entry is None:
            new_axes.append(len(full_shape))
            full_shape.append(1)
            continue
        axis = axes[k]
        if entry is ALL:
            window.append(len(shape))
            shape.append(sizes[axis])
            full_shape.append(sizes[axis])
            continue
        if group and k in values:
            if k != group[0]:
                continue
            dims = tuple(range(len(batch), len(batch) + len(block)))
            for member in group:
                components.append((_as_int32(values[member]), dims))
                index_axes.append(axes[member])
                collapsed.append(axes[member])
                window_sizes[axes[member]] = 1
            batch += block
            shape += block
            full_shape += block
            continue
        index_axes.append(axis)
        if k in values:
            components.append((_as_int32(values[k]), ()))
            collapsed.append(axis)
            window_sizes[axis] = 1
            continue
        start, count, step, _ = entry
        if step == 1:
            components.append((_as_int32(start), ()))
            window.append(len(shape))
            window_sizes[axis] = count
        else:
            if step < 0:
                backwards.append(len(shape))
            components.append((_every(start, count, step), (len(batch),)))
            batch.append(count)
            collapsed.append(axis)
            window_sizes[axis] = 1
        shape.append(count)
        full_shape.append(count)
    return GatherPlan(
        _joined(components, tuple(batch)),
        tuple(index_axes),
        tuple(sorted(collapsed)),
        tuple(window),
        tuple(window_sizes),
        tuple(shape),
        tuple(full_shape),
        tuple(new_axes),
        tuple(backwards),
        not group,
    )


def from_start(index: ArrayLike, size: int) -> Array:
    """Return indices along an axis of `size` elements, with negative ones counted from the end."""
    dtype = typeof(index).dtype
    if not issubdtype(dtype, np.signedinteger):
        return index
    if dtype.itemsize < 4 and size > int(iinfo(dtype).max):
        index, dtype = convert(index, int32, False), int32
    if isinstance(index, np.ndarray):
        negative = np.less(index, 0)
        if not index.ndim:
            index, negative = index[()], negative[()]
    else:
        negative = process(lt_p, (index, host_number(0, dtype)), {})
    moved = process(add_p, (index, host_number(size, dtype)), {})
    return process(select_n_p, (negative, index, moved), {})


def _broadcast_together(values: dict[int, ArrayLike]) -> tuple[list[int], tuple[int, ...]]:
    """Broadcast the arrays and scalars in `values` to one shape, updating the dictionary.

    Return their keys and shape.

    If there are only ints and scalars, nothing is broadcast and the results are empty.
    """
    shapes = {k: () if type(value) is int else value.shape for k, value in values.items()}
    if not any(shapes.values()):
        return [], ()
    try:
        block = broadcast_shapes(*shapes.values())
    except ValueError:
        raise ValueError(
            "Incompatible shapes for broadcasting: the arrays of an index must broadcast together, "
            f"got shapes={[shapes[k] for k in shapes]}. To index rows and columns independently, "
            "use x[rows[:, None], columns], or jnp.ix_."
        ) from None
    for k, value in values.items():
        if shapes[k] != block:
            dims = ascending(len(block))[len(block) - len(shapes[k]) :]
            values[k] = _broadcast(value, block, dims)
    return list(values), block


def _broadcast(value: ArrayLike, shape: tuple[int, ...], dims: tuple[int, ...]) -> Array:
    return process(
        broadcast_in_dim_p,
        (value,),
        {"shape": shape, "broadcast_dimensions": dims, "sharding": None},
    )


def _as_int32(value: ArrayLike) -> ArrayLike:
    if type(value) is int:
        return np.int32(value)
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value[()]
    return convert(value, int32, False)


def _every(start: ArrayLike, count: int, step: int) -> Array:
    """Return the `count` indices of a slice from `start` by `step`, in ascending order."""
    if count <= 1 and not _INT32.min <= step <= _INT32.max:
        step = 1
    steps = mul(np.int32(step), iota(int32, count))
    indices = process(add_p, (_as_int32(start), steps), {})
    return process(rev_p, (indices,), {"dimensions": (0,)}) if step < 0 else indices


def _joined(
    components: list[tuple[ArrayLike, tuple[int, ...]]], batch: tuple[int, ...]
) -> ArrayLike:
    parts = tuple([_broadcast(value, (*batch, 1), dims) for value, dims in components])
    if not parts:
        return np.zeros((*batch, 0), np.int32)
    if len(parts) == 1:
        return parts[0]
    return process(concatenate_p, parts, {"dimension": len(batch)})
