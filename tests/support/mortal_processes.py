"""Numbered trials in processes that may die or hang, and are replaced."""

import subprocess
import threading
from collections.abc import Callable, Iterator


def outcomes(
    command: Callable[[int, int], list[str]], numbers: range, silent_seconds: float
) -> Iterator[tuple[int, str]]:
    """Yield the number of each trial, and what the process that made it says.

    Args:
      command: starts a process that makes the trials from one number to another, and prints for
        each a line of the number, a tab, and text.
      numbers: of the trials.
      silent_seconds: how long a process may print nothing before it is ended.
    """
    place = numbers.start
    while place < numbers.stop:
        process = subprocess.Popen(
            command(place, numbers.stop),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout is not None
        silent = threading.Timer(silent_seconds, process.kill)
        silent.start()
        try:
            for line in process.stdout:
                silent.cancel()
                number, _, said = line.rstrip("\n").partition("\t")
                yield int(number), said
                place = int(number) + 1
                silent = threading.Timer(silent_seconds, process.kill)
                silent.start()
        finally:
            silent.cancel()
            if process.poll() is None and place < numbers.stop:
                process.kill()
            code = process.wait()
        if place < numbers.stop:
            yield place, f"THE PROCESS ENDED with {code}"
            place += 1
