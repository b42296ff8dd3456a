"""The comparison of the programs that several processes are about to run together.

Processes that run differing programs wait for each other forever, or exchange values that belong to
other operations. So the processes whose devices a program spans meet before its first run, and
compare digests through the key-value store of their group: the one with the lowest number writes
its own, the others read it, and the last to arrive writes the verdict. Each process sends three
messages, however many processes there are. Texts of programs are sent only if digests differ.

A process that waits longer than a second publishes where it waits, so that processes that wait for
each other at different programs notice. A process that runs a program that it has compared before
is inside C++; its thread that watches the other processes notices if one of them waits elsewhere.
"""

import contextlib
import hashlib
import itertools
import json
import logging
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NoReturn, Protocol

from hlofront.base.config import options
from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge.client import JaxRuntimeError
from hlofront.bridge.coordination import CoordinationClient, write_first

logger = logging.getLogger(__name__)

_ROOT = "hlofront/programs"
# The key under which a process publishes what it waits for, once it has waited for one poll.
_WAITING = f"{_ROOT}/waiting"
_POLL_MILLISECONDS = 1000
# The number of seconds after which, and the interval at which, the log says which processes this
# one waits for.
_TELL_SECONDS = 30.0
# The number of seconds without a new program after which a thread checks whether other processes
# wait for this one.
_STUCK_SECONDS = 2.0
# A compressed program of more bytes is not sent.
_MAX_BYTES = 3 << 20
_SAME, _DIFFERS = "same", "differs"

_is_on = options["hlofront_compare_programs"]
_timeout = options["hlofront_compare_programs_timeout_secs"]

_ADVICE = (
    "All processes run the same programs in the same order: look for code that depends on "
    "process_index(), on files, times or random numbers of one machine, or on the order of a set. "
    "The option hlofront_compare_programs=False turns this comparison off."
)


class GroupOfProcesses(Protocol):
    """A group of processes as the comparison uses it."""

    process_id: int
    client: CoordinationClient

    def check(self, processes: Sequence[int] | None = None) -> None: ...


@dataclass(frozen=True, slots=True)
class ComparedProgram:
    """A program that is about to run on devices of several processes.

    Attributes:
      name: the name of the traced function.
      digest: a text that is equal in all processes if their programs are.
      text: returns the whole program as text.
      difference: returns the difference of two such texts with labels, as lines; "" if they mean
        the same.
      every_time: whether processes also meet for a digest that they have compared before.
      error: the class of the error for a difference.
      problem: what is wrong if there is one, and what to do about it.
    """

    every_time: ClassVar[bool] = False
    error: ClassVar[type[Exception]] = RuntimeError
    problem: ClassVar[tuple[str, str]] = ("would run another program", _ADVICE)

    name: str
    digest: str
    text: Callable[[], str]
    difference: Callable[[str, str, tuple[str, str]], str]


class ComparedValue(ComparedProgram):
    """A value of the host that is about to be put on devices of several processes."""

    __slots__ = ()

    every_time = True
    error = AssertionError
    problem = (
        "has another value",
        "What is passed to device_put is not the same on each process: pass the same value in "
        "all of them, or make an array of their parts by jax.make_array_from_process_local_data. "
        "The option hlofront_compare_programs=False turns this comparison off.",
    )


class CallbackFailure(JaxRuntimeError):
    """The error of a program whose callback failed in another process."""


class CallbackOutcome(ComparedProgram):
    """The outcome of the callbacks of a program over several processes, after it ran."""

    __slots__ = ()

    every_time = True
    error = CallbackFailure
    problem = (
        "has another outcome of the callbacks of a program",
        "A callback that raises in one process is the error of the call in all of them.",
    )


class _Waiting(NamedTuple):
    """A meeting at which a process waits for the others.

    Attributes:
      site: the key of the meeting.
      name: the name of the function whose program runs for the first time.
      processes: the processes that must take part.
      started: how many programs that exchange values it has started over them.
      serial: a number that no other wait of the process has.
    """

    site: str
    name: str
    processes: Sequence[int]
    started: int
    serial: int


class ProgramComparisons:
    """The comparisons of one process's programs with those of the others in its group."""

    def __init__(self, group: GroupOfProcesses):
        self._group = group
        self._lock = threading.Lock()
        self._of_processes: dict[tuple[int, ...], _Comparisons] = {}
        # How many programs this process has started over each set of processes.
        self._started: Counter[tuple[int, ...]] = Counter()
        self._latest_name = ""
        self._latest_at = self._looked_at = 0.0

    def note_start(self, processes: tuple[int, ...], name: str) -> None:
        """Record that this process starts a program in which processes exchange values."""
        self._started[processes] += 1
        self._latest_name = name
        self._latest_at = time.monotonic()

    def look(self) -> None:
        """If this process seems to hang in a program, check whether others wait for it elsewhere.

        The thread that watches the other processes calls it several times a second.
        """
        now = time.monotonic()
        if not self._started or now - max(self._latest_at, self._looked_at) < _STUCK_SECONDS:
            return
        self._looked_at = now
        me, client = self._group.process_id, self._group.client
        for number, where in _all_waiting(client).items():
            if number != me and self._started[tuple(where.processes)] > where.started:
                text = (
                    f"process {number} waits at the first run of {where.name} for process {me}, "
                    f"which runs {self._latest_name} and waits for process {number} there: they "
                    f"run different programs over processes {_listed(where.processes)}. {_ADVICE}"
                )
                write_first(client, f"{where.site}/verdict", f"error {text}")

    def compare(self, processes: tuple[int, ...], program: ComparedProgram) -> None:
        """Wait until all of these processes are about to run the same program.

        It returns immediately for a program that these processes have compared before.

        Args:
          processes: the numbers of the processes whose devices the program spans, in order.
          program: the program of this process.

        Raises:
          RuntimeError: in all of them, if their programs differ, if some wait for each other at
            different programs, or if one does not arrive within the time of the option
            hlofront_compare_programs_timeout_secs.
          ProcessFailureError: if one of them has failed.
        """
        is_optional = not isinstance(program, CallbackOutcome)
        if (is_optional and not _is_on.value) or self._group.process_id not in processes:
            return
        with self._lock:
            comparisons = self._of_processes.setdefault(
                processes, _Comparisons(self._group, processes)
            )
        comparisons.compare(program, self._started[processes])


class _Comparisons:
    """The comparisons of the programs over the same processes: each has a number from 0."""

    def __init__(self, group: GroupOfProcesses, processes: tuple[int, ...]):
        self._group = group
        self._client = group.client
        self._processes = processes
        listed = hashlib.sha256(repr(processes).encode()).hexdigest()[:16]
        self._root = f"{_ROOT}/{listed}"
        self._lock = threading.Lock()
        self._equal: set[str] = set()
        self._count = 0

    def compare(self, program: ComparedProgram, started: int) -> None:
        with self._lock:
            if program.digest in self._equal and not program.every_time:
                return
            site = f"{self._root}/{self._count}"
            self._count += 1
            self._meet(site, program, started)
            self._equal.add(program.digest)
            if self._group.process_id == self._processes[0] and self._count > 1:
                # All processes have read it, as they have arrived here.
                self._client.key_value_delete(f"{self._root}/{self._count - 2}")

    def _meet(self, site: str, program: ComparedProgram, started: int) -> None:
        client, me, processes = self._client, self._group.process_id, self._processes
        waiting = _Waiting(site, program.name, processes, started, next(_serials))
        wait = _Wait(self._group, waiting)
        if me == processes[0]:
            client.key_value_set(f"{site}/program", program.digest)
        elif wait.value_of("program") != program.digest:
            client.key_value_set(f"{site}/differs/{me}", "")
        if client.key_value_increment(f"{site}/came", 1) == len(processes):
            differing = _by_process(client, f"{site}/differs")
            verdict = " ".join([_DIFFERS, *map(str, sorted(differing))]) if differing else _SAME
            write_first(client, f"{site}/verdict", verdict)
        verdict = wait.value_of("verdict")
        if verdict != _SAME:
            differing = list(map(int, verdict.split()[1:]))
            self._explain(site, program, differing, wait)

    def _explain(
        self, site: str, program: ComparedProgram, differing: Sequence[int], wait: "_Wait"
    ) -> None:
        """Compare whole programs, whose digests differ; raise the error if they differ, too."""
        client, me, first = self._client, self._group.process_id, self._processes[0]
        if me == first:
            compressed = zlib.compress(program.text().encode())
            if len(compressed) > _MAX_BYTES:
                compressed = b""
            client.key_value_set_bytes(f"{site}/text", compressed)
            client.key_value_set(f"{site}/name", program.name)
        elif me in differing:
            name = wait.value_of("name")
            compressed = client.blocking_key_value_get_bytes(f"{site}/text", _POLL_MILLISECONDS)
            if compressed:
                labels = f"process {first}: {name}", f"process {me}: {program.name}"
                theirs = zlib.decompress(compressed).decode()
                lines = program.difference(theirs, program.text(), labels)
            else:
                lines = (
                    "The programs are too large to send: the option jax_dump_ir_to writes them to "
                    "a folder, and `python -m hlofront diff A B` compares them."
                )
            text = json.dumps([name, program.name, lines]) if lines else ""
            client.key_value_set(f"{site}/differences/{me}", text)
            if client.key_value_increment(f"{site}/explained", 1) == len(differing):
                differences = _by_process(client, f"{site}/differences")
                client.key_value_set(f"{site}/end", self._text(differences, program.problem))
        end = wait.value_of("end")
        if end:
            raise program.error(end)

    def _text(self, differences: Mapping[int, str], problem: tuple[str, str]) -> str:
        """Return the error's text, from the differences of each process from the first."""
        texts = {number: text for number, text in sorted(differences.items()) if text}
        if not texts:
            return ""
        number, text = next(iter(texts.items()))
        name, own_name, lines = json.loads(text)
        which = f"process {number}" if len(texts) == 1 else f"processes {_listed(list(texts))}"
        first = self._processes[0]
        runs = f"{name}" if name == own_name else f"{own_name} where process {first} runs {name}"
        return (
            f"{which} of {len(self._processes)} {problem[0]} than process {first}: "
            f"{runs}, as program {self._count} over processes {_listed(self._processes)}.\n"
            f"{lines}\n{problem[1]}"
        )


_serials = itertools.count()


class _Wait:
    """The wait of this process at a meeting, for values that other processes write there."""

    def __init__(self, group: GroupOfProcesses, waiting: _Waiting):
        self._group = group
        self._client = group.client
        self._waiting = waiting
        self._started = self._told = time.monotonic()
        # The circle of waiting processes that the previous poll found.
        self._circle: list[tuple[int, _Waiting]] = []

    def value_of(self, name: str) -> str:
        """Wait until a process has written a value of the meeting, and return it.

        Raises:
          RuntimeError: if a process, this or another, finds that they cannot continue.
          ProcessFailureError: if one of the processes has failed.
        """
        site = self._waiting.site
        value = _get(self._client, f"{site}/{name}", _POLL_MILLISECONDS)
        if value is None:
            waiting_key = f"{_WAITING}/{self._group.process_id}"
            record = json.dumps(self._waiting)
            try:
                self._client.key_value_set(waiting_key, record, allow_overwrite=True)
                while value is None:
                    self._group.check(self._waiting.processes)
                    self._look()
                    value = _get(self._client, f"{site}/{name}", _POLL_MILLISECONDS)
                    if value is None and name != "verdict":
                        self._raise_if_settled()
            finally:
                with contextlib.suppress(JaxRuntimeError):
                    self._client.key_value_delete(waiting_key)
        if value.startswith("error "):
            raise RuntimeError(value.removeprefix("error "))
        return value

    def _raise_if_settled(self) -> None:
        verdict = _get(self._client, f"{self._waiting.site}/verdict", 1)
        if verdict is not None and verdict.startswith("error "):
            raise RuntimeError(verdict.removeprefix("error "))

    def _look(self) -> None:
        """Raise an error in all waiting processes if they wait for each other, or for too long.

        Raises:
          RuntimeError: with the programs at which the processes wait.
        """
        waiting = _all_waiting(self._client)
        circle = self._circle_in(waiting)
        # A circle that is found twice is not one that was about to end.
        if circle and circle == self._circle:
            each = "; ".join(
                f"process {number} waits at the first run of {where.name} for process {other}"
                for (number, where), (other, _) in zip(
                    circle, [*circle[1:], circle[0]], strict=True
                )
            )
            self._settle(
                [where.site for _, where in circle],
                f"processes wait for each other at different programs: {each}. {_ADVICE}",
            )
        self._circle = circle
        now = time.monotonic()
        site, name, processes = self._waiting[:3]
        here = {number for number, where in waiting.items() if where.site == site}
        missing = [n for n in processes if n not in here and n != self._group.process_id]
        elsewhere = "".join(
            f"; process {number} waits at the first run of {waiting[number].name}"
            for number in missing
            if number in waiting
        )
        whom = f"process {missing[0]}" if len(missing) == 1 else f"processes {_listed(missing)}"
        if now - self._started > _timeout.value:
            self._settle(
                [site],
                f"process {self._group.process_id} has waited {_timeout.value:g} s for {whom} at "
                f"the first run of {name} over processes {_listed(processes)}{elsewhere}. "
                f"{_ADVICE} The option hlofront_compare_programs_timeout_secs lengthens the wait.",
            )
        if missing and now - self._told > _TELL_SECONDS:
            self._told = now
            logger.warning(
                "process %d waits for %s at the first run of %s, since %d s%s",
                self._group.process_id,
                whom,
                name,
                now - self._started,
                elsewhere,
            )

    def _circle_in(self, waiting: Mapping[int, _Waiting]) -> list[tuple[int, _Waiting]]:
        """Return a cycle of processes, this one first, each of which waits for the next one."""
        me = self._group.process_id
        paths: list[list[int]] = [[me]]
        seen = {me}
        while paths:
            path = paths.pop(0)
            where = waiting.get(path[-1])
            if where is None:
                continue
            for number in where.processes:
                other = waiting.get(number)
                if other is None or other.site == where.site:
                    continue
                if number == me:
                    circle = [(process, waiting[process]) for process in path]
                    start = min(range(len(circle)), key=lambda i: circle[i][0])
                    return circle[start:] + circle[:start]
                if number not in seen:
                    seen.add(number)
                    paths.append([*path, number])
        return []

    def _settle(self, sites: Sequence[str], text: str) -> NoReturn:
        """Write an error as the verdict of meetings, for all processes that take part; raise it.

        If another process has already written a verdict for this process's meeting, that counts.
        """
        for site in sites:
            write_first(self._client, f"{site}/verdict", f"error {text}")
        self._raise_if_settled()
        raise RuntimeError(text)


def _by_process(client: CoordinationClient, prefix: str) -> dict[int, str]:
    """Return the values below a key by the process that wrote them."""
    return {int(key.rpartition("/")[2]): value for key, value in client.key_value_dir_get(prefix)}


def _all_waiting(client: CoordinationClient) -> dict[int, _Waiting]:
    """Return the meetings of the processes that have waited for longer than a poll."""
    records = _by_process(client, _WAITING)
    return {number: _Waiting(*json.loads(text)) for number, text in records.items()}


def _get(client: CoordinationClient, key: str, milliseconds: int) -> str | None:
    """Return the value of a key; None if there is none within the time."""
    try:
        return client.blocking_key_value_get(key, milliseconds)
    except JaxRuntimeError as error:
        if "DEADLINE_EXCEEDED" in str(error):
            return None
        raise


def _listed(numbers: Sequence[int]) -> str:
    """Return numbers as text, abbreviated to the first eight."""
    shown = ", ".join(map(str, numbers[:8]))
    return f"{shown}, ... ({len(numbers)})" if len(numbers) > 8 else shown
