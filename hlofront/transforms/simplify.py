"""Simplification of jaxprs: dead code removal, inlined calls and forwarded inputs."""

import operator
from collections.abc import Collection, Sequence

from hlofront.base.typing import ArrayLikes
from hlofront.core import rules
from hlofront.core.effects import no_effects
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, Literal, Value, Var
from hlofront.core.names import NameStack
from hlofront.core.primitive import Primitive
from hlofront.core.programs.liveness import live_and_read, variables_read
from hlofront.core.programs.program_cache import once_per_program
from hlofront.core.programs.subprograms import Subprogram, called_by, inputs_among
from hlofront.core.rule_checks import checked

# The result of a `simplify` rule: per operand of an equation, whether it is still used; and the
# smaller equation, or None if none of its results is used.
SmallerEquation = tuple[Sequence[bool], Equation | None]


def dead_code(
    jaxpr: Jaxpr, used_outputs: bool | Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """Return a jaxpr without dead code and unused inputs; equations with effects are kept.

    Programs in its equations lose unused inputs and outputs too, if the primitive has a `simplify`
    rule.

    Args:
      jaxpr: the program.
      used_outputs: per output, or for all, whether to keep it.
      instantiate: per input, or for all, whether to keep it even if it is unused.

    Returns:
      The smaller jaxpr, and per input whether it was kept.
    """
    if isinstance(used_outputs, bool):
        used_outputs = (used_outputs,) * len(jaxpr.outvars)
    if isinstance(instantiate, bool):
        instantiate = (instantiate,) * len(jaxpr.invars)
    outvars = [atom for atom, used in zip(jaxpr.outvars, used_outputs, strict=True) if used]
    equations, needed = live_and_read(jaxpr.eqns, outvars, simplified)
    stays = [var in needed or keep for var, keep in zip(jaxpr.invars, instantiate, strict=True)]
    effects = no_effects.union(*[equation.effects for equation in equations if equation.effects])
    smaller_jaxpr = jaxpr.replace(
        invars=[var for var, stay in zip(jaxpr.invars, stays, strict=True) if stay],
        outvars=outvars,
        eqns=equations,
        effects=effects,
        debug_info=jaxpr.origin,
    )
    smaller_jaxpr.live = smaller_jaxpr.eqns
    return smaller_jaxpr, stays


def simplified(equation: Equation, needed: set[Atom]) -> Equation | None:
    """Return an equation without its dead code and the results that are not in `needed`."""
    rule = rules.simplify.get(equation.primitive)
    if rule is None:
        return equation
    return rule([var in needed for var in equation.outvars], equation)[1]


def dce_jaxpr_consts(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool], list[bool]]:
    """Remove a jaxpr's dead code; return it, the flags of used constants, and of used inputs."""
    smaller, stays = dead_code(jaxpr, used_outputs, instantiate)
    read = variables_read(smaller.eqns, smaller.outvars)
    used = [var in read for var in smaller.constvars]
    constvars = [var for var, u in zip(smaller.constvars, used, strict=True) if u]
    return smaller.replace(constvars=constvars), used, stays


def dead_code_program(
    program: ClosedJaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """Return a closed jaxpr without dead code, and per input whether it was kept."""
    if not isinstance(instantiate, bool):
        instantiate = tuple(instantiate)
    smaller, stays = _smaller_program(program, tuple(used_outputs), instantiate)
    return smaller or program, stays


@once_per_program
def _smaller_program(
    program: ClosedJaxpr, used_outputs: tuple[bool, ...], instantiate: bool | tuple[bool, ...]
) -> tuple[ClosedJaxpr | None, tuple[bool, ...]]:
    """Return None for a program without dead code, since a cached value must not hold its key."""
    jaxpr, stays = dead_code(program.jaxpr, used_outputs, instantiate)
    if all(used_outputs) and all(stays) and _same_equations(jaxpr, program.jaxpr):
        program.jaxpr.live = program.jaxpr.eqns
        return None, tuple(stays)
    # The result is not checked: its equations were checked in the context in which they were
    # traced, such as inside shard_map, and dead code is also removed outside of that context.
    return _with_used_constants(jaxpr, program), tuple(stays)


def _same_equations(jaxpr: Jaxpr, other: Jaxpr) -> bool:
    return len(jaxpr.eqns) == len(other.eqns) and all(map(operator.is_, jaxpr.eqns, other.eqns))


def without_unused_constants(jaxpr: Jaxpr, program: ClosedJaxpr) -> ClosedJaxpr:
    """Close a jaxpr derived from `program` over the constants of the program that it reads."""
    return checked(_with_used_constants(jaxpr, program))


def _with_used_constants(jaxpr: Jaxpr, program: ClosedJaxpr) -> ClosedJaxpr:
    read = variables_read(jaxpr.eqns, jaxpr.outvars) if jaxpr.constvars else set[Var]()
    pairs = [
        (var, value)
        for var, value in zip(jaxpr.constvars, program.consts, strict=True)
        if var in read
    ]
    if len(pairs) != len(jaxpr.constvars):
        live = jaxpr.live
        jaxpr = jaxpr.replace(constvars=[var for var, _ in pairs])
        jaxpr.live = live
    return ClosedJaxpr(jaxpr, [value for _, value in pairs])


def forwarded(jaxpr: Jaxpr) -> list[int | None]:
    """Return per output the index of the input that it forwards, or None if it is computed."""
    indices = {var: index for index, var in enumerate(jaxpr.invars)}
    return [None if isinstance(atom, Literal) else indices.get(atom) for atom in jaxpr.outvars]


def constants_as_inputs(program: ClosedJaxpr) -> Jaxpr:
    """Return the jaxpr of a closed jaxpr with its constants as leading inputs."""
    jaxpr = program.jaxpr
    return jaxpr.replace(constvars=(), invars=(*jaxpr.constvars, *jaxpr.invars))


def inline_jaxpr(program: ClosedJaxpr) -> ClosedJaxpr:
    """Return a closed jaxpr in which plain calls are replaced by the called equations.

    A call is plain if its `subprograms` rule says "inlined", as for jitted functions; calls inside
    the called programs are replaced too.
    """
    if not any(map(_inlined_call, program.eqns)):
        return program
    return inline_calls(program.jaxpr, program.consts)


def inline_calls(
    jaxpr: Jaxpr,
    consts: ArrayLikes,
    only: Collection[Primitive] | None = None,
    also: Collection[Primitive] = (),
) -> ClosedJaxpr:
    """Return a closed jaxpr in which plain calls are inlined, at all depths.

    Args:
      jaxpr: the program.
      consts: the values of its constants.
      only: the primitives whose calls are inlined; None for all plain calls.
      also: further primitives whose calls are inlined, although they are more than plain calls.
    """
    constants: dict[Var, Value] = dict(zip(jaxpr.constvars, consts, strict=True))
    equations: list[Equation] = []
    names: dict[Atom, Atom] = {}

    def atom_of(atom: Atom) -> Atom:
        return atom if type(atom) is Literal else names.get(atom, atom)

    def write(inner: Jaxpr, scope: NameStack) -> None:
        for equation in inner.eqns:
            invars = [atom_of(atom) for atom in equation.invars]
            source_info = equation.source_info.inside(*scope)
            call = _inlined_call(equation, also)
            if call is None or (only is not None and equation.primitive not in only):
                outvars = [Var(var.aval) for var in equation.outvars]
                names.update(zip(equation.outvars, outvars, strict=True))
                equations.append(
                    equation.replace(invars=invars, outvars=outvars, source_info=source_info)
                )
                continue
            body = call.jaxpr
            for var, value in zip(body.constvars, call.consts, strict=True):
                constants[var] = value
                names[var] = var
            names.update(zip(body.invars, inputs_among(call, invars), strict=True))
            write(body, source_info.scopes)
            results = [atom_of(atom) for atom in body.outvars]
            names.update(zip(equation.outvars, results, strict=True))

    write(jaxpr, ())
    outvars = [atom_of(atom) for atom in jaxpr.outvars]
    inlined = Jaxpr(
        list(constants), jaxpr.invars, outvars, equations, jaxpr.effects, jaxpr.debug_info
    )
    return checked(ClosedJaxpr(inlined, list(constants.values())))


def _inlined_call(equation: Equation, also: Collection[Primitive] = ()) -> Subprogram | None:
    """Return the program that an equation calls, if it is a plain call or `also` has it."""
    call = called_by(equation)
    if call is None or (call.role != "inlined" and equation.primitive not in also):
        return None
    return call
