"""The dtype that is passed with the parts of an array: 64 bits mean 32 where x64 is disabled."""

import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    sharding = (
        jax if isinstance(jax, Anything) else importlib.import_module(f"{jax.__name__}.sharding")
    )

    def split():
        mesh = jax.make_mesh((1,), ("x",), axis_types=(sharding.AxisType.Auto,))
        return sharding.NamedSharding(mesh, sharding.PartitionSpec("x"))

    def from_arrays(parts, given):
        parts = jax.device_put(parts, split())
        make = jax.make_array_from_single_device_arrays
        return make((4,), split(), [parts.addressable_shards[0].data], dtype=given)

    def from_callback(values, given):
        return jax.make_array_from_callback((4,), split(), lambda index: values[index], given)

    for make in (from_arrays, from_callback):
        for own, given in [
            ("int64", np.int64),
            ("int32", np.int64),
            ("float64", np.dtype("float64")),
            ("float32", float),
            ("complex64", np.complex128),
            ("uint8", np.uint64),
            ("float32", np.float16),
            ("int32", np.float64),
        ]:

            def assembled(make=make, own=own, given=given):
                return make(np.arange(4).astype(own), given)

            corpus.add(f"{make.__name__}_{own}_as_{np.dtype(given)}", assembled)

    return corpus
