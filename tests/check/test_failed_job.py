"""The end of `./check` says which tests failed, and where a process crashed."""

import os
import pathlib
import subprocess
import sys

import pytest

from tests.check.failed_job import summary
from tests.check.progress import Progress

ROOT = pathlib.Path(__file__).parents[2]

FAILING = """\
..F [100%]
____________ test_sums ____________

    def test_sums():
>       assert 1 + 1 == 3
E       assert 2 == 3

tests/test_sums.py:2: AssertionError
= short test summary info =
FAILED tests/test_sums.py::test_sums - assert 2 == 3
1 failed, 2 passed in 0.10s
"""


def test_failed_tests_and_their_errors_are_listed():
    assert summary(FAILING, 1) == [
        "exit status 1",
        "FAILED tests/test_sums.py::test_sums - assert 2 == 3",
        "____________ test_sums ____________",
        "E       assert 2 == 3",
    ]


def test_a_log_without_known_lines_is_quoted_from_its_end():
    lines = summary("\n".join(f"line {number}" for number in range(50)), 2)
    assert lines == ["exit status 2", "the end of its log:", *(f"line {n}" for n in range(35, 50))]


def test_lists_have_an_end():
    failed = "\n".join(f"FAILED test_{number}" for number in range(100))
    assert summary(failed, 1)[-1] == "... and 60 more lines"


@pytest.mark.parametrize("status", [137, -9])
def test_a_signal_has_its_name(status):
    lines = summary(".... [ 43%]", status, "tests/test_a.py::test_b\nafter 7 other tests\n")
    assert lines[0] == f"exit status {status}: SIGKILL ended it"
    assert "tests/test_a.py::test_b" in lines
    assert "no stack" in "\n".join(lines)


def test_a_crash_is_shown_with_its_test_and_its_stack(tmp_path):
    (tmp_path / "test_crash.py").write_text(
        "import os, signal\n"
        "def test_before():\n    pass\n"
        "def test_crash():\n    print('lost'); os.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    running = tmp_path / "running"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.check.progress"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", "test_crash.py"],
        cwd=tmp_path,
        env={**os.environ, "TEST_PROGRESS": str(running), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    lines = summary(done.stdout + done.stderr, done.returncode, Progress.read(running).test)
    assert lines[0].endswith("SIGSEGV ended it")
    assert lines[2] == "test_crash.py::test_crash"
    assert lines[3].startswith("after 1 other tests")
    stack = lines[lines.index("Fatal Python error: Segmentation fault") :]
    assert any('test_crash.py", line 5 in test_crash' in line for line in stack)
