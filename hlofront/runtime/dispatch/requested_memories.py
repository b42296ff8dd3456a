"""The memories of jit's in_shardings and out_shardings: programs that move values between them.

In a program, an input with a sharding in host memory has that type, and is moved to the device
first; a result with such a sharding is moved to the host last.
"""

from collections.abc import Sequence
from itertools import zip_longest

from hlofront.base.typing import Array, Value
from hlofront.bridge.client import Sharding
from hlofront.bridge.members import memory_kind_of
from hlofront.core.aval import AbstractValue, MemorySpace, ShapedArray
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.programs.evaluate import eval_jaxpr
from hlofront.core.programs.program_cache import once_per_program
from hlofront.primitives.sharding.placing import CopySemantics, device_put, memory_space_of
from hlofront.runtime.compilation.traced_program import FlatShardings
from hlofront.transforms.stage import stage

Spaces = tuple[MemorySpace | None, ...]


def in_requested_memories(program: ClosedJaxpr, requested: FlatShardings) -> ClosedJaxpr:
    """Return a program whose inputs and outputs are in the memories that jit's shardings name.

    Args:
      program: the program. It may have more inputs and outputs than there are shardings, for
        mutable references: those stay where they are.
      requested: the sharding of each argument and result, or None.
    """
    inputs = _spaces(requested.inputs, program.in_avals)
    outputs = _spaces(requested.outputs, program.out_avals)
    if not any(inputs) and not any(outputs):
        return program
    return _moving(program, inputs, outputs)


def _spaces(shardings: Sequence[Sharding | None], avals: Sequence[AbstractValue]) -> Spaces:
    """Return the memory space of each sharding; None where the aval is in it already."""
    spaces: list[MemorySpace | None] = []
    for sharding, aval in zip_longest(shardings, avals):
        space = None if sharding is None else memory_space_of(memory_kind_of(sharding))
        is_there = not isinstance(aval, ShapedArray) or space is aval.memory_space
        spaces.append(None if is_there else space)
    return tuple(spaces)


@once_per_program
def _moving(program: ClosedJaxpr, inputs: Spaces, outputs: Spaces) -> ClosedJaxpr:
    """Return a program with inputs and outputs in these memory spaces; None changes nothing."""
    avals = [
        aval.update(memory_space=space) if isinstance(aval, ShapedArray) and space else aval
        for aval, space in zip(program.in_avals, inputs, strict=True)
    ]
    requested_spaces = tuple(
        aval.memory_space if isinstance(aval, ShapedArray) and space else None
        for aval, space in zip(program.in_avals, inputs, strict=True)
    )

    def moving(*args: Array) -> list[Value]:
        results = eval_jaxpr(program.jaxpr, program.consts, *_moved(args, requested_spaces))
        return _moved(results, outputs)

    return stage(moving, avals, program.jaxpr.debug_info)


def _moved(values: Sequence[Value], spaces: Spaces) -> list[Value]:
    """Return values, each moved to a memory space if one is given."""
    return [
        value
        if space is None
        else device_put([value], [space], [None], [CopySemantics.REUSE_INPUT])[0]
        for value, space in zip(values, spaces, strict=True)
    ]
