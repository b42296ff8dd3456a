"""Covariance and correlation, counts of integers, and bins of numbers."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from hlofront.base.dtypes import (
    check_user_dtype_supported,
    is_complex,
    issubdtype,
    python_scalar_dtype,
    to_inexact_dtype,
)
from hlofront.base.elements import host_number
from hlofront.base.errors import ShardingTypeError
from hlofront.base.typing import Array, ArrayLike, DTypeLike
from hlofront.core.aval import typeof
from hlofront.core.programs.extension import concrete_or_error
from hlofront.core.sharding.requested_shardings import requested
from hlofront.higher_order.shard_map.axis_types import with_sharding
from hlofront.numpy.arrays.sorting import searchsorted
from hlofront.numpy.indexing.selecting import host_value
from hlofront.numpy.products.contraction import product_dtype
from hlofront.numpy.statistics.moments import mean_over
from hlofront.numpy.statistics.reductions import as_numbers, sum_over
from hlofront.numpy.support.annotations import OutSharding
from hlofront.numpy.support.like import like, operation_like
from hlofront.numpy.support.promotion import (
    broadcast_together,
    check_rank_promotion,
    choose,
    host_scalar,
    operand,
    operands,
)
from hlofront.primitives.arrays import creation
from hlofront.primitives.arrays.scattering import ScatterDimensionNumbers, scatter_add
from hlofront.primitives.arrays.shaping import expand_dims, rev, squeeze, transpose
from hlofront.primitives.arrays.slicing import concatenate, index_in_dim
from hlofront.primitives.elementwise import compare, elementwise
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.linalg.dot_general import dot_general
from hlofront.runtime.dispatch.operation import operation

# ---- covariance --------------------------------------------------------------------------------


def _observations(name: str, x: ArrayLike, dtype: np.dtype, rowvar: bool) -> Array:
    """Return observations as a matrix whose rows are the variables."""
    aval = typeof(x)
    if aval.ndim > 2:
        raise ValueError(f"{name} has more than 2 dimensions: its shape is {aval.shape}")
    x = as_numbers(x, dtype)
    rows = expand_dims(x, tuple(range(2 - aval.ndim)))
    return transpose(rows, (1, 0)) if aval.ndim == 2 and not rowvar else rows


def _check_weights(name: str, weights: ArrayLike, count: int, integral: bool) -> Array:
    weights, aval = operand("cov", weights)
    if integral and not issubdtype(aval.dtype, np.integer):
        raise TypeError(f"{name} must be integer. Got dtype {aval.dtype}.")
    if aval.ndim != 1:
        raise RuntimeError(f"cannot handle multidimensional {name}: got shape {aval.shape}")
    if aval.shape[0] != count:
        raise RuntimeError(
            f"incompatible numbers of samples and {name}: {count} samples, {aval.shape[0]} weights"
        )
    # Negative weights would give meaningless results.
    return elementwise.abs(weights) if issubdtype(aval.dtype, np.signedinteger) else weights


def _sum(x: Array, axis: int) -> Array:
    return sum_over(x, (axis,))


def _covariance(
    m: ArrayLike,
    y: ArrayLike | None,
    rowvar: bool,
    bias: bool,
    ddof: int | None,
    fweights: ArrayLike | None,
    aweights: ArrayLike | None,
    dtype: DTypeLike | None,
) -> Array:
    values, avals = operands("cov", (m,) if y is None else (m, y))
    check_rank_promotion("cov", [aval.shape for aval in avals])
    if dtype is not None:
        dtype = check_user_dtype_supported(dtype, "cov")
    else:
        dtype = to_inexact_dtype(product_dtype("cov", None, *avals))
    rows = _observations("m", values[0], dtype, rowvar)
    if y is not None:
        rows = concatenate([rows, _observations("y", values[1], dtype, rowvar)], 0)
    count = typeof(rows).shape[1]
    real = typeof(elementwise.real(rows)).dtype if is_complex(dtype) else dtype
    freedom = (0 if bias else 1) if ddof is None else ddof
    if fweights is None and aweights is None:
        mean = mean_over(rows, (1,), dtype, dtype, True, None)
        centered = elementwise.sub(rows, mean)
        weighted = centered
        divisor = host_number(max(count - freedom, 0), real)
    else:
        weights = creation.full((count,), host_scalar(1, real))
        if fweights is not None:
            weights = as_numbers(_check_weights("fweights", fweights, count, True), real)
        if aweights is not None:
            aweights = as_numbers(_check_weights("aweights", aweights, count, False), real)
            weights = elementwise.mul(weights, aweights)
        total = _sum(weights, 0)
        across = convert(expand_dims(weights, (0,)), dtype, False)
        mean = elementwise.div(
            expand_dims(_sum(_times(rows, across), 1), (1,)),
            convert(total, dtype, False),
        )
        centered = elementwise.sub(rows, mean)
        weighted = _times(centered, across)
        divisor = total
        if freedom:
            used = host_scalar(freedom, real)
            if aweights is not None:
                share = elementwise.div(_sum(elementwise.mul(weights, aweights), 0), total)
                used = elementwise.mul(used, share)
            divisor = elementwise.max(elementwise.sub(total, used), host_scalar(0, real))
    if is_complex(dtype):
        weighted = elementwise.conj(weighted)
    products = dot_general(centered, weighted, (((1,), (1,)), ((), ())), None, dtype)
    result = elementwise.div(products, convert(divisor, dtype, False))
    ones = tuple([i for i, size in enumerate(typeof(result).shape) if size == 1])
    return squeeze(result, ones) if ones else result


def _times(x: Array, y: Array) -> Array:
    return elementwise.mul(*broadcast_together("cov", x, y))


@operation_like(np.cov, static_argnames=("rowvar", "bias", "ddof", "dtype"))
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Compute the covariance matrix of variables, or a scalar for one variable.

    Args:
      m: an array of one or two axes, in which each row is a variable, each column an observation.
      y: more variables, with as many observations.
      rowvar: False if variables are columns.
      bias: whether to divide by the number of observations, instead of one less.
      ddof: the number subtracted from the count of observations, which overrides `bias`.
      fweights: integer weights: the number of times that each observation occurs.
      aweights: weights of the observations.
      dtype: the dtype of the result; by default that of the variables, and for integers a float's.

    Raises:
      ValueError: for more than two axes, or a dtype of integers or booleans.
      TypeError: for fweights that are not integers.
      RuntimeError: for weights that do not fit the observations.

    Example:
      >>> jnp.cov(jnp.array([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]]))
      Array([[ 1., -2.],
             [-2.,  4.]], dtype=float32)
    """
    _check_inexact("cov", dtype)
    return _covariance(m, y, rowvar, bias, ddof, fweights, aweights, dtype)


def _check_inexact(name: str, dtype: DTypeLike | None) -> None:
    if dtype is not None and not issubdtype(dtype, np.inexact):
        raise ValueError(f"{name}: dtype must be one of floats or complex numbers, got {dtype!r}")


@operation_like(np.corrcoef, static_argnames=("rowvar", "dtype"))
def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None
) -> Array:
    """Compute the correlation coefficients of variables, or a scalar for one variable.

    Args:
      x: an array of one or two axes, in which each row is a variable, each column an observation.
      y: more variables, with as many observations.
      rowvar: False if variables are columns.
      dtype: the dtype of the result; by default that of the variables, and for integers a float's.

    Raises:
      ValueError: for more than two axes, or a dtype of integers or booleans.

    Example:
      >>> x = jnp.array([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]])
      >>> jnp.corrcoef(x).round(3)
      Array([[ 1., -1.],
             [-1.,  1.]], dtype=float32)
    """
    _check_inexact("corrcoef", dtype)
    c = _covariance(x, y, rowvar, False, None, None, None, dtype)
    aval = typeof(c)
    if not aval.ndim:
        return elementwise.div(c, c)
    size = aval.shape[0]
    indices = creation.iota(np.dtype(np.int32), size)
    real = elementwise.real(c) if is_complex(aval.dtype) else c
    on = compare.eq(
        *broadcast_together("corrcoef", expand_dims(indices, (1,)), expand_dims(indices, (0,)))
    )
    zero = host_scalar(0, typeof(real).dtype)
    deviation = elementwise.sqrt(_sum(choose("corrcoef", on, real, zero), 1))
    deviation = convert(deviation, aval.dtype, False)
    for axis in (1, 0):
        c = elementwise.div(*broadcast_together("corrcoef", c, expand_dims(deviation, (axis,))))
    # Rounding may make coefficients exceed 1.
    if not is_complex(aval.dtype):
        return _clipped(c)
    return elementwise.complex(_clipped(elementwise.real(c)), _clipped(elementwise.imag(c)))


def _clipped(x: Array) -> Array:
    dtype = typeof(x).dtype
    return elementwise.clamp(host_scalar(-1, dtype), x, host_scalar(1, dtype))


# ---- counting ----------------------------------------------------------------------------------


def add_at(size: int, indices: Array, weights: Array) -> Array:
    """Return a vector (size,) of the sums of weights by index; indices outside are dropped."""
    zeros = creation.full((size,), host_scalar(0, typeof(weights).dtype))
    if not typeof(indices).size:
        return zeros
    return scatter_add(
        zeros,
        expand_dims(indices, (1,)),
        weights,
        ScatterDimensionNumbers((), (0,), (0,)),
        mode="drop",
    )


@operation(static_argnames=("length",))
def _bincount(x: ArrayLike, weights: ArrayLike | None, *, length: int) -> Array:
    aval = typeof(x)
    if weights is None:
        weights = creation.full(aval.shape, host_scalar(1, python_scalar_dtype(int)))
    else:
        weights, weights_aval = operand("bincount", weights)
        if weights_aval.shape != aval.shape:
            raise ValueError(
                f"shape of weights must match shape of x. Got x of shape {aval.shape} and weights "
                f"of shape {weights_aval.shape}."
            )
        weights = convert(weights, weights_aval.dtype, False)
    return add_at(length, elementwise.max(x, host_scalar(0, aval.dtype)), weights)


@like(np.bincount)
def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Count the occurrences of each nonnegative integer in an array, or sum its weights.

    Negative numbers are counted as 0.

    Args:
      x: an array of integers or booleans, of one axis.
      weights: the weight of each number, instead of 1.
      minlength: the least size of the result.
      length: the size of the result; larger numbers are dropped. By default it is one more than the
          largest number. It is required if x is traced.
      out_sharding: P() over a mesh, which puts all counts on every device, or None.

    Raises:
      TypeError: if x is neither integers nor booleans, or the length is negative.
      ValueError: if x does not have one axis, or weights have another shape.
      ConcretizationTypeError: if x is traced and no length is passed.

    Example:
      >>> jnp.bincount(jnp.array([0, 1, 1]), length=3)
      Array([1, 2, 0], dtype=int32)
    """
    x, aval = operand("bincount", x)
    if aval.dtype == bool:
        x = convert(x, python_scalar_dtype(int), False)
    elif not issubdtype(aval.dtype, np.integer):
        raise TypeError(
            f"x argument to bincount must have an integer type; got {aval.dtype}. Convert it with "
            ".astype(int)."
        )
    if aval.ndim != 1:
        raise ValueError(f"only 1-dimensional input supported by bincount: got shape {aval.shape}")
    minlength = operator.index(minlength)
    if length is not None:
        length = concrete_or_error(operator.index, length, "It is the length of jnp.bincount.")
        if length < 0:
            raise TypeError(f"bincount: length must not be negative, got {length}")
    elif not aval.size:
        length = minlength
    else:
        values = host_value(
            x,
            "The shape of the result of bincount depends on the values of x. Give `length`, how "
            "many numbers to count.",
        )
        length = max(minlength, int(values.max()) + 1)
    requested_sharding = requested("bincount", out_sharding)
    if requested_sharding is not None and requested_sharding.spec.names():
        raise ShardingTypeError(
            f"bincount has counts that are split along no axis of the mesh: got {out_sharding} for "
            "`out_sharding`. Give P(), and reshard the result."
        )
    operands = (x,) if weights is None else (x, weights)

    def count(x: ArrayLike, weights: ArrayLike | None = None) -> Array:
        return _bincount(x, weights, length=max(length, 0))

    return with_sharding("bincount", count, operands, requested_sharding)


# ---- bins --------------------------------------------------------------------------------------


@operation_like(np.digitize, static_argnames=("right", "method"))
def digitize(
    x: ArrayLike,
    bins: ArrayLike | Sequence[ArrayLike],
    right: bool = False,
    *,
    method: str | None = None,
) -> Array:
    """Return the bin number of each element: i if it is between bins[i-1] and bins[i].

    Args:
      x: numbers.
      bins: the limits of the bins, an array of one axis that ascends or descends.
      right: whether a limit belongs to the bin before it, instead of the one after it.
      method: how to search: "scan" and "scan_unrolled" use bisection, "compare_all" compares with
        all limits, "sort" sorts numbers and limits together.

    Returns:
      An array of integers of the shape of `x`.

    Raises:
      ValueError: if `bins` does not have one axis, or the method is unknown.

    Example:
      >>> jnp.digitize(jnp.array([-1, 0, 5, 10]), jnp.array([0, 5, 10]))
      Array([0, 1, 2, 3], dtype=int32)
    """
    (x, bins), (aval, limits) = operands("digitize", (x, bins))
    if limits.ndim != 1:
        raise ValueError(
            f"digitize: bins must be a 1-dimensional array; got bins of shape {limits.shape}"
        )
    count = limits.shape[0]
    index = python_scalar_dtype(int)
    if not count:
        return creation.full(aval.shape, host_scalar(0, index))
    side = "left" if right else "right"
    options = {} if method is None else {"method": method}
    ascending = searchsorted(bins, x, side, **options)
    index = typeof(ascending).dtype
    descending = searchsorted(rev(bins, (0,)), x, side, **options)
    descending = elementwise.sub(host_scalar(count, index), descending)
    first, last = (index_in_dim(bins, i, 0, keepdims=False) for i in (0, count - 1))
    return choose("digitize", compare.ge(last, first), ascending, descending)
