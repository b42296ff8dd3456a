"""Lowering rules of cond, switch and while loops, and of `platform_index`."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from hlofront.base.elements import ExtendedDType
from hlofront.bridge.mlir import Value, Values
from hlofront.core.aval import ShapedArray
from hlofront.core.effects import no_effects, ordered_effects
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.rules import lower
from hlofront.higher_order.control_flow.cond import cond_p
from hlofront.higher_order.control_flow.platform import number_for, platform_index_p
from hlofront.higher_order.control_flow.while_loop import while_p
from hlofront.higher_order.selecting import three_parts
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.per_platform import choose, number_of
from hlofront.lowering.ops.reduce import emit_reduce

# Per branch its platforms; None for the branch of all other platforms.
BranchesPlatforms = Sequence[tuple[str, ...] | None]


def _run(program: ClosedJaxpr, args: Values, scope: Sequence[str], build: Builder) -> list[Value]:
    return build.inline_closed(program, args, *scope)


def _branch(number: int) -> tuple[str, str]:
    return "cond", f"branch_{number}_fun"


# ---- cond ----------------------------------------------------------------------------------------


@lower(cond_p)
def _(
    build: Builder,
    index: Value,
    *operands: Value,
    branches: Sequence[ClosedJaxpr],
    branches_platforms: BranchesPlatforms | None = None,
) -> Value | Values:
    if branches_platforms is not None:
        return _of_platforms(build, operands, branches, branches_platforms)
    if len(branches) == 1:
        return _run(branches[0], operands, (), build)
    effects = no_effects.union(*[branch.effects for branch in branches])
    regions = [partial(_run, branch, operands, _branch(i)) for i, branch in enumerate(branches)]
    return build.case(index, regions, build.avals_out, effects)


def _of_platforms(
    build: Builder,
    operands: Values,
    branches: Sequence[ClosedJaxpr],
    branches_platforms: BranchesPlatforms,
) -> list[Value]:
    """Emit only the branches of `platform_dependent` for the platforms of this module."""
    chosen: dict[int, list[str]] = {}
    for name in build.module.platforms:
        chosen.setdefault(number_for(name, branches_platforms), []).append(name)
    if len(chosen) == 1:
        (number,) = chosen
        return _run(branches[number], operands, (), build)
    effects = no_effects.union(*[branches[number].effects for number in chosen])
    regions = [
        (tuple(names), partial(_run, branches[number], operands, _branch(number)))
        for number, names in chosen.items()
    ]
    return choose(build, regions, build.avals_out, effects)


@lower(platform_index_p)
def _(build: Builder, *, platforms: BranchesPlatforms) -> Value | Values:
    return number_of(build, [number_for(name, platforms) for name in build.module.platforms])


# ---- while ---------------------------------------------------------------------------------------


@lower(while_p)
def _(
    build: Builder,
    *args: Value,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> Value | Values:
    cond_consts, body_consts, carry = three_parts(args, cond_nconsts, body_nconsts)
    (whether,) = cond_jaxpr.out_avals
    avals = build.avals_out
    effects = cond_jaxpr.effects | body_jaxpr.effects

    def test_values(inner: Builder, *values: Value) -> Value:
        return test(inner, values)

    def step_values(inner: Builder, *values: Value) -> list[Value]:
        return step(inner, values)

    def test(inner: Builder, values: Values, name: str = "cond") -> Value:
        return _run(cond_jaxpr, [*cond_consts, *values], ("while", name), inner)[0]

    def step(inner: Builder, values: Values) -> list[Value]:
        return _run(body_jaxpr, [*body_consts, *values], ("while", "body"), inner)

    if not whether.shape and not ordered_effects(cond_jaxpr.effects):
        return build.while_loop(
            test_values,
            step_values,
            carry,
            avals,
            effects,
        )

    # Carry the predicate of the next iteration: a batch of loops needs it in the body, and a
    # condition with ordered effects can only be evaluated where the tokens are.
    def cond(inner: Builder, answer: Value, *_: Value) -> Value:
        return _any(inner, answer, whether)

    def looped(inner: Builder, answer: Value, *values: Value) -> list[Value]:
        carried = [
            _where_continuing(inner, answer, whether, new, old, aval)
            for new, old, aval in zip(step(inner, values), values, avals, strict=True)
        ]
        return [test(inner, carried, "body_pred"), *carried]

    first = test(build, carry)
    results = build.while_loop(cond, looped, [first, *carry], [whether, *avals], effects)
    return results[1:]


def _any(build: Builder, answers: Value, aval: ShapedArray) -> Value:
    if not aval.shape:
        return answers
    scalar = ShapedArray((), np.dtype(np.bool_))

    def either(inner: Builder, x: Value, y: Value) -> list[Value]:
        return [inner.op("stablehlo.or", (x, y), scalar)]

    start = build.constant(False)
    return emit_reduce(build, [answers], [start], [scalar], range(aval.ndim), either)[0]


def _where_continuing(
    build: Builder,
    answers: Value,
    answer_aval: ShapedArray,
    new: Value,
    old: Value,
    aval: ShapedArray,
) -> Value:
    """Return `new` for batch elements whose loop continues, and `old` for the others."""
    if not answer_aval.shape:
        return new
    shape = aval.shape
    if isinstance(aval.dtype, ExtendedDType):
        shape, _ = aval.dtype.physical(shape)
    if answer_aval.shape != shape:
        which = answer_aval.update(shape=shape)
        answers = build.broadcast(answers, which, range(answer_aval.ndim))
    return build.select(answers, new, old, aval)
