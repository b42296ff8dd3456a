"""The truth by mpmath, of functions of one number."""

import functools
import math

import mpmath as m
import scipy.special
from mpmath import mpf

INF, NAN = m.inf, m.nan
DIGITS = 50


def digits(count):
    """A function that is computed with so many more digits."""

    def wrap(function):
        @functools.wraps(function)
        def wider(*args):
            with m.workdps(DIGITS + count):
                return function(*args)

        return wider

    return wrap


def whole(x):
    return m.isfinite(x) and x == m.floor(x)


def pole(x):
    return x <= 0 and whole(x)


# ---- of one number -------------------------------------------------------------------------------


def dawsn(x):
    if abs(x) > 1e5:
        return (1 + 1 / (2 * x * x) + 3 / (4 * x**4)) / (2 * x)
    return m.sqrt(m.pi) / 2 * m.exp(-x * x) * m.erfi(x)


def erfc(x):
    if x > 1e5:
        return m.mpf(0)
    return m.erfc(x)


def erfcx(x):
    if x < -1e5:
        return INF
    if x > 1e5:
        return (1 - 1 / (2 * x * x) + 3 / (4 * x**4)) / (x * m.sqrt(m.pi))
    return m.exp(x * x) * m.erfc(x)


def normal(x):
    return erfc(-x / m.sqrt(2)) / 2 if x < 1e5 else mpf(1)


def log_normal(x):
    if x < -5:
        return m.log(erfcx(-x / m.sqrt(2)) / 2) - x * x / 2
    return m.log1p(-erfc(x / m.sqrt(2)) / 2) if x < 1e5 else mpf(0)


@digits(20)
def ndtri(p):
    if not 0 <= p <= 1:
        return NAN
    if p in (0, 1):
        return INF if p else -INF
    if p > 0.6:
        return -ndtri(1 - p)
    x = mpf(float(scipy.special.ndtri(float(p)))) if p > 1e-290 else -m.sqrt(-2 * m.log(p))
    for _ in range(4 if p > 1e-290 else 12):
        # Newton's steps for the logarithm.
        slope = m.exp(-x * x / 2 - log_normal(x)) / m.sqrt(2 * m.pi)
        x -= (log_normal(x) - m.log(p)) / slope
    return x


@digits(20)
def erfinv(x):
    if not -1 <= x <= 1:
        return NAN
    if abs(x) == 1:
        return x * INF
    if x == 0:
        return x
    y = mpf(float(scipy.special.erfinv(float(x)))) if abs(x) > 1e-290 else x * m.sqrt(m.pi) / 2
    for _ in range(3):
        y -= (m.erf(y) - x) * m.exp(y * y) * m.sqrt(m.pi) / 2
    return y


def exp1(x):
    if x < 0:
        return NAN
    return mpf(0) if x > 1e6 else m.e1(x)


def expi(x):
    if x < 0:
        return -exp1(-x)
    return INF if x > 1e6 else m.ei(x)


def gamma(x):
    if pole(x):
        return (INF if math.copysign(1, float(x)) > 0 else -INF) if x == 0 else NAN
    if x > 1e4:
        return INF
    return mpf(0) if x < -1e4 else m.gamma(x)


def lgamma(x):
    if abs(x) == INF or pole(x):
        return INF
    with m.workdps(DIGITS + 20):
        if x > 0:
            return m.loggamma(x)
        return m.log(m.pi) - m.log(abs(m.sinpi(x))) - m.loggamma(1 - x)


def gammasgn(x):
    if x == 0:
        return m.mpf(math.copysign(1, float(x)))
    if pole(x) or x == -INF:
        return NAN
    return mpf(1) if x > 0 or m.floor(x) % 2 == 0 else mpf(-1)


def digamma(x):
    if x == -INF or pole(x):
        return NAN if x else (-INF if math.copysign(1, float(x)) > 0 else INF)
    with m.workdps(DIGITS + 330 if abs(x) < 1e-30 else DIGITS + 20):
        return m.psi(0, x)


def entr(x):
    return -INF if x < 0 else mpf(0) if x == 0 else -INF if x == INF else -x * m.log(x)


def expit(x):
    if abs(x) > 1e5:
        return mpf(x > 0)
    return 1 / (1 + m.exp(-x))


def factorial(x):
    return mpf(0) if x < 0 else gamma(x + 1)


def bessel(order, scaled):
    def function(x):
        size = abs(x)
        if size == INF or (not scaled and size > 2000):
            return (mpf(0) if scaled else INF) * (1 if order == 0 or x > 0 else -1)
        if size > 2000:
            total, term, square = mpf(1), mpf(1), 4 * order * order
            for k in range(1, 12):
                term *= -(square - (2 * k - 1) ** 2) / (k * 8 * size)
                total += term
            value = total / m.sqrt(2 * m.pi * size)
            return value * (1 if order == 0 or x > 0 else -1)
        return m.besseli(order, x) * (m.exp(-size) if scaled else 1)

    return function


def sine_integral(x):
    return m.sign(x) * m.pi / 2 if abs(x) == INF else m.si(x)


def cosine_integral(x):
    if x == 0:
        return -INF
    if abs(x) == INF:
        return mpf(0) if x > 0 else NAN
    return m.ci(abs(x))


def fresnel(function):
    return lambda x: m.sign(x) / 2 if abs(x) > 1e20 else function(x)


def spence(x):
    if x < 0:
        return NAN
    if x == INF:
        return -INF
    if x == 0:
        return m.pi**2 / 6
    if x > 1:
        return -(m.log(x) ** 2) / 2 - spence(1 / x)
    with m.workdps(DIGITS + 20):
        return m.polylog(2, 1 - x).real


def logit(x):
    if not 0 <= x <= 1:
        return NAN
    return -INF if x == 0 else INF if x == 1 else m.log(x) - m.log1p(-x)


def multigammaln3(x):
    return m.log(m.pi) * 1.5 + sum(lgamma(x - mpf(k) / 2) for k in range(3))
