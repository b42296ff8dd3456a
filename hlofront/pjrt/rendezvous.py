"""The rendezvous of a group of processes, before jaxlib's coordination service starts.

jaxlib ends a process whose group does not assemble, and treats a second process with the same
number as a restart of the first. So each process first connects to process 0 at the coordinator's
address, and sends a line: the protocol's name and its `Participant` as JSON. When all have
connected, or one does not fit, or the time is over, process 0 answers each with a line: the
protocol's name and the error, which is empty if there is none. Each process sends one message and
receives one.
"""

import contextlib
import dataclasses
import json
import os
import selectors
import socket
import threading
import time
from collections.abc import Iterable
from typing import Any

from hlofront.base.version import __version__
from hlofront.bridge.plugins import jaxlib_version

PROTOCOL = b"hlofront-rendezvous "
_LONGEST_LINE = 16_384
# The seconds that an answer may take on the network, after the time of the rendezvous is over.
_GRACE = 5.0
# The seconds after which a refused connection is tried again.
_RETRY_AFTER = 0.1
_MAX_LISTED = 10


@dataclasses.dataclass(frozen=True, slots=True)
class Participant:
    """A process of the group, as it describes itself in its message.

    Attributes:
      process_id: its number.
      process_count: the number of processes that it expects.
      host, pid: the machine, and the process there.
      hlofront, jaxlib: the versions of the packages.
      seconds: the time that it waits for the others.
    """

    process_id: int
    process_count: int
    host: str
    pid: int
    hlofront: str
    jaxlib: str
    seconds: float

    @staticmethod
    def of_this_process(process_id: int, process_count: int, seconds: float) -> "Participant":
        host = socket.gethostname()
        versions = __version__, jaxlib_version()
        return Participant(process_id, process_count, host, os.getpid(), *versions, seconds)

    def __str__(self) -> str:
        return f"process {self.process_id} (pid {self.pid} on {self.host})"

    def is_valid(self) -> bool:
        """Return whether it may be a process of a group: anyone can send such a message."""
        numbers = (self.process_id, self.process_count, self.pid)
        texts = (self.host, self.hlofront, self.jaxlib)
        return (
            all(type(number) is int for number in numbers)
            and 0 <= self.process_id < self.process_count
            and all(type(text) is str and text.isprintable() for text in texts)
            and type(self.seconds) in (int, float)
            and self.seconds >= 0
        )


class Rendezvous:
    """The rendezvous that process 0 holds, in a thread.

    Args:
      bind_address: where it listens, such as "[::]:1234".
      participant: process 0, which registers like the others.

    Raises:
      RuntimeError: if it cannot listen there.
    """

    def __init__(self, bind_address: str, participant: Participant):
        self._own = participant
        self._present: dict[int, tuple[Participant, socket.socket]] = {}
        self._has_come = False
        self._end = time.monotonic() + participant.seconds
        try:
            self._listener = _listen(bind_address)
        except OSError as error:
            raise RuntimeError(
                f"process 0 cannot listen at {bind_address}: {error}. Is another process 0, or "
                "another program, running on this machine with this port?"
            ) from error
        self._thread = threading.Thread(target=self._hold, name="rendezvous", daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait until all processes have been answered and the address is free for the service."""
        self._thread.join()

    def _hold(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            answer = ""
            # Process 0 always gets an answer: it registers as soon as it listens.
            while not self._has_come or not (answer or self._are_all_present()):
                left = self._end - time.monotonic()
                if left <= 0:
                    answer = answer or self._absence()
                    break
                for key, _ in selector.select(left):
                    error = self._read(selector, key)
                    answer = answer or error
            connections = [key.fileobj for key in list(selector.get_map().values())]
        # The service listens at the address as soon as the processes look for it.
        self._listener.close()
        for connection in connections:
            if isinstance(connection, socket.socket) and connection is not self._listener:
                _answer(connection, answer)

    def _are_all_present(self) -> bool:
        return len(self._present) == self._own.process_count

    def _read(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> str:
        """Read what has arrived at a socket; return an error if a process does not fit."""
        connection: Any = key.fileobj
        if connection is self._listener:
            with contextlib.suppress(OSError):
                accepted, _ = self._listener.accept()
                accepted.setblocking(False)
                selector.register(accepted, selectors.EVENT_READ, bytearray())
            return ""
        try:
            received = connection.recv(4096)
        except BlockingIOError:
            return ""
        except OSError:
            received = b""
        line: bytearray = key.data
        line += received
        participant = _parsed(bytes(line)) if line.endswith(b"\n") else None
        if received and (participant is not None or len(line) < _LONGEST_LINE):
            return "" if participant is None else self._note(participant, connection)
        # The process ended before the group was complete, or it is another program.
        selector.unregister(connection)
        connection.close()
        for number, (_, known) in list(self._present.items()):
            if known is connection:
                del self._present[number]
        return ""

    def _note(self, other: Participant, connection: socket.socket) -> str:
        """Record a participant; return an error's text, or "" for none.

        There is an error if it has another count of processes or another version, or the number
        of another process.
        """
        participant = self._own
        self._has_come = self._has_come or (other.host, other.pid) == (
            participant.host,
            participant.pid,
        )
        for what, theirs, ours in (
            ("num_processes", other.process_count, participant.process_count),
            ("hlofront", other.hlofront, participant.hlofront),
            ("jaxlib", other.jaxlib, participant.jaxlib),
        ):
            if theirs != ours:
                return (
                    f"{other} has {what} {theirs}, and {participant} has {what} {ours}: all "
                    "processes of a group need the same"
                )
        if other.process_id in self._present:
            known, _ = self._present[other.process_id]
            return (
                f"two processes have the number {other.process_id}: pid {known.pid} on "
                f"{known.host} and pid {other.pid} on {other.host}. Give each process a process_id "
                f"of its own, from 0 to {participant.process_count - 1}"
            )
        self._present[other.process_id] = other, connection
        self._end = min(self._end, time.monotonic() + other.seconds)
        return ""

    def _absence(self) -> str:
        absent = sorted(set(range(self._own.process_count)) - self._present.keys())
        have = "has" if len(absent) == 1 else "have"
        return (
            f"{_listed(absent)} of {self._own.process_count} {have} not come. Did they start, and "
            "is the address of process 0 reachable from their machines?"
        )


def register(address: str, participant: Participant) -> None:
    """Register with process 0, and return when all processes have registered.

    Args:
      address: the "host:port" of the coordinator.
      participant: this process.

    Raises:
      OSError: if nothing listens at the address within the time.
      RuntimeError: if the group does not assemble: the message says which processes, and why.
    """
    end = time.monotonic() + participant.seconds
    connection = _connect(address, end)
    left = max(end - time.monotonic(), 0.0)
    record = dataclasses.asdict(dataclasses.replace(participant, seconds=left))
    with connection:
        connection.settimeout(left + _GRACE)
        try:
            connection.sendall(PROTOCOL + json.dumps(record).encode() + b"\n")
            answer = _line(connection)
        except TimeoutError:
            raise RuntimeError(
                f"process 0 has not answered in {participant.seconds:.0f} s"
            ) from None
        except ConnectionError:
            answer = b""
    if not answer:
        raise RuntimeError("process 0 has ended before all processes had come")
    if not answer.startswith(PROTOCOL):
        raise RuntimeError(
            f"{address} does not answer as process 0 of a group that comes together: the group "
            "may have begun without this process, or the address is that of another program"
        )
    error = answer.removeprefix(PROTOCOL).decode(errors="replace").strip()
    if error:
        raise RuntimeError(error)


def _connect(address: str, end: float) -> socket.socket:
    host, _, port = address.rpartition(":")
    while True:
        try:
            return socket.create_connection((host.strip("[]"), int(port)), timeout=5)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(_RETRY_AFTER)


def _listen(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    if host in ("", "::") and socket.has_dualstack_ipv6():
        return socket.create_server(
            ("", int(port)), family=socket.AF_INET6, backlog=1024, dualstack_ipv6=True
        )
    family = socket.AF_INET6 if ":" in host and host != "::" else socket.AF_INET
    return socket.create_server(
        ("" if host == "::" else host, int(port)), family=family, backlog=1024
    )


def _line(connection: socket.socket) -> bytes:
    """Receive until the end of a line, or of the connection."""
    received = bytearray()
    while not received.endswith(b"\n") and len(received) < _LONGEST_LINE:
        part = connection.recv(4096)
        if not part:
            break
        received += part
    return bytes(received)


def _answer(connection: socket.socket, error: str) -> None:
    # A process that has ended in the meantime needs no answer.
    with connection, contextlib.suppress(OSError):
        connection.settimeout(_GRACE)
        connection.sendall(PROTOCOL + error.encode() + b"\n")


def _parsed(line: bytes) -> Participant | None:
    """Return the participant in a line; None if the line has another form."""
    if not line.startswith(PROTOCOL):
        return None
    try:
        participant = Participant(**json.loads(line.removeprefix(PROTOCOL)))
    except (ValueError, TypeError, RecursionError):
        return None
    return participant if participant.is_valid() else None


def _listed(numbers: Iterable[int]) -> str:
    """Return numbers of processes as text, with ranges as "3 to 7"."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    parts = [str(a) if a == b else f"{a} to {b}" for a, b in ranges]
    if len(parts) > _MAX_LISTED:
        parts[_MAX_LISTED:] = [f"{len(parts) - _MAX_LISTED} more ranges"]
    several = len(ranges) > 1 or any(a != b for a, b in ranges)
    return ("processes " if several else "process ") + ", ".join(parts)
