"""Samplers of the gamma and Poisson distributions without loops, for `method="approximate"`."""

from __future__ import annotations

import math

import numpy as np

from hlofront.base.dtypes import default_dtype, finfo
from hlofront.base.typing import Array, ArrayLike, DType, Shape
from hlofront.numpy.indexing.selecting import where
from hlofront.numpy.statistics import reductions
from hlofront.primitives.arrays.creation import full_like, iota
from hlofront.primitives.arrays.shaping import reshape
from hlofront.primitives.elementwise.compare import select
from hlofront.primitives.elementwise.converting import convert_element_type
from hlofront.primitives.elementwise.elementwise import (
    abs,
    ceil,
    exp,
    log,
    max,
    neg,
    rsqrt,
    sqrt,
)
from hlofront.primitives.elementwise.polynomials import polynomial
from hlofront.primitives.elementwise.special import erfc
from hlofront.random.arguments import broadcast_to_shape, in_dtype, parts
from hlofront.random.continuous import exponential, normal
from hlofront.runtime.dispatch.operation import operation


def checked_method(name: str, method: str) -> str:
    """Return a sampler's method; raise ValueError for unknown ones."""
    if method not in ("exact", "approximate"):
        raise ValueError(
            f"method argument to `{name}` must be one of {{'exact', 'approximate'}}, got {method!r}"
        )
    return method


# ---- gamma ---------------------------------------------------------------------------------------

# The quantile of a gamma distribution of a large shape parameter `a` is a times the cube of a
# series in x = z / sqrt(2 a) for a normal quantile z. Each row has the coefficients of a power of
# x, which are polynomials in 1 / (2 a): the numbers are those of JAX, of a fit for a >= 4.
_ROOT = (
    (1.0, -0.2237368, -0.01513904),
    (0.4713941, 0.02607083, -0.008986007),
    (0.0001348028, 0.01128186, 0.02277679),
    (-0.008553069, -0.01153761, -0.01323293),
    (0.00312558, 0.005169654, -0.006950356),
    (-0.0008426812, 0.00253001, 0.001060438),
    (9.780499e-05, -0.001450117, 0.001565326),
)
# Shape parameters are raised by this number, so that the series is good for all of them.
_RAISE = 4


@operation(static_argnames=("shape", "dtype", "log_space"), nested=True)
def gamma_approx(key: Array, a: ArrayLike, shape: Shape, dtype: DType, log_space: bool) -> Array:
    """Return gamma random numbers, or their logarithms, computed from five random numbers each.

    A number for a + 4 comes from a normal one, by a series for the quantile. As a number for `a` is
    one for a + 1 times u**(1 / a), with a uniform number u, four such factors lead back to `a`.
    """
    wide = dtype if dtype.itemsize >= 4 else np.dtype(np.float32)
    a = broadcast_to_shape(in_dtype(in_dtype(a, dtype), wide), shape)
    normal_key, factor_key = parts(key)
    raised = a + _RAISE
    twice = 2 * raised
    numbers = normal(normal_key, shape, wide)
    inverse, x = 1 / twice, numbers * rsqrt(twice)
    root = polynomial(x, [polynomial(inverse, row) for row in _ROOT])
    logs = log(raised) + 3 * log(max(root, full_like(root, finfo(wide).tiny)))
    steps = reshape(iota(wide, _RAISE), (_RAISE,) + (1,) * len(shape))
    log_factors = neg(exponential(factor_key, (_RAISE, *shape), wide)) / (a[None] + steps)
    logs = logs + reductions.sum(log_factors, axis=0)
    return convert_element_type(logs if log_space else exp(logs), dtype)


# ---- Poisson -------------------------------------------------------------------------------------

# Below this mean, terms of the distribution function are summed; their number bounds results.
_LARGE, _TERMS = 7, 19


@operation(static_argnames=("shape", "dtype"), nested=True)
def poisson_approx(key: Array, lam: ArrayLike, shape: Shape, dtype: DType) -> Array:
    """Return Poisson random numbers, each the quantile of one normal random number.

    Small means invert the distribution function, by its first terms. For large means, the
    expansion of Cornish and Fisher gives a quantile, which the normal approximation of Peizer and
    Pratt, "A Normal Approximation for Binomial, F, Beta, and Other Common, Related Tail
    Probabilities" (1968), corrects by one or two.
    """
    lam = broadcast_to_shape(in_dtype(lam, default_dtype("f")), shape)
    z = normal(key, shape, default_dtype("f"))
    counts = where(lam < _LARGE, _quantile_by_terms(lam, z), _quantile_by_expansion(lam, z))
    return convert_element_type(counts, dtype)


def _quantile_by_terms(lam: Array, z: Array) -> Array:
    probability = 0.5 * erfc(z * -math.sqrt(0.5))
    term = total = exp(neg(lam))
    count = _as_number(total < probability, lam)
    for k in range(1, _TERMS):
        term = term * (lam / k)
        total = total + term
        count = count + _as_number(total < probability, lam)
    return count


def _quantile_by_expansion(lam: Array, z: Array) -> Array:
    deviation = sqrt(lam)
    quantile = lam + deviation * z - 2 / 3 + z * z / 6 + z * (1 - z * z) / (72 * deviation)
    # The true quantile is at most one more than this number, and at least one less.
    k = ceil(quantile + 0.6)
    count = k + 1
    for candidate in (k, k - 1):
        count = count - _as_number(_normal_quantile(candidate, lam) >= z, lam)
    return max(count, full_like(count, 0))


def _normal_quantile(k: Array, lam: Array) -> Array:
    """Return the normal quantile whose probability is that of at most `k` events."""
    is_negative = k < 0
    k = max(k, full_like(k, 0))
    scale = sqrt((1 + _deviance((k + 0.5) / lam)) / lam)
    return where(is_negative, -np.inf, (k - lam + 2 / 3 + 0.02 / (k + 1)) * scale)


# The coefficients of the powers of y - 1.
_DEVIANCE_NEAR_1 = [0.0] + [2 * (-1) ** k / ((k + 1) * (k + 2)) for k in range(1, 10)]


def _deviance(y: Array) -> Array:
    """Return (1 - y**2 + 2 y log(y)) / (1 - y)**2, near 1 by its series in y - 1."""
    offset = y - 1
    is_near = abs(offset) < 0.25
    series = polynomial(offset, _DEVIANCE_NEAR_1)
    far = where(is_near, 2, y)
    offset = where(is_near, 1, offset)
    return select(is_near, series, (1 - far * far + 2 * far * log(far)) / (offset * offset))


def _as_number(condition: Array, like: Array) -> Array:
    return convert_element_type(condition, like.dtype)
