"""Partial evaluation: splitting a jaxpr into a known part and an unknown part."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from hlofront.core import rules
from hlofront.core.effects import no_effects
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, Literal, Value, Var
from hlofront.core.programs.liveness import live_equations, variables_read
from hlofront.core.programs.program_cache import once_per_program
from hlofront.core.references import touches_references
from hlofront.core.rule_checks import checked
from hlofront.transforms.simplify import dead_code_program, simplified

# The result of a `partial_eval` rule: the known equations, the unknown equation or None, per
# result whether it is unknown, and the known values that the unknown equation reads.
SplitEquation = tuple[
    Equation | Sequence[Equation] | None, Equation | None, Sequence[bool], Sequence[Atom]
]


@dataclasses.dataclass(slots=True, eq=False)
class PartialEval:
    """A program split by partial evaluation into a known and an unknown part.

    The known part maps known inputs to (*known outputs, *residuals); the unknown part maps
    (*residuals, *unknown inputs) to unknown outputs.
    """

    known: ClosedJaxpr
    unknown: ClosedJaxpr
    # Per output of the whole program, whether it is unknown.
    unknown_out: tuple[bool, ...]
    # Per residual: its index n among the known part's outputs, or ~n for its input n.
    residuals: tuple[int, ...]


def partial_eval_program(
    program: ClosedJaxpr,
    unknown: Sequence[bool],
    instantiate: bool | Sequence[bool] = False,
) -> PartialEval:
    """Split a closed jaxpr into a known and an unknown part; cached per program.

    Args:
      program: the closed jaxpr.
      unknown: per input, whether it is unknown.
      instantiate: per output, or for all, whether the unknown part computes it in any case.
    """
    if isinstance(instantiate, bool):
        instantiate = (instantiate,) * len(program.jaxpr.outvars)
    return _partial_eval(program, tuple(unknown), tuple(instantiate))


def split_equations(jaxpr: Jaxpr, unknown: set[Var]) -> tuple[list[Equation], list[Equation]]:
    """Return the known and the unknown equations of a jaxpr; add unknown results to `unknown`."""
    if not touches_references(jaxpr.effects):
        return _split_once(jaxpr, unknown)
    made = {v for e in jaxpr.eqns if e.primitive.ref_allocating for v in e.outvars}
    while True:
        results = set(unknown)
        known_equations, unknown_equations = _split_once(jaxpr, results)
        # A reference that the unknown part uses is unknown from the start.
        used = made & variables_read(unknown_equations, ())
        if used <= unknown:
            unknown |= results
            return known_equations, unknown_equations
        unknown |= used


def _split_once(jaxpr: Jaxpr, unknown: set[Var]) -> tuple[list[Equation], list[Equation]]:
    known_equations: list[Equation] = []
    unknown_equations: list[Equation] = []
    # Dead equations are dropped, and need no partial evaluation rules.
    for equation in live_equations(jaxpr.eqns, jaxpr.outvars):
        flags = [type(atom) is not Literal and atom in unknown for atom in equation.invars]
        if not any(flags) and not (
            equation.primitive.ref_allocating and not unknown.isdisjoint(equation.outvars)
        ):
            known_equations.append(equation)
            continue
        rule = rules.partial_eval.get(equation.primitive)
        if rule is None or (all(flags) and not equation.effects):
            unknown_equations.append(equation)
            unknown.update(equation.outvars)
            continue
        known, unknown_equation, unknown_out, _ = rule(flags, equation)
        known_equations += listed(known)
        if unknown_equation is not None:
            unknown_equations.append(unknown_equation)
        unknown.update(
            var for var, is_unknown in zip(equation.outvars, unknown_out, strict=True) if is_unknown
        )
    return known_equations, unknown_equations


def listed(known: Equation | Sequence[Equation] | None) -> Sequence[Equation]:
    """Return the known equations of a `partial_eval` rule's result as a sequence."""
    if known is None:
        return ()
    return (known,) if isinstance(known, Equation) else known


@once_per_program
def _partial_eval(
    program: ClosedJaxpr, unknown: tuple[bool, ...], instantiate: tuple[bool, ...]
) -> PartialEval:
    jaxpr = program.jaxpr
    depends = {var for var, u in zip(jaxpr.invars, unknown, strict=True) if u}
    known_equations, unknown_equations = split_equations(jaxpr, depends)
    unknown_out = tuple(
        force or (type(atom) is not Literal and atom in depends)
        for atom, force in zip(jaxpr.outvars, instantiate, strict=True)
    )
    known_outputs: list[Atom] = [
        atom for atom, u in zip(jaxpr.outvars, unknown_out, strict=True) if not u
    ]
    unknown_outputs = [atom for atom, u in zip(jaxpr.outvars, unknown_out, strict=True) if u]
    unknown_equations = live_equations(unknown_equations, unknown_outputs, simplified)
    # Variables that the unknown part reads and does not define, in the order of use.
    made = {var for equation in unknown_equations for var in equation.outvars}
    unknown_inputs = [var for var, u in zip(jaxpr.invars, unknown, strict=True) if u]
    own = {*made, *unknown_inputs}
    constants = dict(zip(jaxpr.constvars, program.consts, strict=True))
    residuals: dict[Any, None] = {}
    for atom in (*(a for e in unknown_equations for a in e.invars), *unknown_outputs):
        if type(atom) is not Literal and atom not in own and atom not in constants:
            residuals[atom] = None
    known_inputs = [var for var, u in zip(jaxpr.invars, unknown, strict=True) if not u]
    numbers: dict[Atom, int] = {}
    for number, atom in enumerate(known_outputs):
        if type(atom) is not Literal:
            numbers.setdefault(atom, number)
    numbers.update((var, ~number) for number, var in enumerate(known_inputs))
    sources: list[int] = []
    for var in residuals:
        if var not in numbers:
            numbers[var] = len(known_outputs)
            known_outputs.append(var)
        sources.append(numbers[var])
    known_equations = live_equations(known_equations, known_outputs)
    known = closed_part(constants, known_inputs, known_outputs, known_equations, jaxpr)
    return PartialEval(
        dead_code_program(known, (True,) * len(known_outputs), instantiate=True)[0],
        closed_part(
            constants, [*residuals, *unknown_inputs], unknown_outputs, unknown_equations, jaxpr
        ),
        unknown_out,
        tuple(sources),
    )


def closed_part(
    constants: dict[Var, Value],
    inputs: Sequence[Var],
    outputs: Sequence[Atom],
    equations: Sequence[Equation],
    like: Jaxpr,
) -> ClosedJaxpr:
    """Return a closed jaxpr of equations, with the constants that it reads."""
    read = variables_read(equations, outputs)
    used = {var: value for var, value in constants.items() if var in read}
    effects = no_effects.union(*(equation.effects for equation in equations))
    jaxpr = Jaxpr(list(used), inputs, outputs, equations, effects, like.origin)
    return checked(ClosedJaxpr(jaxpr, list(used.values())))
