"""The derivative, transposition, batching and dead code of scan."""

from collections.abc import Iterator, Sequence
from typing import Any

from hlofront.core import rules
from hlofront.core.aval import AbstractValue, typeof
from hlofront.core.axes import AxisData
from hlofront.core.jaxpr import ClosedJaxpr, Equation, Jaxpr, Literal, Var
from hlofront.core.liveness import live_equations
from hlofront.core.symbolic_zeros import UndefinedPrimal, Zero
from hlofront.core.trace import process
from hlofront.higher_order.scan import scan_p
from hlofront.higher_order.scan_splitting import (
    Flags,
    Params,
    StepCache,
    operand_parts,
    parts,
    scan_equation,
    where,
    where_not,
)
from hlofront.primitives.batching import move_axis, to_front
from hlofront.primitives.derivatives import (
    add_tangents,
    aval_of_operand,
    instantiate,
    is_linear,
    zeros_of,
)
from hlofront.transforms.batch import batch_program_at
from hlofront.transforms.jvp import as_tangent, jvp_program
from hlofront.transforms.partial_eval import listed
from hlofront.transforms.simplify import constants_as_inputs, dead_code_program
from hlofront.transforms.stage import stage
from hlofront.transforms.transpose import transpose_jaxpr


class _Step:
    """A program of one step that a rule made, and what the rule found out besides."""

    __slots__ = ("consts", "facts", "program")

    def __init__(
        self, program: ClosedJaxpr, inputs: Sequence[Any], outputs: Sequence[Any], facts: Any
    ):
        # Values that the rules of operations brought in become the first constants of the scan.
        self.consts = program.consts
        count = len(self.consts)
        jaxpr = constants_as_inputs(program)
        self.program = ClosedJaxpr(
            jaxpr.replace(invars=[*jaxpr.invars[:count], *inputs], outvars=outputs)
        )
        self.facts = facts

    def run(
        self, consts: Sequence[Any], carry: Sequence[Any], xs: Sequence[Any], params: Params
    ) -> tuple[list[Any], list[Any]]:
        """Scan with it: the last carry, and what was collected."""
        new = {
            "jaxpr": self.program,
            "num_consts": len(self.consts) + len(consts),
            "num_carry": len(carry),
        }
        results = scan_p.bind(*self.consts, *consts, *carry, *xs, **{**params, **new})
        return results[: len(carry)], results[len(carry) :]


# What each rule made of a step, by what it depends on.
_jvp_steps: StepCache[Flags, _Step] = StepCache()
_transposed_steps: StepCache[tuple[Flags, tuple[AbstractValue | None, ...], bool], _Step] = (
    StepCache()
)
_batched_steps: StepCache[
    tuple[AxisData, tuple[int | None, ...], Flags, tuple[int | None, ...]], _Step
] = StepCache()
_smaller_steps: StepCache[Flags, tuple[ClosedJaxpr | None, Flags, Flags]] = StepCache()


# ---- derivative ----------------------------------------------------------------------------------


@rules.jvp(scan_p)
def _(primals, tangents, **params):
    tangents = list(map(as_tangent, tangents))
    nonzero = tuple(type(t) is not Zero for t in tangents)
    step = _jvp_steps.get_or_compute(params, nonzero, lambda: _jvp_step(params, nonzero))
    moving, moving_ys = step.facts
    consts, carry, xs = operand_parts(primals, params)
    const_tangents, carry_tangents, x_tangents = operand_parts(tangents, params)
    last, ys = step.run(
        [*consts, *[t for t in const_tangents if type(t) is not Zero]],
        [*carry, *map(instantiate, where(carry_tangents, moving))],
        [*xs, *[t for t in x_tangents if type(t) is not Zero]],
        params,
    )
    count, collected = len(carry), len(moving_ys)
    results = [*last[:count], *ys[:collected]]
    found = iter([*last[count:], *ys[collected:]])
    return results, [
        next(found) if moves else Zero.of(result)
        for result, moves in zip(results, (*moving, *moving_ys), strict=True)
    ]


def _jvp_step(params: Params, nonzero: Flags) -> _Step:
    """The step of values and tangents; its facts: which carries and ys have tangents."""
    program, count = params["jaxpr"], params["num_carry"]
    consts, moving, xs = operand_parts(nonzero, params)
    collected = len(program.out_avals) - count
    while True:
        given = (*consts, *moving, *xs)
        made, present = jvp_program(program, given, (*moving, *[False] * collected))
        if present[:count] == moving:
            break
        moving = present[:count]
    inputs, outputs = made.jaxpr.invars, made.jaxpr.outvars
    width, results = len(given), len(present)
    rest: Iterator[Any] = iter(inputs[width:])
    moved = [next(rest) if g else None for g in given]
    ordered: list[Any] = []
    for primals, tangents in zip(
        operand_parts(inputs[:width], params), operand_parts(moved, params), strict=True
    ):
        ordered += [*primals, *[var for var in tangents if var is not None]]
    first = results + sum(moving)
    return _Step(
        made,
        ordered,
        [*outputs[:count], *outputs[results:first], *outputs[count:results], *outputs[first:]],
        (moving, present[count:]),
    )


# ---- transposition -------------------------------------------------------------------------------


@rules.transpose(scan_p)
def _(cotangents, *operands, **params):
    program = params["jaxpr"]
    linear = tuple(map(is_linear, operands))
    depends = _depends(program.jaxpr, linear, params)
    _, linear_carry, _ = operand_parts(program.jaxpr.invars, params)
    if not all(var in depends for var in linear_carry):
        return _transpose_rest(cotangents, operands, linear, params)
    cotangents = list(map(as_tangent, cotangents))
    given = tuple(None if type(c) is Zero else typeof(c) for c in cotangents)
    key = (linear, given, not params["length"])
    step = _transposed_steps.get_or_compute(
        params, key, lambda: _transposed_step(params, linear, given)
    )
    reached_consts, reached_carry, reached_xs = step.facts
    consts, carry, xs = operand_parts(operands, params)
    carry_cotangents, y_cotangents, _ = parts(cotangents, len(carry), len(cotangents))
    sums = [zeros_of(_cotangent_aval(x)) for x, r in zip(consts, reached_consts, strict=True) if r]
    last, found_xs = step.run(
        [x for x in consts if not is_linear(x)],
        [*sums, *map(instantiate, where(carry_cotangents, reached_carry))],
        [*[c for c in y_cotangents if type(c) is not Zero], *[x for x in xs if not is_linear(x)]],
        {**params, "reverse": not params["reverse"]},
    )
    found = iter([*last, *found_xs])
    results = []
    for x, there in zip(operands, (*reached_consts, *reached_carry, *reached_xs), strict=True):
        cotangent = next(found) if there else None
        if is_linear(x):
            results.append(Zero(_cotangent_aval(x)) if cotangent is None else cotangent)
        else:
            results.append(None)
    return results


def _cotangent_aval(x: UndefinedPrimal) -> Any:
    return x.aval.to_tangent_aval()


def _depends(jaxpr: Jaxpr, linear: Flags, params: Params) -> set[Any]:
    """The variables of one step that depend on linear operands, over all steps."""
    _, carried, _ = operand_parts(jaxpr.invars, params)
    depends = set(where(jaxpr.invars, linear))
    while True:
        for equation in jaxpr.eqns:
            if not depends.isdisjoint(a for a in equation.invars if type(a) is not Literal):
                depends.update(equation.outvars)
        new = {
            var
            for var, out in zip(carried, jaxpr.outvars, strict=False)
            if type(out) is not Literal and out in depends and var not in depends
        }
        if not new:
            return depends
        depends |= new


def _transposed_step(params: Params, linear: Flags, given: Sequence[Any]) -> _Step:
    """The step of cotangents, backwards; its facts: which operands get one.

    Its carry is the sum of the cotangents of each constant, and the cotangents of the carry.
    `given` are the types of the cotangents of the results, None for those that are zero.
    """
    program, count = params["jaxpr"], params["num_carry"]
    jaxpr = _with_types_of_results(program.jaxpr, params)
    depends = _depends(jaxpr, linear, params)
    nonzero = tuple(aval is not None for aval in given)
    given_ys = nonzero[count:]
    reached = _reached(jaxpr, depends, nonzero, params)
    consts, carry, xs = operand_parts(jaxpr.invars, params)
    linear_consts, _, linear_xs = operand_parts(linear, params)
    reached_consts = tuple(var in reached for var in consts)
    # What comes to the last carry matters even where nothing comes from a step to the one before.
    no_steps = not params["length"]
    reached_carry = tuple(
        var in reached or (there and (no_steps or (type(out) is not Literal and out in depends)))
        for var, out, there in zip(carry, jaxpr.outvars, nonzero, strict=False)
    )
    carry_avals = [
        var.aval.to_tangent_aval() if aval is None else aval
        for var, aval in zip(carry, given, strict=False)
    ]
    sections = [
        [var.aval for var in where_not(consts, linear_consts)],
        [var.aval.to_tangent_aval() for var in where(consts, reached_consts)],
        where(carry_avals, reached_carry),
        [
            atom.aval.to_tangent_aval().update(weak_type=aval.weak_type)
            for atom, aval in zip(jaxpr.outvars[count:], given[count:], strict=True)
            if aval is not None
        ],
        [var.aval for var in where_not(xs, linear_xs)],
    ]
    present: Flags = ()

    def backwards(*args: Any) -> list[Any]:
        nonlocal present
        values = iter(args)
        known_consts, sums, carried, ys, known_xs = (
            [next(values) for _ in section] for section in sections
        )
        known = iter([*known_consts, *known_xs])
        inputs = [
            UndefinedPrimal(var.aval) if var in depends else next(known) for var in jaxpr.invars
        ]
        arriving = iter([*carried, *ys])
        cotangents = [
            next(arriving) if there else Zero(atom.aval.to_tangent_aval())
            for atom, there in zip(jaxpr.outvars, (*reached_carry, *given_ys), strict=True)
        ]
        found = transpose_jaxpr(jaxpr, program.consts, inputs, cotangents)
        of_consts, of_carry, of_xs = operand_parts(found, params)
        total = map(add_tangents, sums, where(of_consts, reached_consts))
        present = tuple(type(c) not in (Zero, type(None)) for c in of_xs)
        return [
            *total,
            *map(instantiate, where(of_carry, reached_carry)),
            *where(of_xs, present),
        ]

    made = stage(backwards, [aval for section in sections for aval in section], jaxpr.origin)
    smaller = made.jaxpr.replace(eqns=live_equations(made.jaxpr.eqns, made.jaxpr.outvars))
    made = ClosedJaxpr(smaller, made.consts)
    return _Step(made, smaller.invars, smaller.outvars, (reached_consts, reached_carry, present))


def _with_types_of_results(jaxpr: Jaxpr, params: Params) -> Jaxpr:
    """The step, in which a carry that starts weakly typed and comes back so no more never is.

    Cotangents come from the last step, and go through all.
    """
    _, carried, _ = operand_parts(jaxpr.invars, params)
    names: dict[Any, Var] = {
        var: Var(var.aval.strip_weak_type())
        for var, out in zip(carried, jaxpr.outvars, strict=False)
        if var.aval != out.aval and getattr(var.aval, "weak_type", False)
    }
    if not names:
        return jaxpr

    def named(atoms: Sequence[Any]) -> list[Any]:
        return [atom if type(atom) is Literal else names.get(atom, atom) for atom in atoms]

    return jaxpr.replace(
        invars=named(jaxpr.invars),
        outvars=named(jaxpr.outvars),
        eqns=[equation.replace(invars=named(equation.invars)) for equation in jaxpr.eqns],
    )


def _reached(jaxpr: Jaxpr, depends: set[Any], nonzero: Flags, params: Params) -> set[Any]:
    """The variables of one step that cotangents come to, over all steps."""
    _, carried, _ = operand_parts(jaxpr.invars, params)
    reached = {atom for atom in where(jaxpr.outvars, nonzero) if type(atom) is not Literal}
    while True:
        for equation in reversed(jaxpr.eqns):
            if not reached.isdisjoint(equation.outvars):
                reached.update(a for a in equation.invars if type(a) is not Literal)
        reached &= depends
        new = {
            out
            for var, out in zip(carried, jaxpr.outvars, strict=False)
            if var in reached and type(out) is not Literal and out in depends
        }
        if new <= reached:
            return reached
        reached |= new


def _transpose_rest(
    cotangents: Sequence[Any], operands: Sequence[Any], linear: Flags, params: Params
) -> list[Any]:
    """Transpose a scan with a partly known carry, whose known part is scanned first."""
    avals = [aval_of_operand(x) for x in operands]
    invars = list(map(Var, avals))
    outvars = list(map(Var, rules.infer[scan_p](*avals, **params)))
    known, rest, _, _ = rules.partial_eval[scan_p](
        linear, Equation(scan_p, invars, outvars, params)
    )
    values: dict[Any, Any] = dict(zip(invars, operands, strict=True))
    for equation in listed(known):
        args = [a.operand if type(a) is Literal else values[a] for a in equation.invars]
        results = process(equation.primitive, tuple(args), equation.params)
        if not equation.primitive.multiple_results:
            results = [results]
        values.update(zip(equation.outvars, results, strict=True))
    found: dict[Any, Any] = {}
    if rest is not None:
        arriving = dict(zip(outvars, cotangents, strict=True))
        given = [arriving[var] for var in rest.outvars]
        if any(type(c) is not Zero for c in given):
            args = [values[var] for var in rest.invars]
            results = rules.transpose[scan_p](given, *args, **rest.params)
            found = dict(zip(rest.invars, results, strict=True))
    return [
        found.get(var, Zero(_cotangent_aval(x))) if is_linear(x) else None
        for var, x in zip(invars, operands, strict=True)
    ]


# ---- batching ------------------------------------------------------------------------------------


@rules.batch_with_axis(scan_p)
def _(axis: AxisData, values, axes, **params):
    consts, carry, xs = operand_parts(values, params)
    const_axes, carry_axes, x_axes = operand_parts(axes, params)
    # One step sees `xs` without their first axis, which cannot be the batch's.
    xs = [move_axis(x, 0, 1) if a == 0 else x for x, a in zip(xs, x_axes, strict=True)]
    x_axes = tuple(None if a is None else max(a - 1, 0) for a in x_axes)
    flags = tuple(a is not None for a in carry_axes)
    key = (axis, tuple(const_axes), flags, x_axes)
    step = _batched_steps.get_or_compute(
        params, key, lambda: _batched_step(params, axis, const_axes, flags, x_axes)
    )
    batched, y_axes = step.facts
    carry = [
        to_front(x, a, axis.size) if b else x
        for x, a, b in zip(carry, carry_axes, batched, strict=True)
    ]
    last, ys = step.run(consts, carry, xs, params)
    return [*last, *ys], [*[0 if b else None for b in batched], *y_axes]


def _batched_step(
    params: Params, axis: AxisData, const_axes: Any, batched: Flags, x_axes: Any
) -> _Step:
    """The step over an axis; its facts: which carries have it, and where ys have it."""
    program, count = params["jaxpr"], params["num_carry"]
    collected = len(program.out_avals) - count
    while True:
        axes = (*const_axes, *[0 if b else None for b in batched], *x_axes)
        made, axes_out = batch_program_at(program, axis, axes, (*batched, *[False] * collected))
        found = tuple(a is not None for a in axes_out[:count])
        if found == batched:
            break
        batched = found
    y_axes = [None if a is None else a + 1 for a in axes_out[count:]]
    return _Step(made, made.jaxpr.invars, made.jaxpr.outvars, (batched, y_axes))


# ---- dead code -----------------------------------------------------------------------------------


@rules.simplify(scan_p)
def _(used, equation):
    if not any(used) and not equation.effects:
        return [False] * len(equation.invars), None
    params = equation.params
    used = tuple(used)
    smaller, stays, needed = _smaller_steps.get_or_compute(
        params, used, lambda: _smaller(params, used)
    )
    if smaller is None:
        return list(stays), equation
    consts, carry, _ = operand_parts(stays, params)
    invars = where(equation.invars, stays)
    outvars = where(equation.outvars, needed)
    return list(stays), scan_equation(
        equation, smaller, invars, outvars, consts.count(True), carry.count(True)
    )


def _smaller(params: Params, used: Flags) -> tuple[ClosedJaxpr | None, Flags, Flags]:
    """Return the step of what is used, its operands and its results; None for the step itself."""
    program, count = params["jaxpr"], params["num_carry"]
    carry, ys = used[:count], used[count:]
    consts, _, xs = operand_parts(program.in_avals, params)
    while True:
        keep = (*[False] * len(consts), *carry, *[False] * len(xs))
        smaller, stays = dead_code_program(program, (*carry, *ys), keep)
        found = operand_parts(stays, params)[1]
        if found == carry:
            return None if smaller is program else smaller, stays, (*carry, *ys)
        carry = found
