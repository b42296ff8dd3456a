"""What the system says of other processes of this machine."""

import os
import signal
import subprocess
import sys

from hlofront.pjrt.process_states import GONE, RUNS, STOPPED, machine, started_at, state


def test_the_state_of_a_process_that_runs_stops_and_ends():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        started = started_at(process.pid)
        assert state(process.pid, started) == RUNS
        assert state(process.pid, str(int(started) - 1)) == GONE  # Another had the number before.
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        assert state(process.pid, started) == STOPPED
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert state(process.pid, started) == GONE  # A zombie.
    assert state(process.pid, started) == GONE
    assert state(process.pid, "") == ""


def test_processes_of_one_machine_know_it_by_one_name():
    assert machine() == machine() != ""
