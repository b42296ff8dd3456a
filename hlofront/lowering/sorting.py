"""Sorting as StableHLO."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.core.aval import ShapedArray
from hlofront.core.dimensions import canonical_axis
from hlofront.core.rules import lower
from hlofront.lowering import types
from hlofront.lowering.contracting import BELOW_A_BYTE, at_least_a_byte, widened
from hlofront.lowering.reducing import scalars_of
from hlofront.primitives import reducing
from hlofront.primitives import sorting as s

_truth = ShapedArray((), np.dtype(np.bool_))
_int32 = np.dtype(np.int32)


# ---- sort ----------------------------------------------------------------------------------------


@lower(s.sort_p)
def _(build, *operands, dimension, is_stable, num_keys):
    # XLA's compiler for GPUs has no sort of integers below a byte.
    avals = [aval.update(dtype=at_least_a_byte(aval.dtype)) for aval in build.avals_in]
    operands = list(map(widened, (build,) * len(avals), operands, build.avals_in))
    scalars = scalars_of(avals)

    def less(inner, *pairs):
        # The arguments are x0, y0, x1, y1, ... of the operands.
        keys = []
        for i in range(num_keys):
            keys += _ordered_parts(inner, pairs[2 * i], pairs[2 * i + 1], scalars[i])
        return _lexicographic(inner, keys)

    found = emit_sort(build, operands, avals, dimension, is_stable, less)
    return [
        value if aval.dtype == result.dtype else build.convert(value, result)
        for value, aval, result in zip(found, avals, build.avals_out, strict=True)
    ]


def emit_sort(
    build: Any,
    operands: Sequence[Any],
    results: Sequence[ShapedArray],
    axis: int,
    is_stable: bool,
    less: Callable[..., Any],
) -> list[Any]:
    """Sort along an axis. `less(builder, x0, y0, x1, y1, ...)` says whether x goes before y."""
    operation = build.operation(
        "stablehlo.sort",
        operands,
        results,
        1,
        {"dimension": types.i64(axis), "is_stable": types.boolean(is_stable)},
    )
    arguments = [scalar for scalar in scalars_of(results) for _ in range(2)]
    build.region(operation, 0, arguments, lambda inner, *pairs: [less(inner, *pairs)])
    return list(operation.results)


def _ordered_parts(
    build: Any, x: Any, y: Any, scalar: ShapedArray
) -> list[tuple[Any, Any, ShapedArray, str]]:
    """(x, y, aval, kind of comparison) of what decides, first one first."""
    dtype = scalar.dtype
    if issubdtype(dtype, np.complexfloating):
        part = ShapedArray((), np.dtype(np.float32 if dtype == np.complex64 else np.float64))
        parts = []
        for which in ("stablehlo.real", "stablehlo.imag"):
            x_part, y_part = (build.op(which, (z,), part) for z in (x, y))
            parts += _ordered_parts(build, x_part, y_part, part)
        return parts
    if issubdtype(dtype, np.floating):
        pair = (_canonical_float(build, z, scalar) for z in (x, y))
        return [(*pair, scalar, "TOTALORDER")]
    return [(x, y, scalar, None)]


def _canonical_float(build: Any, x: Any, scalar: ShapedArray) -> Any:
    """One zero and one NaN instead of many, for the total order tells them apart."""
    zero = build.constant(0, scalar.dtype)
    nan = build.constant(np.nan, scalar.dtype)
    is_zero = build.compare("EQ", x, zero, scalar)
    is_nan = build.compare("NE", x, x, scalar)
    x = build.op("stablehlo.select", (is_zero, zero, x), scalar)
    return build.op("stablehlo.select", (is_nan, nan, x), scalar)


def _lexicographic(build: Any, keys: Sequence[tuple[Any, Any, ShapedArray, Any]]) -> Any:
    """Whether the first keys that differ are in ascending order."""
    *former, (x, y, aval, kind) = keys
    result = build.compare("LT", x, y, aval, kind)
    for x, y, aval, kind in reversed(former):
        less = build.compare("LT", x, y, aval, kind)
        equal = build.compare("EQ", x, y, aval, kind)
        rest = build.op("stablehlo.and", (equal, result), _truth)
        result = build.op("stablehlo.or", (less, rest), _truth)
    return result


# ---- top_k ---------------------------------------------------------------------------------------


@lower(s.top_k_p)
def _(build, x, *, k, axis):
    (aval,), results = build.avals_in, build.avals_out
    last = aval.ndim - 1
    swapped = list(range(aval.ndim))
    swapped[axis], swapped[last] = last, axis

    def swap(x, aval):
        # The operation works along the last axis only.
        if axis == last:
            return x, aval
        moved = aval.update(shape=tuple(aval.shape[i] for i in swapped))
        return (
            build.op("stablehlo.transpose", (x,), moved, permutation=types.i64_array(swapped)),
            moved,
        )

    x, aval = swap(x, aval)
    narrow = aval.dtype.name in BELOW_A_BYTE
    if narrow:  # XLA has no top_k of integers below a byte
        aval = aval.update(dtype=at_least_a_byte(aval.dtype))
        x = build.convert(x, aval)
    shape = (*aval.shape[:-1], k)
    found = [aval.update(shape=shape), ShapedArray(shape, _int32)]
    values, indices = build.ops("chlo.top_k", (x,), found, k=types.i64(k))
    if narrow:
        found[0] = found[0].update(dtype=results[0].dtype)
        values = build.convert(values, found[0])
    return [swap(value, aval)[0] for value, aval in zip((values, indices), found, strict=True)]


@lower(s.approx_top_k_p)
def _(build, x, *, reduction_dimension, is_max_k, **_):
    # Without the TPU's operation: sort everything, keep the first.
    (aval,), results = build.avals_in, build.avals_out
    axis = canonical_axis(reduction_dimension, aval.ndim)
    indices = _indices(build, aval, axis)
    direction, last = _END[is_max_k]

    def before(inner, x, y, i, j):
        (x, y, scalar, kind) = _ordered_parts(inner, x, y, ShapedArray((), aval.dtype))[0]
        return inner.compare(direction, x, y, scalar, kind)

    avals = [aval, ShapedArray(aval.shape, _int32)]
    found = emit_sort(build, [x, indices], avals, axis, True, before)
    fillings = (last(aval.dtype), np.array(-1))
    return [
        _resized(build, value, aval.shape[axis], axis, result, filling)
        for value, result, filling in zip(found, results, fillings, strict=True)
    ]


# is_max_k -> how elements are compared, and what comes after all of them.
_END = {True: ("GT", reducing.least_value), False: ("LT", reducing.greatest_value)}


def _resized(build: Any, x: Any, size: int, axis: int, result: ShapedArray, filling: Any) -> Any:
    """The first elements along an axis; where there are too few, the rest is filled."""
    wanted, zeros = result.shape[axis], types.i64_array([0] * result.ndim)
    if wanted < size:
        return build.op(
            "stablehlo.slice",
            (x,),
            result,
            start_indices=zeros,
            limit_indices=types.i64_array(result.shape),
            strides=types.i64_array([1] * result.ndim),
        )
    if wanted == size:
        return x
    high = [wanted - size if i == axis else 0 for i in range(result.ndim)]
    return build.op(
        "stablehlo.pad",
        (x, build.constant(filling, result.dtype)),
        result,
        edge_padding_low=zeros,
        edge_padding_high=types.i64_array(high),
        interior_padding=zeros,
    )


def _indices(build: Any, aval: ShapedArray, axis: int) -> Any:
    return build.op(
        "stablehlo.iota", (), ShapedArray(aval.shape, _int32), iota_dimension=types.i64(axis)
    )


@lower(s.approx_top_k_p, platform="tpu")
def _approx_top_k_on_tpu(
    build,
    x,
    *,
    k,
    reduction_dimension,
    recall_target,
    is_max_k,
    reduction_input_size_override,
    aggregate_to_topk,
):
    (aval,) = build.avals_in
    axis = canonical_axis(reduction_dimension, aval.ndim)
    direction, start = _END[is_max_k]
    comparator = _comparator(build, direction, ShapedArray((), aval.dtype))
    settings = (
        f"{{aggregate_to_topk = {str(aggregate_to_topk).lower()}, "
        f"recall_target = {recall_target:e} : f32, reduction_dim = {axis} : i64, "
        f"reduction_input_size_override = {reduction_input_size_override} : i64, "
        f"top_k = {k} : i64}}"
    )
    operands = (
        x,
        _indices(build, aval, axis),
        build.constant(start(aval.dtype), aval.dtype),
        build.constant(-1, _int32),
    )
    attributes = {
        "call_target_name": types.string("ApproxTopK"),
        "called_computations": types.attribute(f"[{comparator}]"),
        "mhlo.backend_config": types.attribute(settings),
    }
    return build.ops("stablehlo.custom_call", operands, build.avals_out, **attributes)


def _comparator(build: Any, direction: str, scalar: ShapedArray) -> Any:
    """The symbol of a function that compares two elements and ignores two indices."""
    index = ShapedArray((), _int32)
    return build.define_function(
        (_comparator, direction, scalar.dtype),
        f"top_k_{direction.lower()}_{types.element_type(scalar.dtype)}_comparator",
        [scalar, scalar, index, index],
        [_truth],
        lambda inner, x, y, i, j: [inner.compare(direction, x, y, scalar)],
    )
