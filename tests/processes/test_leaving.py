"""Processes leave their group in any order, and within the time that leaving may take."""

import pytest

from tests.processes.group import Group

pytestmark = pytest.mark.slow

# Process 0 reads slowly what the others have announced; process 1 leaves meanwhile.
SCRIPT = """
import time
import hlofront as jax
from hlofront.pjrt.process_group import current_group
jax.distributed.initialize(heartbeat_timeout_seconds=3, shutdown_timeout_seconds={timeout})
me, group = jax.process_index(), current_group()
if me == 0:
    read = group._values
    def read_slowly(prefix):
        time.sleep({delay})
        return read(prefix)
    group._values = read_slowly
time.sleep({wait} if me else {long_wait})
started = time.monotonic()
jax.distributed.shutdown()
print(group.gone(), time.monotonic() - started < {timeout} + 1)
"""


@pytest.mark.long
def test_a_process_leaves_while_another_reads_who_has_left(tmp_path):
    script = SCRIPT.format(timeout=60, delay=0.5, wait=1, long_wait=3)
    with Group(tmp_path, script, 2) as group:
        assert group.wait(seconds=40) == [0, 0], group.outputs()
        assert [group.output(number) for number in (0, 1)] == ["{1: ''} True", "{} True"]


@pytest.mark.long
def test_a_process_does_not_wait_longer_for_the_others_than_it_may(tmp_path):
    script = SCRIPT.format(timeout=2, delay=8, wait=3, long_wait=14)
    with Group(tmp_path, script, 2) as group:
        assert group.wait([1], seconds=40) == [0], group.outputs()
        lines = group.output(1).splitlines()
        assert "process 1 of 2 leaves its group without notifying the others" in lines[0]
        assert lines[-1] == "{} True"
        assert group.wait([0], seconds=40) == [0], group.outputs()
