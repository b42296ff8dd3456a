"""Set operations on two arrays: intersection, union, difference, symmetric difference."""

from __future__ import annotations

import operator

import numpy as np

from hlofront.base.dtypes import is_complex, python_scalar_dtype
from hlofront.base.elements import bool_, host_number
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.core.programs.extension import concrete_or_error
from hlofront.core.trace import Tracer
from hlofront.numpy.arrays.sets import first_of_equals, flattened, needs_size, one_nan, unique
from hlofront.numpy.arrays.sorting import by_bisection, element_at, order_along
from hlofront.numpy.indexing.selecting import (
    host_value,
    in_dtype,
    put_beside,
    take_rows,
    true_positions,
)
from hlofront.numpy.support.like import like
from hlofront.numpy.support.promotion import as_operand, check_arraylike, choose, promote_dtypes
from hlofront.primitives.arrays import creation, reducing, shaping, slicing, sorting
from hlofront.primitives.elementwise import compare, elementwise
from hlofront.primitives.elementwise.converting import convert
from hlofront.runtime.dispatch.operation import operation


@operation(static_argnames=("unique", "equal_nan"))
def _with_membership(
    ar1: ArrayLike, ar2: ArrayLike, unique: bool, equal_nan: bool
) -> tuple[Array, Array, Array, Array, Array]:
    """Sort ar1, unless it is unique, and search for its elements in ar2.

    Return the elements, their indices in ar1, a mask of the first of equal elements, a mask of
    those that are in ar2, and their indices in ar2.
    """
    ar1, ar2 = promote_dtypes(flattened(ar1), flattened(ar2))
    dtype = python_scalar_dtype(int)
    n, m = typeof(ar1).size, typeof(ar2).size
    if unique:
        ordered, indices = ar1, creation.iota(dtype, n)
        starts = creation.full((n,), True, bool_)
    else:
        ordered, indices = order_along(one_nan(ar1), 0, dtype)
        starts = first_of_equals(ordered, equal_nan)
    if not m or not n:
        return ordered, indices, starts, creation.full((n,), False, bool_), indices
    second, second_indices = order_along(ar2, 0, dtype)
    positions = by_bisection(second, ordered, False, dtype)
    is_member = compare.eq(element_at(second, positions), ordered)
    return ordered, indices, starts, is_member, element_at(second_indices, positions)


@operation(static_argnames=("size",))
def _selected_of_size(
    keep: ArrayLike, fills: list[ArrayLike], arrays: list[Array], size: int
) -> list[Array]:
    """Return `size` elements where the mask `keep` is true, of each vector in `arrays`.

    Fill values stand for missing ones.
    """
    n = typeof(keep).size
    positions = true_positions(keep, size, n)
    missing = compare.eq(positions, host_number(n, typeof(positions).dtype))
    return [
        choose("sets", missing, in_dtype(fill, typeof(x).dtype), take_rows(x, positions, 0))
        for fill, x in zip(fills, arrays, strict=True)
    ]


def _selected(
    source: ArrayLike, keep: Array, fills: list[ArrayLike], arrays: list[Array], size: int | None
) -> list[Array]:
    """Return elements where the mask `keep` is true: all of them, or `size` padded with fills."""
    if size is not None:
        size = concrete_or_error(operator.index, size, "It is the size of a set.")
        return _selected_of_size(keep, fills, arrays, size)
    if any(isinstance(x, Tracer) for x in (keep, *arrays)):
        # The values are known, and elements have derivatives.
        size = int(host_value(keep, "The elements of a set must be known.").sum())
        return _selected_of_size(keep, fills, arrays, size)
    mask = np.asarray(keep)
    return [put_beside(np.asarray(x)[mask], source, typeof(x).weak_type) for x in arrays]


def _both(
    name: str, ar1: ArrayLike, ar2: ArrayLike, size: int | None
) -> tuple[ArrayLike, ArrayLike]:
    check_arraylike(name, ar1, ar2)
    ar1, ar2 = as_operand(ar1), as_operand(ar2)
    if size is None:
        for x in (ar1, ar2):
            if isinstance(x, Tracer):
                host_value(x, needs_size(name))
    return ar1, ar2


@operation
def _first_selected(keep: ArrayLike, ordered: ArrayLike) -> Array:
    """Return the first element where the mask `keep` is true, or 0, as a fill value."""
    dtype = typeof(ordered).dtype
    if not typeof(keep).size:
        return creation.full((), 0, dtype)
    index = reducing.argmax(keep, 0, python_scalar_dtype(int))
    value = shaping.reshape(take_rows(ordered, shaping.reshape(index, (1,)), 0), ())
    any_kept = reducing.reduce_or(keep, (0,))
    return choose("sets", any_kept, value, creation.full((), 0, dtype))


@operation
def _and(x: ArrayLike, y: ArrayLike) -> Array:
    return elementwise.bitwise_and(x, y)


@operation
def _and_not(x: ArrayLike, y: ArrayLike) -> Array:
    return elementwise.bitwise_and(x, elementwise.bitwise_not(y))


@like(np.intersect1d)
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array | tuple[Array, Array, Array]:
    """Return the sorted unique elements that are in both arrays.

    Args:
      ar1: an array, of any shape.
      ar2: another array.
      assume_unique: whether neither array repeats an element: both are sorted together, and an
        element that equals the next one is taken to be in both.
      return_indices: whether to also return the index of the first occurrence of each element in
        both flattened arrays.
      size: the number of elements to return, which is required where an array is traced.
      fill_value: the value of missing elements; by default the least one. Indices that are missing
        are the size of the array.

    Raises:
      ConcretizationTypeError: if an array is traced, and `size` is not passed.

    Example:
      >>> jnp.intersect1d(jnp.array([3, 1, 1, 2]), jnp.array([1, 3, 5]))
      Array([1, 3], dtype=int32)
    """
    ar1, ar2 = _both("intersect1d", ar1, ar2, size)
    if assume_unique:
        ordered, keep, indices, second = _twice(ar1, ar2)
    else:
        ordered, indices, starts, is_member, second = _with_membership(ar1, ar2, False, False)
        keep = _and(starts, is_member)
    if fill_value is None:
        fill_value = 0 if size is None else _first_selected(keep, ordered)
    fills = [fill_value, typeof(ar1).size, typeof(ar2).size]
    count = 3 if return_indices else 1
    arrays = [ordered, indices, second][:count]
    result = _selected(ar1, keep, fills[:count], arrays, size)
    return tuple(result) if return_indices else result[0]


@like(np.setdiff1d)
def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Return the unique elements of the first array that are not in the second array.

    Args:
      ar1: an array, of any shape.
      ar2: another array.
      assume_unique: whether to keep the elements of `ar1` in their order, and all of them.
      size: the number of elements to return, which is required where an array is traced.
      fill_value: the value of missing elements; 0 by default.

    Raises:
      ConcretizationTypeError: if an array is traced, and `size` is not passed.

    Example:
      >>> jnp.setdiff1d(jnp.array([3, 1, 3, 2]), jnp.array([1]))
      Array([2, 3], dtype=int32)
    """
    ar1, ar2 = _both("setdiff1d", ar1, ar2, size)
    ordered, _, starts, is_member, _ = _with_membership(ar1, ar2, bool(assume_unique), True)
    ordered = _in_dtype_of(ordered, ar1)
    keep = _and_not(starts, is_member)
    fill_value = 0 if fill_value is None else fill_value
    return _in_dtype_of(_selected(ar1, keep, [fill_value], [ordered], size)[0], ar1)


def _in_dtype_of(x: Array, like: ArrayLike) -> Array:
    """Return values in the dtype of `like`; complex ones, whose NaNs are unified, are not weak."""
    aval, expected = typeof(x), typeof(like)
    weak = expected.weak_type and not is_complex(expected.dtype)
    if aval.dtype == expected.dtype and aval.weak_type == weak:
        return x
    return _astype(x, expected.dtype, weak)


@operation(static_argnames=("dtype", "weak"))
def _astype(x: ArrayLike, dtype: np.dtype, weak: bool) -> Array:
    return convert(x, dtype, weak)


@operation
def _joined(ar1: ArrayLike, ar2: ArrayLike) -> Array:
    return slicing.concatenate(promote_dtypes(flattened(ar1), flattened(ar2)), 0)


@like(np.union1d)
def union1d(
    ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Return the sorted unique elements of both arrays.

    Args:
      ar1: an array, of any shape.
      ar2: another array.
      size: the number of elements to return, which is required where an array is traced.
      fill_value: the value of missing elements; by default the least one.

    Raises:
      ConcretizationTypeError: if an array is traced, and `size` is not passed.

    Example:
      >>> jnp.union1d(jnp.array([3, 1, 1]), jnp.array([2, 3]))
      Array([1, 2, 3], dtype=int32)
    """
    ar1, ar2 = _both("union1d", ar1, ar2, size)
    return unique(_joined(ar1, ar2), size=size, fill_value=fill_value)


def _boundaries(ordered: Array) -> tuple[Array, Array]:
    """Return masks of the sorted elements that differ from the previous and from the next one."""
    starts = first_of_equals(ordered, False)
    n = typeof(starts).size
    after = slicing.slice_in_dim(starts, min(n, 1), n)
    return starts, slicing.concatenate([after, creation.full((min(n, 1),), True, bool_)], 0)


@operation
def _once(ar1: ArrayLike, ar2: ArrayLike) -> tuple[Array, Array]:
    """Return the sorted elements of two arrays, and a mask of those that occur once."""
    ordered = sorting.sort(_joined.when_traced(ar1, ar2), 0)
    return ordered, elementwise.bitwise_and(*_boundaries(ordered))


@operation
def _twice(ar1: ArrayLike, ar2: ArrayLike) -> tuple[Array, Array, Array, Array]:
    """Sort the elements of two arrays together, to find those that are in both.

    Returns:
      the sorted elements; whether each equals the next one; the index of each in the first array;
      and the index of the next element in the second array.
    """
    dtype = python_scalar_dtype(int)
    ordered, indices = order_along(_joined.when_traced(ar1, ar2), 0, dtype)
    n = typeof(indices).size
    keep = elementwise.bitwise_not(_boundaries(ordered)[1])
    # The last element has no successor, and is never selected.
    following = slicing.concatenate(
        [slicing.slice_in_dim(indices, min(n, 1), n), slicing.slice_in_dim(indices, 0, min(n, 1))],
        0,
    )
    second = elementwise.sub(following, creation.full((n,), typeof(ar1).size, dtype))
    return ordered, keep, indices, second


@operation
def _exclusive(ar1: ArrayLike, ar2: ArrayLike) -> tuple[Array, Array]:
    """Return sorted elements, and a mask of the first of each value that is in one array only.

    All NaNs of an array count as one element, which differs from the NaN of the other array.
    """
    parts = []
    for one, other in ((ar1, ar2), (ar2, ar1)):
        own, _, starts, is_member, _ = _with_membership.when_traced(one, other, False, True)
        parts.append((own, elementwise.bitwise_and(starts, elementwise.bitwise_not(is_member))))
    values = slicing.concatenate([own for own, _ in parts], 0)
    keep = slicing.concatenate([mask for _, mask in parts], 0)
    order = order_along(values, 0, python_scalar_dtype(int))[1]
    return take_rows(values, order, 0), take_rows(keep, order, 0)


@like(np.setxor1d)
def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Return the sorted unique elements that are in exactly one of two arrays.

    Args:
      ar1: an array, of any shape.
      ar2: another array.
      assume_unique: whether neither array repeats an element: both are sorted together, and an
        element that equals its neighbor counts as being in both.
      size: the number of elements to return, which is required where an array is traced.
      fill_value: the value of missing elements; by default the least one.

    Raises:
      ConcretizationTypeError: if an array is traced, and `size` is not passed.

    Example:
      >>> jnp.setxor1d(jnp.array([3, 1, 2]), jnp.array([1, 5]))
      Array([2, 3, 5], dtype=int32)
    """
    ar1, ar2 = _both("setxor1d", ar1, ar2, size)
    ordered, keep = (_once if assume_unique else _exclusive)(ar1, ar2)
    if fill_value is None:
        fill_value = 0 if size is None else _first_selected(keep, ordered)
    return _selected(ar1, keep, [fill_value], [ordered], size)[0]
