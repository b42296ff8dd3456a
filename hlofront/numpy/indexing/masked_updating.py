"""The update of elements where a mask is true, as a select of static shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from hlofront.base import errors
from hlofront.base.typing import Array, ArrayLike, Shape
from hlofront.bridge.client import ArrayImpl
from hlofront.core.aval import typeof
from hlofront.core.trace import Tracer, is_eager, process
from hlofront.numpy.indexing.entries import ALL, resolve
from hlofront.numpy.indexing.reading import read
from hlofront.numpy.indexing.updates import UpdateOptions, fit, in_common_dtype, update
from hlofront.numpy.support.naming import named
from hlofront.primitives.arrays.shaping import ascending, broadcast_in_dim_p, reshape
from hlofront.primitives.elementwise import elementwise
from hlofront.primitives.elementwise.compare import select_n
from hlofront.primitives.elementwise.converting import convert
from hlofront.runtime.dispatch.operation import operation

if TYPE_CHECKING:
    from hlofront.numpy.indexing.entries import Entry, Index, IndexItem

_COMBINE = {
    "add": elementwise.add,
    "subtract": elementwise.sub,
    "multiply": elementwise.mul,
    "min": elementwise.min,
    "max": elementwise.max,
}


def find_mask(index: Index, values: ArrayLike) -> int | None:
    """Return the position in an index of a mask that an update can select by, or None.

    An update can select by a mask that is traced, or that is on a device while the values are a
    scalar.
    """
    if type(index) is not tuple:
        return 0 if _selects(index, values) else None
    mask_position = None
    for position, item in enumerate(index):
        if _selects(item, values):
            if mask_position is not None:
                return None
            mask_position = position
    if mask_position is not None and not isinstance(index[mask_position], Tracer):
        # If a concrete mask is among other arrays, general indexing handles it.
        other_entries = (*index[:mask_position], *index[mask_position + 1 :])
        return mask_position if all(map(_is_basic, other_entries)) else None
    return mask_position


def _is_basic(item: IndexItem) -> bool:
    if item is Ellipsis or isinstance(item, slice):
        return True
    return isinstance(item, int | np.integer) and not isinstance(item, bool)


def _selects(item: IndexItem, values: ArrayLike) -> bool:
    aval = getattr(item, "aval", None)
    if aval is None or aval.dtype != bool or not aval.shape:
        return False
    if isinstance(item, Tracer):
        return item.to_concrete_value() is None
    return type(item) is ArrayImpl and is_eager() and not getattr(values, "shape", ())


def masked_update(
    array: Array,
    index: Index,
    position: int,
    method: str,
    values: ArrayLike | Callable[[Array], Array],
) -> Array:
    """Compute `array.at[index].method(values)`, where `index` has a mask at `position`.

    The other entries of the index may be ints and slices. If any of them is not `:`, the values
    must be a scalar; otherwise they must be constant along the axes of the mask.

    Raises:
      IndexError: if the shape of the mask is not that of the axes it indexes.
      NonConcreteBooleanIndexError: if there is a value for each true element of the mask.
    """
    items = index if type(index) is tuple else (index,)
    mask = items[position]
    shape = array.aval.shape
    unmasked = (*items[:position], *(slice(None),) * mask.aval.ndim, *items[position + 1 :])
    resolved = resolve(unmasked, shape)
    # The entries before the mask are the first `position`; an ellipsis counts as all its axes.
    first = position
    if any(item is Ellipsis for item in items[:position]):
        first += len(resolved.entries) - len(unmasked)
    if any(entry is not ALL for entry in resolved.entries):
        if resolved.inserted or getattr(values, "shape", ()) or not _all_basic(resolved.entries):
            raise errors.NonConcreteBooleanIndexError(mask)
        part = read(array, resolved)
        axis = sum(
            entry is None or entry is ALL or type(entry) is tuple
            for entry in resolved.entries[:first]
        )
        part = _masked(part, mask, values, axis, method, unmasked, shape)
        return update(array, resolved, UpdateOptions("set"), part)
    return _masked(array, mask, values, first, method, unmasked, shape)


def _all_basic(entries: list[Entry]) -> bool:
    return not any(getattr(entry, "ndim", 0) for entry in entries)


def _masked(
    array: Array,
    mask: Array,
    values: ArrayLike | Callable[[Array], Array],
    axis: int,
    method: str,
    unmasked: Index,
    shape: Shape,
) -> Array:
    covered = array.aval.shape[axis : axis + mask.aval.ndim]
    if covered != mask.aval.shape:
        raise IndexError(
            f"boolean index did not match shape of indexed array: got a mask of shape "
            f"{mask.aval.shape} for axes of sizes {covered} of an array of shape {shape}"
        )
    if method == "apply":
        return _chosen(array, mask, values(array), axis)
    values_shape = getattr(values, "shape", ())
    if values_shape:
        values = _broadcast_along_mask(array, mask, values, axis, method)
    if is_eager():
        return _masked_eagerly(array, mask, values, axis, method)
    return _combined(array, mask, values, axis, method)


def _broadcast_along_mask(
    array: Array, mask: Array, values: ArrayLike, axis: int, method: str
) -> Array:
    """Reshape values of `x[mask]`, constant along the axes of the mask, to broadcast with x."""
    values_shape = typeof(values).shape
    after = array.aval.ndim - axis - mask.aval.ndim
    if len(values_shape) <= after:
        return values
    if values_shape[len(values_shape) - after - 1] != 1:
        raise errors.NonConcreteBooleanIndexError(mask)
    cut = len(values_shape) - after - 1
    return reshape(values, (*values_shape[:cut], *(1,) * mask.aval.ndim, *values_shape[cut + 1 :]))


def _combined(
    array: Array, mask: Array, values: ArrayLike | Callable[[Array], Array], axis: int, method: str
) -> Array:
    before = typeof(array)
    array, values = in_common_dtype(array, values)
    values = fit(values, before.shape, method)
    if method != "set":
        values = _COMBINE[method](array, values)
    result = _chosen(array, mask, values, axis)
    return convert(result, before.dtype, before.weak_type)


@operation(static_argnames=("axis", "method"))
@named("at_update")
def _masked_eagerly(array: Array, mask: Array, values: ArrayLike, axis: int, method: str) -> Array:
    return _combined(array, mask, values, axis, method)


def _chosen(array: Array, mask: Array, values: ArrayLike, axis: int) -> Array:
    shape = typeof(array).shape
    if typeof(mask).shape != shape:
        dims = ascending(len(shape))[axis : axis + typeof(mask).ndim]
        mask = process(
            broadcast_in_dim_p,
            (mask,),
            {"shape": shape, "broadcast_dimensions": dims, "sharding": None},
        )
    dtype = typeof(array).dtype
    values = fit(convert(values, dtype, False), shape, "apply")
    return select_n(mask, convert(array, dtype, False), values)
