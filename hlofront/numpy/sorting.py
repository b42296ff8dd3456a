"""Sorting and searching: sort, argsort, lexsort, partition, searchsorted."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.base.dtypes import (
    check_user_dtype_supported,
    default_dtype,
    issubdtype,
    to_complex_dtype,
)
from hlofront.core.aval import typeof
from hlofront.core.dimensions import canonical_axis
from hlofront.core.trace import process
from hlofront.numpy import creation
from hlofront.numpy.like import like
from hlofront.numpy.promotion import check_arraylike, promote_dtypes
from hlofront.numpy.ufuncs import any_operand
from hlofront.primitives import comparing, elementwise, reducing, shaping, slicing
from hlofront.primitives import sorting as lax
from hlofront.primitives.comparing import select_n_p
from hlofront.primitives.converting import convert
from hlofront.primitives.creating import broadcasted_iota, full, full_like
from hlofront.primitives.gathering import GatherDimensionNumbers, gather
from hlofront.runtime.operation import operation

int32 = np.dtype(np.int32)


def _refuse(name: str, kind: Any, order: Any) -> None:
    if kind is not None:
        raise TypeError(
            f"'kind' argument to {name} is not supported. Use stable=True or stable=False to "
            "specify sort stability."
        )
    if order is not None:
        raise TypeError(f"'order' argument to {name} is not supported: arrays have no fields.")


def _flattened(name: str, a: Any, axis: int | None) -> tuple[Any, int]:
    a = any_operand(name, a)
    if axis is None:
        return shaping.reshape(a, (typeof(a).size,)), 0
    return a, canonical_axis(axis, typeof(a).ndim)


# ---- sort --------------------------------------------------------------------------------------


@operation(static_argnames=("axis", "stable", "descending"))
def _sort(a, axis=-1, stable=True, descending=False):
    a, axis = _flattened("sort", a, axis)
    result = lax.sort(a, axis, is_stable=stable)
    return shaping.rev(result, (axis,)) if descending else result


_sort.__name__ = "sort"


@like(np.sort)
def sort(
    a: Any,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Any:
    """The elements in ascending order along an axis, NaN last; with None, of the array as one row."""
    if kind is not None or order is not None:
        _refuse("sort", kind, order)
    if axis == -1 and stable and not descending:
        return _sort(a)
    return _sort(a, axis, bool(stable), bool(descending))


@operation(static_argnames=("axis", "stable", "descending", "dtype"))
def _argsort(a, axis=-1, stable=True, descending=False, dtype=None):
    a, axis = _flattened("argsort", a, axis)
    shape = typeof(a).shape
    index_dtype = default_dtype("i")
    if descending and stable:
        # Equal elements keep their order if what is sorted is the array the other way round.
        a = shaping.rev(a, (axis,))
    places = broadcasted_iota(index_dtype, shape, axis)
    _, order = lax.sort((a, places), axis, is_stable=stable, num_keys=1)
    if descending:
        order = shaping.rev(order, (axis,))
        if stable:
            order = elementwise.sub(full_like(order, shape[axis] - 1), order)
    if dtype is not None:
        order = convert(order, check_user_dtype_supported(dtype, "argsort"), False)
    return order


_argsort.__name__ = "argsort"


@like(np.argsort)
def argsort(
    a: Any,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: Any = None,
) -> Any:
    """The indices that sort an array along an axis; with None, the array as one row."""
    if kind is not None or order is not None:
        _refuse("argsort", kind, order)
    if axis == -1 and stable and not descending and dtype is None:
        return _argsort(a)
    return _argsort(a, axis, bool(stable), bool(descending), dtype)


@operation(static_argnames=("axis",))
def _lexsort(keys, axis):
    keys = [any_operand("lexsort", key) for key in keys]
    shapes = [typeof(key).shape for key in keys]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError(f"all keys need to be the same shape: got {shapes}")
    index_dtype = default_dtype("i")
    if not shapes[0]:
        return full((), 0, index_dtype)
    axis = canonical_axis(axis, len(shapes[0]))
    places = broadcasted_iota(index_dtype, shapes[0], axis)
    return lax.sort((*reversed(keys), places), axis, num_keys=len(keys))[-1]


@like(np.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Any:
    """The indices that sort by several keys, of which the last counts most."""
    if hasattr(keys, "ndim") and not isinstance(keys, Sequence):
        keys = slicing.unstack(creation.asarray(keys))
    keys = list(keys)
    if not keys:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    check_arraylike("lexsort", *keys)
    return _lexsort(keys, operator.index(axis))


@operation
@like(np.sort_complex)
def sort_complex(a):
    """The elements as complex numbers, by their real and then their imaginary parts."""
    a = any_operand("sort_complex", a)
    a = convert(a, to_complex_dtype(typeof(a).dtype), False)
    return lax.sort(a, typeof(a).ndim - 1)


# ---- partition ---------------------------------------------------------------------------------
#
# Up to the k-th they ascend, and after it they descend, as when each part is found by a top_k.


@operation(static_argnames=("kth", "axis"))
def _partition(a, kth, axis):
    a = any_operand("partition", a)
    axis = canonical_axis(axis, typeof(a).ndim)
    size = typeof(a).shape[axis]
    kth = canonical_axis(kth, size)
    _refuse_complex("partition", a)
    ordered = lax.sort(a, axis)
    low = slicing.slice_in_dim(ordered, 0, kth + 1, axis=axis)
    high = slicing.slice_in_dim(ordered, kth + 1, size, axis=axis)
    return slicing.concatenate([low, shaping.rev(high, (axis,))], axis)


@operation(static_argnames=("kth", "axis"))
def _argpartition(a, kth, axis):
    a = any_operand("argpartition", a)
    shape = typeof(a).shape
    axis = canonical_axis(axis, len(shape))
    kth = canonical_axis(kth, shape[axis])
    _refuse_complex("argpartition", a)
    places = broadcasted_iota(default_dtype("i"), shape, axis)
    return lax.sort((a, places), axis, num_keys=1)[1]


def _refuse_complex(name: str, a: Any) -> None:
    if issubdtype(typeof(a).dtype, np.complexfloating):
        raise NotImplementedError(  # the class that JAX raises
            f"jnp.{name} is not there for complex numbers: sort them with jnp.sort."
        )


@like(np.partition)
def partition(a: Any, kth: int, axis: int = -1) -> Any:
    """The k-th smallest element in its place, with no greater ones before it, along an axis."""
    return _partition(a, operator.index(kth), operator.index(axis))


@like(np.argpartition)
def argpartition(a: Any, kth: int, axis: int = -1) -> Any:
    """The indices that partition an array: the k-th smallest in its place."""
    return _argpartition(a, operator.index(kth), operator.index(axis))


# ---- searchsorted ------------------------------------------------------------------------------

_METHODS = ("compare_all", "scan", "scan_unrolled", "sort")


def before(x: Any, y: Any, or_equal: bool) -> Any:
    """Elementwise whether x comes before y when sorted: NaN last, complex numbers by parts."""
    dtype = typeof(x).dtype
    if issubdtype(dtype, np.complexfloating):
        real, other = elementwise.real(x), elementwise.real(y)
        parts = before(elementwise.imag(x), elementwise.imag(y), or_equal)
        first = before(real, other, False)
        tied = elementwise.bitwise_not(
            elementwise.bitwise_or(first, before(other, real, False))
        )
        return elementwise.bitwise_or(first, elementwise.bitwise_and(tied, parts))
    less = (comparing.le if or_equal else comparing.lt)(x, y)
    if issubdtype(dtype, np.floating):
        y_nan = comparing.ne(y, y)
        if or_equal:
            return elementwise.bitwise_or(less, y_nan)
        return elementwise.bitwise_or(less, elementwise.bitwise_and(comparing.eq(x, x), y_nan))
    return less


@operation(static_argnames=("side", "method", "dtype"))
def _searchsorted(a, v, sorter, side, method, dtype):
    a, v = promote_dtypes(any_operand("searchsorted", a), any_operand("searchsorted", v))
    if typeof(a).ndim != 1:
        raise ValueError(f"a should be 1-dimensional: searchsorted got shape {typeof(a).shape}")
    if sorter is not None:
        a = _elements(a, sorter)
    (size,), shape = typeof(a).shape, typeof(v).shape
    if not size:
        return full(shape, 0, dtype)
    flat = shaping.reshape(v, (typeof(v).size,))
    found = _SEARCHES[method](a, flat, size, typeof(v).size, side)
    return shaping.reshape(convert(found, dtype, False), shape)


_searchsorted.__name__ = "searchsorted"


def _elements(a: Any, indices: Any) -> Any:
    """Elements of an array of one axis at indices in bounds, of one axis."""
    (count,) = typeof(indices).shape
    return gather(
        a,
        shaping.reshape(convert(indices, int32, False), (count, 1)),
        GatherDimensionNumbers((), (0,), (0,)),
        (1,),
        mode="promise_in_bounds",
    )


def _by_halving(a: Any, v: Any, size: int, count: int, side: str) -> Any:
    low = full((count,), 0, int32)
    high = full((count,), size, int32)
    for _ in range(size.bit_length()):
        middle = elementwise.div(elementwise.add(low, high), full_like(low, 2))
        element = _elements(a, elementwise.min(middle, full_like(middle, size - 1)))
        left = before(element, v, side == "right")
        active = comparing.lt(low, high)
        left = elementwise.bitwise_and(left, active)
        right = elementwise.bitwise_and(elementwise.bitwise_not(left), active)
        next_low = elementwise.add(middle, full_like(middle, 1))
        low = process(select_n_p, (left, low, next_low), {})
        high = process(select_n_p, (right, high, middle), {})
    return low


def _by_comparing(a: Any, v: Any, size: int, count: int, side: str) -> Any:
    rows = shaping.broadcast_in_dim(a, (count, size), (1,))
    sought = shaping.broadcast_in_dim(v, (count, size), (0,))
    return reducing.reduce_sum(convert(before(rows, sought, side == "right"), int32, False), (1,))


def _by_sorting(a: Any, v: Any, size: int, count: int, side: str) -> Any:
    # Sorted together, and stably, an element's place less the number of sought ones before it.
    together = slicing.concatenate([v, a] if side == "left" else [a, v], 0)
    places = broadcasted_iota(int32, (size + count,), 0)
    _, order = lax.sort((together, places), 0, num_keys=1)
    _, rank = lax.sort((order, places), 0, num_keys=1)
    start = 0 if side == "left" else size
    rank = slicing.slice_in_dim(rank, start, start + count)
    _, own = lax.sort((v, broadcasted_iota(int32, (count,), 0)), 0, num_keys=1)
    _, own = lax.sort((own, broadcasted_iota(int32, (count,), 0)), 0, num_keys=1)
    return elementwise.sub(rank, own)


_SEARCHES = {
    "scan": _by_halving,
    "scan_unrolled": _by_halving,
    "compare_all": _by_comparing,
    "sort": _by_sorting,
}


@like(np.searchsorted)
def searchsorted(
    a: Any, v: Any, side: str = "left", sorter: Any = None, *, method: str = "scan"
) -> Any:
    """Where elements would go into a sorted array of one axis, so that it stays sorted.

    Args:
      side: "left", before elements that are equal, or "right", after them.
      sorter: indices that sort `a`, where it is not sorted.
      method: "scan" and "scan_unrolled" halve what is left, which suits processors; "sort" sorts
        both together, which suits many values on accelerators; "compare_all" compares all pairs.
    """
    check_arraylike("searchsorted", a, v, *([] if sorter is None else [sorter]))
    if side not in ("left", "right"):
        raise ValueError(f"invalid argument side={side!r}, expected 'left' or 'right'")
    if method not in _METHODS:
        raise ValueError(f"invalid argument method={method!r}, expected one of {list(_METHODS)}")
    size = typeof(a).size
    dtype = int32 if size < 2**31 else np.dtype(np.int64)
    return _searchsorted(a, v, sorter, side, method, dtype)


def _method_sort(
    self: Any,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Any:
    """A sorted copy."""
    return sort(self, axis, kind=kind, order=order, stable=stable, descending=descending)


_method_sort.__name__ = "sort"

ARRAY_METHODS = {
    "sort": _method_sort,
    "argsort": argsort,
    "argpartition": argpartition,
    "searchsorted": searchsorted,
}
