"""The rules of the scan primitive: jvp, transpose, batching, dead code."""

from collections.abc import Sequence
from typing import Generic, TypeVar

from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import ArrayLike, ArrayLikes, Params
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.axes import AxisData
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, ParamDict, Value, Var
from hlofront.core.programs.liveness import live_equations
from hlofront.core.references import is_reference, touches_references
from hlofront.core.rules import BatchResult
from hlofront.core.symbolic_zeros import (
    BatchAxes,
    BatchAxis,
    Cotangent,
    Operand,
    Tangent,
    Tangents,
    UndefinedPrimal,
    Zero,
)
from hlofront.core.trace import process
from hlofront.higher_order.control_flow.scan import scan_p, scan_result_avals
from hlofront.higher_order.control_flow.scan_splitting import (
    StepCache,
    operand_parts,
    scan_equation,
)
from hlofront.higher_order.selecting import (
    Flags,
    cotangent_references,
    nonzero,
    nonzero_flags,
    variables,
    where,
    where_not,
    with_zeros,
)
from hlofront.primitives.rules.batching import move_axis, to_front
from hlofront.primitives.rules.derivatives import (
    add_tangents,
    aval_of_operand,
    instantiate,
    is_linear,
    zeros_of,
)
from hlofront.transforms.batch import batch_program_at
from hlofront.transforms.jvp import as_tangent, jvp_program
from hlofront.transforms.partial_eval import listed
from hlofront.transforms.simplify import SmallerEquation, constants_as_inputs, dead_code_program
from hlofront.transforms.stage import stage
from hlofront.transforms.transpose import (
    holds_rules_for_zeros,
    linear_input,
    references_written_with,
    transpose_jaxpr,
    transposes_zeros,
)

Facts = TypeVar("Facts")


class ScanStep(Generic[Facts]):
    """A scan body derived by a rule, and the rule's record of its operands and results.

    Attributes:
      consts: the values that are the first constants of the scan.
      program: the closed jaxpr of the body, without constants.
      facts: a record of the class that the rule defines.
    """

    __slots__ = ("consts", "facts", "program")

    def __init__(
        self, program: ClosedJaxpr, inputs: Sequence[Var], outputs: Sequence[Atom], facts: Facts
    ):
        # Constants that the rules of the body's equations add become the scan's first constants.
        self.consts = program.consts
        count = len(self.consts)
        jaxpr = constants_as_inputs(program)
        self.program = ClosedJaxpr(
            jaxpr.replace(invars=[*jaxpr.invars[:count], *inputs], outvars=outputs)
        )
        self.facts = facts

    def run(
        self, consts: ArrayLikes, carry: ArrayLikes, xs: ArrayLikes, params: ParamDict
    ) -> tuple[list[ArrayLike], list[ArrayLike]]:
        """Bind a scan of the derived body; return the last carry and the stacked ys."""
        new = {
            "jaxpr": self.program,
            "num_consts": len(self.consts) + len(consts),
            "num_carry": len(carry),
        }
        results = scan_p.bind(*self.consts, *consts, *carry, *xs, **{**params, **new})
        return results[: len(carry)], results[len(carry) :]


class _HaveTangents(NamedTuple):
    """The flags of a scan's jvp: whether each member of the carry, and each y, has a tangent."""

    carry: Flags
    ys: Flags


class _Reached(NamedTuple):
    """The flags of a scan's transpose: whether each operand has a cotangent."""

    consts: Flags
    carry: Flags
    xs: Flags


class _BatchedResults(NamedTuple):
    """The batch axes of a batched scan: a flag per member of the carry, and an axis per y."""

    carry: Flags
    y_axes: tuple[BatchAxis, ...]


class _SmallerStep(NamedTuple):
    """A scan body without dead code.

    Attributes:
      program: the closed jaxpr of the body; None if it is unchanged.
      operands: per operand of the equation, whether it remains.
      results: per result of the equation, whether it remains.
    """

    program: ClosedJaxpr | None
    operands: Flags
    results: Flags


# The cached bodies of each rule, by the flags, types and axes that they depend on.
_jvp_steps: StepCache[Flags, ScanStep[_HaveTangents]] = StepCache()
_transposed_steps: StepCache[
    tuple[Flags, tuple[ShapedArray | None, ...], bool], ScanStep[_Reached]
] = StepCache()
_batched_steps: StepCache[
    tuple[AxisData, tuple[BatchAxis, ...], Flags, tuple[BatchAxis, ...]], ScanStep[_BatchedResults]
] = StepCache()
_smaller_steps: StepCache[Flags, _SmallerStep] = StepCache()


# ---- derivative ----------------------------------------------------------------------------------


@rules.jvp(scan_p)
def _(
    primals: ArrayLikes, tangents: Tangents, **params: object
) -> tuple[list[ArrayLike], list[Tangent]]:
    tangents = list(map(as_tangent, tangents))
    flags = nonzero_flags(tangents)
    step = _jvp_steps.get_or_compute(params, flags, lambda: _jvp_step(params, flags))
    has_tangent = step.facts
    consts, carry, xs = operand_parts(primals, params)
    const_tangents, carry_tangents, x_tangents = operand_parts(tangents, params)
    last, ys = step.run(
        [*consts, *nonzero(const_tangents)],
        [*carry, *map(instantiate, where(carry_tangents, has_tangent.carry))],
        [*xs, *nonzero(x_tangents)],
        params,
    )
    count, collected = len(carry), len(has_tangent.ys)
    results = [*last[:count], *ys[:collected]]
    result_tangents = [*last[count:], *ys[collected:]]
    return results, with_zeros(
        result_tangents, (*has_tangent.carry, *has_tangent.ys), list(map(typeof, results))
    )


def _jvp_step(params: ParamDict, flags: Flags) -> ScanStep[_HaveTangents]:
    """Return the jvp of a scan's body, a body of primals and tangents.

    Args:
      params: the parameters of the scan.
      flags: per operand, whether it has a tangent.
    """
    program: ClosedJaxpr = params["jaxpr"]
    count: int = params["num_carry"]
    consts, has_tangent, xs = operand_parts(flags, params)
    collected = len(program.out_avals) - count
    while True:
        inputs_have_tangents = (*consts, *has_tangent, *xs)
        with_tangents, present = jvp_program(
            program, inputs_have_tangents, (*has_tangent, *[False] * collected)
        )
        if present[:count] == has_tangent:
            break
        has_tangent = present[:count]
    inputs, outputs = with_tangents.jaxpr.invars, with_tangents.jaxpr.outvars
    width, results = len(inputs_have_tangents), len(present)
    rest = iter(inputs[width:])
    tangent_inputs = [next(rest) if flag else None for flag in inputs_have_tangents]
    ordered: list[Var] = []
    for primals, tangents in zip(
        operand_parts(inputs[:width], params), operand_parts(tangent_inputs, params), strict=True
    ):
        ordered += [*primals, *[var for var in tangents if var is not None]]
    first = results + sum(has_tangent)
    return ScanStep(
        with_tangents,
        ordered,
        [*outputs[:count], *outputs[results:first], *outputs[count:results], *outputs[first:]],
        _HaveTangents(has_tangent, present[count:]),
    )


# ---- transposition -------------------------------------------------------------------------------


@rules.transpose(scan_p)
def _(
    cotangents: Sequence[Cotangent], *operands: Operand, **params: Value
) -> list[Cotangent | None]:
    program: ClosedJaxpr = params["jaxpr"]
    linear = tuple(map(is_linear, operands))
    depends = _depends(program.jaxpr, linear, params)
    _, linear_carry, _ = operand_parts(program.jaxpr.invars, params)
    if not all(var in depends for var in linear_carry):
        return _transpose_rest(cotangents, operands, linear, params)
    cotangents = list(map(as_tangent, cotangents))
    if _transposes_zeros(params):
        # # The rules of an iteration may turn zero cotangents into nonzero ones for earlier
        # iterations.
        count: int = params["num_carry"]
        cotangents[:count] = [as_tangent(instantiate(c)) for c in cotangents[:count]]
    types = tuple(None if isinstance(c, Zero) else typeof(c) for c in cotangents)
    key = (linear, types, not params["length"])
    step = _transposed_steps.get_or_compute(
        params, key, lambda: _transposed_step(params, linear, types)
    )
    reached = step.facts
    consts, carry, xs = operand_parts(operands, params)
    carry_cotangents, y_cotangents = cotangents[: len(carry)], cotangents[len(carry) :]
    sums = [zeros_of(_cotangent_aval(x)) for x in where(consts, reached.consts) if is_linear(x)]
    last, x_cotangents = step.run(
        [*[x for x in consts if not is_linear(x)], *cotangent_references(consts)],
        [*sums, *map(instantiate, where(carry_cotangents, reached.carry))],
        [
            *nonzero(y_cotangents),
            *[x for x in xs if not is_linear(x)],
            *cotangent_references(xs),
        ],
        {**params, "reverse": not params["reverse"]},
    )
    rest = iter([*last, *x_cotangents])
    results: list[Cotangent | None] = []
    all_reached = (*reached.consts, *reached.carry, *reached.xs)
    for x, is_reached in zip(operands, all_reached, strict=True):
        cotangent = next(rest) if is_reached else None
        if is_linear(x):
            results.append(Zero(_cotangent_aval(x)) if cotangent is None else cotangent)
        else:
            results.append(None)
    return results


def _transposes_zeros(params: Params) -> bool:
    """Return whether the body of a scan may turn zero cotangents of the carry into nonzero ones."""
    return params["num_carry"] > 0 and holds_rules_for_zeros(params["jaxpr"])


scan_p.transposes_zeros = _transposes_zeros


def _cotangent_aval(x: UndefinedPrimal) -> ShapedArray:
    return x.aval.to_cotangent_aval()


def _depends(jaxpr: Jaxpr, linear: Flags, params: ParamDict) -> set[Var]:
    """Return the variables of a scan's body that depend on linear operands, even via the carry."""
    _, carried, _ = operand_parts(jaxpr.invars, params)
    depends = set(where(jaxpr.invars, linear))
    while True:
        if touches_references(jaxpr.effects):
            depends |= references_written_with(jaxpr.eqns, depends)
        for equation in jaxpr.eqns:
            if not depends.isdisjoint((*variables(equation.invars), *equation.outvars)):
                depends.update(equation.outvars)
        new = {
            var
            for var, out in zip(carried, jaxpr.outvars, strict=False)
            if out in depends and var not in depends
        }
        if not new:
            return depends
        depends |= new


def _transposed_step(
    params: ParamDict, linear: Flags, types: Sequence[ShapedArray | None]
) -> ScanStep[_Reached]:
    """Return the transpose of a scan's body, the body of a scan over cotangents.

    The carry is the cotangent sums of the constants, and the cotangents of the carry.

    Args:
      params: the parameters of the scan.
      linear: per operand, whether the scan is linear in it.
      types: the types of the results' cotangents, None for those that are zero.
    """
    program: ClosedJaxpr = params["jaxpr"]
    count: int = params["num_carry"]
    jaxpr = _with_types_of_results(program.jaxpr, params)
    depends = _depends(jaxpr, linear, params)
    arriving_at = tuple(aval is not None for aval in types)
    arriving_ys = arriving_at[count:]
    reached = _reached(jaxpr, depends, arriving_at, params)
    consts, carry, xs = operand_parts(jaxpr.invars, params)
    linear_consts, _, linear_xs = operand_parts(linear, params)
    # Cotangents of references are not summed: they accumulate in references.
    reached_consts = tuple(var in reached and not is_reference(var.aval) for var in consts)
    const_references = [var.aval for var in where(consts, linear_consts) if is_reference(var.aval)]
    x_references = [var.aval for var in where(xs, linear_xs) if is_reference(var.aval)]
    # Cotangents of the last carry matter even if iterations pass none to earlier ones.
    no_steps = not params["length"]
    reached_carry = tuple(
        var in reached or (arrives and (no_steps or out in depends))
        for var, out, arrives in zip(carry, jaxpr.outvars, arriving_at, strict=False)
    )
    carry_avals = [
        var.aval.to_cotangent_aval() if aval is None else aval
        for var, aval in zip(carry, types, strict=False)
    ]
    # The types of the inputs: known constants, cotangent sums, cotangents of the carry, cotangents
    # of the ys, known xs.
    sections: list[list[Value]] = [
        [var.aval for var in where_not(consts, linear_consts)],
        [aval.to_tangent_aval() for aval in const_references],
        [var.aval.to_cotangent_aval() for var in where(consts, reached_consts)],
        where(carry_avals, reached_carry),
        [
            result.to_cotangent_aval().update(weak_type=aval.weak_type)
            for result, aval in zip(jaxpr.out_avals[count:], types[count:], strict=True)
            if aval is not None
        ],
        [var.aval for var in where_not(xs, linear_xs)],
        [aval.to_tangent_aval() for aval in x_references],
    ]
    present: Flags = ()

    def backwards(*args: ArrayLike) -> list[ArrayLike]:
        nonlocal present
        values = iter(args)
        known_consts, of_consts, sums, carried, ys, known_xs, of_xs = (
            [next(values) for _ in section] for section in sections
        )
        known, references = iter([*known_consts, *known_xs]), iter([*of_consts, *of_xs])
        inputs = [
            linear_input(var.aval, references) if var in depends else next(known)
            for var in jaxpr.invars
        ]
        arriving = iter([*carried, *ys])
        cotangents = [
            next(arriving) if arrives else Zero(atom.aval.to_cotangent_aval())
            for atom, arrives in zip(jaxpr.outvars, (*reached_carry, *arriving_ys), strict=True)
        ]
        departing = transpose_jaxpr(jaxpr, program.consts, inputs, cotangents)
        of_consts, of_carry, of_xs = operand_parts(departing, params)
        totals = map(add_tangents, sums, where(of_consts, reached_consts))
        present = tuple(type(c) not in (Zero, type(None)) for c in of_xs)
        return [
            *map(instantiate, totals),
            *map(instantiate, where(of_carry, reached_carry)),
            *where(of_xs, present),
        ]

    written = stage(backwards, [aval for section in sections for aval in section], jaxpr.origin)
    smaller = written.jaxpr.replace(eqns=live_equations(written.jaxpr.eqns, written.jaxpr.outvars))
    return ScanStep(
        ClosedJaxpr(smaller, written.consts),
        smaller.invars,
        smaller.outvars,
        _Reached(reached_consts, reached_carry, present),
    )


def _with_types_of_results(jaxpr: Jaxpr, params: ParamDict) -> Jaxpr:
    """Remove the weak type of a body's carry inputs whose outputs are not weakly typed.

    Cotangents flow from the last iteration through all others.
    """
    _, carried, _ = operand_parts(jaxpr.invars, params)
    names = {
        var: Var(var.aval.strip_weak_type())
        for var, out in zip(carried, jaxpr.outvars, strict=False)
        if var.aval != out.aval and isinstance(var.aval, ShapedArray) and var.aval.weak_type
    }
    if not names:
        return jaxpr

    def renamed(atoms: Sequence[Atom]) -> list[Atom]:
        return [names.get(atom, atom) if isinstance(atom, Var) else atom for atom in atoms]

    return jaxpr.replace(
        invars=renamed(jaxpr.invars),
        outvars=renamed(jaxpr.outvars),
        eqns=[equation.replace(invars=renamed(equation.invars)) for equation in jaxpr.eqns],
    )


def _reached(jaxpr: Jaxpr, depends: set[Var], arriving_at: Flags, params: ParamDict) -> set[Var]:
    """Return the variables of a scan's body that receive cotangents in any iteration."""
    _, carried, _ = operand_parts(jaxpr.invars, params)
    reached = set(variables(where(jaxpr.outvars, arriving_at)))
    while True:
        for equation in reversed(jaxpr.eqns):
            # References may have cotangents from earlier or later iterations.
            if touches_references(equation.effects) or not reached.isdisjoint(equation.outvars):
                reached.update(variables(equation.invars))
        reached &= depends
        new = {
            out
            for var, out in zip(carried, jaxpr.outvars, strict=False)
            if var in reached and isinstance(out, Var) and out in depends
        }
        if new <= reached:
            return reached
        reached |= new


def _transpose_rest(
    cotangents: Sequence[Cotangent],
    operands: Sequence[Operand],
    linear: Sequence[bool],
    params: ParamDict,
) -> list[Cotangent | None]:
    """Transpose a scan with a partly known carry: run its known part, then transpose the rest."""
    avals: list[ShapedArray] = [aval_of_operand(x) for x in operands]
    invars = list(map(Var, avals))
    outvars = list(map(Var, scan_result_avals(*avals, **params)))
    known, unknown_equation, _, _ = rules.partial_eval[scan_p](
        list(linear), Equation(invars, outvars, scan_p, params)
    )
    values: dict[Atom, Value] = dict(zip(invars, operands, strict=True))
    for equation in listed(known):
        args = [values[a] if isinstance(a, Var) else a.operand for a in equation.invars]
        results = process(equation.primitive, tuple(args), equation.params)
        if not equation.primitive.multiple_results:
            results = [results]
        values.update(zip(equation.outvars, results, strict=True))
    departing: dict[Atom, Cotangent | None] = {}
    if unknown_equation is not None:
        arriving = dict(zip(outvars, cotangents, strict=True))
        of_rest = [arriving[var] for var in unknown_equation.outvars]
        if any(nonzero_flags(of_rest)) or transposes_zeros(unknown_equation):
            args = [values[a] if isinstance(a, Var) else a.operand for a in unknown_equation.invars]
            results = rules.transpose[scan_p](of_rest, *args, **unknown_equation.params)
            departing = dict(zip(unknown_equation.invars, results, strict=True))
    return [
        departing.get(var, Zero(_cotangent_aval(x))) if is_linear(x) else None
        for var, x in zip(invars, operands, strict=True)
    ]


# ---- batching ------------------------------------------------------------------------------------


@rules.batch_with_axis(scan_p)
def _(axis: AxisData, values: ArrayLikes, axes: BatchAxes, **params: object) -> BatchResult:
    consts, carry, xs = operand_parts(values, params)
    const_axes, carry_axes, x_axes = operand_parts(axes, params)
    # The body receives elements along axis 0 of `xs`, so the batch axis cannot be axis 0.
    xs = [move_axis(x, 0, 1) if a == 0 else x for x, a in zip(xs, x_axes, strict=True)]
    step_axes = tuple(None if a is None else max(a - 1, 0) for a in x_axes)
    flags = tuple(a is not None for a in carry_axes)
    key = (axis, tuple(const_axes), flags, step_axes)
    step = _batched_steps.get_or_compute(params, key, lambda: _batched_step(params, *key))
    batched = step.facts
    carry = [
        to_front(x, a, axis.size) if b else x
        for x, a, b in zip(carry, carry_axes, batched.carry, strict=True)
    ]
    last, ys = step.run(consts, carry, xs, params)
    return [*last, *ys], [*[0 if b else None for b in batched.carry], *batched.y_axes]


def _batched_step(
    params: ParamDict,
    axis: AxisData,
    const_axes: tuple[BatchAxis, ...],
    batched: Flags,
    x_axes: tuple[BatchAxis, ...],
) -> ScanStep[_BatchedResults]:
    """Return the body of a batched scan.

    Args:
      params: the parameters of the scan.
      axis: the size and name of the batch axis.
      const_axes: the batch axis of each constant.
      batched: per member of the carry, whether it has the batch axis, as axis 0.
      x_axes: the batch axis of each x in the body.
    """
    program: ClosedJaxpr = params["jaxpr"]
    count: int = params["num_carry"]
    collected = len(program.out_avals) - count
    while True:
        axes = (*const_axes, *[0 if b else None for b in batched], *x_axes)
        over_axis, axes_out = batch_program_at(
            program, axis, axes, (*batched, *[False] * collected)
        )
        batched_out = tuple(a is not None for a in axes_out[:count])
        if batched_out == batched:
            break
        batched = batched_out
    y_axes = tuple(None if a is None else a + 1 for a in axes_out[count:])
    jaxpr = over_axis.jaxpr
    return ScanStep(over_axis, jaxpr.invars, jaxpr.outvars, _BatchedResults(batched, y_axes))


# ---- dead code -----------------------------------------------------------------------------------


@rules.simplify(scan_p)
def _(used: list[bool], equation: Equation) -> SmallerEquation:
    if not any(used) and not equation.effects:
        return [False] * len(equation.invars), None
    params, flags = equation.params, tuple(used)
    smaller = _smaller_steps.get_or_compute(params, flags, lambda: _smaller_step(params, flags))
    stays = list(smaller.operands)
    if smaller.program is None:
        return stays, equation
    consts, carry, _ = operand_parts(smaller.operands, params)
    invars = where(equation.invars, stays)
    outvars = where(equation.outvars, smaller.results)
    return stays, scan_equation(
        equation, smaller.program, invars, outvars, consts.count(True), carry.count(True)
    )


def _smaller_step(params: ParamDict, used: Flags) -> _SmallerStep:
    """Remove dead code from a scan's body, for the used results and the carry they depend on."""
    program: ClosedJaxpr = params["jaxpr"]
    count: int = params["num_carry"]
    carry, ys = used[:count], used[count:]
    consts, _, xs = operand_parts(program.in_avals, params)
    while True:
        needed = (*[False] * len(consts), *carry, *[False] * len(xs))
        smaller, stays = dead_code_program(program, (*carry, *ys), needed)
        carry_read = operand_parts(stays, params)[1]
        if carry_read == carry:
            return _SmallerStep(None if smaller is program else smaller, stays, (*carry, *ys))
        carry = carry_read
