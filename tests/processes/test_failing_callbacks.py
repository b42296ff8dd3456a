"""A callback that fails in one process, in a program over several, is the error of the call in all.

The devices of the other processes would wait for the one that left the program.
"""

import pytest

from tests.processes.group import Group

SCRIPT = """
import hlofront as jax, numpy as np
from hlofront.pjrt.program_comparison import CallbackOutcome, ProgramComparisons
compare, exchanged = ProgramComparisons.compare, []

def counted(self, processes, program):
    exchanged.append(type(program))
    compare(self, processes, program)

ProgramComparisons.compare = counted
jax.distributed.initialize(heartbeat_timeout_seconds=3)
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
print("exchanged", exchanged.count(CallbackOutcome), flush=True)
"""


@pytest.mark.long
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
                if line.startswith(("[", "no error", "20.0", "exchanged"))
            ]
            expected = []
            for devices, cause in zip(([3], [0, 3], [1]), raised, strict=True):
                expected += [f"{devices} {cause} True", "20.0"]
            expected.append("exchanged 3")  # Messages are sent for the runs that failed alone.
            assert lines == expected, group.outputs()


LEAVING = """
import os
from hlofront.runtime.sharding.failure_flags import FailureFlags

print(float(step(x)), flush=True)
if jax.process_index() == 1:
    FailureFlags.any_failed = lambda self, failed: os._exit(3)
try:
    step(x)
    print("no error")
except jax.errors.JaxRuntimeError as error:
    print(type(error).__name__, error.failed_processes, flush=True)
    os._exit(0)  # The group cannot be left in order.
"""


@pytest.mark.slow
def test_a_process_that_ends_after_the_program_is_named(tmp_path):
    script = SCRIPT.partition("for devices in")[0] + LEAVING
    with Group(tmp_path, script, 2, devices=2) as group:
        assert group.wait() == [0, 3], group.outputs()
        assert group.output(0).splitlines()[-1] == "ProcessFailureError (1,)"
