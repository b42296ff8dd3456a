"""Processes of a group share a folder of executables: keys are equal, one writes, all read."""

import pytest

from hlofront.pjrt.cache_store import Store
from tests.processes.group import Group

# A program over the devices of all, one on a device of the process, one on two of its devices.
SCRIPT = """
import numpy as np
import hlofront as jax, hlofront.numpy as jnp
jax.distributed.initialize()

def over(devices):
    mesh = jax.sharding.Mesh(np.array(devices), ("x",))
    split = jax.NamedSharding(mesh, jax.P("x"))
    values = np.arange(4 * len(devices), dtype=np.float32)
    return jax.make_array_from_callback(values.shape, split, lambda index: values[index])

def of_all(x):
    return jnp.sum(x * 2)

def of_two(x):
    return jnp.sum(x * 3)

def of_one(x):
    return jnp.sum(x * 4)

sums, loaded = [], []
for function, devices in (
    (of_all, jax.devices()), (of_two, jax.local_devices()), (of_one, jax.local_devices()[1:])
):
    function = jax.jit(function)
    sums.append(float(function(over(devices))))
    times = function.timings()
    loaded.append(times.load > 0 and times.compile == 0)
print(sums, loaded)
"""


def outputs(folder, cache):
    variables = {"HLOFRONT_CACHE": "on", "HLOFRONT_CACHE_DIR": str(cache)}
    with Group(folder, SCRIPT, 2, devices=2, variables=lambda number: variables) as group:
        assert group.wait() == [0, 0], group.outputs()
        return [group.output(number) for number in range(2)]


@pytest.mark.long
def test_keys_are_equal_one_writes_and_all_read(tmp_path):
    cache = tmp_path / "cache"
    sums = [240.0, 84.0, 24.0]
    first = outputs(tmp_path, cache)
    names = sorted(entry.name for entry in Store(str(cache)).entries())
    # Were a key to differ between processes, there would be two entries of a name.
    assert names == ["of_all", "of_one", "of_two"]
    assert not [path for path in cache.iterdir() if path.name.startswith(".writing")]
    assert first[0].startswith(str(sums)) and first[1].startswith(str(sums))
    assert outputs(tmp_path, cache) == [f"{sums} [True, True, True]"] * 2
