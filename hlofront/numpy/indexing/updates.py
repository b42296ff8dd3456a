"""The scatters behind `x.at[index].set(values)` and the other updates, and their dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from hlofront.base import source
from hlofront.base.dtypes import array_dtype, check_integer, issubdtype, lattice_result
from hlofront.base.elements import host_number
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.tree import tree_leaves
from hlofront.base.typing import Array, ArrayLike, DType
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.sharding.partition import PartitionSpec
from hlofront.core.sharding.requested_shardings import named_sharding
from hlofront.core.trace import Tracer, process
from hlofront.higher_order.control_flow.scatter_apply import scatter_apply
from hlofront.numpy.arrays.creation import asarray
from hlofront.numpy.elementwise.powers import power
from hlofront.numpy.elementwise.ufuncs import divide
from hlofront.numpy.indexing.entries import GatherPlan, Resolved, gather_plan
from hlofront.numpy.indexing.reading import with_inserted
from hlofront.primitives.arrays import scattering
from hlofront.primitives.arrays.creation import full_like
from hlofront.primitives.arrays.gathering import GatherScatterMode
from hlofront.primitives.arrays.scattering import ScatterDimensionNumbers
from hlofront.primitives.arrays.shaping import ascending, broadcast_in_dim_p, rev_p, squeeze_p
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.sharding.resharding import split_as

if TYPE_CHECKING:
    from hlofront.primitives.arrays.gathering import GatherScatterMode

_SCATTERS = {
    "set": scattering.scatter,
    "add": scattering.scatter_add,
    "subtract": scattering.scatter_sub,
    "multiply": scattering.scatter_mul,
    "min": scattering.scatter_min,
    "max": scattering.scatter_max,
}
# These methods have no scatter: an array of ones is multiplied by the values at the index, and then
# scales the whole array.
BY_SCALE = {"divide": divide, "power": power}


class UpdateOptions(NamedTuple):
    """The name and options of an `x.at[index]` method, such as "set"; see AtIndex."""

    method: str
    mode: GatherScatterMode | None = None
    indices_are_sorted: bool = False
    unique_indices: bool = False
    wrap: bool = True


_DEFAULTS = {method: UpdateOptions(method) for method in (*_SCATTERS, *BY_SCALE, "apply")}


def update_options(
    method: str, mode: GatherScatterMode | None, is_sorted: bool, is_unique: bool, wrap: bool
) -> UpdateOptions:
    """Return the options of an update; a method's default options are a shared object."""
    if mode is None and not is_sorted and not is_unique and wrap:
        return _DEFAULTS[method]
    return UpdateOptions(method, mode, is_sorted, is_unique, wrap)


def update(
    array: Array,
    resolved: Resolved,
    options: UpdateOptions,
    values: ArrayLike | Callable[..., Array],
) -> Array:
    """Return the array with `values` set, added, ... at an index.

    For "apply", `values` is a function.
    """
    method, mode, indices_are_sorted, unique_indices, wrap = options
    if method in BY_SCALE:
        scale = update(full_like(array, 1), resolved, options._replace(method="multiply"), values)
        return BY_SCALE[method](array, scale)
    plan = gather_plan(resolved, wrap)
    if 0 in plan.shape:
        return array
    numbers = ScatterDimensionNumbers(plan.window, plan.collapsed, plan.index_axes)
    keywords = {
        "indices_are_sorted": indices_are_sorted or plan.ordered,
        "unique_indices": unique_indices or plan.ordered,
        "mode": mode,
    }
    before = typeof(array)
    if method == "apply":
        array = scatter_apply(
            with_inserted(array, resolved),
            plan.indices,
            values,
            numbers,
            update_shape=plan.shape,
            **keywords,
        )
        return _without_inserted(array, resolved)
    array, values = in_common_dtype(array, values)
    array = with_inserted(array, resolved)
    values = fit(values, plan.full_shape, method, _sharding_of_part(typeof(array), plan))
    if plan.new_axes:
        values = process(squeeze_p, (values,), {"dimensions": plan.new_axes})
    if plan.reversed:
        values = process(rev_p, (values,), {"dimensions": plan.reversed})
    array = _SCATTERS[method](array, plan.indices, values, numbers, **keywords)
    return convert(_without_inserted(array, resolved), before.dtype, before.weak_type)


def _sharding_of_part(array: ShapedArray, plan: GatherPlan) -> Any:
    """Return the sharding of the indexed part of an array, with new axes; None over no mesh.

    The axes of windows are split as the array's own are.
    """
    if array.spec is None:
        return None
    windowed = iter([axis for axis in range(array.ndim) if axis not in plan.collapsed])
    entries = [
        array.spec.partitions[next(windowed)] if axis in plan.window else None
        for axis in range(len(plan.shape))
    ]
    for axis in sorted(plan.new_axes):
        entries.insert(axis, None)
    return named_sharding(array.mesh, PartitionSpec(*entries))


def _without_inserted(array: Array, resolved: Resolved) -> Array:
    if not resolved.inserted:
        return array
    return process(squeeze_p, (array,), {"dimensions": tuple(resolved.inserted)})


def in_common_dtype(array: Array, values: ArrayLike) -> tuple[Array, ArrayLike]:
    """Return array and values in the array's dtype if it holds the values, else in a common one."""
    aval, other = typeof(array), typeof(values)
    dtype, weak = _common(aval, other)
    if dtype == aval.dtype:
        return array, convert(values, dtype, aval.weak_type and other.weak_type)
    return convert(array, dtype, weak), convert(values, dtype, weak)


def _common(aval: ShapedArray, other: ShapedArray) -> tuple[np.dtype, bool]:
    if aval.dtype == other.dtype:
        return aval.dtype, aval.weak_type
    return lattice_result(((aval.dtype, aval.weak_type), (other.dtype, other.weak_type)))


def fit(
    values: ArrayLike, shape: tuple[int, ...], method: str, sharding: object = None
) -> ArrayLike:
    """Broadcast values to `shape`, that of the indexed part of an array, split by `sharding`.

    Raises ValueError if they do not broadcast to it.
    """
    values_shape = typeof(values).shape
    if values_shape == shape:
        return split_as(values, sharding)
    rank, new_axes = len(shape), len(shape) - len(values_shape)
    if new_axes < 0 or any(
        size not in (1, expected)
        for size, expected in zip(values_shape, shape[new_axes:], strict=True)
    ):
        raise ValueError(
            f"Incompatible shapes for broadcasting: x.at[index].{method}(values) requires values "
            f"that broadcast to {shape}, the shape of x[index]; got shape {values_shape}."
        )
    return process(
        broadcast_in_dim_p,
        (values,),
        {"shape": shape, "broadcast_dimensions": ascending(rank)[new_axes:], "sharding": sharding},
    )


# ---- values that do not fit the dtype ----------------------------------------------------------

_FLOATING = (np.floating, np.complexfloating)
_HELD_BY = {bool: (np.bool_, np.number), int: (np.number,), float: _FLOATING}


def warn_if_lossy(aval: ShapedArray, values: ArrayLike) -> None:
    """Warn if an array of this aval cannot hold the dtype of the values."""
    kind = type(values)
    dtype = aval.dtype
    if kind is float and dtype.kind == "f":
        return
    if kind in _HELD_BY and any(issubdtype(dtype, held) for held in _HELD_BY[kind]):
        return
    other = typeof(values)
    if other.dtype == dtype:
        return
    if _common(aval, other)[0] != dtype:
        source.warn(
            "scatter inputs have incompatible types: cannot safely cast value from dtype="
            f"{other.dtype} to dtype={dtype} with jax_numpy_dtype_promotion=standard. In future "
            "JAX releases this will result in an error. Convert the value: "
            f"x.at[index].set(value.astype({str(dtype)!r})), or the array before.",
            FutureWarning,
        )


def as_values(values: ArrayLike) -> ArrayLike:
    """Return values to write into an array: arrays and scalars unchanged, a list as an array.

    Raises:
      TypeError: for values of a dtype that no device has, such as strings.
      ValueError: for None, and lists whose rows are of different lengths.
    """
    if isinstance(values, bool | int | float | complex) or hasattr(values, "aval"):
        return values
    if hasattr(values, "__jax_array__"):
        return values.__jax_array__()
    if values is None:
        raise ValueError("None is not a valid value for jnp.array: x.at[index] expects numbers.")
    if not isinstance(values, np.ndarray | np.generic):
        if any(isinstance(leaf, Tracer) for leaf in tree_leaves(values)):
            return asarray(values)
        values = np.asarray(values)
    dtype = array_dtype(values.dtype)
    return values if dtype == values.dtype else values.astype(dtype)


def wide_integer(value: int, dtype: DType) -> int | np.generic:
    """Return a Python integer of more than 32 bits as a value to write to an array of `dtype`.

    The value has the array's dtype if that is unsigned and holds it.

    Raises:
      OverflowError: if neither that nor the default integer dtype holds it.
    """
    if dtype.kind == "u" and 0 <= value <= np.iinfo(dtype).max:
        return host_number(value, dtype)
    check_integer(value)
    return value
