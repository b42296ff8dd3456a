"""The derivative, splitting, transposition, batching and dead code of scan."""

from collections.abc import Iterator, Sequence
from typing import Any

from hlofront.core import rules
from hlofront.core.aval import typeof
from hlofront.core.axes import AxisData
from hlofront.core.effects import no_effects
from hlofront.core.jaxpr import ClosedJaxpr, Equation, Jaxpr, Literal, Var
from hlofront.core.marks import UndefinedPrimal, Zero
from hlofront.core.trace import process
from hlofront.higher_order.jit_call import closed_call_p
from hlofront.higher_order.scan import scan_p, stacked
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
from hlofront.transforms.partial_eval import PartialEval, listed, live, partial_eval_program
from hlofront.transforms.simplify import constants_as_inputs, dead_code_program, inline_calls
from hlofront.transforms.stage import stage
from hlofront.transforms.transpose import transpose_jaxpr

Flags = tuple[bool, ...]
Params = dict[str, Any]


def _parts(members: Sequence[Any], consts: int, carry: int) -> tuple[Any, Any, Any]:
    """What belongs to the constants, to the carry and to `xs`."""
    return members[:consts], members[consts : consts + carry], members[consts + carry :]


def _operand_parts(members: Sequence[Any], params: Params) -> tuple[Any, Any, Any]:
    return _parts(members, params["num_consts"], params["num_carry"])


def _where(members: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    return [member for member, flag in zip(members, flags, strict=True) if flag]


def _where_not(members: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    return [member for member, flag in zip(members, flags, strict=True) if not flag]


def _kept(params: Params, key: Any, make: Any) -> Any:
    """What `make()` makes of the program of one step, made once and kept with it."""
    derived = params["jaxpr"].derived
    key = (key, params["num_consts"], params["num_carry"])
    found = derived.get(key)
    if found is None:
        found = derived[key] = make()
    return found


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


# ---- derivative ----------------------------------------------------------------------------------


@rules.jvp(scan_p)
def _(primals, tangents, **params):
    tangents = list(map(as_tangent, tangents))
    nonzero = tuple(type(t) is not Zero for t in tangents)
    step = _kept(params, ("scan_jvp", nonzero), lambda: _jvp_step(params, nonzero))
    moving, moving_ys = step.facts
    consts, carry, xs = _operand_parts(primals, params)
    const_tangents, carry_tangents, x_tangents = _operand_parts(tangents, params)
    last, ys = step.run(
        [*consts, *[t for t in const_tangents if type(t) is not Zero]],
        [*carry, *map(instantiate, _where(carry_tangents, moving))],
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
    consts, moving, xs = _operand_parts(nonzero, params)
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
        _operand_parts(inputs[:width], params), _operand_parts(moved, params), strict=True
    ):
        ordered += [*primals, *[var for var in tangents if var is not None]]
    first = results + sum(moving)
    return _Step(
        made,
        ordered,
        [*outputs[:count], *outputs[results:first], *outputs[count:results], *outputs[first:]],
        (moving, present[count:]),
    )


# ---- splitting by what is known ------------------------------------------------------------------


@rules.partial_eval(scan_p)
def _(unknown, equation):
    params = equation.params
    flags = tuple(unknown)
    split = _kept(params, ("scan_partial_eval", flags), lambda: _Split(params, flags))
    consts, _, xs = _operand_parts(flags, params)
    carry = split.carry
    given = _where_not(equation.invars, (*consts, *carry, *xs))
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
    results = _where_not(equation.outvars, split.unknown_out)
    results += [Var(stacked(var.aval, params["length"])) for var in split.collected]
    if results or split.known.effects:
        invars = [*[values[var] for var in split.made], *given]
        fixed = len(split.made) + consts.count(False)
        equations.append(_scan(equation, split.known, invars, results, fixed, carry.count(False)))
    handed = [results[p] if p is not None else values[v] for v, p in split.residuals]
    same, stepwise = _where(handed, split.same), _where_not(handed, split.same)
    rest = None
    if any(split.unknown_out) or split.rest.effects:
        own_consts, own_carry, own_xs = _operand_parts(equation.invars, params)
        own_consts = [*same, *_where(own_consts, consts)]
        invars = [*own_consts, *_where(own_carry, carry), *stepwise, *_where(own_xs, xs)]
        outvars = _where(equation.outvars, split.unknown_out)
        rest = _scan(equation, split.rest, invars, outvars, len(own_consts), carry.count(True))
    return equations, rest, split.unknown_out, handed


def _scan(
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
    return equation.replace(
        invars=invars, outvars=outvars, params=params, effects=program.effects
    )


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
        consts, carry, xs = _operand_parts(unknown, params)
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
        own = _parts(jaxpr.invars[len(self.same) :], consts.count(True), carry.count(True))
        ordered = [*_where(residuals, self.same), *own[0], *own[1]]
        ordered += [*_where_not(residuals, self.same), *own[2]]
        self.rest = ClosedJaxpr(jaxpr.replace(invars=ordered))

    def _known_part(self, split: PartialEval, consts: int, carry: int) -> None:
        jaxpr = split.known.jaxpr
        if any(equation.primitive is closed_call_p for equation in jaxpr.eqns):
            inlined = inline_calls(jaxpr, (), {closed_call_p: "call_jaxpr"})
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
        self.hoisted = live(fixed, [var for var, _ in handed])
        done = {id(equation) for equation in self.hoisted}
        results = [*outputs, *self.collected]
        kept = live([e for e in (*fixed, *stepwise) if id(e) not in done], results)
        read = {atom for e in kept for atom in e.invars if type(atom) is not Literal}
        read.update(atom for atom in results if type(atom) is not Literal)
        # What was computed before the loop and is read in it.
        self.made = [var for e in self.hoisted for var in e.outvars if var in read]
        effects = no_effects.union(*(equation.effects for equation in kept))
        self.known = ClosedJaxpr(
            Jaxpr((), [*self.made, *inputs], results, kept, effects, jaxpr.debug_info)
        )


def _by_step(
    jaxpr: Jaxpr, consts: int, carry: int
) -> tuple[list[Equation], list[Equation], set[Any]]:
    """The equations that are the same in all steps, the others, and the variables that vary."""
    fixed: list[Equation] = []
    stepwise: list[Equation] = []
    _, carried, xs = _parts(jaxpr.invars, consts, carry)
    varying: set[Any] = set(xs)
    varying.update(
        var for var, out in zip(carried, jaxpr.outvars, strict=False) if var is not out
    )
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
        varying.update(_where(equation.outvars, unknown_out))
    return fixed, stepwise, varying


# ---- transposition -------------------------------------------------------------------------------


@rules.transpose(scan_p)
def _(cotangents, *operands, **params):
    program = params["jaxpr"]
    linear = tuple(map(is_linear, operands))
    depends = _depends(program.jaxpr, linear, params)
    _, linear_carry, _ = _operand_parts(program.jaxpr.invars, params)
    if not all(var in depends for var in linear_carry):
        return _transpose_rest(cotangents, operands, linear, params)
    cotangents = list(map(as_tangent, cotangents))
    given = tuple(None if type(c) is Zero else typeof(c) for c in cotangents)
    step = _kept(
        params, ("scan_transpose", linear, given), lambda: _transposed_step(params, linear, given)
    )
    reached_consts, reached_carry, reached_xs = step.facts
    consts, carry, xs = _operand_parts(operands, params)
    carry_cotangents, y_cotangents, _ = _parts(cotangents, len(carry), len(cotangents))
    sums = [zeros_of(_cotangent_aval(x)) for x, r in zip(consts, reached_consts, strict=True) if r]
    last, found_xs = step.run(
        [x for x in consts if not is_linear(x)],
        [*sums, *map(instantiate, _where(carry_cotangents, reached_carry))],
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
    _, carried, _ = _operand_parts(jaxpr.invars, params)
    depends = set(_where(jaxpr.invars, linear))
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

    Its carry is the sum of the cotangents of each constant, and the cotangents of the carry. `given`
    are the types of the cotangents of the results, None for those that are zero.
    """
    program, count = params["jaxpr"], params["num_carry"]
    jaxpr = _with_types_of_results(program.jaxpr, params)
    depends = _depends(jaxpr, linear, params)
    nonzero = tuple(aval is not None for aval in given)
    given_ys = nonzero[count:]
    reached = _reached(jaxpr, depends, nonzero, params)
    consts, carry, xs = _operand_parts(jaxpr.invars, params)
    linear_consts, _, linear_xs = _operand_parts(linear, params)
    reached_consts, reached_carry = (
        tuple(var in reached for var in variables) for variables in (consts, carry)
    )
    carry_avals = [
        var.aval.to_tangent_aval() if aval is None else aval
        for var, aval in zip(carry, given, strict=False)
    ]
    sections = [
        [var.aval for var in _where_not(consts, linear_consts)],
        [var.aval.to_tangent_aval() for var in _where(consts, reached_consts)],
        _where(carry_avals, reached_carry),
        [
            atom.aval.to_tangent_aval().update(weak_type=aval.weak_type)
            for atom, aval in zip(jaxpr.outvars[count:], given[count:], strict=True)
            if aval is not None
        ],
        [var.aval for var in _where_not(xs, linear_xs)],
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
        of_consts, of_carry, of_xs = _operand_parts(found, params)
        total = map(add_tangents, sums, _where(of_consts, reached_consts))
        present = tuple(type(c) not in (Zero, type(None)) for c in of_xs)
        return [
            *total,
            *map(instantiate, _where(of_carry, reached_carry)),
            *_where(of_xs, present),
        ]

    made = stage(backwards, [aval for section in sections for aval in section], jaxpr.debug_info)
    smaller = made.jaxpr.replace(eqns=live(made.jaxpr.eqns, made.jaxpr.outvars))
    made = ClosedJaxpr(smaller, made.consts)
    return _Step(made, smaller.invars, smaller.outvars, (reached_consts, reached_carry, present))


def _with_types_of_results(jaxpr: Jaxpr, params: Params) -> Jaxpr:
    """The step, in which a carry that starts weakly typed and comes back so no more never is.

    Cotangents come from the last step, and go through all.
    """
    _, carried, _ = _operand_parts(jaxpr.invars, params)
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
    _, carried, _ = _operand_parts(jaxpr.invars, params)
    reached = {atom for atom in _where(jaxpr.outvars, nonzero) if type(atom) is not Literal}
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
    """Where parts of the carry are known: scan what is known first, then transpose the rest."""
    avals = [aval_of_operand(x) for x in operands]
    invars = list(map(Var, avals))
    outvars = list(map(Var, rules.infer[scan_p](*avals, **params)))
    known, rest, _, _ = rules.partial_eval[scan_p](
        linear, Equation(scan_p, invars, outvars, params)
    )
    values: dict[Any, Any] = dict(zip(invars, operands, strict=True))
    for equation in listed(known):
        args = [a.val if type(a) is Literal else values[a] for a in equation.invars]
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
    consts, carry, xs = _operand_parts(values, params)
    const_axes, carry_axes, x_axes = _operand_parts(axes, params)
    # One step sees `xs` without their first axis, which cannot be the batch's.
    xs = [move_axis(x, 0, 1) if a == 0 else x for x, a in zip(xs, x_axes, strict=True)]
    x_axes = tuple(None if a is None else max(a - 1, 0) for a in x_axes)
    flags = tuple(a is not None for a in carry_axes)
    key = ("scan_batch", axis, tuple(const_axes), flags, x_axes)
    step = _kept(params, key, lambda: _batched_step(params, axis, const_axes, flags, x_axes))
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
    smaller, stays, needed = _kept(params, ("scan_dead", used), lambda: _smaller(params, used))
    if all(stays) and all(needed):
        return list(stays), equation
    consts, carry, _ = _operand_parts(stays, params)
    invars = _where(equation.invars, stays)
    outvars = _where(equation.outvars, needed)
    return list(stays), _scan(
        equation, smaller, invars, outvars, consts.count(True), carry.count(True)
    )


def _smaller(params: Params, used: Flags) -> tuple[ClosedJaxpr, Flags, Flags]:
    """The step of what is used; which operands it has, and which results."""
    program, count = params["jaxpr"], params["num_carry"]
    carry, ys = used[:count], used[count:]
    consts, _, xs = _operand_parts(program.in_avals, params)
    while True:
        keep = (*[False] * len(consts), *carry, *[False] * len(xs))
        smaller, stays = dead_code_program(program, (*carry, *ys), keep)
        found = _operand_parts(stays, params)[1]
        if found == carry:
            return smaller, stays, (*carry, *ys)
        carry = found
