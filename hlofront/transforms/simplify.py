"""Programs made smaller, with the same results: dead code, inlined calls, forwarded inputs."""

from collections.abc import Sequence
from typing import Any

from hlofront.core import rules
from hlofront.core.derived import once_per_program
from hlofront.core.effects import no_effects
from hlofront.core.jaxpr import ClosedJaxpr, DropVar, Equation, Jaxpr, Literal, Var
from hlofront.core.names import NameStack
from hlofront.core.primitive import ALL
from hlofront.core.rule_checks import checked


def dead_code(
    jaxpr: Jaxpr, used_outputs: bool | Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """A program of these outputs alone, without what they do not depend on; effects stay.

    Programs inside of it lose their unused inputs and outputs too, where their operation has a
    `simplify` rule.

    Args:
      used_outputs: per output, whether it stays.
      instantiate: per input, whether it stays even where it is not used.

    Returns:
      The program, and per input whether it stayed.
    """
    if isinstance(used_outputs, bool):
        used_outputs = (used_outputs,) * len(jaxpr.outvars)
    if isinstance(instantiate, bool):
        instantiate = (instantiate,) * len(jaxpr.invars)
    outvars = [atom for atom, used in zip(jaxpr.outvars, used_outputs, strict=True) if used]
    needed = {atom for atom in outvars if type(atom) is not Literal}
    kept: list[Equation] = []
    for equation in reversed(jaxpr.eqns):
        used = [var in needed for var in equation.outvars]
        rule = rules.simplify.get(equation.primitive)
        if rule is not None and not all(used):
            _, smaller = rule(used, equation)
        else:
            smaller = equation if any(used) or equation.effects else None
        if smaller is None:
            continue
        kept.append(smaller)
        needed.update(atom for atom in smaller.invars if type(atom) is not Literal)
    kept.reverse()
    stays = [var in needed or keep for var, keep in zip(jaxpr.invars, instantiate, strict=True)]
    effects = no_effects.union(*(equation.effects for equation in kept))
    smaller_jaxpr = jaxpr.replace(
        invars=[var for var, stay in zip(jaxpr.invars, stays, strict=True) if stay],
        outvars=outvars,
        eqns=kept,
        effects=effects,
        debug_info=jaxpr.origin,
    )
    return smaller_jaxpr, stays


def dce_jaxpr_consts(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool], list[bool]]:
    """As `dead_code`, and per constant whether it stayed."""
    smaller, stays = dead_code(jaxpr, used_outputs, instantiate)
    read = {atom for e in smaller.eqns for atom in e.invars if type(atom) is not Literal}
    read.update(atom for atom in smaller.outvars if type(atom) is not Literal)
    used = [var in read for var in smaller.constvars]
    kept = [var for var, u in zip(smaller.constvars, used, strict=True) if u]
    return smaller.replace(constvars=kept), used, stays


def dead_code_program(
    program: ClosedJaxpr, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """Apply `dead_code` to a program with its constants, once; unused constants go too."""
    if not isinstance(instantiate, bool):
        instantiate = tuple(instantiate)
    return _dead_code_program(program, tuple(used_outputs), instantiate)


@once_per_program
def _dead_code_program(
    program: ClosedJaxpr, used_outputs: tuple[bool, ...], instantiate: bool | tuple[bool, ...]
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    jaxpr, stays = dead_code(program.jaxpr, used_outputs, instantiate)
    return without_unused_constants(jaxpr, program), tuple(stays)


def without_unused_constants(jaxpr: Jaxpr, program: ClosedJaxpr) -> ClosedJaxpr:
    """The program with those of its constants that the jaxpr, made from it, still reads."""
    read = {atom for e in jaxpr.eqns for atom in e.invars if type(atom) is not Literal}
    read.update(atom for atom in jaxpr.outvars if type(atom) is not Literal)
    pairs = [
        (var, value)
        for var, value in zip(jaxpr.constvars, program.consts, strict=True)
        if var in read
    ]
    if len(pairs) != len(jaxpr.constvars):
        jaxpr = jaxpr.replace(constvars=[var for var, _ in pairs])
    return checked(ClosedJaxpr(jaxpr, [value for _, value in pairs]))


def forwarded(jaxpr: Jaxpr) -> list[int | None]:
    """Per output the place of the input that it is, or None where it is computed."""
    places = {var: place for place, var in enumerate(jaxpr.invars)}
    return [None if type(atom) is Literal else places.get(atom) for atom in jaxpr.outvars]


def constants_as_inputs(program: ClosedJaxpr) -> Jaxpr:
    """The program with its constants as its first inputs."""
    jaxpr = program.jaxpr
    return jaxpr.replace(constvars=(), invars=(*jaxpr.constvars, *jaxpr.invars))


def inputs_as_constants(jaxpr: Jaxpr, values: Sequence[Any]) -> ClosedJaxpr:
    """The program with its first inputs as constants of these values."""
    count = len(values)
    return ClosedJaxpr(
        jaxpr.replace(
            constvars=(*jaxpr.constvars, *jaxpr.invars[:count]), invars=jaxpr.invars[count:]
        ),
        values,
    )


def drop_unused(outvars: Sequence[Var], used: Sequence[bool]) -> list[Var]:
    """Results with those that are not used replaced by what prints as `_`."""
    return [var if u else DropVar(var.aval) for var, u in zip(outvars, used, strict=True)]


def inline_calls(jaxpr: Jaxpr, consts: Sequence[Any], called: dict[Any, str]) -> ClosedJaxpr:
    """A program in which calls are replaced by the equations of what they call, at any depth.

    Args:
      called: primitives that hand all operands as they are to the program in the parameter named.
    """
    constants: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    equations: list[Equation] = []
    names: dict[Any, Any] = {}

    def atom_of(atom: Any) -> Any:
        return atom if type(atom) is Literal else names.get(atom, atom)

    def write(inner: Jaxpr, scope: NameStack) -> None:
        for equation in inner.eqns:
            invars = [atom_of(atom) for atom in equation.invars]
            stack = (*scope, *equation.name_stack)
            parameter = called.get(equation.primitive)
            if parameter is None:
                outvars = [Var(var.aval) for var in equation.outvars]
                names.update(zip(equation.outvars, outvars, strict=True))
                equations.append(equation.replace(invars=invars, outvars=outvars, name_stack=stack))
                continue
            program = equation.params[parameter]
            body, own = (
                (program.jaxpr, program.consts)
                if isinstance(program, ClosedJaxpr)
                else (program, ())
            )
            for var, value in zip(body.constvars, own, strict=True):
                constants[var] = value
                names[var] = var
            names.update(zip(body.invars, invars, strict=True))
            write(body, stack)
            results = [atom_of(atom) for atom in body.outvars]
            names.update(zip(equation.outvars, results, strict=True))

    write(jaxpr, ())
    outvars = [atom_of(atom) for atom in jaxpr.outvars]
    inlined = Jaxpr(
        *(list(constants), jaxpr.invars, outvars, equations, jaxpr.effects, jaxpr.debug_info)
    )
    return checked(ClosedJaxpr(inlined, list(constants.values())))


def inline_jaxpr(program: ClosedJaxpr) -> ClosedJaxpr:
    """The program with the equations of jitted functions in the place of their calls."""
    called = {ALL[name]: parameter for name, parameter in _CALLS.items() if name in ALL}
    return inline_calls(program.jaxpr, program.consts, called)


# Operations that only call: by name, as their definitions use this file.
_CALLS = {"jit": "jaxpr", "closed_call": "call_jaxpr"}
