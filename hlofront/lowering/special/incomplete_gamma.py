"""The incomplete gamma functions and their derivatives, as loops of StableHLO.

Sources: the power series and the continued fraction of DLMF 8.7.1 and 8.9.2, the latter by the
modified Lentz method (Thompson and Barnett 1986); for large parameters the uniform expansion of
Temme, DLMF 8.12.3 and 8.12.8. Derivatives are those of each step.
"""

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import inf, nan
from typing import Generic, TypeVar

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
    is_finite,
    lgamma,
    log,
    log1p,
    polynomial,
    power,
    sign,
    sqrt,
    where,
)
from hlofront.lowering.special.incomplete import (
    STIRLING_FROM,
    Rule,
    Step,
    deviance_of,
    iterate,
    lgamma1p,
    log1p_residue,
    stirling_error,
    tolerance,
    traced,
)


def _gamma_density(a: Formula, x: Formula) -> Formula:
    """Return x**a exp(-x) / gamma(a)."""
    is_large = a >= STIRLING_FROM
    large = where(is_large, a, STIRLING_FROM)
    deviance, error, ratio = deviance_of(large, x), stirling_error(large), x / large
    # Far from a the logarithm is large and loses digits that a power keeps.
    half = power(ratio, large / 2) * exp((large - x) / 2)
    tiny = float(finfo(a.dtype).tiny)
    fits = (abs(ratio - 1) > 0.4) & (half > math.sqrt(tiny)) & is_finite(half)
    by_stirling = sqrt(large * (0.5 / math.pi)) * where(
        fits, half * half * exp(-error), exp(-deviance - error)
    )
    small = where(is_large, 1.0, a)
    return where(is_large, by_stirling, exp(small * log(x) - x - lgamma(small)))


# ---- the gamma function: where x is near a large a ---------------------------------------------


@functools.cache
def _temme_coefficients(count: int, order: int) -> list[list[float]]:
    """Return the Taylor coefficients in eta of c_k(eta) for k < count, DLMF 8.12.10-12.

    Row k has order - 2k coefficients, since later ones are negligible.
    """
    size = order + 2 * count
    # mu = lambda - 1 as a series in eta, from mu dmu/deta = eta (1 + mu).
    mu = [Fraction(0), Fraction(1)]
    for n in range(2, size + 2):
        known = sum(mu[i] * mu[n + 1 - i] for i in range(2, n))
        mu.append((Fraction(2, n + 1) * mu[n - 1] - known) / 2)
    # 1 / mu, from its term in 1 / eta on.
    reciprocal = [Fraction(1)]
    for n in range(1, size + 1):
        terms = (mu[i + 1] * reciprocal[n - i] for i in range(1, n + 1))
        reciprocal.append(-sum(terms, Fraction(0)))
    row = reciprocal[1:]
    rows = [row]
    for _ in range(1, count):
        # c_k = (dc_{k-1}/deta) / eta + (something) / mu, which cancels the term in 1 / eta.
        pole = row[1]
        row = [(n + 2) * row[n + 2] - pole * reciprocal[n + 1] for n in range(len(row) - 2)]
        rows.append(row)
    return [[float(x) for x in row[: order - 2 * k]] for k, row in enumerate(rows)]


class _Expansion(NamedTuple):
    """The a from which the expansion is used, its functions and their Taylor coefficients."""

    least: float
    functions: int
    order: int


_TEMME = {
    np.dtype(np.float32): _Expansion(100.0, 4, 9),
    np.dtype(np.float64): _Expansion(500.0, 6, 16),
}
_NEAR = 0.3


class _Temme:
    """Temme's uniform expansion of the incomplete gamma functions at a and x."""

    def __init__(self, a: Formula, x: Formula):
        expansion = _TEMME[a.dtype]
        rows = _temme_coefficients(expansion.functions, expansion.order)
        # x / a - 1
        self.offset = (x - a) / a
        half_square = log1p_residue(self.offset)
        # eta, with eta**2 / 2 = offset - log(1 + offset) and the sign of the offset.
        self.eta = sign(self.offset) * sqrt(2 * half_square)
        near_eta = clip(-1.0, self.eta, 1.0)
        inverse = 1 / a
        by_order = [polynomial(near_eta, row) for row in rows]
        slopes = [polynomial(near_eta, [n * row[n] for n in range(1, len(row))]) for row in rows]
        self.sum = _nested(inverse, by_order)
        self.sum_by_eta = _nested(inverse, slopes)
        self.sum_by_a = (
            inverse * inverse * _nested(inverse, [-k * c for k, c in enumerate(by_order)][1:])
        )
        self.factor = exp(-a * half_square) / sqrt(a * (2 * math.pi))
        self.scaled_eta = self.eta * sqrt(a * 0.5)
        self.a = a

    def lower(self) -> Formula:
        return 0.5 * erfc(-self.scaled_eta) - self.factor * self.sum

    def upper(self) -> Formula:
        return 0.5 * erfc(self.scaled_eta) + self.factor * self.sum

    def derivative(self) -> Formula:
        """Return the derivative of lower() with respect to a, divided by `factor`."""
        at_zero = self.eta.equals(0.0)
        slope = where(at_zero, 1.0, self.offset / where(at_zero, 1.0, self.eta))
        rate = log1p(self.offset) - 0.5 / self.a
        return (
            self.eta * 0.5
            - slope
            - rate * self.sum
            - self.sum_by_a
            + self.sum_by_eta * slope / self.a
        )


def _nested(x: Formula, terms: Sequence[Formula]) -> Formula:
    result = terms[-1]
    for term in reversed(terms[:-1]):
        result = result * x + term
    return result


# ---- the gamma function: by series and continued fraction --------------------------------------

# Far more steps than are ever needed, because the expansion takes over before.
_GAMMA_STEPS = 2000


class _Regions(NamedTuple):
    """Three masks: where the expansion, the series and the continued fraction are used."""

    expanded: Formula
    in_series: Formula
    in_fraction: Formula


def _regions(a: Formula, x: Formula, far_too: bool) -> _Regions:
    """Return masks for the expansion, the series and the continued fraction.

    Args:
      far_too: whether the expansion also serves for very large a with x far from it, as 0 or 1.
    """
    valid = (a > 0) & (x > 0) & (a < inf) & (x < inf)
    near = abs(x - a) <= a * _NEAR
    if far_too:
        near = near | (a > 1e6)
    expanded = valid & near & (a > _TEMME[a.dtype].least)
    summed = (x <= 1) | (x <= a)
    return _Regions(expanded, valid & ~expanded & summed, valid & ~expanded & ~summed)


def _within_limits(a: Formula, x: Formula) -> Formula:
    """Return x, limited so that its inverse is not subnormal; that does not change results."""
    greatest = 0.25 / float(finfo(a.dtype).tiny)
    return where((x > greatest) & (x < inf) & (a < 1e6), greatest, x)


Number = TypeVar("Number")


class _Sums(NamedTuple, Generic[Number]):
    """The sum of the series and the value of the continued fraction, or their derivatives in a."""

    series: Number
    fraction: Number


def _gamma_sums(
    build: Builder, aval: ShapedArray, a: Value, x: Value, derivatives: bool, far_too: bool
) -> list[_Sums[Value]]:
    """Return the sums, and with `derivatives` also their derivatives with respect to a.

    For the continued fraction, it is the derivative of its logarithm.
    """
    eps = tolerance(aval)

    def prepare(a: Formula, x: Formula) -> list[Formula]:
        x = _within_limits(a, x)
        regions = _regions(a, x, far_too)
        # Elements that do not use this sum converge immediately.
        return [
            where(regions.in_series, a, 1.0),
            where(regions.in_series, x, 0.0),
            where(regions.in_fraction, a, 1.0),
            where(regions.in_fraction, x, 2.0),
        ]

    a_series, x_series, a_fraction, x_fraction = traced(build, prepare, (a, x), aval)
    zero, one = build.full(0, aval), build.full(1, aval)

    def series_step(
        n: Formula, a: Formula, x: Formula, term: Formula, total: Formula, *derivative: Formula
    ) -> Step:
        below = a + n
        ratio = x / below
        new_term = term * ratio
        total = total + new_term
        active = new_term > total * eps
        if not derivatives:
            return Step((a, x, new_term, total), active)
        slope, total_slope = derivative
        slope = (slope - term / below) * ratio
        total_slope = total_slope + slope
        active = active | (abs(slope) > abs(total_slope) * eps)
        return Step((a, x, new_term, total, slope, total_slope), active)

    state = (a_series, x_series, one, one, *([zero, zero] if derivatives else []))
    _, _, _, series, *series_slopes = iterate(build, series_step, state, aval, _GAMMA_STEPS)

    def fraction_step(
        n: Formula,
        a: Formula,
        x: Formula,
        upper: Formula,
        lower: Formula,
        value: Formula,
        *derivative: Formula,
    ) -> Step:
        numerator = n * (a - n)
        denominator = x + (2 * n + 1) - a
        new_lower = 1 / (denominator + numerator * lower)
        new_upper = denominator + numerator / upper
        change = new_upper * new_lower
        active = abs(change - 1) > eps
        # Keep converged elements, which rounding would change while others iterate.
        value = value * where(abs(change - 1) > 0.26 * eps, change, 1.0)
        if not derivatives:
            return Step((a, x, new_upper, new_lower, value), active)
        upper_slope, lower_slope, slope = derivative
        lower_slope = -new_lower * new_lower * (n * lower - 1 + numerator * lower_slope)
        upper_slope = n / upper - 1 - numerator * upper_slope / (upper * upper)
        step_slope = upper_slope / new_upper + lower_slope / new_lower
        slope = slope + step_slope
        active = active | (abs(step_slope) > abs(slope) * eps)
        new_state = (a, x, new_upper, new_lower, value, upper_slope, lower_slope, slope)
        return Step(new_state, active)

    def start(a: Formula, x: Formula) -> list[Formula]:
        return [x + 1 - a, -1 / (x + 1 - a)]

    first, slope = traced(build, start, (a_fraction, x_fraction), aval)
    more = (build.full(-1, aval), zero, slope) if derivatives else ()
    state = (a_fraction, x_fraction, first, zero, first, *more)
    _, _, _, _, fraction, *slopes = iterate(build, fraction_step, state, aval, _GAMMA_STEPS)
    sums = [_Sums(series, fraction)]
    if derivatives:
        sums.append(_Sums(series_slopes[-1], slopes[-1]))
    return sums


class _ByRegion(NamedTuple):
    """The values by the expansion, by the series and by the continued fraction."""

    by_expansion: Formula
    by_series: Formula
    by_fraction: Formula


class _Edges(NamedTuple):
    """The limits at x = 0, else at a = 0, at infinite x, and at infinite a; NaN if undefined."""

    x_zero: float
    a_zero: float = nan
    x_infinite: float = nan
    a_infinite: float = nan


def _gamma_rule(
    finish: Callable[..., _ByRegion],
    edges: _Edges,
    *,
    derivatives: bool = False,
    far_too: bool = True,
) -> Rule:
    """Return the lowering rule of a function of a and x.

    Args:
      finish: `finish(a, x, sums)` returns the values by region; with `derivatives` it also takes
        the derivatives of the sums.
      edges: the limits where a or x is zero or infinite.
      derivatives: whether the function needs the derivatives of the sums.
      far_too: whether the expansion also serves for very large a with x far from it, as 0 or 1.
    """

    def rule(build: Builder, aval: ShapedArray, a: Value, x: Value) -> Value:
        sums = _gamma_sums(build, aval, a, x, derivatives, far_too)

        def formula(a: Formula, x: Formula, *values: Formula) -> list[Formula]:
            x = _within_limits(a, x)
            expanded, in_series, in_fraction = _regions(a, x, far_too)
            used = expanded | in_series | in_fraction
            a_used, x_used = where(used, a, 1.0), where(used, x, 1.0)
            records = [_Sums(*values[i : i + 2]) for i in range(0, len(values), 2)]
            by_expansion, by_series, by_fraction = finish(a_used, x_used, *records)
            inside = where(expanded, by_expansion, where(in_series, by_series, by_fraction))
            return [where(used, inside, _at_edges(a, x, edges))]

        values = [value for record in sums for value in record]
        return traced(build, formula, (a, x, *values), aval)[0]

    return rule


def _at_edges(a: Formula, x: Formula, edges: _Edges) -> Formula:
    """Return the limit where a or x is zero or infinite, and NaN elsewhere."""
    result = where((a.equals(inf)) & (x >= 0), edges.a_infinite, a * nan)
    result = where((x.equals(inf)) & (a >= 0), edges.x_infinite, result)
    result = where((a.equals(0.0)) & (x > 0), edges.a_zero, result)
    return where((x.equals(0.0)) & (a > 0), edges.x_zero, result)


def _lower(a: Formula, x: Formula, sums: _Sums[Formula]) -> _ByRegion:
    density = _gamma_density(a, x)
    # For small a, 1 - lower() is small too, and is known to more digits than the powers.
    is_small = (a < 0.05) & (x <= 1)
    small = _upper_of_small(where(is_small, a, 1.0), where(is_small, x, 1.0))
    return _ByRegion(
        _Temme(a, x).lower(),
        where(is_small & (small < 0.5), 1 - small, density / a * sums.series),
        1 - density / sums.fraction,
    )


def _upper(a: Formula, x: Formula, sums: _Sums[Formula]) -> _ByRegion:
    density = _gamma_density(a, x)
    is_small = (a <= 1) & (x <= 1)
    small = _upper_of_small(where(is_small, a, 1.0), where(is_small, x, 1.0))
    return _ByRegion(
        _Temme(a, x).upper(),
        where(is_small, small, 1 - density / a * sums.series),
        density / sums.fraction,
    )


def _upper_of_small(a: Formula, x: Formula) -> Formula:
    """Return upper() for a and x <= 1 as 1 - x**a / gamma(1 + a) - the later terms of DLMF 8.7.1.

    Unlike 1 - lower(), it stays accurate where it is small.
    """
    logarithm = a * log(x) - lgamma1p(a)
    terms = _SMALL_TERMS[a.dtype]
    tail = x * 0
    for n in range(terms, 0, -1):
        tail = (1 / (a + n) - tail * (1 / (n + 1))) * x
    return exp(logarithm) * a * tail - expm1(logarithm)


_SMALL_TERMS = {np.dtype(np.float32): 12, np.dtype(np.float64): 20}


def _lower_by_a(a: Formula, x: Formula, sums: _Sums[Formula], slopes: _Sums[Formula]) -> _ByRegion:
    density = _gamma_density(a, x)
    temme = _Temme(a, x)
    no_density = temme.factor.equals(0.0)
    return _ByRegion(
        where(no_density, 0.0, temme.factor * where(no_density, 0.0, temme.derivative())),
        density / a * (sums.series * (log(x) - digamma(a + 1)) + slopes.series),
        -density / sums.fraction * (log(x) - digamma(a) - slopes.fraction),
    )


def _sample_by_a(a: Formula, x: Formula, sums: _Sums[Formula], slopes: _Sums[Formula]) -> _ByRegion:
    # The derivative of lower() in a, divided by that in x, which is the density over x.
    temme = _Temme(a, x)
    return _ByRegion(
        -(x / a) * exp(stirling_error(a)) * temme.derivative(),
        -(x / a) * (sums.series * (log(x) - digamma(a + 1)) + slopes.series),
        x / sums.fraction * (log(x) - digamma(a) - slopes.fraction),
    )


igamma = _gamma_rule(_lower, _Edges(x_zero=0.0, a_zero=1.0, x_infinite=1.0, a_infinite=0.0))
igammac = _gamma_rule(_upper, _Edges(x_zero=1.0, a_zero=0.0, x_infinite=0.0, a_infinite=1.0))
igamma_grad_a = _gamma_rule(_lower_by_a, _Edges(x_zero=0.0, a_infinite=0.0), derivatives=True)
random_gamma_grad = _gamma_rule(_sample_by_a, _Edges(x_zero=0.0), derivatives=True, far_too=False)
