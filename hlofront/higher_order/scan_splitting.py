"""The splitting of scan by what is known: what is collected for the rest, and what is hoisted."""

from collections.abc import Callable, Sequence
from typing import Any, Generic

from hlofront.core import rules
from hlofront.core.derived import DerivedCache, Key, Value
from hlofront.core.effects import no_effects
from hlofront.core.jaxpr import ClosedJaxpr, Equation, Jaxpr, Literal, Var
from hlofront.core.liveness import live_equations
from hlofront.higher_order.jit_call import closed_call_p
from hlofront.higher_order.scan import scan_p, stacked
from hlofront.transforms.partial_eval import PartialEval, listed, partial_eval_program
from hlofront.transforms.simplify import inline_calls

Flags = tuple[bool, ...]
Params = dict[str, Any]


def parts(members: Sequence[Any], consts: int, carry: int) -> tuple[Any, Any, Any]:
    """Split values into those of the constants, of the carry and of `xs`."""
    return members[:consts], members[consts : consts + carry], members[consts + carry :]


def operand_parts(members: Sequence[Any], params: Params) -> tuple[Any, Any, Any]:
    return parts(members, params["num_consts"], params["num_carry"])


def where(members: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    return [member for member, flag in zip(members, flags, strict=True) if flag]


def where_not(members: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    return [member for member, flag in zip(members, flags, strict=True) if not flag]


class StepCache(Generic[Key, Value]):
    """A cache of one kind of value that is derived from the program of one step of a scan."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        # By how many inputs are constants, how many are the carry, and a key.
        self._values: DerivedCache[tuple[int, int, Key], Value] = DerivedCache()

    def get_or_compute(self, params: Params, key: Key, compute: Callable[[], Value]) -> Value:
        """Return the value of a scan with these parameters and a key, computed the first time."""
        own_key = (params["num_consts"], params["num_carry"], key)
        return self._values.get_or_compute(params["jaxpr"], own_key, compute)


_splits: "StepCache[Flags, _Split]" = StepCache()


@rules.partial_eval(scan_p)
def _(unknown, equation):
    params = equation.params
    flags = tuple(unknown)
    split = _splits.get_or_compute(params, flags, lambda: _Split(params, flags))
    consts, _, xs = operand_parts(flags, params)
    carry = split.carry
    given = where_not(equation.invars, (*consts, *carry, *xs))
    values = dict(zip(split.inputs, given, strict=True))
    equations: list[Equation] = []
    for hoisted in split.hoisted:
        outvars = [Var(var.aval) for var in hoisted.outvars]
        equations.append(
            hoisted.replace(
                invars=[a if type(a) is Literal else values[a] for a in hoisted.invars],
                outvars=outvars,
                name_stack=(*equation.name_stack, *hoisted.name_stack),
            )
        )
        values.update(zip(hoisted.outvars, outvars, strict=True))
    results = where_not(equation.outvars, split.unknown_out)
    results += [Var(stacked(var.aval, params["length"])) for var in split.collected]
    if results or split.known.effects:
        invars = [*[values[var] for var in split.made], *given]
        fixed = len(split.made) + consts.count(False)
        equations.append(
            scan_equation(equation, split.known, invars, results, fixed, carry.count(False))
        )
    handed = [results[p] if p is not None else values[v] for v, p in split.residuals]
    same, stepwise = where(handed, split.same), where_not(handed, split.same)
    rest = None
    if any(split.unknown_out) or split.rest.effects:
        own_consts, own_carry, own_xs = operand_parts(equation.invars, params)
        own_consts = [*same, *where(own_consts, consts)]
        invars = [*own_consts, *where(own_carry, carry), *stepwise, *where(own_xs, xs)]
        outvars = where(equation.outvars, split.unknown_out)
        rest = scan_equation(
            equation, split.rest, invars, outvars, len(own_consts), carry.count(True)
        )
    return equations, rest, split.unknown_out, handed


def scan_equation(
    equation: Equation,
    program: ClosedJaxpr,
    invars: Sequence[Any],
    outvars: Sequence[Any],
    num_consts: int,
    num_carry: int,
) -> Equation:
    """An equation like that one, with another program."""
    new = {"jaxpr": program, "num_consts": num_consts, "num_carry": num_carry}
    params = {**equation.params, **new}
    return equation.replace(invars=invars, outvars=outvars, params=params, effects=program.effects)


class _Split:
    """A step in two: what known values decide, and the rest.

    What the rest needs of the first is handed over once where it is the same in all steps, and
    collected from each step otherwise. What is the same in all steps is computed before the loop
    if it is handed over.
    """

    __slots__ = (
        "carry",
        "collected",
        "hoisted",
        "inputs",
        "known",
        "made",
        "residuals",
        "rest",
        "same",
        "unknown_out",
    )

    def __init__(self, params: Params, unknown: Flags):
        program, count = params["jaxpr"], params["num_carry"]
        consts, carry, xs = operand_parts(unknown, params)
        collected = len(program.out_avals) - count
        while True:
            split = partial_eval_program(
                program, (*consts, *carry, *xs), (*carry, *[False] * collected)
            )
            if split.unknown_out[:count] == carry:
                break
            carry = split.unknown_out[:count]
        # Per member of the carry, and per result, whether it is unknown.
        self.carry: Flags = carry
        self.unknown_out: Flags = split.unknown_out
        self._known_part(split, consts.count(False), carry.count(False))
        # The rest, its operands in the order that a scan wants.
        jaxpr = split.unknown.jaxpr
        residuals = jaxpr.invars[: len(self.same)]
        own = parts(jaxpr.invars[len(self.same) :], consts.count(True), carry.count(True))
        ordered = [*where(residuals, self.same), *own[0], *own[1]]
        ordered += [*where_not(residuals, self.same), *own[2]]
        self.rest = ClosedJaxpr(jaxpr.replace(invars=ordered))

    def _known_part(self, split: PartialEval, consts: int, carry: int) -> None:
        jaxpr = split.known.jaxpr
        if any(equation.primitive is closed_call_p for equation in jaxpr.eqns):
            inlined = inline_calls(jaxpr, (), only=(closed_call_p,))
            jaxpr = jaxpr if inlined.consts else inlined.jaxpr
        inputs = self.inputs = jaxpr.invars
        outputs = jaxpr.outvars[: split.unknown_out.count(False)]
        fixed, stepwise, varying = _by_step(jaxpr, consts, carry)
        x_inputs = set(inputs[consts + carry :])
        places = {
            atom: place
            for place, atom in enumerate(outputs)
            if place >= carry and type(atom) is not Literal
        }
        # Per residual, whether it is the same in all steps; and its variable, with its place among
        # the results of the known scan where it is one of them.
        self.same: list[bool] = []
        self.residuals: list[tuple[Var, int | None]] = []
        # What the known scan collects for the rest alone.
        self.collected: list[Var] = []
        for source in split.residuals:
            var: Any = jaxpr.outvars[source] if source >= 0 else inputs[~source]
            self.same.append(var not in varying)
            if var not in varying or var in x_inputs:
                self.residuals.append((var, None))
                continue
            if var not in places:
                places[var] = len(outputs) + len(self.collected)
                self.collected.append(var)
            self.residuals.append((var, places[var]))
        handed = [var for var, same in zip(self.residuals, self.same, strict=True) if same]
        self.hoisted = live_equations(fixed, [var for var, _ in handed])
        done = {id(equation) for equation in self.hoisted}
        results = [*outputs, *self.collected]
        kept = live_equations([e for e in (*fixed, *stepwise) if id(e) not in done], results)
        read = {atom for e in kept for atom in e.invars if type(atom) is not Literal}
        read.update(atom for atom in results if type(atom) is not Literal)
        # What was computed before the loop and is read in it.
        self.made = [var for e in self.hoisted for var in e.outvars if var in read]
        effects = no_effects.union(*(equation.effects for equation in kept))
        self.known = ClosedJaxpr(
            Jaxpr((), [*self.made, *inputs], results, kept, effects, jaxpr.origin)
        )


def _by_step(
    jaxpr: Jaxpr, consts: int, carry: int
) -> tuple[list[Equation], list[Equation], set[Any]]:
    """The equations that are the same in all steps, the others, and the variables that vary."""
    fixed: list[Equation] = []
    stepwise: list[Equation] = []
    _, carried, xs = parts(jaxpr.invars, consts, carry)
    varying: set[Any] = set(xs)
    varying.update(var for var, out in zip(carried, jaxpr.outvars, strict=False) if var is not out)
    for equation in jaxpr.eqns:
        flags = [type(atom) is not Literal and atom in varying for atom in equation.invars]
        rule = rules.partial_eval.get(equation.primitive)
        if equation.effects or (all(flags) and flags):
            unknown_out: Sequence[bool] = [True] * len(equation.outvars)
            stepwise.append(equation)
        elif not any(flags):
            fixed.append(equation)
            continue
        elif rule is None:
            unknown_out = [True] * len(equation.outvars)
            stepwise.append(equation)
        else:
            known, rest, unknown_out, _ = rule(flags, equation)
            if all(unknown_out):
                stepwise.append(equation)
            else:
                fixed += listed(known)
                stepwise += listed(rest)
        varying.update(where(equation.outvars, unknown_out))
    return fixed, stepwise, varying
