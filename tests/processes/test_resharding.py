"""Arrays over several processes are put on the same devices in another order, and on others.

Where a process lacks a shard that its devices are to have, devices of the others send it.
"""

import re

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
    "halves of one process": over([2, 3], P("x")),
    "columns of two": over([1, 2], P(None, "x")),
    "two copies": over([1, 3], P()),
    "one": over([2], P()),
}
for name, source in sources.items():
    x = jax.make_array_from_callback(values.shape, source, lambda index: values[index])
    for other, target in targets.items():
        for values_of_type in (values, values > 3, values.astype(jax.numpy.bfloat16)):
            x = jax.make_array_from_callback((8, 4), source, lambda index: values_of_type[index])
            y = jax.device_put(x, target)
            assert y.sharding == target and y.shape == (8, 4) and y.committed
            assert len(y.addressable_shards) == len(target.addressable_devices)
            for shard in y.addressable_shards:
                np.testing.assert_array_equal(shard.data, values_of_type[shard.index])
        x = jax.make_array_from_callback(values.shape, source, lambda index: values[index])
        y = jax.device_put(x, target)
        if y.addressable_shards:
            assert is_right(y, target)
        print(name, "to", other, flush=True)
"""
NAMES = re.findall(r'^    "([a-z ]+)": over', SCRIPT, re.MULTILINE)
SOURCES, TARGETS = NAMES[:4], NAMES[4:]
WANTED = [f"{source} to {target}" for source in SOURCES for target in TARGETS]


@pytest.mark.long
def test_shards_go_where_processes_or_their_programs_have_them(tmp_path):
    # The sums are compiled for each sharding.
    quiet = {"HLOFRONT_WARN_RECOMPILES": "0"}
    with Group(tmp_path, SCRIPT, 2, devices=2, variables=lambda number: quiet) as group:
        assert group.wait() == [0, 0], group.outputs()
        for number in range(2):
            assert group.output(number).splitlines() == WANTED, group.outputs()


OTHERS = """
import hlofront as jax, numpy as np
jax.distributed.initialize()
P = jax.P
devices = np.array(jax.devices())
values = np.arange(32, dtype=np.float32).reshape(8, 4)

def over(numbers, spec, **kind):
    return jax.NamedSharding(jax.sharding.Mesh(devices[np.array(numbers)], ("x",)), spec, **kind)

def made(sharding, whole=values):
    part = lambda index: whole[index]
    return jax.make_array_from_callback(whole.shape, sharding, part, dtype=whole.dtype)

def show(name, array):
    shards = [float(np.asarray(shard.data, np.float64).sum()) for shard in array.addressable_shards]
    print(name, shards, array.sharding.memory_kind, flush=True)

rows = over([0, 1, 2, 3], P("x"))
show("one device", jax.device_put(made(rows), devices[2]))
on_host = over([2, 1], P("x"), memory_kind="pinned_host")
show("to the host", jax.device_put(made(rows), on_host))
show("from the host", jax.device_put(made(on_host), over([0, 3], P("x"))))
show("thirds", jax.device_put(made(rows, np.ones((12, 2), np.int8)), over([1, 2, 3], P("x"))))
show("a scalar", jax.device_put(made(over([0, 2], P()), np.float32(3).reshape(())), over([1], P())))
show("nothing", jax.device_put(made(rows, np.ones((12, 0), np.float32)), over([1, 2, 3], P("x"))))
keys = jax.jit(lambda: jax.random.split(jax.random.key(0), 8), out_shardings=rows)()
wanted = jax.random.key_data(jax.random.split(jax.random.key(0), 8))
for shard in jax.device_put(keys, over([1, 2], P("x"))).addressable_shards:
    np.testing.assert_array_equal(jax.random.key_data(shard.data), wanted[shard.index[0]])
double = jax.jit(lambda x: x * 2, in_shardings=over([1, 3], P("x")))
for _ in range(3):
    show("an argument", double(made(over([2, 0], P("x")))))
try:
    show("of one process", jax.device_put(made(over([0, 1], P("x"))), over([2, 3], P("x"))))
except ValueError as error:
    assert "process 0 has the whole array, and sends no shards to others" in str(error)
    print("refused")
"""


@pytest.mark.long
def test_all_kinds_of_arrays_are_sent(tmp_path):
    quiet = {"HLOFRONT_WARN_RECOMPILES": "0"}
    with Group(tmp_path, OTHERS, 2, devices=2, variables=lambda number: quiet) as group:
        assert group.wait() == [0, 0], group.outputs()
        first, second = (group.output(number).splitlines() for number in range(2))
    assert first == [
        "one device [] device",
        "to the host [376.0] pinned_host",
        "from the host [120.0] device",
        "thirds [8.0] device",
        "a scalar [3.0] device",
        "nothing [0.0] device",
        *["an argument [240.0] device"] * 3,
        "of one process [] device",
    ]
    assert second == [
        "one device [496.0] device",
        "to the host [120.0] pinned_host",
        "from the host [376.0] device",
        "thirds [8.0, 8.0] device",
        "a scalar [] device",
        "nothing [0.0, 0.0] device",
        *["an argument [752.0] device"] * 3,
        "refused",
    ]


BETWEEN_ALL = """
import hlofront as jax, numpy as np
jax.distributed.initialize()
P = jax.P
devices = jax.devices()
values = np.arange(24 * 12, dtype=np.float32).reshape(24, 12)

def over(chosen, *entries):
    return jax.NamedSharding(jax.sharding.Mesh(np.array(chosen), ("x",)), P(*entries))

sources = {
    "rows": over(devices, "x"),
    "columns of all but one": over(devices[1:], None, "x"),
}
targets = {
    "columns": over(devices, None, "x"),
    "copies": over(devices[::-1]),
    "rows of the first and last": over([devices[0], devices[-1]], "x"),
    "rows of all but the first": over(devices[1:], "x"),
    "the last": over(devices[-1:]),
}

def has_values(array, sharding):
    assert array.sharding == sharding
    assert len(array.addressable_shards) == len(sharding.addressable_devices)
    for shard in array.addressable_shards:
        np.testing.assert_array_equal(shard.data, values[shard.index])

for name, source in sources.items():
    x = jax.make_array_from_callback((24, 12), source, lambda i: values[i], dtype=values.dtype)
    for other, target in targets.items():
        has_values(jax.device_put(x, target), target)
        print(name, "to", other, flush=True)
# A process that has devices of the array alone, and none of in_shardings, calls as the others do.
double = jax.jit(lambda a: a * 2, in_shardings=over(devices[1:], "x"))
result = double(jax.device_put(values, over(devices[:-1], "x")))
for shard in result.addressable_shards:
    np.testing.assert_array_equal(shard.data, values[shard.index] * 2)
print("moved by in_shardings", flush=True)
"""


@pytest.mark.long
@pytest.mark.parametrize(("processes", "devices"), [(2, 2), (3, 1), (4, 1)])
def test_arrays_go_between_any_number_of_processes(tmp_path, processes, devices):
    quiet = {"HLOFRONT_WARN_RECOMPILES": "0"}
    names = re.findall(r'^    "([a-z ]+)": over', BETWEEN_ALL, re.MULTILINE)
    wanted = [f"{source} to {target}" for source in names[:2] for target in names[2:]]
    with Group(
        tmp_path, BETWEEN_ALL, processes, devices=devices, variables=lambda number: quiet
    ) as group:
        assert group.wait(seconds=120) == [0] * processes, group.outputs()
        for number in range(processes):
            lines = group.output(number).splitlines()
            assert lines == [*wanted, "moved by in_shardings"], group.outputs()
