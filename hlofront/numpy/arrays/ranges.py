"""Evenly spaced numbers, and grids of coordinates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofront.base import errors
from hlofront.base.boundary import boundary
from hlofront.base.dtypes import (
    check_user_dtype_supported,
    issubdtype,
    lattice_result,
    python_scalar_dtype,
    to_inexact_dtype,
)
from hlofront.base.elements import exact_dtype, host_number
from hlofront.base.typing import Array, ArrayLike, DTypeLike, ShapeLike
from hlofront.bridge.arrays import Explicit
from hlofront.core.aval import SymbolicSize, typeof
from hlofront.core.programs.extension import concrete_or_error
from hlofront.core.sizes.dimensions import as_size, canonical_axis, canonical_shape
from hlofront.core.sizes.symbolic import max_dim
from hlofront.core.trace import Tracer, is_eager
from hlofront.numpy.arrays.creation import (
    MAX_ON_HOST,
    asarray,
    check_placement,
    from_host,
    sequence_of_arrays,
)
from hlofront.numpy.elementwise.ufuncs import scalar_like
from hlofront.numpy.support.annotations import DeviceLike, OutSharding
from hlofront.numpy.support.like import like
from hlofront.numpy.support.promotion import (
    as_operand,
    check_arraylike,
    check_rank_promotion,
    joint_dtype,
    operands,
    with_shape,
)
from hlofront.primitives.arrays import creation, shaping, slicing
from hlofront.primitives.elementwise import converting, elementwise
from hlofront.primitives.elementwise.families import check_dtype
from hlofront.runtime.array.transfer import device_put
from hlofront.runtime.dispatch.operation import operation
from hlofront.transforms.vmap import vmap

# ---- arange ------------------------------------------------------------------------------------


@like(np.arange)
@boundary
def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Return the numbers start, start + step, start + 2 step, ... before stop.

    Args:
      start: the first number; or without `stop`, the end, and the first number is 0.
      stop: the end, which is exclusive.
      step: the difference of successive numbers; 1 by default.
      dtype: the dtype of the result; by default the common dtype of the arguments.
      device: a Device or Sharding that the result is put on.

    Raises:
      TypeError: if an argument is not a scalar number.
      ValueError: if an argument is an array with axes, complex or NaN.
      ZeroDivisionError: if the step is zero.
      OverflowError: if the result is of integers and an argument does not fit in any dtype.
      ConcretizationTypeError: if an argument is traced, as the shape depends on it.

    Example:
      >>> jnp.arange(2, 8, 2)
      Array([2, 4, 6], dtype=int32)
    """
    device, requested_sharding = check_placement("arange", device, out_sharding, 1)
    arguments = {"start": start, "stop": stop, "step": step}
    numbers = {
        name: _number("stop" if stop is None and name == "start" else name, x)
        for name, x in arguments.items()
        if x is not None or name == "start"
    }
    if dtype is None:
        avals = [typeof(as_operand(arguments[name])) for name in numbers]
        dtype = lattice_result(tuple([(aval.dtype, aval.weak_type) for aval in avals]))[0]
    else:
        dtype = check_user_dtype_supported(dtype, "arange")
    check_dtype("arange", dtype, (np.integer, np.floating, np.complexfloating))
    if issubdtype(dtype, np.integer):
        for name, number in numbers.items():
            _check_representable(name, number)
    if stop is None:
        first, end, gap = 0, numbers["start"], numbers.get("step", 1)
    else:
        first, end, gap = numbers["start"], numbers["stop"], numbers.get("step", 1)
    from_zero = step is None and (stop is None or (type(first) is int and not first))
    if not gap:
        raise ZeroDivisionError(f"arange: the step from {first} to {end} must not be zero")
    size = _count_of_steps(first, end, gap)
    result = _steps(size, first, gap, dtype, from_zero, step is None, requested_sharding)
    return result if device is None else device_put(result, device)


def _check_representable(name: str, number: object) -> None:
    """Raise OverflowError for an integer that no integer dtype holds."""
    if type(number) is int and not -(2**63) <= number < 2**64:
        raise OverflowError(
            f"arange: Python int too large to convert to C long: no integer dtype holds "
            f"{name}={number}. Give a floating-point dtype."
        )


def _count_of_steps(first: Any, end: Any, gap: Any) -> Any:
    """Return how many numbers there are from one up to another, exclusive, in steps of a gap."""
    if not any(isinstance(number, SymbolicSize) for number in (first, end, gap)):
        return max(math.ceil((end - first) / gap), 0)
    distance, step = (end - first, gap) if gap > 0 else (first - end, -gap)
    return max_dim(distance + step - 1, 0) // step


def _number(name: str, x: ArrayLike) -> int | float:
    if isinstance(x, SymbolicSize):
        return x
    x = as_operand(x)
    check_arraylike("arange", x)
    if isinstance(x, Tracer):
        raise errors.ConcretizationTypeError(
            x,
            f"It arose in the jnp.arange argument '{name}': the size of the result depends on it.",
        )
    aval = typeof(x)
    if aval.shape:
        raise ValueError(f"arange requires scalars, got {name} of shape {aval.shape}")
    value = x if isinstance(x, bool | int | float | complex) else np.asarray(x).item()
    if isinstance(value, complex):
        raise ValueError(f"arange requires real numbers, got {name}={value}")
    return value


def _steps(
    size: int,
    first: int | float,
    gap: int | float,
    dtype: np.dtype,
    from_zero: bool,
    by_one: bool,
    requested_sharding: object,
) -> Array:
    if is_eager() and size <= MAX_ON_HOST:
        if from_zero and by_one:
            # The values do not come from the user, so that no transfer guard may refuse the copy.
            with Explicit("put"):
                return from_host(exact_dtype(np.arange(size).astype(dtype)))
        if issubdtype(dtype, np.integer):
            # The numbers are computed as 64-bit integers, since narrower ones may wrap.
            exact = int(first) if first == int(first) else first
            numbers = np.arange(size, dtype=np.int64) * _wrapped(gap) + _wrapped(exact)
            return from_host(exact_dtype(numbers.astype(dtype)))
        numbers = np.arange(size).astype(dtype)
        if not by_one:
            numbers = numbers * creation.scalar_of(gap, dtype)
        if not from_zero:
            numbers = numbers + creation.scalar_of(first, dtype)
        return from_host(exact_dtype(numbers.astype(dtype)))
    numbers = creation.broadcasted_iota(dtype, (size,), 0, out_sharding=requested_sharding)
    if not by_one:
        numbers = elementwise.mul(creation.scalar_of(gap, dtype), numbers)
    if not from_zero:
        numbers = elementwise.add(creation.scalar_of(first, dtype), numbers)
    return numbers


def _wrapped(number: int | float) -> int:
    """Return a number as an integer wrapped to 64 bits."""
    return (int(number) + (1 << 63)) % (1 << 64) - (1 << 63)


# ---- linspace, logspace and geomspace ----------------------------------------------------------


def _count(name: str, num: Any) -> int:
    if isinstance(num, Tracer):
        raise errors.ConcretizationTypeError(
            num, f"It arose in the jnp.{name} argument 'num': the size of the result depends on it."
        )
    try:
        num = as_size(num)
    except TypeError:
        raise TypeError(
            f"{name}: num, how many numbers to make, must be an integer, got {num!r} of type "
            f"{type(num).__name__}"
        ) from None
    if num < 0:
        raise ValueError(f"{name}: number of samples, {num}, must be non-negative.")
    return num


def _dtypes(
    name: str, start: ArrayLike, stop: ArrayLike, dtype: DTypeLike | None
) -> tuple[np.dtype, np.dtype]:
    """Return the dtype of the computation, and the dtype of the result."""
    avals = operands(name, (start, stop))[1]
    common = lattice_result(tuple([(aval.dtype, aval.weak_type) for aval in avals]))[0]
    if dtype is not None:
        dtype = check_user_dtype_supported(dtype, name)
        common = joint_dtype((common, False), (dtype, False))
    computed = to_inexact_dtype(common)
    return computed, computed if dtype is None else dtype


def _ends(start: ArrayLike, stop: ArrayLike, dtype: np.dtype) -> tuple[ArrayLike, ArrayLike]:
    start, stop = (converting.convert(x, dtype, False) for x in (start, stop))
    shapes = [typeof(start).shape, typeof(stop).shape]
    check_rank_promotion("linspace", shapes)
    shape = shaping.broadcast_shapes(*shapes)
    return tuple([with_shape(x, typeof(x).shape, shape) for x in (start, stop)])


def _linspace(start: ArrayLike, stop: ArrayLike, num: int, endpoint: bool) -> tuple[Array, Array]:
    """Return `num` rows from start to stop, and the step between them."""
    aval = typeof(start)
    dtype, shape = aval.dtype, aval.shape
    if num <= 1:
        rows = with_shape(start, shape, (num, *shape))
        if endpoint or not num:
            return rows, from_host(host_number(np.nan, dtype))
        return rows, elementwise.sub(stop, start)
    parts = num - 1 if endpoint else num
    gap = elementwise.div(elementwise.sub(stop, start), scalar_like(aval, parts))
    real = np.zeros((), dtype).real.dtype if dtype.kind == "c" else dtype
    fraction = creation.iota(real, parts)
    fraction = elementwise.div(fraction, scalar_like(typeof(fraction), parts))
    fraction = converting.convert(fraction, dtype, False)
    rows_shape = (parts, *shape)
    fraction = shaping.broadcast_in_dim(fraction, rows_shape, (0,))
    start, row = (with_shape(x, shape, rows_shape) for x in (start, stop))
    complement = elementwise.sub(scalar_like(aval, 1), fraction)
    # Weighting both ends by their nearness gives the ends exactly.
    rows = elementwise.add(elementwise.mul(start, complement), elementwise.mul(row, fraction))
    if endpoint:
        rows = slicing.concatenate([rows, with_shape(stop, shape, (1, *shape))], 0)
    return rows, gap


def _to_axis(x: Array, axis: int) -> Array:
    """Return an array with its first axis moved to `axis`."""
    ndim = typeof(x).ndim
    axis = canonical_axis(axis, ndim)
    return shaping.transpose(x, (*range(1, axis + 1), 0, *range(axis + 1, ndim)))


def _as_dtype(x: Array, dtype: np.dtype) -> Array:
    if issubdtype(dtype, np.integer) and not issubdtype(typeof(x).dtype, np.complexfloating):
        x = elementwise.floor(x)
    return converting.convert(x, dtype, False)


@operation(static_argnames=("num", "endpoint", "retstep", "dtype", "axis"))
def _linspace_operation(
    start: ArrayLike,
    stop: ArrayLike,
    num: int,
    endpoint: bool,
    retstep: bool,
    dtype: DTypeLike | None,
    axis: int,
) -> Array | tuple[Array, Array]:
    computed, dtype = _dtypes("linspace", start, stop, dtype)
    rows, gap = _linspace(*_ends(start, stop, computed), num, endpoint)
    rows = _to_axis(_as_dtype(rows, dtype), axis)
    return (rows, gap) if retstep else rows


@like(np.linspace)
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: DeviceLike = None,
) -> Array | tuple[Array, Array]:
    """Return `num` evenly spaced numbers from start to stop.

    Args:
      start, stop: scalars or arrays, whose shapes broadcast.
      num: the number of values.
      endpoint: whether `stop` is the last value.
      retstep: whether to return the distance between values as well.
      dtype: the dtype of the result; by default a floating-point one; an integer dtype takes the
        floors of the numbers.
      axis: the axis of the result along which the numbers run.
      device: a Device or Sharding that the result is put on.

    Raises:
      ValueError: if num is negative, or there is no such axis.
      TypeError: if num is not an integer.

    Example:
      >>> jnp.linspace(0, 1, 5)
      Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    device, _ = check_placement("linspace", device)
    result = _linspace_operation(
        start, stop, _count("linspace", num), bool(endpoint), bool(retstep), dtype, axis
    )
    return result if device is None else device_put(result, device)


@operation(static_argnames=("num", "endpoint", "dtype", "axis"))
def _logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int,
    endpoint: bool,
    base: ArrayLike,
    dtype: DTypeLike | None,
    axis: int,
) -> Array:
    computed, dtype = _dtypes("logspace", start, stop, dtype)
    exponents, _ = _linspace(*_ends(start, stop, computed), num, endpoint)
    base = converting.convert(base, computed, False)
    rows = elementwise.pow(with_shape(base, typeof(base).shape, typeof(exponents).shape), exponents)
    return _to_axis(converting.convert(rows, dtype, False), axis)


@like(np.logspace)
def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Return powers of `base` with evenly spaced exponents from start to stop.

    Example:
      >>> jnp.logspace(0, 2, 3)
      Array([  1.,  10., 100.], dtype=float32)
    """
    return _logspace(start, stop, _count("logspace", num), bool(endpoint), base, dtype, axis)


@operation(static_argnames=("num", "endpoint", "dtype", "axis"))
def _geomspace(
    start: ArrayLike, stop: ArrayLike, num: int, endpoint: bool, dtype: DTypeLike | None, axis: int
) -> Array:
    computed, dtype = _dtypes("geomspace", start, stop, dtype)
    start, stop = _ends(start, stop, computed)
    # The numbers lie on a ray from zero through start.
    direction = elementwise.sign(start)
    exponents = [elementwise.log(elementwise.div(x, direction)) for x in (start, stop)]
    rows, _ = _linspace(*exponents, num, endpoint)
    shape = typeof(start).shape
    rows = elementwise.mul(elementwise.exp(rows), with_shape(direction, shape, typeof(rows).shape))
    # The ends are set exactly: logarithms only approximate them.
    if num > 0:
        start, stop = (with_shape(x, shape, (1, *shape)) for x in (start, stop))
        last = [stop] if endpoint and num > 1 else []
        middle = slicing.slice_in_dim(rows, 1, num - len(last), axis=0)
        rows = slicing.concatenate([start, middle, *last], 0)
    return _to_axis(converting.convert(rows, dtype, False), axis)


@like(np.geomspace)
def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Return `num` numbers from start to stop in geometric progression.

    Example:
      >>> jnp.geomspace(1, 8, 4).round(3)
      Array([1., 2., 4., 8.], dtype=float32)
    """
    return _geomspace(start, stop, _count("geomspace", num), bool(endpoint), dtype, axis)


# ---- grids -------------------------------------------------------------------------------------


@operation(static_argnames=("sparse", "swap"))
def _meshgrid(arrays: list[ArrayLike], sparse: bool, swap: bool) -> list[Array]:
    shapes = [typeof(x).shape for x in arrays]
    if any(len(shape) != 1 for shape in shapes):
        raise ValueError(f"meshgrid requires one-dimensional arrays, got shapes {shapes}")
    axes = list(range(len(arrays)))
    if swap:
        axes[:2] = axes[1::-1]
    sizes = [0] * len(arrays)
    for axis, (size,) in zip(axes, shapes, strict=True):
        sizes[axis] = size
    return [
        shaping.broadcast_in_dim(
            x,
            tuple([size if i == axis or not sparse else 1 for i, size in enumerate(sizes)]),
            (axis,),
        )
        for x, axis in zip(arrays, axes, strict=True)
    ]


@like(np.meshgrid)
def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> Sequence[Array]:
    """Return a list of coordinate arrays, one for each of the vectors `xi`.

    With hlofront_jax_api 0.12.0.1 it is a tuple.

    Args:
      xi: the coordinates along each axis.
      copy: must be True.
      sparse: whether arrays have size 1 along the axes where they do not change.
      indexing: "xy" if the first array runs along the second axis, "ij" if along the first.

    Raises:
      ValueError: for other values of copy and indexing, and for arrays that do not have one axis.

    Example:
      >>> jnp.meshgrid(jnp.arange(2), jnp.arange(3))[0]
      Array([[0, 1],
             [0, 1],
             [0, 1]], dtype=int32)
    """
    check_arraylike("meshgrid", *xi)
    if not copy:
        raise ValueError("meshgrid has only copy=True: arrays have no views")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    if not xi:
        return sequence_of_arrays(())
    return sequence_of_arrays(_meshgrid(list(xi), bool(sparse), indexing == "xy" and len(xi) > 1))


def _grid_axis(key: slice) -> Array:
    start = 0 if key.start is None else key.start
    step = 1 if key.step is None else key.step
    if isinstance(step, complex):
        return linspace(start, key.stop, int(abs(step)))
    return arange(start, key.stop, step)


class _Grid:
    """The class of np.mgrid and np.ogrid, which make grids from slices: `[0:3, 0:1:5j]`."""

    def __init__(self, sparse: bool, doc: str):
        self.sparse = sparse
        self.__doc__ = doc

    def __getitem__(self, key: slice | tuple[slice, ...]) -> Array | list[Array]:
        if isinstance(key, slice):
            return _grid_axis(key)
        axes = [_grid_axis(one) for one in key]
        if not axes:
            return [] if self.sparse else asarray(np.zeros((0,), python_scalar_dtype(int)))
        dtype = lattice_result(tuple([(x.dtype, x.weak_type) for x in axes]))[0]
        axes = [x.astype(dtype) for x in axes]
        grids = meshgrid(*axes, sparse=self.sparse, indexing="ij")
        return grids if self.sparse else _stack(grids)


@operation
def _stack(arrays: list[Array]) -> Array:
    return slicing.concatenate([shaping.expand_dims(x, (0,)) for x in arrays], 0)


mgrid = _Grid(False, "Coordinates on a grid by slices: `mgrid[0:2, 0:1:5j]`, stacked in one array.")
ogrid = _Grid(
    True,
    "Open grids, like np.ogrid: arrays with size 1 along the axes where they do not change.",
)


@like(np.indices)
def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False
) -> Array | tuple[Array, ...]:
    """Return the indices along each axis of the elements of an array of shape `dimensions`.

    Returns:
      An array with one row per axis, or a tuple of arrays that broadcast if `sparse`.

    Example:
      >>> jnp.indices((2, 3)).shape
      (2, 2, 3)
      >>> jnp.indices((2, 3))[1]
      Array([[0, 1, 2],
             [0, 1, 2]], dtype=int32)
    """
    sizes = "The sizes of jnp.indices must be known while tracing."
    dimensions = canonical_shape([concrete_or_error(None, size, sizes) for size in dimensions])
    if min(dimensions, default=0) < 0:
        raise TypeError(f"indices: sizes must not be negative, got {dimensions}")
    dtype = check_user_dtype_supported(int if dtype is None else dtype, "indices")
    grids = meshgrid(
        *[arange(size, dtype=dtype) for size in dimensions], sparse=sparse, indexing="ij"
    )
    if sparse:
        return tuple(grids)
    return _stack(grids) if grids else asarray(np.zeros((0,), dtype))


@like(np.fromfunction)
def fromfunction(
    function: Callable[..., object], shape: ShapeLike, *, dtype: DTypeLike = float, **kwargs: object
) -> Any:
    """Make an array of `shape` by calling a function with the indices of its elements.

    The function is mapped by vmap: it is called once, and sees the indices as scalars. Keyword
    arguments are mapped as well, along their first axes.

    Example:
      >>> jnp.fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int)
      Array([[ 0,  1,  2],
             [10, 11, 12]], dtype=int32)
    """
    shape = canonical_shape(shape)
    for axis in reversed(range(len(shape))):
        alone = tuple([0 if i == axis else None for i in range(len(shape))])
        function = vmap(function, in_axes=alone)
    return function(*[arange(size, dtype=dtype) for size in shape], **kwargs)
