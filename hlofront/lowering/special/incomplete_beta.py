"""The regularized incomplete beta function, as a while loop of StableHLO.

Sources: the continued fraction of DLMF 8.17.22, by the modified Lentz method (Thompson and Barnett
1986), the series of DLMF 8.17.7, and for large parameters Temme's expansion, DLMF 8.18.9.
"""

import math
from math import inf, nan

import numpy as np

from hlofront.base.dtypes import finfo
from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge.mlir import Value
from hlofront.core.aval import ShapedArray
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.formulas import (
    Formula,
    clip,
    digamma,
    erfc,
    exp,
    expm1,
    log,
    log1p,
    polynomial,
    sqrt,
    where,
)
from hlofront.lowering.special.incomplete import (
    STIRLING,
    STIRLING_FROM,
    Step,
    deviance_of,
    iterate,
    lgamma1p,
    tolerance,
    traced,
)

# The number of steps grows with the root of the parameters; the expansion takes over before.
_STEPS = 5000
_TERMS = 200


class _Expansion(NamedTuple):
    """The parameter range of the expansion, and the eta range of its first function's series.

    Attributes:
      least: the least value of both parameters.
      border: the eta up to which the first function uses its own series, as a multiple of the least
        eta at which the next term would be significant.
    """

    least: float
    border: float


_EXPANSION = {
    np.dtype(np.float32): _Expansion(2e3, 0.03),
    np.dtype(np.float64): _Expansion(1e6, 1e-3),
}


class _Regions(NamedTuple):
    """Two masks: where the expansion is used, and where it or the continued fraction is."""

    expanded: Formula
    inside: Formula


def betainc(build: Builder, aval: ShapedArray, a: Value, b: Value, x: Value) -> Value:
    """Return the regularized incomplete beta function of a, b and x: arrays with this aval."""
    eps = tolerance(aval)
    tiny = float(finfo(aval.dtype).tiny)

    def prepare(a: Formula, b: Formula, x: Formula) -> list[Formula]:
        expanded, inside = _regions(a, b, x)
        by_fraction = inside & ~expanded & ~_is_nearly_one(a, b, x)
        mirrored = _is_mirrored(a, b, x)
        a, b, x = where(by_fraction, a, 1.0), where(by_fraction, b, 1.0), where(inside, x, 0.5)
        first, second = where(mirrored, b, a), where(mirrored, a, b)
        x = where(mirrored, 1 - x, x)
        return [first, second, where(by_fraction, x, 0.0)]

    a_, b_, x_ = traced(build, prepare, (a, b, x), aval)

    def advance(
        numerator: Formula, upper: Formula, lower: Formula, value: Formula
    ) -> tuple[Formula, Formula, Formula]:
        lower = _away_from_zero(1 + numerator * lower, tiny)
        upper = _away_from_zero(1 + numerator / upper, tiny)
        lower = 1 / lower
        change = upper * lower
        return upper, lower, value * where(abs(change - 1) > 0.26 * eps, change, 1.0)

    def step(
        m: Formula,
        a: Formula,
        b: Formula,
        x: Formula,
        upper: Formula,
        lower: Formula,
        value: Formula,
    ) -> Step:
        # Two steps of the fraction; divide first, so that large parameters do not overflow.
        odd = -((a + (m - 1)) / (a + (2 * m - 2))) * ((a + b + (m - 1)) / (a + (2 * m - 1))) * x
        upper, lower, value = advance(odd, upper, lower, value)
        even = (m / (a + (2 * m - 1))) * ((b - m) / (a + 2 * m)) * x
        upper, lower, value = advance(even, upper, lower, value)
        return Step((a, b, x, upper, lower, value), abs(upper * lower - 1) > eps)

    one = build.full(1, aval)
    state = (a_, b_, x_, one, build.full(0, aval), one)
    *_, fraction = iterate(build, step, state, aval, _STEPS)
    terms = _terms_of_nearly_one(build, aval, a, b, x)

    def finish(
        a: Formula, b: Formula, x: Formula, fraction: Formula, terms: Formula
    ) -> list[Formula]:
        expanded, inside = _regions(a, b, x)
        edges = _betainc_at_edges(a, b, x)
        a, b, x = where(inside, a, 1.0), where(inside, b, 1.0), where(inside, x, 0.5)
        mirrored = _is_mirrored(a, b, x)
        y = 1 - x
        # The difference of x and its mean a / (a + b), times a + b.
        offset = b * x - a * y
        total = a + b
        deviance = deviance_of(a, total * x, offset) + deviance_of(b, total * y, -offset)
        # x**a y**b / beta(a, b), over a or b.
        of_a, of_b, both = map(_gamma_share, (a, b, total))
        shares = where(
            mirrored,
            of_b.value / b * (of_a.value / both.value),
            of_a.value / a * (of_b.value / both.value),
        )
        logarithm = of_a.logarithm + of_b.logarithm - both.logarithm - deviance
        result = shares * exp(logarithm) / fraction
        result = where(mirrored, 1 - result, result)
        nearly_one = _is_nearly_one(a, b, x)
        rest = _rest_of_nearly_one(where(nearly_one, a, 1.0), where(nearly_one, b, 0.0), y, terms)
        result = where(nearly_one, rest, result)
        result = where(expanded, _expanded_betainc(a, b, offset, deviance), result)
        return [where(inside, clip(0.0, result, 1.0), edges)]

    return traced(build, finish, (a, b, x, fraction, terms), aval)[0]


def _regions(a: Formula, b: Formula, x: Formula) -> _Regions:
    inside = (a > 0) & (b > 0) & (x > 0) & (x < 1) & (a < inf) & (b < inf)
    least = _EXPANSION[a.dtype].least
    return _Regions(inside & (a > least) & (b > least), inside)


def _is_mirrored(a: Formula, b: Formula, x: Formula) -> Formula:
    """Return where to swap a and b: the fraction converges fast only on one side of the mean.

    Near x = 1 its terms cancel, so there it is used a little farther from the mean, with a and b
    swapped.
    """
    past_mean = x > (a + 1) / (a + b + 2)
    return past_mean | (((1 - x) * (a + b + 2) < 1.5 * (b + 1)) & (1 - x < 1e-3))


class _GammaShare(NamedTuple):
    """A value and a small logarithm with value * exp(logarithm) = a**a exp(-a) / gamma(a)."""

    value: Formula
    logarithm: Formula


def _gamma_share(a: Formula) -> _GammaShare:
    """Return a**a exp(-a) / gamma(a) as a factor and a logarithm that is small for small a."""
    is_large = a >= STIRLING_FROM
    inverse = 1 / where(is_large, a, STIRLING_FROM)
    small = where(is_large, 1.0, a)
    direct = small * log(small) - small - lgamma1p(small)
    logarithm = where(is_large, -inverse * polynomial(inverse * inverse, STIRLING), direct)
    return _GammaShare(where(is_large, sqrt(a * (0.5 / math.pi)), a), logarithm)


# The b below which the mirrored function is so close to 1 that subtracting it from 1 loses bits.
_BETA_SMALL = {np.dtype(np.float32): 0.05, np.dtype(np.float64): 2e-3}


def _is_nearly_one(a: Formula, b: Formula, x: Formula) -> Formula:
    """Return where to compute 1 minus the mirrored function directly."""
    is_small = (b > 0) & (b < _BETA_SMALL[a.dtype])
    return is_small & (a > 0) & (a < inf) & (x < 1) & _is_mirrored(a, b, x)


def _terms_of_nearly_one(build: Builder, aval: ShapedArray, a: Value, b: Value, x: Value) -> Value:
    """Return the sum of DLMF 8.17.7 without its first term, for the mirrored function, over b."""
    eps = tolerance(aval)

    def prepare(a: Formula, b: Formula, x: Formula) -> list[Formula]:
        used = _is_nearly_one(a, b, x)
        return [where(used, a, 1.0), where(used, b, 1.0), where(used, 1 - x, 0.0)]

    def step(
        n: Formula, a: Formula, b: Formula, y: Formula, power: Formula, total: Formula
    ) -> Step:
        power = power * ((n - a) / n * y)
        term = power / (b + n)
        return Step((a, b, y, power, total + term), abs(term) > abs(total) * eps)

    start = traced(build, prepare, (a, b, x), aval)
    state = (*start, build.full(1, aval), build.full(0, aval))
    *_, total = iterate(build, step, state, aval, _TERMS)
    return total


def _rest_of_nearly_one(a: Formula, b: Formula, y: Formula, terms: Formula) -> Formula:
    """Return 1 - betainc(b, a, y) for small b, to full precision."""
    # The difference of log(gamma) at 1 + a + b and 1 + a, by its derivatives at the midpoint.
    middle = 1 + a + b / 2
    end = middle + 4
    third = -1 / (end * end) * (1 + (1 + 0.5 / end) / end)
    for k in range(4):
        inverse = 1 / (middle + k)
        third = third - 2 * (inverse * inverse * inverse)
    growth = b * (digamma(middle) + b * b / 24 * third) - log1p(b / a)
    logarithm = b * log(y) - lgamma1p(b) + growth
    return -expm1(logarithm) - exp(logarithm) * b * terms


def _expanded_betainc(a: Formula, b: Formula, offset: Formula, deviance: Formula) -> Formula:
    """Return betainc for two large a and b, by the first term of Temme's expansion, DLMF 8.18.9."""
    border = _EXPANSION[a.dtype].border
    total = a + b
    deviation = sqrt(a / total * b)
    u = offset / deviation / sqrt(total)
    size = sqrt(2 * (deviance / total))
    eta = where(offset < 0, -size, size)
    # 1 / eta - 1 / u, which near zero is s / 3 + (s**2 / 6 - t / 4) u
    s = (b - a) / deviation / sqrt(total)
    t = s * s + 1
    is_close = abs(eta) * (1 + abs(s)) < border
    quotient = 1 / where(is_close, 1.0, eta) - 1 / where(is_close, 1.0, u)
    first = where(is_close, s / 3 + (s * s / 6 - t / 4) * u, quotient)
    factor = exp(-deviance) / sqrt(total * (2 * math.pi))
    return 0.5 * erfc(-eta * sqrt(total * 0.5)) + factor * first


def _away_from_zero(x: Formula, tiny: float) -> Formula:
    return where(abs(x) < tiny, tiny, x)


def _betainc_at_edges(a: Formula, b: Formula, x: Formula) -> Formula:
    """Return the limits at x = 0 and 1 and for zero or infinite parameters; NaN elsewhere."""
    a_gone = a.equals(0.0) | b.equals(inf)
    b_gone = b.equals(0.0) | a.equals(inf)
    result = where(a_gone, 1.0, a * 0)
    result = where(x.equals(1.0), 1.0, where(x.equals(0.0) | b_gone, 0.0, result))
    bad = ~((a >= 0) & (b >= 0) & (x >= 0) & (x <= 1)) | (a_gone & b_gone)
    return where(bad, nan, result)
