"""The TCP sockets of this process, as Linux lists them, and the shutdown of connections.

An address is written as in /proc/net/tcp: the hexadecimal digits of the host and of the port. It
is the same text in both processes of a connection. On other systems no socket is listed or shut.
"""

import contextlib
import os
import pathlib
import re
import socket
from collections.abc import Collection, Iterator

from hlofront.base.named_tuple import NamedTuple

_ESTABLISHED, _LISTENING = "01", "0A"


class _Socket(NamedTuple):
    descriptor: int
    local: str
    remote: str
    state: str


def _sockets() -> Iterator[_Socket]:
    """Yield the TCP sockets of this process."""
    descriptors: dict[str, int] = {}
    folder = "/proc/self/fd"
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        # A descriptor may be closed while the folder is read.
        with contextlib.suppress(OSError):
            target = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"{folder}/{name}"))
            if target is not None:
                descriptors[target[1]] = int(name)
    for table in ("/proc/self/net/tcp", "/proc/self/net/tcp6"):
        path = pathlib.Path(table)
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            fields = line.split()
            descriptor = descriptors.get(fields[9])
            if descriptor is not None:
                yield _Socket(descriptor, *fields[1:4])


def listening() -> set[str]:
    """Return the addresses that this process listens at."""
    return {row.local for row in _sockets() if row.state == _LISTENING}


def shut_down(addresses: Collection[str]) -> int:
    """Shut the connections that this process has at, or to, addresses; return their number.

    Waiting on such a connection in this process then fails immediately.
    """
    count = 0
    for row in _sockets():
        if row.state == _ESTABLISHED and (row.local in addresses or row.remote in addresses):
            # The connection may end while the table is read.
            with (
                contextlib.suppress(OSError),
                socket.socket(fileno=os.dup(row.descriptor)) as connection,
            ):
                connection.shutdown(socket.SHUT_RDWR)
                count += 1
    return count
