"""Failures of other processes of a group: their detection, and the errors that calls then raise.

A thread requests the list of live processes from the coordination service four times a second.
When a process has failed, the thread shuts the connections by which the CPUs of the group exchange
values, so that programs that wait for the failed process end with an error; and jaxlib's errors of
broken connections become ProcessFailureErrors, which name the process.

A request for the live processes is a barrier: the service answers when all processes that the
request lists have made the same request, or have failed. It never answers a request that lists a
process that has left in an orderly way. So the requests are numbered in rounds, which are the same
in all processes, and a process that leaves announces which round is its last one.
"""

import itertools
import sys
import threading
import time
from collections.abc import Collection, Iterable

from hlofront.bridge import failures, state
from hlofront.bridge.client import Device, JaxRuntimeError
from hlofront.bridge.coordination import CoordinationClient, cpu_collectives
from hlofront.bridge.gloo import Connecting
from hlofront.pjrt import clients, sockets

# The key under which a process that leaves the group writes the number of its last round, and the
# error that made it leave, or an empty string.
_ENDED = "hlofront/ended"
# The key under which a process writes the addresses where gloo listens for the others.
_ADDRESSES = "hlofront/addresses"
# Seconds between requests to the service, and the greatest number of a group's requests per second.
_PERIOD = 0.25
_MAX_QUESTIONS = 256


class ProcessFailureError(JaxRuntimeError):
    """The error that processes of a group raise when other processes of it have ended or hang.

    Attributes:
      failed_processes: the numbers of the processes that have failed.
      failed_devices: their devices.
    """

    failed_processes: tuple[int, ...] = ()
    failed_devices: frozenset[Device] = frozenset()


class ProcessWatch:
    """The thread that finds out which other processes of a group have failed.

    Args:
      process_id: the number of this process.
      process_count: the number of processes.
      client: the connected client of the coordination service.
      heartbeat_timeout: the seconds without a sign of life after which a process counts as dead.
      shutdown_timeout: the seconds that leaving the group may take.
    """

    def __init__(
        self,
        process_id: int,
        process_count: int,
        client: CoordinationClient,
        heartbeat_timeout: int,
        shutdown_timeout: int,
    ):
        self.process_id = process_id
        self.process_count = process_count
        self.heartbeat_timeout = heartbeat_timeout
        self.shutdown_timeout = shutdown_timeout
        self._client = client
        # The processes that are gone, each with the reason: empty for an orderly exit.
        self._gone: dict[int, str] = {}
        self._addresses: dict[int, str] = {}
        self._connecting = Connecting(client)
        self._connecting_lock = threading.Lock()
        self._may_connect_to: Collection[int] = ()
        self._changed = threading.Condition()
        self._ends = threading.Event()
        self._reason = ""
        # Since when an error of a broken connection waits to name who failed; None if none does.
        self.cut_off_since: float | None = None
        self._thread = threading.Thread(target=self._watch, name="processes", daemon=True)
        failures.on_broken_connection = self._name_failed
        self._thread.start()

    def collectives(self) -> object:
        """Return the collectives of CPUs; publish their addresses to other processes."""
        before = sockets.listening()
        made = cpu_collectives(self._client)
        addresses = " ".join(sorted(sockets.listening() - before))
        self._client.key_value_set(
            f"{_ADDRESSES}/{self.process_id}", addresses, allow_overwrite=True
        )
        return made

    def gone(self) -> dict[int, str]:
        """Return the processes that are known to be gone, each with the reason."""
        with self._changed:
            return dict(self._gone)

    def wait_until_gone(self, processes: Iterable[int], seconds: float) -> bool:
        """Wait until all of these processes are known to be gone; return whether they are."""
        numbers = set(processes)
        with self._changed:
            return self._changed.wait_for(lambda: numbers <= self._gone.keys(), seconds)

    def check(self, processes: Iterable[int] | None = None) -> None:
        """Raise ProcessFailureError if some processes, by default any other, are gone."""
        if self._gone:
            gone = self.gone()
            if processes is not None:
                gone = {number: gone[number] for number in gone.keys() & set(processes)}
            if gone:
                raise _with_processes(ProcessFailureError(self._text(gone)), gone)

    def end(self) -> bool:
        """Announce that this process leaves the group, and why; stop watching the others.

        Returns:
          Whether the others could be notified within the time that leaving may take.
        """
        failures.on_broken_connection = None
        raised = getattr(sys, "last_value", None)
        # The interpreter has printed this error, and ends with it.
        if isinstance(raised, BaseException):
            self._reason = _first_line(f"it ended with {type(raised).__name__}: {raised}")
        self._ends.set()
        # A thread that is inside C++ when the interpreter ends would abort the process.
        self._thread.join(self.shutdown_timeout)
        return not self._thread.is_alive()

    def _watch(self) -> None:
        """Detect processes that have failed or left, until this one leaves the group."""
        known = set(range(self.process_count))
        period = max(_PERIOD, self.process_count / _MAX_QUESTIONS)
        for number in itertools.count():
            is_last = self._ends.wait(period)
            try:
                if is_last:
                    self._client.key_value_set(
                        f"{_ENDED}/{self.process_id}", f"{number} {self._reason}"
                    )
                alive = set(self._client.get_live_nodes(sorted(known)))
                if is_last:
                    return
                ended = {
                    process: text.partition(" ") for process, text in self._values(_ENDED).items()
                }
                if len(self._addresses) < self.process_count:
                    self._addresses = self._values(_ADDRESSES)
                self._end_connecting()
                self.each_round()
            except JaxRuntimeError as error:
                if not self._ends.is_set():
                    self._note({0: f"the coordination service is gone: {_first_line(str(error))}"})
                return
            silent = f"no sign of it for {self.heartbeat_timeout} s, or its connection is lost"
            reasons = {process: reason for process, (_, _, reason) in ended.items()}
            self._note(dict.fromkeys(known - alive - ended.keys(), silent) | reasons)
            if self.process_id not in alive:
                return
            # All processes must list the same ones in the next round: a process that announced a
            # later last round takes part in it, whether or not this process has read that yet.
            known = {
                process
                for process in alive
                if process not in ended or int(ended[process][0]) > number
            }

    def each_round(self) -> None:
        """Do nothing after a round of the thread; the group replaces this function."""

    def _values(self, prefix: str) -> dict[int, str]:
        """Return the values that processes have stored below a key, by the processes' numbers."""
        pairs = self._client.key_value_dir_get(prefix)
        return {int(key.rpartition("/")[2]): value for key, value in pairs}

    def _note(self, gone: dict[int, str]) -> None:
        """Record that processes are gone; if they have failed, end programs that wait for them."""
        new = {number: why for number, why in gone.items() if number not in self._gone}
        if any(new.values()):
            # gloo waits forever for a process that does not close its connections.
            self._shut_connections()
            # Part of the C++ jit key: compiled calls fall back to Python, which calls `check`.
            cell = state.process_options
            cell.set_global((*cell.get_global(), ("failed processes", tuple(new))))
        if new:
            with self._changed:
                self._gone.update(new)
                self._changed.notify_all()

    def note_launch(self, connecting: Collection[int]) -> None:
        """Record that a program starts in which CPUs of processes exchange values.

        All such programs that this process has started before must have ended.

        Args:
          connecting: the processes of the program if their CPUs may have to connect for it.
        """
        with self._connecting_lock:
            self._may_connect_to = connecting

    def _end_connecting(self) -> None:
        """End attempts of this process's CPUs to connect to those of a failed process.

        Some of the devices may have connected since the failure was recorded, and wait for values.
        """
        with self._connecting_lock:
            failed = {number for number in self._may_connect_to if self._gone.get(number)}
            cpu = clients.clients().get("cpu")
            if not failed or cpu is None:
                return
            self._shut_connections()
            processes = {device.id: device.process_index for device in cpu.devices()}
            self._connecting.end(
                {device for device, process in processes.items() if process in failed},
                {device for device, process in processes.items() if process == self.process_id},
            )

    def _shut_connections(self) -> None:
        texts = self._addresses.values()
        sockets.shut_down({address for text in texts for address in text.split()})

    def _name_failed(self, error: RuntimeError, text: str) -> str:
        """Turn jaxlib's error for a broken connection into a ProcessFailureError; return its text.

        The service notices a process that was killed later than its neighbors do, so this waits.
        """
        self.cut_off_since = time.monotonic()
        with self._changed:
            self._changed.wait_for(lambda: self._gone, self.heartbeat_timeout + 5)
        self.cut_off_since = None
        gone = self.gone()
        if not gone:
            return text
        error.__class__ = ProcessFailureError
        if isinstance(error, ProcessFailureError):
            _with_processes(error, gone)
        return f"{self._text(gone)} ({_first_line(text)})"

    def _text(self, gone: dict[int, str]) -> str:
        listed = ", ".join(
            f"{number} ({why or 'it has left the group'})" for number, why in sorted(gone.items())
        )
        return (
            f"process {self.process_id} cannot continue, as these of {self.process_count} "
            f"processes have failed: {listed}. What they printed last says why; start the "
            "program again from its last checkpoint."
        )


def _with_processes(error: ProcessFailureError, gone: Iterable[int]) -> ProcessFailureError:
    """Store on an error which processes have failed, and their devices; return it."""
    error.failed_processes = tuple(sorted(gone))
    error.failed_devices = frozenset(
        device
        for client in clients.clients().values()
        for device in client.devices()
        if device.process_index in error.failed_processes
    )
    return error


def _first_line(text: str) -> str:
    return (text.splitlines() or [""])[0]
