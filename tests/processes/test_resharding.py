"""Arrays over several processes are put on the same devices in another order, and on others.

No shard is copied from one process to another: where one would have to be, all processes refuse.
"""

import pytest

from tests.processes.group import Group

SCRIPT = """
import hlofront as jax, numpy as np
jax.distributed.initialize()
P = jax.P
devices = np.array(jax.devices())
values = np.arange(32, dtype=np.float32).reshape(8, 4)

def over(numbers, spec):
    mesh = jax.sharding.Mesh(devices[np.array(numbers)], ("x", "y")[: np.ndim(numbers)])
    return jax.NamedSharding(mesh, spec)

total = jax.jit(lambda x: x.sum())

def is_right(array, sharding):
    assert array.sharding == sharding and array.shape == values.shape
    for shard in array.addressable_shards:
        np.testing.assert_array_equal(shard.data, values[shard.index])
    return total(array) == values.sum()

# Devices 0 and 1 are of process 0, devices 2 and 3 of process 1.
sources = {
    "rows": over([0, 1, 2, 3], P("x")),
    "tiles": over([[0, 1], [2, 3]], P("x", "y")),
    "copies": over([0, 1, 2, 3], P()),
    "halves": over([0, 2], P("x")),
}
targets = {
    "reversed": over([3, 2, 1, 0], P("x")),
    "mixed": over([[2, 0], [3, 1]], P("y", "x")),
    "mixed columns": over([[2, 0], [3, 1]], P(None, "x")),
    "mixed copies": over([2, 0, 3, 1], P()),
    "other halves": over([1, 3], P("x")),
    "two copies": over([1, 3], P()),
    "one": over([2], P()),
}
for name, source in sources.items():
    x = jax.make_array_from_callback(values.shape, source, lambda index: values[index])
    for other, target in targets.items():
        try:
            y = jax.device_put(x, target)
        except ValueError as error:
            assert "Shards are not copied between processes" in str(error), error
            continue
        if y.addressable_shards:
            assert is_right(y, target)
        print(name, "to", other, flush=True)
"""
WANTED = [
    *(
        f"{name} to {other}"
        for name in ("rows", "tiles")
        for other in ("reversed", "mixed", "mixed columns", "mixed copies")
    ),
    "copies to reversed",
    "copies to mixed",
    "copies to mixed columns",
    "copies to mixed copies",
    "copies to two copies",
    "copies to one",
    "halves to other halves",
]


@pytest.mark.slow
def test_shards_go_where_processes_or_their_programs_have_them(tmp_path):
    # The sums are compiled for each sharding.
    quiet = {"HLOFRONT_WARN_RECOMPILES": "0"}
    with Group(tmp_path, SCRIPT, 2, devices=2, variables=lambda number: quiet) as group:
        assert group.wait() == [0, 0], group.outputs()
        for number in range(2):
            assert group.output(number).splitlines() == WANTED, group.outputs()
