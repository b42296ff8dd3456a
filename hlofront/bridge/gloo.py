# pyright: strict
"""Ending gloo's wait for a failed process while it connects the CPUs of a group.

The devices that a program spans, a clique, each write a record into the key-value store of the
group: the address at which their process listens, and a number for each device that may connect
there. For each pair of devices, one connects to the other and sends that number, and both continue.
gloo waits minutes for the record of a process that has failed, and for its connection.

So the other processes impersonate the failed one. They write its records, with an address on which
nobody listens; and each connects to its own address, sends the numbers for which it may be waiting,
and closes the connection, which makes gloo fail immediately.
"""

import contextlib
import logging
import socket
from collections.abc import Set
from typing import NamedTuple

from hlofront.bridge.client import JaxRuntimeError
from hlofront.bridge.coordination import CoordinationClient

logger = logging.getLogger(__name__)

# The keys are cpu:gloo/DEVICES/RANK, DEVICES being ids with commas between them.
_RECORDS = "cpu:gloo"
# An address is a struct sockaddr_storage and a number of eight bytes.
_ADDRESS_BYTES, _NUMBER_BYTES = 136, 8


class _Record(NamedTuple):
    """The record of a device in a clique.

    Attributes:
      host, port: the address on which its process listens.
      numbers: the numbers that the devices of the clique send when they connect, by rank.
      port_at: the position of the port's two bytes.
    """

    host: str
    port: int
    numbers: list[bytes]
    port_at: int

    @staticmethod
    def parsed(value: bytes, ranks: int) -> "_Record | None":
        """Parse a value of the store; return None if it has another form."""
        numbers_at = len(value) - _NUMBER_BYTES * ranks
        address_at = numbers_at - _ADDRESS_BYTES
        size_at = address_at - _NUMBER_BYTES
        if size_at < 0 or int.from_bytes(value[size_at:address_at], "little") != _ADDRESS_BYTES:
            return None
        address = value[address_at:numbers_at]
        family = int.from_bytes(address[:2], "little")
        if family == socket.AF_INET:
            host = socket.inet_ntop(family, address[4:8])
        elif family == socket.AF_INET6:
            host = socket.inet_ntop(family, address[8:24])
        else:
            return None
        port = int.from_bytes(address[2:4], "big")
        numbers = [value[i : i + _NUMBER_BYTES] for i in range(numbers_at, len(value), 8)]
        return _Record(host, port, numbers, address_at + 2)


class Connecting:
    """The replies of this process to gloo on behalf of failed processes, one per clique.

    Args:
      client: the client of the group's coordination service.
    """

    def __init__(self, client: CoordinationClient):
        self._client = client
        self._ended: set[bytes] = set()

    def end(self, failed: Set[int], own: Set[int]) -> None:
        """Make this process's gloo stop waiting for failed devices to which it is connecting.

        It is called repeatedly while processes may begin to connect.

        Args:
          failed: the ids of the devices of failed processes.
          own: the ids of the devices of this process.

        Raises:
          JaxRuntimeError: if the coordination service is gone.
        """
        cliques: dict[str, dict[int, bytes]] = {}
        for key, value in self._client.key_value_dir_get_bytes(_RECORDS):
            clique, _, rank = key.rpartition("/")
            cliques.setdefault(clique, {})[int(rank)] = value
        for clique, values in cliques.items():
            devices = list(map(int, clique.rpartition("/")[2].split(",")))
            if failed.isdisjoint(devices) or own.isdisjoint(devices):
                continue
            for rank, value in values.items():
                if devices[rank] not in own or value in self._ended:
                    continue
                self._ended.add(value)
                record = _Record.parsed(value, len(devices))
                if record is None:
                    logger.warning(
                        "this jaxlib writes gloo's records in another form than hlofront reads: "
                        "programs that wait for a process which failed while it connected end "
                        "only when gloo gives up, after minutes"
                    )
                    continue
                for number in record.numbers:
                    _connect_and_close(record.host, record.port, number)
                self._write_missing(clique, devices, values.keys(), failed, value, record)

    def _write_missing(
        self,
        clique: str,
        devices: list[int],
        written: Set[int],
        failed: Set[int],
        own_value: bytes,
        own_record: _Record,
    ) -> None:
        """Write the missing records of failed devices, modeled on a record of this process."""
        missing = [
            rank for rank, device in enumerate(devices) if device in failed and rank not in written
        ]
        if not missing:
            return
        family = socket.AF_INET6 if ":" in own_record.host else socket.AF_INET
        with socket.socket(family) as nobody:
            nobody.bind((own_record.host, 0))
            port = int(nobody.getsockname()[1])
        value = bytearray(own_value)
        value[own_record.port_at : own_record.port_at + 2] = port.to_bytes(2, "big")
        for rank in missing:
            # Another process may have been first.
            with contextlib.suppress(JaxRuntimeError):
                self._client.key_value_set_bytes(f"{clique}/{rank}", bytes(value))


def _connect_and_close(host: str, port: int, number: bytes) -> None:
    # gloo may have stopped listening.
    with (
        contextlib.suppress(OSError),
        socket.create_connection((host, port), timeout=1) as connection,
    ):
        connection.sendall(number)
