"""A callback that fails in one process, in a program over several, is the error of the call in all.

The devices of the other processes would wait for the one that left the program.
"""

import pytest

from tests.processes.group import Group

SCRIPT = """
import hlofront as jax, numpy as np
jax.distributed.initialize()
count = jax.device_count()
mesh = jax.make_mesh((count,), ("x",), (jax.sharding.AxisType.Auto,))
split = jax.NamedSharding(mesh, jax.P("x"))
ones = np.ones((count, 4), np.float32)
x = jax.make_array_from_callback(ones.shape, split, lambda index: ones[index])
failing = set()

def refuse(device, value):
    if int(device) in failing:
        raise LookupError("refused")
    return value

@jax.jit
@jax.shard_map(mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P(), check_vma=False)
def step(part):
    number = jax.ShapeDtypeStruct((), np.float32)
    each = jax.pure_callback(refuse, number, jax.lax.axis_index("x"), part[0, 0])
    return jax.lax.psum(part.sum() + each, "x")

for devices in ({3}, {0, 3}, {1}):
    failing.update(devices)
    try:
        step(x)
        print("no error")
    except jax.errors.JaxRuntimeError as error:
        print(sorted(devices), type(error.__cause__).__name__, "LookupError: refused" in str(error))
    failing.clear()
    print(float(step(x)), flush=True)
"""


@pytest.mark.slow
def test_all_processes_get_the_error_and_go_on(tmp_path):
    with Group(tmp_path, SCRIPT, 2, devices=2) as group:
        assert group.wait() == [0, 0], group.outputs()
        causes = (
            ["NoneType", "LookupError", "LookupError"],
            ["LookupError", "LookupError", "NoneType"],
        )
        for number, raised in enumerate(causes):
            lines = [
                line
                for line in group.output(number).splitlines()
                if line.startswith(("[", "no error", "20.0"))
            ]
            expected = []
            for devices, cause in zip(([3], [0, 3], [1]), raised, strict=True):
                expected += [f"{devices} {cause} True", "20.0"]
            assert lines == expected, group.outputs()
