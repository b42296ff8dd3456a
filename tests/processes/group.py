"""Groups of processes that tests start, stop and kill; none is left over when a test ends."""

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import time

from hlofront.cli.run import reserved_port, variables_of

ROOT = pathlib.Path(__file__).parents[2]
# The kernel kills the process when the one that started it ends.
END_WITH_PARENT = "__import__('ctypes').CDLL(None).prctl(1, 9)\n"


def without_gloo(lines):
    """The lines that gloo did not print; two threads' lines of gloo may be parted anywhere.

    A line that is parted before its end leaves an empty one behind, or one of its last number.
    """
    kept, without_number = [], 0
    for line in lines:
        if "[Gloo]" in line or "peer ranks" in line:
            without_number += line.count("[Gloo]") - len(re.findall(r"ranks is : \d", line))
        elif without_number > 0 and line.isdigit():
            without_number -= 1
        elif line:
            kept.append(line)
    return kept


class Group:
    """A group of processes that run a script, each with an output file of its own.

    It is a context manager, which kills what still runs. Each process flushes what it prints.
    """

    def __init__(self, folder, script, processes, devices=1, variables=lambda number: {}):
        path = folder / "script.py"
        path.write_text(END_WITH_PARENT + script)
        self._outputs = [folder / f"output{number}" for number in range(processes)]
        self._held = contextlib.ExitStack()
        port = self._held.enter_context(reserved_port())
        self.processes = []
        for number, output in enumerate(self._outputs):
            own = variables_of(number, processes, devices, port) | variables(number)
            with output.open("wb") as file:
                self.processes.append(
                    subprocess.Popen(
                        [sys.executable, str(path)],
                        env={**os.environ, "PYTHONPATH": str(ROOT), **own},
                        stdin=subprocess.DEVNULL,
                        stdout=file,
                        stderr=subprocess.STDOUT,
                    )
                )

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        self._held.close()

    def output(self, number):
        """All that a process has printed, without gloo's lines."""
        lines = self._outputs[number].read_text(errors="replace").splitlines()
        return "\n".join(without_gloo(lines))

    def outputs(self):
        """All that the processes have printed, for the message of a failed test."""
        return "\n".join(f"[{n}]\n{self.output(n)}" for n in range(len(self.processes)))

    def wait_for_text(self, number, text, seconds=60):
        """Wait until a process has printed a text."""
        self._wait(lambda: text in self.output(number), f"{text!r} from process {number}", seconds)

    def wait(self, numbers=None, seconds=60):
        """Wait until processes, by default all, have ended; return their statuses."""
        waited = [
            self.processes[n] for n in (range(len(self.processes)) if numbers is None else numbers)
        ]
        self._wait(lambda: all(p.poll() is not None for p in waited), "their end", seconds)
        return [process.returncode for process in waited]

    def _wait(self, is_so, what, seconds):
        end = time.monotonic() + seconds
        while not is_so():
            assert time.monotonic() < end, f"waited {seconds} s for {what}:\n{self.outputs()}"
            time.sleep(0.02)
