"""The connection by which a process's end is noticed, and by which it learns of others' ends.

bridge/coordinator.py has the other side, and says what the lines mean.
"""

import contextlib
import socket
import threading
from collections.abc import Callable

# The seconds between attempts to connect, how many may fail one after the other, and the seconds
# between calls of `again` once a process has ended.
_PAUSE, _ATTEMPTS, _PERIOD = 0.2, 10, 0.25


class Presence:
    """A connection that ends with this process, and the thread that reads it.

    Args:
      host: the host of the coordination service.
      presence: the port and the token that the service's process has printed.
      process_id: the number of this process.
      note_ended: called with the number of a process that has ended.
      again: called four times a second from then on.
    """

    def __init__(
        self,
        host: str,
        presence: str,
        process_id: int,
        note_ended: Callable[[int], None],
        again: Callable[[], None],
    ):
        port, _, token = presence.partition(" ")
        self._address = host.strip("[]"), int(port)
        self._greeting = f"{token} {process_id}\n".encode()
        self._note_ended = note_ended
        self._again = again
        self._connection: socket.socket | None = None
        self._has_ended = False
        self._leaves = threading.Event()
        threading.Thread(target=self._watch, name="presence", daemon=True).start()

    def leave(self) -> None:
        """Say that this process leaves the group."""
        self._leaves.set()
        if self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.sendall(b"leave\n")

    def _watch(self) -> None:
        failed = 0
        while failed < _ATTEMPTS and not self._leaves.wait(_PAUSE if failed else 0):
            failed += 1
            # Without a connection the coordination service notices an end by its heartbeats.
            with contextlib.suppress(OSError), socket.create_connection(self._address, 5) as made:
                made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                made.sendall(self._greeting)
                self._connection = made
                failed = 0
                self._read(made)
                failed = 1

    def _read(self, connection: socket.socket) -> None:
        """Read lines until the connection ends."""
        received = b""
        while True:
            connection.settimeout(_PERIOD if self._has_ended else None)
            try:
                data = connection.recv(1024)
            except TimeoutError:
                self._again()
                continue
            if not data:
                return
            *lines, received = (received + data).split(b"\n")
            for line in lines:
                self._has_ended = True
                self._note_ended(int(line.removeprefix(b"ended ")))
