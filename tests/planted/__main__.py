"""Plants faults in copies of the checkout, one at a time, and reports which tests find them.

    python -m tests.planted                     all faults, by the tests that ./check runs
    python -m tests.planted --all               by all tests, those of ./check all
    python -m tests.planted donated "cache key" faults with these words in their name or kind

The tests that belong to the planted file run first, then samples and programs by its name, then all
others; the first failure ends the search, if the test passes without the fault. The results are in
tests/planted/RESULTS.md; the test that found a fault the last time is run first the next time. The
exit status is 1 if fewer than 28 of 30 faults are found, or with `--all` fewer than all.
"""

import argparse
import concurrent.futures
import contextlib
import itertools
import os
import pathlib
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.check.affected_tests import affected_tests, words_of
from tests.check.jobs import QUICK_CODE, USERS_CODE
from tests.check.progress import Progress
from tests.planted.faults import FAULTS, ROOT, Fault

PROGRESS = "tests.check.progress"
# As many arguments as QUICK_CODE, for tests that run the code that users get.
USERS = ("-p", "no:doctest")
# Here each planted fault fails, as its text is no longer in the file.
OWN = "tests/planted"
RESULTS = ROOT / OWN / "RESULTS.md"
ENOUGH, OF = 28, 30
NOT_FOUND = "not found"
PATH_OF_TEST = re.compile(r"`(tests/.*)` \|")


class Result(NamedTuple):
    """What the tests say about a planted fault.

    Attributes:
      fault: the fault.
      found_by: the test that failed; None if none did.
      seconds: how long it took.
      limited: whether there was no time to run all tests.
    """

    fault: Fault
    found_by: str | None
    seconds: float
    limited: bool = False

    @property
    def verdict(self) -> str:
        if self.found_by is not None:
            return f"`{self.found_by}`"
        return f"{NOT_FOUND} in {self.seconds:.0f} s" if self.limited else NOT_FOUND


class OutOfTimeError(Exception):
    """The time for one fault is over."""


class Checkout:
    """A copy of the files that git knows or would add, as a repository in a scratch folder.

    Args:
      folder: the folder, which is made.
      sampled: whether the tests are those that `./check` runs, rather than all.
    """

    def __init__(self, folder: pathlib.Path, sampled: bool):
        self.folder = folder
        listed = _output(ROOT, "git", "ls-files", "-z", "-co", "--exclude-standard")
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        if (ROOT / ".venv").exists():
            (folder / ".venv").symlink_to((ROOT / ".venv").resolve())
        # Tests of the source use git to list the files.
        _output(folder, "git", "init", "-q")
        _output(folder, "git", "add", "-A")
        who = ("-c", "user.name=planted", "-c", "user.email=planted@localhost")
        _output(folder, "git", *who, "commit", "-q", "-m", "The checkout without a fault")
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(folder),
            # An entry of the disk cache may be of the code before the fault.
            "HLOFRONT_CACHE": "off",
            "TEST_PART": "first" if sampled else "all",
        }
        # Without bytecode in files each process that a test starts compiles all of hlofront.
        self.environment.pop("PYTHONDONTWRITEBYTECODE", None)
        # Python reuses bytecode for a source of the same size and time: all times must differ.
        self._times = itertools.count(int(time.time()) + 10, 10)
        self._deadline = float("inf")
        where = self._python("-c", "import hlofront; print(hlofront.__file__)")
        if not where.stdout.startswith(str(folder)):
            raise RuntimeError(f"{sys.executable} imports {where.stdout}, and not from {folder}")

    def try_fault(self, fault: Fault, seconds: float) -> Result:
        """Plant a fault and run tests until one fails, or the time is over."""
        started = time.monotonic()
        self._deadline = started + seconds
        path = self.folder / fault.file
        right = path.read_text(encoding="utf-8")
        found_by, limited = None, False
        try:
            self._write(path, fault.planted(right))
            found_by = next(self._failing(fault, path, right), None)
        except OutOfTimeError:
            limited = True
        finally:
            self._write(path, right)
        return Result(fault, found_by, time.monotonic() - started, limited)

    def _failing(self, fault: Fault, path: pathlib.Path, right: str) -> Iterator[str]:
        """Yield the tests that fail with the fault, and pass without it."""
        found_before = PATH_OF_TEST.findall(rows_before().get(fault.name, ""))
        found_before = [test for test in found_before if self._is_selected(test)]
        # By itself, and after the others of its file, which may have filled a cache.
        found_before += [test.partition("::")[0] for test in found_before]
        for selection in (*([*USERS, test] for test in found_before), *selections(fault)):
            # Tests that fail without the fault, too.
            useless: list[str] = []
            while (test := self._first_failure(selection, useless)) is not None:
                self._write(path, right)
                passes = self._first_failure([*selection[:2], test], []) is None
                self._write(path, fault.planted(right))
                if passes:
                    yield test
                useless.append(test)

    def _is_selected(self, test: str) -> bool:
        """Return whether `./check` runs a test, which pytest runs in any case if it is named."""
        file = test.partition("::")[0]
        own = ("--collect-only", "-q", "-p", "no:cacheprovider")
        return test in self._python("-m", "pytest", *own, file).stdout.splitlines()

    def _first_failure(self, selection: Sequence[str], without: Sequence[str]) -> str | None:
        """Run pytest until a test fails; return the test, or None if all pass."""
        running = self.folder.with_suffix(".test")
        running.unlink(missing_ok=True)
        self.environment["TEST_PROGRESS"] = str(running)
        deselected = [f"--deselect={test}" for test in without]
        own = ["-x", "-q", "-p", "no:cacheprovider", "-p", PROGRESS, f"--ignore={OWN}"]
        ended = self._python("-m", "pytest", *own, *selection, *deselected)
        # 5: no test was selected.
        if ended.returncode in (0, 5):
            return None
        if ended.returncode == 2 and (broken := re.search(r"^ERROR (\S+)", ended.stdout, re.M)):
            return broken[1]  # A file of tests that could not be imported.
        if not running.exists():
            raise RuntimeError(f"pytest ran no test:\n{ended.stdout}\n{ended.stderr}")
        return Progress.read(running).test.partition("\n")[0]

    def _python(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run the Python that runs this, in the copy; end all that it started at the deadline."""
        command = (sys.executable, *arguments)
        # Not pipes: a process that a test leaves behind would keep them open.
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=self.environment,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            left = self._deadline - time.monotonic()
            try:
                status = process.wait(None if left == float("inf") else max(left, 0))
            except subprocess.TimeoutExpired:
                raise OutOfTimeError from None
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(command, status, out.read(), err.read())

    def _write(self, path: pathlib.Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        changed = next(self._times)
        os.utime(path, (changed, changed))


def _output(folder: pathlib.Path, *command: str) -> str:
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def selections(fault: Fault) -> Iterator[list[str]]:
    """Yield what pytest runs to find a fault, the likeliest tests first.

    Each begins with two arguments for a plugin, and then names tests.
    """
    # The samples and programs of a module of rules have the name of what the rules are of.
    words = words_of([fault.file])
    words += [word.rpartition("_")[0] for word in words if "_" in word]
    likely = affected_tests([fault.file])
    named = [test for test in likely if any(word in test for word in words)]
    yield from _by_code(named)
    if words:
        yield [*QUICK_CODE, "tests/systematic", "tests/against_jax", "-k", " or ".join(words)]
    yield from _by_code([test for test in likely if test not in named])
    yield [*QUICK_CODE, "tests", *(f"--ignore={path}" for path in USERS_CODE)]
    yield [*USERS, *USERS_CODE]


def _by_code(tests: Sequence[str]) -> Iterator[list[str]]:
    """Yield the arguments for tests, apart for those that run the code that users get."""
    for plugin, is_users in ((QUICK_CODE, False), (USERS, True)):
        same = [test for test in tests if test.startswith(USERS_CODE) is is_users]
        if same:
            yield [*plugin, *same]


def chosen(words: Sequence[str]) -> list[Fault]:
    """Return the faults with one of these words in their name or kind, or all for no words."""
    return [
        fault
        for fault in FAULTS
        if not words or any(word in f"{fault.name} {fault.kind}" for word in words)
    ]


def row(result: Result) -> str:
    """Return a row of the table of results."""
    fault = result.fault
    found_by = result.verdict.replace("|", "\\|")
    return f"| {fault.name} | {fault.layer} | {found_by} | {result.seconds:.0f} |"


def rows_before() -> dict[str, str]:
    """Return the rows of the table of results as it is, by the names of their faults."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    return {line.split(" | ")[0].removeprefix("| "): line for line in lines}


def write_results(rows: dict[str, str], command: str) -> None:
    """Write the table of results; a run of some faults leaves the rows of the others."""
    rows = rows_before() | rows
    listed = [rows[fault.name] for fault in FAULTS if fault.name in rows]
    found = sum(NOT_FOUND not in line for line in listed)
    text = [
        "# Planted faults, and the tests that find them",
        "",
        f"`{command}` writes this page: each fault, the test that failed first, and the seconds",
        f"that it took to find. {found} of {len(listed)} faults were found.",
        "",
        "| fault | layer | found by | seconds |",
        "|---|---|---|---|",
        *listed,
    ]
    RESULTS.write_text("\n".join(text) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("words", nargs="*", help="words in the names or kinds of faults")
    parser.add_argument("--all", action="store_true", help="by all tests, as ./check all")
    parser.add_argument("--jobs", type=int, default=1, help="how many faults are tried at a time")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for each fault")
    options = parser.parse_args()
    faults = chosen(options.words)
    if not faults:
        parser.error(f"no fault has {' or '.join(options.words)} in its name or kind")
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="planted") as scratch:
        free: queue.Queue[Checkout] = queue.Queue()
        for number in range(min(options.jobs, len(faults))):
            free.put(Checkout(pathlib.Path(scratch, f"checkout{number}"), not options.all))

        def tried(fault: Fault) -> Result:
            checkout = free.get()
            try:
                return checkout.try_fault(fault, options.seconds)
            finally:
                free.put(checkout)

        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for result in pool.map(tried, faults):
                results.append(result)
                print(row(result), flush=True)
                write_results(
                    {result.fault.name: row(result)},
                    f"python -m tests.planted{' --all' if options.all else ''}",
                )
    found = sum(result.found_by is not None for result in results)
    print(f"{found} of {len(results)} faults were found")
    return (
        0 if (found == len(results) if options.all else found * OF >= ENOUGH * len(faults)) else 1
    )


if __name__ == "__main__":
    sys.exit(main())
