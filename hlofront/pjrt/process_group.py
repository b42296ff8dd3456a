"""The group of processes that this one belongs to: joining it, watching the others, leaving it."""

import atexit
import contextlib
import logging
import os
import socket
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hlofront.base.config import options
from hlofront.bridge.client import JaxRuntimeError
from hlofront.bridge.coordination import (
    CoordinationClient,
    Coordinator,
    PreemptionSync,
    coordination_client,
    preemption_sync,
    start_coordinator,
)
from hlofront.pjrt import clients
from hlofront.pjrt.cluster_environments import detected
from hlofront.pjrt.mutual_tls import check_handshake, mutual_tls
from hlofront.pjrt.process_failures import ProcessFailureError as ProcessFailureError
from hlofront.pjrt.process_failures import ProcessWatch
from hlofront.pjrt.program_comparison import ProgramComparisons
from hlofront.pjrt.rendezvous import Participant, Rendezvous, register

if TYPE_CHECKING:
    from hlofront.pjrt.watchdog import Watchdog

logger = logging.getLogger(__name__)
_watchdog_seconds = options["hlofront_watchdog_seconds"]

# The seconds in which processes must connect to the coordination service after the rendezvous.
_MIN_TIME = 30


class ProcessGroup(ProcessWatch):
    """The processes that run one program together, and this one among them.

    Attributes:
      process_id: the number of this process, from 0.
      process_count: the number of processes.
      client: the client of the coordination service.
      local_device_ids: the GPUs of this machine that belong to this process; None for all.
      partition_index: the number of this process's partition; None if partitions have no numbers.
      heartbeat_timeout: the seconds without a sign of life after which a process counts as dead.
      shutdown_timeout: the seconds that leaving the group may take.
      programs: the comparisons of programs that span several processes.
    """

    def __init__(
        self,
        process_id: int,
        process_count: int,
        client: CoordinationClient,
        coordinator: Coordinator | None,
        local_device_ids: Sequence[int] | None,
        partition_index: int | None,
        heartbeat_timeout: int,
        shutdown_timeout: int,
    ):
        self.client = client
        self.local_device_ids = local_device_ids
        self.partition_index = partition_index
        self._coordinator = coordinator
        self._preemption_sync: PreemptionSync | None = None
        self._watchdog: Watchdog | None = None
        self.programs = ProgramComparisons(self)
        super().__init__(process_id, process_count, client, heartbeat_timeout, shutdown_timeout)

    def start_watchdog(self, seconds: float) -> None:
        """Let a thread report which process the others wait for, once one waits so long."""
        # Few groups have a watchdog.
        from hlofront.pjrt.watchdog import Watchdog

        self._watchdog = Watchdog(self, seconds)

    def each_round(self) -> None:
        self.programs.look()

    def preemption_sync(self) -> PreemptionSync:
        """Return the service that tells all processes of a SIGTERM to one; made on first use."""
        if self._preemption_sync is None:
            self._preemption_sync = preemption_sync(self.client)
        return self._preemption_sync

    def leave(self) -> None:
        """Leave the group in an orderly way, which the others do not treat as a failure."""
        # Without the service, no process can be notified.
        with contextlib.suppress(JaxRuntimeError):
            if self._preemption_sync is not None:
                self._preemption_sync.shutdown()
        could_notify = self.end()
        if self._watchdog is not None:
            self._watchdog.stop()
        with contextlib.suppress(JaxRuntimeError):
            if could_notify:
                self.client.shutdown()
            else:
                # The others notice when the service no longer hears from this process.
                logger.warning(
                    "process %d of %d leaves its group without notifying the others: one of them "
                    "has not answered for %d s",
                    self.process_id,
                    self.process_count,
                    self.shutdown_timeout,
                )
        if self._coordinator is not None:
            self._coordinator.stop()


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0]


_group: ProcessGroup | None = None


def current_group() -> ProcessGroup | None:
    """Return the group that this process belongs to, or None."""
    return _group


def is_initialized() -> bool:
    """Return whether this process belongs to a group: between `initialize` and `shutdown`."""
    return _group is not None


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
    mtls_cert_file: str | None = None,
    mtls_key_file: str | None = None,
    mtls_ca_file: str | None = None,
    mtls_peer_uri_prefix: str | None = None,
    verify_secure_credentials: bool | None = None,
    watchdog_seconds: float | None = None,
) -> None:
    """Join this process to the group of processes that run one program together.

    Call it before the first use of a device. No arguments are needed under Slurm, Open MPI and
    Kubernetes, and on Cloud TPUs; elsewhere the first three are.

    Args:
      coordinator_address: "host:port" of process 0, at which the processes meet; by default the
        environment variable JAX_COORDINATOR_ADDRESS, or the launcher's.
      num_processes: the number of processes; by default JAX_NUM_PROCESSES or the launcher's.
      process_id: the number of this process, from 0; by default JAX_PROCESS_ID or the launcher's.
      local_device_ids: the GPUs of this machine that belong to this process; by default
        JAX_LOCAL_DEVICE_IDS, one per process as the launcher assigns them, or all.
      cluster_detection_method: the launcher: "slurm", "ompi", "mpi4py", "k8s", "tpu"; "deactivate"
        for none.
      initialization_timeout: how many seconds to wait for all processes to join.
      heartbeat_timeout_seconds: the seconds without a heartbeat after which a process is dead.
      shutdown_timeout_seconds: how many seconds `shutdown` waits for the other processes.
      coordinator_bind_address: where process 0 listens; by default on all of its addresses.
      slice_index: an older name of partition_index; by default JAX_SLICE_INDEX.
      partition_index: the number of the group of devices, such as a slice of TPUs or an NVLink
        domain of GPUs, that this process's devices belong to; by default JAX_PARTITION_INDEX.
      mtls_cert_file, mtls_key_file, mtls_ca_file: PEM files of this process's certificate, its
        private key, and the authorities that sign the certificates of the others. With them, the
        coordination service and its clients authenticate each other and encrypt, by mutual TLS;
        the rendezvous, in which processes exchange their numbers and versions, and the values
        that devices exchange are not encrypted. By default the options jax_mtls_cert_file, etc.
      mtls_peer_uri_prefix: how a URI in the other's certificate must begin, with "/" at its end;
        by default the certificate is for the host of coordinator_address.
      verify_secure_credentials: whether to raise an error without mutual TLS; by default the
        option jax_distributed_verify_secure_credentials.
      watchdog_seconds: the seconds that a process may wait in a program for others, before a report
        on stderr says which process and line they wait for; longer than the slowest step. 0 for no
        report; by default the option hlofront_watchdog_seconds.

    Raises:
      RuntimeError: on a second call, after the first use of a device, or if the processes do not
        meet within the time: the message says which of them are missing, have the same number, or
        have other versions or another number of processes. Also if mutual TLS is required and
        no files are passed, this jaxlib is older than 0.12 and lacks it, or a file cannot be read.
      ValueError: if arguments are missing and no launcher sets them, or they are inconsistent.
    """
    global _group
    if _group is not None:
        raise RuntimeError(
            "distributed.initialize should only be called once: this is process "
            f"{_group.process_id} of {_group.process_count} already"
        )
    if clients.are_made():
        raise RuntimeError(
            "distributed.initialize() must be called before any JAX calls that might initialise "
            "the XLA backend: computations, jax.devices(), jax.device_put(). Call it first."
        )
    secure = mutual_tls(
        mtls_cert_file,
        mtls_key_file,
        mtls_ca_file,
        mtls_peer_uri_prefix,
        verify_secure_credentials,
    )
    limit = _watchdog_seconds.value if watchdog_seconds is None else watchdog_seconds
    if limit < 0:
        raise ValueError(f"watchdog_seconds is a time, or 0 for no watchdog: got {limit}")
    variables = os.environ
    address = coordinator_address or variables.get("JAX_COORDINATOR_ADDRESS")
    count = _or_variable(num_processes, "JAX_NUM_PROCESSES")
    number = _or_variable(process_id, "JAX_PROCESS_ID")
    devices = _device_ids(local_device_ids, variables.get("JAX_LOCAL_DEVICE_IDS"))
    if address is None or count is None or number is None:
        environment = detected(cluster_detection_method, variables)
        if environment is not None:
            address = environment.coordinator(variables) if address is None else address
            count = environment.process_count(variables) if count is None else count
            number = environment.process_id(variables) if number is None else number
            local = environment.local_id(variables)
            if devices is None and local is not None:
                devices = [local]
    address, count, number = _checked(address, count, number)
    partition = slice_index if partition_index is None else partition_index
    if partition is None:
        partition = _or_variable(_or_variable(None, "JAX_PARTITION_INDEX"), "JAX_SLICE_INDEX")
    bind = coordinator_bind_address or variables.get("JAX_COORDINATOR_BIND_ADDRESS")
    bind = bind or f"[::]:{address.rpartition(':')[2]}"
    participant = Participant.of_this_process(number, count, initialization_timeout)
    rendezvous = Rendezvous(bind, participant) if number == 0 else None
    coordinator = None
    started = time.monotonic()
    try:
        register(address, participant)
        if rendezvous is not None:
            rendezvous.join()
            coordinator = start_coordinator(
                bind, count, heartbeat_timeout_seconds, shutdown_timeout_seconds, secure
            )
        _wait_for_coordinator(address, initialization_timeout)
        if secure:
            check_handshake(address, secure)
        left = max(_MIN_TIME, int(initialization_timeout - (time.monotonic() - started)))
        client = coordination_client(
            address, number, left, heartbeat_timeout_seconds, shutdown_timeout_seconds, secure
        )
        client.connect()
    except (JaxRuntimeError, RuntimeError, OSError) as error:
        if coordinator is not None:
            coordinator.stop()
        if rendezvous is not None:
            rendezvous.join()  # This process may end now, and the others wait for its answer.
        raise RuntimeError(
            f"process {number} of {count} could not join its group at {address} within "
            f"{initialization_timeout} s: {_first_line(error)}"
        ) from error
    _group = ProcessGroup(
        number,
        count,
        client,
        coordinator,
        devices,
        partition,
        heartbeat_timeout_seconds,
        shutdown_timeout_seconds,
    )
    clients.join(_group)
    if limit:
        _group.start_watchdog(limit)
    atexit.register(shutdown)


def shutdown() -> None:
    """Leave the group; without one, do nothing."""
    global _group
    if _group is not None:
        group, _group = _group, None
        clients.join(None)
        group.leave()
        atexit.unregister(shutdown)


def _wait_for_coordinator(address: str, seconds: float) -> None:
    """Wait until the coordination service listens; jaxlib would end this process if it does not.

    Raises:
      OSError: if it does not listen within the time.
    """
    host, _, port = address.rpartition(":")
    end = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def _or_variable(argument: int | None, name: str) -> int | None:
    text = os.environ.get(name)
    return argument if argument is not None or text is None else int(text)


def _device_ids(argument: int | Sequence[int] | None, text: str | None) -> list[int] | None:
    if argument is None:
        return [int(part) for part in text.split(",")] if text else None
    return [argument] if isinstance(argument, int) else list(argument)


def _checked(address: str | None, count: int | None, number: int | None) -> tuple[str, int, int]:
    """Return the arguments that every group needs.

    Raises:
      ValueError: if one is missing, or they are inconsistent.
    """
    if address is None:
        raise ValueError(
            "coordinator_address should be defined: the host and port of process 0, as in "
            "'10.0.0.1:1234'. No launcher that says it was detected."
        )
    if count is None:
        raise ValueError("Number of processes must be defined: pass num_processes")
    if number is None:
        raise ValueError("The process id of the current process must be defined: pass process_id")
    if not address.rpartition(":")[2].isdigit():
        raise ValueError(f"coordinator_address is 'host:port': got {address!r}")
    if not 0 <= number < count:
        raise ValueError(f"process_id is from 0 to num_processes - 1 = {count - 1}: got {number}")
    return address, count, number
