"""Activation functions, elementwise except glu, and one-hot vectors."""

from __future__ import annotations

import math
import operator
from collections.abc import Hashable
from typing import SupportsIndex

import numpy as np

import hlofront.numpy as jnp
from hlofront.base import source
from hlofront.base.dtypes import check_user_dtype_supported
from hlofront.base.errors import ConcretizationTypeError
from hlofront.base.typing import Array, ArrayLike, DTypeLike
from hlofront.core.aval import typeof
from hlofront.core.sizes.dimensions import as_size, canonical_axis
from hlofront.core.trace import Tracer
from hlofront.higher_order.custom_rules.custom_jvp import as_custom_jvp, custom_jvp
from hlofront.numpy.support.annotations import OutSharding
from hlofront.numpy.support.promotion import check_arraylike, promote_args_inexact
from hlofront.primitives.arrays import creation
from hlofront.primitives.collectives.collectives import axis_index, axis_size
from hlofront.primitives.elementwise import elementwise
from hlofront.primitives.elementwise.converting import as_array_of_trace, convert
from hlofront.primitives.elementwise.special import erfc
from hlofront.primitives.sharding.resharding import reshard
from hlofront.runtime.dispatch.operation import operation

# ---- rectifiers ----------------------------------------------------------------------------------


@custom_jvp
def _relu(x: Array) -> Array:
    return jnp.maximum(x, 0)


# The derivative at 0 is 0; that of `maximum` would be 1/2.
_relu.defjvps(lambda tangent, result, x: jnp.where(x > 0, tangent, 0))


@as_custom_jvp
@operation
def relu(x: ArrayLike) -> Array:
    """Return the maximum of x and 0, elementwise. Its derivative at 0 is 0.

    Args:
      x: an array.

    Returns:
      An array with the shape and dtype of `x`; integer for booleans.

    Example:
      >>> jax.nn.relu(jnp.array([-1.0, 0.0, 2.0]))
      Array([0., 0., 2.], dtype=float32)
      >>> jax.grad(jax.nn.relu)(0.0)
      Array(0., dtype=float32, weak_type=True)
    """
    check_arraylike("relu", x)
    return _relu(x)


@custom_jvp
def _relu6(x: Array) -> Array:
    return jnp.minimum(jnp.maximum(x, 0), 6.0)


_relu6.defjvps(
    lambda tangent, result, x: jnp.where(jnp.logical_and(x > 0, x < 6), tangent, 0),
)


@as_custom_jvp
@operation
def relu6(x: ArrayLike) -> Array:
    """Clip x to [0, 6]: min(max(x, 0), 6). The derivatives at 0 and 6 are 0.

    Args:
      x: an array.

    Returns:
      An array with the shape of `x`; floating-point for integers.

    Example:
      >>> jax.nn.relu6(jnp.array([-1.0, 3.0, 9.0]))
      Array([0., 3., 6.], dtype=float32)
    """
    check_arraylike("relu6", x)
    return _relu6(x)


@operation
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """Return x where it is positive, else `negative_slope` times x.

    Args:
      x: an array.
      negative_slope: an array or a number.

    Returns:
      An array with the broadcast shape; floating-point for integers.

    Example:
      >>> jax.nn.leaky_relu(jnp.array([-2.0, 2.0]), negative_slope=0.5)
      Array([-1.,  2.], dtype=float32)
    """
    check_arraylike("leaky_relu", x, negative_slope)
    return jnp.where(jnp.greater_equal(x, 0), x, jnp.multiply(negative_slope, x))


@operation
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Compute the exponential linear unit: x if positive, else alpha * (exp(x) - 1).

    Args:
      x: an array.
      alpha: an array or a number.

    Returns:
      An array with the broadcast shape; floating-point for integers.

    Example:
      >>> jax.nn.elu(jnp.array([-1000.0, 2.0]), alpha=0.5)
      Array([-0.5,  2. ], dtype=float32)
    """
    check_arraylike("elu", x, alpha)
    positive = jnp.greater(x, 0)
    # The exponential must not overflow where it is not selected, or its derivative is NaN.
    curved = jnp.multiply(alpha, jnp.expm1(jnp.where(positive, 0.0, x)))
    return jnp.where(positive, x, curved)


@operation
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Compute the continuously differentiable ELU: max(x, 0) + alpha * expm1(min(x, 0) / alpha).

    Args:
      x: an array.
      alpha: an array or a number.

    Returns:
      An array with the broadcast shape; floating-point for integers.

    Example:
      >>> jax.nn.celu(jnp.array([-1000.0, 2.0]), alpha=0.5)
      Array([-0.5,  2. ], dtype=float32)
    """
    check_arraylike("celu", x, alpha)
    below = jnp.divide(jnp.minimum(x, 0.0), alpha)
    return jnp.maximum(x, 0.0) + jnp.multiply(alpha, jnp.expm1(below))


# The constants of Klambauer et al., Self-Normalizing Neural Networks (2017), in double precision.
_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


@operation
def selu(x: ArrayLike) -> Array:
    """Compute an ELU scaled to preserve mean 0 and variance 1: Klambauer et al. (2017).

    Args:
      x: an array.

    Returns:
      An array with the shape of `x`; floating-point for integers.
    """
    check_arraylike("selu", x)
    return jnp.multiply(_SELU_SCALE, elu(x, _SELU_ALPHA))


# ---- smooth functions ----------------------------------------------------------------------------


@operation(static_argnames=("approximate",))
def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """Compute the Gaussian error linear unit, x * P(N(0, 1) < x): Hendrycks and Gimpel (2016).

    Args:
      x: an array.
      approximate: whether to use the tanh approximation rather than the error function.

    Returns:
      An array with the shape of `x`; floating-point for integers.

    Example:
      >>> jax.nn.gelu(jnp.array([-1.0, 0.0, 2.0]))
      Array([-0.15880796,  0.        ,  1.9545977 ], dtype=float32)
    """
    (x,) = promote_args_inexact("gelu", x)
    dtype = typeof(x).dtype.type
    if approximate:
        inner = dtype(math.sqrt(2 / math.pi)) * (x + 0.044715 * x**3)
        return x * (0.5 * (1.0 + jnp.tanh(inner)))
    return 0.5 * x * erfc(x * dtype(-math.sqrt(0.5)))


@operation
def sigmoid(x: ArrayLike) -> Array:
    """Compute the logistic function: 1 / (1 + exp(-x)).

    Args:
      x: a floating-point or complex array.

    Returns:
      An array with the shape and dtype of `x`.

    Raises:
      TypeError: if `x` is integer or boolean.

    Example:
      >>> jax.nn.sigmoid(jnp.array([-1.0, 0.0, 1.0]))
      Array([0.26894143, 0.5       , 0.7310586 ], dtype=float32)
    """
    check_arraylike("sigmoid", x)
    return elementwise.logistic(x)


@operation
def silu(x: ArrayLike) -> Array:
    """Return x times its sigmoid, which is also called swish.

    Args:
      x: a floating-point or complex array.

    Returns:
      An array with the shape and dtype of `x`.

    Raises:
      TypeError: if `x` is integer or boolean.

    Example:
      >>> jax.nn.silu(jnp.array([0.0, 1000.0]))
      Array([   0., 1000.], dtype=float32)
    """
    check_arraylike("silu", x)
    return jnp.multiply(x, elementwise.logistic(x))


swish = silu


@operation
def softplus(x: ArrayLike) -> Array:
    """Compute log(1 + exp(x)) elementwise without overflow.

    Args:
      x: an array.

    Returns:
      An array with the shape of `x`; floating-point for integers.

    Example:
      >>> jax.nn.softplus(jnp.array([-1000.0, 1000.0])).round()
      Array([   0., 1000.], dtype=float32)
    """
    check_arraylike("softplus", x)
    aval = typeof(x)
    if aval.dtype.kind in "iu" and not aval.weak_type:
        # Convert integers to floats first, so that the weak zero does not make the result weak.
        (x,) = promote_args_inexact("softplus", x)
    return jnp.logaddexp(x, 0.0)


@operation
def log_sigmoid(x: ArrayLike) -> Array:
    """Compute the logarithm of the sigmoid, -log(1 + exp(-x)), without overflow.

    Args:
      x: an array.

    Returns:
      An array with the shape of `x`; floating-point for integers.

    Example:
      >>> jax.nn.log_sigmoid(jnp.array([-1000.0])).round()
      Array([-1000.], dtype=float32)
    """
    check_arraylike("log_sigmoid", x)
    return -softplus(jnp.negative(x))


@operation
def mish(x: ArrayLike) -> Array:
    """Compute x * tanh(softplus(x)): Misra (2019).

    Args:
      x: an array.

    Returns:
      An array with the shape of `x`; floating-point for integers.
    """
    check_arraylike("mish", x)
    return jnp.multiply(x, jnp.tanh(softplus(x)))


@operation
def soft_sign(x: ArrayLike) -> Array:
    """Compute x / (1 + abs(x)).

    Args:
      x: an array.

    Returns:
      An array with the shape of `x`; floating-point for integers.

    Example:
      >>> jax.nn.soft_sign(jnp.array([-3.0, 0.0, 3.0]))
      Array([-0.75,  0.  ,  0.75], dtype=float32)
    """
    check_arraylike("soft_sign", x)
    return jnp.divide(x, jnp.abs(x) + 1)


@operation
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """Compute (x + sqrt(x * x + b)) / 2, an algebraic variant of softplus: Barron (2021).

    Args:
      x: an array.
      b: the smoothness of the bend at 0: an array or a number.

    Returns:
      An array with the broadcast shape; floating-point for integers.

    Example:
      >>> jax.nn.squareplus(jnp.array([-3.0, 0.0]), b=16)
      Array([1., 2.], dtype=float32)
    """
    check_arraylike("squareplus", x, b)
    return jnp.divide(x + jnp.sqrt(jnp.square(x) + b), 2)


@custom_jvp
def _log1mexp(x: Array) -> Array:
    # Maechler recommends this threshold: each form is accurate on its side of log(2).
    near = jnp.log(-jnp.expm1(-x))
    far = jnp.log1p(-jnp.exp(-x))
    return jnp.where(x < math.log(2), near, far)


# Simpler than the derivative of the two forms, and finite wherever it should be.
_log1mexp.defjvps(lambda tangent, result, x: jnp.divide(tangent, jnp.expm1(x)))


@as_custom_jvp
@operation
def log1mexp(x: ArrayLike) -> Array:
    """Compute log(1 - exp(-x)), accurate for small and large x.

    See Maechler, Accurately Computing log(1 - exp(-a)).

    Args:
      x: an array of positive numbers.

    Returns:
      An array with the shape of `x`; NaN where `x` is negative.

    Raises:
      TypeError: if `x` is boolean.

    Example:
      >>> jax.nn.log1mexp(jnp.array([1e-10])).round()
      Array([-23.], dtype=float32)
    """
    check_arraylike("log1mexp", x)
    return _log1mexp(x)


# ---- piecewise functions -------------------------------------------------------------------------


@operation
def hard_tanh(x: ArrayLike) -> Array:
    """Clip x to [-1, 1].

    Args:
      x: an array.

    Returns:
      An array with the shape and dtype of `x`; integer for booleans.

    Example:
      >>> jax.nn.hard_tanh(jnp.array([-2, 0.5, 2]))
      Array([-1. ,  0.5,  1. ], dtype=float32)
    """
    check_arraylike("hard_tanh", x)
    return jnp.where(jnp.greater(x, 1), 1, jnp.where(jnp.less(x, -1), -1, x))


@operation
def hard_sigmoid(x: ArrayLike) -> Array:
    """Compute relu6(x + 3) / 6.

    Args:
      x: an array.

    Returns:
      An array with the shape of `x`; floating-point for integers.

    Example:
      >>> jax.nn.hard_sigmoid(jnp.array([-4.0, 0.0, 4.0]))
      Array([0. , 0.5, 1. ], dtype=float32)
    """
    check_arraylike("hard_sigmoid", x)
    return _relu6(jnp.add(x, 3.0)) / 6.0


@operation
def hard_silu(x: ArrayLike) -> Array:
    """Compute x * hard_sigmoid(x), which is also called hard_swish.

    Args:
      x: an array.

    Returns:
      An array with the shape of `x`; floating-point for integers.

    Example:
      >>> jax.nn.hard_silu(jnp.array([-1.5, 0.0, 4.0]))
      Array([-0.375,  0.   ,  4.   ], dtype=float32)
    """
    check_arraylike("hard_silu", x)
    return jnp.multiply(x, hard_sigmoid(x))


hard_swish = hard_silu


@operation
def sparse_plus(x: ArrayLike) -> Array:
    """Return 0 for x <= -1, x for x >= 1, and (x + 1)**2 / 4 between: Martins and Astudillo (2016).

    Args:
      x: an array.

    Returns:
      An array with the shape of `x`; floating-point for integers.

    Example:
      >>> jax.nn.sparse_plus(jnp.array([-2.0, 0.0, 2.0]))
      Array([0.  , 0.25, 2.  ], dtype=float32)
    """
    check_arraylike("sparse_plus", x)
    above = jnp.add(x, 1.0)
    bend = above * above / 4
    # The bounds are floats: as an unsigned integer, -1 would be the largest one.
    return jnp.where(jnp.less_equal(x, -1.0), 0.0, jnp.where(jnp.greater_equal(x, 1.0), x, bend))


@operation
def sparse_sigmoid(x: ArrayLike) -> Array:
    """Return the derivative of sparse_plus: 0 for x <= -1, 1 for x >= 1, and linear between.

    Args:
      x: an array.

    Returns:
      An array with the shape of `x`; floating-point for integers.

    Raises:
      ValueError: if `x` is complex.

    Example:
      >>> jax.nn.sparse_sigmoid(jnp.array([-2.0, 0.0, 2.0]))
      Array([0. , 0.5, 1. ], dtype=float32)
    """
    check_arraylike("sparse_sigmoid", x)
    return 0.5 * jnp.clip(jnp.add(x, 1.0), 0.0, 2.0)


# ---- other functions -----------------------------------------------------------------------------


@operation
def identity(x: ArrayLike) -> Array:
    """Return x as an array, unchanged.

    Args:
      x: an array.

    Returns:
      An array with the values of `x`.
    """
    check_arraylike("identity", x)
    return as_array_of_trace(x)


@operation(static_argnames=("axis",))
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """Multiply the first half of x by the sigmoid of the second half: Dauphin et al. (2017).

    Args:
      x: a floating-point or complex array, of even size along the axis.
      axis: the axis to halve.

    Returns:
      An array with half as many elements along the axis.

    Raises:
      IndexError: if the axis is out of range.
      AssertionError: if its size is odd.
      TypeError: if `x` is integer or boolean.

    Example:
      >>> jax.nn.glu(jnp.array([[2.0, 4.0, 0.0, 0.0]]))
      Array([[1., 2.]], dtype=float32)
    """
    check_arraylike("glu", x)
    size = typeof(x).shape[axis]
    if size % 2:
        raise AssertionError(f"axis size must be divisible by 2, got {size} along axis {axis}")
    first, second = jnp.split(x, 2, axis)
    return first * elementwise.logistic(second)


@operation(static_argnames=("num_classes", "dtype", "axis"))
def _one_hot(x: ArrayLike, num_classes: int, dtype: np.dtype, axis: int) -> Array:
    aval = typeof(x)
    axis = canonical_axis(axis, aval.ndim + 1)
    shape = tuple([num_classes if i == axis else 1 for i in range(aval.ndim + 1)])
    classes = creation.broadcasted_iota(aval.dtype, shape, axis)
    return convert(jnp.equal(jnp.expand_dims(x, axis), classes), dtype, False)


def one_hot(
    x: ArrayLike,
    num_classes: int,
    *,
    dtype: DTypeLike | None = None,
    axis: int | Hashable = -1,
    out_sharding: OutSharding = None,
) -> Array:
    """Return one-hot vectors of indices: 1 at the index of each element of x, and 0 elsewhere.

    An index out of range results in a vector of zeros.

    Args:
      x: an array of integers, or a list of them.
      num_classes: the size of the new axis.
      dtype: the dtype of the result; None is the default floating-point dtype.
      axis: the position of the new axis; or the name of a mapped axis of size `num_classes`, or
        a tuple of names, along which the vectors are split.
      out_sharding: how the result is split over a mesh; None to leave it to `x`.

    Returns:
      An array with one more axis than `x`; with a named axis, an array with the shape of `x`.

    Raises:
      TypeError: if `num_classes` is not an integer, or `x` is boolean.
      ConcretizationTypeError: if `num_classes` is a tracer.
      ValueError: if the axis is out of range, or the named axis has another size.
      NameError: if no axis of the name is in scope.

    Example:
      >>> jax.nn.one_hot(jnp.array([0, 2]), 3)
      Array([[1., 0., 0.],
             [0., 0., 1.]], dtype=float32)
    """
    if isinstance(num_classes, Tracer):
        raise ConcretizationTypeError(
            num_classes,
            "The error arose in jax.nn.one_hot argument `num_classes`: the shape of the result "
            "depends on it. Give a Python integer, or name it in static_argnums of jit.",
        )
    count = as_size(num_classes)
    dtype = check_user_dtype_supported(dtype, "one_hot")
    x = jnp.asarray(x)
    if not jnp.issubdtype(x.dtype, jnp.integer) and x.dtype != jnp.bool_:
        source.warn(
            f"jax.nn.one_hot input should be integer-typed; got dtype={x.dtype}, which will be an "
            "error: convert it with .astype(int).",
            DeprecationWarning,
        )
    if isinstance(axis, SupportsIndex):
        vectors = _one_hot(x, count, dtype, operator.index(axis))
        return vectors if out_sharding is None else reshard(vectors, out_sharding)
    size = axis_size(axis)
    if size != count:
        raise ValueError(
            f"Expected num_classes to match the size of axis {axis}, but {count} != {size}"
        )
    vectors = convert(jnp.equal(x, axis_index(axis)), dtype, False)
    return vectors if out_sharding is None else reshard(vectors, out_sharding)
