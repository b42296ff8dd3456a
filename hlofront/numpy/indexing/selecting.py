"""The selection of elements by conditions: where, select, nonzero, compress."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

import numpy as np

from hlofront.base.dtypes import iinfo, issubdtype, python_scalar_dtype
from hlofront.base.elements import bool_, exact_dtype, host_number, int32
from hlofront.base.errors import ConcretizationTypeError
from hlofront.base.typing import Array, ArrayLike
from hlofront.bridge.client import ArrayImpl
from hlofront.core.aval import typeof
from hlofront.core.programs.extension import concrete_or_error
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.core.trace import Tracer, is_eager, process
from hlofront.numpy.arrays.creation import from_host
from hlofront.numpy.arrays.shape import as_array
from hlofront.numpy.elementwise.ufuncs import any_operand, refuse_out
from hlofront.numpy.support import promotion
from hlofront.numpy.support.like import like
from hlofront.numpy.support.promotion import (
    as_operand,
    broadcast_together,
    check_arraylike,
    converted,
    host_scalar,
    promote_dtypes,
)
from hlofront.primitives.arrays import creation, cumulative, shaping, slicing
from hlofront.primitives.arrays.gathering import GatherDimensionNumbers, gather
from hlofront.primitives.arrays.scattering import ScatterDimensionNumbers, scatter
from hlofront.primitives.elementwise import compare, elementwise
from hlofront.primitives.elementwise.compare import select_n_p
from hlofront.primitives.elementwise.converting import convert
from hlofront.runtime.array.transfer import device_put
from hlofront.runtime.dispatch.operation import operation
from hlofront.transforms.flatten import check_hashable

# ---- helpers for results with data-dependent shapes -------------------------------------------


def host_value(x: object, context: str) -> np.ndarray:
    """Return the value of an array as a NumPy array.

    Raises ConcretizationTypeError, with the context, if it is traced.
    """
    if isinstance(x, Tracer):
        x = x._concrete_or_raise(ConcretizationTypeError, context)
    return np.asarray(x)


def put_beside(values: np.ndarray, array: ArrayLike, weak: bool = False) -> Array:
    """Return host values as an array, on the device of `array` if that is committed."""
    if weak:
        return convert(put_beside(values, array), values.dtype, True)
    if type(array) is ArrayImpl and is_eager() and array.committed and len(array.devices()) == 1:
        return device_put(exact_dtype(values), next(iter(array.devices())))
    return from_host(exact_dtype(values))


def truth(x: ArrayLike) -> ArrayLike:
    """Return elementwise whether x is not zero, as booleans."""
    dtype = typeof(x).dtype
    return x if dtype == bool_ else compare.ne(x, host_scalar(0, dtype))


def in_dtype(x: ArrayLike, dtype: np.dtype, weak: bool = False) -> ArrayLike:
    """Return an operand in a dtype; host scalars are converted on the host."""
    return converted(x, typeof(x), dtype, weak)


# ---- where -------------------------------------------------------------------------------------


@operation
def _where(condition: ArrayLike, x: ArrayLike, y: ArrayLike) -> Array:
    check_arraylike("where", condition, x, y)
    return promotion.choose("where", truth(condition), x, y)


@like(np.where)
def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Select elements of `x` where the condition is true, and of `y` elsewhere.

    With only the condition, return the indices of its true elements; `nonzero` explains `size` and
    `fill_value`.

    Raises:
      TypeError: if only one of `x` and `y` is passed.
      ValueError: if the shapes do not broadcast.

    Example:
      >>> jnp.where(jnp.array([True, False, True]), jnp.array([1, 2, 3]), 0)
      Array([1, 0, 3], dtype=int32)
    """
    if x is None and y is None:
        if condition is None:
            check_arraylike("where", condition)
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        check_arraylike("where", condition, x, y)
    if size is not None or fill_value is not None:
        raise ValueError(
            "size and fill_value arguments cannot be used in three-term where function: its result "
            "has the shape that its operands broadcast to."
        )
    return _where(condition, x, y)


@operation
def _select(conditions: list[ArrayLike], choices: list[ArrayLike], default: ArrayLike) -> Array:
    check_arraylike("select", *conditions, *choices, default)
    *choices, result = promote_dtypes(*choices, default)
    count = len(choices)
    arrays = broadcast_together("select", *map(truth, conditions), *choices, result)
    result = arrays[-1]
    # The first true condition wins, so it is applied last.
    for i in reversed(range(count)):
        result = process(select_n_p, (arrays[i], result, arrays[count + i]), {})
    return result


@like(np.select)
def select(
    condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0
) -> Array:
    """Select elements from the choice whose condition is the first to be true, or the default.

    Raises:
      ValueError: if there are not as many choices as conditions, or no conditions.

    Example:
      >>> x = jnp.arange(5)
      >>> jnp.select([x < 2, x < 4], [x, 10 * x], default=-1)
      Array([ 0,  1, 20, 30, -1], dtype=int32)
    """
    if len(condlist) != len(choicelist):
        raise ValueError(
            f"condlist must have length equal to choicelist ({len(condlist)} vs {len(choicelist)})"
        )
    if not len(condlist):
        raise ValueError("condlist must be non-empty: select got no conditions")
    return _select(list(condlist), list(choicelist), default)


@like(np.piecewise)
def piecewise(
    x: ArrayLike,
    condlist: ArrayLike | Sequence[ArrayLike],
    funclist: Sequence[ArrayLike | Callable[..., ArrayLike]],
    *args: object,
    **kw: object,
) -> Array:
    """Apply to each element the function whose condition is the last to be true for it.

    Args:
      x: an array.
      condlist: boolean arrays of the shape of `x`, or one array with them along its first axis.
      funclist: as many functions or scalars, and optionally one more for elements where no
        condition is true; by default 0. Functions are called with all of `x`, and must be
        elementwise.
      *args: more arguments of the functions.
      **kw: keyword arguments of the functions.

    Raises:
      ValueError: if there are not as many functions as conditions, or one more.

    Example:
      >>> x = jnp.array([-2, 3])
      >>> jnp.piecewise(x, [x < 0], [lambda x: -x, lambda x: 10 * x])
      Array([ 2, 30], dtype=int32)
    """
    check_arraylike("piecewise", x)
    conditions = [condlist] if np.isscalar(condlist) else list(condlist)
    count = len(conditions)
    if len(funclist) not in (count, count + 1):
        raise ValueError(
            f"with {count} condition(s), either {count} or {count + 1} functions are expected; got "
            f"{len(funclist)}"
        )

    check_arraylike("piecewise", *conditions)
    cases = [*funclist, *[0] * (count + 1 - len(funclist))]
    functions = tuple([case if callable(case) else None for case in cases])
    constants = [None if callable(case) else case for case in cases]
    check_hashable(*functions)
    return _piecewise(x, conditions, constants, list(args), kw, functions)


@operation(static_argnames=("functions",))
def _piecewise(
    x: ArrayLike,
    conditions: list[ArrayLike],
    constants: list[ArrayLike | None],
    args: Sequence[object],
    keywords: dict[str, object],
    functions: tuple[Callable[..., Array] | None, ...],
) -> Array:
    """Apply functions or constants by condition; the last applies where no condition is true."""
    x = as_operand(x)
    aval = typeof(x)
    values = [
        in_dtype(constant if function is None else function(x, *args, **keywords), aval.dtype)
        for function, constant in zip(functions, constants, strict=True)
    ]
    result = values[-1]
    for condition, value in zip(conditions, values, strict=False):
        result = _where(condition, value, result)
    if typeof(result).shape != aval.shape:
        (result, _) = broadcast_together("piecewise", result, x)
    return as_array(result)


# ---- nonzero -----------------------------------------------------------------------------------

_WITHOUT_SIZE = (
    "The size argument of jnp.nonzero must be statically specified to use jnp.nonzero within JAX "
    "transformations: jnp.nonzero(x, size=n, fill_value=...), with n at least the number of true "
    "elements."
)


def true_positions(mask: Array, size: int, fill: ArrayLike) -> Array:
    """Return the first `size` positions of true elements in a mask (n,), padded with `fill`.

    Each position is scattered to the index that is the number of true elements before it.
    """
    (n,) = typeof(mask).shape
    dtype = python_scalar_dtype(int)
    positions = creation.full((size,), fill, dtype)
    if not n or not size:
        return positions
    counts = cumulative.cumsum(convert(mask, dtype, False), 0)
    # False elements get an out-of-bounds index, which the scatter drops.
    target = promotion.choose(
        "nonzero", mask, elementwise.sub(counts, host_number(1, dtype)), host_number(size, dtype)
    )
    return scatter(
        positions,
        shaping.reshape(target, (n, 1)),
        creation.iota(dtype, n),
        ScatterDimensionNumbers((), (0,), (0,)),
        mode="drop",
    )


def _unravelled(flat: Array, shape: tuple[int, ...]) -> list[Array]:
    """Convert nonnegative flat positions to indices along each axis."""
    dtype = typeof(flat).dtype
    indices: list[Array] = []
    for size in shape[:0:-1]:
        divisor = host_number(max(size, 1), dtype)
        indices.append(elementwise.rem(flat, divisor))
        flat = elementwise.div(flat, divisor)
    return [flat, *indices[::-1]]


@operation(static_argnames=("size",))
def _nonzero(a: ArrayLike, size: int, fill_values: tuple[ArrayLike, ...]) -> tuple[Array, ...]:
    shape = typeof(a).shape
    count = typeof(a).size
    flat = true_positions(shaping.reshape(truth(a), (count,)), size, count)
    dtype = typeof(flat).dtype
    empty = compare.eq(flat, host_number(count, dtype))
    return tuple(
        [
            promotion.choose("nonzero", empty, in_dtype(fill, dtype), index)
            for fill, index in zip(fill_values, _unravelled(flat, shape), strict=True)
        ]
    )


@like(np.nonzero)
def nonzero(
    a: ArrayLike,
    *,
    size: int | None = None,
    fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
) -> tuple[Array, ...]:
    """Return the indices of nonzero elements: an array for each axis.

    Args:
      a: an array of one axis or more.
      size: the number of indices to return, which is required where `a` is traced. Further indices
        are cut off; missing ones are `fill_value`.
      fill_value: a scalar, or a tuple with one for each axis; 0 by default.

    Raises:
      ValueError: if the array has no axes.
      ConcretizationTypeError: if it is traced, and `size` is not passed.

    Example:
      >>> jax.jit(lambda x: jnp.nonzero(x, size=3, fill_value=-1))(jnp.array([0, 3, 0, 4]))
      (Array([ 1,  3, -1], dtype=int32),)
    """
    check_arraylike("nonzero", a)
    a = as_operand(a)
    ndim = typeof(a).ndim
    if not ndim:
        raise ValueError(
            "Calling nonzero on 0d arrays is not allowed. Use jnp.atleast_1d(scalar).nonzero() "
            "instead."
        )
    if size is None:
        indices = host_value(a, _WITHOUT_SIZE).nonzero()
        dtype = python_scalar_dtype(int)
        return tuple([put_beside(index.astype(dtype), a) for index in indices])
    if fill_value is None:
        fill_values: tuple[ArrayLike, ...] = (0,) * ndim
    elif isinstance(fill_value, tuple):
        if len(fill_value) != ndim:
            raise ValueError(
                f"fill_value of jnp.nonzero must have one scalar for each of {ndim} axes, got "
                f"{fill_value}"
            )
        fill_values = fill_value
    else:
        fill_values = (fill_value,) * ndim
    size = concrete_or_error(operator.index, size, "It is the size of jnp.nonzero.")
    return _nonzero(a, size, fill_values)


@like(np.flatnonzero)
def flatnonzero(
    a: ArrayLike,
    *,
    size: int | None = None,
    fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
) -> Array:
    """Return the positions of nonzero elements in the flattened array, as a vector of integers.

    `size` is the number of positions to return, which is required where `a` is traced: more are cut
    off, and missing ones are `fill_value`. Without it a traced array raises an error.

    Example:
      >>> jnp.flatnonzero(jnp.array([[0, 7], [8, 0]]), size=3, fill_value=-1)
      Array([ 1,  2, -1], dtype=int32)
    """
    check_arraylike("flatnonzero", a)
    return nonzero(_flat(a), size=size, fill_value=fill_value)[0]


@operation
def _flat(a: ArrayLike) -> Array:
    a = any_operand("ravel", a)
    return shaping.reshape(a, (typeof(a).size,))


@operation
def _columns(indices: list[Array]) -> Array:
    return slicing.stack(indices, 1)


@like(np.argwhere)
def argwhere(
    a: ArrayLike,
    *,
    size: int | None = None,
    fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
) -> Array:
    """Return the indices of nonzero elements, as integers of shape (count, a.ndim): a row for each.

    An array without axes has no columns, and a row if it is not zero. `size` is the number of rows
    to return, which is required where `a` is traced: more are cut off, and missing ones are
    `fill_value`. Without it a traced array raises an error.

    Example:
      >>> jnp.argwhere(jnp.array([[0, 7], [8, 0]]))
      Array([[0, 1],
             [1, 0]], dtype=int32)
    """
    check_arraylike("argwhere", a)
    if typeof(a).ndim:
        return _columns(list(nonzero(a, size=size, fill_value=fill_value)))
    (indices,) = nonzero(_flat(a), size=size, fill_value=fill_value)
    return from_host(np.zeros((typeof(indices).shape[0], 0), python_scalar_dtype(int)))


# ---- compress ----------------------------------------------------------------------------------


@operation(static_argnames=("axis", "size"))
def _compressed(
    condition: ArrayLike, a: ArrayLike, fill_value: ArrayLike, axis: int, size: int
) -> Array:
    """Return the first `size` slices along an axis where a condition is true, then fill values."""
    n = typeof(a).shape[axis]
    positions = true_positions(condition, size, n)
    rows = take_rows(a, positions, axis)
    dims = (axis,)
    missing = compare.eq(positions, host_number(n, typeof(positions).dtype))
    missing = shaping.broadcast_in_dim(missing, typeof(rows).shape, dims)
    return promotion.choose("compress", missing, in_dtype(fill_value, typeof(a).dtype), rows)


def take_rows(a: ArrayLike, positions: ArrayLike, axis: int) -> Array:
    """Take slices along an axis at nonnegative positions, clamped to the axis."""
    shape = typeof(a).shape
    (count,) = typeof(positions).shape
    if not shape[axis] or not count:
        new_shape = (*shape[:axis], count, *shape[axis + 1 :])
        return creation.full_like(a, 0, shape=new_shape)
    return gather(
        a,
        shaping.reshape(positions, (count, 1)),
        GatherDimensionNumbers(
            tuple([i for i in range(len(shape)) if i != axis]), (axis,), (axis,)
        ),
        (*shape[:axis], 1, *shape[axis + 1 :]),
        mode="clip",
    )


_rows_at = operation(take_rows, static_argnames=("axis",))


@like(np.compress)
def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> Array:
    """Return slices along an axis, or elements of the flattened array, where a condition is true.

    Args:
      condition: an array of one axis. Elements beyond its end are not selected.
      a: an array.
      axis: the axis to select along.
      size: the number of slices to return, which is required where the condition is traced.
      fill_value: the value of missing elements.
      out: must be None.

    Raises:
      ValueError: if the condition does not have one axis, is true beyond the end of `a`, or the
        size is greater than that of the axis.
      ConcretizationTypeError: if the condition is traced, and `size` is not passed.

    Example:
      >>> jnp.compress(jnp.array([True, False, True]), jnp.array([[1, 2, 3], [4, 5, 6]]), axis=1)
      Array([[1, 3],
             [4, 6]], dtype=int32)
    """
    check_arraylike("compress", condition, a, fill_value)
    refuse_out("compress", out)
    condition, a = as_operand(condition), as_operand(a)
    condition_aval = typeof(condition)
    if condition_aval.ndim != 1:
        raise ValueError(f"condition must be a 1D array, got shape {condition_aval.shape}")
    if axis is None:
        a, axis = _flat(a), 0
    axis = canonical_axis(axis, typeof(a).ndim)
    n = typeof(a).shape[axis]
    if size is None:
        (indices,) = host_value(condition, _WITHOUT_SIZE.replace("nonzero", "compress")).nonzero()
        if indices.size and indices[-1] >= n:
            raise ValueError(
                f"condition contains entries that are out of bounds: element {indices[-1]} is "
                f"true, and axis {axis} has size {n}"
            )
        return _rows_at(a, indices.astype(python_scalar_dtype(int)), axis)
    if not 0 <= size <= n:
        raise ValueError(
            "size must not be negative, and not greater than the size of the array axis; got "
            f"size={size} for a.shape[axis]={n}"
        )
    mask = _fitted(condition, n)
    return _compressed(mask, a, fill_value, axis, operator.index(size))


@operation(static_argnames=("n",))
def _fitted(condition: ArrayLike, n: int) -> Array:
    """Return a condition as a mask (n,), cut off or padded with False."""
    mask = truth(condition)
    return slicing.pad(mask, np.False_, ((0, n - typeof(mask).shape[0], 0),))


@like(np.extract)
def extract(
    condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0
) -> Array:
    """Return the elements where a condition is true, as a vector.

    `condition` and `arr` are flattened. `size` is the number of elements to return, which is
    required where the condition is traced: more are cut off, and missing ones are `fill_value`.

    Raises:
      ConcretizationTypeError: if the condition is traced, and `size` is not passed.
      ValueError: if `size` is negative, or greater than the number of elements.

    Example:
      >>> x = jnp.array([[1, 2], [3, 4]])
      >>> jnp.extract(x > 1, x)
      Array([2, 3, 4], dtype=int32)
    """
    check_arraylike("extract", condition, arr, fill_value)
    return compress(_flat(condition), _flat(arr), size=size, fill_value=fill_value)


# ---- integers in bounds -------------------------------------------------------------------------


def clamped(x: ArrayLike, low: int, high: int) -> Array:
    """Clamp integers to bounds, as far as their dtype can represent the bounds."""
    dtype = typeof(x).dtype
    info = iinfo(dtype)
    if low > info.min:
        x = elementwise.max(x, host_number(low, dtype))
    if high < info.max:
        x = elementwise.min(x, host_number(high, dtype))
    return x


def euclidean_remainder(x: ArrayLike, size: int) -> Array:
    """Return integers modulo a positive size; the result is never negative."""
    dtype = typeof(x).dtype
    unsigned = issubdtype(dtype, np.unsignedinteger)
    if size > iinfo(dtype).max:
        if unsigned:
            return x
        x, dtype = convert(x, int32, False), int32
    remainder = elementwise.rem(x, host_number(size, dtype))
    if unsigned:
        return remainder
    negative = compare.lt(remainder, host_number(0, dtype))
    return promotion.choose(
        "remainder", negative, elementwise.add(remainder, host_number(size, dtype)), remainder
    )


def _method_compress(
    self: Array,
    condition: ArrayLike,
    axis: int | None = None,
    *,
    out: None = None,
    size: int | None = None,
    fill_value: ArrayLike = 0,
) -> Array:
    """Return the slices of the array along an axis where a condition is true."""
    return compress(condition, self, axis, size=size, fill_value=fill_value, out=out)


_method_compress.__name__ = "compress"

ARRAY_METHODS: dict[str, Callable[..., object]] = {
    "nonzero": nonzero,
    "compress": _method_compress,
}
