"""Lowering rules of sliding windows."""

# The stubs of jaxlib do not name the types of all arguments.
# pyright: reportUnknownMemberType=false

import math
from collections.abc import Sequence
from typing import Any

from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge.mlir import Value, Values, context, ir
from hlofront.bridge.xla_faults import is_present
from hlofront.core.aval import Avals, ShapedArray
from hlofront.core.primitive import Primitive
from hlofront.core.rules import lower
from hlofront.core.sharding.sharded_types import without_splits
from hlofront.core.sizes.symbolic import SizeExpression, has_symbolic_size
from hlofront.lowering.core import types, unknown_sizes
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.unknown_sizes import Size
from hlofront.lowering.ops.reduce import (
    Body,
    Monoid,
    StartValue,
    add_body,
    max_body,
    min_body,
    scalars_of,
    zero,
)
from hlofront.primitives.arrays import reducing
from hlofront.primitives.arrays import windowed as w
from hlofront.primitives.arrays.windowed import Windows, dilated
from hlofront.primitives.elementwise import compare

# XLA takes seconds for each window of this many elements, almost all of which are padding, because
# arrays of this size are rare.
_MAX_POSITIONS = 2**31
_MAX_EXTENT = 2**63 - 1


def emit_reduce_window(
    build: Builder, operands: Values, inits: Values, results: Avals, windows: Windows, body: Body
) -> list[Value]:
    """Reduce each window of all operands together, to results with the avals `results`."""
    is_unknown = bool(build.module.size_variables) and has_symbolic_size(_sizes_of(windows))
    positions = math.prod(windows.window_dimensions)
    if not is_unknown and positions >= _MAX_POSITIONS and build.module.cpu_settings.guards:
        raise ValueError(
            f"a window of {positions:,} elements, {tuple(windows.window_dimensions)}, would not be "
            "reduced in any reasonable time, as XLA visits its padding, too: make it no larger "
            "than the operand, with less padding"
        )
    extents = zip(windows.window_dimensions, windows.window_dilation, strict=True)
    extent = 0 if is_unknown else max((dilated(size, step) for size, step in extents), default=0)
    if extent > _MAX_EXTENT:
        raise ValueError(
            f"a window of {tuple(windows.window_dimensions)} elements, dilated by "
            f"{tuple(windows.window_dilation)}, extends over {extent:,} elements, more than XLA "
            "can count: reduce its dilation"
        )
    shape: Sequence[int] = _shape_of(operands[0])
    if types.dynamic in shape:
        # These are the operand's own sizes, because no rule with symbolic sizes reshapes it before.
        shape = build.avals_in[0].shape
    elif not is_unknown:
        operand = results[0].update(shape=shape)
        types.check_padding(operand, windows.padding, windows.base_dilation)
    operands, windows, shape = _with_padded_operands(
        build, operands, inits, results, windows, shape
    )
    if _strides_need_plain_operands(build, windows):
        # XLA would turn padding between elements into a dilation again, and would fuse products.
        operands = build.barrier(operands, [result.update(shape=shape) for result in results])
    if is_unknown:
        return _reduce_unknown_windows(build, operands, inits, results, windows, body)
    attributes = {
        "window_dimensions": types.i64_array(windows.window_dimensions),
        "window_strides": types.i64_array(windows.window_strides),
        "base_dilations": types.i64_array(windows.base_dilation),
        "window_dilations": types.i64_array(windows.window_dilation),
        "padding": types.i64_matrix(windows.padding),
    }
    avals = scalars_of(results) * 2
    return build.with_region(
        "stablehlo.reduce_window", [*operands, *inits], results, attributes, avals, body
    )


def _with_padded_operands(
    build: Builder,
    operands: Values,
    inits: Values,
    results: Avals,
    windows: Windows,
    shape: Sequence[int],
) -> tuple[Values, Windows, Sequence[int]]:
    """Return operands, windows and the operands' shape after padding that XLA gets wrong on CPUs.

    XLA aborts the process for windows of one element if elements are cut off, and its partitioner
    does if a cut axis is dilated (see `Emitter.pad`); YNNPACK ignores dilation if windows have
    strides. A symbolic size may have any of these values.
    """
    if not build.module.guards_for_cpu:
        return operands, windows, shape
    several = build.module.several_devices
    is_of_one = all(
        isinstance(size, SizeExpression) or size == 1 for size in windows.window_dimensions
    )
    is_strided = _strides_need_plain_operands(build, windows)
    axes = list(zip(windows.padding, windows.base_dilation, strict=True))
    done_first = [
        (is_strided and _may_exceed(step, 1))
        or (is_of_one and (_may_exceed(0, before) or _may_exceed(0, after)))
        or (
            several
            and _may_exceed(0, before)
            and (_may_exceed(after, 0) or has_symbolic_size((before, step)) or before % step != 0)
        )
        for (before, after), step in axes
    ]
    if not any(done_first):
        return operands, windows, shape
    edges = [
        (*pads, step - 1) if done else (0, 0, 0)
        for done, (pads, step) in zip(done_first, axes, strict=True)
    ]
    low, high, interior = zip(*edges, strict=True)
    shape = tuple(
        dilated(size, between + 1) + before + after
        for size, (before, after, between) in zip(shape, edges, strict=True)
    )
    operands = [
        build.pad(x, init, low, high, interior, result.update(shape=shape))
        for x, init, result in zip(operands, inits, results, strict=True)
    ]
    padding, dilation = zip(
        *[((0, 0), 1) if done else axis for done, axis in zip(done_first, axes, strict=True)],
        strict=True,
    )
    return operands, windows._replace(padding=padding, base_dilation=dilation), shape


def _strides_need_plain_operands(build: Builder, windows: Windows) -> bool:
    """Return whether YNNPACK may compute windows wrongly unless operands are materialized."""
    return (
        any(_may_exceed(stride, 1) for stride in windows.window_strides)
        and build.module.guards_for_cpu
        and is_present("strided windows by YNNPACK")
        and not is_present("reductions by YNNPACK")
    )


def _may_exceed(size: Size, limit: Size) -> bool:
    """Return whether a size exceeds a limit, as any symbolic size may."""
    return has_symbolic_size((size, limit)) or size > limit


def _sizes_of(windows: Windows) -> list[int]:
    """Return the sizes, strides, dilations and paddings of windows as one list."""
    parts = (*windows[:2], *windows[3:], *windows.padding)
    return [size for part in parts for size in part]


def _reduce_unknown_windows(
    build: Builder, operands: Values, inits: Values, results: Avals, windows: Windows, body: Body
) -> list[Value]:
    """Reduce windows, some of whose parameters are unknown sizes, by a function of two scalars."""
    avals = scalars_of(results)
    reducer = build.define_function(object(), "reducer", avals * 2, avals, body)
    padding = unknown_sizes.pairs(build, windows.padding)
    vectors = [
        unknown_sizes.vector(build, sizes)
        for sizes in (
            windows.window_dimensions,
            windows.window_strides,
            windows.base_dilation,
            windows.window_dilation,
        )
    ]
    return build.ops(
        "stablehlo.custom_call",
        (*operands, *inits, *vectors, padding),
        results,
        call_target_name=types.string("stablehlo.dynamic_reduce_window"),
        called_computations=ir.ArrayAttr.get([reducer], context),
        api_version=types.i32(2),
    )


_MONOIDS = {
    w.reduce_window_sum_p: Monoid(add_body, zero),
    w.reduce_window_max_p: Monoid(max_body, reducing.least_value),
    w.reduce_window_min_p: Monoid(min_body, reducing.greatest_value),
}


@lower(*_MONOIDS)
def reduce_window_lower(build: Builder, x: Value, **windows: Any) -> Value:
    monoid = _MONOIDS[build.primitive]
    (result,) = build.avals_out
    init = monoid.initial(build, result.dtype)
    body = monoid.body(result)
    return emit_reduce_window(build, [x], [init], [result], Windows(**windows), body)[0]


class _Selection(NamedTuple):
    """The direction of a comparison, and the identity, over which any element is selected."""

    direction: str
    start: StartValue


_SELECTIONS = {
    compare.ge_p: _Selection("GE", reducing.least_value),
    compare.le_p: _Selection("LE", reducing.greatest_value),
}


@lower(w.select_and_gather_add_p)
def _(
    build: Builder, tangents: Value, operand: Value, *, select_prim: Primitive, **windows: Any
) -> Value:
    direction, start = _SELECTIONS[select_prim]
    (result,) = build.avals_out
    scalar = ShapedArray((), result.dtype)

    def body(inner: Builder, x: Value, x_tangent: Value, y: Value, y_tangent: Value) -> list[Value]:
        chosen = inner.compare(direction, x, y, scalar)
        return [
            inner.select(chosen, x, y, scalar),
            inner.select(chosen, x_tangent, y_tangent, scalar),
        ]

    inits = [build.constant(start(result.dtype), result.dtype), build.constant(0, result.dtype)]
    results = [result, result]
    operands = [operand, tangents]
    return emit_reduce_window(build, operands, inits, results, Windows(**windows), body)[1]


@lower(w.select_and_scatter_add_p)
def _(
    build: Builder,
    source: Value,
    operand: Value,
    *,
    select_prim: Primitive,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[Sequence[int]],
) -> Value:
    # Pad the array first, with a value that is never selected: the operation itself would pad with
    # zeros, which may be selected.
    direction, start = _SELECTIONS[select_prim]
    (result,) = build.avals_out
    shape = tuple(
        size + before + after for size, (before, after) in zip(result.shape, padding, strict=True)
    )
    padded = result.update(shape=shape)
    # XLA's partitioner computes wrong sums if a mesh splits an axis along which windows slide.
    slid = [axis for axis, size in enumerate(window_dimensions) if size != 1]
    source = build.split_by_type(source, without_splits(build.avals_in[0], slid))
    operand = build.split_by_type(operand, without_splits(result, slid))
    low, high = [before for before, _ in padding], [after for _, after in padding]
    if any(low) or any(high):
        filling = build.constant(start(result.dtype), result.dtype)
        operand = build.pad(operand, filling, low, high, result=padded)
    scalar = ShapedArray((), result.dtype)

    def select(inner: Builder, x: Value, y: Value) -> list[Value]:
        return [inner.compare(direction, x, y, scalar)]

    total = emit_select_and_scatter(
        build,
        (operand, source, build.constant(0, result.dtype)),
        padded,
        SelectionWindows(window_dimensions, window_strides, ((0, 0),) * len(padding)),
        select,
        add_body(result),
    )
    whole = without_splits(result, slid)
    total = build.split_by_type(total, ShapedArray(shape, result.dtype, sharding=whole.split))
    if padded is result:
        return total
    if any(edge < 0 for edge in (*low, *high)):
        # Elements that were cut off get zeros.
        none = build.constant(0, result.dtype)
        return build.pad(total, none, [-x for x in low], [-x for x in high], result=result)
    limits = [start + size for start, size in zip(low, result.shape, strict=True)]
    return build.slice(total, low, limits)


class SelectionWindows(NamedTuple):
    """The windows of select_and_scatter: sizes, strides and padding per axis."""

    dimensions: Sequence[int]
    strides: Sequence[int]
    padding: Sequence[Sequence[int]]


def _shape_of(x: Value) -> tuple[int, ...]:
    return tuple(ir.ShapedType(x.type).shape)


def emit_select_and_scatter(
    build: Builder,
    operands: Values,
    result: ShapedArray,
    windows: SelectionWindows,
    select: Body,
    scatter: Body,
) -> Value:
    """Emit select_and_scatter with these regions, and return its result.

    Args:
      operands: the operand, the source and the initial value.
      select: the region that returns whether the first of two elements is selected.
      scatter: the region that combines two elements of the source.
    """
    dimensions, strides, padding = windows
    whole = sum(size == stride == 1 for size, stride in zip(dimensions, strides, strict=True))
    if "tpu" in build.module.platforms and len(dimensions) > 1 and whole < 2:
        # XLA's TPU compiler requires two axes without windows: add them at the end.
        ones = (1,) * (2 - whole)
        operand, source, init = operands
        wide = result.update(shape=(*result.shape, *ones))
        wide_source = result.update(shape=(*_shape_of(source), *ones))
        total = emit_select_and_scatter(
            build,
            [build.reshape(operand, wide), build.reshape(source, wide_source), init],
            wide,
            SelectionWindows(
                (*dimensions, *ones), (*strides, *ones), (*padding, *[(0, 0)] * len(ones))
            ),
            select,
            scatter,
        )
        return build.reshape(total, result)
    attributes = {
        "window_dimensions": types.i64_array(dimensions),
        "window_strides": types.i64_array(strides),
        "padding": types.i64_matrix(padding),
    }
    name, avals = "stablehlo.select_and_scatter", scalars_of([result, result])
    return build.with_region(name, operands, [result], attributes, avals, select, scatter)[0]
