"""Continuing without failed processes, and stopping in time before a process is terminated."""

import contextlib
import time
from collections.abc import Collection, Generator, Sequence

from hlofront.base.config import options
from hlofront.bridge.client import Device, JaxRuntimeError
from hlofront.bridge.coordination import CoordinationClient
from hlofront.pjrt.launches import noted
from hlofront.pjrt.process_failures import ProcessFailureError
from hlofront.pjrt.process_group import ProcessGroup, current_group

# The key under which processes meet to agree on which of them are alive.
_MEETINGS = "hlofront/live"
# How long a process waits for the agreement before it checks again which processes must take part.
_WAIT_MILLISECONDS = 1000
_POLL_SECONDS = 0.02

_enable_preemption = options["jax_enable_preemption_service"]


class _Agreement:
    """The protocol by which some processes of a group agree on which of them are alive.

    All live processes take part in each round. The one with the lowest number waits for the others
    and records which of them came; if it fails, the one with the next number does. The first record
    counts.
    """

    def __init__(self, group: ProcessGroup, processes: Collection[int]):
        self._group = group
        self._processes = frozenset(processes)
        self._name = f"{_MEETINGS}/{'-'.join(map(str, sorted(processes)))}"
        self._meetings = 0
        # Who was alive at the latest meeting.
        self.latest: frozenset[int] | None = None

    def meet(self) -> frozenset[int]:
        """Wait for all live processes; return which they are, the same in each process.

        Raises:
          ProcessFailureError: if the others consider this process dead.
        """
        return noted(tuple(sorted(self._processes)), "live_devices", self._alive)

    def _alive(self) -> frozenset[int]:
        group, client = self._group, self._group.client
        meeting = f"{self._name}/{self._meetings}"
        self._meetings += 1
        client.key_value_set(f"{meeting}/came/{group.process_id}", "")
        written = None
        while written is None:
            awaited = self._processes - group.gone().keys()
            if group.process_id == min(awaited):
                came = client.key_value_dir_get(f"{meeting}/came")
                if awaited <= {int(key.rpartition("/")[2]) for key, _ in came}:
                    # Another process may have written first.
                    with contextlib.suppress(JaxRuntimeError):
                        numbers = " ".join(map(str, sorted(awaited)))
                        client.key_value_set(f"{meeting}/alive", numbers)
                else:
                    time.sleep(_POLL_SECONDS)
                    continue
            written = _get(client, f"{meeting}/alive")
            if written is None:
                group.check([group.process_id])
        alive = frozenset(map(int, written.split()))
        # Their connections are shut now, and not while the others compute.
        group.wait_until_gone(self._processes - alive, group.heartbeat_timeout + 5)
        if group.process_id not in alive:
            raise ProcessFailureError(
                f"process {group.process_id} cannot continue: the others have not heard from it "
                f"for {group.heartbeat_timeout} s, and continue without it"
            )
        self.latest = alive
        return alive


def _get(client: CoordinationClient, key: str) -> str | None:
    """Return the value of a key; None if there is none within a second."""
    try:
        return client.blocking_key_value_get(key, _WAIT_MILLISECONDS)
    except JaxRuntimeError as error:
        if "DEADLINE_EXCEEDED" in str(error):
            return None
        raise


# The agreements of this process's group, by the processes that take part.
_agreements: dict[tuple[ProcessGroup, frozenset[int]], _Agreement] = {}


@contextlib.contextmanager
def live_devices(devices: Sequence[Device]) -> Generator[list[Device], None, None]:
    """Run a block with those of these devices whose processes are alive.

    All processes that have some of the devices enter the block together, without waiting for failed
    ones, and receive the same devices. They also leave it together: if one has failed in between,
    all others raise a ProcessFailureError, and the next block excludes its devices.

    Where CPUs exchange values, a failure breaks the connections of all processes: afterwards, a
    program may run over the live devices only if none has run over exactly these before.

    Args:
      devices: the devices, including some of this process.

    Yields:
      The devices of processes that are alive, by their ids.

    Raises:
      RuntimeError: if this process belongs to no group.
      ValueError: if there are no devices, or none of this process.
      ProcessFailureError: if a process has failed while the block ran.

    Example:
      A step over the devices that are alive, which is repeated if some fail in between::

        while step < steps:
            try:
                with live_devices(jax.devices()) as devices:
                    state = train_step(state, devices)
            except ProcessFailureError:
                state = restore_checkpoint()
    """
    group = current_group()
    if group is None:
        raise RuntimeError("Distributed JAX not initialized: call distributed.initialize() first")
    if not devices:
        raise ValueError("No devices provided: live_devices takes jax.devices(), or some of them")
    processes = frozenset(device.process_index for device in devices)
    if group.process_id not in processes:
        raise ValueError(
            f"Provided devices do not have any local devices: this is process {group.process_id}, "
            f"and they are of {sorted(processes)}"
        )
    agreement = _agreements.setdefault((group, processes), _Agreement(group, processes))
    alive = agreement.latest or agreement.meet()
    raised: Exception | None = None
    try:
        yield sorted((d for d in devices if d.process_index in alive), key=lambda d: d.id)
    except Exception as error:
        raised = error
    still_alive = agreement.meet()
    if still_alive != alive:
        error = ProcessFailureError(
            f"processes {sorted(alive - still_alive)} have failed while the block of live_devices "
            f"ran in process {group.process_id}. Do again what it did: the next block is without "
            "their devices."
        )
        error.failed_processes = tuple(sorted(alive - still_alive))
        error.failed_devices = frozenset(
            device for device in devices if device.process_index in error.failed_processes
        )
        raise error from raised
    if raised is not None:
        raise raised


def reached_preemption_sync_point(step_id: int) -> bool:
    """Return whether all processes should save their state at this step, because one will be ended.

    Every process calls this function at every step. When one of them receives SIGTERM, all agree on
    a step that none has reached yet, and at that step the function returns True in each. A process
    that receives SIGTERM before its first call of this function ends immediately.

    Args:
      step_id: the number of the step, which increases from call to call.

    Raises:
      RuntimeError: if the option jax_enable_preemption_service is off.

    Example:
      Save before some of the machines are taken away::

        for step in range(steps):
            state = train_step(state)
            if reached_preemption_sync_point(step):
                save(state, step)
    """
    group = current_group()
    if group is None:
        return False
    if not _enable_preemption.value:
        raise RuntimeError(
            "Preemption sync manager has not been initialized: the option "
            "jax_enable_preemption_service is off. Turn it on."
        )
    return group.preemption_sync().reached_sync_point(step_id)
