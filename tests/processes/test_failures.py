"""What the processes of a group do when one of them is killed, stopped, cut off, or ends early."""

import signal

import pytest

from tests.processes.group import Group

pytestmark = pytest.mark.slow

# A program that all devices take part in, which every process has run once.
TRAINING = """
import os, sys, time
import hlofront as jax, hlofront.numpy as jnp, numpy as np
jax.distributed.initialize(heartbeat_timeout_seconds=3)
me, count = jax.process_index(), jax.device_count()
mesh = jax.make_mesh((count,), ("x",), (jax.sharding.AxisType.Auto,))
split = jax.NamedSharding(mesh, jax.P("x"))
step = jax.jit(lambda a: a / jnp.sum(a), in_shardings=split, out_shardings=split)
total = jax.jit(jnp.sum, in_shardings=split, out_shardings=jax.NamedSharding(mesh, jax.P()))
ones = np.ones((count, 4), np.float32)
x = jax.make_array_from_callback(ones.shape, split, lambda index: ones[index])
x = step(x)
float(total(x))
print("trained", flush=True)
"""
WAITS = {
    "block_until_ready": "x.block_until_ready()",
    "asarray": "np.asarray(total(x))",
    "launching": "while True: x = step(x)",
}


def failing(what, then=""):
    """A script in which process 1 does nothing more, and the others compute on."""
    return f"""{TRAINING}
if me == 1:
    {then or "time.sleep(60)"}
try:
    x = step(step(x))
    {what}
except jax.errors.JaxRuntimeError as error:
    print(type(error).__name__, error.failed_processes, len(error.failed_devices), error)
try:
    float(total(x))
except jax.errors.JaxRuntimeError as error:
    print("again", type(error).__name__)
print(jnp.arange(3.0) + 1, flush=True)
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("killed_by", "wait"),
    [
        (signal.SIGKILL, "asarray"),
        (signal.SIGSTOP, "block_until_ready"),
        (signal.SIGSTOP, "launching"),
    ],
)
def test_the_others_get_an_error_that_names_the_process(killed_by, wait, tmp_path):
    with Group(tmp_path, failing(WAITS[wait]), 3) as group:
        group.wait_for_text(1, "trained")
        group.processes[1].send_signal(killed_by)
        assert group.wait([0, 2]) == [0, 0], group.outputs()
        for number in (0, 2):
            output = group.output(number)
            assert "ProcessFailureError (1,) 1 process" in output, output
            assert "have failed: 1 (no sign of it for 3 s" in output
            assert "again ProcessFailureError" in output
            assert output.endswith("[1. 2. 3.]")  # Programs of one process run still.


def test_the_others_are_told_the_error_that_a_process_ended_with(tmp_path):
    script = failing(WAITS["asarray"], "raise ValueError('a bad batch')")
    with Group(tmp_path, script, 2) as group:
        assert group.wait() == [0, 1], group.outputs()
        assert "have failed: 1 (it ended with ValueError: a bad batch)" in group.output(0)


@pytest.mark.long
def test_the_others_are_told_that_a_process_has_left(tmp_path):
    with Group(tmp_path, failing(WAITS["asarray"], "sys.exit(3)"), 2) as group:
        assert group.wait() == [0, 3], group.outputs()
        assert "have failed: 1 (it has left the group)" in group.output(0)


# The first program in which processes exchange values; process 1 fails as the others connect to it.
CONNECTING = """
import os, signal
import hlofront as jax, hlofront.numpy as jnp, numpy as np
from hlofront.runtime.sharding.cpu_queue import OneAtATime
jax.distributed.initialize(heartbeat_timeout_seconds=3)
count = jax.device_count()
mesh = jax.make_mesh((count,), ("x",), (jax.sharding.AxisType.Auto,))
split = jax.NamedSharding(mesh, jax.P("x"))
x = jax.make_array_from_callback((count,), split, lambda index: np.ones(1, np.float32))
print("joined", flush=True)
if jax.process_index() == 1:
    OneAtATime.launch = lambda *args: os.kill(os.getpid(), signal.{signal})
try:
    jnp.sum(x).block_until_ready()
except jax.errors.JaxRuntimeError as error:
    print(type(error).__name__, error.failed_processes)
"""


@pytest.mark.long
@pytest.mark.parametrize("failure", ["SIGKILL", "SIGSTOP"])
def test_the_others_do_not_wait_for_the_connection_of_a_failed_process(failure, tmp_path):
    with Group(tmp_path, CONNECTING.format(signal=failure), 4, devices=2) as group:
        others = [0, 2, 3]
        for number in others:
            group.wait_for_text(number, "joined")
        # Without help, gloo waits for half a minute or longer.
        assert group.wait(others, 25) == [0, 0, 0], group.outputs()
        for number in others:
            # gloo may print lines of its own.
            lines = [line for line in group.output(number).splitlines() if "gloo" not in line]
            assert lines == ["joined", "ProcessFailureError (1,)"], group.outputs()
