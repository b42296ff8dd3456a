"""Runs what a change must pass: `./check`, which says how."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from tests.check import jobs
from tests.check.report import explained, line_of
from tests.check.running import ROOT, Running, clock

USAGE = """\
./check                   lint, types, conventions, a fixed part of all tests: 6 to 12 minutes
./check all               all tests: 35 minutes on two cores
./check rest              what ./check leaves out: the other tests, and types by pyright
./check tests             the tests of ./check without lint, types and conventions, such as under
                          another jaxlib: PYTHON=/path/to/python ./check tests
./check quick [FILE...]   in 90 seconds, what these files most likely broke: no more than a hint.
                          Without files: those changed since main.
./check docs              the documentation's site, built and tried in a browser: 3 minutes;
                          it needs pip install -e '.[docs]'
./check tests/numpy -k x  lint, types, conventions, and these tests
-x, as the first argument: stop at the first failure"""


def changed_files() -> list[str]:
    """Return the files that differ from where main was left, and those unknown to git."""
    found: list[str] = []
    for command in ("diff --name-only --merge-base main", "ls-files --others --exclude-standard"):
        text = subprocess.run(["git", *command.split()], cwd=ROOT, capture_output=True, text=True)
        found += text.stdout.split("\n")
    return [path for path in found if path]


def chosen(arguments: list[str], options: list[str]) -> list[jobs.Job]:
    """Return the jobs that these arguments select."""
    match arguments:
        case []:
            return jobs.whole("first", *options)
        case ["all"]:
            return jobs.whole("all", *options)
        case ["tests"]:
            return jobs.tests_of("first", *options)
        case ["rest"]:
            return jobs.rest(*options)
        case ["docs"]:
            return jobs.docs()
        case ["quick", *files]:
            files = files or changed_files()
            print(f"{len(files)} changed files")
            return jobs.quick(files)
        case _:
            return jobs.named([*arguments, *options])


def main(arguments: list[str]) -> int:
    if arguments[:1] in (["-h"], ["--help"]):
        print(USAGE)
        return 0
    if arguments == ["docs"] and importlib.util.find_spec("furo") is None:
        print("check: the site needs the extra docs: pip install -e '.[docs]'")
        return 1
    stops = arguments[:1] == ["-x"]
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="check-") as logs:
        running = Running(
            chosen(arguments[stops:], ["-x"] if stops else []),
            pathlib.Path(logs),
            min(2, jobs.cores()),
            stops,
        )
        outcomes = running.run()
    for outcome in outcomes:
        print(line_of(outcome))
    failed = [outcome.job.name for outcome in outcomes if outcome.has_failed]
    not_run = [outcome.job.name for outcome in outcomes if outcome.status is None]
    text = explained(outcomes)
    # .ci/run, which has other output to print first, prints it itself.
    if summary := os.environ.get("CHECK_SUMMARY"):
        with open(summary, "a", encoding="utf-8") as file:
            file.write(text + "\n")
    elif text:
        print(text)
    took = clock(time.monotonic() - started)
    if failed:
        print(f"\ncheck: FAILED after {took} minutes: {', '.join(failed)}")
    elif not_run and "quick" not in arguments:
        print(f"\ncheck: stopped after {took} minutes; not run: {', '.join(not_run)}")
    else:
        print(f"\ncheck: passed in {took} minutes")
    return 1 if failed or (not_run and "quick" not in arguments) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
