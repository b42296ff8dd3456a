"""The incomplete gamma and beta functions and their derivatives, as loops of StableHLO.

Sources: the power series and the continued fraction of DLMF 8.7.1, 8.9.2 and 8.17.22, the latter
two by the modified Lentz method (Thompson and Barnett 1986); for large parameters the uniform
expansion of Temme, DLMF 8.12.3 and 8.12.8; the powers before them by C. Loader, Fast and Accurate
Computation of Binomial Probabilities (2000). Derivatives are those of each step.
"""

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from hlofront.base.dtypes import finfo
from hlofront.core.aval import ShapedArray
from hlofront.lowering.formulas import (
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
from hlofront.primitives.converting import convert
from hlofront.primitives.reducing import reduce_or

_BOOL = ShapedArray((), np.dtype(np.bool_))
_INT = ShapedArray((), np.dtype(np.int32))
inf, nan = math.inf, math.nan


def traced(
    build: Any, formula: Callable[..., Sequence[Formula]], values: Sequence[Any], avals: Any
) -> list[Any]:
    """Emit a function of formulas."""
    return build.by_tracing(
        lambda *xs: [y.value for y in formula(*map(Formula, xs))], values, avals
    )


def iterate(
    build: Any, step: Callable[..., Any], state: Sequence[Any], aval: ShapedArray, limit: int
) -> list[Any]:
    """Repeat `step(n, *state) -> (new state, mask)` for n = 1, 2, ... while the mask has a True.

    All of the state has this aval. After `limit` steps it stops in any case.
    """

    def body(n, *state):
        count = Formula(convert(n, aval.dtype, False))
        state, active = step(count, *map(Formula, state))
        going = Formula(reduce_or(active.value, tuple(range(aval.ndim))))
        n = Formula(n)
        return [(going & (n < limit)).value, (n + 1).value, *(x.value for x in state)]

    avals = [_BOOL, _INT, *[aval] * len(state)]
    results = build.while_loop(
        lambda inner, going, n, *state: going,
        lambda inner, going, *rest: inner.by_tracing(body, rest, avals[1:]),
        [build.constant(True), build.constant(np.int32(1)), *state],
        avals,
    )
    return results[2:]


def _tolerance(aval: ShapedArray) -> float:
    """The relative change that ends a loop: above what rounding makes of no change."""
    return 4 * float(finfo(aval.dtype).eps)


# ---- the powers before the sums ---------------------------------------------------------------


def _log1p_residue(u: Formula) -> Formula:
    """u - log(1 + u), with few bits lost for u near 0."""
    v = u / (u + 2)
    series = polynomial(v * v, [0.0, *(1 / (2 * k + 1) for k in range(1, 13))])
    return where(abs(v) < 0.2, v * (u - 2 * series), u - log1p(u))


def _deviance(m: Formula, x: Formula, difference: Formula | None = None) -> Formula:
    """m log(m / x) + x - m, which is not negative: Loader's bd0. `difference`: x - m, if known."""
    difference = x - m if difference is None else difference
    ratio = m / x
    is_usual = is_finite(ratio) & (ratio > 0)
    logarithm = where(is_usual, log(where(is_usual, ratio, 1.0)), log(m) - log(x))
    u = difference / m
    is_close = abs(u) < 0.4
    near = m * _log1p_residue(where(is_close, u, 0.0))
    return where(is_close, near, m * logarithm + difference)


# The coefficients of Stirling's series, DLMF 5.11.1.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_STIRLING_FROM = 10.0
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def _stirling_error(a: Formula) -> Formula:
    """The logarithm of gamma(a), less what Stirling's formula gives for it."""
    is_large = a >= _STIRLING_FROM
    inverse = 1 / where(is_large, a, _STIRLING_FROM)
    small = where(is_large, 1.0, a)
    direct = lgamma(small) - (small - 0.5) * log(small) + small - _HALF_LOG_2PI
    return where(is_large, inverse * polynomial(inverse * inverse, _STIRLING), direct)


def _gamma_density(a: Formula, x: Formula) -> Formula:
    """x**a exp(-x) / gamma(a)."""
    is_large = a >= _STIRLING_FROM
    large = where(is_large, a, _STIRLING_FROM)
    deviance, error, ratio = _deviance(large, x), _stirling_error(large), x / large
    # Far from a the logarithm is great, and a power keeps the digits that it loses.
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
    """The Taylor coefficients in eta of c_k(eta) for k < count, DLMF 8.12.10-12.

    Row k has order - 2k of them: later ones do not matter.
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
        reciprocal.append(-sum(mu[i + 1] * reciprocal[n - i] for i in range(1, n + 1)))
    row = reciprocal[1:]
    rows = [row]
    for _ in range(1, count):
        # c_k = (dc_{k-1}/deta) / eta + (something) / mu, which cancels the term in 1 / eta.
        pole = row[1]
        row = [(n + 2) * row[n + 2] - pole * reciprocal[n + 1] for n in range(len(row) - 2)]
        rows.append(row)
    return [[float(x) for x in row[: order - 2 * k]] for k, row in enumerate(rows)]


# From which a on the expansion is used, and with how many functions and Taylor coefficients.
_TEMME = {np.dtype(np.float32): (100.0, 4, 9), np.dtype(np.float64): (500.0, 6, 16)}
_NEAR = 0.3


class _Temme:
    """The parts of the expansion at a and x; `offset` is x / a - 1."""

    def __init__(self, a: Formula, x: Formula):
        _, count, order = _TEMME[a.dtype]
        rows = _temme_coefficients(count, order)
        self.offset = (x - a) / a
        half_square = _log1p_residue(self.offset)
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
        """The derivative of lower() in a, over `factor`."""
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

# Far more steps than are ever needed: the expansion takes over before.
_GAMMA_STEPS = 2000


def _regions(a: Formula, x: Formula, far_too: bool):
    """Where the expansion, the series and the continued fraction are used: three masks.

    `far_too`: the expansion also serves for very large a with x far from it, as 0 or 1.
    """
    valid = (a > 0) & (x > 0) & (a < inf) & (x < inf)
    near = abs(x - a) <= a * _NEAR
    if far_too:
        near = near | (a > 1e6)
    expanded = valid & near & (a > _TEMME[a.dtype][0])
    summed = (x <= 1) | (x <= a)
    return expanded, valid & ~expanded & summed, valid & ~expanded & ~summed


def _within_limits(a, x):
    """x, or a number whose inverse is no subnormal one, where that makes no difference."""
    greatest = 0.25 / float(finfo(a.dtype).tiny)
    return where((x > greatest) & (x < inf) & (a < 1e6), greatest, x)


def _gamma_sums(build, aval, a, x, derivatives, far_too):
    """The sum of the series, the value of the continued fraction; with their derivatives in a.

    The latter is the logarithmic one.
    """
    avals = (aval, aval)
    eps = _tolerance(aval)

    def prepare(a, x):
        x = _within_limits(a, x)
        _, in_series, in_fraction = _regions(a, x, far_too)
        # Elements that take another way converge at once.
        return (
            where(in_series, a, 1.0),
            where(in_series, x, 0.0),
            where(in_fraction, a, 1.0),
            where(in_fraction, x, 2.0),
        )

    a_series, x_series, a_fraction, x_fraction = traced(build, prepare, (a, x), avals)
    zero, one = build.full(0, aval), build.full(1, aval)

    def series_step(n, a, x, term, total, *derivative):
        below = a + n
        ratio = x / below
        new_term = term * ratio
        total = total + new_term
        active = new_term > total * eps
        if not derivatives:
            return (a, x, new_term, total), active
        slope, total_slope = derivative
        slope = (slope - term / below) * ratio
        total_slope = total_slope + slope
        active = active | (abs(slope) > abs(total_slope) * eps)
        return (a, x, new_term, total, slope, total_slope), active

    state = (a_series, x_series, one, one, *([zero, zero] if derivatives else []))
    series = iterate(build, series_step, state, aval, _GAMMA_STEPS)[3:]

    def fraction_step(n, a, x, upper, lower, value, *derivative):
        numerator = n * (a - n)
        denominator = x + (2 * n + 1) - a
        new_lower = 1 / (denominator + numerator * lower)
        new_upper = denominator + numerator / upper
        change = new_upper * new_lower
        active = abs(change - 1) > eps
        # What has converged stays: rounding would go on with it for as long as others need.
        value = value * where(abs(change - 1) > 0.26 * eps, change, 1.0)
        if not derivatives:
            return (a, x, new_upper, new_lower, value), active
        upper_slope, lower_slope, slope = derivative
        lower_slope = -new_lower * new_lower * (n * lower - 1 + numerator * lower_slope)
        upper_slope = n / upper - 1 - numerator * upper_slope / (upper * upper)
        step_slope = upper_slope / new_upper + lower_slope / new_lower
        slope = slope + step_slope
        active = active | (abs(step_slope) > abs(slope) * eps)
        new_state = (a, x, new_upper, new_lower, value, upper_slope, lower_slope, slope)
        return new_state, active

    def start(a, x):
        return (x + 1 - a, -1 / (x + 1 - a))

    first, slope = traced(build, start, (a_fraction, x_fraction), avals)
    more = (build.full(-1, aval), zero, slope) if derivatives else ()
    state = (a_fraction, x_fraction, first, zero, first, *more)
    fraction = iterate(build, fraction_step, state, aval, _GAMMA_STEPS)[4:]
    if not derivatives:
        return series[0], fraction[0]
    # The slot of the current term's slope is not wanted.
    return series[0], series[2], fraction[0], fraction[3]


def _gamma_rule(
    finish, *, x_zero, a_zero=nan, x_infinite=nan, a_infinite=nan, derivatives=False, far_too=True
):
    def rule(build, aval, a, x):
        sums = _gamma_sums(build, aval, a, x, derivatives, far_too)

        def formula(a, x, *sums):
            x = _within_limits(a, x)
            expanded, in_series, in_fraction = _regions(a, x, far_too)
            used = expanded | in_series | in_fraction
            a_used, x_used = where(used, a, 1.0), where(used, x, 1.0)
            by_expansion, by_series, by_fraction = finish(a_used, x_used, *sums)
            inside = where(expanded, by_expansion, where(in_series, by_series, by_fraction))
            at_edges = _at_edges(a, x, x_zero, a_zero, x_infinite, a_infinite)
            return (where(used, inside, at_edges),)

        return traced(build, formula, (a, x, *sums), (aval,) * (2 + len(sums)))[0]

    return rule


def _at_edges(a, x, x_zero, a_zero, x_infinite, a_infinite):
    """Return the value at x = 0, else at a = 0, at infinite x, at infinite a; NaN elsewhere."""
    result = where((a.equals(inf)) & (x >= 0), a_infinite, a * nan)
    result = where((x.equals(inf)) & (a >= 0), x_infinite, result)
    result = where((a.equals(0.0)) & (x > 0), a_zero, result)
    return where((x.equals(0.0)) & (a > 0), x_zero, result)


def _lower(a, x, series, fraction):
    density = _gamma_density(a, x)
    # Where a is small so is what is left to 1, which is known to more digits than the powers.
    is_small = (a < 0.05) & (x <= 1)
    small = _upper_of_small(where(is_small, a, 1.0), where(is_small, x, 1.0))
    return (
        _Temme(a, x).lower(),
        where(is_small & (small < 0.5), 1 - small, density / a * series),
        1 - density / fraction,
    )


def _upper(a, x, series, fraction):
    density = _gamma_density(a, x)
    is_small = (a <= 1) & (x <= 1)
    small = _upper_of_small(where(is_small, a, 1.0), where(is_small, x, 1.0))
    return (
        _Temme(a, x).upper(),
        where(is_small, small, 1 - density / a * series),
        density / fraction,
    )


def _upper_of_small(a, x):
    """upper() for a and x <= 1 as 1 - x**a / gamma(1 + a) - the later terms of DLMF 8.7.1.

    Unlike 1 - lower(), it keeps its bits where it is small.
    """
    logarithm = a * log(x) - _lgamma1p(a)
    terms = _SMALL_TERMS[a.dtype]
    tail = x * 0
    for n in range(terms, 0, -1):
        tail = (1 / (a + n) - tail * (1 / (n + 1))) * x
    return exp(logarithm) * a * tail - expm1(logarithm)


_SMALL_TERMS = {np.dtype(np.float32): 12, np.dtype(np.float64): 20}


def _lgamma1p(a: Formula) -> Formula:
    """The logarithm of gamma(1 + a) for a > 0, DLMF 5.7.3, with few bits lost for a near 0."""
    near = a <= 0.5
    a_ = where(near, a, 0.25)
    series = polynomial(a_, [1 - np.euler_gamma, *_zeta_terms(_ZETA_TERMS[a.dtype])])
    return where(near, a_ * series - log1p(a_), lgamma(1 + a))


_ZETA_TERMS = {np.dtype(np.float32): 12, np.dtype(np.float64): 26}


@functools.cache
def _zeta_terms(count: int) -> list[float]:
    """(-1)**k (zeta(k) - 1) / k for k = 2, 3, ...: a sum, and the rest by Euler and Maclaurin."""
    end = 100.0
    terms = []
    for k in range(2, count + 2):
        total = math.fsum(n**-k for n in range(2, int(end)))
        total += end ** (1 - k) / (k - 1) + end**-k / 2 + k * end ** (-k - 1) / 12
        total -= k * (k + 1) * (k + 2) * end ** (-k - 3) / 720
        terms.append((-1) ** k * total / k)
    return terms


def _lower_by_a(a, x, series, series_slope, fraction, fraction_slope):
    density = _gamma_density(a, x)
    temme = _Temme(a, x)
    no_density = temme.factor.equals(0.0)
    return (
        where(no_density, 0.0, temme.factor * where(no_density, 0.0, temme.derivative())),
        density / a * (series * (log(x) - digamma(a + 1)) + series_slope),
        -density / fraction * (log(x) - digamma(a) - fraction_slope),
    )


def _sample_by_a(a, x, series, series_slope, fraction, fraction_slope):
    # The derivative of lower() in a over that in x, which is the density over x.
    temme = _Temme(a, x)
    return (
        -(x / a) * exp(_stirling_error(a)) * temme.derivative(),
        -(x / a) * (series * (log(x) - digamma(a + 1)) + series_slope),
        x / fraction * (log(x) - digamma(a) - fraction_slope),
    )


igamma = _gamma_rule(_lower, x_zero=0.0, a_zero=1.0, x_infinite=1.0, a_infinite=0.0)
igammac = _gamma_rule(_upper, x_zero=1.0, a_zero=0.0, x_infinite=0.0, a_infinite=1.0)
igamma_grad_a = _gamma_rule(_lower_by_a, x_zero=0.0, a_infinite=0.0, derivatives=True)
random_gamma_grad = _gamma_rule(_sample_by_a, x_zero=0.0, derivatives=True, far_too=False)


# ---- the beta function -------------------------------------------------------------------------

# Steps go with the root of the parameters; the expansion takes over before this many.
_BETA_STEPS = 5000
# From which parameters on the expansion is used, and up to which eta, as a multiple of the least
# one that its next term could be seen at, its first function is taken from its own series.
_BETA_EXPANSION = {np.dtype(np.float32): (2e3, 0.03), np.dtype(np.float64): (1e6, 1e-3)}


def betainc(build, aval, a, b, x):
    """The regularized incomplete beta function, by the continued fraction of DLMF 8.17.22."""
    eps = _tolerance(aval)
    tiny = float(finfo(aval.dtype).tiny)

    def prepare(a, b, x):
        expanded, inside = _beta_regions(a, b, x)
        by_fraction = inside & ~expanded & ~_is_nearly_one(a, b, x)
        mirrored = _is_mirrored(a, b, x)
        a, b, x = where(by_fraction, a, 1.0), where(by_fraction, b, 1.0), where(inside, x, 0.5)
        first, second = where(mirrored, b, a), where(mirrored, a, b)
        x = where(mirrored, 1 - x, x)
        return first, second, where(by_fraction, x, 0.0)

    a_, b_, x_ = traced(build, prepare, (a, b, x), (aval,) * 3)

    def advance(numerator, upper, lower, value):
        lower = _away_from_zero(1 + numerator * lower, tiny)
        upper = _away_from_zero(1 + numerator / upper, tiny)
        lower = 1 / lower
        change = upper * lower
        return upper, lower, value * where(abs(change - 1) > 0.26 * eps, change, 1.0)

    def step(m, a, b, x, upper, lower, value):
        # Two steps of the fraction; quotients first, so that large parameters do not overflow.
        odd = -((a + (m - 1)) / (a + (2 * m - 2))) * ((a + b + (m - 1)) / (a + (2 * m - 1))) * x
        upper, lower, value = advance(odd, upper, lower, value)
        even = (m / (a + (2 * m - 1))) * ((b - m) / (a + 2 * m)) * x
        upper, lower, value = advance(even, upper, lower, value)
        return (a, b, x, upper, lower, value), abs(upper * lower - 1) > eps

    one = build.full(1, aval)
    state = (a_, b_, x_, one, build.full(0, aval), one)
    fraction = iterate(build, step, state, aval, _BETA_STEPS)[5]
    terms = _terms_of_nearly_one(build, aval, a, b, x)

    def finish(a, b, x, fraction, terms):
        expanded, inside = _beta_regions(a, b, x)
        edges = _betainc_at_edges(a, b, x)
        a, b, x = where(inside, a, 1.0), where(inside, b, 1.0), where(inside, x, 0.5)
        mirrored = _is_mirrored(a, b, x)
        y = 1 - x
        # Of x from its mean a / (a + b), times a + b.
        offset = b * x - a * y
        total = a + b
        deviance = _deviance(a, total * x, offset) + _deviance(b, total * y, -offset)
        # x**a y**b / beta(a, b), over a or b.
        (of_a, log_a), (of_b, log_b), (of_both, log_both) = map(_gamma_share, (a, b, total))
        shares = where(mirrored, of_b / b * (of_a / of_both), of_a / a * (of_b / of_both))
        result = shares * exp(log_a + log_b - log_both - deviance) / fraction
        result = where(mirrored, 1 - result, result)
        nearly_one = _is_nearly_one(a, b, x)
        rest = _rest_of_nearly_one(where(nearly_one, a, 1.0), where(nearly_one, b, 0.0), y, terms)
        result = where(nearly_one, rest, result)
        result = where(expanded, _expanded_betainc(a, b, offset, deviance), result)
        return (where(inside, clip(0.0, result, 1.0), edges),)

    return traced(build, finish, (a, b, x, fraction, terms), (aval,) * 5)[0]


def _beta_regions(a, b, x):
    """Where the expansion is used; and where it or the continued fraction is: two masks."""
    inside = (a > 0) & (b > 0) & (x > 0) & (x < 1) & (a < inf) & (b < inf)
    least, _ = _BETA_EXPANSION[a.dtype]
    return inside & (a > least) & (b > least), inside


def _is_mirrored(a, b, x):
    """The fraction converges well on one side of the mean; the other is its mirror image."""
    return x > (a + 1) / (a + b + 2)


def _gamma_share(a):
    """v and w with v exp(w) = a**a exp(-a) / gamma(a), w small for small a."""
    is_large = a >= _STIRLING_FROM
    inverse = 1 / where(is_large, a, _STIRLING_FROM)
    small = where(is_large, 1.0, a)
    direct = small * log(small) - small - _lgamma1p(small)
    logarithm = where(is_large, -inverse * polynomial(inverse * inverse, _STIRLING), direct)
    return where(is_large, sqrt(a * (0.5 / math.pi)), a), logarithm


# Below which b the mirror image is so close to 1 that few bits of the rest are left.
_BETA_SMALL = {np.dtype(np.float32): 0.05, np.dtype(np.float64): 2e-3}


def _is_nearly_one(a, b, x):
    """Where the rest to 1 of the mirror image is computed by itself."""
    is_small = (b > 0) & (b < _BETA_SMALL[a.dtype])
    return is_small & (a > 0) & (a < inf) & (x < 1) & _is_mirrored(a, b, x)


def _terms_of_nearly_one(build, aval, a, b, x):
    """The terms after the first of DLMF 8.17.7 for the mirror image, over b."""
    eps = _tolerance(aval)

    def prepare(a, b, x):
        used = _is_nearly_one(a, b, x)
        return where(used, a, 1.0), where(used, b, 1.0), where(used, 1 - x, 0.0)

    def step(n, a, b, y, power, total):
        power = power * ((n - a) / n * y)
        term = power / (b + n)
        return (a, b, y, power, total + term), abs(term) > abs(total) * eps

    start = traced(build, prepare, (a, b, x), (aval,) * 3)
    return iterate(build, step, (*start, build.full(1, aval), build.full(0, aval)), aval, 200)[4]


def _rest_of_nearly_one(a, b, y, terms):
    """1 - betainc(b, a, y) for small b, of which all digits are kept."""
    # The difference of log(gamma) at 1 + a + b and 1 + a, by its derivatives in the middle.
    middle = 1 + a + b / 2
    end = middle + 4
    third = -1 / (end * end) * (1 + (1 + 0.5 / end) / end)
    for k in range(4):
        inverse = 1 / (middle + k)
        third = third - 2 * (inverse * inverse * inverse)
    growth = b * (digamma(middle) + b * b / 24 * third) - log1p(b / a)
    logarithm = b * log(y) - _lgamma1p(b) + growth
    return -expm1(logarithm) - exp(logarithm) * b * terms


def _expanded_betainc(a, b, offset, deviance):
    """Temme's expansion for two large parameters, DLMF 8.18.9, with its first function."""
    _, border = _BETA_EXPANSION[a.dtype]
    total = a + b
    spread = sqrt(a / total * b)
    u = offset / spread / sqrt(total)
    size = sqrt(2 * (deviance / total))
    eta = where(offset < 0, -size, size)
    # 1 / eta - 1 / u, which near zero is s / 3 + (s**2 / 6 - t / 4) u
    s = (b - a) / spread / sqrt(total)
    t = s * s + 1
    is_close = abs(eta) * (1 + abs(s)) < border
    quotient = 1 / where(is_close, 1.0, eta) - 1 / where(is_close, 1.0, u)
    first = where(is_close, s / 3 + (s * s / 6 - t / 4) * u, quotient)
    factor = exp(-deviance) / sqrt(total * (2 * math.pi))
    return 0.5 * erfc(-eta * sqrt(total * 0.5)) + factor * first


def _away_from_zero(x, tiny):
    return where(abs(x) < tiny, tiny, x)


def _betainc_at_edges(a, b, x):
    """The limits at the ends of x, and for parameters that are zero or infinite; NaN elsewhere."""
    a_gone = a.equals(0.0) | b.equals(inf)
    b_gone = b.equals(0.0) | a.equals(inf)
    result = where(a_gone, 1.0, a * 0)
    result = where(x.equals(1.0), 1.0, where(x.equals(0.0) | b_gone, 0.0, result))
    bad = ~((a >= 0) & (b >= 0) & (x >= 0) & (x <= 1)) | (a_gone & b_gone)
    return where(bad, nan, result)
