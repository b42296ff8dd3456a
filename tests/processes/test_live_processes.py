"""Processes that go on without those that have failed, and those that are to be ended."""

import signal

import pytest

import hlofront as jax
from hlofront.pjrt.live_processes import live_devices, reached_preemption_sync_point
from tests.processes.group import Group

# Each step sums over the devices that are alive. Devices 1 and 2 fail one after the other.
SURVIVING = """
import os, signal, time
import hlofront as jax, hlofront.numpy as jnp, numpy as np
from hlofront.pjrt.live_processes import live_devices
from hlofront.pjrt.process_failures import ProcessFailureError
jax.distributed.initialize(heartbeat_timeout_seconds=3)
me = jax.process_index()
steps = {}
while len(steps) < 30:
    step = len(steps)
    try:
        with live_devices(jax.devices()) as devices:
            mesh = jax.sharding.Mesh(np.array(devices), ("x",))
            split = jax.NamedSharding(mesh, jax.P("x"))
            ones = np.full(len(devices), step, np.float32)
            x = jax.make_array_from_callback(ones.shape, split, lambda index: ones[index])
            total = float(jax.jit(jnp.sum, out_shardings=jax.NamedSharding(mesh, jax.P()))(x))
        steps[step] = total / len(devices)
        count = len(devices)
    except ProcessFailureError as error:
        print("failed", error.failed_processes, len(error.failed_devices), flush=True)
    if (me, step) == (1, 5):
        os.kill(os.getpid(), signal.SIGKILL)
    if (me, step) == (2, 20):
        os.kill(os.getpid(), signal.SIGSTOP)
print(count, steps == {step: float(step) for step in range(30)})
"""

PREEMPTED = """
import time
import hlofront as jax
from hlofront.pjrt.live_processes import reached_preemption_sync_point
jax.distributed.initialize()
for step in range(2000):
    if reached_preemption_sync_point(step):
        print("saved at", step, flush=True)
        break
    if step == 5:
        print("steps", flush=True)
    time.sleep(0.01)
"""


@pytest.mark.long
def test_survivors_go_on_with_the_devices_that_are_alive(tmp_path):
    with Group(tmp_path, SURVIVING, 4) as group:
        assert group.wait([0, 3]) == [0, 0], group.outputs()
        for number in (0, 3):
            lines = group.output(number).splitlines()
            assert lines == ["failed (1,) 1", "failed (2,) 1", "2 True"], group.outputs()


@pytest.mark.slow
def test_all_processes_save_at_one_step_when_one_is_to_be_ended(tmp_path):
    with Group(tmp_path, PREEMPTED, 2) as group:
        group.wait_for_text(1, "steps")
        group.processes[1].send_signal(signal.SIGTERM)
        assert group.wait() == [0, 0], group.outputs()
        saved = [group.output(number).splitlines()[-1] for number in range(2)]
        assert saved[0].startswith("saved at ") and saved[0] == saved[1], group.outputs()


def test_a_process_alone_is_never_told_to_save_and_has_no_live_devices():
    assert not reached_preemption_sync_point(1)
    with pytest.raises(RuntimeError, match="not initialized"), live_devices(jax.devices()):
        pass
