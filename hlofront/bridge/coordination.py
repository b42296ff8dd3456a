"""jaxlib's coordination service, through which the processes of a group meet, and its clients."""

import contextlib
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Protocol

from hlofront.bridge import coordinator, state

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_jax = state.extension
# True from jaxlib 0.12 on. The only signature of nanobind's functions is in their docstring.
supports_mutual_tls = "mtls_cert_file" in (_jax.get_distributed_runtime_client.__doc__ or "")


class CoordinationClient(Protocol):
    """The methods of jaxlib's DistributedRuntimeClient that are used here.

    Waits are in milliseconds; a failure raises JaxRuntimeError.
    """

    def connect(self) -> None: ...
    def shutdown(self) -> None: ...
    def key_value_set(self, key: str, value: str, allow_overwrite: bool = False) -> None: ...
    def key_value_set_bytes(
        self, key: str, value: bytes, allow_overwrite: bool = False
    ) -> None: ...
    def key_value_try_get(self, key: str) -> str: ...
    def key_value_dir_get(self, key: str) -> "list[tuple[str, str]]": ...
    def key_value_dir_get_bytes(self, key: str) -> "list[tuple[str, bytes]]": ...
    def key_value_delete(self, key: str) -> None: ...
    def key_value_increment(self, key: str, increment: int) -> int: ...
    def blocking_key_value_get(self, key: str, timeout_in_ms: int) -> str: ...
    def blocking_key_value_get_bytes(self, key: str, timeout_in_ms: int) -> bytes: ...
    def wait_at_barrier(
        self, barrier_id: str, timeout_in_ms: int, process_ids: "Sequence[int] | None" = None
    ) -> None: ...
    def get_live_nodes(self, process_ids: "Sequence[int]") -> dict[int, int]: ...


class PreemptionSync(Protocol):
    """The methods of jaxlib's PreemptionSyncManager that are used here."""

    def initialize(self, distributed_client: CoordinationClient) -> None: ...
    def reached_sync_point(self, step_id: int, /) -> bool: ...
    def shutdown(self) -> None: ...


class Coordinator:
    """The coordination service of a group, in a separate process that this process started."""

    def __init__(self, process: "subprocess.Popen[str]"):
        self._process = process

    def stop(self) -> None:
        """Make the service end once the other processes of the group have ended."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()


def start_coordinator(
    address: str,
    processes: int,
    heartbeat_timeout: int,
    shutdown_timeout: int,
    mutual_tls: "Mapping[str, str]",
) -> Coordinator:
    """Start the coordination service of a group, and return once it listens.

    Args:
      address: the address on which it listens, such as "[::]:1234".
      processes: the number of processes in the group.
      heartbeat_timeout: the seconds without a heartbeat after which a process counts as dead.
      shutdown_timeout: the seconds that the shutdown of the group may take.
      mutual_tls: the settings of mutual TLS under jaxlib's names; empty for none.

    Raises:
      RuntimeError: if it cannot listen on the address.
    """
    arguments = [address, str(processes), str(heartbeat_timeout), str(shutdown_timeout)]
    arguments.append(json.dumps(dict(mutual_tls)))
    process = subprocess.Popen(
        [sys.executable, str(coordinator.__file__), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    answer = ""
    if process.stdout is not None:
        answer = process.stdout.readline()
        process.stdout.close()
    if answer.strip() != "ready":
        process.kill()
        process.wait()
        if process.stdin is not None:
            process.stdin.close()
        raise RuntimeError(
            f"the coordination service cannot listen at {address}: "
            f"{answer.removeprefix('error ').strip() or 'its process has ended'}"
        )
    return Coordinator(process)


def coordination_client(
    address: str,
    process_id: int,
    initialization_timeout: int,
    heartbeat_timeout: int,
    shutdown_timeout: int,
    mutual_tls: "Mapping[str, str]",
) -> CoordinationClient:
    """Return a client of the coordination service, which is not connected yet; times in seconds."""
    client: CoordinationClient = _jax.get_distributed_runtime_client(
        address,
        process_id,
        init_timeout=initialization_timeout,
        heartbeat_timeout=heartbeat_timeout,
        shutdown_timeout=shutdown_timeout,
        shutdown_on_destruction=False,
        use_compression=True,
        **mutual_tls,
    )
    return client


def cpu_collectives(client: CoordinationClient) -> object:
    """Return gloo's collectives, which CPU devices of several processes use to exchange values."""
    return _jax.make_gloo_tcp_collectives(distributed_client=client)


def preemption_sync(client: CoordinationClient) -> PreemptionSync:
    """Return jaxlib's PreemptionSyncManager; after this, SIGTERM does not end this process."""
    manager: PreemptionSync = _jax.create_preemption_sync_manager()
    manager.initialize(client)
    return manager


def write_first(client: CoordinationClient, key: str, value: str) -> bool:
    """Write a value, unless another process was first; return whether this one was."""
    try:
        client.key_value_set(key, value)
    except state.JaxRuntimeError as error:
        if "ALREADY_EXISTS" not in str(error):
            raise
        return False
    return True
