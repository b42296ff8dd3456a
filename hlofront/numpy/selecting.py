"""Choosing elements: where, select, nonzero, and by masks."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofront.base.dtypes import array_dtype, default_dtype, issubdtype
from hlofront.base.errors import ConcretizationTypeError
from hlofront.core.aval import typeof
from hlofront.core.dimensions import canonical_axis
from hlofront.core.trace import Tracer, process
from hlofront.numpy import creation
from hlofront.numpy.index_entries import int32
from hlofront.numpy.joining import _in_one_dtype
from hlofront.numpy.like import like
from hlofront.numpy.promotion import (
    broadcast_together,
    check_arraylike,
    choose as choose_by,
    promote_dtypes,
)
from hlofront.numpy.ufuncs import any_operand, refuse_out, scalar_like
from hlofront.primitives import comparing, cumulative, elementwise, shaping, slicing
from hlofront.primitives.comparing import select_n_p
from hlofront.primitives.converting import convert
from hlofront.primitives.creating import full, iota
from hlofront.primitives.gathering import GatherDimensionNumbers, gather
from hlofront.primitives.scattering import ScatterDimensionNumbers, scatter
from hlofront.runtime.operation import operation

_bool = np.dtype(np.bool_)


def on_host(x: Any, advice: str) -> np.ndarray:
    """The values of an array, which decide a shape.

    Raises ConcretizationTypeError if it is traced.
    """
    if isinstance(x, Tracer):
        value = x.to_concrete_value()
        if value is None:
            raise ConcretizationTypeError(x, advice)
        x = value
    return np.asarray(x)


def from_host(x: Any) -> Any:
    """A result that was computed on the host, as an array; indices are of the default dtype."""
    dtype = default_dtype("i") if x.dtype == np.intp else array_dtype(x.dtype)
    return creation.from_host(x.astype(dtype, copy=False))


def truth(x: Any) -> Any:
    """Whether elements are not zero."""
    aval = typeof(x)
    return x if aval.dtype == _bool else comparing.ne(x, scalar_like(aval, 0))


# ---- where -------------------------------------------------------------------------------------


@operation
def _where(condition, x, y):
    check_arraylike("where", condition, x, y)
    condition, x, y = (any_operand("where", operand) for operand in (condition, x, y))
    return choose_by("where", truth(condition), x, y)


_where.__name__ = "where"


@like(np.where)
def where(
    condition: Any, x: Any = None, y: Any = None, /, *, size: Any = None, fill_value: Any = None
) -> Any:
    """Elementwise `x` where the condition holds, else `y`; without them, where it holds.

    Args:
      size: for the form with one argument, how many indices there are in the result, which must be
        given where the condition is traced; see nonzero.
      fill_value: what stands for indices beyond those there are.
    """
    if x is None and y is None:
        return nonzero(_at_least_1d(condition), size=size, fill_value=fill_value)
    if size is not None or fill_value is not None:
        raise ValueError(
            "size and fill_value arguments cannot be used in three-term where function."
        )
    return _where(condition, x, y)


def _at_least_1d(x: Any) -> Any:
    check_arraylike("where", x)
    return x if typeof(x).shape else shaping.reshape(creation.asarray(x), (1,))


@operation
def _select(condlist, choicelist, default):
    check_arraylike("select", *condlist, *choicelist, default)
    cases = promote_dtypes(*choicelist, default)
    result = cases[-1]
    for condition, case in zip(reversed(condlist), reversed(cases[:-1]), strict=True):
        result = choose_by("select", truth(condition), case, result)
    return result


@like(np.select)
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    """Elementwise the choice of the first condition that holds, or the default."""
    if len(condlist) != len(choicelist):
        raise ValueError(
            f"condlist must have length equal to choicelist ({len(condlist)} vs {len(choicelist)})"
        )
    if not len(condlist):
        raise ValueError("condlist must be non-empty")
    return _select(list(condlist), list(choicelist), default)


@like(np.piecewise)
def piecewise(
    x: Any, condlist: Any, funclist: list[Any | Callable[..., Any]], *args: Any, **kw: Any
) -> Any:
    """Elementwise the function of the last condition that holds; all functions are evaluated.

    Functions are called with the whole of `x`, and work elementwise.
    """
    check_arraylike("piecewise", x)
    x = creation.asarray(x)
    if hasattr(condlist, "ndim"):
        conditions = [condlist] if condlist.ndim == x.ndim and x.ndim else list(condlist)
        if condlist.ndim > x.ndim or not x.ndim:
            conditions = list(condlist)
        else:
            conditions = list(condlist)
    else:
        conditions = list(condlist) if isinstance(condlist, list | tuple) else [condlist]
    count = len(conditions)
    functions = list(funclist)
    if len(functions) == count:
        functions.append(0)
    elif len(functions) != count + 1:
        raise ValueError(
            f"with {count} condition(s), either {count} or {count + 1} functions are expected; got "
            f"{len(functions)}"
        )
    dtype = typeof(x).dtype

    def value(function: Any) -> Any:
        result = function(x, *args, **kw) if callable(function) else function
        return convert(creation.asarray(result), dtype, False)

    result = value(functions[-1])
    for condition, function in zip(conditions, functions, strict=False):
        result = _where(condition, value(function), result)
    (result,) = broadcast_together("piecewise", result, x)[:1]
    return result


# ---- nonzero -----------------------------------------------------------------------------------

_SIZE_ADVICE = (
    "The size argument of jnp.{name} must be statically specified to use jnp.{name} within JAX "
    "transformations: jnp.{name}(x, size=n) finds n, and fills up if there are fewer."
)


@operation(static_argnames=("size",))
def _nonzero(a, size, fill_values):
    a = any_operand("nonzero", a)
    shape = typeof(a).shape
    dtype = default_dtype("i")
    count = typeof(a).size
    mask = shaping.reshape(truth(a), (count,))
    places = full((size,), 0, int32)
    found = np.int32(0)
    if count and size:
        # The k-th true element comes to place k; the others are beyond the end, and dropped.
        order = cumulative.cumsum(convert(mask, int32, False), 0)
        found = slicing.index_in_dim(order, count - 1, keepdims=False)
        target = process(
            select_n_p,
            (mask, full((count,), size, int32), elementwise.sub(order, _fill_like(order, 1))),
            {},
        )
        places = scatter(
            places,
            shaping.reshape(target, (count, 1)),
            iota(int32, count),
            ScatterDimensionNumbers((), (0,), (0,)),
            unique_indices=False,
            mode="drop",
        )
    valid = comparing.lt(iota(int32, size), shaping.broadcast_in_dim(found, (size,), ()))
    results = []
    stride = count
    for length, fill_value in zip(shape, fill_values, strict=True):
        stride = stride // length if length else 0
        index = places
        if stride > 1:
            index = elementwise.div(index, _fill_like(index, stride))
        if length:
            index = elementwise.rem(index, _fill_like(index, length))
        filled = shaping.broadcast_in_dim(convert(fill_value, dtype, False), (size,), ())
        results.append(process(select_n_p, (valid, filled, convert(index, dtype, False)), {}))
    return tuple(results)


def _fill_like(x: Any, value: int) -> Any:
    aval = typeof(x)
    return full(aval.shape, value, aval.dtype)


@like(np.nonzero)
def nonzero(a: Any, *, size: Any = None, fill_value: Any = None) -> tuple[Any, ...]:
    """The indices of elements that are not zero, an array for each axis.

    Args:
      size: how many to find, which must be given where `a` is traced, as it is a shape. Of more,
        the first ones; what is missing is filled up.
      fill_value: what stands for indices beyond those there are: a number, or one for each axis; by
        default 0.
    """
    check_arraylike("nonzero", a)
    aval = typeof(a)
    if not aval.shape:
        raise ValueError(
            "Calling nonzero on 0d arrays is not allowed. Use jnp.atleast_1d(scalar).nonzero() "
            "instead."
        )
    if size is None:
        found = (on_host(a, _SIZE_ADVICE.format(name="nonzero")) != 0).nonzero()
        return tuple(map(from_host, found))
    fill_values = fill_value if isinstance(fill_value, tuple) else (fill_value,) * aval.ndim
    if len(fill_values) != aval.ndim:
        raise ValueError(
            f"fill_value of nonzero must be a scalar or have one value for each of {aval.ndim} "
            f"axes, got {len(fill_values)}"
        )
    fill_values = tuple([0 if value is None else value for value in fill_values])
    return _nonzero(a, operator.index(size), fill_values)


@like(np.flatnonzero)
def flatnonzero(a: Any, *, size: Any = None, fill_value: Any = None) -> Any:
    """The indices of elements that are not zero in the array as one row; see nonzero."""
    check_arraylike("flatnonzero", a)
    flat = shaping.reshape(creation.asarray(a), (typeof(a).size,))
    return nonzero(flat, size=size, fill_value=fill_value)[0]


@like(np.argwhere)
def argwhere(a: Any, *, size: Any = None, fill_value: Any = None) -> Any:
    """The indices of elements that are not zero, one row for each; see nonzero."""
    check_arraylike("argwhere", a)
    if not typeof(a).shape:
        found = nonzero(_at_least_1d(a), size=size, fill_value=fill_value)[0]
        return full((typeof(found).size, 0), 0, default_dtype("i"))
    return _as_rows(nonzero(a, size=size, fill_value=fill_value))


@operation
def _as_rows(indices):
    return slicing.stack(list(indices), 1)


# ---- by masks ----------------------------------------------------------------------------------


@operation(static_argnames=("axis", "size"))
def _compress(condition, a, axis, size, fill_value):
    aval = typeof(a)
    dtype = aval.dtype
    taken = min(typeof(condition).shape[0], aval.shape[axis])
    condition = slicing.slice_in_dim(truth(condition), 0, taken)
    (index,) = _nonzero.when_traced(condition, size, (np.int32(taken),))
    valid = comparing.lt(index, _fill_like(index, taken))
    rows = gather(
        a,
        shaping.reshape(convert(index, int32, False), (size, 1)),
        GatherDimensionNumbers(
            tuple([i for i in range(aval.ndim) if i != axis]), (axis,), (axis,)
        ),
        (*aval.shape[:axis], 1, *aval.shape[axis + 1 :]),
        mode="clip",
    )
    shape = typeof(rows).shape
    valid = shaping.broadcast_in_dim(valid, shape, (axis,))
    fill = shaping.broadcast_in_dim(convert(fill_value, dtype, False), shape, ())
    return process(select_n_p, (valid, fill, rows), {})


@like(np.compress)
def compress(
    condition: Any,
    a: Any,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: Any = 0,
    out: None = None,
) -> Any:
    """The parts of an array along an axis for which a condition holds.

    Args:
      size: how many there are, which must be given where the condition is traced; what is missing
        is `fill_value`.
    """
    check_arraylike("compress", condition, a, fill_value)
    refuse_out("compress", out)
    return _compressed("compress", condition, a, axis, size, fill_value)


def _compressed(
    name: str, condition: Any, a: Any, axis: int | None, size: Any, fill_value: Any
) -> Any:
    a = creation.asarray(a)
    if axis is None:
        a, axis = shaping.reshape(a, (typeof(a).size,)), 0
    axis = canonical_axis(axis, typeof(a).ndim)
    if typeof(condition).ndim != 1:
        raise ValueError(f"condition of {name} must be a 1D array, got {typeof(condition)}")
    length = typeof(a).shape[axis]
    if size is None:
        values = on_host(condition, _SIZE_ADVICE.format(name=name)) != 0
        if values[length:].any():
            raise ValueError(
                f"condition contains entries that are out of bounds: it has {len(values)}, and "
                f"axis {axis} has size {length}"
            )
        index: list[Any] = [slice(None)] * axis
        (found,) = values.nonzero()
        return a[(*index, found.astype(np.int32))]
    if not length:
        return full((*a.shape[:axis], size, *a.shape[axis + 1 :]), fill_value, a.dtype)
    return _compress(condition, a, axis, operator.index(size), fill_value)


def _method_compress(
    self: Any,
    condition: Any,
    axis: int | None = None,
    *,
    out: None = None,
    size: int | None = None,
    fill_value: Any = 0,
) -> Any:
    """The parts along an axis for which a condition holds."""
    return compress(condition, self, axis, size=size, fill_value=fill_value, out=out)


@like(np.extract)
def extract(condition: Any, arr: Any, *, size: int | None = None, fill_value: Any = 0) -> Any:
    """The elements of an array for which a condition holds; see compress."""
    check_arraylike("extract", condition, arr, fill_value)
    condition = shaping.reshape(creation.asarray(condition), (typeof(condition).size,))
    return _compressed("extract", condition, arr, None, size, fill_value)


@operation
def _place(arr, mask, vals):
    arr, mask, vals = (any_operand("place", x) for x in (arr, mask, vals))
    aval = typeof(arr)
    if typeof(mask).size != aval.size:
        raise ValueError(
            f"place: arr and mask must be the same size, got shapes {aval.shape} and "
            f"{typeof(mask).shape}"
        )
    count = typeof(vals).size
    if not count:
        raise ValueError("Cannot place values from an empty array")
    if not aval.size:
        return arr
    mask = shaping.reshape(truth(mask), (aval.size,))
    order = cumulative.cumsum(convert(mask, int32, False), 0)
    order = elementwise.rem(
        elementwise.max(elementwise.sub(order, _fill_like(order, 1)), _fill_like(order, 0)),
        _fill_like(order, count),
    )
    chosen = gather(
        shaping.reshape(vals, (count,)),
        shaping.reshape(order, (aval.size, 1)),
        GatherDimensionNumbers((), (0,), (0,)),
        (1,),
        mode="promise_in_bounds",
    )
    flat = shaping.reshape(arr, (aval.size,))
    chosen = convert(chosen, aval.dtype, False)
    return shaping.reshape(process(select_n_p, (mask, flat, chosen), {}), aval.shape)


def refuse_in_place(name: str) -> ValueError:
    return ValueError(
        f"jax.numpy.{name} cannot modify arrays in-place, because JAX arrays are immutable. Pass "
        "inplace=False to instead return an updated array."
    )


@like(np.place)
def place(arr: Any, mask: Any, vals: Any, *, inplace: bool = True) -> Any:
    """An array with values in turn where a mask is true; with `inplace=False`, as it must be."""
    check_arraylike("place", arr, mask, vals)
    if inplace:
        raise refuse_in_place("place")
    return _place(arr, mask, vals)


# ---- choose ------------------------------------------------------------------------------------


@operation(static_argnames=("mode",))
def _choose(a, choices, mode):
    count = len(choices)
    choices = _in_one_dtype("choose", choices, None)
    a = convert(a, int32, False)
    if mode == "wrap":
        a = elementwise.rem(a, np.int32(count))
        moved = elementwise.add(a, np.int32(count))
        a = process(select_n_p, (comparing.lt(a, np.int32(0)), a, moved), {})
    a = elementwise.clamp(np.int32(0), a, np.int32(count - 1))
    a, *choices = broadcast_together("choose", a, *choices)
    result = choices[0]
    for i, choice in enumerate(choices[1:], 1):
        chosen = comparing.eq(a, _fill_like(a, i))
        result = process(select_n_p, (chosen, result, choice), {})
    return result


@like(np.choose)
def choose(a: Any, choices: Any, out: None = None, mode: str = "raise") -> Any:
    """Elementwise the choice whose number is in `a`.

    `mode` is what happens to numbers that no choice has: "wrap", "clip", or "raise", for which `a`
    cannot be traced.
    """
    refuse_out("choose", out)
    choices = list(choices)
    check_arraylike("choose", a, *choices)
    if not issubdtype(typeof(a).dtype, np.integer):
        raise ValueError(f"`a` array must be integer typed, got {typeof(a).dtype}")
    if mode == "raise":
        values = on_host(
            a,
            "The error check of jnp.choose with mode='raise' needs the values of `a`: use "
            "mode='clip' or mode='wrap'.",
        )
        if ((values < 0) | (values >= len(choices))).any():
            raise ValueError(
                f"invalid entry in choice array: there are {len(choices)} choices. mode='clip' or "
                "mode='wrap' take any number."
            )
    elif mode not in ("clip", "wrap"):
        raise ValueError(f"mode={mode!r} not understood. Must be 'raise', 'wrap', or 'clip'")
    return _choose(a, choices, mode)


_method_compress.__name__ = "compress"

ARRAY_METHODS = {"choose": choose, "compress": _method_compress, "nonzero": nonzero}
