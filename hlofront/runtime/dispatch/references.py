"""Calls of programs with mutable references, on their arrays, which are donated and replaced."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.programs.program_cache import once_per_program
from hlofront.core.references import is_reference, touches_references
from hlofront.higher_order import discharging as discharging
from hlofront.higher_order.calls.jit_call import with_captured
from hlofront.higher_order.selecting import where
from hlofront.runtime.array.reference import Ref
from hlofront.runtime.compilation.pipeline import compilation_request
from hlofront.runtime.compilation.traced_program import CompilerOptionPairs, TracedProgram
from hlofront.runtime.dispatch.executables import executable_for
from hlofront.runtime.sharding.placement import choose_placement
from hlofront.transforms.discharge import discharge_program

Value = TypeVar("Value")


class DischargedCall:
    """A program with references, converted to a program on the arrays that they hold.

    Attributes:
      captured: the references among the program's constants.
      program: the program of arrays: its inputs are the program's own, then those of the captured
        references; its outputs are those of the program, then new arrays of references.
      written: per input, whether it is a reference that the program writes to.
      donated: per input, whether its buffer is donated; empty if none is.
    """

    __slots__ = ("captured", "donated", "program", "written")

    def __init__(self, program: ClosedJaxpr, donated: Sequence[bool]):
        self.captured = [const for const in program.consts if isinstance(const, Ref)]
        opened = _with_captured(program, self.captured)
        self.program, self.written = discharge_program(opened)
        donated = donated or (False,) * len(program.in_avals)
        donated = (*donated, *(False,) * len(self.captured))
        # An array that is replaced may be overwritten, so that nothing is copied.
        donated = tuple(
            written or (donates and not is_reference(aval))
            for written, donates, aval in zip(self.written, donated, opened.in_avals, strict=True)
        )
        self.donated: tuple[bool, ...] = donated if any(donated) else ()

    def run(
        self, args: Sequence[object], execute: Callable[[list[object]], list[Any]]
    ) -> list[Any]:
        """Run the program, store the new arrays of references, and return the results.

        Args:
          args: the flat arguments, references among them.
          execute: runs the program of arrays.
        """
        inputs = [*args, *self.captured]
        results = execute([x.array if isinstance(x, Ref) else x for x in inputs])
        count = len(results) - sum(self.written)
        for ref, array in zip(where(inputs, self.written), results[count:], strict=True):
            ref.array = array
        return results[:count]


def _with_captured(program: ClosedJaxpr, captured: Sequence[Ref]) -> ClosedJaxpr:
    """Return a program with captured references as its last inputs."""
    if not captured:
        return program
    opened = with_captured(program, captured)
    invars, count = opened.jaxpr.invars, len(captured)
    return opened.replace(jaxpr=opened.jaxpr.replace(invars=[*invars[count:], *invars[:count]]))


@once_per_program
def discharged_call(program: ClosedJaxpr, donated: tuple[bool, ...]) -> DischargedCall:
    """Return the call of a program with references."""
    return DischargedCall(program, donated)


def without_references(traced: TracedProgram) -> TracedProgram:
    """Convert a traced program to one on the arrays that its references hold."""
    if not traced.has_references:
        return traced
    if traced.discharged is None:
        call = discharged_call(traced.program, traced.donated)
        traced.discharged = TracedProgram(
            call.program, traced.in_tree, traced.out_tree, call.donated
        )
    return traced.discharged


def has_references(program: ClosedJaxpr) -> bool:
    """Return whether a program uses mutable references, or has inputs that are references."""
    return touches_references(program.effects) or any(map(is_reference, program.in_avals))


def distinct_references(args: Sequence[Value]) -> tuple[list[Value], tuple[int, ...]]:
    """Return arguments with each reference once, and per argument the index of it among them."""
    distinct: list[Value] = []
    numbers: list[int] = []
    positions: dict[int, int] = {}
    for x in args:
        number = positions.setdefault(id(x), len(distinct)) if type(x) is Ref else len(distinct)
        if number == len(distinct):
            distinct.append(x)
        numbers.append(number)
    return distinct, tuple(numbers)


def run_program(
    program: ClosedJaxpr,
    name: str,
    args: Sequence[object],
    donated: tuple[bool, ...] = (),
    keep_unused: bool = False,
    compiler_options: CompilerOptionPairs = (),
) -> list[Any]:
    """Compile a program for the devices of its arguments, run it, and return its results.

    Args:
      program: the program.
      name: its name.
      args: an array or a mutable reference per input.
      donated: per input, whether its buffer is donated; empty if none is.
      keep_unused: whether inputs that no result depends on stay.
      compiler_options: options of XLA.
    """
    if has_references(program):
        call = discharged_call(program, donated)
        return call.run(
            args,
            lambda arrays: run_program(
                call.program, name, arrays, call.donated, keep_unused, compiler_options
            ),
        )
    device, committed = choose_placement(program, args)
    request = compilation_request(name, device, donated, keep_unused, compiler_options)
    return executable_for(program, request, committed).run(args)
