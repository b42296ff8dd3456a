"""Elements at computed places: take, put, and along axes."""

import operator
from typing import Any

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.core.aval import typeof
from hlofront.core.dimensions import canonical_axis
from hlofront.core.trace import process
from hlofront.numpy.index_entries import from_start, int32
from hlofront.numpy.like import like
from hlofront.numpy.promotion import check_arraylike
from hlofront.numpy.selecting import refuse_in_place
from hlofront.numpy.ufuncs import any_operand, refuse_out
from hlofront.numpy.updating import static_fill_value
from hlofront.primitives import comparing, elementwise, shaping, slicing
from hlofront.primitives.comparing import select_n_p
from hlofront.primitives.converting import convert
from hlofront.primitives.creating import full, full_like
from hlofront.primitives.gathering import GatherDimensionNumbers, GatherScatterMode, gather
from hlofront.primitives.scattering import ScatterDimensionNumbers, scatter
from hlofront.runtime.operation import operation

_MODE = GatherScatterMode


def _indices(name: str, indices: Any) -> Any:
    dtype = typeof(indices).dtype
    if dtype == np.bool_:
        return convert(indices, int32, False)
    if not issubdtype(dtype, np.integer):
        raise ValueError(f"indices of {name} must have an integer type, got {dtype}")
    return indices


def _wrapped(indices: Any, size: int) -> Any:
    """Indices modulo the size of an axis."""
    indices = convert(indices, int32, False)
    rest = elementwise.rem(indices, full_like(indices, size))
    moved = elementwise.add(rest, full_like(rest, size))
    return process(select_n_p, (comparing.lt(rest, full_like(rest, 0)), rest, moved), {})


# ---- take --------------------------------------------------------------------------------------


@operation(static_argnames=("axis", "mode", "unique", "ordered", "fill_value"))
def _take(a, indices, axis, mode, unique, ordered, fill_value):
    a, indices = any_operand("take", a), _indices("take", any_operand("take", indices))
    if axis is None:
        a, axis = shaping.reshape(a, (typeof(a).size,)), 0
    shape = typeof(a).shape
    axis = canonical_axis(axis, len(shape))
    size = shape[axis]
    at = typeof(indices).shape
    result = (*shape[:axis], *at, *shape[axis + 1 :])
    if not size or 0 in result:
        if not size and 0 not in at:
            raise IndexError("Cannot do a non-empty jnp.take() from an empty axis.")
        return full(result, 0, typeof(a).dtype)
    if mode == "wrap":
        indices, mode = _wrapped(indices, size), _MODE.PROMISE_IN_BOUNDS
    elif mode is not _MODE.CLIP:
        indices = from_start(indices, size)
    window = tuple([i for i in range(len(result)) if not axis <= i < axis + len(at)])
    return gather(
        a,
        shaping.expand_dims(convert(indices, int32, False), (len(at),)),
        GatherDimensionNumbers(window, (axis,), (axis,)),
        (*shape[:axis], 1, *shape[axis + 1 :]),
        unique_indices=unique,
        indices_are_sorted=ordered,
        mode=mode,
        fill_value=fill_value,
    )


_take.__name__ = "take"


def _take_mode(name: str, mode: Any) -> Any:
    if mode is None:
        return _MODE.FILL_OR_DROP
    if mode == "raise":
        # The class that JAX raises.
        raise NotImplementedError(
            f"The 'raise' mode to jnp.{name} is not supported: compiled programs do not raise. Use "
            "'fill', 'clip' or 'wrap'."
        )
    if mode == "wrap":
        return mode
    try:
        return _MODE.from_any(mode)
    except ValueError:
        raise ValueError(
            f"Invalid mode {mode!r} for np.{name}: wanted 'fill', 'clip' or 'wrap'."
        ) from None


@like(np.take)
def take(
    a: Any,
    indices: Any,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Any:
    """The parts of an array along an axis at indices.

    Args:
      mode: what is returned out of bounds: "fill", the default, `fill_value`; "clip" the part at
        the nearest index, where negative ones are 0; "wrap" at the index modulo the size.
      unique_indices, indices_are_sorted: promises, which are not checked.
      fill_value: by default NaN, the least signed or greatest unsigned integer, True.
    """
    refuse_out("take", out)
    if axis is not None:
        axis = operator.index(axis)
    if fill_value is not None:
        fill_value = static_fill_value(fill_value)
    mode = _take_mode("take", mode)
    return _take(a, indices, axis, mode, unique_indices, indices_are_sorted, fill_value)


def _method_take(
    self: Any,
    indices: Any,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Any:
    """The parts of the array along an axis at indices."""
    return take(
        self, indices, axis, out, mode, unique_indices, indices_are_sorted, fill_value
    )


# ---- along an axis -----------------------------------------------------------------------------


def _along(name: str, shape: tuple[int, ...], indices: Any, axis: int, wrap: bool) -> Any:
    """What gather and scatter need, for indices that have the other axes of an array as well.

    Returns the indices, expanded to the shape of the result; the axes of the array that go with
    axes of the indices, and those; and the axes of size 1 that serve every index.
    """
    aval = typeof(indices)
    if not issubdtype(aval.dtype, np.integer):
        raise TypeError(f"{name} indices must be of integer type, got {aval.dtype}")
    if aval.ndim != len(shape):
        raise ValueError(
            f"indices and arr must have the same number of dimensions; {aval.ndim} vs. {len(shape)}"
        )
    if wrap:
        indices = from_start(indices, shape[axis])
    indices = convert(indices, int32, False)
    others = [1 if i == axis else size for i, size in enumerate(shape)]
    result = shaping.broadcast_shapes(aval.shape, tuple(others))
    indices = shaping.broadcast_in_dim(indices, (*result, 1), range(len(shape)))
    batching = tuple(
        [i for i, size in enumerate(shape) if i != axis and (size != 1 or result[i] == 1)]
    )
    return indices, batching, tuple([i for i in range(len(shape)) if i not in batching])


@operation(static_argnames=("axis", "mode", "fill_value", "wrap"))
def _take_along_axis(arr, indices, axis, mode, fill_value, wrap):
    arr, indices = any_operand("take_along_axis", arr), any_operand("take_along_axis", indices)
    if axis is None:
        arr, axis = shaping.reshape(arr, (typeof(arr).size,)), 0
    shape = typeof(arr).shape
    axis = canonical_axis(axis, len(shape))
    indices, batching, collapsed = _along("take_along_axis", shape, indices, axis, wrap)
    result = typeof(indices).shape[:-1]
    if 0 in result:
        return full(result, 0, typeof(arr).dtype)
    return gather(
        arr,
        indices,
        GatherDimensionNumbers((), collapsed, (axis,), batching, batching),
        (1,) * len(shape),
        mode=mode,
        fill_value=fill_value,
    )


_take_along_axis.__name__ = "take_along_axis"


@like(np.take_along_axis)
def take_along_axis(
    arr: Any,
    indices: Any,
    axis: int | None = -1,
    mode: Any = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Any:
    """Elements at indices along an axis, where the indices have all the other axes too.

    Args:
      mode: what is returned out of bounds: "fill", the default, or "clip".
      fill_value: by default NaN, the least signed or greatest unsigned integer, True.
      wrap_negative_indices: whether negative indices count from the end; by default unless
        `mode` is "clip".
    """
    check_arraylike("take_along_axis", arr, indices)
    mode = _MODE.from_any("fill" if mode is None else mode)
    if wrap_negative_indices is None:
        wrap_negative_indices = True
    if fill_value is not None:
        fill_value = static_fill_value(fill_value)
    axis = None if axis is None else operator.index(axis)
    return _take_along_axis(arr, indices, axis, mode, fill_value, bool(wrap_negative_indices))


@operation(static_argnames=("axis", "mode"))
def _put_along_axis(arr, indices, values, axis, mode):
    arr, indices, values = (any_operand("put_along_axis", x) for x in (arr, indices, values))
    before = typeof(arr).shape
    if axis is None:
        arr, axis = shaping.reshape(arr, (typeof(arr).size,)), 0
    shape = typeof(arr).shape
    axis = canonical_axis(axis, len(shape))
    for i, (size, count) in enumerate(zip(shape, typeof(indices).shape, strict=False)):
        if i != axis and count not in (1, size):
            raise ValueError(
                "Incompatible shapes for broadcasting: indices of put_along_axis have shape "
                f"{typeof(indices).shape} and the array {shape}, which must fit but along axis "
                f"{axis}"
            )
    indices, _, _ = _along("put_along_axis", shape, indices, axis, True)
    result = typeof(indices).shape[:-1]
    if 0 in result:
        return shaping.reshape(arr, before)
    batching = tuple([i for i in range(len(shape)) if i != axis])
    values = convert(values, typeof(arr).dtype, False)
    own = typeof(values).shape
    values = shaping.broadcast_in_dim(values, result, range(len(result))[len(result) - len(own) :])
    arr = scatter(
        arr,
        indices,
        values,
        ScatterDimensionNumbers((), (axis,), (axis,), batching, batching),
        mode=mode,
    )
    return shaping.reshape(arr, before)


@like(np.put_along_axis)
def put_along_axis(
    arr: Any,
    indices: Any,
    values: Any,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Any:
    """An array with values at indices along an axis; with `inplace=False`, as it must be.

    What is out of bounds is left out, unless `mode` says otherwise.
    """
    check_arraylike("put_along_axis", arr, indices, values)
    if inplace:
        raise refuse_in_place("put_along_axis")
    axis = None if axis is None else operator.index(axis)
    return _put_along_axis(arr, indices, values, axis, _MODE.from_any(mode))


# ---- put ---------------------------------------------------------------------------------------


@operation(static_argnames=("mode",))
def _put(a, ind, v, mode):
    a, ind, v = any_operand("put", a), _indices("put", any_operand("put", ind)), any_operand("put", v)
    aval = typeof(a)
    count, given = typeof(ind).size, typeof(v).size
    if not count or not aval.size:
        return a
    if not given:
        raise ValueError("put: there are indices, and no values")
    ind = shaping.reshape(ind, (count,))
    v = shaping.reshape(convert(v, aval.dtype, False), (given,))
    copies = -(-count // given)
    v = slicing.slice_in_dim(slicing.concatenate([v] * copies, 0) if copies > 1 else v, 0, count)
    if mode == "wrap":
        ind, mode = _wrapped(ind, aval.size), _MODE.PROMISE_IN_BOUNDS
    else:
        ind = convert(from_start(ind, aval.size), int32, False)
    flat = scatter(
        shaping.reshape(a, (aval.size,)),
        shaping.reshape(ind, (count, 1)),
        v,
        ScatterDimensionNumbers((), (0,), (0,)),
        mode=mode,
    )
    return shaping.reshape(flat, aval.shape)


@like(np.put)
def put(a: Any, ind: Any, v: Any, mode: str | None = None, *, inplace: bool = True) -> Any:
    """An array with values at indices into it as one row; with `inplace=False`, as it must be.

    Values are repeated until there are as many as indices. `mode` is what happens out of bounds:
    "clip", the default, "wrap", or "drop".
    """
    check_arraylike("put", a, ind, v)
    if inplace:
        raise refuse_in_place("put")
    return _put(a, ind, v, _take_mode("put", "clip" if mode is None else mode))


_method_take.__name__ = "take"

ARRAY_METHODS = {"take": _method_take}

