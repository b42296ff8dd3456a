"""The interpretation of a kernel: a loop over its grid, whose body is the kernel on arrays."""

import functools
import math
from collections.abc import Sequence
from typing import Any, NoReturn

from hlofront.base.elements import int32
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.bridge.mlir import Value
from hlofront.core import rules
from hlofront.core.aval import MemorySpace
from hlofront.core.jaxpr import ClosedJaxpr, Jaxpr
from hlofront.core.programs.evaluate import jaxpr_as_fun
from hlofront.core.programs.program_cache import once_per_program
from hlofront.higher_order.control_flow.while_loop import fori_loop
from hlofront.higher_order.selecting import where
from hlofront.lowering.core.builder import Builder
from hlofront.pallas.debug_checks import check_block, makes_checks
from hlofront.pallas.grid_indices import indices_of_step, num_programs_p, program_id_p
from hlofront.pallas.grid_mapping import GridMapping
from hlofront.pallas.interpret.blocks import Blocks
from hlofront.pallas.interpret.tpu.call import modeled
from hlofront.pallas.interpret_params import InterpretParams
from hlofront.pallas.kernel_call import pallas_call_p
from hlofront.pallas.memory import uninitialized
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import max, mul
from hlofront.transforms.discharge import discharge_program

Arrays = list[ArrayLike]


class _OnArrays(NamedTuple):
    """A kernel as a program of arrays.

    Attributes:
      numbers: per first input, (whether it is an index rather than a size, the kernel's axis).
      program: maps numbers, and an array per reference, to the new arrays of some references.
      written: per reference, whether its new array is a result.
    """

    numbers: tuple[tuple[bool, int], ...]
    program: ClosedJaxpr
    written: tuple[bool, ...]


@once_per_program
def on_arrays(kernel: Jaxpr) -> _OnArrays:
    """Return a kernel as a program of arrays, which takes the index of its step as operands."""
    asked = [eqn for eqn in kernel.eqns if eqn.primitive in (program_id_p, num_programs_p)]
    numbers = tuple([(eqn.primitive is program_id_p, eqn.params["axis"]) for eqn in asked])
    opened = kernel.replace(
        invars=(*[eqn.outvars[0] for eqn in asked], *kernel.invars),
        eqns=[eqn for eqn in kernel.eqns if eqn not in asked],
        debug_info=kernel.origin,
    )
    program, written = discharge_program(ClosedJaxpr(opened))
    return _OnArrays(numbers, program, written[len(asked) :])


@once_per_program
def _index_map(jaxpr: Jaxpr) -> ClosedJaxpr:
    """Return an index map as a program of arrays."""
    return discharge_program(ClosedJaxpr(jaxpr)).program


def interpreted(
    *operands: ArrayLike,
    jaxpr: Jaxpr,
    grid_mapping: GridMapping,
    input_output_aliases: Sequence[tuple[int, int]],
    **_: object,
) -> Arrays:
    """Return the results of a kernel, computed by XLA's operations."""
    return _Interpreter(jaxpr, grid_mapping, input_output_aliases).run(operands)


class _Interpreter:
    """The arrays of a kernel, and the loop that runs it.

    Attributes:
      kernel: the kernel as a program of arrays.
      blocks: per input and output, which block a step sees.
      kept: per reference to a block or a scratch buffer, whether the kernel writes to it, so that
        the loop carries its array.
    """

    def __init__(self, jaxpr: Jaxpr, mapping: GridMapping, aliases: Sequence[tuple[int, int]]):
        self.mapping = mapping
        self.aliases = aliases
        self.kernel = on_arrays(jaxpr)
        self.blocks = [Blocks(each) for each in mapping.block_mappings]
        self.kept = self.kernel.written[mapping.num_index_operands :]

    def run(self, operands: ArrayLikes) -> Arrays:
        mapping = self.mapping
        count = mapping.num_dynamic_grid_bounds
        sizes = self._sizes(operands[:count])
        operands = operands[count:]
        scalars = operands[: mapping.num_index_operands]
        arrays = self._first_arrays(operands)
        carried = where(arrays, self.kept)

        def step(number: ArrayLike, carry: Arrays) -> Arrays:
            return self._step(
                indices_of_step(number, sizes), sizes, scalars, self._all(arrays, carry)
            )

        steps = _product(sizes)
        is_one = isinstance(steps, int) and steps == 1
        carried = step(0, carried) if is_one else fori_loop(0, steps, step, carried)
        final = self._all(arrays, carried)
        outputs = slice(mapping.num_inputs, len(self.blocks))
        return [
            blocks.unpadded(array)
            for blocks, array in zip(self.blocks[outputs], final[outputs], strict=True)
        ]

    def _all(self, arrays: Arrays, carried: Arrays) -> Arrays:
        """Return the arrays, with those that the loop carries replaced."""
        rest = iter(carried)
        return [next(rest) if kept else a for a, kept in zip(arrays, self.kept, strict=True)]

    def _sizes(self, dynamic: ArrayLikes) -> Arrays:
        """Return the sizes of the grid: integers, and scalars of int32 for traced ones."""
        rest = iter(dynamic)
        return [
            size if isinstance(size, int) else convert(next(rest), int32, False)
            for size in self.mapping.grid
        ]

    def _first_arrays(self, operands: ArrayLikes) -> Arrays:
        """Return the arrays of inputs, outputs and scratch buffers before the first step."""
        mapping = self.mapping
        sources = {result: operands[position] for position, result in self.aliases}
        inputs = operands[mapping.num_index_operands :]
        first, last = self.blocks[: mapping.num_inputs], self.blocks[mapping.num_inputs :]
        return [
            *[blocks.padded(array) for blocks, array in zip(first, inputs, strict=True)],
            *[
                blocks.padded(sources[result])
                if result in sources
                else uninitialized(blocks.padded_aval)
                for result, blocks in enumerate(last)
            ],
            *[uninitialized(aval.inner_aval) for aval in mapping.scratch_avals],
        ]

    def _step(self, indices: Arrays, sizes: Arrays, scalars: ArrayLikes, arrays: Arrays) -> Arrays:
        """Run the kernel at one step of the grid; return the new arrays of those that it keeps."""
        starts = [
            blocks.starts(
                jaxpr_as_fun(_index_map(blocks.mapping.index_map_jaxpr), *indices, *scalars)
            )
            for blocks in self.blocks
        ]
        if makes_checks():
            for blocks, start in zip(self.blocks, starts, strict=True):
                name = blocks.mapping.origin
                check_block(name, start, blocks.sizes, blocks.padded_aval.shape, indices)
        count = len(self.blocks)
        seen = [
            blocks.read(array, start)
            for blocks, array, start in zip(self.blocks, arrays[:count], starts, strict=True)
        ]
        axes = self.mapping.kernel_axes
        numbers = [
            indices[axes[axis]] if is_index else sizes[axes[axis]]
            for is_index, axis in self.kernel.numbers
        ]
        new = jaxpr_as_fun(self.kernel.program, *numbers, *scalars, *seen, *arrays[count:])
        # Writes to prefetched scalars are lost at the end of the step.
        new = iter(new[sum(self.kernel.written[: len(scalars)]) :])
        kept: Arrays = []
        for position, (array, is_kept) in enumerate(zip(arrays, self.kept, strict=True)):
            if not is_kept:
                continue
            value = next(new)
            if position < count:
                value = self.blocks[position].written(array, value, starts[position])
            kept.append(value)
        return kept


def _product(sizes: Arrays) -> ArrayLike:
    """Return the number of steps of a grid: 0 if a size is not positive."""
    known = [size for size in sizes if isinstance(size, int)]
    if len(known) == len(sizes):
        return math.prod([size if size > 0 else 0 for size in known])
    positive = [max(convert(size, int32, False), convert(0, int32, False)) for size in sizes]
    return functools.reduce(mul, positive)


# ---- lowering ------------------------------------------------------------------------------------


@rules.lower(pallas_call_p)
def _(build: Builder, *operands: Value, **params: Any) -> list[Value]:
    if isinstance(params["interpret"], InterpretParams):
        return modeled(build, *operands, **params)
    if params["interpret"]:
        avals = [aval.update(memory_space=MemorySpace.Device) for aval in build.avals_in]
        return build.by_tracing(interpreted, operands, avals, **params)
    platforms = build.module.platforms
    what = "Only interpret mode is supported on CPU backend."
    if "cpu" not in platforms:
        what = f"There is no compiler of kernels for {', '.join(platforms)}."
    info = params["jaxpr"].debug_info
    name = params["name"] or (info.func_src_info if info else "a kernel")
    raise ValueError(
        f"{what} The kernel {name} was called for a compiled one: give pallas_call interpret=True, "
        "which computes the same by XLA's operations, or run the program on a TPU."
    )


@rules.lower(program_id_p, num_programs_p)
def _(build: Builder, *, axis: int) -> NoReturn:
    raise ValueError(
        "program_id and num_programs are operations of kernels: there is no grid outside of "
        "pallas_call"
    )
