"""Small calls about shardings, whose answers jax 0.10.2 gave: the names that they use, and `ask`.

`PYTHON tests/many_devices/sharding_answers.py jax`, with a Python that has jax and rich, writes the
answers of the calls in `jax_answers*.txt` and `partitioning_answers.txt` anew.
"""

import copy
import importlib
import os
import pathlib
import pickle
import sys
import warnings

import numpy as np

HERE = pathlib.Path(__file__).parent
ANSWERS = sorted(HERE.glob("jax_answers*.txt"))
PARTITIONING = [HERE / "partitioning_answers.txt"]


def names_for(jax):
    """What the calls may use, made with jax or hlofront on eight devices."""
    sharding = jax.sharding
    devices = jax.devices()
    mesh = sharding.Mesh(np.array(devices).reshape(2, 4), ("x", "y"))
    flat = sharding.Mesh(np.array(devices).reshape(1, 8, 1), ("x", "y", "z"))
    backwards = sharding.Mesh(np.array(devices[::-1]).reshape(2, 4), ("x", "y"))
    one = sharding.Mesh(np.array(devices[:1]), ("x",))
    four = sharding.Mesh(np.array(devices[:4]).reshape(2, 2), ("x", "y"))
    host = np.arange(64, dtype=np.float32).reshape(8, 8)

    def put(spec, mesh=mesh):
        return jax.device_put(host, sharding.NamedSharding(mesh, spec))

    def where(array):
        """What is compared of an array: how it is split, from which device on, and committed."""
        held = array.sharding
        if isinstance(held, sharding.NamedSharding):
            first = held.mesh.devices.flat[0].id
            return "named", held.mesh.axis_sizes, held.spec, first, array.committed
        return "one", next(iter(held.device_set)).id, array.committed

    def inside(call, mesh=mesh):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            with mesh:
                return call()

    def guarded(call, kind="disallow"):
        with jax.transfer_guard(kind):
            return call()

    def deleted_by(call, array):
        call(array)
        return array.is_deleted()

    def default_on(device, call):
        with jax.default_device(device):
            return call()

    def meshed(*sizes, first=0):
        """A mesh with the axes x, y, z, from the `first` device on."""
        chosen = np.array(devices[first : first + int(np.prod(sizes))]).reshape(sizes)
        return sharding.Mesh(chosen, ("x", "y", "z")[: len(sizes)])

    def on(mesh, *entries, **kind):
        return sharding.NamedSharding(mesh, sharding.PartitionSpec(*entries), **kind)

    def values(*shape, dtype="float32"):
        return (np.arange(int(np.prod(shape))) % 120).reshape(shape).astype(dtype)

    def plain(array):
        """The NumPy array of an array, or of the integers of random keys."""
        is_key = jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key)
        return np.asarray(jax.random.key_data(array) if is_key else array)

    def held(array):
        """Where an array is: the kind of its sharding, its mesh, spec and devices, in short."""
        own = array.sharding
        kind = "" if own.memory_kind == "device" else own.memory_kind
        if isinstance(own, sharding.NamedSharding):
            ids = [device.id for device in own.mesh.devices.flat]
            return f"{own.mesh.axis_sizes} {own.spec} {kind}", ids, array.committed
        return f"{type(own).__name__} {kind}", sorted(d.id for d in own.device_set), array.committed

    def parts(array):
        """The device, index and number of each shard, and whether its data are those of it."""
        whole = plain(array)

        def short(index):
            return ",".join("" if s == slice(None) else f"{s.start}-{s.stop}" for s in index)

        return " ".join(
            f"{shard.device.id}[{short(shard.index)}]{shard.replica_id}"
            + ("" if np.array_equal(whole[shard.index], plain(shard.data)) else "!")
            for shard in array.addressable_shards
        )

    def described(array):
        """All that is compared of an array over devices."""
        total = plain(array).astype("complex64").sum()
        return held(array), parts(array), str(array.dtype), total.real, total.imag

    return {
        "meshed": meshed,
        "on": on,
        "values": values,
        "plain": plain,
        "held": held,
        "parts": parts,
        "described": described,
        "row": meshed(8),
        "cubic": meshed(2, 2, 2),
        "last": meshed(2, 2, first=4),
        "six": meshed(6),
        "pair": meshed(2, first=6),
        "jax": jax,
        "jnp": jax.numpy,
        "lax": jax.lax,
        "np": np,
        "copy": copy,
        "pickle": pickle,
        "P": sharding.PartitionSpec,
        "Mesh": sharding.Mesh,
        "AxisType": sharding.AxisType,
        "NamedSharding": sharding.NamedSharding,
        "AbstractMesh": sharding.AbstractMesh,
        "SingleDeviceSharding": sharding.SingleDeviceSharding,
        "devices": devices,
        "mesh": mesh,
        "flat": flat,
        "backwards": backwards,
        "one": one,
        "four": four,
        "host": host,
        "put": put,
        "where": where,
        "inside": inside,
        "guarded": guarded,
        "deleted_by": deleted_by,
        "default_on": default_on,
        "square": np.array(four.devices),
        "split": put(sharding.PartitionSpec("x", "y")),
        "cube": jax.device_put(
            np.ones((8, 8, 8), np.float32),
            sharding.NamedSharding(flat, sharding.PartitionSpec("x", "y", "z")),
        ),
        "second": jax.device_put(host, devices[2]),
        "loose": jax.numpy.asarray(host),
    }


def ask(call, names):
    """The answer to a call, as text: its value, or the builtin class of the error it raises."""
    try:
        return "-> " + " ".join(repr(eval(call, names)).split())
    except Exception as error:
        return "!! " + next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")


def calls_and_answers(paths=ANSWERS):
    """The pairs of a call and its answer in files."""
    lines = [line for path in paths for line in path.read_text().splitlines()]
    return list(zip(lines[::2], lines[1::2], strict=True))


if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    partitioning = importlib.import_module("partitioning_names")
    sys.path.pop(0)
    package = importlib.import_module(sys.argv[1])
    for paths, names_of in ((ANSWERS, names_for), (PARTITIONING, partitioning.names_for)):
        known = names_of(package)
        for path in paths:
            calls = path.read_text().splitlines()[::2]
            path.write_text("".join(f"{call}\n    {ask(call, known)}\n" for call in calls))
