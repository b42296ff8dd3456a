"""Arrays assembled from shards: one per device, or by a function."""

from collections.abc import Callable, Sequence

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import array_dtype, check_user_dtype_supported
from hlofront.base.elements import ExtendedDType
from hlofront.base.tree import PyTree, tree_flatten
from hlofront.base.tree_prefixes import broadcast_prefix
from hlofront.base.typing import Array, ArrayLike, DTypeLike
from hlofront.bridge.arrays import assembled
from hlofront.bridge.client import ArrayImpl, Device, Sharding
from hlofront.bridge.members import device_of, sharding_of
from hlofront.core.aval import ShapedArray
from hlofront.core.sharding.partition import PartitionSpec
from hlofront.core.trace import Tracer
from hlofront.pjrt.deletion import check_not_deleted
from hlofront.pjrt.layouts import Format, Layout
from hlofront.pjrt.shardings import Index, on_device
from hlofront.primitives.sharding.placing import CopySemantics
from hlofront.runtime.array.key_array import KeyArray, base_of
from hlofront.runtime.array.transfer import device_put, over_context, put_leaf
from hlofront.runtime.sharding.storage import stored_sharding
from hlofront.runtime.sharding.typed import aval_split_by


@boundary
def make_array_from_single_device_arrays(
    shape: Sequence[int],
    sharding: Sharding,
    arrays: Sequence[Array],
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return an array assembled from one single-device array per device, without copies.

    Args:
      shape: the shape of the whole array.
      sharding: the sharding of the whole array.
      arrays: the shard of each device of this process, on that device, in any order; their memory
        is shared.
      dtype: the dtype of the shards; needed only where there are none.

    Raises:
      TypeError: if the arrays are not a list or tuple of arrays, or `sharding` is not a sharding.
      ValueError: if their number, devices, shapes or dtypes do not fit the sharding.
    """
    check_sharding(sharding, "make_array_from_single_device_arrays")
    if not isinstance(arrays, list | tuple):
        raise TypeError(
            "make_array_from_single_device_arrays takes a list or tuple of arrays, one per device: "
            f"got {type(arrays).__name__}"
        )
    if any(isinstance(array, Tracer) for array in arrays):
        raise ValueError(
            "make_array_from_single_device_arrays takes arrays on devices, and traced ones are on "
            "none: call it outside of functions that are traced"
        )
    for array in arrays:
        if type(array) is not ArrayImpl and not isinstance(array, KeyArray):
            raise TypeError(
                "make_array_from_single_device_arrays takes arrays on devices: got an element of "
                f"type {type(array).__name__}. Put it on its device with device_put."
            )
    if dtype is not None:
        dtype = check_user_dtype_supported(dtype, "make_array_from_single_device_arrays")
    if arrays:
        dtypes = {array.aval.dtype for array in arrays}
        if len(dtypes) > 1:
            raise ValueError(f"the arrays have different dtypes: {sorted(map(str, dtypes))}")
        (common_dtype,) = dtypes
        if dtype is not None and dtype != common_dtype:
            raise ValueError(
                f"dtype={dtype} was given, and the arrays' dtype is {common_dtype}. "
                "Leave it out, or convert the arrays."
            )
    elif dtype is None:
        raise ValueError(
            "with no arrays on devices of this process the dtype must be given: pass dtype"
        )
    else:
        common_dtype = dtype
    weak = all(array.aval.weak_type for array in arrays) if arrays else False
    aval = aval_split_by(sharding, ShapedArray(shape, common_dtype, weak))
    parts = _in_order(arrays, aval, sharding)
    if isinstance(aval.dtype, ExtendedDType):
        base = assembled(
            ShapedArray(*aval.dtype.physical(aval.shape)),
            stored_sharding(sharding, aval),
            list(map(base_of, parts)),
            True,
        )
        return KeyArray(aval, base)
    return assembled(aval, sharding, parts, True)


def _in_order(arrays: Sequence[Array], aval: ShapedArray, sharding: Sharding) -> list[Array]:
    """Check the shards against the sharding; return them in the order of its devices."""
    devices = list(sharding._addressable_device_assignment)
    if len(arrays) != len(devices):
        raise ValueError(
            f"{sharding} has {len(devices)} devices of this process, and needs as many arrays: got "
            f"{len(arrays)}"
        )
    part_shape = sharding.shard_shape(aval.shape)
    by_device: dict[Device, Array] = {}
    for array in arrays:
        check_not_deleted(array)
        own_sharding = sharding_of(array)
        if own_sharding.num_devices != 1:
            raise ValueError(f"each array must be on one device: got one with {own_sharding}")
        by_device[device_of(own_sharding)] = array
        if array.aval.shape != part_shape:
            raise ValueError(
                f"an array of shape {aval.shape} with {sharding} has parts of shape {part_shape}: "
                f"got one of shape {array.aval.shape}"
            )
    if set(by_device) != set(devices):
        raise ValueError(
            f"{sharding} is on devices {sorted(map(str, devices))}, and the arrays are on "
            f"{sorted(map(str, by_device))}"
        )
    return [by_device[device] for device in devices]


@boundary
def make_array_from_callback(
    shape: Sequence[int],
    sharding: Sharding | Format,
    data_callback: Callable[[Index], ArrayLike],
    dtype: DTypeLike | None = None,
) -> Array:
    """Return an array whose shards a function computes.

    Args:
      shape: the shape of the whole array.
      sharding: the sharding of the whole array, or its Format.
      data_callback: a function from the index of a shard, a tuple of slices, to its value. It is
        called once per shard, for the devices of this process.
      dtype: the dtype of the values; needed only where this process has no devices of the sharding.

    Raises:
      TypeError: if `sharding` is not a sharding, or its layout is Layout.AUTO, or a value is not an
        array.
      ValueError: if a value has the wrong shape or dtype.
    """
    target = sharding
    if isinstance(sharding, Format):
        target = sharding.sharding
        if sharding.layout is Layout.AUTO:
            raise TypeError(
                "make_array_from_callback needs a definite layout; with `Layout.AUTO` XLA chooses "
                f"one, which it does only for programs: got {sharding}"
            )
    target = check_sharding(target, "make_array_from_callback")
    if dtype is not None:
        dtype = check_user_dtype_supported(dtype, "make_array_from_callback")
    shape = tuple(shape)
    made: list[tuple[Index, ArrayLike]] = []
    arrays: list[Array] = []
    for device, index in target.addressable_devices_indices_map(shape).items():
        value = next((value for known, value in made if known == index), None)
        if value is None:
            value = data_callback(index)
            made.append((index, value))
        arrays.append(
            put_leaf(value, on_device(device, target.memory_kind), CopySemantics.REUSE_INPUT)
        )
    array = make_array_from_single_device_arrays(shape, target, arrays, dtype=dtype)
    return put_leaf(array, sharding, CopySemantics.REUSE_INPUT)


@boundary
def make_array_from_process_local_data(
    sharding: Sharding | PartitionSpec | Device, local_data: PyTree, global_shape: object = None
) -> PyTree:
    """Return an array assembled from the part that each process has.

    Along an axis, a process passes either the part that its devices hold, or the whole axis.

    Args:
      sharding: the sharding of the whole array, or a PartitionSpec over the mesh in context.
      local_data: the data of this process's devices: a NumPy array, or a pytree of them.
      global_shape: the shape of the whole array. By default, the size of an axis that is split over
        processes is the data's, times the number of different parts. For a pytree, one shape for
        all leaves or a pytree of shapes.

    Raises:
      TypeError: if `sharding` is not a sharding.
      ValueError: if the shapes do not fit, or processes have parts of different sizes and
        `global_shape` is None.

    Example:
      Each of two processes has four rows of a batch of eight::

        split = jax.NamedSharding(jax.make_mesh((jax.device_count(),), ("x",)), jax.P("x"))
        batch = jax.make_array_from_process_local_data(split, rows)
    """
    if isinstance(sharding, Device):
        sharding = on_device(sharding)
    elif isinstance(sharding, PartitionSpec):
        sharding = over_context(sharding, "make_array_from_process_local_data")
    check_sharding(sharding, "make_array_from_process_local_data")

    def put(data: ArrayLike, shape: Sequence[int] | None) -> Array:
        if shape is not None and None in shape:
            raise ValueError(
                f"global_shape={tuple(shape)} has Nones. This is not supported: leave global_shape "
                "out, or name all of its numbers"
            )
        if not sharding.is_fully_addressable:
            return _from_parts(sharding, data, shape)
        if shape is not None and tuple(shape) != np.shape(data):
            raise ValueError(
                "with all devices in this process, global_shape is the data's own shape or None: "
                f"got global_shape={tuple(shape)} and data of shape {np.shape(data)}"
            )
        return device_put(data, sharding)

    leaves, treedef = tree_flatten(local_data)
    if global_shape is None or _is_shape(global_shape):
        shapes = [global_shape] * len(leaves)
    else:
        shapes = broadcast_prefix(global_shape, local_data, _is_shape)
    return treedef.unflatten(list(map(put, leaves, shapes)))


def _from_parts(sharding: Sharding, data: ArrayLike, shape: Sequence[int] | None) -> Array:
    """Return an array over several processes, given this process's part of the data."""
    if isinstance(data, ArrayImpl) and not data.is_fully_addressable:
        raise ValueError(
            "make_array_from_process_local_data takes the data of this process: got an array that "
            f"other processes have parts of, with {data.sharding}. To split it differently, use "
            "device_put"
        )
    own_shape = np.shape(data)
    whole = _whole_shape(sharding, own_shape) if shape is None else tuple(shape)
    if len(whole) != len(own_shape):
        raise ValueError(
            f"global_shape={whole} has {len(whole)} axes, and the data has {len(own_shape)}"
        )
    # Per axis, where the data of each start in the whole array begins.
    offsets: list[dict[int, int]] = []
    here = list(sharding.addressable_devices_indices_map(whole).values())
    for axis, (size, whole_size) in enumerate(zip(own_shape, whole, strict=True)):
        parts = sorted({index[axis].indices(whole_size)[:2] for index in here})
        lengths = [stop - start for start, stop in parts]
        if size == whole_size:
            offsets.append({start: start for start, _ in parts})
        elif size == sum(lengths):
            before = np.cumsum([0, *lengths]).tolist()
            offsets.append({start: at for (start, _), at in zip(parts, before)})
        else:
            raise ValueError(
                "Invalid host data, each dimension should match either global or process shape. In "
                f"dimension {axis}, the process data has {size} elements. Process addresses "
                f"{sum(lengths)} elements and global_shape={whole}."
            )

    def part(index: Index) -> ArrayLike:
        own: list[slice] = []
        for entry, size, offset in zip(index, whole, offsets, strict=True):
            start, stop, _ = entry.indices(size)
            own.append(slice(offset[start], offset[start] + stop - start))
        return values[tuple(own)]

    values = np.asarray(data)
    return make_array_from_callback(whole, sharding, part, array_dtype(values.dtype))


def _whole_shape(sharding: Sharding, own_shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of an array, given the shape of each process's part.

    Raises:
      ValueError: if the processes have different numbers of parts of an axis.
    """
    # This size can be split along any of the mesh axes.
    indices = sharding.devices_indices_map((sharding.num_devices,) * len(own_shape))
    whole: list[int] = []
    for axis, size in enumerate(own_shape):
        of_process: dict[int, set[int]] = {}
        for device, index in indices.items():
            start = index[axis].indices(sharding.num_devices)[0]
            of_process.setdefault(device.process_index, set()).add(start)
        counts = {len(starts) for starts in of_process.values()}
        if len(counts) > 1:
            raise ValueError(
                f"the processes have {sorted(counts)} parts of axis {axis} by {sharding}: name the "
                "whole array's shape as global_shape"
            )
        total = len(set().union(*of_process.values()))
        (count,) = counts
        if size * total % count:
            raise ValueError(
                f"axis {axis} of the data has {size} elements, and this process holds {count} of "
                f"the axis's {total} parts by {sharding}: pass a multiple of {count}"
            )
        whole.append(size * total // count)
    return tuple(whole)


def _is_shape(x: object) -> bool:
    return x is None or (
        isinstance(x, tuple | list) and all(n is None or isinstance(n, int) for n in x)
    )


def check_sharding(sharding: object, function: str) -> Sharding:
    """Return a sharding; raise a TypeError for any other value, naming the public function."""
    if not isinstance(sharding, Sharding):
        raise TypeError(
            f"{function} takes a Sharding, such as SingleDeviceSharding(device): got {sharding!r} "
            f"of type {type(sharding).__name__}"
        )
    return sharding
