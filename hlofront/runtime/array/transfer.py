"""Functions that move arrays between devices and the host, or wait for them."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from hlofront.base.array_lines import array_lines, remember
from hlofront.base.boundary import boundary, filter_traceback
from hlofront.base.caches import memoize
from hlofront.base.config import options, remove_size_one_mesh_axis_from_type
from hlofront.base.dtypes import float0
from hlofront.base.tree import PyTree, tree_flatten
from hlofront.base.tree_prefixes import broadcast_prefix, is_none
from hlofront.base.typing import Array, ArrayLike
from hlofront.bridge import arrays as bridge
from hlofront.bridge.arrays import Explicit, batched_device_put
from hlofront.bridge.client import (
    ArrayImpl,
    Client,
    Device,
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
)
from hlofront.bridge.members import device_list_of, is_committed, sharding_of
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.rules import run
from hlofront.core.sharding.partition import PartitionSpec
from hlofront.core.sharding.requested_shardings import over_devices
from hlofront.core.trace import Tracer, is_eager, leaked
from hlofront.pjrt import clients
from hlofront.pjrt.deletion import check_not_deleted
from hlofront.pjrt.host_value import host_value, prefetch
from hlofront.pjrt.layouts import Format, Layout
from hlofront.pjrt.named_shardings import has_summands
from hlofront.pjrt.shardings import Index
from hlofront.primitives.arrays.creation import of_rank
from hlofront.primitives.sharding import placing
from hlofront.primitives.sharding.placing import CopySemantics, MemorySpace, device_put_p
from hlofront.runtime.array.relayout import laid_out
from hlofront.runtime.sharding.placement import (
    DevicePlacement,
    check_attached,
    default_placement,
    host_put,
    placement_of,
    placement_on,
    readable,
    resharding,
)
from hlofront.runtime.sharding.typed import aval_split_by
from hlofront.transforms.jvp import JVPTracer

Value = TypeVar("Value")
_Tree = TypeVar("_Tree")
# A target of device_put for a value; None for its own device, or the default one.
Target = Device | Sharding | Format | MemorySpace | None

_ndarray = np.ndarray
_guard_puts = options["jax_transfer_guard_host_to_device"].cell
_guard_moves = options["jax_transfer_guard_device_to_device"].cell
_guard_gets = options["jax_transfer_guard_device_to_host"].cell
_REUSE = CopySemantics.REUSE_INPUT
_COPY = CopySemantics.ALWAYS_COPY
_SEMANTICS = {
    CopySemantics.REUSE_INPUT: bridge.CopySemantics.REUSE_INPUT,
    CopySemantics.DONATE_INPUT: bridge.CopySemantics.DONATE_INPUT,
    CopySemantics.ALWAYS_COPY: bridge.CopySemantics.ALWAYS_COPY,
}


# ---- device_put --------------------------------------------------------------------------------


def device_put(
    x: PyTree,
    device: object = None,
    *,
    src: object = None,
    donate: object = False,
    may_alias: object = None,
) -> PyTree:
    """Put arrays and host values on devices.

    Without a device, host values go to the default one and arrays stay where they are. With
    one, results are committed to it: computations with them run there.

    Args:
      x: an array, a NumPy array, a scalar, or a pytree of those.
      device: a Device, a Sharding, a PartitionSpec over the mesh in context, a Format or a memory
        space, or a pytree of those that is a prefix of `x`; None for the default.
      src: the source of the values, for transposed programs, or a prefix of `x`.
      donate: whether the memory of an array may be reused, or a prefix of `x`; the array
        must not be used afterwards.
      may_alias: False for a copy. Otherwise the result may share the memory of `x`, even of
        NumPy arrays, which must then not be changed. A prefix of `x` for different leaves.

    Returns:
      A pytree like `x`. Python scalars become weakly typed, and 64-bit types 32-bit types unless
      x64 is on.

    Raises:
      TypeError: for leaves that are not values: strings, NumPy arrays of objects, ...
      OverflowError: for Python integers that do not fit the dtype.
      AssertionError: in all processes of a group, if they put different values on devices of all.
      ValueError: for invalid devices, trees that are not prefixes, and donate=True together
        with may_alias=True.
      RuntimeError: for deleted arrays.

    Example:
      >>> x = jax.device_put(np.arange(3), jax.devices()[0])
      >>> x, x.is_fully_replicated
      (Array([0, 1, 2], dtype=int32), True)
    """
    try:
        plain = (
            src is None
            and donate is False
            and may_alias is None
            and _guard_puts.value is None
            and _guard_moves.value is None
            and not array_lines.value
            and is_eager()
        )
        if type(device) is PartitionSpec:
            device = over_context(device, "device_put")
        if plain:
            type_ = type(x)
            if type_ is _ndarray:
                aval = typeof(x)
                if device is None and aval.dtype is not float0:
                    placement = default_placement()
                    return batched_device_put(
                        aval, placement.sharding, [x], placement.devices, False
                    )
                return put_leaf(x, device, _REUSE)
            if type_ is ArrayImpl or type_ in _SCALARS:
                return put_leaf(x, device, _REUSE)
        return _device_put(x, device, src, donate, may_alias)
    except Exception as error:
        filter_traceback(error)
        raise


_SCALARS = frozenset({int, float, bool, complex})


def _device_put(
    x: PyTree, device: object, src: object, donate: object, may_alias: object
) -> PyTree:
    leaves, treedef = tree_flatten(x)
    devices = _targets("device", device, x, leaves)
    srcs = _targets("src", src, x, leaves)
    if donate is False and may_alias is None:
        semantics = [_REUSE] * len(leaves)
    else:
        semantics = list(
            map(
                _semantics,
                _per_leaf("donate", donate, x, leaves),
                _per_leaf("may_alias", may_alias, x, leaves),
            )
        )
    if not is_eager():
        for leaf, target in zip(leaves, devices, strict=True):
            if isinstance(target, Sharding):
                target.check_compatible_aval(typeof(leaf).shape)
                check_determined(target)
        srcs = list(map(_source, srcs, leaves))
        return treedef.unflatten(placing.device_put(leaves, devices, srcs, semantics))
    with Explicit("put"):
        placed = list(map(put_leaf, leaves, devices, semantics))
    if array_lines.value:
        remember([x for x in placed if type(x) is ArrayImpl])
    return treedef.unflatten(placed)


def over_context(spec: PartitionSpec, function: str) -> Sharding:
    """Return the sharding of a PartitionSpec, an argument of `function`, over the mesh in context.

    Raises:
      ValueError: if there is none.
    """
    sharding = over_devices(spec)
    if sharding is None:
        raise ValueError(
            f"{function} was given the PartitionSpec {spec}, and no mesh is in context whose axes "
            "it could name: give it a NamedSharding, or put a mesh in context by jax.set_mesh"
        )
    return sharding


def _source(src: Target, x: object) -> Target:
    """Return the sharding for the cotangent of a device_put: as requested, or the array's own."""
    if src is not None:
        return src
    value = x
    while type(value) is JVPTracer:
        value = value.primal
    return sharding_of(value) if type(value) is ArrayImpl else None


def _targets(name: str, prefix: object, x: object, leaves: Sequence[object]) -> list[Any]:
    """Expand an argument of device_put that names targets to one checked target per leaf."""
    if prefix is None or isinstance(prefix, Device | Sharding):
        return [prefix] * len(leaves)
    targets = [
        over_context(option, "device_put") if isinstance(option, PartitionSpec) else option
        for option in _per_leaf(name, prefix, x, leaves)
    ]
    for target in targets:
        _check_target(target)
    return targets


def _per_leaf(name: str, prefix: object, x: object, leaves: Sequence[object]) -> list[Any]:
    """Expand an argument of device_put, a prefix of `x`, to one value per leaf."""
    if prefix is None or isinstance(prefix, bool):
        return [prefix] * len(leaves)
    try:
        return broadcast_prefix(prefix, x, is_none)
    except ValueError as error:
        raise ValueError(
            f"device_put: {name} is one for all of x, or a pytree of them that is a prefix of x. "
            f"{error}"
        ) from None


def _semantics(donate: bool, may_alias: bool | None) -> CopySemantics:
    if donate:
        if may_alias:
            raise ValueError(
                "device_put: may_alias and donate cannot both be True. Donating gives the memory "
                "away; may_alias shares it."
            )
        return CopySemantics.DONATE_INPUT
    return _REUSE if may_alias or may_alias is None else _COPY


_TARGETS = (Device, Sharding, Format, MemorySpace)


def _check_target(device: object) -> None:
    if device is not None and not isinstance(device, _TARGETS):
        raise ValueError(
            "device_put takes as a device None, a Device, a Sharding, a Format, a memory space, or "
            f"a pytree of those: got {device!r} of type {type(device).__name__}"
        )


def put_leaf(x: object, target: Target, semantics: CopySemantics) -> Any:
    """Put one concrete value on a target, and return the array.

    A NumPy array of float0 is returned unchanged, as no device has that dtype.
    """
    if type(x) is _ndarray and type(target) is NamedSharding and semantics is not _COPY:
        aval = typeof(x)
        cut = _cut_on_host(target, aval)
        if cut is not None and x.dtype == aval.dtype:
            split_aval, devices, indices = cut
            shards = [x[index] for index in indices]
            return batched_device_put(split_aval, target, shards, devices, True)
    if isinstance(target, Format) and type(x) not in _putters:
        return _put_as(x, target, semantics)
    if type(x) is ArrayImpl:
        check_not_deleted(x)
        sharding = _target_sharding(target, x)
        if sharding is None:
            return x if semantics is not _COPY else copied(x)
        if type(sharding) is SingleDeviceSharding and sharding_of(x).num_devices == 1:
            itself = type(target) is not Device and semantics is _REUSE
            return _moved(x, sharding, semantics, itself)
        return _put_on_devices(x, x.aval, sharding, semantics)
    aval = typeof(x)
    if isinstance(x, Tracer):
        raise leaked(x)
    if aval.dtype is float0:
        return x
    putter = _putters.get(type(x))
    if putter is not None:
        return putter(x, target, semantics)
    sharding = _target_sharding(target, None)
    if sharding is None:
        return host_put(x, aval, default_placement(), False, semantics is _COPY)
    if type(sharding) is not SingleDeviceSharding:
        return _put_on_devices(x, aval, sharding, semantics)
    aval = aval_split_by(sharding, aval)
    return host_put(x, aval, placement_of(sharding), True, semantics is _COPY)


# device_put's functions for values that contain arrays, by type.
_putters: dict[type, Callable[[Any, Target, CopySemantics], Any]] = {}


def register_putter(
    type_: type[Value], put: Callable[[Value, Target, CopySemantics], Value]
) -> None:
    """Register device_put's function for a type of values that contain arrays, such as keys."""
    _putters[type_] = put


def _target_sharding(target: Target, array: Array | None) -> Sharding | None:
    """Convert a target of device_put to a sharding; None for any device."""
    if target is None or type(target) is SingleDeviceSharding:
        return target
    if type(target) is Device:
        return placement_on(target).sharding
    if isinstance(target, Sharding):
        return target
    if isinstance(target, MemorySpace):
        now = default_placement().sharding if array is None else sharding_of(array)
        if target is MemorySpace.Any:
            return now
        if target is MemorySpace.Device:
            return now.with_memory_kind(device_list_of(now).default_memory_kind)
        return now.with_memory_kind(target.value)
    _check_target(target)
    return None


def _put_as(x: ArrayLike, target: Format, semantics: CopySemantics) -> Array:
    """Put one concrete value on the devices of a Format, in its layout."""
    aval, layout = typeof(x), target.layout
    if layout is None:
        return put_leaf(x, target.sharding, semantics)
    if not isinstance(layout, Layout):
        raise ValueError(
            f"device_put needs a definite layout, got {target} for {aval.str_short()}. XLA chooses "
            "layouts only for programs: see `input_formats` of a compiled one."
        )
    mode = layout.mode(aval, f"the value of device_put, {aval.str_short()},")
    return laid_out(put_leaf(x, target.sharding, semantics), mode)


def _moved(
    x: Array, sharding: SingleDeviceSharding, semantics: CopySemantics, itself: bool
) -> Array:
    """Copy an array of one device to another, or to another of its memories; commit it.

    A committed array that is already there is returned `itself`, or as a new array on its memory.
    """
    own_sharding = sharding_of(x)
    stays = own_sharding is sharding or own_sharding == sharding
    if is_committed(x) and not (stays and semantics is not _COPY):
        if semantics is CopySemantics.DONATE_INPUT:
            # C++ crashes on donating the memory of one CPU device to another, and refuses to
            # donate one kind of memory to another.
            semantics = _REUSE
        moved = bridge.moved(x, sharding, _SEMANTICS[semantics])
        aval = aval_split_by(sharding, x.aval)
        return moved if aval == x.aval else bridge.assembled(aval, sharding, [moved], True)
    if itself and is_committed(x):
        return x
    placement = placement_of(sharding)
    aval = aval_split_by(sharding, x.aval)
    return batched_device_put(
        aval, placement.sharding, [x], placement.devices, True, stays and semantics is _COPY
    )


def _put_on_devices(
    x: object, aval: ShapedArray, sharding: Sharding, semantics: CopySemantics = _REUSE
) -> Array:
    """Put a value on the devices of any sharding: each gets its shard."""
    is_array = type(x) is ArrayImpl
    if is_array and semantics is not _COPY and is_committed(x) and sharding_of(x) == sharding:
        return x
    split_aval, is_here = _checked_target(sharding, aval)
    if not is_array:
        # The arrays on devices may share the memory of this one.
        as_array = np.array if semantics is _COPY else np.asarray
        host = as_array(readable(x, aval), aval.dtype)
        if not is_here:
            _compare(host, sharding)
        return resharding().split_on_host(host, split_aval, sharding)
    if not is_here and not is_committed(x):
        _compare(host_value(x), sharding)
    x = copied(x) if semantics is _COPY else x
    return resharding().resharded(x, sharding, semantics is CopySemantics.DONATE_INPUT)


def _compare(value: np.ndarray, sharding: Sharding) -> None:
    """Wait until all processes are about to put the same value on devices of all of them."""
    # Imports code for groups of processes, which a single process does not need.
    from hlofront.runtime.sharding.compared_values import compare_values

    compare_values(value, sharding)


@memoize(typed=False)
def _cut_on_host(
    sharding: Sharding, aval: ShapedArray
) -> tuple[ShapedArray, tuple[Device, ...], tuple[Index, ...]] | None:
    """Return how `put_leaf` cuts NumPy arrays of a type into the shards of a sharding.

    Returns:
      The type of the array there, the devices, and the index of each one's shard. None if cutting
      is not enough: for devices of other processes, or for summands.
    """
    if aval.dtype is float0:
        return None
    split_aval, is_here = _checked_target(sharding, aval)
    if not is_here or has_summands(sharding):
        return None
    indices = sharding.addressable_devices_indices_map(aval.shape)
    return split_aval, tuple(indices), tuple(indices.values())


@memoize(typed=False)
def _checked_target(sharding: Sharding, aval: ShapedArray) -> tuple[ShapedArray, bool]:
    """Check that arrays can be put on the devices of a sharding.

    Returns:
      The type of an array there, and whether all the devices are of this process.
    """
    sharding.check_compatible_aval(aval.shape)
    check_attached(next(iter(sharding.device_set)))
    check_determined(sharding)
    return aval_split_by(sharding, aval), sharding.is_fully_addressable


def _forget_types(*_: object) -> None:
    _checked_target.cache_clear()
    _cut_on_host.cache_clear()


remove_size_one_mesh_axis_from_type.watch(_forget_types)


def check_determined(sharding: Sharding) -> None:
    """Raise ValueError for a sharding that leaves axes to XLA."""
    if not sharding.is_determined:
        raise ValueError(
            "device_put takes shardings that say of every axis how it is split, and UNCONSTRAINED "
            f"is for with_sharding_constraint: got {sharding}"
        )


def copied(x: Array, placement: DevicePlacement | None = None) -> Array:
    """Return a copy of an array that shares no memory with it.

    Args:
      x: an array on devices.
      placement: the device of the copy, which is committed to it; None for the array's devices,
        to which the copy is committed if the array is.

    Raises:
      RuntimeError: if the array was deleted.
    """
    check_not_deleted(x)
    sharding = sharding_of(x) if placement is None else placement.sharding
    if not sharding.is_fully_addressable:
        parts = [
            bridge.moved(part, sharding_of(part), bridge.CopySemantics.ALWAYS_COPY)
            for part in bridge.pieces(x)
        ]
        return bridge.assembled(x.aval, sharding, parts, True)
    if placement is not None or is_committed(x) or type(sharding) is not SingleDeviceSharding:
        return bridge.moved(x, sharding, bridge.CopySemantics.ALWAYS_COPY)
    placement = placement_of(sharding)
    return batched_device_put(x.aval, placement.sharding, [x], placement.devices, False, True)


@run(device_put_p)
def _(
    *args: object, devices: Sequence[Target], copy_semantics: Sequence[CopySemantics], **_: object
) -> list[object]:
    with Explicit("put"):
        return list(map(_put_as_written, args, devices, copy_semantics))


def _put_as_written(x: object, target: Target, semantics: CopySemantics) -> Any:
    """Put one concrete value on a target, whose spec may have trailing None entries.

    The array keeps the sharding as written, even if it has fewer axes than entries.
    """
    fitting = of_rank(target, typeof(x).ndim)
    array = put_leaf(x, fitting, semantics)
    if fitting is target:
        return array
    return bridge.assembled(array.aval, target, bridge.pieces(array), True)


# ---- to the host, and waiting -------------------------------------------------------------------


@boundary
def device_get(x: PyTree) -> PyTree:
    """Copy arrays to the host.

    Args:
      x: an array or a pytree of arrays. Other leaves are returned unchanged.

    Returns:
      A pytree like `x` of read-only NumPy arrays, which on a CPU may share the arrays' memory.

    Raises:
      RuntimeError: if an array was deleted.
    """
    if type(x) is ArrayImpl and _guard_gets.value is None:
        return host_value(x)
    leaves, treedef = tree_flatten(x)
    with Explicit("get"):
        arrays = [leaf for leaf in leaves if type(leaf) is ArrayImpl]
        if len(arrays) > 1:
            # Start all copies before waiting for the first.
            for array in arrays:
                prefetch(array)
        return treedef.unflatten(map(_get_leaf, leaves))


def _get_leaf(x: object) -> object:
    """Convert an array to a NumPy array; return any other leaf unchanged."""
    if type(x) is ArrayImpl:
        return host_value(x)
    if isinstance(x, Tracer) or type(x) in _putters or not hasattr(x, "__array__"):
        return x
    return np.asarray(x)


@boundary
def block_until_ready(x: _Tree) -> _Tree:
    """Wait until arrays are computed.

    Args:
      x: an array or a pytree of arrays. Other leaves count as ready.

    Returns:
      The argument `x`.

    Raises:
      RuntimeError: if an array was deleted, or its computation failed.

    Example:
      >>> y = jax.block_until_ready(jnp.ones((100, 100)) @ jnp.ones((100, 100)))
      >>> float(y[0, 0])
      100.0
    """
    if type(x) is ArrayImpl:
        return x.block_until_ready()
    arrays: list[Array] = []
    for leaf in tree_flatten(x)[0]:
        if type(leaf) is ArrayImpl:
            check_not_deleted(leaf)
            arrays.append(leaf)
        elif hasattr(leaf, "block_until_ready") and not isinstance(leaf, Tracer):
            leaf.block_until_ready()
    if arrays:
        bridge.block_all(arrays)
    return x


@boundary
def copy_to_host_async(x: _Tree) -> _Tree:
    """Start to copy arrays to the host, where np.asarray and device_get will read them.

    Args:
      x: an array or a pytree of arrays.

    Returns:
      The argument `x`.
    """
    for leaf in tree_flatten(x)[0]:
        if hasattr(leaf, "copy_to_host_async") and not isinstance(leaf, Tracer):
            leaf.copy_to_host_async()
    return x


def live_arrays(platform: str | Client | None = None) -> list[Array]:
    """Return all arrays of a platform that have not been deleted.

    Args:
      platform: the platform's name or its client; None for the default platform.

    Raises:
      RuntimeError: if this process has no such platform.
    """
    return clients.client_for(platform).live_arrays()
