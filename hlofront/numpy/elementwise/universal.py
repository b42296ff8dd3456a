"""The ufuncs, such as add, multiply and maximum, with reductions by XLA operations."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from hlofront.base.dtypes import (
    is_complex,
    issubdtype,
    lattice_result,
    python_scalar_dtype,
    to_inexact_dtype,
)
from hlofront.base.elements import bool_, uint8
from hlofront.base.typing import Array, ArrayLike, Axes, DType, DTypeLike
from hlofront.core.aval import typeof
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.numpy.elementwise import bitwise, logic, ufuncs
from hlofront.numpy.elementwise.ufunc import ufunc
from hlofront.numpy.indexing.updating import At
from hlofront.numpy.statistics import cumulative, reductions
from hlofront.numpy.statistics.reductions import (
    ALL,
    ANY,
    MAX,
    MIN,
    PROD,
    SUM,
    Fold,
    fold_axes,
    reduced_axes,
)
from hlofront.numpy.support.naming import named
from hlofront.numpy.support.promotion import as_operand, choose, host_scalar, operand, operands
from hlofront.numpy.support.ufunc_steps import (
    accumulate_by_steps,
    as_dtype,
    axis_back,
    pieces,
    rows_to_update,
    wanted_dtype,
)
from hlofront.primitives.arrays import creation, reducing, shaping
from hlofront.primitives.arrays import cumulative as running
from hlofront.primitives.arrays.shaping import ascending
from hlofront.primitives.elementwise import compare, elementwise
from hlofront.primitives.elementwise.converting import convert, stop_gradient, strong
from hlofront.runtime.dispatch.operation import operation

if TYPE_CHECKING:
    from hlofront.core.aval import ShapedArray
    from hlofront.numpy.indexing.entries import Index


_AND = Fold("bitwise_and", reducing.reduce_and, elementwise.bitwise_and, lambda dtype: -1)
_OR = Fold("bitwise_or", reducing.reduce_or, elementwise.bitwise_or, lambda dtype: 0)
_XOR = Fold("bitwise_xor", reducing.reduce_xor, elementwise.bitwise_xor, lambda dtype: 0)

# ---- reduce ------------------------------------------------------------------------------------


def _extreme(
    a: ArrayLike,
    *,
    axis: Axes,
    dtype: DTypeLike | None,
    keepdims: bool,
    initial: ArrayLike | None,
    where: ArrayLike | None,
    function: Callable[..., Array],
) -> Array:
    if dtype is not None:
        a = _converted(a, dtype)
    return function(a, axis, None, keepdims, initial, where)


@operation(static_argnames=("dtype",))
def _converted(a: ArrayLike, dtype: DTypeLike | None) -> Array:
    return as_dtype(as_operand(a), wanted_dtype(dtype, "reduce"))


@operation(static_argnames=("axis", "dtype", "keepdims", "fold"))
@named("reduce")
def _fold_truth(
    a: ArrayLike,
    axis: Axes,
    dtype: DTypeLike | None,
    keepdims: bool,
    initial: ArrayLike | None,
    where: ArrayLike | None,
    fold: Fold,
) -> Array:
    a, aval = operand(f"{fold.name}.reduce", a)
    result = wanted_dtype(dtype, f"{fold.name}.reduce")
    folded = fold_axes(
        fold, logic.truth(a), reduced_axes(axis, aval.ndim), keepdims, initial, where
    )
    return convert(folded, bool_ if result is None else result, False)


@operation(static_argnames=("axis", "dtype", "keepdims", "fold"))
@named("reduce")
def _fold_bits(
    a: ArrayLike,
    axis: Axes,
    dtype: DTypeLike | None,
    keepdims: bool,
    initial: ArrayLike | None,
    where: ArrayLike | None,
    fold: Fold,
) -> Array:
    name = f"{fold.name}.reduce"
    a, aval = operand(name, a)
    if not ufuncs.is_integer(aval):
        raise ValueError(f"{name}: integer argument required; got dtype={aval.dtype}")
    a = as_dtype(a, wanted_dtype(dtype, name) or aval.dtype)
    return fold_axes(fold, a, reduced_axes(axis, aval.ndim), keepdims, initial, where)


@operation(static_argnames=("axis", "dtype", "keepdims", "base"))
@named("reduce")
def _fold_logarithms(
    a: ArrayLike,
    axis: Axes,
    dtype: DTypeLike | None,
    keepdims: bool,
    initial: ArrayLike | None,
    where: ArrayLike | None,
    base: str,
) -> Array:
    """Compute the log of a sum of powers over axes, scaled by the maximum to avoid overflow."""
    name, power, logarithm, combine = _LOGARITHMS[base]
    a, aval = operand(name, a)
    axes = reduced_axes(axis, aval.ndim)
    result_dtype = to_inexact_dtype(wanted_dtype(dtype, name) or aval.dtype)
    # A weakly typed array remains so until its maximum is subtracted: its cotangents are strong.
    a = a if aval.dtype == result_dtype else as_dtype(a, result_dtype)
    sizes = strong(elementwise.real(a) if is_complex(result_dtype) else a)
    least = host_scalar(-math.inf, typeof(sizes).dtype)
    if where is not None:
        reductions.check_mask(name, where)
        sizes = choose(name, where, sizes, least)
    greatest = stop_gradient(reducing.reduce_max(sizes, axes))
    greatest = compare.select(
        elementwise.is_finite(greatest), greatest, creation.full_like(greatest, 0)
    )
    shift = shaping.expand_dims(greatest, axes)
    scaled = elementwise.sub(a, convert(shift, result_dtype, False))
    total = fold_axes(SUM, power(scaled), axes, False, None, where)
    result = elementwise.add(logarithm(total), convert(greatest, result_dtype, False))
    if initial is not None:
        result = combine(as_dtype(as_operand(initial), result_dtype), result)
    return shaping.expand_dims(result, axes) if keepdims else result


_LOGARITHMS: dict[
    str, tuple[str, Callable[[Array], Array], Callable[[Array], Array], Callable[..., Array]]
] = {
    "e": (
        "logaddexp.reduce",
        elementwise.exp,
        elementwise.log,
        lambda x, y: ufuncs.logaddexp(x, y),
    ),
    "2": (
        "logaddexp2.reduce",
        elementwise.exp2,
        lambda x: ufuncs.log2(x),
        lambda x, y: ufuncs.logaddexp2(x, y),
    ),
}

# ---- accumulate --------------------------------------------------------------------------------


@operation(static_argnames=("axis", "dtype", "how"))
@named("accumulate")
def _run(a: ArrayLike, axis: int, dtype: DTypeLike | None, how: str) -> Array:
    a = as_operand(a)
    aval = typeof(a)
    axis = canonical_axis(axis, aval.ndim)
    result = wanted_dtype(dtype, "accumulate") or aval.dtype
    if not aval.shape[axis]:
        a = creation.full(aval.shape, 0, aval.dtype)
    return _RUNS[how](as_dtype(a, result), axis)


def _accumulate(
    a: ArrayLike,
    *,
    axis: int,
    dtype: DTypeLike | None,
    how: str,
    where: Callable[[DType, DTypeLike | None], bool],
    function: Callable[[], ufunc],
) -> Array:
    """Accumulate by a primitive if it supports the dtype, else step by step.

    Args:
      how: the key of the cumulative function in `_RUNS`.
      where: a predicate of the dtype of `a` and the requested dtype, which is true where the
        primitive supports them.
    """
    native = type(axis) is int and where(typeof(as_operand(a)).dtype, dtype)
    if native:
        return _run(a, axis, dtype, how)
    return accumulate_by_steps(a, axis, dtype, function())


def _of_bytes(fold: Callable[..., Array]) -> Callable[..., Array]:
    """Return a cumulative function that converts booleans to bytes and back."""

    def run(a: ArrayLike, axis: int) -> Array:
        if typeof(a).dtype != bool_:
            return fold(a, axis)
        return compare.ne(fold(convert(a, uint8, False), axis), uint8.type(0))

    return run


def _of_truth(fold: Callable[..., Array]) -> Callable[..., Array]:
    return lambda a, axis: _of_bytes(fold)(logic.truth(a), axis)


def _running_parity(a: ArrayLike, axis: int) -> Array:
    counts = running.cumsum(convert(logic.truth(a), python_scalar_dtype(int), False), axis)
    return compare.ne(
        elementwise.bitwise_and(counts, host_scalar(1, typeof(counts).dtype)),
        host_scalar(0, typeof(counts).dtype),
    )


def _in_halves(combine: Callable[..., Array]) -> Callable[..., Array]:
    return lambda a, axis: running.associative_scan(combine, a, axis=axis)


_RUNS: dict[str, Callable[[Array, int], Array]] = {
    "maximum": _of_bytes(running.cummax),
    "minimum": _of_bytes(running.cummin),
    "logical_and": _of_truth(running.cummin),
    "logical_or": _of_truth(running.cummax),
    "logical_xor": _running_parity,
    "bitwise_and": _in_halves(elementwise.bitwise_and),
    "bitwise_or": _in_halves(elementwise.bitwise_or),
    "bitwise_xor": _in_halves(elementwise.bitwise_xor),
    "logaddexp": running.cumlogsumexp,
}


def _always(dtype: DType, requested: DTypeLike | None) -> bool:
    return True


def _unasked(dtype: DType, requested: DTypeLike | None) -> bool:
    return requested is None


def _of_floats(dtype: DType, requested: DTypeLike | None) -> bool:
    return issubdtype(
        dtype if requested is None else wanted_dtype(requested, "accumulate"), np.inexact
    )


def _of_integers(dtype: DType, requested: DTypeLike | None) -> bool:
    dtype = np.dtype(dtype if requested is None else wanted_dtype(requested, "accumulate"))
    return dtype == bool_ or issubdtype(dtype, np.integer)


# ---- reduceat, at ------------------------------------------------------------------------------


@operation(static_argnames=("axis", "dtype", "fold"))
@named("reduceat")
def _fold_pieces(
    a: ArrayLike, indices: ArrayLike, axis: int, dtype: DTypeLike | None, fold: Fold
) -> Array:
    a, indices = as_operand(a), as_operand(indices)
    weak = typeof(a).weak_type and dtype is None
    result = wanted_dtype(dtype, "reduceat") or typeof(a).dtype
    a, first, inside = pieces(as_dtype(a, result), indices, axis)
    if result == bool_:
        fold = {SUM: ANY, MAX: ANY, PROD: ALL, MIN: ALL}.get(fold, fold)
    count, size = typeof(inside).shape
    shape = (count, size, *typeof(first).shape[1:])
    inside = shaping.broadcast_in_dim(inside, shape, (0, 1))
    a = shaping.broadcast_in_dim(a, shape, ascending(len(shape))[1:])
    neutral = creation.full(shape, host_scalar(fold.identity(result), result))
    reduced = fold.reduce(compare.select(inside, a, neutral), (1,))
    return convert(axis_back(fold.combine(first, reduced), axis), result, weak)


def _update(
    a: ArrayLike, indices: Index, b: ArrayLike | None = None, *, method: str, name: str
) -> Array:
    if b is None:
        raise TypeError(f"{name}.at() is missing its third argument: what to {method} with")
    return getattr(At(a)[indices], method)(b)


def _update_extreme(
    a: ArrayLike, indices: Index, b: ArrayLike | None = None, *, method: str, name: str
) -> Array:
    if b is None:
        raise TypeError(f"{name}.at() is missing its third argument: what to compare with")
    leading, rows, b = rows_to_update(a, indices, b)
    return _update_rows(a, rows, b, leading, method)


@operation(static_argnames=("leading", "method"))
@named("at")
def _update_rows(a: ArrayLike, rows: Array, b: ArrayLike, leading: int, method: str) -> Array:
    (a, b), (aval, other) = operands("at", (a, b))
    dtype, _ = _lattice(aval, other)
    shape, row = aval.shape, aval.shape[leading:]
    count = math.prod(shape[:leading])
    a = as_dtype(shaping.reshape(a, (count, *row)), dtype)
    beyond = typeof(b).shape[len(typeof(rows).shape) :]
    b = shaping.reshape(
        as_dtype(b, dtype), (*typeof(rows).shape, *(1,) * (len(row) - len(beyond)), *beyond)
    )
    return shaping.reshape(getattr(At(a)[rows], method)(b, mode="drop"), shape)


def _lattice(*avals: ShapedArray) -> tuple[DType, bool]:
    return lattice_result(tuple([(aval.dtype, aval.weak_type) for aval in avals]))


# ---- all ufuncs --------------------------------------------------------------------------------


def _ufunc(
    operation_: Callable[..., Array], nin: int, identity: object, **methods: object
) -> ufunc:
    return ufunc(operation_, nin, 1, identity=identity, call=operation_, **methods)


def _running(how: str, where: Callable[[DType, DTypeLike | None], bool]) -> Callable[..., Array]:
    return partial(_accumulate, how=how, where=where, function=lambda: globals()[how])


def _updating(name: str, method: str) -> Callable[..., Array]:
    return partial(_update, method=method, name=name)


add = _ufunc(
    ufuncs.add,
    2,
    0,
    reduce=reductions.sum,
    accumulate=cumulative.cumsum,
    reduceat=partial(_fold_pieces, fold=SUM),
    at=_updating("add", "add"),
)
subtract = _ufunc(ufuncs.subtract, 2, None, at=_updating("subtract", "subtract"))
multiply = _ufunc(
    ufuncs.multiply,
    2,
    1,
    reduce=reductions.prod,
    accumulate=cumulative.cumprod,
    reduceat=partial(_fold_pieces, fold=PROD),
    at=_updating("multiply", "multiply"),
)
maximum = _ufunc(
    ufuncs.maximum,
    2,
    None,
    reduce=partial(_extreme, function=reductions.max),
    accumulate=_running("maximum", _always),
    reduceat=partial(_fold_pieces, fold=MAX),
    at=partial(_update_extreme, method="max", name="maximum"),
)
minimum = _ufunc(
    ufuncs.minimum,
    2,
    None,
    reduce=partial(_extreme, function=reductions.min),
    accumulate=_running("minimum", _always),
    reduceat=partial(_fold_pieces, fold=MIN),
    at=partial(_update_extreme, method="min", name="minimum"),
)
negative = _ufunc(ufuncs.negative, 1, None)
logical_and = _ufunc(
    logic.logical_and,
    2,
    True,
    reduce=partial(_fold_truth, fold=ALL),
    accumulate=_running("logical_and", _unasked),
)
logical_or = _ufunc(
    logic.logical_or,
    2,
    False,
    reduce=partial(_fold_truth, fold=ANY),
    accumulate=_running("logical_or", _unasked),
)
logical_xor = _ufunc(
    logic.logical_xor,
    2,
    False,
    reduce=partial(_fold_truth, fold=_XOR._replace(name="logical_xor")),
    accumulate=_running("logical_xor", _unasked),
)
bitwise_and = _ufunc(
    bitwise.bitwise_and,
    2,
    -1,
    reduce=partial(_fold_bits, fold=_AND),
    accumulate=_running("bitwise_and", _of_integers),
)
bitwise_or = _ufunc(
    bitwise.bitwise_or,
    2,
    0,
    reduce=partial(_fold_bits, fold=_OR),
    accumulate=_running("bitwise_or", _of_integers),
)
bitwise_xor = _ufunc(
    bitwise.bitwise_xor,
    2,
    0,
    reduce=partial(_fold_bits, fold=_XOR),
    accumulate=_running("bitwise_xor", _of_integers),
)
logaddexp = _ufunc(
    ufuncs.logaddexp,
    2,
    -math.inf,
    reduce=partial(_fold_logarithms, base="e"),
    accumulate=_running("logaddexp", _of_floats),
)
logaddexp2 = _ufunc(ufuncs.logaddexp2, 2, -math.inf, reduce=partial(_fold_logarithms, base="2"))
