"""Subprograms of equations: their roles, and how operands map to their inputs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal, TypeGuard, cast

from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Value
from hlofront.core import rules
from hlofront.core.jaxpr import ClosedJaxpr, Equation, Jaxpr
from hlofront.core.primitive import Primitive
from hlofront.core.programs.program_cache import once_per_program

Program = ClosedJaxpr | Jaxpr

# The roles of a program that an operation holds:
# - "inlined": it only calls the program, so that the program's equations may replace the call;
# - "call": it runs the program once, with a meaning beyond that, such as a derivative rule;
# - "manual": it runs the program on each device of a mesh, on that device's parts of its operands;
# - "branch": it runs one of several programs, selected by its first operand;
# - "body": it runs the program in each iteration of a loop;
# - "condition": it runs the program before each iteration, to decide whether there is one;
# - "combiner": it applies the program to elements of its operands, as a reduction does;
# - "alternative": it does not run the program; a transformation of it may;
# - "unknown": the operation is of another package and has no subprograms rule.
Role = Literal[
    "inlined", "call", "manual", "branch", "body", "condition", "combiner", "alternative", "unknown"
]

_NONE = range(0)
# The classes of programs, and of parameters that are or may hold some.
_PROGRAMS = ClosedJaxpr, Jaxpr
_HOLDERS = *_PROGRAMS, tuple, list


class Subprogram(NamedTuple):
    """A program that an equation holds, and how the equation's operands and results map to it.

    Attributes:
      program: the program. A rule may return a function that is not traced yet instead, which
        `subprograms_of` leaves out.
      parameter: the name of the parameter that holds the program.
      role: the way in which the operation uses the program.
      operands: per input of the program, the index of the operand that it receives; None if
        inputs are not operands.
      results: per output of the program, the index of the equation's result that it becomes; None
        if outputs are not results.
      carried: the inputs that receive, from the second iteration on, the first outputs of the loop
        body in the previous iteration, in order.
      sliced: the inputs that receive one index of the first axis of their operand per iteration.
      iterations: the number of runs of the program; None if that depends on values.
      path: the indices that lead to the program in a parameter that is a tuple or list.
    """

    program: Program
    parameter: str
    role: Role
    operands: Sequence[int] | None = None
    results: Sequence[int] | None = None
    carried: range = _NONE
    sliced: range = _NONE
    iterations: int | None = 1
    path: tuple[int, ...] = ()

    @property
    def jaxpr(self) -> Jaxpr:
        """The program without the values of its constants."""
        return opened(self.program)

    @property
    def consts(self) -> Sequence[Value]:
        """The values of the program's constants; empty for an open jaxpr."""
        return self.program.consts if isinstance(self.program, ClosedJaxpr) else ()

    @property
    def closed(self) -> ClosedJaxpr:
        """The program as a closed jaxpr, with the values of its constants."""
        return closed(self.program)

    @property
    def is_call(self) -> bool:
        """True if the operation runs the program exactly once."""
        return self.role in ("call", "inlined")


SubprogramRule = Callable[..., Sequence[Subprogram]]

# The contexts in which the programs of equations are traced, by primitive: functions of the
# parameters. The types of results may depend on the mesh and the axes in scope there.
contexts_of_programs: dict[Primitive, Callable[..., AbstractContextManager[object]]] = {}


def is_program(value: object) -> TypeGuard[Program]:
    """Return whether a value is a jaxpr, closed or not."""
    return isinstance(value, _PROGRAMS)


def opened(program: Program) -> Jaxpr:
    """Return the jaxpr of a closed jaxpr, or the jaxpr itself."""
    return program.jaxpr if isinstance(program, ClosedJaxpr) else program


def closed(program: Program) -> ClosedJaxpr:
    """Return a closed jaxpr unchanged, or close a jaxpr that has no constants."""
    return program if isinstance(program, ClosedJaxpr) else ClosedJaxpr(program)


# ---- makers of rules -----------------------------------------------------------------------------


def calls(parameter: str, role: Role = "call") -> SubprogramRule:
    """Return the subprograms rule of an operation that calls a parameter on all operands."""

    def rule(**params: Program) -> tuple[Subprogram]:
        return (called(params[parameter], parameter, role),)

    rule.__name__ = f"calls_{parameter}"
    return rule


def called(program: Program, parameter: str, role: Role = "call") -> Subprogram:
    """Return the Subprogram for a program that is called on all operands."""
    if not is_program(program):
        return Subprogram(program, parameter, role)
    jaxpr = opened(program)
    return Subprogram(
        program,
        parameter,
        role,
        operands=range(len(jaxpr.invars)),
        results=range(len(jaxpr.outvars)),
    )


def combines(*parameters: str) -> SubprogramRule:
    """Return the subprograms rule of an operation whose parameters are combiners or None."""

    def rule(**params: Program | None) -> list[Subprogram]:
        return [
            Subprogram(program, parameter, "combiner")
            for parameter in parameters
            if (program := params[parameter]) is not None
        ]

    rule.__name__ = f"combines_{'_'.join(parameters)}"
    return rule


def no_subprograms(**_: object) -> Sequence[Subprogram]:
    """Return no subprograms: the rule of operations whose parameters hold only functions."""
    return ()


# ---- queries -------------------------------------------------------------------------------------


def subprograms_of(equation: Equation) -> Sequence[Subprogram]:
    """Return the programs that an equation holds, each with its role.

    For operations of other packages, without a rule of `core.rules.subprograms`, these are the
    programs among its parameters and the members of parameters that are tuples or lists. A single
    one with as many inputs as the equation has operands, and as many outputs as it has results, is
    assumed to be called with them.
    """
    rule = rules.subprograms.get(equation.primitive)
    if rule is None:
        return _in_params(equation) if may_hold_programs(equation.primitive) else ()
    parts: Sequence[Subprogram] = rule(**equation.params)
    return [part for part in parts if is_program(part.program)]


def closed_programs_of(equation: Equation) -> tuple[ClosedJaxpr, ...]:
    """Return the closed jaxprs that an equation holds."""
    parts = subprograms_of(equation)
    if not parts:
        return ()
    programs = [part.program for part in parts]
    return tuple([program for program in programs if isinstance(program, ClosedJaxpr)])


def closed_programs_in(equations: Sequence[Equation]) -> Iterator[ClosedJaxpr]:
    """Yield the closed jaxprs that equations hold."""
    for part in subprograms_in(equations):
        if isinstance(part.program, ClosedJaxpr):
            yield part.program


def subprograms_in(equations: Sequence[Equation]) -> Iterator[Subprogram]:
    """Yield the programs that equations hold, each with its role.

    Only equations whose primitive has a rule of `core.rules.subprograms`, or rules from another
    package, are read: most equations have neither.
    """
    primitives = {equation.primitive for equation in equations}
    holders = {primitive for primitive in primitives if may_hold_programs(primitive)}
    if holders:
        for equation in equations:
            if equation.primitive in holders:
                yield from subprograms_of(equation)


def may_hold_programs(primitive: Primitive) -> bool:
    """Return whether a primitive has a rule of subprograms, or is of another package.

    Our primitives are recognized by their type rules, because their lowering rules are imported
    later.
    """
    if primitive in rules.subprograms:
        return True
    is_ours = primitive in rules.infer and primitive not in rules.infer.foreign
    return not is_ours or primitive in rules.lower.foreign


def called_by(equation: Equation) -> Subprogram | None:
    """Return the program that an equation runs exactly once, or None if there is none."""
    if equation.primitive in rules.subprograms:
        for part in subprograms_of(equation):
            if part.is_call:
                return part
    return None


def executed_by(equation: Equation) -> Subprogram | None:
    """Return the program that an equation runs: the one it calls, its first branch, or its body.

    See the `role` of the result. Return None for equations that run no program on their operands,
    and for operations without a rule of `core.rules.subprograms`.
    """
    if equation.primitive in rules.subprograms:
        for part in subprograms_of(equation):
            if part.role in ("inlined", "call", "branch", "body"):
                return part
    return None


def branches_of(equation: Equation) -> list[Subprogram]:
    """Return the programs one of which an equation runs, chosen by its first operand's value."""
    return [part for part in subprograms_of(equation) if part.role == "branch"]


def condition_of(equation: Equation) -> Subprogram | None:
    """Return the program that decides whether a loop continues, or None if the loop has none."""
    parts = subprograms_of(equation)
    return next((part for part in parts if part.role == "condition"), None)


def inputs_among(part: Subprogram, operands: Sequence[Value]) -> list[Value]:
    """Return those of an equation's operands that are inputs of one of its programs.

    Raises:
      TypeError: if the inputs of the program are not operands.
    """
    if part.operands is None:
        raise TypeError(f"the inputs of the program {part.parameter!r} are not operands")
    return [operands[index] for index in part.operands]


def split_inputs(
    part: Subprogram, operands: Sequence[Value]
) -> tuple[list[Value], list[Value], list[Value]]:
    """Return the inputs of a loop's program: (constant in all iterations, carried, sliced)."""
    inputs = inputs_among(part, operands)
    start, stop = part.carried.start, part.carried.stop
    return inputs[:start], inputs[start:stop], inputs[stop:]


def replace_programs(
    equation: Equation, change: Callable[[ClosedJaxpr], ClosedJaxpr]
) -> dict[str, object]:
    """Return the parameters of an equation with each closed jaxpr replaced by `change(program)`.

    Return the equation's own dictionary if `change` returns all programs unchanged.
    """
    params: dict[str, object] = equation.params
    for part in subprograms_of(equation):
        if isinstance(part.program, ClosedJaxpr):
            program = change(part.program)
            if program is not part.program:
                params = with_program(params, part, program)
    return params


def with_program(
    params: Mapping[str, object], part: Subprogram, program: Program
) -> dict[str, object]:
    """Return an equation's parameters with one of its subprograms, `part`, replaced."""
    value = params[part.parameter]
    return {**params, part.parameter: _with_member(value, part.path, program)}


def _with_member(value: object, path: tuple[int, ...], program: Program) -> object:
    if not path:
        return program
    kind = type(value)
    members = list(cast(Sequence[object], value))
    members[path[0]] = _with_member(members[path[0]], path[1:], program)
    return kind(*members) if hasattr(kind, "_fields") else kind(members)  # pyright: ignore[reportCallIssue]


def _programs_in(value: object, path: tuple[int, ...]) -> Iterator[tuple[Program, tuple[int, ...]]]:
    if is_program(value):
        yield value, path
    elif isinstance(value, tuple | list):
        for index, member in enumerate(cast(Sequence[object], value)):
            yield from _programs_in(member, (*path, index))


def _in_params(equation: Equation) -> Sequence[Subprogram]:
    # Most equations hold no programs, so this loop returns early.
    for value in equation.params.values():
        if isinstance(value, _HOLDERS):
            break
    else:
        return ()
    parts = [
        Subprogram(program, parameter, "unknown", path=path)
        for parameter, value in equation.params.items()
        for program, path in _programs_in(value, ())
    ]
    if len(parts) == 1:
        jaxpr = parts[0].jaxpr
        operands, results = range(len(equation.invars)), range(len(equation.outvars))
        if len(jaxpr.invars) == len(operands) and len(jaxpr.outvars) == len(results):
            parts[0] = parts[0]._replace(operands=operands, results=results)
    return parts


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """Yield the programs directly inside the equations of a program."""
    for part in subprograms_in(jaxpr.eqns):
        yield part.jaxpr


# ---- all programs inside a program ---------------------------------------------------------------
#
# A program that is called twice at each of 60 levels runs 2**60 times, but consists of 60 programs.
# So no function may follow every call: `all_programs` yields each program once, and functions that
# recurse into subprograms are decorated with `once_per_program`.


def all_programs(
    program: Program, equations_of: Callable[[Jaxpr], Sequence[Equation]] | None = None
) -> Iterator[Program]:
    """Yield a program and the programs inside it at any depth, each once, in order of first use.

    Args:
      equations_of: returns the equations of a jaxpr to look into; None for all of them.
    """
    met = {id(program)}
    # Closed jaxprs with other constants may share a jaxpr, whose equations are read once.
    read: set[int] = set()
    waiting = [program]
    while waiting:
        program = waiting.pop()
        yield program
        jaxpr = opened(program)
        if id(jaxpr) in read:
            continue
        read.add(id(jaxpr))
        equations = jaxpr.eqns if equations_of is None else equations_of(jaxpr)
        inner = [part.program for part in subprograms_in(equations)]
        waiting += [subprogram for subprogram in reversed(inner) if id(subprogram) not in met]
        met.update(map(id, inner))


def all_equations(program: Program) -> Iterator[Equation]:
    """Yield the equations of a program and of the programs inside it, each once."""
    jaxprs = {id(jaxpr): jaxpr for jaxpr in map(opened, all_programs(program))}
    for jaxpr in jaxprs.values():
        yield from jaxpr.eqns


@once_per_program
def equation_count(jaxpr: Jaxpr) -> int:
    """Return the number of equations of a jaxpr and its subprograms, once for each call of them."""
    return sum(map(equation_count, subjaxprs(jaxpr)), len(jaxpr.eqns))
