"""The splitting of scan by what is known: what is collected for the rest, and what is hoisted."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic

from hlofront.core import rules
from hlofront.core.derived import DerivedCache, Key, Value
from hlofront.core.effects import no_effects
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, ParamDict, Var
from hlofront.core.liveness import live_equations, variables_read
from hlofront.higher_order.jit_call import closed_call_p
from hlofront.higher_order.scan import scan_p, stacked_variable
from hlofront.higher_order.selecting import Flags, Member, Parts, three_parts, where, where_not
from hlofront.transforms.partial_eval import (
    PartialEval,
    SplitEquation,
    listed,
    partial_eval_program,
)
from hlofront.transforms.simplify import inline_calls


def operand_parts(members: Iterable[Member], params: ParamDict) -> Parts[Member]:
    """Split the members for the operands of a scan into those for constants, carry and `xs`."""
    return three_parts(members, params["num_consts"], params["num_carry"])


class StepCache(Generic[Key, Value]):
    """A cache of one kind of value that is derived from the program of one step of a scan."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        # By how many inputs are constants, how many are the carry, and a key.
        self._values: DerivedCache[tuple[int, int, Key], Value] = DerivedCache()

    def get_or_compute(self, params: ParamDict, key: Key, compute: Callable[[], Value]) -> Value:
        """Return the value of a scan with these parameters and a key, computed the first time."""
        own_key = (params["num_consts"], params["num_carry"], key)
        return self._values.get_or_compute(params["jaxpr"], own_key, compute)


_splits: "StepCache[Flags, _Split]" = StepCache()


@rules.partial_eval(scan_p)
def _(unknown: list[bool], equation: Equation) -> SplitEquation:
    params = equation.params
    flags = tuple(unknown)
    split = _splits.get_or_compute(params, flags, lambda: _Split(params, flags))
    consts, _, xs = operand_parts(flags, params)
    carry = split.carry
    known_inputs = where_not(equation.invars, (*consts, *carry, *xs))
    values: dict[Var, Atom] = dict(zip(split.inputs, known_inputs, strict=True))

    def value_of(atom: Atom) -> Atom:
        return values[atom] if isinstance(atom, Var) else atom

    equations: list[Equation] = []
    for hoisted in split.hoisted:
        outvars = [Var(var.aval) for var in hoisted.outvars]
        equations.append(
            hoisted.replace(
                invars=list(map(value_of, hoisted.invars)),
                outvars=outvars,
                name_stack=(*equation.name_stack, *hoisted.name_stack),
            )
        )
        values.update(zip(hoisted.outvars, outvars, strict=True))
    results = where_not(equation.outvars, split.unknown_out)
    results += [stacked_variable(var, params["length"]) for var in split.collected]
    if results or split.known.effects:
        invars = [*[values[var] for var in split.read_in_loop], *known_inputs]
        fixed = len(split.read_in_loop) + consts.count(False)
        equations.append(
            scan_equation(equation, split.known, invars, results, fixed, carry.count(False))
        )
    residuals = [
        value_of(r.atom) if r.result is None else results[r.result] for r in split.residuals
    ]
    same = [r.same for r in split.residuals]
    rest = None
    if any(split.unknown_out) or split.rest.effects:
        own_consts, own_carry, own_xs = operand_parts(equation.invars, params)
        new_consts = [*where(residuals, same), *where(own_consts, consts)]
        invars = [
            *new_consts,
            *where(own_carry, carry),
            *where_not(residuals, same),
            *where(own_xs, xs),
        ]
        outvars = where(equation.outvars, split.unknown_out)
        rest = scan_equation(
            equation, split.rest, invars, outvars, len(new_consts), carry.count(True)
        )
    return equations, rest, split.unknown_out, residuals


def scan_equation(
    equation: Equation,
    program: ClosedJaxpr,
    invars: Sequence[Atom],
    outvars: Sequence[Var],
    num_consts: int,
    num_carry: int,
) -> Equation:
    """Return the equation of a scan with another program, and the operands and results of that."""
    new = {"jaxpr": program, "num_consts": num_consts, "num_carry": num_carry}
    params = {**equation.params, **new}
    return equation.replace(invars=invars, outvars=outvars, params=params, effects=program.effects)


@dataclass(frozen=True, slots=True)
class _Residual:
    """A value that the unknown part of a scan reads of the known part.

    Attributes:
      atom: its variable in the known part of one step, or a literal.
      same: whether it is the same in all steps.
      result: the index of the result of the known scan that it is; None if it is no result.
    """

    atom: Atom
    same: bool
    result: int | None


class _Split:
    """One step of a scan, split into a program of what is known and one of the rest.

    A residual is passed to the second program once if it is the same in all steps, and collected
    from each step otherwise. What is the same in all steps is computed before the loop if it is a
    residual.

    Attributes:
      carry: per member of the carry, whether it is unknown.
      unknown_out: per result, whether it is unknown.
      inputs: the inputs of the known part.
      hoisted: the equations that are computed before the loop.
      read_in_loop: the variables that are computed before the known loop and read in it.
      known: the known part of one step: the variables of `read_in_loop`, then the known inputs.
      residuals: what the rest reads of the known part.
      collected: the variables that the known scan collects for the rest alone.
      rest: the program of the unknown part of one step.
    """

    __slots__ = (
        "carry",
        "collected",
        "hoisted",
        "inputs",
        "known",
        "read_in_loop",
        "residuals",
        "rest",
        "unknown_out",
    )

    def __init__(self, params: ParamDict, unknown: Flags):
        program: ClosedJaxpr = params["jaxpr"]
        count: int = params["num_carry"]
        consts, carry, xs = operand_parts(unknown, params)
        collected = len(program.out_avals) - count
        while True:
            split = partial_eval_program(
                program, (*consts, *carry, *xs), (*carry, *[False] * collected)
            )
            if split.unknown_out[:count] == carry:
                break
            carry = split.unknown_out[:count]
        self.carry: Flags = carry
        self.unknown_out: Flags = split.unknown_out
        self._known_part(split, consts.count(False), carry.count(False))
        # The rest, its operands in the order that a scan wants.
        jaxpr = split.unknown.jaxpr
        same = [residual.same for residual in self.residuals]
        residuals, inputs = jaxpr.invars[: len(same)], jaxpr.invars[len(same) :]
        own_consts, own_carry, own_xs = three_parts(inputs, consts.count(True), carry.count(True))
        ordered = [*where(residuals, same), *own_consts, *own_carry]
        ordered += [*where_not(residuals, same), *own_xs]
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
        result_indices = {
            atom: index
            for index, atom in enumerate(outputs)
            if index >= carry and isinstance(atom, Var)
        }
        self.residuals: list[_Residual] = []
        self.collected: list[Var] = []
        for source in split.residuals:
            atom = jaxpr.outvars[source] if source >= 0 else inputs[~source]
            # A call that was inlined may have returned a literal.
            if not isinstance(atom, Var) or atom not in varying:
                self.residuals.append(_Residual(atom, True, None))
                continue
            if atom in x_inputs:
                self.residuals.append(_Residual(atom, False, None))
                continue
            if atom not in result_indices:
                result_indices[atom] = len(outputs) + len(self.collected)
                self.collected.append(atom)
            self.residuals.append(_Residual(atom, False, result_indices[atom]))
        self.hoisted = live_equations(fixed, [r.atom for r in self.residuals if r.same])
        done = {id(equation) for equation in self.hoisted}
        results = [*outputs, *self.collected]
        in_loop = live_equations([e for e in (*fixed, *stepwise) if id(e) not in done], results)
        read = variables_read(in_loop, results)
        self.read_in_loop = [var for e in self.hoisted for var in e.outvars if var in read]
        effects = no_effects.union(*(equation.effects for equation in in_loop))
        self.known = ClosedJaxpr(
            Jaxpr((), [*self.read_in_loop, *inputs], results, in_loop, effects, jaxpr.origin)
        )


def _by_step(
    jaxpr: Jaxpr, consts: int, carry: int
) -> tuple[list[Equation], list[Equation], set[Var]]:
    """Return the equations that are the same in all steps, the others, and what varies."""
    fixed: list[Equation] = []
    stepwise: list[Equation] = []
    _, carried, xs = three_parts(jaxpr.invars, consts, carry)
    varying = set(xs)
    varying.update(var for var, out in zip(carried, jaxpr.outvars, strict=False) if var is not out)
    for equation in jaxpr.eqns:
        flags = [isinstance(atom, Var) and atom in varying for atom in equation.invars]
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
