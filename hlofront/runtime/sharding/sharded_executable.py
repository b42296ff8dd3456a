"""A program compiled for several devices: how arguments are split over them, and results kept."""

import contextlib
import re
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.bridge.arrays import CopySemantics, assembled, batched_device_put, moved
from hlofront.bridge.client import (
    ArrayImpl,
    JaxRuntimeError,
    NamedSharding,
    SingleDeviceSharding,
    hlo,
)
from hlofront.bridge.members import device_of, sharding_of
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.pjrt.named_shardings import from_hlo, means, replicated
from hlofront.pjrt.shardings import on_device
from hlofront.primitives.keys import is_key
from hlofront.runtime.array.deletion import check_not_deleted
from hlofront.runtime.array.host_value import host_value
from hlofront.runtime.array.key_array import stored_sharding
from hlofront.runtime.dispatch.executable import (
    Executable,
    FastPath,
    host_side,
    result_handler_of,
    storage_of,
    stored,
)
from hlofront.runtime.sharding.device_assignment import DeviceAssignment
from hlofront.runtime.sharding.placement import readable


def chosen_shardings(
    described: Sequence[Any] | None,
    said: Sequence[Any],
    avals: Sequence[Any],
    device_assignment: DeviceAssignment,
    first: tuple[Any, int] | None = None,
) -> list[Any]:
    """The sharding of each value: what was said, else what XLA chose.

    Args:
      described: XLA's description of each; None where the program has one device.
      said: the sharding of each, or None.
      first: the first NamedSharding of an input, and how many axes that has: a value that is split
        in the same way has it as it was written, with names of axes of size 1 and trailing None.
    """
    like = device_assignment.like or replicated(device_assignment.devices)
    shardings: list[Any] = []
    for i, (sharding, aval) in enumerate(zip(said, avals, strict=True)):
        if sharding is None:
            if described is not None:
                chosen = hlo.HloSharding.from_proto(described[i])
                if first is not None and first[1] == aval.ndim and means(chosen, *first):
                    sharding = first[0]
                else:
                    sharding = from_hlo(chosen, like, aval.ndim)
            elif len(getattr(like, "spec", ())) <= aval.ndim:
                sharding = like
            else:
                sharding = from_hlo(hlo.HloSharding.replicate(), like, aval.ndim)
        shardings.append(sharding)
    return shardings


class Shardings:
    """The shardings of a compiled program's constants, kept inputs and outputs, in their order.

    Those that are stored differ for random keys: they are of the integers.
    """

    __slots__ = ("constants", "kept", "outputs", "stored_kept", "stored_outputs")

    def __init__(
        self, program: ClosedJaxpr, call: Any, compiled: Any, device_assignment: DeviceAssignment
    ):
        constants = [stored(aval) for _, aval in call.const_args]
        kept_avals = [stored(program.in_avals[i]) for i in call.kept]
        count = len(constants)
        said = [None] * count + [device_assignment.inputs[i] for i in call.kept]
        taken = chosen_shardings(
            compiled.get_parameter_shardings(), said, [*constants, *kept_avals], device_assignment
        )
        self.constants, self.kept = taken[:count], taken[count:]
        taken_avals = [program.in_avals[i] for i in call.kept]
        self.stored_kept = list(map(_as_stored, self.kept, taken_avals))
        first = next(
            (
                (sharding, aval.ndim)
                for sharding, aval in zip(said[count:], taken_avals, strict=True)
                if type(sharding) is NamedSharding and not is_key(aval)
            ),
            None,
        )
        self.outputs = chosen_shardings(
            compiled.get_output_shardings(),
            device_assignment.outputs or [None] * len(program.out_avals),
            list(map(stored, program.out_avals)),
            device_assignment,
            first,
        )
        self.stored_outputs = list(map(_as_stored, self.outputs, program.out_avals))


def _as_stored(sharding: Any, aval: Any) -> Any:
    """The sharding of what is on the devices for a value that has this one, or None."""
    return stored_sharding(sharding, aval) if is_key(aval) else sharding


# In optimized HLO, what the devices of a program wait for each other in.
_MEETING = re.compile(
    r" (all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute|collective-broadcast)"
    r"(-start)?\("
)


class OneAtATime:
    """Runs programs whose devices meet, one after another.

    The devices of a CPU share its threads: where several such programs are under way at once, each
    may have some of the threads and wait for the rest, until XLA ends the process.
    """

    def __init__(self):
        self._lock = threading.Lock()
        self._latest: Any = None

    def launch(self, loaded: Any, buffers: Sequence[Any]) -> tuple[Any, Any]:
        """Start a program when the one before has ended: what it gives, and its token."""
        with self._lock:
            if self._latest is not None:
                # Should it have failed, whoever uses its results is told.
                with contextlib.suppress(JaxRuntimeError):
                    self._latest.block_until_ready()
            executed = loaded.execute_sharded(buffers, with_tokens=True)
            self._latest = executed.consume_token()
            return executed, self._latest


_on_cpu = OneAtATime()


class ShardedExecutable(Executable):
    """A program compiled for several devices."""

    __slots__ = ("device_assignment", "meets_on_cpu", "shardings")

    def __init__(
        self,
        program: ClosedJaxpr,
        name: str,
        call: Any,
        loaded: Any,
        device_assignment: DeviceAssignment,
        donates: bool = False,
    ):
        self.device_assignment = device_assignment
        self.shardings = Shardings(program, call, loaded, device_assignment)
        several_on_cpu = (
            device_assignment.device_count > 1 and device_assignment.device.platform == "cpu"
        )
        self.meets_on_cpu = several_on_cpu and any(
            _MEETING.search(module.to_string()) for module in loaded.hlo_modules()
        )
        super().__init__(program, name, call, loaded, device_assignment.device, True, donates)

    @property
    def where(self) -> DeviceAssignment:
        """The devices that it is for."""
        return self.device_assignment

    def _put_constants(self) -> None:
        self.sharding = None
        self.handlers = [
            result_handler_of(aval, sharding, True)
            for aval, sharding in zip(self.out_avals, self.shardings.stored_outputs, strict=True)
        ]
        pairs = zip(self.call.const_args, self.shardings.constants, strict=True)
        self.const_args = [
            split(storage_of(value), stored(aval), sharding) for (value, aval), sharding in pairs
        ]

    def _execute(self, args: Sequence[Any]) -> list[Any]:
        if self.takes_stored:
            args = list(map(storage_of, args))
        buffers = list(self.const_args)
        shardings = self.shardings.stored_kept
        for i, aval, sharding in zip(self.kept, self.kept_avals, shardings, strict=True):
            buffers.append(split(args[i], aval, sharding))
        if self.meets_on_cpu:
            executed, token = _on_cpu.launch(self.loaded, buffers)
        else:
            executed = self.loaded.execute_sharded(buffers, with_tokens=self.unordered)
            token = executed.consume_token() if self.unordered else None
        if self.unordered:
            host_side().keep_running(token)
        return executed.consume_with_handlers(self.handlers)

    def fast_path(self, out_tree: Any, argument_count: int, result: Any) -> FastPath | None:
        # C++ would not wait for the one before.
        return None if self.meets_on_cpu else super().fast_path(out_tree, argument_count, result)

    def _fast(self, out_tree: Any, kept_inputs: list[bool]) -> FastPath:
        shardings = self.shardings
        taken = [*shardings.constants, *shardings.stored_kept]
        return FastPath(
            self.loaded,
            out_tree,
            taken,
            shardings.stored_outputs,
            list(map(stored, self.out_avals)),
            [True] * len(self.out_avals),
            kept_inputs,
            [None] * len(taken),
            self.const_args,
        )


def split(x: Any, aval: Any, sharding: Any) -> Any:
    """A value of the host, or an array, split as a sharding says; an array that is so stays.

    Raises:
      IndivisibleError: if it cannot be split so.
      OverflowError: if it is a Python integer that its dtype cannot hold.
      RuntimeError: if it is an array that was deleted.
    """
    if type(x) is ArrayImpl:
        check_not_deleted(x)
        own_sharding = sharding_of(x)
        if own_sharding == sharding:
            return x
        if type(own_sharding) is SingleDeviceSharding and sharding.is_fully_replicated:
            return _for_all(x, aval, sharding)
        x = host_value(x)
    sharding.check_compatible_aval(aval.shape)
    host = np.asarray(readable(x, aval), aval.dtype)
    parts = sharding.addressable_devices_indices_map(aval.shape)
    return batched_device_put(
        aval, sharding, [host[index] for index in parts.values()], list(parts), True
    )


def _for_all(x: Any, aval: Any, sharding: Any) -> Any:
    """An array of one device on all: its own memory is one of the copies, which may be donated."""
    own = device_of(sharding_of(x))
    copies = [
        x if device == own else moved(x, on_device(device), CopySemantics.REUSE_INPUT)
        for device in sharding.addressable_devices_indices_map(aval.shape)
    ]
    return assembled(aval, sharding, copies, True)
