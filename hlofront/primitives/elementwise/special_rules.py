"""Derivatives of random_gamma_grad, itself the derivative of gamma samples, by differences."""

from collections.abc import Callable

import numpy as np

from hlofront.base.dtypes import bit_width, finfo
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.primitives.arrays.creation import constant_like, scalar_like
from hlofront.primitives.arrays.reducing import reduce_sum
from hlofront.primitives.arrays.shaping import broadcast_in_dim, squeeze
from hlofront.primitives.arrays.slicing import slice_in_dim
from hlofront.primitives.elementwise.compare import eq, select_n
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import div, log, mul, sub
from hlofront.primitives.elementwise.special import digamma, random_gamma_grad, random_gamma_grad_p
from hlofront.primitives.rules.derivatives import derivative

# Central differences of sixth order: the steps, and their weights.
_STEPS, _WEIGHTS = np.array([1, 2, 3]), np.array([45, -9, 1]) / 60


def _by_differences(t: ArrayLike, function: Callable[[ArrayLike], Array], x: ArrayLike) -> Array:
    """Return the tangent of a smooth elementwise function at x > 0, by finite differences.

    The central differences are of sixth order, with steps proportional to x, and lose one or two
    digits of the function's precision. The result is zero at x = 0. The function is called once, on
    an array of all points, of shape (2, 3, *x.shape), because a program with six loops, or 36 for
    the second derivative, would take long to compile.

    Args:
      t: the tangent of x.
      function: the elementwise function.
      x: the primal, of floats.
    """
    aval = typeof(x)
    # In narrow dtypes, rounding would leave few correct digits.
    dtype = max(aval.dtype, np.dtype(np.float32), key=bit_width)
    x = convert(x, dtype, aval.weak_type)
    fraction = 2.0 ** -(finfo(dtype).nmant // 5)
    shape = (2, 3, *aval.shape)
    scales = 1 + fraction * np.stack([_STEPS, -_STEPS])
    scales = broadcast_in_dim(scales.astype(dtype), shape, (0, 1))
    points = mul(broadcast_in_dim(x, shape, range(2, len(shape))), scales)
    values = function(points)
    above, below = (squeeze(slice_in_dim(values, k, k + 1), (0,)) for k in (0, 1))
    weights = (_WEIGHTS / fraction).astype(dtype)
    weights = broadcast_in_dim(weights, shape[1:], (0,))
    change = reduce_sum(mul(sub(above, below), weights), (0,))
    divisor = select_n(eq(x, scalar_like(x, 0)), x, constant_like(x, 1))
    return mul(t, convert(div(change, divisor), aval.dtype, aval.weak_type))


def _gamma_grad_at(points: ArrayLike, x: ArrayLike) -> Array:
    """Return random_gamma_grad(points, x), with x converted and broadcast to the points' type."""
    aval = typeof(points)
    x = convert(x, aval.dtype, typeof(x).weak_type)
    dimensions = range(len(aval.shape) - len(typeof(x).shape), len(aval.shape))
    return random_gamma_grad(points, broadcast_in_dim(x, aval.shape, dimensions))


def _sample_grad_by_sample(t: ArrayLike, a: ArrayLike, x: ArrayLike) -> Array:
    """Return the tangent of random_gamma_grad(a, x) from the tangent t of x; zero at x = 0.

    The rule differentiates random_gamma_grad as a quotient of derivatives of igamma.
    """
    is_zero = eq(x, scalar_like(x, 0))
    x = select_n(is_zero, x, constant_like(x, 1))
    growth = sub(div(sub(a, scalar_like(a, 1)), x), scalar_like(x, 1))
    slope = sub(sub(digamma(a), log(x)), mul(random_gamma_grad(a, x), growth))
    return mul(t, select_n(is_zero, slope, constant_like(slope, 0)))


derivative(
    random_gamma_grad_p,
    lambda t, a, x: _by_differences(t, lambda points: _gamma_grad_at(points, x), a),
    _sample_grad_by_sample,
)
