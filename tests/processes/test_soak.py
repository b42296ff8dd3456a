"""The soak script, at its shortest: one process is killed, one stopped, and the run resumes."""

import signal

import pytest

from tests.processes.soak import check_resumed, fail_once


@pytest.mark.long
def test_a_run_resumes_from_its_checkpoint_to_the_same_numbers(tmp_path):
    fail_once(tmp_path / "run", signal.SIGKILL, 0.5, 2)
    fail_once(tmp_path / "run", signal.SIGSTOP, 0.2, 0)
    check_resumed(tmp_path / "run", tmp_path / "whole")
