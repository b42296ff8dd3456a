"""The reductions, accumulations and updates of any ufunc, computed step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import numpy as np

from hlofront.base.dtypes import check_user_dtype_supported, promote_types
from hlofront.base.elements import bool_, int32
from hlofront.base.typing import Array, ArrayLike, Axis, DType, DTypeLike
from hlofront.core.aval import typeof
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.higher_order.control_flow.library_loops import scan
from hlofront.numpy.indexing.taking import take
from hlofront.numpy.indexing.updating import At
from hlofront.numpy.statistics.reductions import as_boolean, check_mask, nothing_to_reduce
from hlofront.numpy.support.naming import named
from hlofront.numpy.support.promotion import as_operand, check_broadcast, with_shape
from hlofront.primitives.arrays import creation, shaping, slicing
from hlofront.primitives.arrays.shaping import ascending
from hlofront.primitives.elementwise import compare, elementwise
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.weak_types import weak_tangents
from hlofront.runtime.dispatch.eval_shape import eval_shape
from hlofront.runtime.dispatch.operation import operation
from hlofront.transforms.flatten import ShapeDtypeStruct

if TYPE_CHECKING:
    from hlofront.numpy.indexing.entries import Index, IndexItem


class BinaryUfunc(Protocol):
    """A binary ufunc, as the step-by-step methods use it."""

    @property
    def __name__(self) -> str: ...
    @property
    def identity(self) -> ArrayLike | None: ...
    @property
    def _call(self) -> Callable[..., Array]: ...


def _result_dtype(function: BinaryUfunc, *operands: ArrayLike) -> np.dtype:
    """Return the dtype of a function's result for scalars of the operands' dtypes."""
    avals = map(typeof, operands)
    structs = [ShapeDtypeStruct((), aval.dtype, weak_type=aval.weak_type) for aval in avals]
    return eval_shape(function._call, *structs).dtype


def as_dtype(x: ArrayLike, dtype: DType | None) -> Array:
    """Return an array in a dtype, strongly typed; as booleans, whether elements are nonzero."""
    return as_boolean(x) if dtype == bool_ else convert(x, dtype, False)


def wanted_dtype(dtype: DTypeLike | None, name: str) -> DType | None:
    """Return the requested dtype, canonicalized, or None."""
    return None if dtype is None else check_user_dtype_supported(dtype, name)


def axis_first(x: ArrayLike, axis: int) -> Array:
    """Return the array with an axis moved to the front."""
    if not axis:
        return x
    return shaping.transpose(x, (axis, *(i for i in range(typeof(x).ndim) if i != axis)))


def axis_back(x: ArrayLike, axis: int) -> Array:
    """Return the array with its first axis moved to `axis`."""
    if not axis:
        return x
    ndim = typeof(x).ndim
    return shaping.transpose(x, (*range(1, axis + 1), 0, *range(axis + 1, ndim)))


def _single_axis(name: str, axis: int, ndim: int) -> int:
    if isinstance(axis, tuple):
        raise NotImplementedError(  # JAX raises this class.
            f"{name} folds one axis, or with None all of them, got {axis}"
        )
    return canonical_axis(axis, ndim)


@operation(static_argnames=("axis", "dtype", "keepdims", "function"))
@named("reduce")
def reduce_by_steps(
    a: ArrayLike,
    axis: Axis,
    dtype: DTypeLike | None,
    keepdims: bool,
    initial: ArrayLike | None,
    where: ArrayLike | None,
    function: BinaryUfunc,
) -> Array:
    name = f"{function.__name__}.reduce"
    a = as_operand(a)
    shape = typeof(a).shape
    if where is not None:
        where = as_operand(where)
        check_mask(name, where)
        where = with_shape(where, typeof(where).shape, shape)
    kept_shape: tuple[int, ...]
    if axis is None:
        kept_shape = (1,) * len(shape)
        a = shaping.reshape(a, (typeof(a).size,))
        where = where if where is None else shaping.reshape(where, typeof(a).shape)
    else:
        axis = _single_axis(name, axis, len(shape))
        kept_shape = (*shape[:axis], 1, *shape[axis + 1 :])
        a = axis_first(a, axis)
        where = where if where is None else axis_first(where, axis)
    size, *rest = typeof(a).shape
    a = weak_tangents(a)
    result = wanted_dtype(dtype, name) or _result_dtype(function, a, a)
    if initial is None:
        initial = function.identity
    if initial is None:
        if not size:
            raise nothing_to_reduce(function.__name__, shape)
        start, a = slicing.index_in_dim(a, 0, 0, False), slicing.slice_in_dim(a, 1, None)
    else:
        initial = as_operand(initial)
        start = with_shape(initial, typeof(initial).shape, tuple(rest))
    start = as_dtype(start, result)

    def step(carry: Array, each: tuple[Array, Array | None]) -> tuple[Array, None]:
        element, used = each
        combined = as_dtype(function._call(carry, element), result)
        return combined if used is None else compare.select(used, combined, carry), None

    folded, _ = scan(step, start, (a, where))
    return shaping.reshape(folded, kept_shape) if keepdims else folded


@operation(static_argnames=("axis", "dtype", "function"))
@named("accumulate")
def accumulate_by_steps(
    a: ArrayLike, axis: int, dtype: DTypeLike | None, function: BinaryUfunc
) -> Array:
    name = f"{function.__name__}.accumulate"
    a = as_operand(a)
    if axis is None or isinstance(axis, tuple):
        raise ValueError(f"accumulate does not allow multiple axes: {name} was given {axis}")
    axis = canonical_axis(axis, typeof(a).ndim)
    result = wanted_dtype(dtype, name) or _result_dtype(function, a, a)
    a = axis_first(a, axis)
    if not typeof(a).shape[0]:
        return axis_back(creation.full(typeof(a).shape, 0, result), axis)
    a = weak_tangents(a)
    first = as_dtype(slicing.slice_in_dim(a, 0, 1), result)

    def step(carry: Array, element: Array) -> tuple[Array, Array]:
        combined = as_dtype(function._call(carry, element), result)
        return combined, combined

    start = slicing.index_in_dim(first, 0, 0, False)
    _, rest = scan(step, start, slicing.slice_in_dim(a, 1, None))
    return axis_back(slicing.concatenate([first, rest], 0), axis)


def pieces(a: ArrayLike, indices: ArrayLike, axis: int) -> tuple[Array, Array, Array]:
    """Return the array with `axis` first, each piece's first element, and a mask of its rest.

    The mask has the shape (indices, axis), and is true at the elements of a piece after its first.
    """
    first = axis_first(take(a, indices, axis), axis)
    a = axis_first(a, axis)
    size = typeof(a).shape[0]
    (count,) = typeof(indices).shape
    int_ = int32
    indices = convert(indices, int_, False)
    ends = slicing.concatenate(
        [
            slicing.slice_in_dim(indices, min(1, count), None),
            creation.full((min(1, count),), size, int_),
        ],
        0,
    )
    at = creation.iota(int_, size)
    shape = (count, size)
    at = shaping.broadcast_in_dim(at, shape, (1,))
    after = compare.gt(at, shaping.broadcast_in_dim(indices, shape, (0,)))
    before = compare.lt(at, shaping.broadcast_in_dim(ends, shape, (0,)))
    return a, first, elementwise.bitwise_and(after, before)


@operation(static_argnames=("axis", "dtype", "function"))
@named("reduceat")
def reduceat_by_steps(
    a: ArrayLike, indices: ArrayLike, axis: int, dtype: DTypeLike | None, function: BinaryUfunc
) -> Array:
    name = f"{function.__name__}.reduceat"
    a, indices = as_operand(a), as_operand(indices)
    aval = typeof(a)
    result = wanted_dtype(dtype, name)
    weak = result is None and aval.weak_type
    if result is None:
        result = promote_types(aval.dtype, _result_dtype(function, a, a))
    a, first, inside = pieces(as_dtype(a, result), indices, axis)
    shape = typeof(first).shape

    def step(carry: Array, each: tuple[Array, Array]) -> tuple[Array, None]:
        element, used = each
        combined = as_dtype(function._call(carry, element), result)
        used = shaping.broadcast_in_dim(used, shape, (0,))
        return compare.select(used, combined, carry), None

    # Each step combines one element of every piece.
    rows = shaping.expand_dims(a, (1,))
    folded, _ = scan(step, first, (rows, shaping.transpose(inside, (1, 0))))
    return convert(axis_back(folded, axis), result, weak)


def _rows_named(a: ArrayLike, indices: Index) -> tuple[int, Array]:
    """Return the number of leading axes that an index selects from, and its row numbers."""
    shape = typeof(a).shape
    entries = indices if isinstance(indices, tuple) else (indices,)
    leading = len(entries) if all(map(_names_rows, entries)) else len(shape)
    if not leading:
        leading = len(shape)
    sizes = shape[:leading]
    count = int(np.prod(sizes, dtype=np.int64))
    numbers = shaping.reshape(creation.iota(int32, count), sizes)
    return min(leading, len(shape)), At(numbers)[indices].get(mode="fill", fill_value=count)


def _names_rows(entry: IndexItem) -> bool:
    dtype = getattr(entry, "dtype", None)
    return type(entry) is int if dtype is None else dtype != bool_


def rows_to_update(a: ArrayLike, indices: Index, b: ArrayLike) -> tuple[int, Array, Array]:
    """Return the number of leading axes that an index selects from, its rows, and b by row.

    The rows and `b` have the shape of the index; the other axes of `b` are broadcast to a row.
    """
    leading, rows = _rows_named(a, indices)
    named_shape = typeof(rows).shape
    if b is None:
        return leading, rows, None
    shape = typeof(b).shape
    beyond = shape[len(named_shape) :]
    own = shape[: len(named_shape)]
    if check_broadcast("at", [own, named_shape]) != named_shape:
        raise ValueError(
            f"at: the second operand, of shape {shape}, does not broadcast to the shape of the "
            f"index, {named_shape}"
        )
    if not beyond:
        return leading, rows, with_shape(b, shape, named_shape)
    return leading, rows, with_shape(b, shape, (*named_shape, *beyond))


def update_by_steps(
    a: ArrayLike, indices: Index, b: ArrayLike | None = None, *, function: BinaryUfunc
) -> Array:
    leading, rows, b = rows_to_update(a, indices, b)
    return _update_rows(a, rows, b, leading, function)


@operation(static_argnames=("leading", "function"))
@named("at")
def _update_rows(
    a: ArrayLike, rows: Array, b: ArrayLike, leading: int, function: BinaryUfunc
) -> Array:
    shape, named_shape = typeof(a).shape, typeof(rows).shape
    result = _result_dtype(function, *((a,) if b is None else (a, b)))
    count = int(np.prod(shape[:leading], dtype=np.int64))
    a = as_dtype(shaping.reshape(a, (count, *shape[leading:])), result)
    if not count:
        return shaping.reshape(a, shape)
    rows = shaping.reshape(rows, (typeof(rows).size,))
    if b is not None:
        b = shaping.reshape(b, (*typeof(rows).shape, *typeof(b).shape[len(named_shape) :]))

    def step(a: ArrayLike, each: tuple[Array, ...]) -> tuple[Array, None]:
        row, operand = each
        old = At(a)[row].get(mode="clip")
        new = function._call(old) if operand is None else function._call(old, operand)
        return At(a)[row].set(as_dtype(new, result), mode="drop"), None

    updated, _ = scan(step, a, (rows, b))
    return shaping.reshape(updated, shape)


@operation(static_argnames=("function",))
@named("outer")
def outer_of(first: ArrayLike, second: ArrayLike, function: BinaryUfunc) -> Array:
    first, second = as_operand(first), as_operand(second)
    shape, other = typeof(first).shape, typeof(second).shape
    if shape and other:
        first = shaping.expand_dims(first, ascending(len(shape) + len(other))[len(shape) :])
        second = shaping.expand_dims(second, ascending(len(shape)))
    return function._call(first, second)
