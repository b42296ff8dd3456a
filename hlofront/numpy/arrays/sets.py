"""Unique elements of arrays, and membership tests."""

from __future__ import annotations

import operator

import numpy as np

from hlofront.base.dtypes import is_complex, issubdtype, python_scalar_dtype
from hlofront.base.elements import bool_, host_number
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, ArrayLike, Axis
from hlofront.core.aval import typeof
from hlofront.core.compile_time import ensure_compile_time_eval
from hlofront.core.programs.extension import concrete_or_error
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.core.trace import Tracer
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
from hlofront.primitives.arrays import creation, cumulative, reducing, shaping, slicing, sorting
from hlofront.primitives.arrays.scattering import ScatterDimensionNumbers, scatter
from hlofront.primitives.elementwise import compare, elementwise
from hlofront.primitives.elementwise.converting import convert
from hlofront.runtime.dispatch.operation import operation


def flattened(x: ArrayLike) -> Array:
    return shaping.reshape(x, (typeof(x).size,))


def needs_size(name: str) -> str:
    return (
        f"The error arose for an argument of jnp.{name}(). The shape of its result depends on the "
        f"values: to use it within JAX transformations, give the number of elements as "
        f"jnp.{name}(..., size=n)."
    )


# ---- sorted elements ---------------------------------------------------------------------------


def _differs(x: Array, y: Array, equal_nan: bool) -> Array:
    differs = compare.ne(x, y)
    if equal_nan and issubdtype(typeof(x).dtype, np.inexact):
        both = elementwise.bitwise_and(compare.ne(x, x), compare.ne(y, y))
        differs = elementwise.bitwise_and(differs, elementwise.bitwise_not(both))
    return differs


def one_nan(x: ArrayLike) -> ArrayLike:
    """Replace complex numbers that have a NaN part by a single NaN, which sorts last.

    Other numbers are unchanged.
    """
    if not issubdtype(typeof(x).dtype, np.complexfloating):
        return x
    nan = creation.scalar_like(x, complex(np.nan, 0))
    return convert(choose("unique", compare.ne(x, x), nan, x), typeof(x).dtype, False)


def first_of_equals(ordered: Array, equal_nan: bool) -> Array:
    """Return a mask that is true for the first of equal rows, which must be sorted."""
    n, *rest = typeof(ordered).shape
    if not n:
        return creation.full((0,), False, bool_)
    differs = _differs(
        slicing.slice_in_dim(ordered, 1, n), slicing.slice_in_dim(ordered, 0, n - 1), equal_nan
    )
    if rest:
        differs = reducing.reduce_or(differs, tuple(range(1, len(rest) + 1)))
    return slicing.concatenate([creation.full((1,), True, bool_), differs], 0)


def _rows_in_order(rows: Array) -> tuple[Array, Array]:
    """Return rows in lexicographic order, and their original indices."""
    shape = typeof(rows).shape
    dtype = python_scalar_dtype(int)
    indices = creation.iota(dtype, shape[0])
    if len(shape) == 1:
        return order_along(rows, 0, dtype)
    wide = typeof(rows).size // shape[0] if shape[0] else 0
    if not wide:
        return rows, indices
    table = shaping.reshape(rows, (shape[0], wide))
    keys = [
        shaping.reshape(slicing.slice_in_dim(table, i, i + 1, axis=1), (shape[0],))
        for i in range(wide)
    ]
    indices = sorting.sort((*keys, indices), 0, True, wide)[-1]
    return take_rows(rows, indices, 0), indices


@operation(static_argnames=("axis", "equal_nan"))
def _ordered(ar: ArrayLike, axis: Axis, equal_nan: bool) -> tuple[Array, Array, Array, Array]:
    """Sort slices along an axis.

    Returns:
      (the sorted slices, their indices in `ar`, whether each is the first of equal slices, the
      index among the distinct slices of each slice of `ar`).
    """
    ar = one_nan(ar)
    if axis is None:
        rows = flattened(ar)
    else:
        ndim = typeof(ar).ndim
        rows = shaping.transpose(ar, [axis, *[i for i in range(ndim) if i != axis]])
    ordered, indices = _rows_in_order(rows)
    starts = first_of_equals(ordered, equal_nan)
    dtype = typeof(indices).dtype
    n = typeof(indices).size
    if not n:
        inverse = indices if axis is not None else shaping.reshape(indices, typeof(ar).shape)
        return ordered, indices, starts, inverse
    group = elementwise.sub(
        cumulative.cumsum(convert(starts, dtype, False), 0), host_number(1, dtype)
    )
    inverse = scatter(
        creation.full((n,), 0, dtype),
        shaping.reshape(indices, (n, 1)),
        group,
        ScatterDimensionNumbers((), (0,), (0,)),
        unique_indices=True,
    )
    if axis is None:
        inverse = shaping.reshape(inverse, typeof(ar).shape)
    return ordered, indices, starts, inverse


@operation(static_argnames=("axis", "size"))
def _unique_of_size(
    ordered: ArrayLike,
    indices: ArrayLike,
    starts: ArrayLike,
    fill_value: ArrayLike | None,
    axis: Axis,
    size: int,
) -> tuple[Array, Array, Array]:
    """Return `size` unique values, their first indices and their counts."""
    n = typeof(indices).size
    dtype = typeof(indices).dtype
    positions = true_positions(starts, size, n)
    missing = compare.eq(positions, host_number(n, dtype))
    values = take_rows(ordered, positions, 0)
    shape = typeof(values).shape
    if fill_value is None:
        # The first value fills missing ones.
        fill = shaping.broadcast_in_dim(
            slicing.slice_in_dim(ordered, 0, min(n, 1)), shape, tuple(range(len(shape)))
        )
        first = shaping.reshape(slicing.slice_in_dim(indices, 0, 1), ())
    else:
        fill = in_dtype(fill_value, typeof(ordered).dtype)
        first = (
            shaping.reshape(slicing.slice_in_dim(indices, 0, 1), ()) if n else host_number(0, dtype)
        )
    wide = shaping.broadcast_in_dim(missing, shape, (0,))
    values = choose("unique", wide, fill, values)
    first_indices = choose("unique", missing, first, take_rows(indices, positions, 0))
    # A run of equal elements ends where the next starts, which may have been cut off.
    ends = slicing.slice_in_dim(true_positions(starts, size + 1, n), 1, size + 1)
    counts = elementwise.sub(ends, positions)
    if axis is not None:
        order = list(range(1, len(shape)))
        order.insert(axis, 0)
        values = shaping.transpose(values, order)
    return values, first_indices, counts


def _unique(
    name: str,
    ar: ArrayLike,
    axis: int | None,
    equal_nan: bool,
    size: int | None,
    fill_value: ArrayLike | None,
) -> tuple[Array, Array, Array, Array]:
    check_arraylike(name, ar)
    ar = as_operand(ar)
    aval = typeof(ar)
    if axis is not None:
        axis = canonical_axis(axis, aval.ndim)
    if size is None and isinstance(ar, Tracer):
        # Derivatives are those of the values that are selected.
        known = host_value(ar, needs_size(name))
        with ensure_compile_time_eval():
            size = int(np.asarray(_ordered(known, axis, equal_nan)[2]).sum())
    if size is None:
        weak = aval.weak_type and not is_complex(aval.dtype)
        with ensure_compile_time_eval():
            ordered, indices, starts, inverse = map(np.asarray, _ordered(ar, axis, equal_nan))
        (first,) = starts.nonzero()
        values = ordered[first]
        if axis is not None:
            values = np.moveaxis(values, 0, axis)
        counts = np.diff(np.append(first, len(starts))).astype(indices.dtype)
        values = put_beside(values, ar, weak)
        rest = [put_beside(x, ar) for x in (indices[first], inverse, counts)]
        return values, *rest
    size = concrete_or_error(operator.index, size, "It is the size of jnp.unique.")
    n = aval.size if axis is None else aval.shape[axis]
    if not n and size and fill_value is None:
        raise ValueError(
            f"jnp.{name}: for zero-sized input with nonzero size argument, fill_value must be "
            "specified"
        )
    ordered, indices, starts, inverse = _ordered(ar, axis, equal_nan)
    values, first_indices, counts = _unique_of_size(
        ordered, indices, starts, fill_value, axis, size
    )
    return values, first_indices, inverse, counts


# ---- unique ------------------------------------------------------------------------------------


@like(np.unique)
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Array | tuple[Array, ...]:
    """Return the unique elements in ascending order, or the unique slices along an axis.

    Args:
      ar: an array.
      return_index: whether to also return the index of the first occurrence of each.
      return_inverse: whether to return each element's index among the unique ones, in the array's
        shape.
      return_counts: whether to return the number of occurrences of each.
      axis: the axis along which slices are compared; by default, elements are compared.
      equal_nan: whether NaN equals NaN.
      size: the number of elements to return, required where `ar` is traced. Further ones are cut
        off.
      fill_value: the value of missing elements; by default the least one.
      sorted: whether they must be in order; they always are.

    Raises:
      ConcretizationTypeError: if the array is traced, and `size` is not passed.
      ValueError: if it is empty, and `size` is passed without `fill_value`.

    Example:
      >>> jnp.unique(jnp.array([3, 1, 3]))
      Array([1, 3], dtype=int32)
    """
    values, *indices_and_counts = _unique("unique", ar, axis, equal_nan, size, fill_value)
    flags = (return_index, return_inverse, return_counts)
    if not any(flags):
        return values
    return (
        values,
        *[x for x, requested in zip(indices_and_counts, flags, strict=True) if requested],
    )


class _UniqueAllResult(NamedTuple):
    """The result of unique_all: values, indices, inverse and counts."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class _UniqueCountsResult(NamedTuple):
    """The result of unique_counts: values and counts."""

    values: Array
    counts: Array


class _UniqueInverseResult(NamedTuple):
    """The result of unique_inverse: values and inverse."""

    values: Array
    inverse_indices: Array


@like(np.unique_all)
def unique_all(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> _UniqueAllResult:
    """Return the unique elements, the index of the first of each, the inverse, and the counts.

    Each NaN counts as an element of its own.

    Args:
      x: an array, which is flattened.
      size: the number of unique elements to return, which is required where `x` is traced. Further
        ones are cut off; missing ones are `fill_value`.
      fill_value: the value of missing elements, by default the least element.

    Returns:
      Arrays of shapes (unique,), (unique,), x.shape and (unique,).

    Example:
      >>> jnp.unique_all(jnp.array([5, 4, 5])).inverse_indices
      Array([1, 0, 1], dtype=int32)
    """
    return _UniqueAllResult(*_unique("unique_all", x, None, False, size, fill_value))


@like(np.unique_counts)
def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> _UniqueCountsResult:
    """Return the unique elements, ascending, and their counts. Each NaN counts as distinct.

    Args:
      x: an array, which is flattened.
      size: the number of unique elements to return, which is required where `x` is traced. Further
        ones are cut off; missing ones are `fill_value`.
      fill_value: the value of missing elements, by default the least element.

    Example:
      >>> values, counts = jnp.unique_counts(jnp.array([5, 4, 5]))
      >>> values, counts
      (Array([4, 5], dtype=int32), Array([1, 2], dtype=int32))
    """
    values, _, _, counts = _unique("unique_counts", x, None, False, size, fill_value)
    return _UniqueCountsResult(values, counts)


@like(np.unique_inverse)
def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> _UniqueInverseResult:
    """Return the unique elements, ascending, and the index of each element of x among them.

    Args:
      x: an array. The indices have its shape.
      size: the number of unique elements to return, which is required where `x` is traced. Further
        ones are cut off; missing ones are `fill_value`.
      fill_value: the value of missing elements, by default the least element.

    Example:
      >>> values, inverse = jnp.unique_inverse(jnp.array([5, 4, 5]))
      >>> values[inverse]
      Array([5, 4, 5], dtype=int32)
    """
    values, _, inverse, _ = _unique("unique_inverse", x, None, False, size, fill_value)
    return _UniqueInverseResult(values, inverse)


@like(np.unique_values)
def unique_values(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Return the unique elements of an array, ascending, as a vector. Each NaN counts as distinct.

    Args:
      x: an array, which is flattened.
      size: the number of unique elements to return, which is required where `x` is traced. Further
        ones are cut off; missing ones are `fill_value`.
      fill_value: the value of missing elements, by default the least element.

    Example:
      >>> jnp.unique_values(jnp.array([5, 4, 5]))
      Array([4, 5], dtype=int32)
    """
    return _unique("unique_values", x, None, False, size, fill_value)[0]


# ---- membership --------------------------------------------------------------------------------

_METHODS = ("compare_all", "binary_search", "sort", "auto")
# Up to this many elements are compared directly instead of by bisection.
_FEW = 128


def _member(element: ArrayLike, ordered: Array) -> Array:
    """Return whether each element is in a sorted vector."""
    size = typeof(ordered).size
    if not size:
        return creation.full(typeof(element).shape, False, bool_)
    dtype = python_scalar_dtype(int)
    return compare.eq(element_at(ordered, by_bisection(ordered, element, False, dtype)), element)


def _equals_any(element: ArrayLike, test: Array) -> Array:
    """Return whether each element equals any element of a vector, by comparing all pairs."""
    shape = typeof(element).shape
    wide = (*shape, typeof(test).size)
    pairs = (
        shaping.broadcast_in_dim(element, wide, tuple(range(len(shape)))),
        shaping.broadcast_in_dim(test, wide, (len(shape),)),
    )
    return reducing.reduce_or(compare.eq(*pairs), (len(shape),))


@operation(static_argnames=("invert", "method"))
def _isin(element: ArrayLike, test_elements: ArrayLike, invert: bool, method: str) -> Array:
    element, test = promote_dtypes(element, test_elements)
    test = flattened(test)
    shape, size = typeof(element).shape, typeof(test).size
    if not size or not typeof(element).size:
        return creation.full(shape, invert, bool_)
    if method == "compare_all" or (method == "auto" and size <= _FEW):
        is_member = _equals_any(element, test)
    else:
        is_member = _member(element, sorting.sort(test, 0))
    return elementwise.bitwise_not(is_member) if invert else is_member


@like(np.isin)
def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Return whether each element of an array is an element of another array. NaN never is.

    Args:
      element: an array.
      test_elements: an array, of any shape.
      assume_unique: has no effect.
      invert: whether to return which elements are not in `test_elements`.
      method: "compare_all" compares with each; "binary_search" and "sort" sort `test_elements`
        first; "auto" chooses by the number of elements.

    Raises:
      ValueError: if there is no such method.

    Example:
      >>> jnp.isin(jnp.array([[1, 2], [3, 4]]), jnp.array([2, 4]))
      Array([[False,  True],
             [False,  True]], dtype=bool)
    """
    check_arraylike("isin", element, test_elements)
    if method not in _METHODS:
        raise ValueError(
            f"method={method!r} is not implemented; options are 'compare_all', 'binary_search', "
            "'sort', and 'auto'"
        )
    return _isin(as_operand(element), as_operand(test_elements), bool(invert), method)
