"""The run of a kernel's program by a core: its control flow, and its operations on references."""

import dataclasses
from collections.abc import Callable, Generator, Hashable, Sequence, Set
from typing import Any

import numpy as np

from hlofront.base import source
from hlofront.base.dtypes import issubdtype
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import NumPyArray
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, Literal, Var
from hlofront.core.programs.liveness import variables_read
from hlofront.core.programs.program_cache import once_per_program
from hlofront.core.programs.subprograms import (
    Subprogram,
    branches_of,
    called_by,
    inputs_among,
    split_inputs,
    subprograms_of,
)
from hlofront.core.references import NDIndexer
from hlofront.core.rules import RuleTable
from hlofront.higher_order.control_flow.cond import cond_p
from hlofront.higher_order.control_flow.scan import scan_p
from hlofront.higher_order.control_flow.while_loop import while_p
from hlofront.pallas.barrier import get_barrier_semaphore_p
from hlofront.pallas.copies import CopyOperands, dma_start_p, dma_wait_p
from hlofront.pallas.grid_indices import num_programs_p, program_id_p
from hlofront.pallas.interpret.tpu.clocks import Key, Semaphores, semaphores
from hlofront.pallas.interpret.tpu.machine import AnyRef, Copy, Core, Waiting
from hlofront.pallas.interpret.tpu.memory import (
    Buffer,
    Held,
    Mask,
    before_views,
    part_of,
    selected,
    with_selected,
)
from hlofront.pallas.interpret.tpu.values import as_integer, compute
from hlofront.pallas.masked import masked_load_p, masked_swap_p
from hlofront.pallas.memory import ANY, HBM, is_semaphore
from hlofront.pallas.memory_hints import has_memory_space_p
from hlofront.pallas.scoped import run_scoped_p
from hlofront.pallas.semaphores import (
    DeviceIdType,
    semaphore_read_p,
    semaphore_signal_p,
    semaphore_wait_p,
)
from hlofront.primitives.calls.callbacks import debug_callback_p, debug_print_p, print_now
from hlofront.primitives.collectives.collectives import axis_index_p
from hlofront.primitives.references.references import addupdate_p, get_p, swap_p

# The values of a program: arrays, and buffers and semaphores for references.
Value = Any
Results = Generator[Waiting, None, Sequence[Value]]
Indexers = Sequence[NDIndexer]
# The arguments are a GridStep, the equation and its operands. Operations that may wait, and those
# that run programs, are generators.
StepRule = Callable[..., Results | Sequence[Value]]

step: RuleTable[StepRule] = RuleTable(
    "step", "pallas/interpret/tpu/steps.py", "What does a core of a modeled TPU do?"
)


class Surroundings(NamedTuple):
    """The mesh and the barrier of a kernel.

    Attributes:
      mesh_axes: the names and sizes of the axes of the mesh that the kernel runs on.
      collective_id: the number of the barrier that the kernel shares with other devices.
    """

    mesh_axes: tuple[tuple[Hashable, int], ...]
    collective_id: int | None


@dataclasses.dataclass(slots=True)
class GridStep:
    """A step of the grid, on a core.

    Attributes:
      core: the core.
      surroundings: the kernel's mesh and barrier.
      indices: the indices of the step, along the axes that the kernel sees.
      sizes: the sizes of the grid along them.
      used: the variables that the running program reads.
    """

    core: Core
    surroundings: Surroundings
    indices: Sequence[int]
    sizes: Sequence[int]
    used: Set[Var] = frozenset()

    # ---- programs

    def run(self, program: ClosedJaxpr, operands: Sequence[Value]) -> Results:
        """Run a program; return its results."""
        return self.run_jaxpr(program.jaxpr, [np.asarray(x) for x in program.consts], operands)

    def run_jaxpr(
        self, jaxpr: Jaxpr, consts: Sequence[Value], operands: Sequence[Value]
    ) -> Results:
        """Run a program of constants and inputs; return its results."""
        values: dict[Var, Value] = dict(zip(jaxpr.constvars, consts, strict=True))
        values.update(zip(jaxpr.invars, operands, strict=True))

        def read(atom: Atom) -> Value:
            if isinstance(atom, Literal):
                return np.asarray(atom.val, getattr(atom.aval, "dtype", None))
            return values[atom]

        used = _used(jaxpr)
        for equation in jaxpr.eqns:
            self.used = used
            inputs = [read(atom) for atom in equation.invars]
            rule = step.get(equation.primitive)
            if rule is not None:
                results = rule(self, equation, *inputs)
                if isinstance(results, Generator):
                    results = yield from results
            elif (called := called_by(equation)) is not None:
                results = yield from self.run(called.closed, inputs_among(called, inputs))
            elif self._is_skipped(equation):
                results = [np.full(v.aval.shape, np.inf, v.aval.dtype) for v in equation.outvars]  # pyright: ignore[reportAttributeAccessIssue]
            else:
                results = compute(equation, inputs, not self.surroundings.mesh_axes)
            values.update(zip(equation.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _is_skipped(self, equation: Equation) -> bool:
        return self.core.machine.params.skip_floating_point_ops and all(
            issubdtype(getattr(var.aval, "dtype", np.int32), np.floating)
            for var in equation.outvars
        )

    # ---- references

    def read(self, ref: Buffer, transforms: Indexers, line: str, mask: Mask = None) -> NumPyArray:
        """Return the elements that a kernel reads from a part of a buffer.

        Raises:
          RuntimeError: if it has not been written, and `uninitialized_memory` is "raise".
        """
        self.core.machine.go_on()
        transforms, views = before_views(transforms)
        if views:
            return selected(self.read(ref, transforms, line), views)
        part = part_of(ref.shape, transforms)
        values, written = ref.read(part, self.core.thread, line, mask)
        if written is not None:
            missing = ~written if mask is None else ~written & mask
            if missing.any():
                raise RuntimeError(
                    f"Uninitialized memory: {int(missing.sum())} of the {missing.size} elements of "
                    f"{ref.name}{part} that are read at {line} were never written"
                )
        return values

    def write(
        self, ref: Buffer, transforms: Indexers, value: NumPyArray, line: str, mask: Mask = None
    ) -> None:
        """Write to a part of a buffer."""
        self.core.machine.go_on()
        transforms, views = before_views(transforms)
        if views:
            # The whole view is written, with the new elements in it.
            part = part_of(ref.shape, transforms)
            old, _ = ref.read(part, self.core.thread, line, None)
            if mask is not None:
                value = np.where(mask, value, selected(old, views))
            self.write(ref, transforms, with_selected(old, views, value), line)
            return
        part = part_of(ref.shape, transforms)
        ref.write(part, Held(value, None), self.core.thread, line, mask)

    def allocate(self, key: Key, name: str, aval: Any) -> Buffer | Semaphores:
        """Return the buffer or semaphores of a type, for the core."""
        machine = self.core.machine
        if is_semaphore(aval.dtype):
            return machine.allocate(self.core, semaphores(key, name, aval.shape))
        is_shared = in_hbm(aval.memory_space)
        buffer = Buffer.empty(key, name, aval.shape, aval.dtype, is_shared, machine.params)
        return machine.allocate(self.core, buffer)

    def semaphore(self, ref: Semaphores, transforms: Indexers, line: str) -> tuple[Semaphores, int]:
        """Return the semaphores, and the number of the one that indexers select.

        Raises:
          IndexError: if there is none.
        """
        part = part_of(ref.shape, transforms)
        if part.outside is not None:
            raise IndexError(
                f"Out-of-bounds semaphore of {ref.name}, whose shape is {ref.shape}: "
                f"{part.outside}. It is at {line}"
            )
        return ref, int(np.ravel_multi_index(part.starts, ref.shape)) if ref.shape else 0

    # ---- devices

    def device(self, device: Value, kind: DeviceIdType, line: str) -> int:
        """Return the number of a device that is named by its number or its mesh coordinates.

        Raises:
          ValueError: if there is no such device.
        """
        if device is None:
            return self.core.device
        axes = self.surroundings.mesh_axes
        if not axes:
            raise ValueError(
                "Cannot use communication in pallas_call without shard_map: call the kernel in "
                f"jax.shard_map over a mesh of the devices. It is at {line}"
            )
        sizes = [size for _, size in axes]
        if kind is DeviceIdType.LOGICAL:
            number = as_integer(device)
        else:
            if isinstance(device, dict):
                own = np.unravel_index(self.core.device, sizes)
                given = [device.get(name, own[i]) for i, (name, _) in enumerate(axes)]
            else:
                given = list(device) if isinstance(device, tuple | list) else [device]
            coordinates = [as_integer(x) for x in given]
            inside = zip(coordinates, sizes, strict=False)
            if len(coordinates) != len(sizes) or not all(0 <= i < n for i, n in inside):
                names = ", ".join(f"{name}: {size}" for name, size in axes)
                raise ValueError(
                    f"there is no device {tuple(coordinates)} in the mesh ({names}), to which the "
                    f"kernel refers at {line}"
                )
            number = int(np.ravel_multi_index(coordinates, sizes))
        if not 0 <= number < self.core.machine.devices:
            raise ValueError(
                f"there is no device {number} among {self.core.machine.devices}, to which the "
                f"kernel refers at {line}"
            )
        return number

    def elsewhere(
        self, ref: AnyRef, device: Value, core: Value, kind: DeviceIdType, line: str
    ) -> AnyRef:
        """Return the counterpart of a reference on another device or core."""
        if device is None and core is None:
            return ref
        number = self.core.number if core is None else as_integer(core)
        if not 0 <= number < self.core.machine.params.num_cores_or_threads:
            raise ValueError(
                f"there is no core {number} among "
                f"{self.core.machine.params.num_cores_or_threads}, to which the kernel refers at "
                f"{line}: give InterpretParams num_cores_or_threads"
            )
        return self.core.machine.of_core(ref, self.device(device, kind, line), number)


@once_per_program
def _used(jaxpr: Jaxpr) -> Set[Var]:
    return variables_read(jaxpr.eqns, jaxpr.outvars)


def in_hbm(memory_space: object) -> bool:
    """Return whether a memory is HBM, whose arrays the cores of a device share."""
    return memory_space in (ANY, HBM)


def line_of(equation: Equation) -> str:
    """Return the user's line of an equation, for messages."""
    return source.summarize(equation.traceback)


# ---- control flow --------------------------------------------------------------------------------


def _part(equation: Equation, role: str) -> Subprogram:
    """Return the program that a loop uses in a role: its body, or its condition."""
    return next(part for part in subprograms_of(equation) if part.role == role)


@step(cond_p)
def _(self: GridStep, equation: Equation, index: Value, *operands: Value) -> Results:
    branches = branches_of(equation)
    part = branches[min(max(int(index), 0), len(branches) - 1)]
    return (yield from self.run(part.closed, inputs_among(part, (index, *operands))))


@step(while_p)
def _(self: GridStep, equation: Equation, *operands: Value) -> Results:
    condition, body = _part(equation, "condition"), _part(equation, "body")
    tested, _, _ = split_inputs(condition, operands)
    consts, carry, _ = split_inputs(body, operands)
    while (yield from self.run(condition.closed, [*tested, *carry]))[0]:
        carry = yield from self.run(body.closed, [*consts, *carry])
    return carry


@step(scan_p)
def _(self: GridStep, equation: Equation, *operands: Value) -> Results:
    body, params = _part(equation, "body"), equation.params
    consts, carry, sliced = split_inputs(body, operands)
    length, count = params["length"], len(carry)
    stacked = [np.empty(var.aval.shape, var.aval.dtype) for var in equation.outvars[count:]]  # pyright: ignore[reportAttributeAccessIssue]
    numbers = range(length)
    for i in reversed(numbers) if params["reverse"] else numbers:
        results = yield from self.run(body.closed, [*consts, *carry, *[x[i] for x in sliced]])
        carry = results[:count]
        for array, value in zip(stacked, results[count:], strict=True):
            array[i] = value
    return [*carry, *stacked]


@step(run_scoped_p)
def _(self: GridStep, equation: Equation, *operands: Value) -> Results:
    (part,) = subprograms_of(equation)
    jaxpr, line = part.jaxpr, line_of(equation)
    count = self.core.scopes.get(id(jaxpr), 0)
    self.core.scopes[id(jaxpr)] = count + 1
    buffers: list[Buffer | Semaphores] = []
    for position, var in enumerate(jaxpr.invars):
        aval: Any = var.aval
        params = self.core.machine.params
        if in_hbm(aval.memory_space) and not params.allow_hbm_allocation_in_run_scoped:
            raise ValueError(
                f"run_scoped at {line} allocates in {aval.memory_space}, which TPUs do not: give "
                "the kernel an operand or a result there, or InterpretParams "
                "allow_hbm_allocation_in_run_scoped=True"
            )
        key = ("scoped", id(jaxpr), count, position)
        buffers.append(self.allocate(key, f"buffer {position} of run_scoped at {line}", aval))
    results = yield from self.run_jaxpr(jaxpr, operands, buffers)
    for buffer in buffers:
        self.core.machine.free(self.core, buffer)
    return results


# ---- indices -------------------------------------------------------------------------------------


@step(program_id_p)
def _(self: GridStep, equation: Equation) -> Sequence[Value]:
    return [np.int32(self.indices[equation.params["axis"]])]


@step(num_programs_p)
def _(self: GridStep, equation: Equation) -> Sequence[Value]:
    return [np.int32(self.sizes[equation.params["axis"]])]


@step(axis_index_p)
def _(self: GridStep, equation: Equation) -> Sequence[Value]:
    axes = self.surroundings.mesh_axes
    names = [name for name, _ in axes]
    coordinates = np.unravel_index(self.core.device, [size for _, size in axes])
    return [np.int32(coordinates[names.index(equation.params["axis_name"])])]


@step(debug_print_p)
def _(self: GridStep, equation: Equation, *operands: Value) -> Sequence[Value]:
    return print_now(*operands, **equation.params)


@step(debug_callback_p)
def _(self: GridStep, equation: Equation, *operands: Value) -> Sequence[Value]:
    return equation.params["callback"](*operands)


# ---- reads and writes ----------------------------------------------------------------------------


@step(get_p)
def _(self: GridStep, equation: Equation, ref: Buffer, *indices: Value) -> Sequence[Value]:
    transforms = equation.params["tree"].unflatten(indices)
    return [self.read(ref, transforms, line_of(equation))]


@step(swap_p)
def _(
    self: GridStep, equation: Equation, ref: Buffer, value: Value, *indices: Value
) -> Sequence[Value]:
    transforms = equation.params["tree"].unflatten(indices)
    old = _old(self, equation, ref, transforms, None)
    self.write(ref, transforms, value, line_of(equation))
    return [old]


def _old(
    self: GridStep, equation: Equation, ref: Buffer, transforms: Indexers, mask: Mask
) -> Value:
    """Return the elements that a write replaces, which are read only if the kernel uses them."""
    var = equation.outvars[0]
    if var not in self.used:
        aval: Any = var.aval
        return np.zeros(aval.shape, aval.dtype)
    return self.read(ref, transforms, line_of(equation), mask)


@step(addupdate_p)
def _(
    self: GridStep, equation: Equation, ref: Buffer, value: Value, *indices: Value
) -> Sequence[Value]:
    transforms = equation.params["tree"].unflatten(indices)
    line = line_of(equation)
    self.write(ref, transforms, self.read(ref, transforms, line) + value, line)
    return []


@step(masked_load_p)
def _(self: GridStep, equation: Equation, *operands: Value) -> Sequence[Value]:
    ref, transforms, mask, _ = equation.params["args_tree"].unflatten(operands)
    return [self.read(ref, transforms, line_of(equation), mask)]


@step(masked_swap_p)
def _(self: GridStep, equation: Equation, *operands: Value) -> Sequence[Value]:
    ref, transforms, value, mask = equation.params["args_tree"].unflatten(operands)
    old = _old(self, equation, ref, transforms, mask)
    self.write(ref, transforms, value, line_of(equation), mask)
    return [old if mask is None else np.where(mask, old, value)]


# ---- copies and semaphores -----------------------------------------------------------------------


@step(dma_start_p)
def _(self: GridStep, equation: Equation, *operands: Value) -> Sequence[Value]:
    copy: CopyOperands = equation.params["tree"].unflatten(operands)
    kind, line = equation.params["device_id_type"], line_of(equation)
    device = copy.device_id
    src, dst = copy.src, self.elsewhere(copy.dst, device, None, kind, line)
    if copy.dst_sem is None:
        raise ValueError(
            f"the copy at {line} has no semaphore to wait for: give make_async_copy a scratch "
            "buffer of type pltpu.SemaphoreType.DMA"
        )
    sent = None
    if copy.src_sem is not None:
        ref, number = self.semaphore(copy.src_sem, copy.src_sem_transforms, line)
        sent = ref.each[number]
    ref, number = self.semaphore(copy.dst_sem, copy.dst_sem_transforms, line)
    received = self.elsewhere(ref, device, None, kind, line).each[number]
    ends = (
        src,
        part_of(src.shape, copy.src_transforms),
        dst,
        part_of(dst.shape, copy.dst_transforms),
    )
    is_added = equation.params["add"]
    self.core.machine.start(Copy(self.core, ends, sent, received, line, is_added))
    return []


@step(dma_wait_p)
def _(self: GridStep, equation: Equation, *operands: Value) -> Results:
    copy: CopyOperands = equation.params["tree"].unflatten(operands)
    line = line_of(equation)
    which = "src" if equation.params["is_wait_send"] else "dst"
    sem, indexers = getattr(copy, f"{which}_sem"), getattr(copy, f"{which}_sem_transforms")
    ref, number = self.semaphore(sem, indexers, line)
    end = getattr(copy, which)
    part = part_of(end.shape, getattr(copy, f"{which}_transforms"))
    size = int(np.prod(part.sizes, dtype=np.int64))
    yield from self.core.wait(ref.each[number], size * end.values.dtype.itemsize, line)
    return []


@step(semaphore_signal_p)
def _(self: GridStep, equation: Equation, *operands: Value) -> Sequence[Value]:
    ref, transforms, inc, device, core = equation.params["args_tree"].unflatten(operands)
    line = line_of(equation)
    ref, number = self.semaphore(ref, transforms, line)
    there = self.elsewhere(ref, device, core, equation.params["device_id_type"], line)
    self.core.signal(there.each[number], as_integer(inc), line)
    return []


@step(semaphore_wait_p)
def _(self: GridStep, equation: Equation, *operands: Value) -> Results:
    ref, transforms, value = equation.params["args_tree"].unflatten(operands)
    line = line_of(equation)
    ref, number = self.semaphore(ref, transforms, line)
    decrement = equation.params["decrement"]
    yield from self.core.wait(ref.each[number], as_integer(value), line, decrement)
    return []


@step(semaphore_read_p)
def _(self: GridStep, equation: Equation, *operands: Value) -> Sequence[Value]:
    ref, transforms = equation.params["args_tree"].unflatten(operands)
    ref, number = self.semaphore(ref, transforms, line_of(equation))
    semaphore = ref.each[number]
    if semaphore.copies:
        semaphore.copies[0]()
    return [np.int32(semaphore.count)]


@step(get_barrier_semaphore_p)
def _(self: GridStep, equation: Equation) -> Sequence[Value]:
    number, tag = self.surroundings.collective_id, equation.params["tag"]
    if number is None and tag is None:
        raise ValueError(
            f"get_barrier_semaphore at {line_of(equation)} needs the collective_id of the kernel: "
            "give pallas_call compiler_params=pltpu.CompilerParams(collective_id=0), or a tag"
        )
    aval: Any = equation.outvars[0].aval
    key = ("barrier", number) if tag is None else ("barrier of a tag", tag)
    return [self.allocate(key, f"the barrier semaphore {key[1]}", aval)]


@step(has_memory_space_p)
def _(self: GridStep, equation: Equation, ref: Buffer) -> Sequence[Value]:
    return [np.bool_(equation.params["memory_space"] is HBM)]
