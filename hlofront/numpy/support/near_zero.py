"""Functions that are smooth at 0 although their formulas are not: near 0 they are power series.

The derivatives of a series are right to all orders that its terms reach, even at 0 itself, where
those of the formula divide by 0 or stop at the kink of an absolute value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from hlofront.base.dtypes import finfo, is_complex
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.numpy.elementwise.ufuncs import inexact_operand, scalar_like
from hlofront.numpy.support.like import operation_like
from hlofront.numpy.support.promotion import choose
from hlofront.primitives.elementwise import compare, elementwise, special
from hlofront.primitives.elementwise.converting import convert

# All coefficients together are accurate to float64 on the whole interval, also for the first
# derivatives; this many of them are accurate to float32.
_IN_FLOAT32 = 10
_SINE_OVER = tuple([(-1) ** k / math.factorial(2 * k + 1) for k in range(16)])
_I0 = tuple([1 / (4**k * math.factorial(k) ** 2) for k in range(18)])
_I1_OVER = tuple([0.5 / (4**k * math.factorial(k) * math.factorial(k + 1)) for k in range(18)])


def _even_series(coefficients: Sequence[float], x: Array) -> Array:
    """Return the sum of coefficients[k] x**(2 k), by Horner's scheme."""
    aval = typeof(x)
    if finfo(aval.dtype).nmant < 24:
        coefficients = coefficients[:_IN_FLOAT32]
    square = elementwise.square(x)
    total = scalar_like(aval, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = elementwise.add(elementwise.mul(square, total), scalar_like(aval, coefficient))
    return total


def _by_series(
    name: str, x: ArrayLike, series: Callable[[Array], Array], formula: Callable[[Array], Array]
) -> Array:
    """Return `series(x)` where abs(x) is below 1, and `formula(x)` elsewhere.

    Where one of the two is selected, the other is called with a harmless number, so that neither
    puts NaN into the derivative.
    """
    aval = typeof(x)
    near = _inside_unit_circle(x)
    small = choose(name, near, x, scalar_like(aval, 0))
    large = choose(name, near, scalar_like(aval, 1), x)
    return choose(name, near, series(small), formula(large))


def _inside_unit_circle(x: ArrayLike) -> Array:
    if not is_complex(typeof(x).dtype):
        return compare.lt(elementwise.abs(x), scalar_like(typeof(x), 1))
    real, imag = elementwise.real(x), elementwise.imag(x)
    length = elementwise.add(elementwise.square(real), elementwise.square(imag))
    return compare.lt(length, scalar_like(typeof(length), 1))


@operation_like(np.sinc)
def sinc(x: ArrayLike, /) -> Array:
    """Compute `sin(pi x) / (pi x)` elementwise, which is 1 at zero.

    Example:
      >>> jnp.sinc(jnp.array([0, 0.5])).round(3)
      Array([1.   , 0.637], dtype=float32)
    """
    x = inexact_operand("sinc", x)
    return sine_over(elementwise.mul(scalar_like(typeof(x), math.pi), x))


def sine_over(x: Array) -> Array:
    """Compute sin(x) / x elementwise for floats or complex numbers; it is 1 at zero."""
    return _by_series(
        "sinc",
        x,
        lambda u: _even_series(_SINE_OVER, u),
        lambda u: elementwise.div(elementwise.sin(u), u),
    )


@operation_like(np.i0)
def i0(x: ArrayLike) -> Array:
    """Compute the modified Bessel function of the first kind and order 0, elementwise.

    Raises ValueError for complex x.

    Example:
      >>> jnp.i0(jnp.array([0, 1])).round(3)
      Array([1.   , 1.266], dtype=float32)
    """
    x = inexact_operand("i0", x)
    if is_complex(typeof(x).dtype):
        raise ValueError(f"i0 does not support complex numbers, got dtype {typeof(x).dtype}")
    return convert(bessel_i0(x), typeof(x).dtype, typeof(x).weak_type)


def bessel_i0(x: ArrayLike) -> Array:
    """Compute the modified Bessel function of the first kind and order 0 of an array of floats."""
    return _by_series(
        "i0",
        x,
        lambda u: _even_series(_I0, u),
        lambda u: elementwise.mul(elementwise.exp(elementwise.abs(u)), special.bessel_i0e(u)),
    )


def bessel_i1(x: ArrayLike) -> Array:
    """Compute the modified Bessel function of the first kind and order 1 of an array of floats."""
    return _by_series(
        "i1",
        x,
        lambda u: elementwise.mul(u, _even_series(_I1_OVER, u)),
        lambda u: elementwise.mul(elementwise.exp(elementwise.abs(u)), special.bessel_i1e(u)),
    )
