"""What `./check` says at the end: what each job took, what failed, and how to repeat it."""

import os
import pathlib
import re
import shlex
import sys
from collections.abc import Sequence

from tests.check.failed_job import summary
from tests.check.running import Outcome, clock

# In what order failures are looked at: what others are made of comes first.
LAYERS = (
    "conventions",
    "smoke",
    "base",
    "core",
    "primitives",
    "transforms",
    "higher_order",
    "lowering",
    "pjrt",
    "runtime",
    "numpy",
    "systematic",
)
FAILED_TEST = re.compile(r"(?:FAILED|ERROR) (tests/\S+?\.py(?:::[^\s\[]+(?:\[.*?\])?)?)(?: - .*)?$")
LAST_COUNTS = re.compile(
    r"=* ?(\d+ (?:passed|failed|skipped|error|deselected).*? in [\d.]+s.*?) ?=*$"
)


def line_of(outcome: Outcome) -> str:
    """Return what a job did and took, in one line."""
    if outcome.status is None:
        return f"{outcome.job.name}: not run"
    counts = [match[1] for line in outcome.log.splitlines() if (match := LAST_COUNTS.match(line))]
    did = counts[-1] if counts else "failed" if outcome.has_failed else "passed"
    did = did.partition(" in ")[0]
    text = f"{outcome.job.name}: {did}; {clock(outcome.seconds)} minutes"
    text += f", {outcome.processor_seconds:.0f} s of processor time"
    if outcome.ran_out_of_time:
        begun, count = outcome.progress.begun, outcome.progress.count
        text += f"; THE TIME WAS OVER after {begun} of {count} tests"
    return text


def failed_tests(outcomes: Sequence[Outcome]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the tests that failed, each with the plugins that it ran with, lowest layers first."""
    found = {
        match[1]: outcome.job.plugins
        for outcome in outcomes
        if outcome.job.is_pytest
        for line in outcome.log.splitlines()
        if (match := FAILED_TEST.match(line))
    }

    def layer(pair: tuple[str, tuple[str, ...]]) -> int:
        folder = pathlib.PurePosixPath(pair[0]).parts[1]
        return LAYERS.index(folder) if folder in LAYERS else len(LAYERS)

    return sorted(found.items(), key=layer)


def command_for(test: str, plugins: Sequence[str]) -> str:
    """Return the command that runs one test as its job did."""
    python = os.path.relpath(sys.executable)
    python = sys.executable if python.startswith("..") else python
    return shlex.join([python, "-m", "pytest", *plugins, test])


def explained(outcomes: Sequence[Outcome]) -> str:
    """Return why jobs failed, and the commands that repeat it; empty if none did."""
    lines: list[str] = []
    for outcome in outcomes:
        if outcome.has_failed:
            assert outcome.status is not None
            lines += ["", f"-- {outcome.job.name}"]
            lines += summary(outcome.log, outcome.status, outcome.progress.test)
            if not outcome.job.is_pytest:
                lines.append(f"again: {shlex.join(['python', '-m', *outcome.job.arguments])}")
    tests = failed_tests(outcomes)
    if tests:
        lines += ["", "-- to repeat what failed, in the order to look at it"]
        lines += [command_for(*pair) for pair in tests]
    return "\n".join(lines)
