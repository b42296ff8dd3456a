"""Parts of a program: some of its equations, run on the values that they have in the program."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hlofront.core.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, Var
from hlofront.core.programs.liveness import live_equations
from hlofront.core.programs.subprograms import called_by
from hlofront.transforms.simplify import inline_calls


@dataclass(frozen=True, slots=True)
class ProgramPart:
    """Equations of a program; values that they read from outside are its inputs."""

    equations: tuple[Equation, ...]
    outputs: tuple[Var, ...]

    @property
    def inputs(self) -> tuple[Var, ...]:
        """The variables that the equations read and do not define."""
        defined = {var for equation in self.equations for var in equation.outvars}
        read = dict.fromkeys(
            atom
            for equation in self.equations
            for atom in equation.invars
            if isinstance(atom, Var) and atom not in defined
        )
        return tuple(read)

    @property
    def program(self) -> ClosedJaxpr:
        """The part as a program of its inputs."""
        return ClosedJaxpr(Jaxpr((), self.inputs, self.outputs, self.equations), ())


# Returns the outputs of a part that are wrong when it is compiled as a whole.
Wrong = Callable[[ProgramPart], Sequence[Var]]


def part_of(equations: Sequence[Equation], outputs: Sequence[Var]) -> ProgramPart:
    """Return the part of the equations that outputs depend on."""
    return ProgramPart(tuple(live_equations(equations, outputs)), tuple(outputs))


def inlined(program: ClosedJaxpr) -> ClosedJaxpr:
    """Return a program in which every call is replaced by the called equations, at all depths."""
    while calls := {e.primitive for e in program.eqns if called_by(e) is not None}:
        program = inline_calls(program.jaxpr, program.consts, also=calls)
    return program


def smallest(part: ProgramPart, wrong: Wrong) -> ProgramPart:
    """Return a small part of a wrong part that is still wrong on the program's own values.

    First the equations after the fault are left out, then those before it, whose values become
    inputs, and then as many others as possible, in halves, quarters and so on.
    """
    part = _with_one_output(_shortest_beginning(part, wrong), wrong)
    size = len(part.equations)
    while size:
        part, is_smaller = _without_chunks(part, size, wrong)
        size = min(size, len(part.equations)) if is_smaller and size == 1 else size // 2
    return part


def _shortest_beginning(part: ProgramPart, wrong: Wrong) -> ProgramPart:
    """Return a part's shortest wrong beginning; values that the rest reads are outputs."""
    low, high, best = 0, len(part.equations), part
    while high - low > 1:
        middle = (low + high) // 2
        beginning = _beginning(part, middle)
        if beginning.outputs and wrong(beginning):
            high, best = middle, beginning
        else:
            low = middle
    return best


def _beginning(part: ProgramPart, count: int) -> ProgramPart:
    equations = part.equations[:count]
    read: set[Atom] = {atom for e in part.equations[count:] for atom in e.invars}
    read.update(part.outputs)
    return part_of(equations, [var for e in equations for var in e.outvars if var in read])


def _with_one_output(part: ProgramPart, wrong: Wrong) -> ProgramPart:
    for var in wrong(part):
        alone = part_of(part.equations, [var])
        if wrong(alone):
            return alone
    return part


def _without_chunks(part: ProgramPart, size: int, wrong: Wrong) -> tuple[ProgramPart, bool]:
    """Return the part without those groups of `size` equations that it is wrong without, too."""
    is_smaller = False
    end = len(part.equations)
    while end > 0:
        start = max(0, end - size)
        left = (*part.equations[:start], *part.equations[end:])
        kept = {var for equation in left for var in equation.outvars}
        if left and kept.issuperset(part.outputs):
            smaller = part_of(left, part.outputs)
            if smaller.equations and wrong(smaller):
                part, is_smaller, start = smaller, True, min(start, len(smaller.equations))
        elif left:
            # The chunk makes the output: the values that it reads may already be wrong.
            read = {atom for e in part.equations[start:end] for atom in e.invars}
            for var in [var for e in left for var in e.outvars if var in read]:
                smaller = part_of(left, [var])
                if wrong(smaller):
                    part, is_smaller = smaller, True
                    start = min(start, len(smaller.equations))
                    break
        end = start
    return part, is_smaller
