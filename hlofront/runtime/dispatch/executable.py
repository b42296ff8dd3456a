"""The executable of a program, with the conversion of its arguments and results."""

import weakref
from collections.abc import Callable, Sequence
from operator import is_not
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from hlofront.base.array_lines import array_lines, remember
from hlofront.base.config import debug_key_reuse, no_execution
from hlofront.base.dtypes import float0
from hlofront.base.errors import JaxRuntimeError
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.tree import PyTree
from hlofront.base.typing import Array
from hlofront.bridge import fast_parts
from hlofront.bridge.client import Device, LoadedExecutable, Sharding, result_handler
from hlofront.bridge.fast_parts import PyTreeDef
from hlofront.core.aval import AbstractToken, AbstractValue, token_aval
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.sharding.layout_modes import LayoutModes
from hlofront.pjrt.clients import check_not_forked
from hlofront.pjrt.executable import cost_of
from hlofront.primitives.calls.barriers import Token
from hlofront.runtime.array.key_array import KeyArray, base_of, key_handler
from hlofront.runtime.array.relayout import (
    default_mode,
    is_laid_as,
    laid_as_parameters,
    laid_out,
)
from hlofront.runtime.checks import nan_checks
from hlofront.runtime.compilation.disk_cache import ProgramCall, StoredCall
from hlofront.runtime.compilation.out_of_memory import explained
from hlofront.runtime.sharding.device_assignment import CompiledShardings, ProgramDevices
from hlofront.runtime.sharding.placement import on_device, put
from hlofront.runtime.sharding.storage import holds_keys, is_float0, stored
from hlofront.runtime.sharding.typed import in_memory_of, without_kernel_memory

if TYPE_CHECKING:
    from hlofront.bridge.jaxlib_types import ExecuteResults


class FastPath(NamedTuple):
    """The data with which jaxlib's C++ calls an executable; it reads them by these names."""

    xla_executable: LoadedExecutable
    out_pytree_def: PyTreeDef
    in_shardings: Sequence[Sharding]
    out_shardings: Sequence[Sharding]
    out_avals: Sequence[AbstractValue]
    out_committed: Sequence[bool]
    kept_var_bitvec: Sequence[bool]
    in_device_local_layouts: Sequence[None]
    const_args: Sequence[Array]


# The answer to a C++ call without an executable: the result, the data for the next such call, and
# False, as the data remain valid.
CallAnswer = tuple[PyTree, FastPath | None, bool]


def tokens() -> ModuleType:
    """Import the module of the tokens of programs with effects, on first use."""
    from hlofront.runtime.dispatch import tokens

    return tokens


def _key_reuse() -> ModuleType:
    """Import the module that checks the reuse of keys, when an option enables it."""
    from hlofront.runtime.checks import key_reuse

    return key_reuse


class Executable:
    """A program compiled for one device, and how to call it.

    Args:
      program: the program.
      name: the name of the traced function.
      call: the inputs that it takes, and its constants.
      loaded: jaxlib's executable.
      device: the device that it runs on.
      committed: whether its results are committed to the device.
      donates: whether an argument is donated to it.
      has_callbacks: whether it calls Python functions.
    """

    __slots__ = (
        "__weakref__",
        "_program",
        "call",
        "calls_host",
        "committed",
        "const_args",
        "device",
        "donates",
        "gives_keys",
        "handlers",
        "kept_inputs",
        "kept_avals",
        "layouts",
        "loaded",
        "name",
        "out_avals",
        "plain",
        "sharding",
        "takes_stored",
        "tokens",
        "unordered",
        "with_keys",
    )

    # Whether its CPU devices exchange values: it waits for the previous program that does so.
    meets_on_cpu: bool = False
    # The shardings of its inputs and outputs, if it is for several devices.
    shardings: CompiledShardings | None = None
    # The sharding of all values on its device; None if it is for several devices.
    sharding: Sharding | None
    const_args: list[Array]
    # The layout modes that it was compiled with; None for the defaults of the device.
    layouts: LayoutModes | None
    handlers: list[Callable[[Any], object]]

    def __init__(
        self,
        program: ClosedJaxpr,
        name: str,
        call: ProgramCall,
        loaded: LoadedExecutable,
        device: Device,
        committed: bool,
        donates: bool = False,
        has_callbacks: bool = False,
    ):
        self.name = name
        self.donates = donates
        # Whether it may still call Python when a call has returned; on one CPU, calls wait for it.
        is_one_cpu = device.platform == "cpu" and self.shardings is None
        self.calls_host = has_callbacks and not is_one_cpu
        self.layouts = None
        self.unordered = any(e.on_host and not e.ordered for e in program.effects)
        self.plain = not (
            self.unordered
            or call.ordered
            or AbstractToken in map(type, program.out_avals)
            or AbstractToken in map(type, program.in_avals)
        )
        self.tokens = None if self.plain else tokens()
        self.loaded = loaded
        # A weak reference, as the program holds its executables; a caller that runs one holds its
        # program.
        self._program = weakref.ref(program)
        self.call = call
        self.device = device
        self.committed = committed
        self.kept_inputs = call.kept_inputs
        taken_avals = [program.in_avals[i] for i in call.kept_inputs]
        self.kept_avals = list(map(stored, taken_avals))
        # Some arguments have another type on the device.
        self.takes_stored = any(map(is_not, self.kept_avals, taken_avals))
        takes_keys = self.takes_stored and any(map(holds_keys, taken_avals))
        self.out_avals = list(map(without_kernel_memory, program.out_avals))
        self.gives_keys = any(map(holds_keys, self.out_avals))
        self.with_keys = takes_keys or self.gives_keys
        self._put_constants()

    @property
    def program(self) -> ClosedJaxpr:
        """The program that the executable was compiled from.

        Raises:
          ReferenceError: if the program was garbage-collected.
        """
        program = self._program()
        if program is None:
            raise ReferenceError(f"the program that {self.name} was compiled from is gone")
        return program

    @property
    def where(self) -> ProgramDevices:
        """The device of the executable, or its DeviceAssignment."""
        return self.device

    @property
    def notes_launches(self) -> bool:
        """Whether its launches are noted for the watchdog of a group."""
        return False

    def _put_constants(self) -> None:
        """Put constants on their devices, and make the handlers of results."""
        device, committed = self.device, self.committed
        sharding = self.sharding = on_device(device)
        self.const_args = [
            put(storage_of(value), stored(aval), device, committed)
            for value, aval in self.call.const_args
        ]
        self.handlers = [
            self.tokens.token_handler(device)
            if aval == token_aval
            else result_handler_of(aval, in_memory_of(aval, sharding), committed)
            for aval in self.out_avals
        ]

    def hlo_text(self) -> str:
        """Return XLA's optimized HLO."""
        if isinstance(self.call, StoredCall):
            return self.call.hlo_text()
        return "\n\n".join(module.to_string() for module in self.loaded.hlo_modules())

    def cost_analysis(self) -> dict[str, float]:
        """Return XLA's estimate of the optimized program: flops, bytes accessed, and so on."""
        return cost_of(self.loaded)

    def run(self, args: Sequence[object]) -> list[Any]:
        """Execute on flat arguments, arrays or host values; return the flat results."""
        if no_execution.value:
            raise RuntimeError(
                f"JAX tried to execute function jit({self.name}), but the no_execution config "
                "option is set"
            )
        check_not_forked(self.name)
        if debug_key_reuse.value:
            return _key_reuse().checked_run(self, args)
        return self.run_unchecked(args)

    def run_unchecked(self, args: Sequence[object]) -> list[Any]:
        """Execute on flat arguments without checking the reuse of keys."""
        try:
            results = self._execute(args)
        except JaxRuntimeError as error:
            raised = explained(error, self.name, self.hlo_text, is_running=True)
            if raised is error:
                raise
            raise raised from error
        if array_lines.value:
            remember(map(base_of, results))
        if not nan_checks.are_on():
            return results
        nan_checks.check(self.program, self.name, args, results, self.donates)
        return results

    def _execute(self, args: Sequence[object]) -> list[Any]:
        if self.takes_stored:
            args = list(map(storage_of, args))
        if not self.plain:
            return self._run_with_tokens(args)
        buffers = list(self.const_args)
        for position, aval in zip(self.kept_inputs, self.kept_avals, strict=True):
            buffers.append(put(args[position], aval, self.device, self.committed))
        return self._started(self.laid(buffers)).consume_with_handlers(self.handlers)

    def _started(self, buffers: Sequence[Array]) -> "ExecuteResults":
        """Start the program, and keep its token if something is to wait until it has ended."""
        if not (self.unordered or self.calls_host):
            return self.loaded.execute_sharded(buffers)
        executed = self.loaded.execute_sharded(buffers, with_tokens=True)
        keep = tokens().keep_running if self.unordered else tokens().keep_until_exit
        keep(executed.consume_token())
        return executed

    def laid(self, buffers: Sequence[Array]) -> list[Array]:
        """Return arrays in the layouts of the program's parameters.

        PJRT would misread buffers in other layouts.
        """
        return laid_as_parameters(buffers, self.loaded.get_parameter_layouts())

    def takes_as_laid(self, args: Sequence[object]) -> bool:
        """Return whether arguments already have the layouts of the program's parameters."""
        if self.layouts is not None and any(self.layouts.inputs):
            return False  # Arrays on the host have no layout yet.
        layouts = (
            self.loaded.get_parameter_layouts()[-len(self.kept_inputs) :]
            if self.kept_inputs
            else ()
        )
        taken = (args[i] for i in self.kept_inputs)
        # The call may have deleted its arguments, but their layouts are still known.
        arrays = (x._base_array if isinstance(x, KeyArray) else x for x in taken)
        return all(map(is_laid_as, arrays, layouts))

    def _run_with_tokens(self, args: Sequence[object]) -> list[Any]:
        """Execute after earlier programs with these ordered effects; store the new tokens."""
        tokens, device, ordered = self.tokens, self.device, self.call.ordered
        buffers = [*tokens.take_tokens(ordered, device), *self.const_args]
        for position, aval in zip(self.kept_inputs, self.kept_avals, strict=True):
            x = args[position]
            if aval == token_aval:
                buffers.append(tokens.new_token(device) if x.array is None else x.array)
            else:
                array = put(x, aval, device, self.committed)
                # XLA does not report the layouts of programs with tokens, which it does not choose.
                mode = self.layouts and self.layouts.inputs[position]
                buffers.append(laid_out(array, mode or default_mode(aval, device)))
        handlers = [tokens.token_handler(device)] * len(ordered) + self.handlers
        results = self._started(buffers).consume_with_handlers(handlers)
        tokens.keep_tokens(ordered, device, results[: len(ordered)])
        return [
            Token(x) if aval == token_aval else x
            for x, aval in zip(results[len(ordered) :], self.out_avals, strict=True)
        ]

    def fast_path(
        self, out_tree: PyTreeDef, args: Sequence[object], result: object
    ) -> FastPath | None:
        """Return the data for C++ calls of the executable; None if it must run through Python.

        Args:
          out_tree: the tree structure of the result.
          args: the flat arguments of a call: C++ makes calls with arguments of the same types and
            layouts.
          result: the result of that call.
        """
        # C++ neither passes tokens, nor stores those that others wait for, nor checks results for
        # NaNs and keys for reuse, nor records the lines that made them.
        if not self.plain or self.calls_host:
            return None
        if nan_checks.are_on() or array_lines.value or (self.with_keys and debug_key_reuse.value):
            return None
        # Nor does it change layouts.
        if not self.takes_as_laid(args):
            return None
        if self.gives_keys:
            # C++ makes the arrays, and the key arrays around them.
            out_tree = fast_parts.call_registry.flatten(result)[1]
        positions = set(self.kept_inputs)
        taken = [True] * len(self.const_args) + [i in positions for i in range(len(args))]
        return self._fast(out_tree, taken)

    def _fast(self, out_tree: PyTreeDef, kept_var_bitvec: list[bool]) -> FastPath:
        sharding = self.sharding
        taken = len(self.const_args) + len(self.kept_inputs)
        return FastPath(
            self.loaded,
            out_tree,
            [sharding] * len(self.const_args)
            + [in_memory_of(aval, sharding) for aval in self.kept_avals],
            [in_memory_of(aval, sharding) for aval in self.out_avals],
            list(map(stored, self.out_avals)),
            [self.committed] * len(self.out_avals),
            kept_var_bitvec,
            [None] * taken,
            self.const_args,
        )


def storage_of(x: object) -> Any:
    """Return the array that is put on the device for an argument, such as the integers of keys."""
    return np.zeros(x.shape, bool) if is_float0(x) else base_of(x)


def result_handler_of(
    aval: AbstractValue, sharding: Sharding, committed: bool
) -> Callable[[Any], object]:
    """Return the handler that turns a raw output into an array or a key array."""
    if is_float0(aval):
        return lambda _: np.zeros(aval.shape, float0)
    handler = result_handler(stored(aval), sharding, committed)
    return key_handler(aval, handler) if holds_keys(aval) else handler
