"""The lowering of kernels that the interpreter of TPUs runs: a call to the host."""

import copy
import dataclasses
import importlib
import threading
from collections import deque
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from hlofront.base import source
from hlofront.base.elements import int32
from hlofront.base.typing import ArrayLike, NumPyArray
from hlofront.bridge.mlir import Value
from hlofront.core.aval import ShapedArray
from hlofront.core.jaxpr import Jaxpr
from hlofront.core.programs.subprograms import all_equations
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.ops.callbacks import call_host
from hlofront.pallas.barrier import get_barrier_semaphore_p
from hlofront.pallas.compiler_params import CompilerParams
from hlofront.pallas.copies import dma_start_p
from hlofront.pallas.grid_mapping import GridMapping
from hlofront.pallas.interpret.tpu.grid import ModeledKernel
from hlofront.pallas.interpret.tpu.steps import Surroundings, in_hbm, line_of
from hlofront.pallas.interpret_params import InterpretParams
from hlofront.pallas.masked import masked_load_p, masked_swap_p
from hlofront.pallas.semaphores import semaphore_signal_p
from hlofront.primitives.collectives.collectives import axis_index_p
from hlofront.primitives.elementwise.elementwise import add, mul
from hlofront.primitives.references.references import addupdate_p, get_p, swap_p

importlib.import_module("hlofront.pallas.interpret.tpu.core_steps")

# The operations of a core on a reference, which is their first operand.
_ACCESSES = (get_p, swap_p, addupdate_p, masked_load_p, masked_swap_p)
# How long a device waits for the others to call the kernel.
_SECONDS = 60


def modeled(
    build: Builder,
    *operands: Value,
    jaxpr: Jaxpr,
    grid_mapping: GridMapping,
    input_output_aliases: Sequence[tuple[int, int]],
    compiler_params: object,
    interpret: InterpretParams,
    **_: object,
) -> list[Value]:
    """Emit the call of a kernel on the host, where a model of TPUs runs it."""
    _check_memories(jaxpr)
    options = compiler_params if isinstance(compiler_params, CompilerParams) else CompilerParams()
    manual = build.module.manual
    if manual is not None and not manual.is_whole:
        raise ValueError(
            "the interpreter of TPUs runs kernels in a shard_map whose axes are all manual: it has "
            f"{sorted(map(str, manual.manual))} of {[str(name) for name, _ in manual.axes]}"
        )
    axes = () if manual is None else manual.axes
    semantics = options.semantics
    kernel = ModeledKernel(
        jaxpr,
        grid_mapping,
        tuple(input_output_aliases),
        source.summarize(build.current.traceback),
        None if semantics is None else tuple(semantics),
        not options.disable_semaphore_checks,
        Surroundings(axes, options.collective_id),
        interpret,
    )
    (number,) = build.by_tracing(lambda: _device_number(axes), (), ())
    before = build.avals_in
    build.avals_in = [*before, ShapedArray((), int32)]
    try:
        call = _HostSide(kernel)
        # In a shard_map each device calls it.
        sharding = {} if manual is not None else None
        return call_host(build, call, (*operands, number), sharding=sharding, takes_numpy=True)
    finally:
        build.avals_in = before


def _device_number(axes: Sequence[tuple[Hashable, int]]) -> ArrayLike:
    """Return the number of the device in a mesh, whose last axis varies fastest."""
    number: ArrayLike = np.int32(0)
    for name, size in axes:
        index = axis_index_p.bind(axis_name=name)
        number = add(mul(number, np.int32(size)), index)
    return number


def _check_memories(jaxpr: Jaxpr) -> None:
    """Raise ValueError if a kernel reads or writes an array in HBM without a copy."""
    for equation in all_equations(jaxpr):
        if equation.primitive in _ACCESSES:
            aval: Any = equation.invars[0].aval
            if in_hbm(aval.memory_space):
                raise ValueError(
                    f"{equation.primitive.name} at {line_of(equation)}: Buffers with a memory "
                    "space of HBM or ANY cannot be referenced directly. Instead, use "
                    "`pltpu.sync_copy` or `pltpu.async_copy`."
                )


def _communicates(jaxpr: Jaxpr) -> bool:
    """Return whether a kernel writes to other devices, or signals semaphores there."""
    for equation in all_equations(jaxpr):
        if equation.primitive is get_barrier_semaphore_p:
            return True
        for primitive, name in ((dma_start_p, "tree"), (semaphore_signal_p, "args_tree")):
            if equation.primitive is primitive:
                operands = equation.params[name].unflatten(equation.invars)
                if (operands.device_id if primitive is dma_start_p else operands[3]) is not None:
                    return True
    return False


@dataclasses.dataclass(eq=False)
class _Turn:
    """A run of a kernel on all devices: their operands, and then their results or an error."""

    operands: dict[int, Sequence[NumPyArray]] = dataclasses.field(default_factory=dict)
    results: dict[int, list[NumPyArray]] = dataclasses.field(default_factory=dict)
    error: BaseException | None = None
    is_over: bool = False


class _HostSide:
    """The function that programs call for a kernel, with a device's operands and its number.

    If devices communicate, the last one to call it runs the kernel for all.
    """

    def __init__(self, kernel: ModeledKernel):
        self.kernel = kernel
        self.communicates = _communicates(kernel.jaxpr)
        self.devices = int(np.prod([n for _, n in kernel.surroundings.mesh_axes], dtype=np.int64))
        self.changed = threading.Condition()
        self.turns: deque[_Turn] = deque()

    def __call__(self, *arguments: object) -> list[NumPyArray]:
        *operands, number = [np.asarray(x) for x in arguments]
        device = int(number)
        if not self.communicates or self.devices == 1:
            return self.kernel.run({device: operands})[device]
        with self.changed:
            turn = self._join(device, operands)
            if len(turn.operands) == self.devices:
                self.turns.remove(turn)
                try:
                    turn.results = self.kernel.run(dict(sorted(turn.operands.items())))
                except BaseException as error:
                    turn.error = error
                turn.is_over = True
                self.changed.notify_all()
            elif not self.changed.wait_for(lambda: turn.is_over, _SECONDS):
                self._give_up(turn)
        if turn.error is not None:
            # Each thread of the runtime raises its own exception.
            raise copy.copy(turn.error)
        return turn.results[device]

    def _join(self, device: int, operands: Sequence[NumPyArray]) -> _Turn:
        """Return the first turn that a device has not joined yet, and add its operands."""
        turn = next((turn for turn in self.turns if device not in turn.operands), None)
        if turn is None:
            turn = _Turn()
            self.turns.append(turn)
        turn.operands[device] = operands
        return turn

    def _give_up(self, turn: _Turn) -> None:
        missing = sorted(set(range(self.devices)) - set(turn.operands))
        turn.is_over = True
        turn.error = RuntimeError(
            f"DEADLOCK\n  the kernel called at {self.kernel.line} communicates, and of "
            f"{self.devices} devices these have not called it within {_SECONDS} seconds: "
            f"{missing}. "
            "All devices of the mesh must call it."
        )
        if turn in self.turns:
            self.turns.remove(turn)
        self.changed.notify_all()
