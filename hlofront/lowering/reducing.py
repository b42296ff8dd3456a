"""Reductions as StableHLO."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.core.aval import ShapedArray
from hlofront.core.rules import lower
from hlofront.lowering import types
from hlofront.lowering.contracting import at_least_a_byte, widened
from hlofront.primitives import reducing as r

# body(builder, *accumulated, *elements) -> the new values that are accumulated.
Body = Callable[..., Sequence[Any]]


def emit_reduce(
    build: Any,
    operands: Sequence[Any],
    inits: Sequence[Any],
    results: Sequence[ShapedArray],
    axes: Sequence[int],
    body: Body,
) -> list[Any]:
    """Fold the axes of all operands at once. `results` are the avals of the results."""
    operation = build.operation(
        "stablehlo.reduce",
        [*operands, *inits],
        results,
        1,
        {"dimensions": types.i64_array(axes)},
    )
    build.region(operation, 0, scalars_of(results) * 2, body)
    return list(operation.results)


def scalars_of(avals: Sequence[ShapedArray]) -> list[ShapedArray]:
    """The avals of single elements."""
    return [ShapedArray((), aval.dtype) for aval in avals]


def one_op(name: str) -> Callable[[ShapedArray], Body]:
    """The region that combines two elements with one operation."""

    def of_aval(aval: ShapedArray) -> Body:
        scalar = ShapedArray((), aval.dtype)
        return lambda inner, x, y: [inner.op(name, (x, y), scalar)]

    return of_aval


def _ordered(name: str, direction: str) -> Callable[[ShapedArray], Body]:
    """As one_op, but for complex numbers a comparison of real parts, then of imaginary ones."""

    def of_aval(aval: ShapedArray) -> Body:
        if not issubdtype(aval.dtype, np.complexfloating):
            return one_op(name)(aval)
        return lambda inner, x, y: [extreme_complex(inner, direction, x, y, aval.dtype)]

    return of_aval


def extreme_complex(build: Any, direction: str, x: Any, y: Any, dtype: Any) -> Any:
    """The complex scalar, x or y, that comes first in lexicographic order: GT or LT."""
    scalar = ShapedArray((), dtype)
    part = ShapedArray((), np.dtype(np.float32 if dtype == np.complex64 else np.float64))
    truth = ShapedArray((), np.dtype(np.bool_))
    (real_x, imag_x), (real_y, imag_y) = (
        [build.op(f"stablehlo.{which}", (z,), part) for which in ("real", "imag")] for z in (x, y)
    )
    chosen = build.op(
        "stablehlo.select",
        (
            build.compare("EQ", real_x, real_y, part),
            build.compare(direction, imag_x, imag_y, part),
            build.compare(direction, real_x, real_y, part),
        ),
        truth,
    )
    return build.op("stablehlo.select", (chosen, x, y), scalar)


add_body = one_op("stablehlo.add")
multiply_body = one_op("stablehlo.multiply")
max_body = _ordered("stablehlo.maximum", "GT")
min_body = _ordered("stablehlo.minimum", "LT")


def _all_bits(dtype: Any) -> np.ndarray:
    return np.array(True) if dtype == np.bool_ else np.invert(np.zeros((), dtype))


def _zero(dtype: Any) -> np.ndarray:
    return np.zeros((), dtype)


def _one(dtype: Any) -> np.ndarray:
    return np.ones((), dtype)


# primitive -> what combines two elements, and what no elements give.
_MONOIDS = {
    r.reduce_sum_p: (add_body, _zero),
    r.reduce_prod_p: (multiply_body, _one),
    r.reduce_max_p: (max_body, r.least_value),
    r.reduce_min_p: (min_body, r.greatest_value),
    r.reduce_and_p: (one_op("stablehlo.and"), _all_bits),
    r.reduce_or_p: (one_op("stablehlo.or"), _zero),
    r.reduce_xor_p: (one_op("stablehlo.xor"), _zero),
}


@lower(*_MONOIDS)
def reduce_lower(build, x, *, axes, **_):
    body, start = _MONOIDS[build.equation.primitive]
    (result,) = build.avals_out
    init = build.constant(start(result.dtype), result.dtype)
    return emit_reduce(build, [x], [init], [result], axes, body(result))[0]


@lower(r.argmin_p)
def _(build, x, *, axes, index_dtype):
    return _emit_index(build, x, axes, index_dtype, "LT", r.greatest_value)


@lower(r.argmax_p)
def _(build, x, *, axes, index_dtype):
    return _emit_index(build, x, axes, index_dtype, "GT", r.least_value)


def _emit_index(build, x, axes, index_dtype, direction, start):
    (operand,), (result,) = build.avals_in, build.avals_out
    # XLA's compiler for GPUs fails where one of two is of less than a byte.
    x = widened(build, x, operand)
    operand = operand.update(dtype=at_least_a_byte(operand.dtype))
    indices = build.op(
        "stablehlo.iota",
        (),
        ShapedArray(operand.shape, index_dtype),
        iota_dimension=types.i64(axes[0]),
    )
    inits = [
        build.constant(start(operand.dtype), operand.dtype),
        build.constant(0, index_dtype),
    ]
    results = [result.update(dtype=operand.dtype), result]
    value, index = scalars_of(results)
    truth = ShapedArray((), np.dtype(np.bool_))

    def body(inner, x, i, y, j):
        # x stands before y if it is more extreme, or NaN where y is not. Among equal ones and
        # among NaNs the index decides, in whatever order a device combines them.
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
        return [
            inner.op("stablehlo.select", (first, x, y), value),
            inner.op("stablehlo.select", (first_index, i, j), index),
        ]

    return emit_reduce(build, [x, indices], inits, results, axes, body)[1]
