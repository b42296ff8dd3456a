"""Replacements of zeta and polygamma on CPUs by formulas in float64.

XLA's code sums 10 powers, each by a scalar function of the C library, before Euler and Maclaurin's
series (DLMF 25.11.5). Here the power of the first number is in sums of two numbers, and those of
the others are divided by it, which needs fewer bits. The formulas are for nonnegative numbers.
"""

import math

import numpy as np

from hlofront.base.elements import float32, float64, int32
from hlofront.lowering.core.formulas import (
    Formula,
    clip,
    floor,
    parallel_polynomial,
    rounded,
    where,
)
from hlofront.lowering.cpu.elementwise import replaced_by_formula
from hlofront.lowering.cpu.float_bits import (
    filled_like,
    narrow,
    reciprocal,
    times_power_of_two,
    whole_power_of_two,
    wide,
)
from hlofront.lowering.cpu.powers_of_two import (
    binary_logarithm,
    in_powers_of_two,
    power_of_two,
    precise_logarithm,
    precise_power,
)
from hlofront.lowering.special.gamma_approximations import BERNOULLI
from hlofront.primitives.arrays.gathering import GatherDimensionNumbers, gather
from hlofront.primitives.arrays.shaping import expand_dims
from hlofront.primitives.elementwise import special as s
from hlofront.primitives.elementwise.converting import convert

# The numbers of powers and of terms of the series: errors are below 1e-9 and 1e-16.
_SINGLE_POWERS, _SINGLE_TERMS = 4, 7
_POWERS, _TERMS = 7, 12
# The greatest order whose factorial is finite.
_MAX_ORDER = 170

# The reciprocals of numbers outside may be infinite or subnormal.
_LEAST, _LIMIT = 1e-300, 1e300
# The powers of all numbers but 1 with greater exponents are zero or infinite.
_GREATEST = 2e19

# Interpolations at Chebyshev's points: log2(1 + x) / x from sqrt(1/2) - 1 to sqrt(2) - 1 with an
# error of 3e-17, and 2**x to 1/2 with one of 2e-17.
_LOGARITHM = [
    1.4426950408889634,
    -0.7213475204444822,
    0.4808983469629793,
    -0.3606737602218718,
    0.2885390081799428,
    -0.240449173549558,
    0.20609929137787664,
    -0.1803368743615282,
    0.16029945342821048,
    -0.14426976700975894,
    0.13115422276901945,
    -0.12021762501443926,
    0.11096631074823189,
    -0.1031564771346186,
    0.09643400946674259,
    -0.0893036861956003,
    0.08175306478371262,
    -0.08234343834443268,
    0.09414882662095735,
    -0.08546741793954375,
    0.03677416934714219,
]
_POWER = [
    1.0,
    0.6931471805599453,
    0.24022650695910158,
    0.055504108664821625,
    0.009618129107587256,
    0.001333355814640647,
    0.00015403530463724353,
    1.5252733841556773e-05,
    1.3215432535912375e-06,
    1.0178057087733941e-07,
    7.074194297288521e-09,
    4.4558179083360645e-10,
]


def _power_of_two(x: Formula) -> Formula:
    """Return 2**x for numbers from -1000 to 1000, with an error of about one unit."""
    whole = rounded(x)
    return times_power_of_two(parallel_polynomial(x - whole, _POWER), whole)


def _later_terms(order: Formula, inverse: Formula, terms: int) -> Formula:
    """Return the terms of the series after the first, over the power x**-order, from 1 / x on."""
    # Where products are greater, the power is negligible compared with those before it.
    product = clip(0, order * inverse, 1e6)
    total, factor = filled_like(order, 0.5, float64), product
    for k, number in enumerate(BERNOULLI[:terms], 1):
        total = total + factor * float(number / math.factorial(2 * k))
        factor = factor * ((product + inverse * (2 * k - 1)) * (product + inverse * (2 * k)))
    return total


def _zeta_of_float64(order: Formula, x: Formula) -> Formula:
    """Return zeta(order, x) for an order above 1 and positive x."""
    logarithm = precise_logarithm(x)
    # Powers that may be zero where the result is not are multiplied by a power of two.
    half = filled_like(x, 500, float64)
    more = where(order * logarithm.first > 500, where(x > 2.0**450, half + half, half), 0)
    scale = whole_power_of_two(-more)
    exponent = clip(-_GREATEST, -order, _GREATEST)
    first = precise_power(logarithm, exponent, more)

    # The other powers over the first: where they are small, errors of their exponents are too.
    near = clip(_LEAST, x, _LIMIT)
    inverse = reciprocal(near, 5)
    inverse = inverse + inverse * (1 - near * inverse)
    total = filled_like(x, 1, float64)
    for k in range(1, _POWERS):
        total = total + _power_of_two(clip(-1000, -(order * _log2_of_one_more(inverse * k)), 0))
    # The power in the series is that of the end of the sum, unless this is near the first number.
    is_small = x < 1
    quotient = _log2_of_one_more(inverse * _POWERS)
    of_end = (quotient + logarithm.rest) + logarithm.first
    product = where(is_small, (order - 1) * of_end, order * quotient)
    power = _power_of_two(clip(-1000, -product, 0))
    end = x + _POWERS
    inverse = reciprocal(clip(_LEAST, end, _LIMIT), 5)
    later = _later_terms(order, inverse, _TERMS)
    later = power * (end * scale / (order - 1) + later * scale)
    total = total * scale
    return where(is_small, first * total + later * inverse, first * (total + later))


def _log2_of_one_more(x: Formula) -> Formula:
    """Return log2(1 + x) for positive x, with a relative error of about one unit."""
    exponent, fraction = in_powers_of_two(x + 1)
    fraction = where(exponent.equals(0), x, fraction)
    return exponent + fraction * parallel_polynomial(fraction, _LOGARITHM)


def _zeta_of_float32(order: Formula, x: Formula) -> Formula:
    """Return zeta(order, x) in float64 for an order above 1 and positive x of float32."""
    exponents = [order * binary_logarithm(x + k if k else x) for k in range(_SINGLE_POWERS + 1)]
    *powers, last = (power_of_two(clip(-1000, -exponent, 1000)) for exponent in exponents)
    end = x + _SINGLE_POWERS
    later = _later_terms(order, reciprocal(end), _SINGLE_TERMS)
    result = sum(powers, last * (end / (order - 1) + later))
    return where(exponents[0] > 1000, 0, result)


def _zeta(order: Formula, x: Formula) -> Formula:
    """Return zeta(order, x) of nonnegative x in float64; NaN if the order is less than 1."""
    is_narrow = x.dtype == float32
    if is_narrow:
        order, x = wide(order), wide(x)
    result = _zeta_of_float32(order, x) if is_narrow else _zeta_of_float64(order, x)
    half = order * 0.5
    pole = where(floor(half).equals(half), filled_like(x, np.inf, float64), np.nan)
    result = where(x.equals(0), pole, where(x < np.inf, result, 0))
    result = where(x.equals(x), result, np.nan)
    other = where(order.equals(1), filled_like(x, np.inf, float64), np.nan)
    return where((order > 1) & (order < np.inf), result, other)


# ---- rules ---------------------------------------------------------------------------------------


def _is_negative(order: Formula, x: Formula) -> Formula:
    return x < 0


def _is_negative_or_digamma(order: Formula, x: Formula) -> Formula:
    return (x < 0) | order.equals(0)


def _zeta_of_dtype(order: Formula, x: Formula) -> Formula:
    return _as_dtype_of(x, _zeta(order, x))


def _polygamma(order: Formula, x: Formula) -> Formula:
    return _as_dtype_of(x, _zeta(order + 1, x) * _factor(order))


def _as_dtype_of(x: Formula, result: Formula) -> Formula:
    return narrow(result) if x.dtype == float32 else result


def _factor(order: Formula) -> Formula:
    """Return the quotient of polygamma(order, x) and zeta(order + 1, x); NaN if there is none."""
    order = wide(order) if order.dtype == float32 else order
    factorials = [*(float(math.factorial(k)) for k in range(_MAX_ORDER + 1)), math.inf]
    index = convert(clip(0, order, _MAX_ORDER + 1).value, int32, False)
    dimensions = GatherDimensionNumbers((), collapsed_slice_dims=(0,), start_index_map=(0,))
    indices = expand_dims(index, (index.ndim,))
    result = Formula(gather(np.array(factorials), indices, dimensions, (1,), mode="clip"))
    half = order * 0.5
    result = where(floor(half).equals(half), -result, result)
    return where((order >= 0) & floor(order).equals(order), result, np.nan)


for _dtype in (float32, float64):
    replaced_by_formula(s.zeta_p, _dtype, _is_negative)(_zeta_of_dtype)
    replaced_by_formula(s.polygamma_p, _dtype, _is_negative_or_digamma)(_polygamma)
