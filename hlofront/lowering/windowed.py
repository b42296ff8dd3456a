"""Sliding windows as StableHLO."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.core.aval import ShapedArray
from hlofront.core.rules import lower
from hlofront.lowering import types
from hlofront.lowering.reducing import Body, add_body, max_body, min_body, scalars_of
from hlofront.primitives import comparing, reducing
from hlofront.primitives import windowed as w
from hlofront.primitives.windowed import Windows


def emit_reduce_window(
    build: Any,
    operands: Sequence[Any],
    inits: Sequence[Any],
    results: Sequence[ShapedArray],
    windows: Windows,
    body: Body,
) -> list[Any]:
    """Fold each window of all operands at once. `results` are the avals of the results."""
    attributes = {
        "window_dimensions": types.i64_array(windows.window_dimensions),
        "window_strides": types.i64_array(windows.window_strides),
        "base_dilations": types.i64_array(windows.base_dilation),
        "window_dilations": types.i64_array(windows.window_dilation),
        "padding": types.i64_matrix(windows.padding),
    }
    operation = build.operation(
        "stablehlo.reduce_window", [*operands, *inits], results, 1, attributes
    )
    build.region(operation, 0, scalars_of(results) * 2, body)
    return list(operation.results)


# primitive -> what combines two elements, and where to start.
_MONOIDS = {
    w.reduce_window_sum_p: (add_body, lambda dtype: np.zeros((), dtype)),
    w.reduce_window_max_p: (max_body, reducing.least_value),
    w.reduce_window_min_p: (min_body, reducing.greatest_value),
}


@lower(*_MONOIDS)
def reduce_window_lower(build, x, **windows):
    body, start = _MONOIDS[build.equation.primitive]
    (result,) = build.avals_out
    init = build.constant(start(result.dtype), result.dtype)
    return emit_reduce_window(build, [x], [init], [result], Windows(**windows), body(result))[0]


# select_prim -> how it compares, and what no element is selected against.
_SELECTIONS = {
    comparing.ge_p: ("GE", reducing.least_value),
    comparing.le_p: ("LE", reducing.greatest_value),
}


@lower(w.select_and_gather_add_p)
def _(build, tangents, operand, *, select_prim, **windows):
    direction, start = _SELECTIONS[select_prim]
    (result,) = build.avals_out
    scalar = ShapedArray((), result.dtype)

    def body(inner, x, x_tangent, y, y_tangent):
        chosen = inner.compare(direction, x, y, scalar)
        return [
            inner.op("stablehlo.select", (chosen, x, y), scalar),
            inner.op("stablehlo.select", (chosen, x_tangent, y_tangent), scalar),
        ]

    inits = [build.constant(start(result.dtype), result.dtype), build.constant(0, result.dtype)]
    results = [result, result]
    operands = [operand, tangents]
    return emit_reduce_window(build, operands, inits, results, Windows(**windows), body)[1]


@lower(w.select_and_scatter_add_p)
def _(build, source, operand, *, select_prim, window_dimensions, window_strides, padding):
    # The padding is spelt out, with what is never selected: the operation itself would pad with
    # zeros, which may be.
    direction, start = _SELECTIONS[select_prim]
    (result,) = build.avals_out
    shape = tuple(
        size + before + after for size, (before, after) in zip(result.shape, padding, strict=True)
    )
    padded = result.update(shape=shape)
    low = [before for before, _ in padding]
    if any(before or after for before, after in padding):
        operand = build.op(
            "stablehlo.pad",
            (operand, build.constant(start(result.dtype), result.dtype)),
            padded,
            edge_padding_low=types.i64_array(low),
            edge_padding_high=types.i64_array(after for _, after in padding),
            interior_padding=types.i64_array([0] * len(padding)),
        )
    scalar = ShapedArray((), result.dtype)
    total = emit_select_and_scatter(
        build,
        (operand, source, build.constant(0, result.dtype)),
        padded,
        (window_dimensions, window_strides, ((0, 0),) * len(padding)),
        lambda inner, x, y: [inner.compare(direction, x, y, scalar)],
        add_body(result),
    )
    if padded is result:
        return total
    if any(before < 0 or after < 0 for before, after in padding):
        # What was cut off gets nothing.
        return build.op(
            "stablehlo.pad",
            (total, build.constant(0, result.dtype)),
            result,
            edge_padding_low=types.i64_array(-before for before in low),
            edge_padding_high=types.i64_array(-after for _, after in padding),
            interior_padding=types.i64_array([0] * len(padding)),
        )
    return build.op(
        "stablehlo.slice",
        (total,),
        start_indices=types.i64_array(low),
        limit_indices=types.i64_array(map(sum, zip(low, result.shape, strict=True))),
        strides=types.i64_array([1] * len(padding)),
    )


def _like(aval: ShapedArray, x: Any) -> ShapedArray:
    return aval.update(shape=tuple(x.type.shape))


def emit_select_and_scatter(
    build: Any, operands: Any, result: ShapedArray, windows: Any, select: Body, scatter: Body
) -> Any:
    """Emit select_and_scatter of (operand, source, init): `windows` are sizes, strides, padding."""
    dimensions, strides, padding = windows
    whole = sum(size == stride == 1 for size, stride in zip(dimensions, strides, strict=True))
    if "tpu" in build.module.platforms and len(dimensions) > 1 and whole < 2:
        # XLA's compiler for TPUs wants two axes that are not windowed: they are the last ones.
        ones = (1,) * (2 - whole)
        operand, source, init = operands
        wide = [aval.update(shape=(*aval.shape, *ones)) for aval in (result, _like(result, source))]
        total = emit_select_and_scatter(
            build,
            [*map(build.reshape, (operand, source), wide), init],
            wide[0],
            ((*dimensions, *ones), (*strides, *ones), (*padding, *[(0, 0)] * len(ones))),
            select,
            scatter,
        )
        return build.reshape(total, result)
    attributes = {
        "window_dimensions": types.i64_array(dimensions),
        "window_strides": types.i64_array(strides),
        "padding": types.i64_matrix(padding),
    }
    operation = build.operation("stablehlo.select_and_scatter", operands, [result], 2, attributes)
    scalars = scalars_of([result, result])
    build.region(operation, 0, scalars, select)
    build.region(operation, 1, scalars, scatter)
    return operation.results[0]
