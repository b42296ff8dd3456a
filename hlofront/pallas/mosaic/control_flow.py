"""Mosaic rules of branches, loops, calls and the indices of a kernel's grid."""

from collections.abc import Callable, Sequence

from hlofront.base.elements import int32
from hlofront.base.typing import DType
from hlofront.bridge.mlir import Value, Values
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, Literal
from hlofront.core.programs.subprograms import called_by, inputs_among
from hlofront.higher_order.calls.call_primitive import call_p
from hlofront.higher_order.calls.jit_call import closed_call_p, jit_p
from hlofront.higher_order.checkpoint.checkpoint import remat_p
from hlofront.higher_order.checkpoint.checkpoint_policies import name_p
from hlofront.higher_order.control_flow.cond import cond_p
from hlofront.higher_order.control_flow.platform import Platforms, number_for, platform_index_p
from hlofront.higher_order.control_flow.scan import scan_p
from hlofront.higher_order.control_flow.while_loop import while_p
from hlofront.higher_order.custom_rules.custom_jvp import custom_jvp_call_p
from hlofront.higher_order.custom_rules.custom_vjp_call import custom_vjp_call_p
from hlofront.higher_order.custom_rules.custom_vmap import custom_vmap_call_p
from hlofront.higher_order.selecting import three_parts
from hlofront.pallas.mosaic.builder import KernelBuilder, Operand
from hlofront.pallas.mosaic.elementwise import DIFFERENT, compared, converted
from hlofront.pallas.mosaic.rules import mosaic
from hlofront.pallas.mosaic.types import value_type
from hlofront.primitives.elementwise.compare import lt_p
from hlofront.primitives.elementwise.elementwise import add_p


@mosaic(
    jit_p,
    closed_call_p,
    call_p,
    custom_jvp_call_p,
    custom_vjp_call_p,
    custom_vmap_call_p,
    remat_p,
)
def _(build: KernelBuilder, *operands: Operand, **_: object) -> list[Operand]:
    """Emit the called program inline."""
    part = called_by(build.equation)
    if part is None:
        build.refuse(f"{build.equation.primitive.name} does not say which program it calls")
    return build.call(part.closed, inputs_among(part, operands))


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
    carry: Values,
    step: Callable[[KernelBuilder, Value, Sequence[Operand]], Sequence[Operand]],
) -> Sequence[Operand]:
    """Emit a loop over integers; `step(builder, i, carry)` returns the next carry."""

    def body(inner: KernelBuilder, i: Value, *values: Value) -> None:
        inner.effect("scf.yield", step(inner, i, values))

    types = [x.type for x in carry]
    arguments = (bounds[0].type, *types)
    return build.with_regions("scf.for", (*bounds, *carry), types, (arguments, body))


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
        and _is_one(equation.invars[1])
        and getattr(out.aval, "dtype", None) == int32
        for equation in jaxpr.eqns
    )


def _is_one(atom: Atom) -> bool:
    return type(atom) is Literal and not getattr(atom.aval, "shape", ()) and atom.val == 1


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
    one = build.constant(1, int32)
    start = build.constant(0, int32) if counter is None else carry[counter]
    steps = build.constant(length - length % at_once, int32)
    stop = build.op("arith.addi", (start, steps), one.type) if counter is not None else steps
    stride = build.constant(at_once, int32)

    def step(inner: KernelBuilder, i: Value, values: Sequence[Operand]) -> Sequence[Operand]:
        values = list(values)
        if counter is not None:
            values.insert(counter, i)
        for _step in range(at_once):
            values = inner.call(jaxpr, [*consts, *values])
        if counter is not None:
            del values[counter]
        return values

    carried = [x for n, x in enumerate(carry) if n != counter]
    results = _count_up(build, (start, stop, stride), carried, step)
    if counter is not None:
        results = [*results[:counter], stop, *results[counter:]]
    for _step in range(length % at_once):
        results = build.call(jaxpr, [*consts, *results])
    return list(results)


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

        def step(inner: KernelBuilder, i: Value, values: Sequence[Operand]) -> Sequence[Operand]:
            before = [*values[:counter], i, *values[counter:]]
            after = inner.call(body_jaxpr, [*body_consts, *before])
            return [*after[:counter], *after[counter + 1 :]]

        rest = [*carry[:counter], *carry[counter + 1 :]]
        bounds = (carry[counter], stop, build.constant(1, int32))
        results = _count_up(build, bounds, rest, step)
        last = build.op("arith.maxsi", (carry[counter], stop), stop.type)
        return [*results[:counter], last, *results[counter:]]
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
