"""Lowering rules of reductions with a user's function."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofront.base.typing import Array, ArrayLike
from hlofront.bridge.mlir import Value
from hlofront.core.jaxpr import ClosedJaxpr, Jaxpr
from hlofront.core.primitive import Primitive
from hlofront.core.rules import lower
from hlofront.higher_order.control_flow import reduce as r
from hlofront.lowering.core.builder import Builder, large_constants
from hlofront.lowering.ops.reduce import Body, emit_reduce
from hlofront.lowering.ops.reduce_window import (
    SelectionWindows,
    emit_reduce_window,
    emit_select_and_scatter,
)
from hlofront.primitives.arrays import reducing as folds
from hlofront.primitives.arrays.shaping import broadcast
from hlofront.primitives.arrays.windowed import Windows
from hlofront.primitives.elementwise import elementwise as e


def body_of(jaxpr: Jaxpr, consts: Sequence[object]) -> Body:
    """Return a function that emits a jaxpr and its constants into a region."""
    program = ClosedJaxpr(jaxpr, consts)

    def body(inner: Builder, *scalars: Value) -> list[Value]:
        inner.hoisted = {
            id(constant.value): inner.constant(np.asarray(constant.value), constant.aval.dtype)
            for constant in large_constants(program)
        }
        with inner.module.scalar_region():
            return inner.inline(jaxpr, consts, scalars)

    return body


# Primitive that combines two elements -> the reduction and the function. Functions that may combine
# an initial value twice, such as the maximum, are not included.
_REPEATING: dict[Primitive, tuple[Callable[..., Array], Callable[..., Array]]] = {
    e.add_p: (folds.reduce_sum, e.add),
    e.mul_p: (folds.reduce_prod, e.mul),
    e.xor_p: (folds.reduce_xor, e.bitwise_xor),
}


def combination_of(jaxpr: Jaxpr) -> Primitive | None:
    """Return the primitive if a program only applies one to its two scalars, or None."""
    if len(jaxpr.eqns) != 1 or len(jaxpr.invars) != 2:
        return None
    (equation,) = jaxpr.eqns
    if set(equation.invars) != set(jaxpr.invars) or [*equation.outvars] != [*jaxpr.outvars]:
        return None
    return equation.primitive


@lower(r.reduce_p)
def _(
    build: Builder, *args: Value, computation: object, jaxpr: ClosedJaxpr, dimensions: Sequence[int]
) -> list[Value]:
    half = len(args) // 2
    ndim = build.avals_in[0].ndim
    axes = [axis + ndim if axis < 0 else axis for axis in dimensions]
    combination = combination_of(jaxpr.jaxpr)
    if build.module.several_devices and combination in _REPEATING:
        # XLA starts with the initial value on each device that has elements.
        reduce, combine = _REPEATING[combination]

        def reduced(x: Array, start: Array) -> ArrayLike:
            result = reduce(x, axes)
            return combine(result, broadcast(start, result.shape))

        return build.by_tracing(reduced, args)
    body = body_of(jaxpr.jaxpr, jaxpr.consts)
    return emit_reduce(build, args[:half], args[half:], build.avals_out, axes, body)


@lower(r.reduce_window_p)
def _(
    build: Builder, *args: Value, jaxpr: Jaxpr, consts: Sequence[object], **windows: Any
) -> list[Value]:
    half = len(args) // 2
    operands, inits = args[:half], args[half:]
    body = body_of(jaxpr, consts)
    return emit_reduce_window(build, operands, inits, build.avals_out, Windows(**windows), body)


@lower(r.select_and_scatter_p)
def _(
    build: Builder,
    *operands: Value,
    select_jaxpr: Jaxpr,
    select_consts: Sequence[object],
    scatter_jaxpr: Jaxpr,
    scatter_consts: Sequence[object],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[Sequence[int]],
) -> Value:
    return emit_select_and_scatter(
        build,
        operands,
        build.avals_out[0],
        SelectionWindows(window_dimensions, window_strides, padding),
        body_of(select_jaxpr, select_consts),
        body_of(scatter_jaxpr, scatter_consts),
    )
