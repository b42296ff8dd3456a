"""Functions over whole axes: softmax, logsumexp and standardize."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

import hlofront.numpy as jnp
from hlofront.base.config import softmax_custom_jvp
from hlofront.base.dtypes import issubdtype
from hlofront.base.typing import Array, ArrayLike, Axes
from hlofront.core.aval import typeof
from hlofront.higher_order.custom_rules.custom_jvp import custom_jvp
from hlofront.numpy.statistics.moments import count_over
from hlofront.numpy.statistics.reductions import reduced_axes, split_names
from hlofront.numpy.support.promotion import check_arraylike, promote_args_inexact
from hlofront.primitives.elementwise import elementwise
from hlofront.primitives.elementwise.converting import convert, stop_gradient
from hlofront.primitives.elementwise.weak_types import times_one
from hlofront.runtime.dispatch.operation import operation


def _masked(x: Array, where: ArrayLike | None, value: float) -> Array:
    return x if where is None else jnp.where(where, x, value)


def _shifted(x: Array, axis: Axes, where: ArrayLike | None) -> Array:
    """Subtract the maximum over axes from x, so that no exponential overflows."""
    x = _masked(x, where, -math.inf)
    # The result does not depend on the subtracted value, so it is not differentiated.
    least = -math.inf
    return x - jnp.max(stop_gradient(x), axis=axis, keepdims=True, initial=least)


def _softmax_program(x: Array, axis: Axes, where: ArrayLike | None) -> Array:
    exponentials = jnp.exp(_shifted(x, axis, where))
    total = jnp.sum(exponentials, axis=axis, keepdims=True)
    # If everything is masked, the shifted values are NaN, and so is their sum.
    return _masked(exponentials / total, where, 0)


def _softmax_by_rule(x: Array, axis: Axes, where: ArrayLike | None) -> Array:
    @custom_jvp
    def softmax(x: Array, where: ArrayLike | None) -> Array:
        return _softmax_program(x, axis, where)

    @softmax.defjvp
    def _(
        primals: tuple[Array, Array | None], tangents: tuple[Array, Array | None]
    ) -> tuple[Array, Array]:
        result = softmax(*primals)
        weighted = result * tangents[0]
        return result, weighted - result * jnp.sum(weighted, axis=axis, keepdims=True)

    return softmax(x, where)


@operation(static_argnames=("axis",))
def softmax(x: ArrayLike, axis: Axes = -1, where: ArrayLike | None = None) -> Array:
    """Compute the softmax over axes: exp(x) / sum(exp(x)).

    Args:
      x: an array.
      axis: an axis, a sequence of axes, or None for all axes.
      where: booleans that broadcast to the shape of `x`: the elements to include; the result
        is 0 for the others.

    Returns:
      An array with the shape of `x`; floating-point for integers.

    Raises:
      TypeError: if `x` is not an array, or is boolean.
      ValueError: if an axis is out of range, or `where` is not boolean.

    Example:
      >>> jax.nn.softmax(jnp.array([0.0, 1.0, 2.0]))
      Array([0.09003057, 0.24472848, 0.66524094], dtype=float32)
    """
    check_arraylike("softmax", x)
    _check_where("softmax", where)
    # With jax_softmax_custom_jvp the derivative is a rule that saves only the result.
    if softmax_custom_jvp.value:
        return _softmax_by_rule(x, axis, where)
    return _softmax_program(x, axis, where)


@operation(static_argnames=("axis",))
def log_softmax(x: ArrayLike, axis: Axes = -1, where: ArrayLike | None = None) -> Array:
    """Compute the logarithm of `softmax` without overflow.

    Args:
      x: an array.
      axis: an axis, a sequence of axes, or None for all axes.
      where: booleans that broadcast to the shape of `x`: the elements to include; the result
        is minus infinity for the others.

    Returns:
      An array with the shape of `x`; floating-point for integers.

    Raises:
      TypeError: if `x` is not an array, or is boolean.
      ValueError: if an axis is out of range, or `where` is not boolean.

    Example:
      >>> jax.nn.log_softmax(jnp.array([0.0, 1000.0]))
      Array([-1000.,     0.], dtype=float32)
    """
    check_arraylike("log_softmax", x)
    _check_where("log_softmax", where)
    shifted = _shifted(x, axis, where)
    total = jnp.sum(jnp.exp(shifted), axis=axis, keepdims=True)
    return _masked(shifted - jnp.log(total), where, -math.inf)


def _check_where(name: str, where: ArrayLike | None) -> None:
    if where is not None and typeof(where).dtype != np.bool_:
        raise ValueError(
            f"{name}: where must be None or a boolean array; got where.dtype="
            f"{typeof(where).dtype!r}. Compare first: where != 0."
        )


# ---- logarithms of sums of exponentials ----------------------------------------------------------


def _log_sum_exp(
    a: ArrayLike,
    axis: Axes,
    b: ArrayLike | None,
    keepdims: bool,
    return_sign: bool,
    where: ArrayLike | None,
) -> tuple[Array, Array | None]:
    """Return the logarithm of the modulus of the sum, and its sign; or of the sum, and None."""
    _check_where("logsumexp", where)
    if b is None:
        (a,) = promote_args_inexact("logsumexp", a)
        counted = where
    else:
        a, b = promote_args_inexact("logsumexp", a, b)
        counted = b != 0
        if where is not None:
            counted = jnp.logical_and(counted, where)
    numeric, names = split_names(axis)
    axes = reduced_axes(numeric, max(typeof(a).ndim, typeof(b).ndim if b is not None else 0))
    axis = axis if names else axes
    a = _masked(a, counted, -math.inf)
    complex_ = issubdtype(typeof(a).dtype, np.complexfloating)
    fixed = stop_gradient(a)
    greatest = jnp.max(jnp.real(fixed) if complex_ else fixed, axis=axis, initial=-math.inf)
    # Infinity minus infinity is NaN, so nothing is subtracted there. The maxima get back the axes
    # of `a` only now: XLA for TPUs keeps a single number in registers, but arrays of one in memory.
    greatest = jnp.where(jnp.isfinite(greatest), greatest, 0.0)
    shift = jnp.expand_dims(greatest, axes)
    exponentials = jnp.exp(elementwise.sub(a, _like(shift, a)))
    if b is not None:
        exponentials = _masked(exponentials * times_one(b), where, 0)
    total = jnp.sum(exponentials, axis=axis, keepdims=keepdims)
    greatest = shift if keepdims else greatest
    if return_sign:
        size = total if b is None and not complex_ else jnp.abs(total)
        return jnp.log(size) + greatest, jnp.sign(total)
    return jnp.log(total) + _like(greatest, total), None


def _like(x: ArrayLike, other: Array) -> Array:
    """Convert a real array to the dtype of another array, which may be complex."""
    aval = typeof(other)
    return convert(x, aval.dtype, False) if typeof(x).dtype != aval.dtype else x


@operation(static_argnames=("axis", "keepdims", "return_sign"))
def logsumexp(
    a: ArrayLike,
    axis: Axes = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Array | tuple[Array, Array]:
    """Compute the logarithm of a sum of exponentials without overflow: log(sum(b * exp(a))).

    Args:
      a: an array.
      axis: an axis, a sequence of axes, or None for all axes.
      b: a factor of each exponential.
      keepdims: whether to keep the reduced axes, with size 1.
      return_sign: whether to return the logarithm of the sum's modulus, and its sign. Otherwise the
        logarithm of a negative sum is NaN.
      where: booleans that broadcast to the shape of `a`: the elements to include.

    Returns:
      A floating-point or complex array; two of them with `return_sign`.

    Raises:
      TypeError: if an operand is not an array.
      ValueError: if an axis is out of range, or `where` is not boolean.

    Example:
      >>> jax.nn.logsumexp(jnp.array([1000.0, 1000.0]))
      Array(1000.6932, dtype=float32)
    """
    result, sign = _log_sum_exp(a, axis, b, keepdims, return_sign, where)
    return (result, sign) if return_sign else result


@operation(static_argnames=("axis", "keepdims"))
def logmeanexp(
    x: ArrayLike, axis: Axes = None, where: ArrayLike | None = None, keepdims: bool = False
) -> Array:
    """Compute the logarithm of the mean of exponentials over axes, without overflow.

    Args:
      x: an array.
      axis: an axis, a sequence of axes, or None for all axes.
      where: booleans that broadcast to the shape of `x`: the elements to include.
      keepdims: whether to keep the reduced axes, with size 1.

    Returns:
      A floating-point or complex array.

    Raises:
      TypeError: if `x` is not an array.
      ValueError: if an axis is out of range, or `where` is not boolean.

    Example:
      >>> jax.nn.logmeanexp(jnp.array([1000.0, 1000.0])).round()
      Array(1000., dtype=float32)
    """
    result, _ = _log_sum_exp(x, axis, None, keepdims, False, where)
    aval, dtype = typeof(x), typeof(result).dtype
    count = count_over(aval, reduced_axes(axis, aval.ndim), dtype, keepdims, where)
    if where is None:
        count = np.asarray(count, dtype)
        # The mean of no elements is -inf, without a warning.
        with np.errstate(divide="ignore"):
            return result - np.log(count)
    return result - jnp.log(count)


# ---- standardized --------------------------------------------------------------------------------


@operation(static_argnames=("axis", "algorithm"))
def standardize(
    x: ArrayLike,
    axis: int | Sequence[int] = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """Subtract the mean of x over axes, and divide by the standard deviation.

    Args:
      x: an array.
      axis: an axis, a sequence of axes, or None for all axes.
      mean: the mean, if already known.
      variance: the variance, if already known.
      epsilon: a number added to the variance, to avoid a division by zero.
      where: booleans that broadcast to the shape of `x`: the elements to include in the
        mean and the variance.
      algorithm: the formula of the variance: "fast", the mean of the squares minus the squared
        mean; or "stable", the mean of the squared deviations, which does not cancel.

    Returns:
      An array with the shape of `x`; floating-point for integers.

    Raises:
      TypeError: if `x` is not an array.
      ValueError: if the algorithm is unknown, or an axis is out of range.

    Example:
      >>> jax.nn.standardize(jnp.array([[1.0, 3.0], [10.0, 30.0]])).round(3)
      Array([[-1.,  1.],
             [-1.,  1.]], dtype=float32)
    """
    check_arraylike("standardize", x)
    check_arraylike("standardize", mean, variance, empty_is_none=True)
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"Unknown algorithm {algorithm!r}. Expected 'fast' or 'stable'.")
    if isinstance(axis, int) and not -typeof(x).ndim <= axis < typeof(x).ndim:
        # JAX raises a ValueError here; AxisError is a subclass.
        raise np.exceptions.AxisError(axis, typeof(x).ndim)
    if mean is None:
        mean = jnp.mean(x, axis, keepdims=True, where=where)
    if variance is None:
        if algorithm == "fast":
            squares = jnp.mean(jnp.square(x), axis, keepdims=True, where=where)
            # Rounding can make it negative.
            variance = jnp.maximum(squares - jnp.square(mean), 0)
        else:
            distances = jnp.subtract(x, mean)
            variance = jnp.mean(jnp.square(distances), axis, keepdims=True, where=where)
    (variance,) = promote_args_inexact("standardize", variance)
    return jnp.subtract(x, mean) * elementwise.rsqrt(variance + epsilon)
