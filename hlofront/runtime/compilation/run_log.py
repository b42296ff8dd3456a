"""The log of a run: traces, compilations and cache lookups as lines of JSON, by hlofront_log."""

import atexit
import contextlib
import itertools
import json
import os
import pathlib
import platform
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from hlofront.base import source
from hlofront.base.config import options
from hlofront.base.version import __version__
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.pjrt import launches
from hlofront.transforms.stage import EAGER

if TYPE_CHECKING:
    from hlofront.bridge.client import LoadedExecutable
    from hlofront.bridge.compile_process import SubprocessExecutable
    from hlofront.lowering.module import Module

FORMAT = "hlofront.log/1"
# Longer texts, such as the types of very many arguments, are cut.
_LONGEST = 2000
_NOT_IN_FILE_NAMES = re.compile(r"[^\w.-]+")


class RunLog:
    """The log of this process: a file of its own in the folder, with a line for each event.

    Each line is written immediately and at once, so a process that crashes loses at most its last
    one. If a write fails, a warning says so and the log ends, but the program continues.
    """

    def __init__(self, folder: str):
        self.folder = pathlib.Path(folder).expanduser().absolute()
        self._numbers = itertools.count()
        self._hits: Counter[str] = Counter()
        self._begin()

    def _begin(self) -> None:
        """Begin a file for this process; a forked one has its own."""
        # A finalizer that runs while a line is written may compile, too.
        self._lock = threading.RLock()
        self._file: int | None = None
        self._has_ended = False
        self._hits.clear()
        self._stem = f"{platform.node() or 'host'}-{os.getpid()}-{time.time_ns() // 1_000_000:x}"

    def record(self, event: str, name: str = "", **facts: object) -> None:
        """Write one event, with the time, the thread and the user's line.

        Args:
          event: its kind, such as "trace" or "compile".
          name: the name of the function.
          facts: further fields of the event, as values for JSON; None is omitted.
        """
        if self._has_ended:
            return
        if "line" not in facts and name:
            frame = source.calling_frame()
            facts["line"] = f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else None
        written: dict[str, object] = {"event": event, "time": round(time.time(), 6)}
        if name:
            written |= {"name": name, "thread": threading.current_thread().name}
        for key, value in facts.items():
            if value is not None:
                written[key] = value[:_LONGEST] if isinstance(value, str) else value
        line = json.dumps(written, default=str) + "\n"
        with self._lock, self._ending_at_errors():
            self._write(line.encode())

    def hit(self, name: str) -> None:
        """Count a call for which Python finds an executable in memory; powers of 2 are written.

        Calls that jaxlib's C++ serves are not counted.
        """
        self._hits[name] += 1
        if self._hits[name].bit_count() == 1:
            self.record("memory_hits", name, count=self._hits[name])

    def finish(self) -> None:
        """Write the final counts, and that the process has ended."""
        if self._file is None:
            return
        for name, count in self._hits.items():
            self.record("memory_hits", name, count=count, line=None)
        self.record("end")

    def program(self, name: str, texts: dict[str, str]) -> str | None:
        """Write the texts of a program to files, by their suffixes; return the files' stem."""
        if self._has_ended:
            return None
        stem = f"{self._stem}-{next(self._numbers):05d}-{_NOT_IN_FILE_NAMES.sub('_', name)[:80]}"
        with self._ending_at_errors():
            folder = self.folder / "programs"
            folder.mkdir(parents=True, exist_ok=True)
            for suffix, text in texts.items():
                (folder / f"{stem}.{suffix}").write_text(text, encoding="utf-8")
            return stem
        return None

    def _write(self, line: bytes) -> None:
        if self._file is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / f"{self._stem}.jsonl"
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            process: dict[str, object] = {
                "event": "process",
                "format": FORMAT,
                "time": round(time.time(), 6),
                "pid": os.getpid(),
                "host": platform.node(),
                "arguments": sys.argv,
                "hlofront": __version__,
                "python": platform.python_version(),
            }
            line = json.dumps(process).encode() + b"\n" + line
        if os.write(self._file, line) < len(line):
            raise OSError("the disk is full")

    @contextlib.contextmanager
    def _ending_at_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._has_ended = True
            source.warn(
                f"HLOFRONT_LOG: {self.folder} cannot be written: {error}. The log ends here."
            )


# The log of this process; None without the option.
current: RunLog | None = None


def _set_folder(folder: str | None, local: bool) -> None:
    global current
    if local:
        return
    if current is not None:
        current.finish()
    current = RunLog(folder) if folder else None


options["hlofront_log"].watch(_set_folder)


def _begin_in_child() -> None:
    if current is not None:
        current._begin()


@atexit.register
def _finish() -> None:
    if current is not None:
        current.finish()


os.register_at_fork(after_in_child=_begin_in_child)


# ---- what is recorded ---------------------------------------------------------------------------


def traced(name: str, program: ClosedJaxpr, traced_for: str, seconds: float) -> None:
    """Record that a function was traced."""
    if current is not None:
        arguments = ", ".join(aval.str_short(short_dtypes=True) for aval in program.in_avals)
        current.record(
            "trace",
            name,
            seconds=seconds,
            arguments=arguments,
            equations=len(program.jaxpr.eqns),
            eager=traced_for == EAGER or None,
        )


@contextlib.contextmanager
def compiling(name: str, devices: Sequence[object]) -> Iterator[None]:
    """Record the beginning of a compilation, and its error if it has one."""
    if current is None:
        yield
        return
    current.record("compile_begin", name, devices=len(devices), device=str(devices[0]))
    try:
        yield
    except Exception as error:
        current.record("compile_error", name, error=f"{type(error).__name__}: {error}")
        raise


def compiled(
    name: str,
    module: "Module",
    executable: "LoadedExecutable | SubprocessExecutable",
    seconds: float,
) -> None:
    """Record that XLA compiled a program, and write its StableHLO and optimized HLO to files."""
    if current is not None:
        ended = time.time()
        hlo = "\n\n".join(part.to_string() for part in executable.hlo_modules())
        stem = current.program(name, {"mlir": module.text(), "hlo": hlo})
        current.record("compile", name, time=ended, seconds=seconds, program=stem)


def loaded(name: str, hlo: Callable[[], str], seconds: float, saved: float) -> None:
    """Record that a program was loaded from disk, and write its optimized HLO to a file.

    Args:
      name: the name of the function.
      hlo: a function that returns the HLO.
      seconds: the time that loading took.
      saved: the time that XLA took when the program was compiled.
    """
    if current is not None:
        ended = time.time()
        stem = current.program(name, {"hlo": hlo()})
        current.record("disk_hit", name, time=ended, seconds=seconds, saved=saved, program=stem)


def stuck(report: str) -> None:
    """Record that processes of a group wait for each other, and write the report to a file."""
    if current is not None:
        current.record("stuck", line=None, program=current.program("stuck", {"txt": report}))


launches.on_report.append(stuck)
