"""Lowering rules of reductions."""

from collections.abc import Callable, Sequence
from typing import Concatenate

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import NumPyArray
from hlofront.bridge.mlir import Value, Values
from hlofront.core.aval import Avals, ShapedArray
from hlofront.core.primitive import Primitive
from hlofront.core.rules import lower
from hlofront.lowering.core import types
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.types import NumPyDType
from hlofront.lowering.ops.dot_general import at_least_a_byte, widened
from hlofront.primitives.arrays import reducing as r
from hlofront.primitives.elementwise.families import complex_of, real_of

# body(builder, *accumulated, *elements) -> the new accumulated values.
Body = Callable[Concatenate[Builder, ...], Values]
# (dtype) -> the identity of the reduction.
StartValue = Callable[[NumPyDType], NumPyArray]


class Monoid(NamedTuple):
    """A reduction: the function that combines two elements of an aval, and the identity."""

    body: Callable[[ShapedArray], Body]
    start: StartValue

    def initial(self, build: Builder, dtype: NumPyDType) -> Value:
        """Return the identity of the reduction, as a constant."""
        return build.constant(self.start(dtype), dtype)


def emit_reduce(
    build: Builder, operands: Values, inits: Values, results: Avals, axes: Sequence[int], body: Body
) -> list[Value]:
    """Reduce the axes of all operands together, to results with the avals `results`."""
    attributes = {"dimensions": types.i64_array(axes)}
    avals = scalars_of(results) * 2
    return build.with_region(
        "stablehlo.reduce", [*operands, *inits], results, attributes, avals, body
    )


def scalars_of(avals: Avals) -> list[ShapedArray]:
    """Return scalar avals with the dtypes of these avals."""
    return [ShapedArray((), aval.dtype) for aval in avals]


def one_op(name: str) -> Callable[[ShapedArray], Body]:
    """Return a function from an aval to the region that combines two elements by one operation."""

    def of_aval(aval: ShapedArray) -> Body:
        scalar = ShapedArray((), aval.dtype)

        def body(inner: Builder, x: Value, y: Value) -> list[Value]:
            return [inner.op(name, (x, y), scalar)]

        return body

    return of_aval


def _ordered(name: str, direction: str) -> Callable[[ShapedArray], Body]:
    """Return the function from an aval to the region of `maximum` or `minimum`.

    Complex numbers are compared by their real parts, then by their imaginary parts.
    """

    def of_aval(aval: ShapedArray) -> Body:
        if not issubdtype(aval.dtype, np.complexfloating):
            return one_op(name)(aval)

        def body(inner: Builder, x: Value, y: Value) -> list[Value]:
            return [extreme_complex(inner, direction, x, y, aval.dtype)]

        return body

    return of_aval


def extreme_complex(build: Builder, direction: str, x: Value, y: Value, dtype: NumPyDType) -> Value:
    """Return the greater (GT) or lesser (LT) of the scalars x and y in lexicographic order."""
    part = ShapedArray((), real_of(dtype))
    parts_x, parts_y = build.parts(x, part), build.parts(y, part)
    return first_complex(build, direction, (x, y), parts_x, parts_y, part)


def first_complex(
    build: Builder,
    direction: str,
    pair: tuple[Value, Value],
    parts_x: tuple[Value, Value],
    parts_y: tuple[Value, Value],
    part: ShapedArray,
) -> Value:
    """Return x where it compares as `direction` with y in lexicographic order, else y.

    Args:
      pair: the complex arrays x and y.
      parts_x: the real and the imaginary part of x, of the aval `part`; `parts_y` are those of y.
    """
    (real_x, imag_x), (real_y, imag_y) = parts_x, parts_y
    takes_x = build.select(
        build.compare("EQ", real_x, real_y, part),
        build.compare(direction, imag_x, imag_y, part),
        build.compare(direction, real_x, real_y, part),
        part.update(dtype=np.dtype(np.bool_), weak_type=False),
    )
    x, y = pair
    whole = part.update(dtype=complex_of(part.dtype))
    return build.select(takes_x, x, y, whole)


add_body = one_op("stablehlo.add")
multiply_body = one_op("stablehlo.multiply")
max_body = _ordered("stablehlo.maximum", "GT")
min_body = _ordered("stablehlo.minimum", "LT")


def _all_bits(dtype: NumPyDType) -> NumPyArray:
    return np.array(True) if dtype == np.bool_ else np.invert(np.zeros((), dtype))


def zero(dtype: NumPyDType) -> NumPyArray:
    return np.zeros((), dtype)


def one(dtype: NumPyDType) -> NumPyArray:
    return np.ones((), dtype)


_MONOIDS = {
    r.reduce_sum_p: Monoid(add_body, zero),
    r.reduce_prod_p: Monoid(multiply_body, one),
    r.reduce_max_p: Monoid(max_body, r.least_value),
    r.reduce_min_p: Monoid(min_body, r.greatest_value),
    r.reduce_and_p: Monoid(one_op("stablehlo.and"), _all_bits),
    r.reduce_or_p: Monoid(one_op("stablehlo.or"), zero),
    r.reduce_xor_p: Monoid(one_op("stablehlo.xor"), zero),
}


def monoid_of(primitive: Primitive) -> Monoid:
    """Return the monoid of a primitive that reduces axes."""
    return _MONOIDS[primitive]


@lower(r.reduce_sum_p, r.reduce_prod_p, r.reduce_max_p, r.reduce_min_p)
def reduce_lower(build: Builder, x: Value, *, axes: Sequence[int], **_: object) -> Value:
    monoid = _MONOIDS[build.primitive]
    (result,) = build.avals_out
    init = monoid.initial(build, result.dtype)
    return emit_reduce(build, [x], [init], [result], axes, monoid.body(result))[0]


@lower(r.reduce_and_p, r.reduce_or_p, r.reduce_xor_p)
def _(build: Builder, x: Value, *, axes: Sequence[int], **params: object) -> Value:
    module, (result,) = build.module, build.avals_out
    exists = result.dtype == np.bool_ and build.primitive is not r.reduce_xor_p
    if exists or not module.several_devices or module.platforms != ("cpu",):
        return reduce_lower(build, x, axes=axes, **params)
    # CPU devices do not support all-reduces by these operations. A reduction of two arrays, where
    # each accumulated value depends on both, becomes a reduction of the devices' gathered results.
    monoid = _MONOIDS[build.primitive]
    init = monoid.initial(build, result.dtype)
    combine = monoid.body(result)

    def body(inner: Builder, a: Value, b: Value, x: Value, y: Value) -> list[Value]:
        return [*combine(inner, a, y), *combine(inner, b, x)]

    return emit_reduce(build, [x, x], [init, init], [result, result], axes, body)[0]


@lower(r.argmin_p, r.argmax_p)
def _(build: Builder, x: Value, *, axes: Sequence[int], index_dtype: NumPyDType) -> Value:
    """Lower argmin or argmax to one reduction of elements and indices, for every platform."""
    is_max = build.primitive is r.argmax_p
    direction, start = ("GT", r.least_value) if is_max else ("LT", r.greatest_value)
    (operand,), (result,) = build.avals_in, build.avals_out
    # XLA's GPU compiler fails if one of two operands is narrower than a byte.
    x = widened(build, x, operand)
    operand = operand.update(dtype=at_least_a_byte(operand.dtype))
    indices = build.iota(ShapedArray(operand.shape, index_dtype), axes[0])
    inits = [
        build.constant(start(operand.dtype), operand.dtype),
        build.constant(0, index_dtype),
    ]
    results = [result.update(dtype=operand.dtype), result]
    value, index = scalars_of(results)
    truth = ShapedArray((), np.dtype(np.bool_))

    def body(inner: Builder, x: Value, i: Value, y: Value, j: Value) -> list[Value]:
        # x precedes y if it is more extreme, or if it is NaN and y is not. Among equal elements and
        # among NaNs the index decides, whatever the order in which a device combines them.
        first = inner.compare(direction, x, y, value)
        same = inner.compare("EQ", x, y, value)
        if issubdtype(operand.dtype, np.floating):
            x_is_nan = inner.compare("NE", x, x, value)
            y_is_number = inner.compare("EQ", y, y, value)
            y_is_nan = inner.compare("NE", y, y, value)
            only_x = inner.op("stablehlo.and", (x_is_nan, y_is_number), truth)
            both = inner.op("stablehlo.and", (x_is_nan, y_is_nan), truth)
            first = inner.op("stablehlo.or", (first, only_x), truth)
            same = inner.op("stablehlo.or", (same, both), truth)
        tie = inner.op("stablehlo.and", (same, inner.compare("LT", i, j, index)), truth)
        first_index = inner.op("stablehlo.or", (first, tie), truth)
        return [inner.select(first, x, y, value), inner.select(first_index, i, j, index)]

    return emit_reduce(build, [x, indices], inits, results, axes, body)[1]
