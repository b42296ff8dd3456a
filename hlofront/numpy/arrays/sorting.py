"""Sorting, partitioning, and searching sorted arrays."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from hlofront.base.choices import check_choice
from hlofront.base.dtypes import (
    check_user_dtype_supported,
    issubdtype,
    python_scalar_dtype,
    to_complex_dtype,
)
from hlofront.base.elements import exact_dtype, host_number
from hlofront.base.typing import Array, ArrayLike, Axis, DTypeLike
from hlofront.core.aval import typeof
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.higher_order.control_flow.library_loops import scan
from hlofront.numpy.arrays.shape import as_array
from hlofront.numpy.elementwise.logic import ordering
from hlofront.numpy.elementwise.ufuncs import any_operand
from hlofront.numpy.support.like import like, operation_like
from hlofront.numpy.support.promotion import check_arraylike, choose, promote_dtypes
from hlofront.primitives.arrays import creation, reducing, shaping, slicing, sorting
from hlofront.primitives.arrays.gathering import GatherDimensionNumbers, gather
from hlofront.primitives.elementwise import compare, elementwise
from hlofront.primitives.elementwise.converting import convert
from hlofront.runtime.dispatch.operation import operation


def _refuse(name: str, kind: str | None, order: str | None) -> None:
    if kind is not None:
        raise TypeError(
            f"'kind' argument to {name} is not supported. Use stable=True or stable=False to "
            "specify sort stability."
        )
    if order is not None:
        raise TypeError(f"'order' argument to {name} is not supported: elements have no fields.")


def _along(name: str, a: ArrayLike, axis: int | None) -> tuple[ArrayLike, int]:
    """Return the array and its axis to sort along; None flattens the array."""
    a = any_operand(name, a)
    if axis is None:
        return shaping.reshape(a, (typeof(a).size,)), 0
    return a, canonical_axis(axis, typeof(a).ndim)


def order_along(a: ArrayLike, axis: int, dtype: np.dtype) -> tuple[Array, Array]:
    """Return the elements sorted along an axis, and their original indices."""
    return sorting.sort_key_val(a, creation.index_like(a, axis, dtype), axis)


# ---- sort --------------------------------------------------------------------------------------


@operation_like(np.sort, static_argnames=("axis", "kind", "order", "stable", "descending"))
def sort(
    a: ArrayLike,
    axis: Axis = -1,
    *,
    kind: None = None,
    order: str | None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """Sort the elements in ascending order along an axis, NaN last; None sorts the flattened array.

    Args:
      a: an array.
      axis: the axis to sort along.
      kind: must be None.
      order: must be None.
      stable: whether equal elements keep their order, which matters only for 0.0 and -0.0.
      descending: whether the greatest comes first, after NaN.

    Example:
      >>> jnp.sort(jnp.array([[3, 1], [2, 4]]), axis=0)
      Array([[2, 1],
             [3, 4]], dtype=int32)
      >>> jnp.sort(jnp.array([2, jnp.nan, 1]), descending=True)
      Array([nan,  2.,  1.], dtype=float32)
    """
    _refuse("sort", kind, order)
    a, axis = _along("sort", a, axis)
    result = sorting.sort(a, axis, stable)
    return shaping.rev(result, (axis,)) if descending else result


@operation_like(
    np.argsort, static_argnames=("axis", "kind", "order", "stable", "descending", "dtype")
)
def argsort(
    a: ArrayLike,
    axis: Axis = -1,
    *,
    kind: None = None,
    order: str | None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike | None = None,
) -> Array:
    """Return the indices that sort an array along an axis; None sorts the flattened array.

    Args:
      a: an array.
      axis: the axis to sort along.
      kind: must be None.
      order: must be None.
      stable: whether equal elements keep their order.
      descending: whether the greatest comes first, after NaN.
      dtype: the dtype of the indices; by default the default integer one.

    Example:
      >>> jnp.argsort(jnp.array([3, 1, 2]))
      Array([1, 2, 0], dtype=int32)
    """
    _refuse("argsort", kind, order)
    a, axis = _along("argsort", a, axis)
    index_dtype = None if dtype is None else check_user_dtype_supported(dtype, "argsort")
    indices = creation.index_like(a, axis, python_scalar_dtype(int))
    if descending and stable:
        # Sorting the reversed array and reversing the result keeps equal elements in order.
        a, indices = shaping.rev(a, (axis,)), shaping.rev(indices, (axis,))
    indices = sorting.sort_key_val(a, indices, axis, stable)[1]
    if descending:
        indices = shaping.rev(indices, (axis,))
    return indices if index_dtype is None else convert(indices, index_dtype, False)


@operation(static_argnames=("axis", "batch_size"))
def _lexsort(keys: Sequence[ArrayLike], axis: int, batch_size: int) -> Array:
    check_arraylike("lexsort", *keys)
    shapes = [typeof(key).shape for key in keys]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError(f"all keys need to be the same shape, got {', '.join(map(str, shapes))}")
    dtype = python_scalar_dtype(int)
    if not shapes[0]:
        return as_array(exact_dtype(np.zeros((), dtype)))
    axis = canonical_axis(axis, len(shapes[0]))
    indices = creation.index_like(keys[0], axis, dtype)
    for start in range(0, len(keys), batch_size):
        batch = keys[start : start + batch_size]
        if start:
            at = shaping.expand_dims(indices, (len(shapes[0]),))
            batch = [sorting.take_along(key, at, axis) for key in batch]
        indices = sorting.sort((*batch[::-1], indices), axis, True, len(batch))[-1]
    return indices


@like(np.lexsort)
def lexsort(
    keys: ArrayLike | Sequence[ArrayLike], axis: int = -1, *, batch_size: int = 16
) -> Array:
    """Return the indices that sort by several keys, with the last key as the primary one.

    Args:
      keys: arrays of equal shape, or an array with them along its first axis.
      axis: the axis to sort along.
      batch_size: the number of keys that one sort compares. More keys are sorted by the least
        significant ones first, as the time to compile a sort grows with the number of its keys.

    Raises:
      TypeError: if there are no keys.
      ValueError: if the keys differ in shape, or `batch_size` is not positive.

    Example:
      >>> first, last = jnp.array([2, 1, 3]), jnp.array([1, 1, 0])
      >>> jnp.lexsort((first, last))
      Array([2, 1, 0], dtype=int32)
    """
    if batch_size < 1:
        raise ValueError(f"lexsort: batch_size must be positive, got {batch_size}")
    keys = list(keys)
    if not keys:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    return _lexsort(keys, axis, batch_size)


@operation_like(np.sort_complex)
def sort_complex(a: ArrayLike) -> Array:
    """Sort the elements, as complex numbers, along the last axis by real, then imaginary part.

    Example:
      >>> jnp.sort_complex(jnp.array([2 + 1j, 1, 2]))
      Array([1.+0.j, 2.+0.j, 2.+1.j], dtype=complex64)
    """
    a, axis = _along("sort_complex", a, -1)
    return sorting.sort(convert(a, to_complex_dtype(typeof(a).dtype), False), axis)


# ---- partition ---------------------------------------------------------------------------------


@operation_like(np.partition, static_argnames=("kth", "axis"))
def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Move the kth element to its sorted position, smaller elements before and larger after it.

    The whole axis is sorted, which is one operation on a device.

    Example:
      >>> jnp.partition(jnp.array([4, 1, 3, 2]), 1)[:2]
      Array([1, 2], dtype=int32)
    """
    a, axis = _along("partition", a, operator.index(axis))
    canonical_axis(kth, typeof(a).shape[axis])
    return sorting.sort(as_array(a), axis)


@operation_like(np.argpartition, static_argnames=("kth", "axis"))
def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Return the indices that partition an array along an axis.

    They move the kth element to its sorted position, smaller elements before and larger after it.

    Args:
      a: an array.
      kth: the position in sorted order.
      axis: the axis.

    Returns:
      Integers of the shape of `a`.

    Example:
      >>> x = jnp.array([40, 10, 30, 20])
      >>> jnp.sort(x[jnp.argpartition(x, 1)[:2]])
      Array([10, 20], dtype=int32)
    """
    a, axis = _along("argpartition", a, operator.index(axis))
    canonical_axis(kth, typeof(a).shape[axis])
    order = order_along(as_array(a), axis, _index_dtype(typeof(a).shape[axis]))[1]
    return convert(order, typeof(order).dtype, typeof(a).weak_type)


def top_k(
    a: ArrayLike, k: int, /, *, axis: int = -1, mode: str = "largest", sorted: bool = True
) -> tuple[Array, Array]:
    """Return the k largest or smallest elements along an axis, and their indices.

    Equal elements keep their order. NaN counts as the largest element.

    Args:
      a: a real array of at least one axis.
      k: the number of elements, from 0 to the size of the axis.
      axis: the axis to select along.
      mode: "largest" or "smallest".
      sorted: whether the elements must be in order; they are in any case.

    Returns:
      (values, indices), of the shape of `a` with size k along the axis; indices are int32.

    Raises:
      TypeError: if `a` is neither array nor scalar, or `k` or `axis` is not an integer.
      ValueError: if `k` or `axis` is out of range, `mode` is unknown, or `a` is complex.

    Example:
      >>> jnp.top_k(jnp.array([1, 5, 3]), 2)
      (Array([5, 3], dtype=int32), Array([1, 2], dtype=int32))
    """
    return _top_k(a, k=k, axis=operator.index(axis), mode=mode)


@operation(static_argnames=("k", "axis", "mode"))
def _top_k(a: ArrayLike, k: int, axis: int, mode: str) -> tuple[Array, Array]:
    a = any_operand("top_k", a)
    axis = canonical_axis(axis, typeof(a).ndim)
    check_choice("top_k", "mode", mode, ("largest", "smallest"))
    if mode == "largest":
        values, indices = sorting.top_k(a, k, axis=axis)
        return values, indices
    # The order of integers and booleans is reversed by a complement, which does not overflow.
    is_inexact = issubdtype(typeof(a).dtype, np.inexact)
    reverse = elementwise.neg if is_inexact else elementwise.bitwise_not
    values, indices = sorting.top_k(reverse(a), k, axis=axis)
    return reverse(values), indices


def _index_dtype(size: int) -> np.dtype:
    """Return the dtype of indices along an axis: int32 where sufficient, also with x64 on."""
    return np.dtype(np.int32 if size <= np.iinfo(np.int32).max else np.int64)


# ---- searchsorted ------------------------------------------------------------------------------

_METHODS = ("compare_all", "scan", "scan_unrolled", "sort")


def _precedes(x: ArrayLike, y: ArrayLike) -> Array:
    """Return whether x precedes y in sorted order; NaN, and a NaN part, come last."""
    if issubdtype(typeof(x).dtype, np.complexfloating):
        parts = [(part(x), part(y)) for part in (elementwise.real, elementwise.imag)]
        before, of_imaginary = [_precedes(*pair) for pair in parts]
        after = _precedes(*parts[0][::-1])
        same = elementwise.bitwise_not(elementwise.bitwise_or(before, after))
        return elementwise.bitwise_or(before, elementwise.bitwise_and(same, of_imaginary))
    less = ordering(compare.lt)(x, y)
    dtype = typeof(x).dtype
    if not issubdtype(dtype, np.inexact):
        return less
    only_y = elementwise.bitwise_and(compare.eq(x, x), compare.ne(y, y))
    return elementwise.bitwise_or(less, only_y)


def _counted(x: Array, v: ArrayLike, right: bool) -> Array:
    """Return whether an element x of the sorted array is left of the insertion point of v."""
    return elementwise.bitwise_not(_precedes(v, x)) if right else _precedes(x, v)


def _compare_all(a: ArrayLike, v: Array, right: bool, dtype: np.dtype) -> Array:
    shape = typeof(v).shape
    wide = (*shape, typeof(a).size)
    counted = _counted(
        shaping.broadcast_in_dim(a, wide, (len(shape),)),
        shaping.broadcast_in_dim(v, wide, tuple(range(len(shape)))),
        right,
    )
    return reducing.reduce_sum(convert(counted, dtype, False), (len(shape),))


def by_bisection(
    a: ArrayLike, v: ArrayLike, right: bool, dtype: np.dtype, unroll: bool = False
) -> Array:
    """Return the insertion indices, of the shape of v, of values in a sorted vector, by bisection.

    After each step the result is above `low`, or 0, and no higher than `high`. The steps are one
    compiled loop, or separate operations if `unroll`.
    """
    size, shape = typeof(a).size, typeof(v).shape
    unsigned = np.dtype(f"uint{8 * dtype.itemsize}")
    low = creation.full(shape, 0, unsigned)
    high = creation.full(shape, size, unsigned)
    two = host_number(2, unsigned)

    def halve(bounds: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
        low, high = bounds
        middle = elementwise.add(low, elementwise.div(elementwise.sub(high, low), two))
        left = _counted(element_at(a, middle), v, right)
        low = choose("searchsorted", left, middle, low)
        return (low, choose("searchsorted", left, high, middle)), None

    (_, high), _ = scan(halve, (low, high), None, size.bit_length(), unroll=unroll)
    return convert(high, dtype, False)


def element_at(a: ArrayLike, index: ArrayLike) -> Array:
    """Return the elements of a vector at nonnegative indices, clamped to its size."""
    shape = typeof(index).shape
    return gather(
        a,
        shaping.reshape(index, (*shape, 1)),
        GatherDimensionNumbers((), (0,), (0,)),
        (1,),
        mode="clip",
    )


def _ranks(x: Array, dtype: np.dtype) -> Array:
    """Return the rank of each element of a vector: its index in the sorted vector."""
    return order_along(order_along(x, 0, dtype)[1], 0, dtype)[1]


def _by_sorting(a: ArrayLike, v: Array, right: bool, dtype: np.dtype) -> Array:
    """Return the insertion indices of v in a, from the ranks of both in one sorted sequence."""
    n, shape = typeof(a).size, typeof(v).shape
    flat = shaping.reshape(v, (typeof(v).size,))
    # Sorting is stable: of equal elements, those that come first stay first.
    together = slicing.concatenate((a, flat) if right else (flat, a), 0)
    start = n if right else 0
    among_all = slicing.slice_in_dim(_ranks(together, dtype), start, start + typeof(flat).size)
    among_own = _ranks(flat, dtype)
    return shaping.reshape(elementwise.sub(among_all, among_own), shape)


@operation(static_argnames=("side", "method"))
def _searchsorted(
    a: ArrayLike, v: ArrayLike, side: str, sorter: ArrayLike | None, method: str
) -> Array:
    check_arraylike("searchsorted", a, v)
    a, v = any_operand("searchsorted", a), any_operand("searchsorted", v)
    if typeof(a).ndim != 1:
        raise ValueError(f"a should be 1-dimensional, got shape {typeof(a).shape}")
    a, v = promote_dtypes(a, v)
    size = typeof(a).size
    dtype = _index_dtype(size)
    if python_scalar_dtype(int).itemsize < dtype.itemsize:
        raise OverflowError(
            f"searchsorted among {size} elements has results too large for int32: turn 64-bit "
            "dtypes on with jax_enable_x64."
        )
    if not size or not typeof(v).size:
        return creation.full(typeof(v).shape, 0, dtype)
    if sorter is not None:
        a = element_at(a, sorter)
    right = side == "right"
    if method == "compare_all":
        return _compare_all(a, v, right, dtype)
    if method == "sort":
        return _by_sorting(a, v, right, dtype)
    return by_bisection(a, v, right, dtype, unroll=method == "scan_unrolled")


@like(np.searchsorted)
def searchsorted(
    a: ArrayLike,
    v: ArrayLike,
    side: str = "left",
    sorter: ArrayLike | None = None,
    *,
    method: str = "scan",
) -> Array:
    """Return the indices at which to insert values into a sorted array so that it stays sorted.

    Args:
      a: a sorted array of one axis.
      v: the values.
      side: "left" to insert before equal elements, or "right" to insert after them.
      sorter: the indices that sort `a`, if it is not sorted.
      method: "scan" and "scan_unrolled" use bisection; "compare_all" compares with each element,
        which is fast for a short `a`; "sort" sorts both together, which is fast on accelerators
        for many values.

    Raises:
      ValueError: if `a` does not have one axis, or the side or the method is unknown.

    Example:
      >>> jnp.searchsorted(jnp.array([1, 3, 5]), 4)
      Array(2, dtype=int32)
    """
    if side not in ("left", "right"):
        raise ValueError(f"invalid argument side={side!r}, expected 'left' or 'right'")
    if method not in _METHODS:
        raise ValueError(f"invalid argument method={method!r}, expected one of {list(_METHODS)}")
    return _searchsorted(a, v, side, sorter, method)


ARRAY_METHODS = {
    "sort": sort,
    "argsort": argsort,
    "argpartition": argpartition,
    "searchsorted": searchsorted,
}
