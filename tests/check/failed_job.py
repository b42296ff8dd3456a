"""Says in few lines why a job failed, from its log.

    python -m tests.check.failed_job LOG EXIT_STATUS

These are printed: the tests that failed, and the first lines of their errors; the first fatal error
of Python with its stack; and of a job that a signal ended, the signal and the test that ran (as
`tests.check.progress` writes it). Where none of these is known, the log's end is printed.
"""

import pathlib
import re
import signal
import sys
from collections.abc import Iterator

MAX_FAILURES = 40
MAX_ERROR_LINES = 6
STACK_LINES = 40
LAST_LINES = 15
# Lines that name a failure: of pytest, of pyright and ruff, and of a shell.
FAILURE = re.compile(r"FAILED |ERROR |.*: error: |\S+:\d+:\d+: |(?!.*Fatal).*Segmentation fault")
# The first line of what Python's faulthandler writes.
FATAL = "Fatal Python error"
TITLE = re.compile(r"_{3,} (.+) _{3,}$")


def signal_of(status: int) -> str | None:
    """Return the name of the signal that ended a process, by its exit status, or None."""
    number = -status if status < 0 else status - 128
    try:
        return signal.Signals(number).name
    except ValueError:
        return None


def errors(lines: list[str]) -> Iterator[str]:
    """Yield the title of each failed test in a log of pytest, and the first lines of its error."""
    count = 0
    for line in lines:
        title = TITLE.match(line)
        if title:
            yield line
            count = 0
        elif line.startswith("E  ") and count < MAX_ERROR_LINES:
            yield line
            count += 1


def crash(log: str) -> list[str]:
    """Return the first fatal error of Python in a log, and the stack of the thread that met it."""
    if FATAL not in log:
        return []
    # It may follow the dots of pytest on their line.
    lines = log[log.index(FATAL) :].splitlines()
    current = next((at for at, line in enumerate(lines) if line.startswith("Current thread")), 1)
    stack = [line for line in lines[current:] if "/pluggy/" not in line and "/_pytest/" not in line]
    return [lines[0], *stack[:STACK_LINES]]


def limited(lines: list[str], most: int) -> list[str]:
    """Return the first lines, and how many more there are."""
    rest = len(lines) - most
    return lines if rest <= 0 else [*lines[:most], f"... and {rest} more lines"]


def summary(log: str, status: int, running_test: str = "") -> list[str]:
    """Return the lines that say why a job failed.

    Args:
        log: all that the job printed.
        status: its exit status, as a shell or as Python's `subprocess` gives it.
        running_test: what `tests.check.progress` wrote last, if it ran.
    """
    lines = log.splitlines()
    result = []
    name = signal_of(status)
    if name:
        result.append(f"exit status {status}: {name} ended it")
        if running_test:
            result += ["the last test that it began:", *running_test.splitlines()]
        if FATAL not in log:
            result.append(
                "Python's faulthandler wrote no stack: the signal came from outside (as when "
                "memory is short), or the stack of a thread other than the main thread overflowed"
            )
    else:
        result.append(f"exit status {status}")
    result += crash(log)
    result += limited([line for line in lines if FAILURE.match(line)], MAX_FAILURES)
    result += limited(list(errors(lines)), MAX_FAILURES)
    if len(result) == 1 or (name and FATAL not in log):
        result += ["the end of its log:", *lines[-LAST_LINES:]]
    return result


def main(log: str, status: str) -> None:
    text = pathlib.Path(log).read_text(encoding="utf-8", errors="replace")
    print("\n".join(summary(text, int(status))))


if __name__ == "__main__":
    main(*sys.argv[1:])
