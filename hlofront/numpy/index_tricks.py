"""Making indices: ix_, unravel_index, mask_indices, fill_diagonal."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofront.base.dtypes import check_user_dtype_supported, default_dtype, issubdtype
from hlofront.core.aval import typeof
from hlofront.core.dimensions import canonical_shape
from hlofront.core.trace import process
from hlofront.numpy import creation
from hlofront.numpy.like import like
from hlofront.numpy.promotion import broadcast_together, check_arraylike
from hlofront.numpy.selecting import nonzero, on_host
from hlofront.numpy.ufuncs import any_operand, scalar_like
from hlofront.primitives import comparing, elementwise, shaping, slicing
from hlofront.primitives.comparing import select_n_p
from hlofront.primitives.converting import convert
from hlofront.primitives.creating import full, full_like
from hlofront.primitives.scattering import ScatterDimensionNumbers, scatter
from hlofront.runtime.operation import operation


@like(np.ix_)
def ix_(*args: Any) -> tuple[Any, ...]:
    """Indices of several axes, shaped so that `x[ix_(rows, columns)]` is the grid of them."""
    check_arraylike("ix_", *args)
    return _ix(*args) if args else ()


@operation
def _ix(*args):
    results = []
    for i, arg in enumerate(args):
        aval = typeof(arg)
        if aval.ndim != 1:
            raise ValueError(
                f"Arguments to jax.numpy.ix_ must be 1-dimensional, got shape {aval.shape}"
            )
        if aval.dtype == np.bool_:
            raise NotImplementedError(  # the class that JAX raises
                "Boolean arguments to jax.numpy.ix_ are not implemented: give jnp.nonzero(mask)[0]."
            )
        shape = (1,) * i + aval.shape + (1,) * (len(args) - 1 - i)
        if not aval.size:
            arg = convert(arg, default_dtype("i"), False)
        results.append(shaping.reshape(arg, shape))
    return tuple(results)


# ---- flat indices ------------------------------------------------------------------------------


@operation(static_argnames=("shape",))
def _unravel_index(indices, shape):
    indices = any_operand("unravel_index", indices)
    size = int(np.prod(shape, dtype=np.int64))
    aval = typeof(indices)
    whole = scalar_like(aval, size)
    moved = elementwise.add(indices, _spread(whole, indices))
    below = comparing.lt(indices, _spread(scalar_like(aval, 0), indices))
    flat = process(select_n_p, (below, indices, moved), {})
    results = []
    for length in reversed(shape):
        if not length:
            results.append(full_like(flat, 0))
            continue
        by = _spread(scalar_like(aval, length), indices)
        rest = elementwise.rem(flat, by)
        results.append(rest)
        flat = elementwise.div(elementwise.sub(flat, rest), by)
    # What is out of bounds is the last element, or the first.
    high = comparing.gt(flat, _spread(scalar_like(aval, 0), indices))
    low = comparing.lt(moved, _spread(scalar_like(aval, 0), indices))
    clipped = []
    for length, index in zip(shape, reversed(results), strict=True):
        last = _spread(scalar_like(aval, max(length - 1, 0)), indices)
        first = _spread(scalar_like(aval, 0), indices)
        index = process(select_n_p, (high, index, last), {})
        clipped.append(process(select_n_p, (low, index, first), {}))
    return tuple(clipped)


def _spread(value: Any, like_array: Any) -> Any:
    return full(typeof(like_array).shape, value)


@like(np.unravel_index)
def unravel_index(indices: Any, shape: Any) -> tuple[Any, ...]:
    """Indices into an array as one row, as indices for each axis.

    Negative ones count from the end; what is out of bounds becomes the nearest there is.
    """
    check_arraylike("unravel_index", indices)
    if hasattr(shape, "aval"):
        shape = on_host(shape, "The shape of jnp.unravel_index must be known while tracing.")
        shape = tuple(np.atleast_1d(shape).tolist())
    return _unravel_index(indices, canonical_shape(shape))


@operation(static_argnames=("dims", "mode", "order", "dtype"))
def _ravel_multi_index(multi_index, dims, mode, order, dtype):
    indices = [convert(any_operand("ravel_multi_index", i), dtype, False) for i in multi_index]
    indices = broadcast_together("ravel_multi_index", *indices)
    total = full_like(indices[0], 0)
    stride = 1
    pairs = list(zip(indices, dims, strict=True))
    for index, length in pairs if order == "F" else reversed(pairs):
        if mode == "clip":
            index = elementwise.clamp(dtype.type(0), index, dtype.type(max(length - 1, 0)))
        elif mode == "wrap":
            by = _spread(dtype.type(length), index)
            rest = elementwise.rem(index, by)
            negative = comparing.lt(rest, full_like(rest, 0))
            index = process(select_n_p, (negative, rest, elementwise.add(rest, by)), {})
        total = elementwise.add(total, elementwise.mul(index, _spread(dtype.type(stride), index)))
        stride *= length
    return total


@like(np.ravel_multi_index)
def ravel_multi_index(
    multi_index: Sequence[Any],
    dims: Sequence[int],
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: Any = None,
) -> Any:
    """Indices for each axis, as indices into the array as one row.

    `mode` is what happens out of bounds: "clip", "wrap", "ignore", or "raise", for which the
    indices cannot be traced. `dtype` is that of the result, by default the default integer dtype.
    """
    multi_index = list(multi_index)
    check_arraylike("ravel_multi_index", *multi_index)
    dims = canonical_shape(dims)
    if len(multi_index) != len(dims):
        raise AssertionError(
            f"len(multi_index)={len(multi_index)} != len(dims)={len(dims)}: ravel_multi_index "
            "wants an array of indices for each axis"
        )
    for index in multi_index:
        if not issubdtype(typeof(index).dtype, np.integer):
            raise ValueError(
                f"dtype={typeof(index).dtype!r} is not an integer type: indices are wanted"
            )
    if mode not in ("raise", "wrap", "clip", "ignore"):
        raise ValueError(
            f"invalid mode={mode!r}. Expected 'raise', 'wrap', 'clip', or 'ignore'."
        )
    if order not in ("C", "F"):
        raise ValueError(f"invalid order={order!r}. Expected 'C' or 'F'")
    if mode == "raise":
        for index, length in zip(multi_index, dims, strict=True):
            values = on_host(
                index,
                "The error check of jnp.ravel_multi_index with mode='raise' needs the values of "
                "the indices: use mode='clip' or mode='wrap'.",
            )
            if ((values < 0) | (values >= length)).any():
                raise ValueError(f"invalid entry in coordinates array: the shape is {dims}")
    if dtype is None:
        dtype = default_dtype("i")
    dtype = check_user_dtype_supported(dtype, "ravel_multi_index")
    return _ravel_multi_index(multi_index, dims, mode, order, dtype)


# ---- diagonals and triangles -------------------------------------------------------------------


@like(np.mask_indices)
def mask_indices(
    n: int, mask_func: Callable[[Any, int], Any], k: int = 0, *, size: int | None = None
) -> tuple[Any, Any]:
    """The indices at which `mask_func(ones, k)` of an (n, n) array is not zero, as of jnp.triu."""
    n = operator.index(n)
    rows, columns = nonzero(mask_func(creation.ones((n, n)), k), size=size)
    return rows, columns


@operation
def _fill_diagonal(a, val):
    a, val = any_operand("fill_diagonal", a), any_operand("fill_diagonal", val)
    shape = typeof(a).shape
    if len(shape) < 2:
        raise ValueError(f"array must be at least 2-d: fill_diagonal got shape {shape}")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise ValueError(f"All dimensions of input must be of equal length, got shape {shape}")
    count = min(shape)
    if not count:
        return a
    values = typeof(val).size
    val = convert(val, typeof(a).dtype, False)
    if typeof(val).shape:
        copies = -(-count // values)
        val = shaping.reshape(val, (values,))
        val = slicing.concatenate([val] * copies, 0) if copies > 1 else val
        val = slicing.slice_in_dim(val, 0, count)
    else:
        val = full((count,), val)
    places = np.repeat(np.arange(count, dtype=np.int32)[:, None], len(shape), 1)
    axes = tuple(range(len(shape)))
    return scatter(
        a,
        places,
        val,
        ScatterDimensionNumbers((), axes, axes),
        indices_are_sorted=True,
        unique_indices=True,
        mode="promise_in_bounds",
    )


@like(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False, *, inplace: bool = True) -> Any:
    """An array with values on its diagonal; with `inplace=False`, as it must be."""
    check_arraylike("fill_diagonal", a, val)
    if inplace:
        raise NotImplementedError("JAX arrays are immutable, must use inplace=False")
    if wrap:
        raise NotImplementedError(  # the class that JAX raises
            "wrap=True is not implemented, must use wrap=False: what NumPy wraps into tall "
            "matrices can be written with x.at[rows, columns].set(values)."
        )
    return _fill_diagonal(a, val)
