"""Groups of processes on this machine: joining, computing over all of them, leaving, and errors."""

import io
import os
import pathlib
import subprocess
import sys

import pytest

import hlofront as jax
from hlofront.cli.run import free_port, run_group, variables_of
from tests.processes.group import without_gloo

JOINED = """
import hlofront as jax, hlofront.numpy as jnp, numpy as np
jax.distributed.initialize()
"""


def run(tmp_path, script, processes=2, devices=2):
    """The status of a group that runs a script, and its lines by process."""
    path = tmp_path / "script.py"
    path.write_text(script)
    out = io.StringIO()
    status = run_group([sys.executable, str(path)], processes, devices, out)
    lines = out.getvalue().splitlines()
    own = [
        [line.split("] ", 1)[1] for line in lines if line.startswith(f"[{number}] ")]
        for number in range(processes)
    ]
    return status, own, lines


def test_a_group_computes_over_the_devices_of_all(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(pathlib.Path(__file__).parents[2]))
    status, own, lines = run(
        tmp_path,
        JOINED
        + """
mesh = jax.make_mesh((4,), ("x",), (jax.sharding.AxisType.Auto,))
print(jax.process_index(), jax.process_count(), jax.device_count(), jax.local_device_count())
values = np.arange(32, dtype=np.float32).reshape(8, 4)
split = jax.NamedSharding(mesh, jax.P("x"))
x = jax.make_array_from_callback((8, 4), split, lambda index: values[index])
print(x.is_fully_addressable, jax.typeof(x), len(x.addressable_shards))
with jax.set_mesh(mesh):
    print(float(jax.jit(lambda a: jnp.sum(a) + jnp.ones(()))(x)), jnp.arange(3))
try:
    np.asarray(x)
except RuntimeError as error:
    print("spans devices of other processes" in str(error))
print(repr(x), str(x), f"{x}")
last = jax.device_put(values, jax.devices()[3])
print(str(last).startswith("Array(shape=(8, 4)"))
try:
    print(float(np.asarray(last).sum()))
except RuntimeError as error:
    print("this process has no part of float32[8,4]" in str(error))
jax.distributed.shutdown()
print(jax.distributed.is_initialized())
""",
    )
    assert status == 0, lines
    for number in range(2):
        assert without_gloo(own[number]) == [
            f"{number} 2 4 2",
            "False float32[8,4] 2",
            "497.0 [0 1 2]",
            "True",
            " ".join(["Array(shape=(8, 4), dtype=float32)"] * 3),
            *(["False", "496.0"] if number else ["True", "True"]),
            "False",
        ]


def test_a_group_ends_when_one_process_fails(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(pathlib.Path(__file__).parents[2]))
    script = JOINED + "import sys, time\nif jax.process_index(): sys.exit(3)\ntime.sleep(60)\n"
    status, _, lines = run(tmp_path, script)
    assert status == 3
    assert lines[-1] == "process 1 has ended with status 3, and the others were ended"


def test_readers_of_a_process_do_not_wait_for_the_service_that_it_has_started(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(JOINED)
    with subprocess.Popen(
        [sys.executable, str(script)],
        env={
            **os.environ,
            "PYTHONPATH": str(pathlib.Path(__file__).parents[2]),
            **variables_of(0, 1, 1, free_port()),
        },
        stderr=subprocess.PIPE,
    ) as process:
        assert process.wait(60) == 0
        # The service ends ten seconds after the last process.
        process.communicate(timeout=8)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({}, ValueError, "coordinator_address should be defined"),
        ({"coordinator_address": "localhost:1"}, ValueError, "Number of processes must be defined"),
        (
            {"coordinator_address": "localhost:1", "num_processes": 2},
            ValueError,
            "process id of the current process must be defined",
        ),
        (
            {"coordinator_address": "localhost", "num_processes": 2, "process_id": 1},
            ValueError,
            "host:port",
        ),
        (
            {"coordinator_address": "localhost:1", "num_processes": 2, "process_id": 2},
            ValueError,
            "from 0 to num_processes - 1 = 1",
        ),
    ],
)
def test_wrong_arguments(arguments, error, text, monkeypatch):
    monkeypatch.setattr("hlofront.pjrt.process_group.clients.are_made", lambda: False)
    with pytest.raises(error, match=text):
        jax.distributed.initialize(**arguments, cluster_detection_method="deactivate")
    assert not jax.distributed.is_initialized()


def test_a_missing_coordinator_is_an_error_within_the_time(monkeypatch):
    monkeypatch.setattr("hlofront.pjrt.process_group.clients.are_made", lambda: False)
    with pytest.raises(RuntimeError, match="process 1 of 2 could not join its group"):
        jax.distributed.initialize(f"127.0.0.1:{free_port()}", 2, 1, initialization_timeout=1)


def test_a_late_call_is_refused():
    jax.devices()
    with pytest.raises(RuntimeError, match="must be called before any JAX calls"):
        jax.distributed.initialize("localhost:1", 1, 0)


def test_a_port_that_is_taken_is_an_error(tmp_path, monkeypatch):
    import socket

    monkeypatch.setattr("hlofront.pjrt.process_group.clients.are_made", lambda: False)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(RuntimeError, match="process 0 cannot listen at"):
            jax.distributed.initialize(address, 1, 0, coordinator_bind_address=address)


WRONG_GROUPS = {
    "one is missing": (["0", "1"], "3", "process 2 of 3 has not come"),
    "two have one number": (["0", "1", "1"], "3", "two processes have the number 1"),
}


@pytest.mark.parametrize("group", WRONG_GROUPS)
def test_a_wrong_group_is_an_error_in_each_process(group, tmp_path):
    numbers, count, text = WRONG_GROUPS[group]
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, hlofront as jax\n"
        "number, count = map(int, sys.argv[2:])\n"
        "jax.distributed.initialize(sys.argv[1], count, number, initialization_timeout=8)\n"
    )
    address = f"127.0.0.1:{free_port()}"
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parents[2])}
    processes = [
        subprocess.Popen(
            [sys.executable, str(script), address, number, count],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in numbers
    ]
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 1, errors
        assert f"RuntimeError: process {process.args[3]} of 3 could not join" in errors
        assert text in errors
