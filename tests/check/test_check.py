"""`./check` runs jobs, says which failed and how to repeat it, and is the same tests each time."""

import os
import subprocess
import sys

import pytest

from tests.check import __main__ as main
from tests.check import jobs
from tests.check.jobs import Job
from tests.check.progress import Progress
from tests.check.report import command_for, explained, failed_tests, line_of
from tests.check.running import ROOT, Outcome, Running

TESTS = """\
def test_adds():
    assert 1 + 1 == 2


def test_wrong():
    assert 1 + 1 == 3
"""
FAILED = """\
FAILED tests/runtime/test_jit.py::test_calls[a - b] - assert 2 == 3
FAILED tests/core/test_print.py::test_prints
1 failed, 7 passed in 3.2s
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_sums.py").write_text(TESTS)
    return tmp_path


def test_jobs_run_at_once_and_tell_what_failed(folder):
    chosen = [
        Job("sums", ("pytest", "-q", "-p", "no:cacheprovider", str(folder)), 1),
        Job("version", ("sysconfig",), 1),
    ]
    sums, version = Running(chosen, folder, 2).run()
    assert (sums.status, version.status) == (1, 0)
    assert sums.progress[:3] == (2, 2, 0)
    assert line_of(sums).startswith("sums: 1 failed, 1 passed; 0:0")
    assert line_of(version).startswith("version: passed; 0:0")
    assert "E       assert (1 + 1) == 3" in explained([sums, version])


def test_the_first_failure_stops_the_others(folder):
    chosen = [
        Job("sums", ("pytest", "-q", "-p", "no:cacheprovider", str(folder)), 1),
        Job("server", ("http.server", "0", "--bind", "127.0.0.1"), 1),
        Job("never", ("sysconfig",), 1),
    ]
    outcomes = Running(chosen, folder, 2, stops_at_failure=True).run()
    assert [outcome.status for outcome in outcomes] == [1, None, None]


def test_a_job_that_ran_out_of_time_says_so(folder):
    stops = ("-p", "tests.check.time_limit", "-p", "no:cacheprovider")
    late = Job("late", ("pytest", "-q", *stops, str(folder)), 1, ends_at=-1)
    assert line_of(Running([late], folder, 1).run()[0]) == "late: not run"
    over = Outcome(Job("over", ("pytest",), 1, ends_at=9), 0, FAILED, Progress(3, 10))
    assert line_of(over).endswith("THE TIME WAS OVER after 3 of 10 tests")


def test_what_failed_comes_with_its_command_lowest_layers_first():
    job = Job("layers", ("pytest", *jobs.QUICK_CODE), 1)
    outcome = Outcome(job, 1, FAILED)
    names = [
        "tests/core/test_print.py::test_prints",
        "tests/runtime/test_jit.py::test_calls[a - b]",
    ]
    assert [name for name, _ in failed_tests([outcome])] == names
    command = command_for(names[1], job.plugins)
    assert command.endswith(f"-m pytest -p tests.support.quick_code '{names[1]}'")
    assert explained([outcome]).endswith(command)


def test_progress_tells_the_time_left(folder):
    running = Running([Job("a", ("x",), 3), Job("b", ("y",), 1)], folder, 1)
    (folder / "0.progress").write_text("30 60 2\ntest_a\n")
    running.started -= 90
    # Half of three quarters of the work is done.
    assert running.described() == "[1:30] 30 tests, 2 failed; about 2:30 left; running: "


def test_each_test_is_in_one_job_of_all():
    """Tests of a job are those that none of the others has."""
    names = [job.name for job in jobs.whole("all")]
    assert len(names) == len(set(names))
    layers = next(job for job in jobs.whole("all") if job.name == "layers")
    for path in (*jobs.USERS_CODE, jobs.SAMPLES, jobs.CORPORA):
        assert f"--ignore={path}" in layers.arguments
        assert (ROOT / path).exists(), path


def test_what_ran_as_quick_code_runs_as_users_code_in_the_rest():
    def lowering(part):
        return next(job for job in jobs.tests_of(part) if job.name == "lowering")

    first, rest = lowering("first"), lowering("rest")
    assert first.plugins == jobs.QUICK_CODE and first.part == "first"
    assert not rest.plugins and rest.part == "all"


def test_python_caches_bytecode_for_the_processes_of_a_run(folder, monkeypatch):
    """Without, each of the processes that tests start compiles all of hlofront's source."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    (folder / "named.py").write_text(
        "import sys\nprint(sys.dont_write_bytecode, sys.pycache_prefix)"
    )
    monkeypatch.setenv("PYTHONPATH", str(folder))
    (outcome,) = Running([Job("named", ("named",), 1)], folder, 1).run()
    assert outcome.log.split() == ["False", str(folder / "bytecode")]


@pytest.mark.long
def test_the_two_parts_are_all_tests():
    where = "tests/core/test_print.py", "tests/support", "tests/systematic/test_samples.py"

    def collected(part):
        found = subprocess.run(
            [sys.executable, "-m", "pytest", "--collect-only", "-q", *where],
            cwd=ROOT,
            env={**os.environ, "TEST_PART": part, "TEST_HALF": ""},
            capture_output=True,
            text=True,
        )
        return {line for line in found.stdout.splitlines() if "::" in line}

    first, rest = collected("first"), collected("rest")
    assert first and rest
    assert not first & rest
    assert first | rest == collected("all")


def test_changed_files_are_those_of_the_branch(tmp_path, monkeypatch):
    def git(*arguments):
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.com")
        subprocess.run(["git", *identity, "-C", tmp_path, *arguments], check=True)

    def commit(name):
        (tmp_path / name).write_text(name)
        git("add", name)
        git("commit", "-qm", name)

    git("init", "-q", "-b", "main")
    commit("first.py")
    git("switch", "-q", "-c", "branch")
    commit("committed.py")
    git("switch", "-q", "main")
    commit("by_others.py")
    git("switch", "-q", "branch")
    (tmp_path / "first.py").write_text("changed")
    (tmp_path / "new.py").write_text("")
    monkeypatch.setattr(main, "ROOT", tmp_path)
    assert sorted(main.changed_files()) == ["committed.py", "first.py", "new.py"]
