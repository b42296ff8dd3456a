"""The mesh that the cases use, and what their arrays are split by."""

import numpy as np

import hlofront as jax
from hlofront.sharding import Mesh, NamedSharding
from hlofront.sharding import PartitionSpec as P

devices = jax.devices()
assert len(devices) == 8, "run tests/many_devices/test_eight_devices.py"
mesh = Mesh(np.array(devices).reshape(4, 2), ("x", "y"))


def split(*entries, **kind):
    return NamedSharding(mesh, P(*entries), **kind)


def matrix(*entries, shape=(8, 4), dtype=np.float32):
    """0, 1, 2, ... split along these."""
    values = np.arange(np.prod(shape), dtype=dtype).reshape(shape)
    return jax.device_put(values, split(*entries))
