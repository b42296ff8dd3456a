"""Replacements of sort, top_k and approx_top_k on CPUs: by one array of integers.

On CPUs XLA calls the comparator of a sort through a pointer, and moves elements one at a time,
unless it sorts a single array of numbers by a plain less-than: then it calls the merge sort of the
C++ library. So this rule packs a 32-bit word, whose order as an unsigned integer is that of the
keys, and the index of each element into a 64-bit integer. It sorts these, which is stable because
of the index, and gathers the operands by the resulting indices. Keys of several words are sorted
once per word, from the least significant word to the most significant one.
"""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import int32, uint32, uint64
from hlofront.base.typing import Array, Shape
from hlofront.bridge.mlir import Value, Values
from hlofront.core.aval import ShapedArray
from hlofront.core.jaxpr import Atom
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.lowering.core import types
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.types import NumPyDType
from hlofront.lowering.cpu.float_bits import ordered_bits
from hlofront.lowering.min_sizes import MIN_SIZES
from hlofront.lowering.ops.gather import gather_numbers
from hlofront.lowering.ops.sort import (
    canonical_float,
    emit_sort,
    first_of_sorted,
    sort_by_comparator,
)
from hlofront.lowering.replacements import Candidate, Emit, replaces
from hlofront.primitives.arrays import sorting as s
from hlofront.primitives.arrays.creation import full_like, iota_p
from hlofront.primitives.arrays.gathering import GatherDimensionNumbers
from hlofront.primitives.elementwise import compare as c
from hlofront.primitives.elementwise import elementwise as e
from hlofront.primitives.elementwise.compare import select
from hlofront.primitives.elementwise.families import real_of

# XLA has a top_k for float32, which is faster for less than this part of an axis, and for any part
# of small arrays. It sorts other dtypes by a comparator.
_PART = 8
_SMALL = 10_000
# XLA's sort along any axis except the last visits elements that are far apart. Smaller arrays gain
# little from being transposed.
_MIN_SIZE_TRANSPOSED = 65_536
# Keys of more words are sorted by a comparator.
_MAX_WORDS = 4


def _is_packed_sort(equation: Candidate) -> bool:
    """Return whether the keys are sorted as packed integers."""
    avals, params = equation.avals_in, equation.params
    if len(avals) == 1 and not issubdtype(avals[0].dtype, np.inexact):
        return False  # These are already sorted by a plain less-than.
    if sum(_word_count(aval.dtype) for aval in avals[: params["num_keys"]]) > _MAX_WORDS:
        return False
    return _is_profitable(avals[0], params["dimension"])


@replaces(s.sort_p, form="packed", in_place=True)
def _(equation: Candidate) -> Emit | None:
    """As packed integers; single arrays by a plain less-than, which is fastest if stable."""
    dimension: int = equation.params["dimension"]
    num_keys: int = equation.params["num_keys"]
    if _is_packed_sort(equation):
        # If an operand is the index of each element, its result is the order itself.
        are_iotas = tuple([_is_iota(equation, x) for x in equation.operands])
        facts = {"dimension": dimension, "num_keys": num_keys, "are_iotas": are_iotas}

        def emit(build: Builder, *operands: Value) -> Values:
            return build.as_function(_packed_sort, operands, facts)

        return emit
    if len(equation.avals_in) > 1 or equation.params["is_stable"]:
        return None
    return partial(sort_by_comparator, dimension=dimension, is_stable=True, num_keys=num_keys)


def _packed_sort(
    build: Builder, *operands: Value, dimension: int, num_keys: int, are_iotas: Sequence[bool]
) -> list[Value]:
    avals = build.avals_in
    words: list[Value] = []
    for key, aval in zip(operands[:num_keys], avals):
        words += _words(build, key, aval)
    order = _order_of_words(build, words, avals[0].shape, dimension)
    return [
        build.convert(order, aval) if is_iota else _reordered(build, x, aval, order, dimension)
        for x, aval, is_iota in zip(operands, avals, are_iotas, strict=True)
    ]


@replaces(s.top_k_p, form="packed", sizes="sort")
def _(equation: Candidate) -> Emit | None:
    """The first elements of a sort of packed integers."""
    (aval,) = equation.avals_in
    k: int = equation.params["k"]
    axis: int = equation.params["axis"]
    if issubdtype(aval.dtype, np.floating) and aval.dtype.itemsize == 1:
        return None
    if k == 0 or not _is_profitable(aval, axis) or _has_own_top_k(aval, k, axis):
        return None
    return partial(_packed_top_k, axis=axis)


def _packed_top_k(build: Builder, x: Value, *, axis: int) -> list[Value]:
    (aval,), results = build.avals_in, build.avals_out
    key = x
    if issubdtype(aval.dtype, np.floating):
        key, aval = in_order_of_floats(build, x, aval)
    words = _complements(build, _words(build, key, aval), aval)
    order = _order_of_words(build, words, aval.shape, axis)
    starts = [0] * aval.ndim
    order = build.slice(order, starts, results[1].shape, result=results[1])
    return [_reordered(build, x, results[0], order, axis), order]


@replaces(s.approx_top_k_p, form="packed", sizes="sort")
def _(equation: Candidate) -> Emit | None:
    """XLA's top_k for few float32 elements, else the start of a sort of packed integers."""
    (aval,), (result, _), params = equation.avals_in, equation.avals_out, equation.params
    axis = canonical_axis(params["reduction_dimension"], aval.ndim)
    k, is_max_k = result.shape[axis], params["is_max_k"]
    if 0 < k < aval.shape[axis] and _has_own_top_k(aval, k, axis):
        return partial(_own_top_k, k=k, axis=axis, is_max_k=is_max_k)
    return (
        partial(_packed_extremes, axis=axis, is_max_k=is_max_k)
        if _is_profitable(aval, axis)
        else None
    )


def _packed_extremes(build: Builder, x: Value, *, axis: int, is_max_k: bool) -> list[Value]:
    (aval,) = build.avals_in
    words = _words(build, x, aval)
    if is_max_k:
        words = _complements(build, words, aval)
    order = _order_of_words(build, words, aval.shape, axis)
    return first_of_sorted(build, _reordered(build, x, aval, order, axis), order, axis, is_max_k)


def _own_top_k(build: Builder, x: Value, *, k: int, axis: int, is_max_k: bool) -> list[Value]:
    def greatest(x: Array) -> list[Array]:
        return s.top_k(x, k, axis=axis)

    def indices_of_least(x: Array) -> Array:
        key = e.neg(select(c.eq(x, full_like(x, 0)), full_like(x, 0), x))
        # NaNs come last: make them negative, which is less than all numbers there.
        key = select(c.ne(x, x), e.neg(full_like(x, np.nan)), key)
        return greatest(key)[1]

    if is_max_k:
        return build.by_tracing(greatest, [x])
    (order,) = build.by_tracing(indices_of_least, [x])
    return [_reordered(build, x, build.avals_out[0], order, axis), order]


def _complements(build: Builder, words: list[Value], aval: ShapedArray) -> list[Value]:
    """Return words whose order is reversed; equal elements keep their order."""
    word = aval.update(dtype=uint32)
    return [build.op("stablehlo.not", (x,), word) for x in words]


def _has_own_top_k(aval: ShapedArray, k: int, axis: int) -> bool:
    """Return whether XLA's own top_k is faster."""
    size = aval.shape[axis]
    if aval.dtype != np.float32 or k == size:
        return False
    return k * _PART < size or aval.size < _SMALL


def _is_profitable(aval: ShapedArray, axis: int) -> bool:
    """Return whether packed integers are faster for an axis of an array."""
    return (
        aval.size >= MIN_SIZES["sort"]["packed"] and 1 < aval.shape[axis] <= np.iinfo(np.int32).max
    )


def _word_count(dtype: NumPyDType) -> int:
    """Return the number of words of a key."""
    if issubdtype(dtype, np.complexfloating):
        return 2 * _word_count(real_of(dtype))
    return 2 if dtype.itemsize == 8 else 1


def _words(build: Builder, x: Value, aval: ShapedArray) -> list[Value]:
    """Return the uint32 words of a key, the most significant first."""
    dtype = aval.dtype
    if issubdtype(dtype, np.complexfloating):
        part = aval.update(dtype=real_of(dtype))
        return [
            word for component in build.parts(x, part) for word in _words(build, component, part)
        ]
    if issubdtype(dtype, np.floating):
        width = np.dtype(f"float{_width(dtype)}")
        x = build.convert(canonical_float(build, x, aval), aval.update(dtype=width))
        x, aval = in_order_of_floats(build, x, aval.update(dtype=width))
        return _words(build, x, aval)
    unsigned = aval.update(dtype=np.dtype(f"uint{_width(dtype)}"))
    if dtype == np.bool_ or issubdtype(dtype, np.unsignedinteger):
        x = build.convert(x, unsigned)
    else:
        signed = aval.update(dtype=np.dtype(f"int{_width(dtype)}"))
        x = build.op("stablehlo.bitcast_convert", (build.convert(x, signed),), unsigned)
        sign = build.full(1 << _width(dtype) - 1, unsigned)
        x = build.op("stablehlo.xor", (x, sign), unsigned)
    if unsigned.dtype == uint32:
        return [x]
    word = aval.update(dtype=uint32)
    high = build.op("stablehlo.shift_right_logical", (x, build.full(32, unsigned)), unsigned)
    return [build.convert(high, word), build.convert(x, word)]


def _width(dtype: NumPyDType) -> int:
    return 64 if dtype.itemsize == 8 else 32


def in_order_of_floats(build: Builder, x: Value, aval: ShapedArray) -> tuple[Value, ShapedArray]:
    """Return floats as signed integers in the order of their bits, and the integers' aval."""
    (bits,) = build.by_tracing(ordered_bits, [x], [aval])
    return bits, aval.update(dtype=np.dtype(f"int{8 * aval.dtype.itemsize}"))


def _order_of_words(build: Builder, words: list[Value], shape: Shape, axis: int) -> Value:
    """Return the int32 indices that sort by words, the most significant first."""
    order = _order(build, words[-1], shape, axis)
    for word in words[-2::-1]:
        word = _reordered(build, word, ShapedArray(shape, uint32), order, axis)
        positions = _order(build, word, shape, axis)
        order = _reordered(build, order, ShapedArray(shape, int32), positions, axis)
    return order


def _order(build: Builder, word: Value, shape: Shape, axis: int) -> Value:
    """Return the int32 indices that sort uint32 words along an axis."""
    last = len(shape) - 1
    other_axes = [i for i in range(last + 1) if i != axis]
    permutation = [*other_axes, axis]
    is_moved = axis < last and math.prod(shape) >= _MIN_SIZE_TRANSPOSED
    if is_moved:
        shape, axis = tuple(shape[i] for i in permutation), last
        word = _transposed(build, word, permutation, ShapedArray(shape, uint32))
    packed = ShapedArray(shape, uint64)
    high = build.op(
        "stablehlo.shift_left", (build.convert(word, packed), build.full(32, packed)), packed
    )
    x = build.op("stablehlo.or", (high, build.iota(packed, axis)), packed)
    scalar = ShapedArray((), uint64)

    def less(inner: Builder, x: Value, y: Value) -> Value:
        return inner.compare("LT", x, y, scalar)

    (x,) = emit_sort(build, [x], [packed], axis, True, less)
    order = build.convert(x, ShapedArray(shape, int32))
    if not is_moved:
        return order
    back = sorted(range(last + 1), key=permutation.__getitem__)
    return _transposed(build, order, back, ShapedArray(tuple(shape[i] for i in back), int32))


def _transposed(build: Builder, x: Value, permutation: Sequence[int], aval: ShapedArray) -> Value:
    return build.op("stablehlo.transpose", (x,), aval, permutation=types.i64_array(permutation))


def _reordered(build: Builder, x: Value, aval: ShapedArray, order: Value, axis: int) -> Value:
    """Return an array, of this aval, gathered along an axis by indices."""
    other_axes = tuple(i for i in range(aval.ndim) if i != axis)
    numbers = GatherDimensionNumbers((), (axis,), (axis,), other_axes, other_axes)
    indices = build.reshape(order, ShapedArray((*aval.shape, 1), int32))
    return build.op(
        "stablehlo.gather",
        (x, indices),
        aval,
        dimension_numbers=gather_numbers(numbers, aval.ndim),
        slice_sizes=types.i64_array((1,) * aval.ndim),
        indices_are_sorted=types.boolean(False),
    )


def _is_iota(equation: Candidate, x: Atom) -> bool:
    """Return whether an operand of a sort holds the index of each element along the axis."""
    maker = equation.maker(x)
    if maker is None or maker.primitive is not iota_p:
        return False
    return maker.params["dimension"] == equation.params["dimension"]
