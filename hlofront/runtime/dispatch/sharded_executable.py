"""The executable of a program for several devices, and the splitting of its arguments."""

import weakref
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hlofront.base.typing import Array
from hlofront.bridge.client import (
    ArrayImpl,
    LoadedExecutable,
    Sharding,
)
from hlofront.bridge.fast_parts import PyTreeDef
from hlofront.bridge.members import device_list_of, is_committed, sharding_of
from hlofront.core.aval import ShapedArray
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.pjrt import launches
from hlofront.pjrt.clients import check_processes
from hlofront.pjrt.deletion import check_not_deleted
from hlofront.pjrt.launches import Launch
from hlofront.primitives.random.keys import is_key
from hlofront.runtime.array.key_array import key_handler
from hlofront.runtime.compilation.disk_cache import ProgramCall
from hlofront.runtime.dispatch.executable import (
    Executable,
    FastPath,
    result_handler_of,
    storage_of,
    tokens,
)
from hlofront.runtime.sharding.chosen_shardings import compiled_shardings
from hlofront.runtime.sharding.cpu_queue import exchanges_values, meets_on_cpu, on_cpu
from hlofront.runtime.sharding.device_assignment import DeviceAssignment
from hlofront.runtime.sharding.failure_flags import FailureFlags, failure_flags
from hlofront.runtime.sharding.first_run import FirstRun, agreed_error, note_launch, note_start
from hlofront.runtime.sharding.placement import readable
from hlofront.runtime.sharding.resharding import empty, resharded, split_on_host
from hlofront.runtime.sharding.storage import stored

if TYPE_CHECKING:
    from hlofront.runtime.compilation.host_calls import HostFailures


class ShardedExecutable(Executable):
    """A program compiled for several devices."""

    __slots__ = (
        "device_assignment",
        "digest",
        "exchanges",
        "failure_flags",
        "first_run",
        "host_failures",
        "known_hlo",
        "meets_on_cpu",
        "processes",
        "shardings",
    )

    # Compares the program with those of other processes before it first runs; None after that.
    first_run: FirstRun | None

    def __init__(
        self,
        program: ClosedJaxpr,
        name: str,
        call: ProgramCall,
        loaded: LoadedExecutable,
        device_assignment: DeviceAssignment,
        donates: bool = False,
        host_failures: "HostFailures | None" = None,
    ):
        self.device_assignment = device_assignment
        self.shardings = compiled_shardings(
            program, call.kept_inputs, call.const_args, loaded, device_assignment
        )
        self.meets_on_cpu = meets_on_cpu(loaded, device_assignment.devices)
        # The processes whose devices it runs on, if they are several.
        numbers = sorted({device.process_index for device in device_assignment.devices})
        self.processes = tuple(numbers) if len(numbers) > 1 else ()
        self.first_run = None
        # Whether all of these processes run it together, and the digest of its program, once known.
        self.exchanges = False
        self.digest = ""
        # Returns its HLO, without keeping it alive; made when the first launch is noted.
        self.known_hlo: Callable[[], str] | None = None
        # The exceptions of its callbacks, if its devices would wait for one that raises them.
        self.host_failures = host_failures if self.meets_on_cpu else None
        if self.host_failures is not None:
            self.host_failures.are_kept = True
        # Says whether a callback failed in any of several processes.
        self.failure_flags: FailureFlags | None = None
        if self.host_failures is not None and self.processes:
            self.failure_flags = failure_flags(device_assignment.devices)
        device, has_callbacks = device_assignment.device, host_failures is not None
        super().__init__(program, name, call, loaded, device, True, donates, has_callbacks)

    def compare_first(
        self, name: str, settings: str, lowered: Callable[[ClosedJaxpr], str]
    ) -> None:
        """Compare the program with those of the other processes before it first runs.

        On CPUs and GPUs, programs that exchange no values need not run in all processes.

        Args:
          name: the name of the traced function.
          settings: what else its compilation depends on, as text.
          lowered: returns its StableHLO.
        """
        self.exchanges = bool(self.processes) and (
            self.meets_on_cpu
            or (
                self.device.platform != "cpu"
                and (self.device.platform == "tpu" or exchanges_values(self.loaded))
            )
        )
        if self.exchanges:
            self.first_run = FirstRun(name, self.device_assignment, settings, lowered)

    @property
    def where(self) -> DeviceAssignment:
        """The DeviceAssignment of the executable."""
        return self.device_assignment

    def _put_constants(self) -> None:
        self.sharding = None
        self.handlers = [
            _handler_of_empty(aval, sharding)
            if _is_split_empty(aval, sharding)
            else result_handler_of(aval, sharding, True)
            for aval, sharding in zip(self.out_avals, self.shardings.stored_outputs, strict=True)
        ]
        pairs = zip(self.call.const_args, self.shardings.constants, strict=True)
        self.const_args = [
            split(storage_of(value), stored(aval), sharding) for (value, aval), sharding in pairs
        ]

    @property
    def notes_launches(self) -> bool:
        """Whether its launches are noted for the watchdog of a group."""
        return self.exchanges and launches.current is not None

    @property
    def splits_empty(self) -> bool:
        """Return whether an empty result is split into smaller shards, which XLA does not make."""
        return any(map(_is_split_empty, self.out_avals, self.shardings.stored_outputs))

    def _execute(self, args: Sequence[object]) -> list[Any]:
        if not self.exchanges or launches.current is None:
            return self._launched(args, None)
        if self.known_hlo is None:
            self.known_hlo = self._known_hlo()
        launch = launches.current.begin(self.processes, self.name, self.digest, self.known_hlo)
        try:
            results = self._launched(args, launch)
        except BaseException as error:
            launch.failed(error)
            raise
        launch.returned(results)
        return results

    def _known_hlo(self) -> Callable[[], str]:
        """Return a function that returns its HLO, "" if the executable is gone by then."""
        known = weakref.ref(self)

        def hlo_text() -> str:
            executable = known()
            return "" if executable is None else executable.hlo_text()

        return hlo_text

    def _launched(self, args: Sequence[object], launch: Launch | None) -> list[Any]:
        """Launch the program on flat arguments; return its results.

        Args:
          args: the arguments.
          launch: what notes the stages of the launch for the watchdog, or None.
        """
        connecting: Collection[int] = ()
        if self.processes:
            check_processes(self.processes)
            if self.first_run is not None:
                self.digest = self.first_run.compare(self.program, self.processes)
                self.first_run = None
                connecting = self.processes
                if launch is not None:
                    launch.digest = self.digest
        if self.takes_stored:
            args = list(map(storage_of, args))
        buffers = list(self.const_args)
        shardings = self.shardings.stored_inputs
        for i, aval, sharding in zip(self.kept_inputs, self.kept_avals, shardings, strict=True):
            buffers.append(split(args[i], aval, sharding))
        buffers = self.laid(buffers)
        if self.meets_on_cpu:
            launched = None
            if self.processes:
                note_start(self.processes, self.name)
                launched = partial(note_launch, connecting, launch)
                if launch is not None:
                    launch.waits_in_queue()
            take_error = self._take_error if self.host_failures is not None else None
            executed, token = on_cpu.launch(self.loaded, buffers, launched, take_error)
            if self.unordered:
                tokens().keep_running(token)
        else:
            executed = self._started(buffers)
        return executed.consume_with_handlers(self.handlers)

    def _take_error(self) -> RuntimeError | None:
        """Return the error of the callbacks of the run that has ended, in any process, or None."""
        assert self.host_failures is not None, "only programs with callbacks have errors of them"
        error = self.host_failures.take_error()
        if self.failure_flags is not None and self.failure_flags.any_failed(error is not None):
            return agreed_error(self.processes, self.name, error)
        return error

    def fast_path(
        self, out_tree: PyTreeDef, args: Sequence[object], result: object
    ) -> FastPath | None:
        # C++ would not wait for the previous program, nor call the handlers of empty results, nor
        # note launches for the watchdog.
        if self.meets_on_cpu or self.splits_empty or self.notes_launches:
            return None
        # Nor does it move arrays from other devices, or from a different order of the devices.
        for i, sharding in zip(self.kept_inputs, self.shardings.stored_inputs, strict=True):
            x = storage_of(args[i])
            if type(x) is ArrayImpl and is_committed(x):
                devices = device_list_of(sharding_of(x))
                if len(devices) > 1 and devices != device_list_of(sharding):
                    return None
        return super().fast_path(out_tree, args, result)

    def _fast(self, out_tree: PyTreeDef, kept_var_bitvec: list[bool]) -> FastPath:
        shardings = self.shardings
        taken = [*shardings.constants, *shardings.stored_inputs]
        return FastPath(
            self.loaded,
            out_tree,
            taken,
            shardings.stored_outputs,
            list(map(stored, self.out_avals)),
            [True] * len(self.out_avals),
            kept_var_bitvec,
            [None] * len(taken),
            self.const_args,
        )


def _is_split_empty(aval: object, sharding: Sharding) -> bool:
    shape = stored(aval).shape
    return 0 in shape and sharding.shard_shape(shape) != shape


def _handler_of_empty(aval: ShapedArray, sharding: Sharding) -> Callable[[object], object]:
    """Return a result handler for an array without elements, which XLA does not split."""

    def handler(_: object) -> Array:
        return empty(stored(aval), sharding)

    return key_handler(aval, handler) if is_key(aval) else handler


def split(x: object, aval: ShapedArray, sharding: Sharding) -> Array:
    """Split a host value or an array over devices by a sharding.

    An array that has the sharding already is returned unchanged.

    Raises:
      IndivisibleError: if `x` cannot be split this way.
      OverflowError: if `x` is a Python integer that its dtype cannot hold.
      RuntimeError: if `x` is an array that was deleted.
    """
    if type(x) is ArrayImpl:
        check_not_deleted(x)
        return x if sharding_of(x) == sharding else resharded(x, sharding)
    sharding.check_compatible_aval(aval.shape)
    return split_on_host(np.asarray(readable(x, aval), aval.dtype), aval, sharding)
