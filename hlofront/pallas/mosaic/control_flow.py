"""Mosaic rules of branches and loops."""

from collections.abc import Callable, Sequence

import numpy as np

from hlofront.base.elements import int32
from hlofront.base.typing import DType
from hlofront.bridge.mlir import Value
from hlofront.core.jaxpr import ClosedJaxpr, Jaxpr, Literal
from hlofront.higher_order.checkpoint.checkpoint_policies import name_p
from hlofront.higher_order.control_flow.cond import cond_p
from hlofront.higher_order.control_flow.platform import Platforms, number_for, platform_index_p
from hlofront.higher_order.control_flow.scan import scan_p
from hlofront.higher_order.control_flow.while_loop import while_p
from hlofront.higher_order.selecting import three_parts
from hlofront.pallas.mosaic.builder import KernelBuilder, Operand
from hlofront.pallas.mosaic.elementwise import DIFFERENT, compared, converted
from hlofront.pallas.mosaic.rules import mosaic
from hlofront.pallas.mosaic.types import value_type
from hlofront.primitives.elementwise.compare import lt_p
from hlofront.primitives.elementwise.elementwise import add_p


@mosaic(name_p)
def _(build: KernelBuilder, x: Value, **_: object) -> Value:
    return x


# ---- branches ------------------------------------------------------------------------------------


@mosaic(cond_p)
def _(
    build: KernelBuilder,
    index: Value,
    *operands: Operand,
    branches: Sequence[ClosedJaxpr],
    branches_platforms: Platforms | None = None,
    **_: object,
) -> list[Operand]:
    if branches_platforms is not None:
        return build.call(branches[number_for("tpu", branches_platforms)], operands)
    return _branch(build, index, operands, branches, build.avals_in[0].dtype)


@mosaic(platform_index_p)
def _(build: KernelBuilder, *, platforms: Platforms) -> Value:
    return build.constant(number_for("tpu", platforms), int32)


def _branch(
    build: KernelBuilder,
    index: Value,
    operands: Sequence[Operand],
    branches: Sequence[ClosedJaxpr],
    dtype: DType,
) -> list[Operand]:
    """Emit the choice of a branch by an index: the first for 0, else one of the others."""
    if len(branches) == 1:
        return build.call(branches[0], operands)
    index = converted(build, index, (), dtype, int32)
    zero = build.constant(0, int32)
    is_other = compared(build, DIFFERENT, index, zero, (), int32)

    def others(inner: KernelBuilder) -> None:
        rest = index
        if len(branches) > 2:
            one = inner.constant(1, int32)
            rest = inner.op("arith.subi", (index, one), value_type((), int32))
        inner.effect("scf.yield", _branch(inner, rest, operands, branches[1:], int32))

    def first(inner: KernelBuilder) -> None:
        inner.effect("scf.yield", inner.call(branches[0], operands))

    types = [build.type_of(aval) for aval in build.avals_out]
    return build.with_regions("scf.if", (is_other,), types, ((), others), ((), first))


# ---- loops ---------------------------------------------------------------------------------------


def _count_up(
    build: KernelBuilder,
    bounds: tuple[Value, Value, Value],
    carry: Sequence[Value],
    counter: int | None,
    last: Value,
    run: Callable[[KernelBuilder, list[Value]], Sequence[Value]],
) -> list[Value]:
    """Emit a loop over integers, and return the carry after it.

    Args:
      counter: the position of a carried value that is the integer, or None.
      last: that value after the loop.
      run: `run(builder, carry)` emits a step, and returns the next carry.
    """

    def others(values: Sequence[Value]) -> list[Value]:
        return [x for place, x in enumerate(values) if place != counter]

    def with_counter(values: Sequence[Value], x: Value) -> list[Value]:
        return [*values] if counter is None else [*values[:counter], x, *values[counter:]]

    def body(inner: KernelBuilder, i: Value, *values: Value) -> None:
        inner.effect("scf.yield", others(run(inner, with_counter(values, i))))

    first = others(carry)
    types = [x.type for x in first]
    arguments = (bounds[0].type, *types)
    results = build.with_regions("scf.for", (*bounds, *first), types, (arguments, body))
    return with_counter(results, last)


def _counter(jaxpr: Jaxpr, first: int, count: int) -> int | None:
    """Return the position of the carried value that counts a loop's steps; None if none does.

    Args:
      jaxpr: the body.
      first: the position of the first carried value among its inputs.
      count: the number of carried values.
    """
    return next((n for n in range(count) if _counts_steps(jaxpr, first, n)), None)


def _counts_steps(jaxpr: Jaxpr, first: int, position: int) -> bool:
    """Return whether a carried value of a loop's body is an int32 that each step increments."""
    var, out = jaxpr.invars[first + position], jaxpr.outvars[position]
    return any(
        equation.primitive is add_p
        and equation.outvars[0] is out
        and equation.invars[0] is var
        and type(one := equation.invars[1]) is Literal
        and not np.shape(one.val)
        and one.val == 1
        and getattr(out.aval, "dtype", None) == int32
        for equation in jaxpr.eqns
    )


@mosaic(scan_p)
def _(
    build: KernelBuilder,
    *args: Operand,
    jaxpr: ClosedJaxpr,
    length: int,
    num_consts: int,
    num_carry: int,
    reverse: bool,
    unroll: int | bool = 1,
    **_: object,
) -> list[Operand]:
    if len(args) > num_consts + num_carry or len(jaxpr.out_avals) > num_carry:
        build.refuse(
            "a scan over arrays, or one that stacks results, in a kernel of a TPU: write "
            "jax.lax.fori_loop, and read and write references in its body",
            NotImplementedError,
        )
    consts, carry = args[:num_consts], list(args[num_consts:])
    counter = _counter(jaxpr.jaxpr, num_consts, num_carry)
    at_once = length if unroll is True else max(int(unroll), 1)
    if at_once >= length:
        for _step in range(length):
            carry = build.call(jaxpr, [*consts, *carry])
        return carry
    start = build.constant(0, int32) if counter is None else carry[counter]
    count = build.constant(length - length % at_once, int32)
    stop = build.op("arith.addi", (start, count), count.type) if counter is not None else count
    stride = build.constant(at_once, int32)

    def steps(inner: KernelBuilder, values: Sequence[Operand]) -> Sequence[Operand]:
        for _step in range(at_once):
            values = inner.call(jaxpr, [*consts, *values])
        return values

    results = _count_up(build, (start, stop, stride), carry, counter, stop, steps)
    for _step in range(length % at_once):
        results = build.call(jaxpr, [*consts, *results])
    return results


@mosaic(while_p)
def _(
    build: KernelBuilder,
    *args: Operand,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> list[Operand]:
    cond_consts, body_consts, carry = three_parts(args, cond_nconsts, body_nconsts)
    bounded = _bounds(cond_jaxpr.jaxpr, body_jaxpr.jaxpr, cond_nconsts, body_nconsts)
    if bounded is not None:
        counter, limit = bounded
        stop = limit if not isinstance(limit, int) else [*cond_consts, *carry][limit]
        stop = build.literal(stop.val, int32) if isinstance(stop, Literal) else stop

        last = build.op("arith.maxsi", (carry[counter], stop), stop.type)
        bounds = (carry[counter], stop, build.constant(1, int32))

        def step(inner: KernelBuilder, values: list[Value]) -> list[Operand]:
            return inner.call(body_jaxpr, [*body_consts, *values])

        return _count_up(build, bounds, carry, counter, last, step)
    types = [build.type_of(aval) for aval in build.avals_out]

    def before(inner: KernelBuilder, *values: Value) -> None:
        (goes_on,) = inner.call(cond_jaxpr, [*cond_consts, *values])
        inner.effect("scf.condition", (goes_on, *values))

    def after(inner: KernelBuilder, *values: Value) -> None:
        inner.effect("scf.yield", inner.call(body_jaxpr, [*body_consts, *values]))

    return build.with_regions("scf.while", carry, types, (types, before), (types, after))


def _bounds(
    cond: Jaxpr, body: Jaxpr, cond_nconsts: int, body_nconsts: int
) -> tuple[int, int | Literal] | None:
    """Return the counter and the limit of a loop that counts up to a constant limit.

    The limit is a literal, or the position of an input of the condition. None for other loops.
    """
    if len(cond.eqns) != 1 or cond.eqns[0].primitive is not lt_p:
        return None
    equation, inputs = cond.eqns[0], list(cond.invars)
    if cond.outvars[0] is not equation.outvars[0] or equation.invars[0] not in inputs:
        return None
    counter = inputs.index(equation.invars[0]) - cond_nconsts
    count = len(body.outvars)
    if counter < 0 or not _counts_steps(body, body_nconsts, counter):
        return None
    limit = equation.invars[1]
    if isinstance(limit, Literal):
        return counter, limit
    position = inputs.index(limit)
    carried = position - cond_nconsts
    if 0 <= carried < count and body.outvars[carried] is not body.invars[body_nconsts + carried]:
        return None
    return counter, position
