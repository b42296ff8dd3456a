# pyright: strict
"""The launches of programs over several processes, and other meetings, as the watchdog sees them.

A process counts its launches over each set of processes: all of them launch the same programs in
the same order, so that a number and the set of processes name one launch in all of them.
"""

import threading
import time
import weakref
import zlib
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar, cast

from hlofront.base import source

# The number of launches that are kept of each set of processes, and of those that have not ended.
_MAX_KEPT = 64
_MAX_UNFINISHED = 1024

# The stages of a launch: its arguments are prepared; on CPUs, it waits for the program before it;
# it runs; the call has returned.
BEGINS, QUEUED, RUNS, RETURNED = range(4)

_Results = TypeVar("_Results", bound=Iterable[object])


class _Result(Protocol):
    """An array, which becomes ready when the program that computes it has ended."""

    def is_ready(self) -> bool: ...


class Launch:
    """A launch of a program, or another meeting, of several processes.

    Attributes:
      processes: the processes that take part.
      number: the number of the launch among those over the same processes, from 1.
      name: the name of the function.
      frame: the user's line that calls it.
      began: when it began, by time.monotonic.
      before: a checksum of the names of all launches before it over the same processes.
      thread: the identifier of its thread.
      stage: how far it has come; it only grows.
      digest: a digest of the program, if it is known.
      error: the exception that ended it, as text, or "".
      hlo_text: returns its optimized HLO, "" if it is gone; None for what is not a program.
    """

    __slots__ = (
        "_result",
        "before",
        "began",
        "digest",
        "error",
        "frame",
        "hlo_text",
        "name",
        "number",
        "processes",
        "stage",
        "thread",
    )

    def __init__(
        self,
        processes: tuple[int, ...],
        number: int,
        before: int,
        name: str,
        digest: str,
        hlo_text: Callable[[], str] | None,
    ):
        self.processes = processes
        self.number = number
        self.before = before
        self.name = name
        self.digest = digest
        self.hlo_text = hlo_text
        live = source.calling_frame()
        self.frame = None if live is None else source.Frame(live.f_code, live.f_lasti)
        self.began = time.monotonic()
        self.thread = threading.get_ident()
        self.stage = BEGINS
        self.error = ""
        self._result: weakref.ref[_Result] | None = None

    @property
    def after(self) -> int:
        """The checksum of the names of all launches up to this one."""
        return zlib.crc32(self.name.encode(), self.before)

    def line(self) -> str:
        """Return the line that calls it, with its text; "" if it is not the user's."""
        return "" if self.frame is None else source.describe_frame_with_line(self.frame)

    def waits_in_queue(self) -> None:
        """Note that it waits for the program before it."""
        self.stage = QUEUED

    def runs(self) -> None:
        """Note that the program runs: on a CPU, it has left the queue."""
        self.stage = RUNS
        if current is not None:
            current.running = self

    def returned(self, results: Iterable[object]) -> None:
        """Note that the call has returned, and has these results."""
        for result in results:
            if hasattr(result, "is_ready"):
                self._result = weakref.ref(cast(_Result, result))
                break
        self.stage = RETURNED

    def failed(self, error: BaseException) -> None:
        """Note that the call has raised an error."""
        first_line = (str(error).splitlines() or [""])[0]
        self.error = f"{type(error).__name__}: {first_line}"
        self.stage = RETURNED

    def has_ended(self) -> bool:
        """Return whether the program has ended; also if nobody has its result any more."""
        if self.stage < RETURNED:
            return False
        result = None if self._result is None else self._result()
        try:
            return result is None or result.is_ready()
        except RuntimeError:
            return True  # The array was deleted: a later program has its memory.


class Launches:
    """The latest launches of this process."""

    def __init__(self):
        self._lock = threading.Lock()
        self._unfinished: deque[Launch] = deque(maxlen=_MAX_UNFINISHED)
        # The latest launches over each set of processes.
        self.kept: dict[tuple[int, ...], deque[Launch]] = {}
        self.latest: Launch | None = None
        # The latest launch that has left the queue of programs for CPUs.
        self.running: Launch | None = None

    def begin(
        self,
        processes: tuple[int, ...],
        name: str,
        digest: str = "",
        hlo_text: Callable[[], str] | None = None,
    ) -> Launch:
        """Note that a launch begins, and return it: the caller notes its further stages there."""
        with self._lock:
            kept = self.kept.get(processes)
            if kept is None:
                kept = self.kept[processes] = deque(maxlen=_MAX_KEPT)
            number, before = 1, 0
            if kept:
                number, before = kept[-1].number + 1, kept[-1].after
            launch = Launch(processes, number, before, name, digest, hlo_text)
            kept.append(launch)
        self._unfinished.append(launch)
        self.latest = launch
        return launch

    def unfinished(self) -> Launch | None:
        """Return the launch that this process waits in, or None; forget those that have ended.

        Only one thread calls this.
        """
        launches = list(self._unfinished)
        going_on = [launch for launch in launches if not launch.has_ended()]
        for launch in launches:
            if launch in going_on[:1]:
                break
            # Other threads only append, where a full queue drops its first element.
            if self._unfinished and self._unfinished[0] is launch:
                self._unfinished.popleft()
        for launch in going_on:
            if launch.stage == RETURNED:
                return launch
        # A launch may launch others, which move its arguments.
        innermost = going_on[-1] if going_on else None
        if innermost is not None and innermost.stage == QUEUED and self.running is not None:
            return self.running
        return innermost


# The launches of this process; None without a watchdog.
current: Launches | None = None
# What is called with the text of each report of the watchdog that this process prints.
on_report: list[Callable[[str], None]] = []


def record_launches(launches: Launches | None) -> None:
    """Note the launches of this process from now on, or no longer."""
    global current
    current = launches


def noted(processes: tuple[int, ...], name: str, call: Callable[[], _Results]) -> _Results:
    """Return the results of a call in which this process meets others, and note it as a launch.

    Args:
      processes: the numbers of the processes that call it.
      name: what they do, such as "device_put".
      call: the function.
    """
    if current is None or len(processes) < 2:
        return call()
    launch = current.begin(processes, name)
    launch.stage = RUNS
    try:
        results = call()
    except BaseException as error:
        launch.failed(error)
        raise
    launch.returned(results)
    return results
