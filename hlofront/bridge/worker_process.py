"""Worker processes, which parse and compile for this process, and may die.

MLIR and XLA abort the process if one of their internal checks fails, and some inputs take them
unlimited time or memory. A worker is started on first use, answers one request at a time, and is
replaced if it dies: only the request that killed it raises an error.
"""

import atexit
import contextlib
import os
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

from hlofront.bridge import state, worker_script

JaxRuntimeError = state.JaxRuntimeError
_MAX_WORDS = 300
# The workers of a forked process's parents, which this process must not use or wait for.
_of_others: list["WorkerProcess"] = []
# All workers, which a fork and the end of the process clear.
_pools: list["Worker"] = []


class WorkerEnded(JaxRuntimeError):
    """The error raised when a request has ended its worker process."""

    __module__ = JaxRuntimeError.__module__


class CannotStart(Exception):
    """The error raised when no worker can start."""


class Worker:
    """The worker process for a kind of request: only one at a time, started on first use.

    Args:
      environment: variables of its environment, in addition to those of this process.
    """

    def __init__(self, environment: Mapping[str, str]):
        self._environment = environment
        self.lock = threading.Lock()
        self.process: WorkerProcess | None = None
        _pools.append(self)

    def start(self) -> None:
        """Start the process, unless it runs; it loads its libraries in parallel to this process.

        Raises:
          CannotStart: if no process can be started.
        """
        with self.lock:
            self._running()

    def ask(self, request: Mapping[str, Any], seconds: float | None = None) -> dict[str, Any]:
        """Send a request to the process, and return the answer.

        Args:
          request: a request for `worker_script.answer_to`.
          seconds: the time after which the process is killed; None for no limit.

        Raises:
          WorkerEnded: if the process ended before it answered.
          CannotStart: if no process can be started.
        """
        with self.lock:
            process = self._running()
            try:
                return process.ask(request, seconds)
            except BaseException:
                # After an interrupt as well: otherwise the pending answer would be read as the next
                # request's.
                self.end()
                raise

    def _running(self) -> "WorkerProcess":
        if self.process is not None and not self.process.is_alive():
            self.end()
        if self.process is None:
            self.process = WorkerProcess(self._environment)
        return self.process

    def end(self) -> None:
        if self.process is not None:
            self.process.end()
            self.process = None

    def close(self) -> None:
        """End the process; no other one is started."""
        self.end()
        _pools.remove(self)

    def forget(self) -> None:
        """Leave the process to the parent, in a forked child."""
        if self.process is not None:
            _of_others.append(self.process)
            self.process = None
        self.lock = threading.Lock()


class WorkerProcess:
    """A process that answers requests, and the streams for its messages.

    Args:
      environment: variables of its environment, in addition to those of this process.
    """

    def __init__(self, environment: Mapping[str, str]):
        if not sys.executable:
            raise CannotStart("Python does not know its own path")
        # This imports much, and few processes have a worker.
        import tempfile

        # The compiler's messages on stderr, which are read if the process ends.
        self._messages = tempfile.TemporaryFile()
        # The worker runs isolated and without `site`: this process sends it `sys.path`.
        command = [sys.executable, "-I", "-S", worker_script.__file__]
        if sys.dont_write_bytecode:
            command.insert(1, "-B")
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._messages,
                env={**os.environ, **environment},
                start_new_session=True,  # Ctrl-C at the terminal interrupts only this process.
            )
        except OSError as error:
            raise CannotStart(str(error)) from error
        assert self._process.stdin is not None and self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout
        try:
            worker_script.write(self._requests, {"path": sys.path})
        except OSError as error:
            self.end()
            raise CannotStart(str(error)) from error
        self._has_started = False

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, request: Mapping[str, Any], seconds: float | None) -> dict[str, Any]:
        is_late = threading.Event()

        def end_it() -> None:
            is_late.set()
            self._process.kill()

        if not self._has_started:
            if worker_script.read(self._answers) is None:
                raise CannotStart(self._last_words())
            self._has_started = True
        if seconds is None:
            return self._answer(request)
        timer = threading.Timer(seconds, end_it)
        timer.daemon = True
        timer.start()
        try:
            return self._answer(request)
        except WorkerEnded:
            if is_late.is_set():
                raise WorkerEnded(f"it took longer than {seconds:.0f} seconds") from None
            raise
        finally:
            timer.cancel()

    def _answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        # Skip the messages of earlier requests; the process shares the position in the file.
        self._messages.seek(0)
        self._messages.truncate()
        try:
            worker_script.write(self._requests, request)
            answer = worker_script.read(self._answers)
        except OSError:
            answer = None
        except pickle.UnpicklingError as error:
            raise WorkerEnded(str(error)) from None
        if answer is None:
            code = self._process.wait()
            raise WorkerEnded(self._last_words() or f"it ended with {code}, and said nothing")
        return answer

    def _last_words(self) -> str:
        """Return the compiler's last messages: the failed check, or the last lines."""
        self._messages.seek(0)
        text = self._messages.read().decode(errors="replace")
        failed = re.search(r"^F\d+ \S+ +\d+ (.*)$", text, re.MULTILINE)
        words = failed.group(1) if failed else " ".join(text.split("\n")[-4:])
        return words.strip()[:_MAX_WORDS]

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._requests, self._answers, self._messages):
            with contextlib.suppress(OSError):  # A request may have been written only in part.
                stream.close()


def _end_all() -> None:
    for pool in _pools:
        pool.end()


def _in_child() -> None:
    for pool in _pools:
        pool.forget()


atexit.register(_end_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
