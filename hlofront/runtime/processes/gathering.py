"""Operations that bring values of a group's processes to all: broadcasts, gathers, comparisons.

The values travel as bytes over the devices of all processes, in one program per call, so that every
dtype arrives as it was, and a call also waits for what the devices computed before.
"""

import functools
import hashlib
from collections.abc import Callable, Sequence

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.tree import PyTree, tree_flatten, tree_map
from hlofront.base.typing import Array, NumPyArray
from hlofront.bridge.client import ArrayImpl, Device
from hlofront.core.sharding.mesh import Mesh
from hlofront.core.sharding.partition import PartitionSpec
from hlofront.pjrt import devices
from hlofront.pjrt.named_shardings import NamedSharding
from hlofront.primitives.arrays.reducing import reduce_sum
from hlofront.primitives.sharding.placing import CopySemantics
from hlofront.runtime.array.assembling import make_array_from_callback
from hlofront.runtime.array.transfer import put_leaf
from hlofront.runtime.dispatch.jit_function import jit

# The bytes of its text that a process sends to the others when a comparison fails.
_TEXT_BYTES = 1024


def _mesh() -> Mesh:
    """Return the mesh of all devices, a row per process; of one device each where counts differ."""
    of_process: dict[int, list[Device]] = {}
    for device in sorted(devices.devices(), key=lambda device: device.id):
        of_process.setdefault(device.process_index, []).append(device)
    rows = [of_process[number] for number in sorted(of_process)]
    if len({len(row) for row in rows}) > 1:
        rows = [row[:1] for row in rows]
    return Mesh(np.array(rows), ("processes", "local_devices"))


@functools.lru_cache(maxsize=16)
def _program(mesh: Mesh, is_sum: bool) -> Callable[[Array], Array]:
    """Return the jitted function from one row of bytes per process to all rows, or to their sum."""

    def process_rows(rows: Array) -> Array:
        return reduce_sum(rows, (0,)) if is_sum else rows

    return jit(process_rows, out_shardings=NamedSharding(mesh, PartitionSpec()))


def _exchanged(row: NumPyArray, is_sum: bool) -> NumPyArray:
    """Return the rows of bytes of all processes, a row each, or their sum."""
    mesh = _mesh()
    split = NamedSharding(mesh, PartitionSpec("processes"))
    shape = (mesh.devices.shape[0], row.size)
    rows = make_array_from_callback(shape, split, lambda _: row[None], np.dtype(np.uint8))
    return np.asarray(_program(mesh, is_sum)(rows).addressable_data(0))


def _bytes_of(values: Sequence[NumPyArray]) -> NumPyArray:
    """Return the bytes of arrays, one array after the other.

    Raises:
      TypeError: if an array is of Python objects, which other processes cannot be sent.
    """
    for value in values:
        if value.dtype.hasobject:
            raise TypeError(
                "processes exchange arrays of numbers and of fixed-size text: got dtype "
                f"{value.dtype}. Serialize the objects, and exchange the bytes as a uint8 array."
            )
    return np.frombuffer(b"".join(value.tobytes() for value in values), np.uint8)


def _arrays_of(row: NumPyArray, like: Sequence[NumPyArray]) -> list[NumPyArray]:
    """Return the arrays whose bytes a row has; the inverse of `_bytes_of`."""
    data, start, arrays = row.tobytes(), 0, []
    for value in like:
        part = data[start : start + value.nbytes]
        arrays.append(np.frombuffer(part, value.dtype).reshape(value.shape))
        start += value.nbytes
    return arrays


@boundary
def broadcast_one_to_all(in_tree: PyTree, is_source: bool | None = None) -> PyTree:
    """Return what one process has, in all processes.

    All processes call it together, with pytrees of the same structure, shapes and dtypes.

    Args:
      in_tree: a pytree of arrays of this process; only those of the source matter.
      is_source: whether this process is the one whose values all get; by default, process 0 is.

    Returns:
      A pytree like `in_tree` of NumPy arrays of the inputs' shapes and dtypes.

    Raises:
      TypeError: if an array is of Python objects.
      ProcessFailureError: if another process has failed.

    Example:
      One process draws a seed, and all use it::

        seed = broadcast_one_to_all(np.random.randint(2**31))
    """
    leaves, structure = tree_flatten(in_tree)
    values = [np.asarray(leaf) for leaf in leaves]
    if devices.process_count() == 1:
        return structure.unflatten(values)
    source = devices.process_index() == 0 if is_source is None else is_source
    row = _bytes_of(values)
    row = _exchanged(row if source else np.zeros_like(row), is_sum=True)
    return structure.unflatten(_arrays_of(row, values))


@boundary
def process_allgather(in_tree: PyTree, tiled: bool = False) -> PyTree:
    """Return what all processes have, in all processes.

    All processes call it together, with pytrees of the same structure, shapes and dtypes.

    Args:
      in_tree: a pytree of arrays: those of this process, and those over all processes.
      tiled: True to concatenate the processes' arrays along the first axis; False to stack them
        along a new one. Arrays over all processes are whole in the result, and need True.

    Returns:
      A pytree like `in_tree` of NumPy arrays, of the inputs' dtypes.

    Raises:
      TypeError: if an array is of Python objects.
      ValueError: if an array is over several processes and `tiled` is False.
      ProcessFailureError: if another process has failed.

    Example:
      The losses of all processes, and a whole array that each has a part of::

        losses = process_allgather(np.float32(loss))
        weights = process_allgather(sharded_weights, tiled=True)
    """
    leaves, structure = tree_flatten(in_tree)
    results: list[NumPyArray | None] = []
    values: list[NumPyArray] = []
    for leaf in leaves:
        if isinstance(leaf, ArrayImpl) and not leaf.is_fully_addressable:
            if not tiled:
                raise ValueError(
                    "Gathering global non-fully-addressable arrays only supports tiled=True: "
                    f"{leaf.aval.str_short()} with {leaf.sharding} is one array of all processes"
                )
            results.append(_whole(leaf))
        else:
            results.append(None)
            values.append(np.asarray(leaf))
    count = devices.process_count()
    rows = values_of = [values]
    if count > 1 and values:
        rows = _exchanged(_bytes_of(values), is_sum=False)
        values_of = [_arrays_of(row, values) for row in rows]
    gathered = iter([_joined(parts, tiled) for parts in zip(*values_of, strict=True)])
    return structure.unflatten([next(gathered) if r is None else r for r in results])


def _joined(parts: Sequence[NumPyArray], tiled: bool) -> NumPyArray:
    if not tiled:
        return np.stack(parts)
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([np.atleast_1d(part) for part in parts])


def _whole(array: Array) -> NumPyArray:
    """Return the value of an array over all processes, brought to each of them."""
    sharding = array.sharding
    if not sharding.is_fully_replicated:
        mesh = getattr(sharding, "mesh", None)
        if mesh is None:
            device_list = list(sharding.devices_indices_map(array.shape))
            mesh = Mesh(np.array(device_list), ("devices",))
        replicated = NamedSharding(mesh, PartitionSpec())
        array = put_leaf(array, replicated, CopySemantics.REUSE_INPUT)
    return np.asarray(array.addressable_data(0))


@boundary
def assert_equal(in_tree: PyTree, fail_message: str = "") -> None:
    """Check that all processes have the same values.

    All processes call it together. They compare digests: what is exchanged is small, and the
    structures, shapes and dtypes may differ, too. Two NaNs of the same bits are equal.

    Args:
      in_tree: a pytree of arrays or of text.
      fail_message: how the error's message begins.

    Raises:
      AssertionError: in all processes, if some have other values than process 0.
      ProcessFailureError: if another process has failed.

    Example:
      >>> assert_equal({"step": 7}, "the processes are at different steps")
    """
    if devices.process_count() == 1:
        return
    leaves, structure = tree_flatten(in_tree)
    values = [np.asarray(leaf) for leaf in leaves]
    digest = hashlib.sha256(str(structure).encode())
    for value in values:
        digest.update(f"{value.dtype}{value.shape}".encode())
    digest.update(_bytes_of(values).tobytes())
    digests = _exchanged(np.frombuffer(digest.digest(), np.uint8), is_sum=False)
    differing = [n for n, other in enumerate(digests) if not np.array_equal(other, digests[0])]
    if not differing:
        return
    structure_bytes = str(tree_map(np.asarray, in_tree)).encode()[:_TEXT_BYTES]
    row = np.zeros(_TEXT_BYTES, np.uint8)
    row[: len(structure_bytes)] = np.frombuffer(structure_bytes, np.uint8)
    texts = [
        text.tobytes().rstrip(b"\0").decode(errors="replace")
        for text in _exchanged(row, is_sum=False)
    ]
    raise AssertionError(
        f"{fail_message}. Expected: {texts[0]}, as in process 0; got: "
        f"{texts[devices.process_index()]}. The processes that differ from process 0: {differing}; "
        f"process {differing[0]} has {texts[differing[0]]}."
    )


@boundary
def sync_global_devices(name: str) -> None:
    """Wait until all processes have come here, and their devices have finished their work.

    Args:
      name: the name of the meeting, the same in all processes.

    Raises:
      AssertionError: if processes have come to meetings of other names.
      ProcessFailureError: if another process has failed.

    Example:
      Wait until process 0 has written a file::

        if jax.process_index() == 0:
            path.write_text(text)
        sync_global_devices("the file is written")
    """
    assert_equal(name, f"sync_global_devices name mismatch ('{name}')")
