"""Lowering rules of cumulative operations."""

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge.mlir import Value
from hlofront.core.aval import ShapedArray
from hlofront.core.rules import lower
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.ops import reduce as bodies
from hlofront.lowering.ops.reduce import Monoid
from hlofront.lowering.ops.reduce_window import emit_reduce_window
from hlofront.primitives.arrays import cumulative as c
from hlofront.primitives.arrays.reducing import greatest_value, least_value
from hlofront.primitives.arrays.windowed import Windows


class _Parts(NamedTuple):
    """The greater of x and y, the difference x - y, and the lesser minus the greater."""

    greater: Value
    difference: Value
    exponent: Value


def _log_add_exp_body(aval: ShapedArray) -> bodies.Body:
    """Return the region that computes log(exp(x) + exp(y)) without overflow.

    It uses only the larger operand and the difference.
    """
    scalar = ShapedArray((), aval.dtype)

    def real(inner: Builder, x: Value, y: Value) -> _Parts:
        greater = inner.op("stablehlo.maximum", (x, y), scalar)
        difference = inner.op("stablehlo.subtract", (x, y), scalar)
        distance = inner.op("stablehlo.abs", (difference,), scalar)
        return _Parts(greater, difference, inner.op("stablehlo.negate", (distance,), scalar))

    def lexicographic(inner: Builder, x: Value, y: Value) -> _Parts:
        greater = bodies.extreme_complex(inner, "GT", x, y, aval.dtype)
        difference = inner.op("stablehlo.subtract", (x, y), scalar)
        is_x = inner.compare("EQ", greater, x, scalar)
        opposite = inner.op("stablehlo.negate", (difference,), scalar)
        exponent = inner.select(is_x, opposite, difference, scalar)
        return _Parts(greater, difference, exponent)

    is_complex = issubdtype(aval.dtype, np.complexfloating)
    parts = lexicographic if is_complex else real

    def body(inner: Builder, x: Value, y: Value) -> list[Value]:
        greater, difference, exponent = parts(inner, x, y)
        # Use the sum for NaNs, and for equal infinities, whose difference is NaN.
        not_a_number = inner.compare("NE", difference, difference, scalar)
        total = inner.op("stablehlo.add", (x, y), scalar)
        power = inner.op("stablehlo.exponential", (exponent,), scalar)
        rest = inner.op("stablehlo.log_plus_one", (power,), scalar)
        result = inner.op("stablehlo.add", (greater, rest), scalar)
        return [inner.select(not_a_number, total, result, scalar)]

    return body


_MONOIDS = {
    c.cumsum_p: Monoid(bodies.add_body, bodies.zero),
    c.cumprod_p: Monoid(bodies.multiply_body, bodies.one),
    c.cummax_p: Monoid(bodies.max_body, least_value),
    c.cummin_p: Monoid(bodies.min_body, greatest_value),
    c.cumlogsumexp_p: Monoid(_log_add_exp_body, least_value),
}


@lower(*_MONOIDS)
def cumulative_lower(build: Builder, x: Value, *, axis: int, reverse: bool) -> Value:
    # Use a window as long as the axis, with padding for all but one of its elements: XLA turns this
    # pattern into scans of blocks, whose time is linear in the size of the axis.
    (aval,) = build.avals_in
    size = aval.shape[axis]
    if aval.size == 0:
        return x
    monoid = _MONOIDS[build.primitive]
    ones = (1,) * aval.ndim
    pad = (0, size - 1) if reverse else (size - 1, 0)
    windows = Windows(
        window_dimensions=(*ones[:axis], size, *ones[axis + 1 :]),
        window_strides=ones,
        padding=tuple(pad if i == axis else (0, 0) for i in range(aval.ndim)),
        base_dilation=ones,
        window_dilation=ones,
    )
    init = monoid.initial(build, aval.dtype)
    return emit_reduce_window(build, [x], [init], [aval], windows, monoid.body(aval))[0]
