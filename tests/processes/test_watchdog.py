"""The watchdog says which process the others of a group wait for, and its line."""

import json

import pytest

import hlofront as jax
from tests.processes.group import Group
from tests.processes.stuck_groups import FAULTS, report_of, said

# One fault of each kind; `python -m tests.processes.stuck_groups` tries all.
EACH = {fault.kind: fault for fault in reversed(FAULTS)}
QUICK = ("kill", "skip", "lock")


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(
            fault,
            id=f"{fault.kind}-{fault.victim}-{fault.at}",
            marks=() if fault.kind in QUICK else pytest.mark.long,
        )
        for fault in EACH.values()
    ],
)
def test_one_report_names_the_process_and_its_line(fault, tmp_path):
    report, _ = report_of(fault, tmp_path)
    assert said(fault).search(report), report
    assert report.count("hlofront: process") == 1, report


TRAINING = """
import os, time
import hlofront as jax, hlofront.numpy as jnp, numpy as np
from hlofront.experimental.multihost_utils import live_devices, sync_global_devices
jax.distributed.initialize()
me, count = jax.process_index(), jax.device_count()
mesh = jax.make_mesh((count,), ("x",), (jax.sharding.AxisType.Auto,))
split, whole = jax.NamedSharding(mesh, jax.P("x")), jax.NamedSharding(mesh, jax.P())
own = np.ones((4, 8), np.float32)
batch = jax.make_array_from_process_local_data(split, own)
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("meeting", "name"),
    [
        ("sync_global_devices('saved')", "process_rows"),
        ("jax.device_put(own, whole)", r"device_put of float32[4, 8]"),
        ("with live_devices(jax.devices()): pass", "live_devices"),
        ("jax.jit(lambda x: x.sum())(batch)", "<lambda>"),
    ],
)
def test_other_meetings_and_first_runs_are_watched(meeting, name, tmp_path):
    script = TRAINING + f"if me == 1:\n    time.sleep(1000)\n{meeting}\n"
    own = {"HLOFRONT_WATCHDOG_SECONDS": "1.5"}
    with Group(tmp_path, script, 2, variables=lambda number: own) as group:
        group.wait_for_text(0, "process 0 waits in", 60)
        assert f"process 1 has not launched {name}, launch 1:" in group.output(0)


@pytest.mark.long
def test_a_group_that_goes_on_is_not_reported_and_one_that_gets_stuck_again_is(tmp_path):
    script = TRAINING + (
        "for number in range(4):\n"
        "    time.sleep(4 if me == 1 and number in (1, 3) else 0)\n"
        "    float(jnp.sum(batch))\n"
    )
    own = {"HLOFRONT_WATCHDOG_SECONDS": "1.5", "HLOFRONT_LOG": str(tmp_path / "log")}
    with Group(tmp_path, script, 2, variables=lambda number: own) as group:
        assert group.wait() == [0, 0], group.outputs()
        assert group.output(0).count("hlofront: process 0 of 2 has waited for") == 2
        assert "hlofront:" not in group.output(1)
    records = [
        json.loads(line)
        for file in (tmp_path / "log").glob("*.jsonl")
        for line in file.read_text().splitlines()
    ]
    stems = [record["program"] for record in records if record["event"] == "stuck"]
    texts = [(tmp_path / "log" / "programs" / f"{stem}.txt").read_text() for stem in stems]
    assert len(texts) == 2
    assert all("process 1 has not launched" in text for text in texts)


def test_the_limit_is_a_time(monkeypatch):
    # Other tests of this process have used devices.
    monkeypatch.setattr("hlofront.pjrt.process_group.clients.are_made", lambda: False)
    with pytest.raises(ValueError, match="watchdog_seconds is a time, or 0"):
        jax.distributed.initialize("localhost:1", 2, 0, watchdog_seconds=-1)
