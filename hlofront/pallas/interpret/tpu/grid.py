"""The run of a kernel on modeled devices: its operands in memory, and the steps of its grid."""

import itertools
import math
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import NumPyArray
from hlofront.core.jaxpr import Jaxpr
from hlofront.core.references import NDIndexer
from hlofront.core.sizes.computed_slices import Slice
from hlofront.pallas.block_specs import Blocked, Squeezed
from hlofront.pallas.grid_mapping import GridMapping, dynamic_grid_dim
from hlofront.pallas.interpret.blocks import Blocks
from hlofront.pallas.interpret.tpu.machine import Core, Machine, Run, Waiting
from hlofront.pallas.interpret.tpu.memory import Buffer, BufferPart, part_of
from hlofront.pallas.interpret.tpu.steps import GridStep, Surroundings, in_hbm
from hlofront.pallas.interpret.tpu.values import as_integer
from hlofront.pallas.interpret_params import InterpretParams

_PARALLEL = ("parallel", "core_parallel", "subcore_parallel")
# The elements at which a block begins.
Starts = tuple[int, ...]


class ModeledKernel(NamedTuple):
    """A kernel that is to run.

    Attributes:
      jaxpr: its program.
      mapping: its grid and blocks.
      aliases: pairs of an operand, not counting sizes of the grid, and a result.
      line: the line of the user's program that calls it.
      semantics: per axis of the grid that the kernel sees, how steps may run; None for in order.
      checks_semaphores: whether semaphores must be 0 at the end.
      surroundings: its mesh and barrier.
      params: the options of the interpreter.
    """

    jaxpr: Jaxpr
    mapping: GridMapping
    aliases: tuple[tuple[int, int], ...]
    line: str
    semantics: tuple[str, ...] | None
    checks_semaphores: bool
    surroundings: Surroundings
    params: InterpretParams

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the kernel's parameters."""
        info = self.jaxpr.debug_info
        names = info.arg_names if info is not None else None
        count = len(self.jaxpr.invars)
        names = names or ()
        # Those after the parameters are the kernel's own: see own_reference.
        return (*names, *[f"reference {number}" for number in range(len(names), count)])

    def run(self, operands: dict[int, Sequence[NumPyArray]]) -> dict[int, list[NumPyArray]]:
        """Run the kernel on devices, given operands by device number; return their results.

        Raises:
          RuntimeError: for races, deadlocks, and semaphores that are not 0 at the end.
          IndexError: for accesses out of bounds.
        """
        machine = Machine(self.params, math.prod([n for _, n in self.surroundings.mesh_axes]))
        devices = {number: _Device(self, machine, number, xs) for number, xs in operands.items()}
        runs = [run for device in devices.values() for run in device.runs()]
        machine.run(runs)
        if self.checks_semaphores:
            machine.check_semaphores([core for core, _ in runs])
        return {number: device.results() for number, device in devices.items()}


class _Device:
    """A device that runs a kernel.

    Attributes:
      kernel: the kernel.
      machine: the machine.
      number: the number of the device.
      sizes: the sizes of the grid.
      scalars: the prefetched scalars.
      arrays: the buffers of inputs and outputs in HBM, with the elements that blocks cover.
    """

    def __init__(
        self, kernel: ModeledKernel, machine: Machine, number: int, operands: Sequence[NumPyArray]
    ):
        mapping = kernel.mapping
        self.kernel = kernel
        self.machine = machine
        self.number = number
        self.blocks = [Blocks(each) for each in mapping.block_mappings]
        dynamic = iter(operands[: mapping.num_dynamic_grid_bounds])
        self.sizes = [
            as_integer(next(dynamic)) if size is dynamic_grid_dim else int(size)  # pyright: ignore[reportArgumentType]
            for size in mapping.grid
        ]
        rest = operands[mapping.num_dynamic_grid_bounds :]
        self.scalars = rest[: mapping.num_index_operands]
        inputs = rest[mapping.num_index_operands :]
        # Operands are not written to, except as results that share their memory.
        host, params = Core(machine, number, 0), kernel.params
        self.arrays: list[Buffer] = []
        names = kernel.names[mapping.num_index_operands :]
        for position, (blocks, name) in enumerate(zip(self.blocks, names, strict=False)):
            aval, key = blocks.padded_aval, ("array", position)
            array = Buffer.empty(key, f"{name} in HBM", aval.shape, aval.dtype, True, params)
            self.arrays.append(machine.allocate(host, array))
        for operand, result in kernel.aliases:
            if operand < mapping.num_index_operands:
                raise NotImplementedError(  # JAX raises this class.
                    "the interpreter of TPUs has no prefetched scalars that share the memory of a "
                    f"result: input_output_aliases={dict(kernel.aliases)} of the kernel called at "
                    f"{kernel.line}"
                )
            aliased = self.arrays[operand - mapping.num_index_operands]
            self.arrays[mapping.num_inputs + result] = aliased
        for array, blocks, values in zip(self.arrays, self.blocks, inputs, strict=False):
            inside = _own_elements(blocks)
            array.values[inside] = values
            if array.written is not None:
                array.written[inside] = True

    def results(self) -> list[NumPyArray]:
        """Return the results of the kernel."""
        first = self.kernel.mapping.num_inputs
        return [
            array.values[_own_elements(blocks)]
            for array, blocks in zip(self.arrays[first:], self.blocks[first:], strict=True)
        ]

    # ---- the grid

    def runs(self) -> list[tuple[Core, Run]]:
        """Return the cores of the device with their runs."""
        params = self.kernel.params
        steps = self._steps()
        count = params.num_cores_or_threads
        axes = self._parallel_axes() if count > 1 else 0
        points = math.prod(self.sizes[:axes])
        per_point = math.prod(self.sizes[axes:])
        share = -(-points // count) * per_point if count > 1 else len(steps)
        runs: list[tuple[Core, Run]] = []
        for number in range(count):
            core = Core(self.machine, self.number, number)
            part = steps[number * share : (number + 1) * share]
            runs.append((core, _CoreRun(self, core).run(part)))
        return runs

    def _is_parallel(self) -> list[bool]:
        """Return per axis of the grid whether its steps may run in any order."""
        semantics = iter(self.kernel.semantics or ())
        vmapped = self.kernel.mapping.vmapped_dims
        return [
            axis in vmapped or next(semantics, "arbitrary") in _PARALLEL
            for axis in range(len(self.sizes))
        ]

    def _parallel_axes(self) -> int:
        """Return the number of parallel axes, which are the first ones.

        Raises:
          ValueError: if a parallel axis comes after one that is not.
        """
        flags = self._is_parallel()
        count = flags.index(False) if False in flags else len(flags)
        if any(flags[count:]):
            raise ValueError(
                "the parallel axes of a grid come before the others, if several cores share its "
                f"steps: got dimension_semantics={self.kernel.semantics} of the kernel called at "
                f"{self.kernel.line}"
            )
        return count

    def _steps(self) -> list[tuple[int, ...]]:
        """Return the indices of the steps in execution order, random along parallel axes."""
        random = np.random.default_rng(self.kernel.params.random_seed or 0)
        columns = [
            random.permutation(size).tolist() if is_parallel else range(size)
            for size, is_parallel in zip(self.sizes, self._is_parallel(), strict=True)
        ]
        return list(itertools.product(*columns))


class _CoreRun:
    """The run of the steps of one core: a buffer per block, copied when the block changes."""

    def __init__(self, device: _Device, core: Core):
        mapping = device.kernel.mapping
        self.device = device
        self.core = core
        self.first = mapping.num_index_operands
        idle = self._step(())
        names = device.kernel.names
        self.references: list[Any] = []
        for position, var in enumerate(device.kernel.jaxpr.invars):
            block = position - self.first
            aval: Any = var.aval
            if 0 <= block < len(device.blocks) and in_hbm(aval.memory_space):
                self.references.append(device.arrays[block])
                self._check_whole(block)
            else:
                self.references.append(idle.allocate(("kernel", position), names[position], aval))
        for buffer, values in zip(self.references, device.scalars, strict=False):
            buffer.values[...] = values
            if buffer.written is not None:
                buffer.written[...] = True

    def _check_whole(self, block: int) -> None:
        if not self.device.blocks[block].is_whole:
            kernel = self.device.kernel
            raise ValueError(
                f"{kernel.names[self.first + block]} of the kernel called at {kernel.line} stays "
                "in HBM, where a kernel sees whole arrays: leave out block_shape and index_map of "
                "its BlockSpec"
            )

    def _step(self, indices: Sequence[int]) -> GridStep:
        axes = self.device.kernel.mapping.kernel_axes
        numbers = [indices[axis] for axis in axes] if indices else []
        sizes = [self.device.sizes[axis] for axis in axes]
        return GridStep(self.core, self.device.kernel.surroundings, numbers, sizes)

    def run(self, steps: Sequence[tuple[int, ...]]) -> Run:
        """Run the kernel at the given steps, and copy blocks in and out."""
        device, mapping = self.device, self.device.kernel.mapping
        recorder = device.kernel.params.grid_point_recorder
        moving = [
            position
            for position in range(len(device.blocks))
            if self.references[self.first + position] is not device.arrays[position]
        ]
        aliased = {mapping.num_inputs + result for _, result in device.kernel.aliases}
        before: dict[int, Starts] = {}
        left: dict[int, set[Starts]] = {position: set() for position in moving}
        if not steps:
            return
        starts = yield from self._starts(moving, steps[0])
        for number, indices in enumerate(steps):
            if recorder is not None:
                point = tuple(map(np.int32, indices))
                recorder(np.int32(0), point, np.int32(self.core.number))
            for position in moving:
                is_new = starts[position] != before.get(position)
                if is_new and position < mapping.num_inputs:
                    self._copy(position, starts[position], is_in=True)
                elif is_new:
                    if starts[position] in left[position] and position not in aliased:
                        self._refuse_revisit(position, starts[position], indices)
                    left[position].add(starts[position])
                    self.references[self.first + position].forget()
            step = self._step(indices)
            yield from step.run_jaxpr(device.kernel.jaxpr, (), self.references)
            after: dict[int, Starts] = {}
            if number + 1 < len(steps):
                after = yield from self._starts(moving, steps[number + 1])
            for position in moving:
                if position >= mapping.num_inputs and starts[position] != after.get(position):
                    self._copy(position, starts[position], is_in=False)
            before, starts = starts, after

    def _starts(
        self, moving: Sequence[int], indices: tuple[int, ...]
    ) -> Generator[Waiting, None, dict[int, Starts]]:
        """Return where the blocks of a step begin.

        Raises:
          IndexError: if a block is outside of its array.
        """
        starts: dict[int, Starts] = {}
        device = self.device
        for position in moving:
            blocks = device.blocks[position]
            program = blocks.mapping.index_map_jaxpr
            scalars = self.references[: self.first]
            numbers = [np.int32(index) for index in indices]
            block = yield from self._step(indices).run_jaxpr(program, (), [*numbers, *scalars])
            start = tuple(
                [
                    as_integer(index) * (size if isinstance(dim, Blocked) else 1)
                    for index, dim, size in zip(
                        block, blocks.mapping.block_shape, blocks.sizes, strict=True
                    )
                ]
            )
            for axis, (first, size, limit) in enumerate(
                zip(start, blocks.sizes, blocks.padded_aval.shape, strict=True)
            ):
                if not 0 <= first <= limit - size:
                    kernel = device.kernel
                    raise IndexError(
                        f"Out-of-bounds block index {tuple(map(as_integer, block))} of "
                        f"{kernel.names[self.first + position]} at step {indices} of the kernel "
                        f"called at {kernel.line}: along axis {axis} the block is {first}:"
                        f"{first + size}, and the array has {blocks.shape[axis]} elements"
                    )
            starts[position] = start
        return starts

    def _copy(self, position: int, starts: Starts, is_in: bool) -> None:
        """Copy a block from HBM to its buffer, or back."""
        blocks = self.device.blocks[position]
        array, buffer = self.device.arrays[position], self.references[self.first + position]
        kind = "reads" if is_in else "writes"
        name = self.device.kernel.names[self.first + position]
        line = f"{self.device.kernel.line}, which {kind} the block of {name}"
        there = _block(blocks, array, starts)
        here = part_of(buffer.shape, ())
        thread = self.core.thread
        if is_in:
            buffer.write(here, array.read(there, thread, line), thread, line)
        else:
            array.write(there, buffer.read(here, thread, line), thread, line)

    def _refuse_revisit(self, position: int, starts: Starts, indices: tuple[int, ...]) -> None:
        kernel = self.device.kernel
        blocks = self.device.blocks[position]
        part = _block(blocks, self.device.arrays[position], starts)
        raise RuntimeError(
            f"Revisited block {part} of {kernel.names[self.first + position]} at step {indices} of "
            f"the kernel called at {kernel.line}: the steps that see one block of an output must "
            "follow each other, as the block is written to HBM after them, and not read again"
        )


def _own_elements(blocks: Blocks) -> tuple[slice, ...]:
    """Return the index of the array's own elements among all those that its blocks cover."""
    return tuple(
        [slice(before, before + n) for before, n in zip(blocks.before, blocks.shape, strict=True)]
    )


def _block(blocks: Blocks, array: Buffer, starts: Starts) -> BufferPart:
    """Return the part of an array that is a block, without squeezed axes."""
    indices = [
        start if isinstance(dim, Squeezed) else Slice(start, size)
        for start, size, dim in zip(starts, blocks.sizes, blocks.mapping.block_shape, strict=True)
    ]
    return part_of(array.shape, [NDIndexer(indices, array.shape, ())])
