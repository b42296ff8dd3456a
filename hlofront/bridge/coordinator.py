"""The process that runs the coordination service of a group; coordination.py starts it as a script.

It is a process of its own, so that the service outlives the process of the group that started it:
the others then learn which process has ended, where jaxlib would end them. It prints "ready PORT
TOKEN" when the service listens, and ends when its input has ended and no other process is connected
any more. This file imports nothing of hlofront.

The service counts heartbeats, and notices late that a process was killed. So each process also
keeps a connection to PORT open, which the system closes with the process, however that ends. It
begins with the line "TOKEN NUMBER"; the line "leave" says that the process leaves the group; the
answers are lines "ended NUMBER". A connection that breaks while its process lives is made again: a
process counts as ended if it does not come back.
"""

import contextlib
import hmac
import importlib
import os
import pathlib
import secrets
import selectors
import socket
import sys
import threading
import time
from typing import Any

# How often the connections are counted, and for how long there must be none, in seconds.
_PERIOD, _GRACE = 1.0, 10.0


# The seconds that a process has to connect again: after the end of its connection, which it closed
# or the system for it, and after an error, which may be one of the network.
_AFTER_END, _AFTER_ERROR = 1.0, 15.0
_LONGEST_LINE = 1024


class Presence:
    """The connections of a group's processes, by which it knows which of them have ended.

    Args:
      processes: the number of processes.
    """

    def __init__(self, processes: int):
        dual = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if dual else socket.AF_INET
        self._listener = socket.create_server(("", 0), family=family, dualstack_ipv6=dual)
        self.port: int = self._listener.getsockname()[1]
        self.token = secrets.token_hex(16)
        self._processes = processes
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._received: dict[socket.socket, bytes] = {}
        self._numbers: dict[socket.socket, int] = {}
        # When those that are not connected any more count as ended.
        self._missing: dict[int, float] = {}
        self._leaving: set[int] = set()
        self._ended: set[int] = set()

    def watch(self) -> None:
        """Watch the connections; end this process when all that have not ended have left."""
        while True:
            for key, _ in self._selector.select(0.2):
                if key.fileobj is self._listener:
                    self._accept()
                else:
                    self._read(key.fileobj)
            now = time.monotonic()
            for number in [n for n, deadline in self._missing.items() if deadline < now]:
                del self._missing[number]
                self._ended.add(number)
                for connection in self._numbers:
                    self._tell(connection, number)
            if self._ended and len(self._ended | self._leaving) == self._processes:
                # The service would answer those that leave when it misses the heartbeats.
                os._exit(0)

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        connection.setblocking(False)
        self._received[connection] = b""
        self._selector.register(connection, selectors.EVENT_READ)

    def _read(self, connection: Any) -> None:
        try:
            data = connection.recv(_LONGEST_LINE)
        except BlockingIOError:
            return
        except OSError:
            self._drop(connection, _AFTER_ERROR)
            return
        *lines, rest = (self._received[connection] + data).split(b"\n")
        self._received[connection] = rest
        for line in lines:
            self._take(connection, line)
        if connection in self._received and (not data or len(rest) > _LONGEST_LINE):
            self._drop(connection, _AFTER_END)

    def _take(self, connection: socket.socket, line: bytes) -> None:
        number = self._numbers.get(connection)
        if number is not None:
            if line == b"leave":
                self._leaving.add(number)
            return
        token, _, text = line.partition(b" ")
        is_known = hmac.compare_digest(token, self.token.encode()) and text.isdigit()
        if not is_known or int(text) >= self._processes:
            self._drop(connection, 0)
            return
        self._numbers[connection] = int(text)
        self._missing.pop(int(text), None)
        for ended in self._ended:
            self._tell(connection, ended)

    def _drop(self, connection: socket.socket, seconds: float) -> None:
        self._selector.unregister(connection)
        self._received.pop(connection, None)
        connection.close()
        number = self._numbers.pop(connection, None)
        if number is None or number in self._leaving or number in self._numbers.values():
            return
        self._missing[number] = time.monotonic() + seconds

    def _tell(self, connection: socket.socket, ended: int) -> None:
        with contextlib.suppress(OSError):
            connection.send(f"ended {ended}\n".encode())


def connections(port: int) -> int:
    """Return the number of open TCP connections to a port of this machine, on Linux; else 0."""
    count = 0
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        path = pathlib.Path(table)
        lines = path.read_text().splitlines()[1:] if path.exists() else []
        for line in lines:
            _, local, _, connection_state, *_ = line.split()
            count += int(local.rpartition(":")[2], 16) == port and connection_state == "01"
    return count


def main(address: str, processes: int, heartbeat_timeout: int, shutdown_timeout: int) -> None:
    """Run the service until the group has ended."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    jaxlib: Any = importlib.import_module("jaxlib._jax")
    try:
        service = jaxlib.get_distributed_runtime_service(
            address,
            processes,
            heartbeat_timeout=heartbeat_timeout,
            shutdown_timeout=shutdown_timeout,
            recoverable=True,
        )
    except Exception as error:
        print(f"error {error}".splitlines()[0], flush=True)
        return
    presence = Presence(processes)
    threading.Thread(target=presence.watch, daemon=True).start()
    print(f"ready {presence.port} {presence.token}", flush=True)
    sys.stdin.buffer.read()
    # A reader of the errors of the process that started this one must not wait for this one.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    port = int(address.rpartition(":")[2])
    alone_since = time.monotonic()
    while time.monotonic() - alone_since < _GRACE:
        time.sleep(_PERIOD)
        if connections(port):
            alone_since = time.monotonic()
    service.shutdown()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:5]))
