"""Sets: the different elements of arrays, and which two arrays share."""

import operator
from typing import Any, NamedTuple

import numpy as np

from hlofront.base.dtypes import default_dtype, issubdtype
from hlofront.core.aval import typeof
from hlofront.core.dimensions import canonical_axis
from hlofront.core.trace import process
from hlofront.numpy import creation
from hlofront.numpy.index_entries import int32
from hlofront.numpy.inserting import _taken as taken
from hlofront.numpy.like import like
from hlofront.numpy.promotion import check_arraylike, promote_dtypes
from hlofront.numpy.selecting import _nonzero, from_host, on_host
from hlofront.numpy.sorting import before
from hlofront.numpy.ufuncs import any_operand
from hlofront.primitives import comparing, cumulative, elementwise, reducing, shaping, slicing
from hlofront.primitives import sorting as lax
from hlofront.primitives.comparing import select_n_p
from hlofront.primitives.converting import convert
from hlofront.primitives.creating import full, full_like, iota
from hlofront.primitives.scattering import ScatterDimensionNumbers, scatter, scatter_add
from hlofront.runtime.operation import operation

_ADVICE = (
    "The size argument of jnp.{name} must be statically specified to use jnp.{name} within JAX "
    "transformations: with size=n it finds the first n, and fills up if there are fewer."
)


class _UniqueAllResult(NamedTuple):
    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class _UniqueCountsResult(NamedTuple):
    values: Any
    counts: Any


class _UniqueInverseResult(NamedTuple):
    values: Any
    inverse_indices: Any


# ---- unique ------------------------------------------------------------------------------------


def _differ(x: Any, y: Any, equal_nan: bool) -> Any:
    different = comparing.ne(x, y)
    if equal_nan and issubdtype(typeof(x).dtype, np.inexact):
        both_nan = elementwise.bitwise_and(comparing.ne(x, x), comparing.ne(y, y))
        different = elementwise.bitwise_and(different, elementwise.bitwise_not(both_nan))
    return different


@operation(static_argnames=("axis", "equal_nan", "size"))
def _unique(ar, axis, equal_nan, size, fill_value):
    """Values, first indices, inverse and counts, of `size` different parts along an axis."""
    shape = typeof(ar).shape
    count = shape[axis]
    index_dtype = default_dtype("i")
    rest = shape[:axis] + shape[axis + 1 :]
    rows = shaping.transpose(ar, (axis, *[i for i in range(len(shape)) if i != axis]))
    width = int(np.prod(rest, dtype=np.int64))
    rows = shaping.reshape(rows, (count, width))
    if not count:
        values = full((*shape[:axis], size, *shape[axis + 1 :]), 0, typeof(ar).dtype)
        empty = full((size,), 0, index_dtype)
        return values, empty, full((0,), 0, index_dtype), empty
    keys = [slicing.index_in_dim(rows, i, 1, keepdims=False) for i in range(width)]
    *keys, order = lax.sort((*keys, iota(int32, count)), 0, num_keys=max(width, 1))
    first = full((1,), True)
    new = first
    if count > 1:
        changes = full((count - 1,), False)
        for key in keys:
            later = slicing.slice_in_dim(key, 1, count)
            earlier = slicing.slice_in_dim(key, 0, count - 1)
            changes = elementwise.bitwise_or(changes, _differ(later, earlier, equal_nan))
        new = slicing.concatenate([first, changes], 0)
    groups = elementwise.sub(
        cumulative.cumsum(convert(new, int32, False), 0), full((count,), 1, int32)
    )
    inverse = scatter(
        full((count,), 0, int32),
        shaping.reshape(order, (count, 1)),
        groups,
        ScatterDimensionNumbers((), (0,), (0,)),
        unique_indices=True,
        mode="promise_in_bounds",
    )
    (starts,) = _nonzero.when_traced(new, size, (np.int32(count),))
    starts = convert(starts, int32, False)
    valid = comparing.lt(starts, full_like(starts, count))
    safe = elementwise.min(starts, full_like(starts, count - 1))
    indices = taken(order, safe, 0)
    if size:
        fallback = slicing.slice_in_dim(indices, 0, 1)
        indices = process(
            select_n_p,
            (valid, shaping.broadcast_in_dim(fallback, (size,), (0,)), indices),
            {},
        )
    counts = scatter_add(
        full((size,), 0, int32),
        shaping.reshape(groups, (count, 1)),
        full((count,), 1, int32),
        ScatterDimensionNumbers((), (0,), (0,)),
        indices_are_sorted=True,
        mode="drop",
    )
    values = taken(ar, indices, axis)
    if fill_value is not None:
        filled = shaping.broadcast_in_dim(
            convert(fill_value, typeof(ar).dtype, False), typeof(values).shape, ()
        )
        mask = shaping.broadcast_in_dim(valid, typeof(values).shape, (axis,))
        values = process(select_n_p, (mask, filled, values), {})
    return tuple([values, *[convert(x, index_dtype, False) for x in (indices, inverse, counts)]])


@like(np.unique)
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: Any = None,
    sorted: bool = True,
) -> Any:
    """The different elements of an array, sorted; or the different parts along an axis.

    Args:
      return_index: also where each is found first.
      return_inverse: also which of them each element is.
      return_counts: also how often each is there.
      size: how many to find, which must be given where `ar` is traced, as it is a shape.
      fill_value: what stands for those that are missing; by default the first.
    """
    check_arraylike("unique", ar)
    if size is None:
        values = on_host(ar, _ADVICE.format(name="unique"))
        found = np.unique(
            values, return_index, return_inverse, return_counts, axis, equal_nan=equal_nan
        )
        if isinstance(found, tuple):
            return tuple(map(from_host, found))
        return from_host(found)
    ar = creation.asarray(ar)
    shape = typeof(ar).shape
    if axis is None:
        flat = shaping.reshape(ar, (typeof(ar).size,))
        found = _unique(flat, 0, equal_nan, operator.index(size), fill_value)
    else:
        axis = canonical_axis(axis, len(shape))
        found = _unique(ar, axis, equal_nan, operator.index(size), fill_value)
    values, indices, inverse, counts = found
    if axis is None:
        inverse = shaping.reshape(inverse, shape)
    results = [values]
    for wanted, result in (
        (return_index, indices),
        (return_inverse, inverse),
        (return_counts, counts),
    ):
        if wanted:
            results.append(result)
    return tuple(results) if len(results) > 1 else values


@like(np.unique_all)
def unique_all(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The different elements, where each is first, which each element is, and how many; NaN differ."""
    check_arraylike("unique_all", x)
    return _UniqueAllResult(
        *unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value)
    )


@like(np.unique_counts)
def unique_counts(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The different elements and how often each is there; every NaN is different."""
    check_arraylike("unique_counts", x)
    return _UniqueCountsResult(
        *unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value)
    )


@like(np.unique_inverse)
def unique_inverse(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The different elements and which of them each element is; every NaN is different."""
    check_arraylike("unique_inverse", x)
    return _UniqueInverseResult(
        *unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value)
    )


@like(np.unique_values)
def unique_values(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The different elements, sorted; every NaN is different."""
    check_arraylike("unique_values", x)
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


# ---- of two arrays -----------------------------------------------------------------------------


def _two(name: str, ar1: Any, ar2: Any) -> list[Any]:
    check_arraylike(name, ar1, ar2)
    ar1, ar2 = _promoted(creation.asarray(ar1), creation.asarray(ar2))
    return [shaping.reshape(x, (typeof(x).size,)) for x in (ar1, ar2)]


@operation
def _promoted(x, y):
    return promote_dtypes(x, y)


def _host(name: str, *arrays: Any) -> list[np.ndarray]:
    return [on_host(x, _ADVICE.format(name=name)) for x in arrays]


@operation(static_argnames=("size",))
def _first_where(values, mask, size, fill_value):
    """Of values those for which a mask holds, `size` of them, filled up with a value."""
    count = typeof(values).size
    (places,) = _nonzero.when_traced(mask, size, (np.int32(count),))
    valid = comparing.lt(places, full_like(places, count))
    found = taken(values, elementwise.min(places, full_like(places, max(count - 1, 0))), 0)
    fill = convert(fill_value, typeof(values).dtype, False)
    return process(select_n_p, (valid, full((size,), fill), found), {})


@like(np.union1d)
def union1d(ar1: Any, ar2: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The elements of either array, sorted and different; for `size` and `fill_value` see unique."""
    ar1, ar2 = _two("union1d", ar1, ar2)
    if size is None:
        return from_host(np.union1d(*_host("union1d", ar1, ar2)))
    return unique(slicing.concatenate([ar1, ar2], 0), size=size, fill_value=fill_value)


@operation(static_argnames=("unique_already", "size"))
def _setdiff(ar1, ar2, unique_already, size, fill_value):
    count = typeof(ar1).size
    mask = elementwise.bitwise_not(_isin.when_traced(ar1, ar2, "auto"))
    if not unique_already and count:
        ar1, order = lax.sort((ar1, iota(int32, count)), 0, num_keys=1)
        mask = elementwise.bitwise_and(taken(mask, order, 0), _first_of_each(ar1))
    return _first_where.when_traced(ar1, mask, size, fill_value)


def _first_of_each(ordered: Any) -> Any:
    (count,) = typeof(ordered).shape
    first = full((1,), True)
    if count == 1:
        return first
    later = slicing.slice_in_dim(ordered, 1, count)
    earlier = slicing.slice_in_dim(ordered, 0, count - 1)
    return slicing.concatenate([first, _differ(later, earlier, True)], 0)


@like(np.setdiff1d)
def setdiff1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The elements of the first array that are not in the second, sorted and different.

    With `assume_unique` they stay as they are in the first. `size` must be given where arrays are
    traced; what is missing is `fill_value`, by default 0.
    """
    ar1, ar2 = _two("setdiff1d", ar1, ar2)
    if size is None:
        return from_host(np.setdiff1d(*_host("setdiff1d", ar1, ar2), assume_unique))
    fill_value = 0 if fill_value is None else fill_value
    return _setdiff(ar1, ar2, bool(assume_unique), operator.index(size), fill_value)


@operation(static_argnames=("unique_already", "size", "fill"))
def _setxor(ar1, ar2, unique_already, size, fill_value, fill):
    one, other = _distinct(ar1, unique_already), _distinct(ar2, unique_already)
    values = slicing.concatenate([one[0], other[0]], 0)
    real = slicing.concatenate([one[1], other[1]], 0)
    count = typeof(values).size
    if not count:
        return full((size,), convert(fill_value, typeof(values).dtype, False))
    # Repeats within an array come last, and are no neighbours of what is looked at.
    late = convert(elementwise.bitwise_not(real), int32, False)
    late, values = lax.sort((late, values), 0, num_keys=2)
    real = comparing.eq(late, full_like(late, 0))
    new = elementwise.bitwise_or(_first_of_each(values), elementwise.bitwise_not(real))
    if count > 1:
        after = slicing.concatenate(
            [slicing.slice_in_dim(new, 1, count), full((1,), True)], 0
        )
        new = elementwise.bitwise_and(new, after)
    mask = elementwise.bitwise_and(new, real)
    if not fill:
        (place,) = _nonzero.when_traced(mask, 1, (np.int32(0),))
        fill_value = slicing.index_in_dim(taken(values, place, 0), 0, keepdims=False)
    return _first_where.when_traced(values, mask, size, fill_value)


def _distinct(x: Any, unique_already: bool) -> tuple[Any, Any]:
    """An array, sorted, and whether each element is the first of its like."""
    count = typeof(x).size
    if unique_already or not count:
        return x, full((count,), True)
    x = lax.sort(x, 0)
    return x, _first_of_each(x)


@like(np.setxor1d)
def setxor1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The elements of either array that are not in both, sorted and different.

    `size` must be given where arrays are traced; what is missing is `fill_value`, by default the
    first of them.
    """
    ar1, ar2 = _two("setxor1d", ar1, ar2)
    if size is None:
        return from_host(np.setxor1d(*_host("setxor1d", ar1, ar2), assume_unique))
    value = 0 if fill_value is None else fill_value
    return _setxor(
        ar1, ar2, bool(assume_unique), operator.index(size), value, fill_value is not None
    )


@operation(static_argnames=("unique_already", "size"))
def _intersect(ar1, ar2, unique_already, size, fill_value):
    sizes = typeof(ar1).size, typeof(ar2).size
    index_dtype = default_dtype("i")
    if not all(sizes):
        value = convert(fill_value, typeof(ar1).dtype, False)
        return tuple(
            [full((size,), value), *[full((size,), n, index_dtype) for n in sizes]]
        )
    order1 = iota(int32, sizes[0])
    values, order1 = lax.sort((ar1, order1), 0, num_keys=1)
    mask = _isin.when_traced(values, ar2, "auto")
    if not unique_already:
        mask = elementwise.bitwise_and(mask, _first_of_each(values))
    (places,) = _nonzero.when_traced(mask, size, (np.int32(sizes[0]),))
    valid = comparing.lt(places, full_like(places, sizes[0]))
    safe = elementwise.min(places, full_like(places, sizes[0] - 1))
    values = taken(values, safe, 0)
    index1 = taken(order1, safe, 0)
    # The first of its like in the second array is where comparing all of them says so first.
    sorted2, order2 = lax.sort((ar2, iota(int32, sizes[1])), 0, num_keys=1)
    rows = shaping.broadcast_in_dim(sorted2, (size, sizes[1]), (1,))
    sought = shaping.broadcast_in_dim(values, (size, sizes[1]), (0,))
    place2 = reducing.reduce_sum(convert(before(rows, sought, False), int32, False), (1,))
    index2 = taken(order2, elementwise.min(place2, full_like(place2, sizes[1] - 1)), 0)
    results = [
        process(
            select_n_p,
            (valid, full((size,), convert(fill_value, typeof(values).dtype, False)), values),
            {},
        )
    ]
    for index, n in ((index1, sizes[0]), (index2, sizes[1])):
        index = convert(index, index_dtype, False)
        results.append(process(select_n_p, (valid, full((size,), n, index_dtype), index), {}))
    return tuple(results)


@like(np.intersect1d)
def intersect1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The elements that both arrays have, sorted and different; and where, with `return_indices`.

    `size` must be given where arrays are traced; what is missing is `fill_value`, by default the
    first of them, and its indices are the sizes of the arrays.
    """
    ar1, ar2 = _two("intersect1d", ar1, ar2)
    if size is None:
        found = np.intersect1d(*_host("intersect1d", ar1, ar2), assume_unique, return_indices)
        return tuple(map(from_host, found)) if return_indices else from_host(found)
    value = _least(ar1, ar2) if fill_value is None else fill_value
    found = _intersect(ar1, ar2, bool(assume_unique), operator.index(size), value)
    return found if return_indices else found[0]


@operation
def _least(ar1, ar2):
    """The first element that both arrays have."""
    return _intersect.when_traced(ar1, ar2, False, 1, 0)[0][0]


# ---- isin --------------------------------------------------------------------------------------

_ISIN_METHODS = ("compare_all", "binary_search", "sort", "auto")
# With fewer to look among, comparing all of them is quicker than sorting.
_FEW = 64


@operation(static_argnames=("method",))
def _isin(element, test_elements, method):
    element, tests = promote_dtypes(
        any_operand("isin", element), any_operand("isin", test_elements)
    )
    shape = typeof(element).shape
    count, many = typeof(element).size, typeof(tests).size
    if not count or not many:
        return full(shape, False)
    flat = shaping.reshape(element, (count,))
    tests = shaping.reshape(tests, (many,))
    if method == "compare_all" or (method == "auto" and many <= _FEW):
        rows = shaping.broadcast_in_dim(tests, (count, many), (1,))
        equal = comparing.eq(shaping.broadcast_in_dim(flat, (count, many), (0,)), rows)
        return shaping.reshape(reducing.reduce_or(equal, (1,)), shape)
    tests = lax.sort(tests, 0)
    low, high = full((count,), 0, int32), full((count,), many, int32)
    for _ in range(many.bit_length()):
        middle = elementwise.div(elementwise.add(low, high), full_like(low, 2))
        found = taken(tests, elementwise.min(middle, full_like(middle, many - 1)), 0)
        left = elementwise.bitwise_and(before(found, flat, False), comparing.lt(low, high))
        low = process(
            select_n_p, (left, low, elementwise.add(middle, full_like(middle, 1))), {}
        )
        high = process(select_n_p, (left, middle, high), {})
    found = taken(tests, elementwise.min(low, full_like(low, many - 1)), 0)
    return shaping.reshape(comparing.eq(found, flat), shape)


@like(np.isin)
def isin(
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Any:
    """Elementwise whether an array's elements are among others; NaN is among none.

    `method` is "compare_all", "binary_search", "sort", or "auto", which chooses by size.
    """
    check_arraylike("isin", element, test_elements)
    if method not in _ISIN_METHODS:
        raise ValueError(
            f"method={method!r} is not implemented; options are {', '.join(map(repr, _ISIN_METHODS))}"
        )
    found = _isin(element, test_elements, method)
    return elementwise.bitwise_not(found) if invert else found
