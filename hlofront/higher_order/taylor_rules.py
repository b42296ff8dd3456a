# pyright: strict
"""Taylor rules of operations that hold programs: calls, branches and loops.

Each expands its programs once, to programs of values and the terms of their series. Calls with a
custom_jvp rule have no rule here, and are expanded by their jvp rule, like all derivatives of them.
"""

from collections.abc import Callable, Iterable, Sequence

from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import typeof
from hlofront.core.jaxpr import ClosedJaxpr, ParamDict, Value
from hlofront.core.programs.evaluate import jaxpr_as_fun
from hlofront.core.programs.program_cache import DerivedCache
from hlofront.core.symbolic_zeros import Series, ZeroSeries
from hlofront.higher_order.calls.jit_call import CallRules, call_rules, jit_rules
from hlofront.higher_order.checkpoint.checkpoint import remat_rules
from hlofront.higher_order.control_flow.cond import cond_p
from hlofront.higher_order.control_flow.cond_rules import with_same_outputs
from hlofront.higher_order.control_flow.scan import scan_p
from hlofront.higher_order.control_flow.scan_rules import ScanStep
from hlofront.higher_order.control_flow.scan_splitting import StepCache, operand_parts
from hlofront.higher_order.control_flow.while_loop import while_p
from hlofront.higher_order.custom_rules.custom_vjp_call import custom_vjp_call_p
from hlofront.higher_order.selecting import Flags, three_parts
from hlofront.primitives.rules.taylor import order_of
from hlofront.transforms.stage import stage
from hlofront.transforms.taylor import (
    instantiate_series,
    jet_flat,
    jet_jaxpr,
    jet_program,
    with_terms,
)

Expansions = tuple[list[ArrayLike], list[Series]]


def series_flags(series: Iterable[Series]) -> Flags:
    """Return a flag per series: whether it has terms."""
    return tuple([not isinstance(s, ZeroSeries) for s in series])


def terms_of(series: Iterable[Series]) -> list[ArrayLike]:
    """Return the terms of all series, concatenated."""
    return [term for s in series if not isinstance(s, ZeroSeries) for term in s]


def _expanded(results: ArrayLikes, present: Flags, order: int) -> Expansions:
    """Split the results of an expanded program into primals and series."""
    count = len(present)
    return list(results[:count]), list(with_terms(results[count:], present, order))


# ---- calls and branches --------------------------------------------------------------------------


def expand_call(call: CallRules) -> None:
    """Register the Taylor rule of a primitive that calls a program with all its operands."""

    @rules.taylor(call.primitive)
    def _(primals: ArrayLikes, series: Sequence[Series], **params: Value) -> Expansions:
        order = order_of(series)
        program, present = jet_program(params[call.parameter], series_flags(series), order)
        terms = terms_of(series)
        adapted = call.adapted(params, [*range(len(primals)), *[None] * len(terms)])
        return _expanded(call.call(program, [*primals, *terms], adapted), present, order)


for _rules in (jit_rules, call_rules, remat_rules):
    expand_call(_rules)


@rules.taylor(custom_vjp_call_p)
def _(
    primals: ArrayLikes,
    series: Sequence[Series],
    *,
    call_jaxpr: ClosedJaxpr | Callable[..., ArrayLikes],
    **_: object,
) -> Expansions:
    # The user's rule is for cotangents, so the function itself is expanded.
    if isinstance(call_jaxpr, ClosedJaxpr):
        return jet_jaxpr(call_jaxpr.jaxpr, call_jaxpr.consts, primals, series)
    return jet_flat(call_jaxpr, primals, series)


@rules.taylor(cond_p)
def _(
    primals: ArrayLikes,
    series: Sequence[Series],
    *,
    branches: Sequence[ClosedJaxpr],
    **params: object,
) -> Expansions:
    flags, order = series_flags(series[1:]), order_of(series)
    expanded, present = with_same_outputs(
        branches, lambda branch, required: jet_program(branch, flags, order, required)
    )
    results = cond_p.bind(*primals, *terms_of(series[1:]), branches=expanded, **params)
    return _expanded(results, present, order)


# ---- loops ---------------------------------------------------------------------------------------


def _expanded_body(
    body: ClosedJaxpr, before: Flags, carry: Flags, after: Flags, order: int
) -> tuple[ClosedJaxpr, Flags, Flags]:
    """Expand the body of a loop, with terms for all members of the carry that series reach.

    Args:
      body: the program of an iteration, with inputs (constants, carry, slices) and outputs (carry,
        slices).
      before: per constant, whether it has a series.
      carry: per member of the initial carry, whether it has a series.
      after: per slice, whether it has a series.
      order: the number of terms.

    Returns:
      The program, with inputs (constants, their terms, carry, its terms, slices, their terms), and
      outputs in the same order; and per member of the carry, and per slice of the results, whether
      it has terms.
    """
    count = len(carry)
    sliced = [False] * (len(body.out_avals) - count)
    while True:
        program, present = jet_program(body, (*before, *carry, *after), order, (*carry, *sliced))
        if present[:count] == carry:
            break
        carry = present[:count]
    inputs, outputs = (before, carry, after), (carry, present[count:])
    avals = _grouped(program.in_avals, inputs, order)

    def in_groups(*args: ArrayLike) -> list[ArrayLike]:
        results = jaxpr_as_fun(program, *_ungrouped(args, inputs, order))
        return _grouped(results, outputs, order)

    return stage(in_groups, avals), carry, present[count:]


def _grouped(members: Sequence[Value], groups: Sequence[Flags], order: int) -> list[Value]:
    """Reorder (*primals, *terms) so that the terms of each group follow its primals."""
    primals, terms = iter(members), iter(members[sum(map(len, groups)) :])
    ordered: list[Value] = []
    for flags in groups:
        ordered += [next(primals) for _ in flags]
        ordered += [next(terms) for _ in range(order * sum(flags))]
    return ordered


def _ungrouped(members: Iterable[Value], groups: Sequence[Flags], order: int) -> list[Value]:
    """Reverse the reordering of `_grouped`."""
    rest = iter(members)
    primals: list[Value] = []
    terms: list[Value] = []
    for flags in groups:
        primals += [next(rest) for _ in flags]
        terms += [next(rest) for _ in range(order * sum(flags))]
    return [*primals, *terms]


def _carry_terms(
    carry: ArrayLikes, series: Sequence[Series], has_terms: Flags, order: int
) -> list[ArrayLike]:
    """Return a first carry's terms, with zeros for members that get terms in iterations."""
    return [
        term
        for x, s, flag in zip(carry, series, has_terms, strict=True)
        if flag
        for term in instantiate_series(x, s, order)
    ]


# Cached by whether the series of each operand has terms, and by the order.
_scan_steps: StepCache[tuple[Flags, int], ScanStep[tuple[Flags, Flags]]] = StepCache()
# Cached by the body of a loop, its number of constants, whether the series of each operand has
# terms, and the order.
_while_bodies: DerivedCache[tuple[int, Flags, int], tuple[ClosedJaxpr, Flags]] = DerivedCache()


@rules.taylor(scan_p)
def _(primals: ArrayLikes, series: Sequence[Series], **params: Value) -> Expansions:
    order, flags = order_of(series), series_flags(series)
    step = _scan_steps.get_or_compute(
        params, (flags, order), lambda: _scan_step(params, flags, order)
    )
    has_terms, collected = step.facts
    consts, carry, xs = operand_parts(primals, params)
    const_series, carry_series, x_series = operand_parts(series, params)
    last, ys = step.run(
        [*consts, *terms_of(const_series)],
        [*carry, *_carry_terms(carry, carry_series, has_terms, order)],
        [*xs, *terms_of(x_series)],
        params,
    )
    results = _ungrouped([*last, *ys], (has_terms, collected), order)
    return _expanded(results, (*has_terms, *collected), order)


def _scan_step(params: ParamDict, flags: Flags, order: int) -> ScanStep[tuple[Flags, Flags]]:
    program, carry, ys = _expanded_body(params["jaxpr"], *operand_parts(flags, params), order)
    return ScanStep(program, program.jaxpr.invars, program.jaxpr.outvars, (carry, ys))


@rules.taylor(while_p)
def _(
    primals: ArrayLikes,
    series: Sequence[Series],
    *,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> Expansions:
    order = order_of(series)
    cond_consts, consts, carry = three_parts(primals, cond_nconsts, body_nconsts)
    _, const_series, carry_series = three_parts(series, cond_nconsts, body_nconsts)
    flags = series_flags((*const_series, *carry_series))
    body, has_terms = _while_bodies.get_or_compute(
        body_jaxpr,
        (body_nconsts, flags, order),
        lambda: _while_body(body_jaxpr, flags[:body_nconsts], flags[body_nconsts:], order),
    )
    terms = _carry_terms(carry, carry_series, has_terms, order)
    const_terms = terms_of(const_series)

    def condition(*args: ArrayLike) -> list[ArrayLike]:
        # Whether there is another iteration depends only on values, not on their series.
        return jaxpr_as_fun(cond_jaxpr, *args[: len(cond_consts) + len(carry)])

    results = while_p.bind(
        *cond_consts,
        *consts,
        *const_terms,
        *carry,
        *terms,
        cond_jaxpr=stage(condition, [*cond_jaxpr.in_avals, *map(typeof, terms)]),
        body_jaxpr=body,
        cond_nconsts=len(cond_consts),
        body_nconsts=len(consts) + len(const_terms),
    )
    return _expanded(results, has_terms, order)


def _while_body(
    body: ClosedJaxpr, consts: Flags, carry: Flags, order: int
) -> tuple[ClosedJaxpr, Flags]:
    program, has_terms, _ = _expanded_body(body, consts, carry, (), order)
    return program, has_terms
