"""A checker of the type rules of jaxprs, which reports where they are broken."""

# Parameters, literals and users' shapes may be anything, so their types stay unknown here.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any

from hlofront.base import show, source
from hlofront.base.errors import JaxprTypeError, NoRuleError
from hlofront.bridge import state
from hlofront.core import rules
from hlofront.core.aval import AbstractValue, ShapedArray, typeof
from hlofront.core.effects import Effects, no_effects
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, Literal, Var
from hlofront.core.primitive import Primitive
from hlofront.core.programs.print import Printing
from hlofront.core.programs.subprograms import (
    Subprogram,
    contexts_of_programs,
    is_program,
    subprograms_of,
)
from hlofront.core.sharding.sharded_types import infer_types


def check_jaxpr(jaxpr: Jaxpr | ClosedJaxpr) -> None:
    """Raise an error unless a jaxpr and its subprograms satisfy the type rules.

    Every variable is bound once, before it is used; every equation has results of the types and
    effects that the rules of its primitive infer from its operands (results may differ from these
    only in weak types); and a jaxpr has all the effects of its equations.

    Raises:
      JaxprTypeError: with the broken rule, the equation and the program.
    """
    _check_program(jaxpr, set())


# Primitive -> a further check of its equations, which raises JaxprTypeError: a function of a maker
# of printing contexts, the operands and the parameters.
custom_typechecks: dict[Primitive, Callable[..., object]] = {}


class _Broken(Exception):
    """An exception for a broken type rule, raised to the function that knows the program.

    The message may have a gap, `{}`, for the printed name of the variable.
    """

    def __init__(self, message: str, equation: Equation | None, variable: Var | None = None):
        super().__init__(message)
        self.message = message
        self.equation = equation
        self.variable = variable


def _check_program(program: Jaxpr | ClosedJaxpr, checked: set[Hashable]) -> None:
    jaxpr = program.jaxpr if isinstance(program, ClosedJaxpr) else program
    key = id(jaxpr), state.trace_context()
    if key not in checked:
        try:
            _check_equations(jaxpr, checked)
        except _Broken as broken:
            raise JaxprTypeError(_report(jaxpr, broken)) from broken.__cause__
        checked.add(key)
    if isinstance(program, ClosedJaxpr):
        for var, value in zip(jaxpr.constvars, program.consts, strict=True):
            if not types_match(var.aval, typeof(value)):
                broken = _Broken(
                    f"A value of type {_type(typeof(value))} is given for the constant '{{}}' of "
                    f"type {_type(var.aval)}",
                    None,
                    var,
                )
                raise JaxprTypeError(_report(jaxpr, broken))


def _check_equations(jaxpr: Jaxpr, checked: set[Hashable]) -> None:
    bound: set[Var] = set()
    _bind((*jaxpr.constvars, *jaxpr.invars), bound, None)
    for equation in jaxpr.eqns:
        _need_bound(equation.invars, bound, equation)
        _check_inner_programs(equation, checked)
        _check_call(equation)
        own_check = custom_typechecks.get(equation.primitive)
        if own_check is not None:
            own_check(dict, *equation.invars, **equation.params)
        _check_results(equation)
        missing = equation.effects - jaxpr.effects
        if missing:
            raise _Broken(
                f"The program lacks effects of its equation: {_effect_names(missing)}", equation
            )
        _bind(equation.outvars, bound, equation)
    _need_bound(jaxpr.outvars, bound, None)


def _bind(variables: Iterable[Var], bound: set[Var], equation: Equation | None) -> None:
    for var in variables:
        if var in bound:
            raise _Broken("Variable '{}' already bound", equation, var)
        bound.add(var)


def _need_bound(atoms: Iterable[Atom], bound: set[Var], equation: Equation | None) -> None:
    for atom in atoms:
        if not isinstance(atom, Literal) and atom not in bound:
            raise _Broken("Variable '{}' not defined", equation, atom)


def _check_inner_programs(equation: Equation, checked: set[Hashable]) -> None:
    parts = [part for part in _parts(equation) if is_program(part.program)]
    if not parts:
        return
    context = contexts_of_programs.get(equation.primitive)
    for part in parts:
        try:
            with nullcontext() if context is None else context(**equation.params):
                _check_program(part.program, checked)
        except JaxprTypeError as error:
            raise JaxprTypeError(
                f"{error}\n\nwhich is the parameter '{part.parameter}' of {equation.primitive}, "
                f"from source: {source.summarize(equation.traceback)}"
            ) from error.__cause__


def _check_call(equation: Equation) -> None:
    for part in _parts(equation):
        if part.is_call:
            _check_operands(equation, part)


def _parts(equation: Equation) -> Sequence[Subprogram]:
    """Return the subprograms of an equation, valid or not; none if its rule raises an error."""
    rule = rules.subprograms.get(equation.primitive)
    if rule is None:
        return subprograms_of(equation)
    try:
        return rule(**equation.params)
    except Exception:
        # The infer rule reports which parameters are invalid.
        return ()


def _check_operands(equation: Equation, part: Subprogram) -> None:
    if not is_program(part.program):
        raise _Broken(
            f"Call primitive {equation.primitive} has no jaxpr to call: its parameter "
            f"'{part.parameter}' is {source.shortened(repr(part.program))}",
            equation,
        )
    avals = part.jaxpr.in_avals
    operands = part.operands or ()
    passes_all = operands == range(len(avals))
    if max(operands, default=-1) >= len(equation.invars) or (
        passes_all and len(avals) != len(equation.invars)
    ):
        raise _Broken(
            f"Call primitive {equation.primitive} with {len(equation.invars)} operands cannot "
            f"call jaxpr with {len(avals)} inputs",
            equation,
        )
    for number, aval in zip(operands, avals, strict=True):
        atom = equation.invars[number]
        if not types_match(atom.aval, aval):
            raise _Broken(
                f"Call primitive {equation.primitive} passes operand {number} of type "
                f"{_type(atom.aval)} to a jaxpr whose input has type {_type(aval)}",
                equation,
            )


def _check_results(equation: Equation) -> None:
    primitive, params = equation.primitive, equation.params
    avals = [atom.aval for atom in equation.invars]
    try:
        inferred: Any = infer_types(primitive, avals, params)
        effects: Effects = (
            rules.effects[primitive](*avals, **params) if primitive in rules.effects else no_effects
        )
    except NoRuleError:
        raise
    except Exception as error:
        # Infer rules raise the errors of a wrong call by users: TypeError, ValueError, ...
        raise _Broken(
            f"Operands and parameters that {primitive} refuses: {error}", equation
        ) from error
    results = inferred if primitive.multiple_results else [inferred]
    if len(results) != len(equation.outvars):
        raise _Broken(
            f"The equation binds {len(equation.outvars)} variables to the {len(results)} results "
            f"of {primitive}",
            equation,
        )
    for var, aval in zip(equation.outvars, results, strict=True):
        if not types_match(var.aval, aval):
            raise _Broken(
                f"Value for variable '{{}}' inconsistently typed as {_type(aval)} for let-binder "
                f"of type {_type(var.aval)}",
                equation,
                var,
            )
    if frozenset(effects) != frozenset(equation.effects):
        raise _Broken(
            f"The equation says that its effects are {_effect_names(equation.effects)}, and those "
            f"of {primitive} are {_effect_names(effects)}",
            equation,
        )


def types_match(a: AbstractValue, b: AbstractValue) -> bool:
    """Return whether two avals are equal except for their weak types."""
    if isinstance(a, ShapedArray) and isinstance(b, ShapedArray):
        return a.strip_weak_type() == b.strip_weak_type()
    return a == b


# ---- messages --------------------------------------------------------------------------------


def _type(aval: AbstractValue) -> str:
    return aval.str_short(True)


def _effect_names(effects: Effects) -> str:
    return f"{{{', '.join(sorted(map(str, effects)))}}}"


def _report(jaxpr: Jaxpr, broken: _Broken) -> str:
    printing = Printing()
    program = show.render(printing.whole_program(jaxpr)).split("\n")
    message, equation = broken.message, broken.equation
    if broken.variable is not None:
        message = message.replace("{}", printing.name(broken.variable))
    if equation is None:
        return f"{message}\n\nwhile checking jaxpr:\n\n{_lines_around(program, len(program) - 1)}"
    text = show.render(printing.equation(equation)).split("\n")
    line_number = next((n for n, line in enumerate(program) if line.strip() == text[0].strip()), 0)
    return (
        f"{message}\n\nin equation:\n\n{_lines_around(text, 0)}\n\n"
        f"from source: {source.summarize(equation.traceback)}\n\n"
        f"while checking jaxpr:\n\n{_lines_around(program, line_number)}"
    )


# With this limit, an error with the equation and its source line fits one screen.
_LINES_AROUND = 8


def _lines_around(lines: list[str], middle: int) -> str:
    start = max(0, middle - _LINES_AROUND)
    stop = middle + _LINES_AROUND + 1
    before = [f"... {start} more lines ..."] if start else []
    after = [f"... {len(lines) - stop} more lines ..."] if stop < len(lines) else []
    return "\n".join([*before, *lines[start:stop], *after])
