"""Runs the jobs of `./check`, several at a time, and says while they run how much is left."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tests.check.jobs import Job
from tests.check.progress import Progress

ROOT = pathlib.Path(__file__).parents[2]
# How often a line of progress is written to what is not a terminal, in seconds.
EVERY = 30


class Outcome(NamedTuple):
    """What became of a job; `status` is None if it was not run to its end."""

    job: Job
    status: int | None
    log: str = ""
    progress: Progress = Progress()
    seconds: float = 0.0
    processor_seconds: float = 0.0

    @property
    def has_failed(self) -> bool:
        # 5: pytest has selected no test.
        return self.status not in (None, 0) and not (self.job.is_pytest and self.status == 5)

    @property
    def ran_out_of_time(self) -> bool:
        return self.job.ends_at is not None and self.progress.begun < self.progress.count


class Running:
    """Jobs that run in threads, so many at a time, each in a process of its own."""

    def __init__(
        self, jobs: Sequence[Job], logs: pathlib.Path, at_once: int, stops_at_failure: bool = False
    ) -> None:
        self.started = time.monotonic()
        self.jobs = list(jobs)
        self.logs = logs
        self.stops_at_failure = stops_at_failure
        self.waiting = list(enumerate(jobs))
        self.outcomes: dict[int, Outcome] = {}
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self.stopped: set[int] = set()
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._work) for _ in range(at_once)]

    def run(self) -> list[Outcome]:
        """Run all jobs, and return their outcomes in order."""
        for thread in self.threads:
            thread.start()
        try:
            with line_of_progress() as show:
                while any(thread.is_alive() for thread in self.threads):
                    show(self.described())
                    time.sleep(0.2)
        except KeyboardInterrupt:
            self.stop()
        for thread in self.threads:
            thread.join()
        return [self.outcomes.get(i, Outcome(job, None)) for i, job in enumerate(self.jobs)]

    def stop(self) -> None:
        """End what runs, and begin nothing more."""
        with self.lock:
            self.waiting.clear()
            self.stopped |= self.processes.keys()
            for process in self.processes.values():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)

    def _work(self) -> None:
        while True:
            with self.lock:
                if not self.waiting:
                    return
                number, job = self.waiting.pop(0)
                process = self._start(number, job)
            if process is None:
                continue
            began = time.monotonic()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            with self.lock:
                del self.processes[number]
            self.outcomes[number] = outcome = Outcome(
                job,
                None if number in self.stopped else process.returncode,
                self._path(number, "log").read_text(encoding="utf-8", errors="replace"),
                self.progress_of(number),
                time.monotonic() - began,
                usage.ru_utime + usage.ru_stime,
            )
            if outcome.has_failed and self.stops_at_failure:
                self.stop()

    def _start(self, number: int, job: Job) -> "subprocess.Popen[bytes] | None":
        environment = {**os.environ, "TEST_PART": job.part}
        if environment.pop("PYTHONDONTWRITEBYTECODE", None):
            # Tests start some hundred processes, which would each compile all of hlofront again.
            environment["PYTHONPYCACHEPREFIX"] = str(self.logs / "bytecode")
        arguments = job.arguments
        if job.ends_at is not None:
            left = job.ends_at - (time.monotonic() - self.started)
            if left < 3:
                return None
            environment["TEST_SECONDS"] = f"{left:.0f}"
        if job.is_pytest:
            environment["TEST_PROGRESS"] = str(self._path(number, "progress"))
            arguments = (*arguments, "-p", "tests.check.progress")
        with open(self._path(number, "log"), "wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", *arguments],
                cwd=ROOT,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self.processes[number] = process
        return process

    def _path(self, number: int, kind: str) -> pathlib.Path:
        return self.logs / f"{number}.{kind}"

    def progress_of(self, number: int) -> Progress:
        return Progress.read(self._path(number, "progress"))

    def described(self) -> str:
        """Return how far all jobs are, and about how much time is left."""
        elapsed = time.monotonic() - self.started
        done = work = 0.0
        begun = failed = 0
        for number, job in enumerate(self.jobs):
            progress = self.progress_of(number)
            begun, failed = begun + progress.begun, failed + progress.failed
            part = progress.begun / progress.count if progress.count else 0.0
            work += job.work
            done += job.work * (1.0 if number in self.outcomes else part)
        with self.lock:
            numbers = sorted(self.processes)
        names = ", ".join(self.jobs[number].name for number in numbers)
        left = "" if done < 0.05 * work else f"about {clock(elapsed * (work / done - 1))} left; "
        return f"[{clock(elapsed)}] {begun:,} tests, {failed} failed; {left}running: {names}"


def clock(seconds: float) -> str:
    """Return a time as minutes and seconds: 4:05."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


@contextlib.contextmanager
def line_of_progress() -> Iterator[Callable[[str], None]]:
    """Return a function that shows a text: in one line of a terminal, else now and then."""
    is_terminal = sys.stdout.isatty()
    shown_at = time.monotonic()

    def show(text: str) -> None:
        nonlocal shown_at
        if is_terminal:
            width = os.get_terminal_size().columns - 1
            print(f"\r{text[:width]:{width}}", end="", flush=True)
        elif time.monotonic() - shown_at >= EVERY:
            shown_at = time.monotonic()
            print(text, flush=True)

    yield show
    if is_terminal:
        print("\r\x1b[K", end="", flush=True)
