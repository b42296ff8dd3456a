"""The partial evaluation of scan: a known scan, residuals, loop-invariant code, an unknown scan."""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic

from hlofront.base.named_tuple import NamedTuple
from hlofront.core import rules
from hlofront.core.effects import no_effects
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, ParamDict, Var
from hlofront.core.programs.liveness import live_equations, variables_read
from hlofront.core.programs.program_cache import DerivedCache, Key, Value
from hlofront.higher_order.calls.jit_call import inline_closed_calls
from hlofront.higher_order.control_flow.scan import scan_p, stacked_variable
from hlofront.higher_order.selecting import Flags, Member, Parts, three_parts, where, where_not
from hlofront.transforms.partial_eval import (
    PartialEval,
    SplitEquation,
    listed,
    partial_eval_program,
)


def operand_parts(members: Iterable[Member], params: ParamDict) -> Parts[Member]:
    """Split a sequence over a scan's operands into the parts for constants, carry and `xs`."""
    return three_parts(members, params["num_consts"], params["num_carry"])


class StepCache(Generic[Key, Value]):
    """A cache of values derived from the bodies of scans."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        # Keyed by the number of constants, the number of members of the carry, and a rule's key.
        self._values: DerivedCache[tuple[int, int, Key], Value] = DerivedCache()

    def get_or_compute(self, params: ParamDict, key: Key, compute: Callable[[], Value]) -> Value:
        """Return the cached value for a scan's parameters and a key, computing it on a miss."""
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
                source_info=hoisted.source_info.inside(*equation.name_stack),
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
    unknown_equation = None
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
        unknown_equation = scan_equation(
            equation, split.rest, invars, outvars, len(new_consts), carry.count(True)
        )
    return equations, unknown_equation, split.unknown_out, residuals


def scan_equation(
    equation: Equation,
    program: ClosedJaxpr,
    invars: Sequence[Atom],
    outvars: Sequence[Var],
    num_consts: int,
    num_carry: int,
) -> Equation:
    """Return the equation of a scan with its body, operands and results replaced."""
    new = {"jaxpr": program, "num_consts": num_consts, "num_carry": num_carry}
    params = {**equation.params, **new}
    return equation.replace(invars=invars, outvars=outvars, params=params, effects=program.effects)


class _Residual(NamedTuple):
    """A value that the known part of a scan computes and the unknown part reads.

    Attributes:
      atom: the residual's variable in the known body, or a literal.
      same: whether the residual is loop-invariant.
      result: the index of the known scan's result that equals the residual, or None.
    """

    atom: Atom
    same: bool
    result: int | None


class _Split:
    """A scan's body, split into a known body and an unknown body.

    A loop-invariant residual is computed before the loop and is a constant of the unknown scan;
    other residuals are stacked over the iterations.

    Attributes:
      carry: per member of the carry, whether it is unknown.
      unknown_out: per result, whether it is unknown.
      inputs: the inputs of the known part.
      hoisted: the loop-invariant equations, which are computed before the loop.
      read_in_loop: the variables that are computed before the known loop and read in it.
      known: the known body; its inputs are `read_in_loop`, then the known inputs.
      residuals: the values of the known part that the unknown part reads.
      collected: the variables that the known scan stacks only as residuals.
      rest: the unknown body.
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
        # The unknown scan's operands, in the order of scan: constants, carry, xs.
        jaxpr = split.unknown.jaxpr
        same = [residual.same for residual in self.residuals]
        residuals, inputs = jaxpr.invars[: len(same)], jaxpr.invars[len(same) :]
        own_consts, own_carry, own_xs = three_parts(inputs, consts.count(True), carry.count(True))
        ordered = [*where(residuals, same), *own_consts, *own_carry]
        ordered += [*where_not(residuals, same), *own_xs]
        self.rest = ClosedJaxpr(jaxpr.replace(invars=ordered))

    def _known_part(self, split: PartialEval, consts: int, carry: int) -> None:
        inlined = inline_closed_calls(split.known)
        jaxpr = split.known.jaxpr if inlined.consts else inlined.jaxpr
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
            # An inlined call may have returned a literal.
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
    """Return a body's loop-invariant equations, its other equations, and its varying variables."""
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
            known, unknown_equation, unknown_out, _ = rule(flags, equation)
            if all(unknown_out):
                stepwise.append(equation)
            else:
                fixed += listed(known)
                stepwise += listed(unknown_equation)
        varying.update(where(equation.outvars, unknown_out))
    return fixed, stepwise, varying
