"""The Faddeeva function, and its real parts: the scaled error function and Dawson's integral."""

from __future__ import annotations

import functools
import math

import numpy as np

import hlofront.numpy as jnp
from hlofront.base.dtypes import is_complex, to_complex_dtype
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.higher_order.custom_rules.custom_jvp import custom_jvp
from hlofront.primitives.elementwise import elementwise
from hlofront.primitives.elementwise.converting import convert, strong
from hlofront.primitives.elementwise.weak_types import times_one
from hlofront.runtime.dispatch.operation import operation
from hlofront.scipy.special.arguments import in_float32, inexact_arrays, strong_floats
from hlofront.scipy.special.series import polynomial, table

# ---- rational approximations ---------------------------------------------------------------------
#
# Each is an interpolation at Chebyshev's points, computed in 50 digits, of a numerator and a
# denominator: the coefficients from the highest power down.


class Quotient(NamedTuple):
    """Two polynomials."""

    above: tuple[float, ...]
    below: tuple[float, ...]


def paired_polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    """Return the polynomial of x with coefficients from the highest power down, by pairs.

    Unlike Horner's rule, this does not accumulate rounding errors in high powers.
    """
    terms: list[Array | float] = list(reversed(coefficients))
    while len(terms) > 1:
        pairs = [low + high * x for low, high in zip(terms[::2], terms[1::2])]
        terms = [*pairs, *terms[len(terms) - len(terms) % 2 :]]
        x = x * x
    return 0.0 * x + terms[0]


# D(x) / x, a function of x^2, for x up to 6.5 in float64, and to 4 in float32.
DAWSON_NEAR = {
    "float64": Quotient(
        table("""
            1.6443739863182899e-25 8.01316503081282e-24 6.578870021606512e-22
            3.091760369012199e-20 1.4137815901886199e-18 5.372571070148835e-17
            1.8257421383486534e-15 5.483502620283867e-14 1.4623478364829563e-12
            3.493264860510687e-11 7.270863880770517e-10 1.3961584258724072e-08
            2.1360705103426496e-07 3.4678252839831435e-06 3.201816629831907e-05
            0.0005249759438235476 0.0015369411222578447 0.04223847301385152
            -0.030239463756696647 1.0
        """),
        table("""
            3.288747994770327e-25 1.586189073223718e-23 1.3075972070753985e-21
            6.116868264533324e-20 2.7960064939283178e-18 1.0599921242484743e-16
            3.596912941463891e-15 1.077275482643505e-13 2.872280443962973e-12
            6.807353464202147e-11 1.4313338566323807e-09 2.6576916352650918e-08
            4.3275531144390197e-07 6.118791799191172e-06 7.410865861014329e-05
            0.0007545607386686332 0.0062891787162330575 0.0412512353948448
            0.19985660828716628 0.6364272029099699 1.0
        """),
    ),
    "float32": Quotient(
        table("""
            9.518180832488633e-08 1.4162263377519105e-06 2.4784534720153703e-05
            0.0003695717515853857 0.0018332235402183951 0.037847084145446054
            -0.023048266685623438 0.9999999811623158
        """),
        table("""
            1.9076838142685504e-07 2.6829275100781547e-06 5.129126947039702e-05
            0.000601473247708529 0.005679323246641782 0.039891817502092086
            0.20026251898779762 0.6436177855594515 1.0
        """),
    ),
}

# D(x) x, a function of x^2, for larger x.
DAWSON_FAR = {
    "float64": Quotient(
        table("""
            0.5 -16.479200356055546 173.95175722718272 -685.369590840836
            867.4158945410069 -163.43867361851665
        """),
        table("""
            1.0 -33.45840071211109 363.88271481041926 -1529.4617385517017
            2282.8226232404045 -813.4328793953076
        """),
    ),
    "float32": Quotient(
        table("""
            0.49999999994258604 -6.166626838659588 16.147075916290362 -5.299061296120961
        """),
        table("""
            1.0 -12.833253852260626 37.96081697604401 -21.83117374575292
        """),
    ),
}

# erfcx(x), for x >= 0.
ERFCX = {
    "float64": Quotient(
        table("""
            6.265572959484368e-06 0.00014268677181842 0.0016242317909869576
            0.01200190307902931 0.06336939731712829 0.24959770139580956
            0.7459532517880759 1.6896920176781067 2.8456748715582214 3.405506961520863
            2.6248247492083285 1.0
        """),
        table("""
            1.1105438920167538e-05 0.0002529057181828352 0.0028844286121580804
            0.02139927218971163 0.11375321753120163 0.4529103638218902
            1.3769018237545982 3.205781048836017 5.652298824522105 7.3377753206938365
            6.640544070539433 3.7532039163038404 1.0
        """),
    ),
    "float32": Quotient(
        table("""
            0.01463163019684199 0.12266090664465544 0.49277978054100674
            1.1471835872296758 1.546551406027158 0.9999999995524694
        """),
        table("""
            0.025933889311794533 0.21741078265018912 0.886397529436066
            2.1419986860935603 3.165520810717024 2.674930510119411 1.0
        """),
    ),
}


# The numbers of terms of Weideman's series, and of the asymptotic series for abs(z) > 7.
_TERMS = {"float32": (20, 9), "float64": (40, 26)}


# The real and the imaginary part.
_Parts = tuple[Array, Array]


@functools.cache
def _weideman(count: int) -> tuple[float, tuple[float, ...]]:
    """Return the scale and the `count` coefficients of Weideman's expansion (1994).

    The highest power comes first.
    """
    points = 4 * count
    scale = math.sqrt(count / math.sqrt(2))
    tangent = scale * np.tan(np.arange(1 - points // 2, points // 2) * np.pi / points)
    values = np.concatenate([[0.0], np.exp(-(tangent**2)) * (scale**2 + tangent**2)])
    coefficients = np.real(np.fft.fft(np.fft.fftshift(values))) / points
    return scale, tuple(coefficients[count:0:-1].tolist())


def _product(z: _Parts, w: _Parts) -> _Parts:
    return z[0] * w[0] - z[1] * w[1], z[0] * w[1] + z[1] * w[0]


def _complex_polynomial(coefficients: list[Array], z: _Parts) -> _Parts:
    """Return the polynomial of z with real coefficients, from the highest power down.

    It is the sum of four polynomials of z**4, which a processor computes in parallel.
    """
    square = _product(z, z)
    fourth = _product(square, square)
    powers: list[_Parts] = []
    for k in range(4):
        first, *others = coefficients[k::4]
        total: _Parts = first, 0.0 * first
        for coefficient in others:
            total = _product(total, fourth)
            total = total[0] + coefficient, total[1]
        powers.append(total)
    total = powers[0]
    for power in powers[1:]:
        total = _product(total, z)
        total = total[0] + power[0], total[1] + power[1]
    return total


def _upper(x: Array, y: Array) -> _Parts:
    """Return the parts of the Faddeeva function of x + i y for finite x and nonnegative y."""
    dtype = typeof(x).dtype
    terms, far_terms = _TERMS[dtype.name]
    scale, near_series = _weideman(terms)
    # The asymptotic series DLMF 7.12.1 in 1 / z^2, for w(z) / (i / z).
    far_series = [1 / math.sqrt(math.pi)]
    for k in range(1, far_terms):
        far_series.append(far_series[-1] * (k - 0.5))
    far = jnp.square(x) + jnp.square(y) > 49
    # The squares of great numbers would be infinite.
    great, less = (2.0**60, 2.0**-80) if dtype == np.float32 else (2.0**500, 2.0**-600)
    shrink = jnp.where(jnp.maximum(jnp.abs(x), y) > great, less, 1.0)
    # The inverse of L - i z, or of z.
    real = jnp.where(far, x * shrink, scale + y)
    imaginary = jnp.where(far, y * shrink, -x)
    inverse = 1 / (jnp.square(real) + jnp.square(imaginary))
    real, imaginary = real * inverse * shrink, -imaginary * inverse * shrink
    # The variables of the series are (L + i z) / (L - i z), and 1 / z^2.
    ratio = ((scale - y) * (scale + y) - jnp.square(x)) * inverse
    a = jnp.where(far, (real - imaginary) * (real + imaginary), ratio)
    b = jnp.where(far, 2 * real * imaginary, 2 * scale * x * inverse)
    padding = [0.0] * (terms - far_terms)
    pairs = zip(near_series, [*padding, *reversed(far_series)], strict=True)
    series = [jnp.where(far, far_term, 2 * near_term) for near_term, far_term in pairs]
    total = _complex_polynomial(series, (a, b))
    near_real, near_imaginary = _product(total, (real, imaginary))
    total_real = jnp.where(far, -total[1], near_real + 1 / math.sqrt(math.pi))
    total_imaginary = jnp.where(far, total[0], near_imaginary)
    return _product((total_real, total_imaginary), (real, imaginary))


@custom_jvp
def _wofz(z: Array) -> Array:
    x, y = jnp.real(z), jnp.imag(z)
    is_infinite = jnp.isinf(x) | jnp.isinf(y)
    below = y < 0
    real, imaginary = _upper(jnp.where(below, -x, x), jnp.abs(y))
    depth = jnp.minimum(y, 0.0)
    # On the real axis the real part is exp(-z^2), below it w(z) = 2 exp(-z^2) - w(-z).
    power = jnp.exp((depth - x) * (depth + x))
    real = jnp.where(y == 0, power, jnp.where(is_infinite, 0.0, real))
    imaginary = jnp.where(is_infinite, 0.0, imaginary)
    size, angle = 2 * power, -2 * jnp.where(below, x, 0.0) * depth
    real = jnp.where(below, size * jnp.cos(angle) - real, real)
    imaginary = jnp.where(below, size * jnp.sin(angle) - imaginary, imaginary)
    return elementwise.complex(real, imaginary)


_wofz.defjvps(lambda t, result, z: t * (2j / math.sqrt(math.pi) - 2 * z * result))


@operation
def wofz(z: ArrayLike) -> Array:
    """Compute elementwise the Faddeeva function, exp(-z^2) erfc(-i z).

    The method is that of Weideman, "Computation of the complex error function" (1994), and far from
    0 the asymptotic series.

    Args:
      z: an array of complex or real numbers.

    Returns:
      An array of complex numbers.
    """
    (z,) = inexact_arrays("wofz", z)
    return _wofz(convert(z, to_complex_dtype(typeof(z).dtype), False))


# ---- of real numbers -----------------------------------------------------------------------------


def _exp_of_square(x: Array) -> Array:
    """Return exp(x^2) for x up to 30, with what the rounding of the square loses."""
    bits = 6 if typeof(x).dtype == np.float32 else 20
    # A number with so few bits has an exact square.
    first = jnp.round(x * 2.0**bits) * 2.0**-bits
    square = jnp.square(x)
    lost = (jnp.square(first) - square) + (x - first) * (x + first)
    return jnp.exp(square) * (1 + lost)


def _erfcx_quotient(x: Array) -> tuple[Array, Array]:
    """Return a numerator and a denominator of exp(x^2) erfc(x) for positive numbers."""
    quotient = ERFCX[typeof(x).dtype.name]
    # Beyond, the first term of the asymptotic series DLMF 7.12.1 is exact.
    limit = 1e4 if typeof(x).dtype == np.float32 else 1e9
    is_huge = x > limit
    near = jnp.where(is_huge, limit, x)
    above = jnp.where(is_huge, 1 / math.sqrt(math.pi), paired_polynomial(quotient.above, near))
    return above, jnp.where(is_huge, x, paired_polynomial(quotient.below, near))


def erfcx_of_positive(x: Array) -> Array:
    """Return exp(x^2) erfc(x) of positive float32 or float64 numbers."""
    above, below = _erfcx_quotient(x)
    return above / below


@custom_jvp
def real_erfcx(x: Array) -> Array:
    """Return exp(x^2) erfc(x) of float32 or float64 numbers."""
    size, is_negative = jnp.abs(x), x < 0
    above, below = _erfcx_quotient(size)
    # The sign goes into the numerator: a quotient that is read twice would be stored in memory.
    upper = jnp.where(is_negative, -above, above) / below
    # For x < -30 the result overflows.
    power = jnp.where(size < 30, 2 * _exp_of_square(jnp.minimum(size, 30)), jnp.inf)
    return jnp.where(is_negative, power, 0.0) + upper


def _slope_of_erfcx(x: Array, result: Array) -> Array:
    # For large x the two terms cancel; the asymptotic series DLMF 7.12.1 does not.
    far = x > 25
    square = 1 / jnp.square(jnp.where(far, x, 25.0))
    tail = 1 - square * (1.5 - square * (3.75 - square * (13.125 - square * 59.0625)))
    near = 2 * jnp.where(far, 0.0, x) * result - 2 / math.sqrt(math.pi)
    return jnp.where(far, -square * tail / math.sqrt(math.pi), near)


real_erfcx.defjvps(lambda t, result, x: t * _slope_of_erfcx(x, result))


@operation
def erfcx(x: ArrayLike) -> Array:
    """Compute elementwise the scaled complementary error function, exp(x^2) erfc(x).

    For real numbers the method is a quotient of polynomials; for complex ones it is `wofz`.

    Args:
      x: real or complex numbers; integers and booleans are converted to the default float dtype.

    Returns:
      An array of the shape and inexact dtype of x.
    """
    (x,) = inexact_arrays("erfcx", x)
    if is_complex(typeof(x).dtype):
        x = times_one(x)
        return _wofz(elementwise.complex(-jnp.imag(x), jnp.real(x)))
    return in_float32(real_erfcx, strong(x))


@custom_jvp
def _dawsn(x: Array) -> Array:
    dtype = typeof(x).dtype
    near, far = DAWSON_NEAR[dtype.name], DAWSON_FAR[dtype.name]
    border, limit = (4.0, 1e4) if dtype == np.float32 else (6.5, 1e9)
    size = jnp.abs(x)
    is_near, is_huge = size < border, size > limit
    square = jnp.square(jnp.where(is_huge, limit, size))
    # Beyond the limit the first term of the asymptotic series DLMF 7.12 is exact.
    above = jnp.where(is_huge, 0.5, paired_polynomial(far.above, square))
    below = x * jnp.where(is_huge, 1.0, paired_polynomial(far.below, square))
    above = jnp.where(is_near, x * polynomial(near.above, square), above)
    return above / jnp.where(is_near, polynomial(near.below, square), below)


_dawsn.defjvps(lambda t, result, x: t * (1 - 2 * x * result))


@operation
def dawsn(x: ArrayLike) -> Array:
    """Compute elementwise Dawson's integral, exp(-x^2) times the integral of exp(t^2) from 0 to x.

    The method is x times a quotient of polynomials of x^2, and for large x another one over x.

    Args:
      x: real numbers; integers and booleans are converted to the default float dtype.

    Returns:
      An array of the shape and floating-point dtype of x.

    Raises:
      ValueError: if x is complex.
    """
    return in_float32(_dawsn, *strong_floats("dawsn", x))
