"""Iteration over the rows of an array: `__iter__` and `__reversed__`, which run programs."""

from collections.abc import Iterator, Sequence

from hlofront.base.typing import Array, ArrayLike
from hlofront.bridge.arrays import READ_NOW, batched_device_put
from hlofront.bridge.client import NamedSharding, SingleDeviceSharding
from hlofront.bridge.members import device_of, is_committed, sharding_of
from hlofront.core.aval import ShapedArray
from hlofront.core.trace import is_eager
from hlofront.pjrt.deletion import check_not_deleted
from hlofront.pjrt.host_value import host_value
from hlofront.primitives.arrays.dynamic_slicing import dynamic_slice_in_dim
from hlofront.primitives.arrays.slicing import unstack
from hlofront.runtime.array.array import member
from hlofront.runtime.dispatch.jit_function import jit
from hlofront.runtime.sharding.placement import host_put, placement_of, resharding

# A compiled program returns this many rows: more would take long to compile.
_AT_ONCE = 32


@member
def __iter__(self: Array) -> Iterator[Array]:
    if not self.aval.shape:
        raise TypeError("iteration over a 0-d array")
    check_not_deleted(self)
    return rows(self)


@member
def __reversed__(self: Array) -> Iterator[Array]:
    if not self.aval.shape:
        raise TypeError("reversed() of a 0-d array")
    check_not_deleted(self)
    return rows(self, backwards=True)


def rows(array: Array, backwards: bool = False) -> Iterator[Array]:
    """Iterate over the rows of an array of one or more axes, which stay on the array's device.

    If an Explicit mesh axis splits the first axis, each device first gets all rows.

    Args:
      array: an array on devices, of shape `(n, ...)`.
      backwards: whether the last row comes first.

    Returns:
      An iterator over `n` arrays of the other axes' shape, and of the array's dtype.
    """
    sharding = sharding_of(array)
    if type(sharding) is SingleDeviceSharding and (
        device_of(sharding).platform == "cpu" or not is_eager()
    ):
        return _from_host(array, backwards)
    split = array.aval.split
    if split is not None and split.spec[0] is not None and is_eager():
        whole = NamedSharding(sharding.mesh, split.spec.update(partitions=(None, *split.spec[1:])))
        array = resharding().resharded(array, whole)
    return _on_device(array, backwards)


def _from_host(array: Array, backwards: bool) -> Iterator[Array]:
    """Yield the rows of an array on a CPU from its host view, without compiling a program."""
    value = host_value(array)
    count, *row = array.aval.shape
    aval = ShapedArray(tuple(row), array.aval.dtype, array.aval.weak_type)
    placement = placement_of(sharding_of(array))
    sharding, devices, committed = placement.sharding, placement.devices, is_committed(array)
    is_wide = aval.dtype.itemsize >= 8  # C++ may narrow such elements.
    for i in range(count - 1, -1, -1) if backwards else range(count):
        # Read now: sharing the array's memory would prevent its donation.
        if is_wide:
            yield host_put(value[i, ...], aval, placement, committed, copied=True)
        else:
            yield batched_device_put(
                aval, sharding, [value[i, ...]], devices, committed, False, READ_NOW
            )


def _on_device(array: Array, backwards: bool) -> Iterator[Array]:
    """Yield the rows of an array by compiled slicing programs, without a copy to the host."""
    count = array.aval.shape[0]
    starts = range(0, count, _AT_ONCE)
    for start in reversed(starts) if backwards else starts:
        chunk = _cut(array, start, min(_AT_ONCE, count - start))
        yield from reversed(chunk) if backwards else chunk


def _unstacked(array: Array, start: ArrayLike, count: int) -> Sequence[Array]:
    return unstack(dynamic_slice_in_dim(array, start, count))


_cut = jit(_unstacked, static_argnums=2)
