"""Arrays written to files, and read from them, by the package tensorstore, which is optional.

Each process writes the shards that it holds, of equal ones the first, and reads those that its
devices need.
"""

import asyncio
import importlib
import os
import re
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from hlofront.base.dtypes import canonicalize_dtype, dtype_of
from hlofront.base.typing import Array, DTypeLike
from hlofront.bridge.client import ArrayImpl, Device, Sharding
from hlofront.bridge.members import sharding_of
from hlofront.pjrt.devices import process_count
from hlofront.pjrt.layouts import Format
from hlofront.pjrt.shardings import Index, on_device
from hlofront.runtime.array.assembling import make_array_from_single_device_arrays
from hlofront.runtime.array.shards import Shard, addressable_shards
from hlofront.runtime.array.transfer import device_put

# Where an array is stored, as tensorstore describes it.
Spec = Mapping[str, Any]
# The result of a coroutine.
_Result = TypeVar("_Result")
# The schemes of paths in the cloud, with the driver of tensorstore for each.
_CLOUDS = {"gs": "gcs", "s3": "s3"}


def tensorstore() -> Any:
    """Import tensorstore; if it is not installed, raise an ImportError that says what to do."""
    try:
        return importlib.import_module("tensorstore")
    except ModuleNotFoundError as error:
        raise ImportError(
            "arrays are written to files by the package tensorstore, which is not installed: "
            "run `pip install tensorstore`"
        ) from error


def get_tensorstore_spec(
    ckpt_path: str | os.PathLike[str],
    ocdbt: bool = False,
    process_idx: int | None = None,
    arr: Array | None = None,
    driver: str = "zarr",
) -> dict[str, Any]:
    """Return where an array of a checkpoint is stored, as tensorstore describes it.

    Args:
      ckpt_path: the path of the array: of a file system, or "gs://bucket/path", "s3://bucket/path".
      ocdbt: whether the arrays of a folder share one OCDBT store, in which the last part of the
        path is the array's key.
      process_idx: the number of a process that writes into a folder of its own, "process_0" and so
        on, next to the array's name.
      arr: an array whose shape, dtype and shards the description says.
      driver: the format: "zarr" or "zarr3".

    Raises:
      ValueError: if the path names no bucket, an OCDBT path is relative, or the driver is unknown.
    """
    path = _normal(os.fspath(ckpt_path))
    if process_idx is not None:
        folder, name = os.path.split(path)
        path = os.path.join(folder, f"process_{process_idx}", name)
    store: dict[str, Any] = _key_value_store(path)
    if ocdbt:
        if store["driver"] == "file" and not os.path.isabs(path):
            raise ValueError(f"the path of an OCDBT store is absolute: got {path!r}")
        folder, name = os.path.split(store["path"])
        store = {"driver": "ocdbt", "base": {**store, "path": folder}, "path": name}
    spec = {"driver": driver, "kvstore": store}
    if arr is not None:
        spec["metadata"] = _metadata(arr, driver)
    return spec


def _normal(path: str) -> str:
    """Return a path without a trailing slash or doubled ones, except the two of a scheme."""
    return re.sub(r"^(gs|s3):/", r"\1://", os.path.normpath(path))


def _key_value_store(path: str) -> dict[str, str]:
    scheme, separator, rest = path.partition("://")
    if not separator or scheme not in _CLOUDS:
        return {"driver": "file", "path": path}
    bucket, slash, within = rest.partition("/")
    if not slash:
        raise ValueError(
            f"a path in the cloud names a bucket and a path in it, {scheme}://bucket/path: got "
            f"{path!r}"
        )
    return {"driver": _CLOUDS[scheme], "bucket": bucket, "path": within}


def _metadata(array: Array, driver: str) -> dict[str, Any]:
    """Return what a file says of an array: its shape and its chunks, which are its shards."""
    shape = array.shape
    shard = sharding_of(array).shard_shape(shape) if isinstance(array, ArrayImpl) else shape
    chunks = [max(1, size) for size in shard]
    if driver == "zarr":
        return {"compressor": {"id": "zstd"}, "shape": shape, "chunks": chunks}
    if driver == "zarr3":
        return {
            "codecs": [],
            "shape": shape,
            "data_type": dtype_of(array.dtype).name,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
        }
    raise ValueError(f"the format of a checkpoint's array is zarr or zarr3: got driver {driver!r}")


def _says_metadata(spec: object) -> bool:
    """Return whether a description, or one inside it, says the array's shape and chunks."""
    return isinstance(spec, Mapping) and (
        "metadata" in spec or any(_says_metadata(part) for part in spec.values())
    )


def completed(coroutines: Sequence[Coroutine[Any, Any, _Result]]) -> list[_Result]:
    """Run coroutines together, and return their results."""

    async def together() -> list[_Result]:
        return list(await asyncio.gather(*coroutines))

    return asyncio.run(together())


async def write(array: Array, spec: Spec, transaction: object = None) -> list[Any]:
    """Start to write this process's shards of an array, and return futures of the commits.

    When the coroutine ends, the array may be deleted.

    Raises:
      ValueError: if there are several processes and the array belongs only to this one.
    """
    ts = tensorstore()
    if isinstance(array, ArrayImpl) and process_count() > 1 and array.is_fully_addressable:
        raise ValueError(
            "arrays that several processes write must be split over the devices of all of them: "
            f"got one with only this process's devices for {spec['kvstore']}"
        )
    whole = dict(spec)
    if not _says_metadata(spec):
        whole["metadata"] = _metadata(array, spec["driver"])
    if spec["driver"] == "zarr":
        whole.setdefault("dtype", dtype_of(array.dtype).name)
    created = ts.open(ts.Spec(whole), create=True, open=True, transaction=transaction)
    store = await ts.open(ts.Spec(whole), open=True, assume_metadata=True, transaction=transaction)
    commits = await asyncio.gather(
        *(
            _write_shard(store, shard)
            for shard in addressable_shards(array)
            if shard.replica_id == 0
        )
    )
    return [created, *commits]


async def _write_shard(store: object, shard: Shard) -> Any:
    data = np.asarray(shard.data)
    writing = store[shard.index].write(data, can_reference_source_data_indefinitely=True)
    await writing.copy
    return writing.commit


class ByteBudget:
    """The bytes that concurrent reads may hold: each waits until its share is free.

    A read of more bytes than that waits until no other read runs.
    """

    def __init__(self, size: int):
        self._size = size
        self._used = 0
        self._changed = asyncio.Condition()

    async def take(self, count: int) -> None:
        """Wait until `count` bytes are free, and take them."""
        async with self._changed:
            await self._changed.wait_for(
                lambda: self._used == 0 or self._used + count <= self._size
            )
            self._used += count

    async def give_back(self, count: int) -> None:
        """Give back `count` bytes."""
        async with self._changed:
            self._used -= count
            self._changed.notify_all()


async def read(
    target: Sharding | Format,
    spec: Spec,
    shape: Sequence[int] | None,
    dtype: DTypeLike | None,
    budget: ByteBudget,
) -> Array:
    """Return an array that was written; each process reads the shards of its devices.

    Args:
      target: how the array is split over devices, and laid out on them.
      spec: where it was written.
      shape: its shape; by default that of what was written. Where it is larger, the rest is zeros.
      dtype: its dtype; by default that of what was written.
      budget: the bytes that concurrent reads may hold.

    Raises:
      TypeError: if `target` has no sharding.
    """
    ts = tensorstore()
    sharding, layout = (
        (target.sharding, target.layout) if isinstance(target, Format) else (target, None)
    )
    if not isinstance(sharding, Sharding):
        raise TypeError(
            "an array is read into a sharding: pass a jax.sharding.Sharding, or a Format that has "
            f"one: got {target!r} of type {type(target).__name__}"
        )
    store = await ts.open(spec, open=True)
    whole = tuple(store.shape if shape is None else shape)
    requested_dtype = canonicalize_dtype(store.dtype.numpy_dtype if dtype is None else dtype)

    async def shard(device: Device, index: Index) -> Array:
        requested = ts.IndexTransform(input_shape=whole)[index].domain
        written = store.domain.intersect(requested)
        data = np.zeros(requested.shape, store.dtype.numpy_dtype)
        await budget.take(data.nbytes)
        try:
            await ts.array(data)[ts.d[:].translate_to[requested.origin]][written].write(
                store[written]
            )
            return device_put(data.astype(requested_dtype), Format(layout, on_device(device)))
        finally:
            await budget.give_back(data.nbytes)

    indices = sharding.addressable_devices_indices_map(whole)
    shards = await asyncio.gather(*(shard(device, index) for device, index in indices.items()))
    return make_array_from_single_device_arrays(whole, sharding, shards, dtype=requested_dtype)
