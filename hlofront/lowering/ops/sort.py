"""Lowering rules of sort, top_k and approx_top_k."""

from collections.abc import Callable, Sequence

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import bool_, int32
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import NumPyArray
from hlofront.bridge.mlir import Value, Values, ir
from hlofront.core.aval import Avals, ShapedArray
from hlofront.core.rules import lower
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.core.sizes.symbolic import has_symbolic_size
from hlofront.lowering.core import types
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.ops.dot_general import BELOW_A_BYTE, at_least_a_byte, widened
from hlofront.lowering.ops.reduce import StartValue, scalars_of
from hlofront.primitives.arrays import reducing
from hlofront.primitives.arrays import sorting as s
from hlofront.primitives.elementwise.families import real_of

_truth = ShapedArray((), bool_)
_size = ShapedArray((), int32)


# ---- sort ----------------------------------------------------------------------------------------


@lower(s.sort_p)
def sort_by_comparator(
    build: Builder, *operands: Value, dimension: int, is_stable: bool, num_keys: int
) -> list[Value]:
    # XLA's GPU compiler cannot sort integers narrower than a byte.
    avals = [aval.update(dtype=at_least_a_byte(aval.dtype)) for aval in build.avals_in]
    wide = [widened(build, x, aval) for x, aval in zip(operands, build.avals_in)]
    scalars = scalars_of(avals)

    def less(inner: Builder, *pairs: Value) -> Value:
        # The arguments are x0, y0, x1, y1, ... of the operands.
        keys: list[_Key] = []
        for i in range(num_keys):
            keys += _ordered_parts(inner, pairs[2 * i], pairs[2 * i + 1], scalars[i])
        return _lexicographic(inner, keys)

    values = emit_sort(build, wide, avals, dimension, is_stable, less)
    return [
        value if aval.dtype == result.dtype else build.convert(value, result)
        for value, aval, result in zip(values, avals, build.avals_out, strict=True)
    ]


def emit_sort(
    build: Builder,
    operands: Values,
    results: Avals,
    axis: int,
    is_stable: bool,
    less: Callable[..., Value],
) -> list[Value]:
    """Sort along an axis: `less(builder, x0, y0, x1, y1, ...)` returns whether x precedes y."""
    attributes = {"dimension": types.i64(axis), "is_stable": types.boolean(is_stable)}
    arguments = [scalar for scalar in scalars_of(results) for _ in range(2)]

    def body(inner: Builder, *pairs: Value) -> list[Value]:
        return [less(inner, *pairs)]

    return build.with_region("stablehlo.sort", operands, results, attributes, arguments, body)


class _Key(NamedTuple):
    """A pair of scalars to compare: x, y, their aval, and the kind of comparison."""

    x: Value
    y: Value
    aval: ShapedArray
    kind: str | None

    def compare(self, build: Builder, direction: str) -> Value:
        return build.compare(direction, self.x, self.y, self.aval, self.kind)


def _ordered_parts(build: Builder, x: Value, y: Value, scalar: ShapedArray) -> list[_Key]:
    """Return the pairs of scalars to compare in turn to find which of x and y is less."""
    dtype = scalar.dtype
    if issubdtype(dtype, np.complexfloating):
        part = ShapedArray((), real_of(dtype))
        keys: list[_Key] = []
        for which in ("stablehlo.real", "stablehlo.imag"):
            x_part, y_part = (build.op(which, (z,), part) for z in (x, y))
            keys += _ordered_parts(build, x_part, y_part, part)
        return keys
    if issubdtype(dtype, np.floating):
        x, y = (canonical_float(build, z, scalar) for z in (x, y))
        return [_Key(x, y, scalar, "TOTALORDER")]
    return [_Key(x, y, scalar, None)]


def canonical_float(build: Builder, x: Value, aval: ShapedArray) -> Value:
    """Return x with -0.0 and all NaNs made canonical, since the total order distinguishes them."""
    zero = build.full(0, aval)
    nan = build.full(np.nan, aval)
    is_zero = build.compare("EQ", x, zero, aval)
    is_nan = build.compare("NE", x, x, aval)
    return build.select(is_nan, nan, build.select(is_zero, zero, x, aval), aval)


def _lexicographic(build: Builder, keys: Sequence[_Key]) -> Value:
    """Return whether x is less than y for the first keys that differ."""
    *former, last = keys
    result = last.compare(build, "LT")
    for key in reversed(former):
        less = key.compare(build, "LT")
        equal = key.compare(build, "EQ")
        rest = build.op("stablehlo.and", (equal, result), _truth)
        result = build.op("stablehlo.or", (less, rest), _truth)
    return result


# ---- top_k ---------------------------------------------------------------------------------------


@lower(s.top_k_p)
def _(build: Builder, x: Value, *, k: int, axis: int) -> list[Value]:
    (aval,), results = build.avals_in, build.avals_out
    last = aval.ndim - 1
    swapped = list(range(aval.ndim))
    swapped[axis], swapped[last] = last, axis

    def swap(x: Value, aval: ShapedArray) -> Value:
        # The operation only supports the last axis.
        if axis == last:
            return x
        permutation = types.i64_array(swapped)
        return build.op("stablehlo.transpose", (x,), moved(aval), permutation=permutation)

    def moved(aval: ShapedArray) -> ShapedArray:
        return aval.update(shape=tuple(aval.shape[i] for i in swapped))

    x, aval = swap(x, aval), moved(aval)
    narrow = aval.dtype.name in BELOW_A_BYTE
    if narrow:  # XLA has no top_k for integers narrower than a byte.
        aval = aval.update(dtype=at_least_a_byte(aval.dtype))
        x = build.convert(x, aval)
    shape = (*aval.shape[:-1], k)
    value_aval, index_aval = aval.update(shape=shape), ShapedArray(shape, int32)
    if has_symbolic_size((k,)):
        values, indices = build.ops(
            "stablehlo.custom_call",
            (x, build.size(k, _size)),
            [value_aval, index_aval],
            call_target_name=types.string("stablehlo.dynamic_top_k"),
            api_version=types.i32(2),
        )
    else:
        values, indices = build.ops("chlo.top_k", (x,), [value_aval, index_aval], k=types.i64(k))
    if narrow:
        value_aval = value_aval.update(dtype=results[0].dtype)
        values = build.convert(values, value_aval)
    return [swap(values, value_aval), swap(indices, index_aval)]


@lower(s.approx_top_k_p)
def _(
    build: Builder, x: Value, *, reduction_dimension: int, is_max_k: bool, **_: object
) -> list[Value]:
    # Without the TPU's operation, sort all elements and return the first.
    (aval,) = build.avals_in
    axis = canonical_axis(reduction_dimension, aval.ndim)
    indices = _indices(build, aval, axis)
    end = _END[is_max_k]

    def before(inner: Builder, x: Value, y: Value, i: Value, j: Value) -> Value:
        key = _ordered_parts(inner, x, y, ShapedArray((), aval.dtype))[0]
        return key.compare(inner, end.direction)

    avals = [aval, ShapedArray(aval.shape, int32)]
    values, indices = emit_sort(build, [x, indices], avals, axis, True, before)
    return first_of_sorted(build, values, indices, axis, is_max_k)


def first_of_sorted(
    build: Builder, values: Value, indices: Value, axis: int, is_max_k: bool
) -> list[Value]:
    """Return the results of approx_top_k from all values in order and their indices."""
    (aval,), results = build.avals_in, build.avals_out
    size, last = aval.shape[axis], _END[is_max_k].last(aval.dtype)
    return [
        _resized(build, values, size, axis, results[0], last),
        _resized(build, indices, size, axis, results[1], np.array(-1)),
    ]


class _Order(NamedTuple):
    """The direction of a comparison, and the value that sorts after all others."""

    direction: str
    last: StartValue


# is_max_k -> the order of the results.
_END = {
    True: _Order("GT", reducing.least_value),
    False: _Order("LT", reducing.greatest_value),
}


def _resized(
    build: Builder, x: Value, size: int, axis: int, result: ShapedArray, filling: NumPyArray
) -> Value:
    """Return the first `size` elements along an axis, padded with `filling` if there are fewer."""
    wanted, zeros = result.shape[axis], [0] * result.ndim
    if wanted < size:
        return build.slice(x, zeros, result.shape, result=result)
    if wanted == size:
        return x
    high = [wanted - size if i == axis else 0 for i in range(result.ndim)]
    return build.pad(x, build.constant(filling, result.dtype), zeros, high, result=result)


def _indices(build: Builder, aval: ShapedArray, axis: int) -> Value:
    return build.iota(ShapedArray(aval.shape, int32), axis)


@lower(s.approx_top_k_p, platform="tpu")
def _approx_top_k_on_tpu(
    build: Builder,
    x: Value,
    *,
    k: int,
    reduction_dimension: int,
    recall_target: float,
    is_max_k: bool,
    reduction_input_size_override: int,
    aggregate_to_topk: bool,
) -> list[Value]:
    (aval,) = build.avals_in
    axis = canonical_axis(reduction_dimension, aval.ndim)
    end = _END[is_max_k]
    comparator = _comparator(build, end.direction, ShapedArray((), aval.dtype))
    settings = (
        f"{{aggregate_to_topk = {str(aggregate_to_topk).lower()}, "
        f"recall_target = {recall_target:e} : f32, reduction_dim = {axis} : i64, "
        f"reduction_input_size_override = {reduction_input_size_override} : i64, "
        f"top_k = {k} : i64}}"
    )
    operands = (
        x,
        _indices(build, aval, axis),
        build.constant(end.last(aval.dtype), aval.dtype),
        build.constant(-1, int32),
    )
    attributes = {
        "call_target_name": types.string("ApproxTopK"),
        "called_computations": types.attribute(f"[{comparator}]"),
        "mhlo.backend_config": types.attribute(settings),
    }
    return build.ops("stablehlo.custom_call", operands, build.avals_out, **attributes)


def _comparator(build: Builder, direction: str, scalar: ShapedArray) -> ir.Attribute:
    """Return the symbol of a function that compares two elements and ignores two indices."""
    index = ShapedArray((), int32)

    def compare(inner: Builder, x: Value, y: Value, *_: Value) -> list[Value]:
        return [inner.compare(direction, x, y, scalar)]

    return build.define_function(
        (_comparator, direction, scalar.dtype),
        f"top_k_{direction.lower()}_{types.element_type(scalar.dtype)}_comparator",
        [scalar, scalar, index, index],
        [_truth],
        compare,
    )
