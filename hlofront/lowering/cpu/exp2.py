"""The replacement of exp2 on CPUs: a function of the fraction, times a power of two.

Elsewhere exp2 is lowered to a power, for which XLA's CPU code calls a scalar function. The formula
here is 2**x = 2**n (1 + 2 r / (r / tanh(r log(2) / 2) - r)), where n is the integer next to x, and
r = x - n. The quotient of r and the hyperbolic tangent is a polynomial of r**2. XLA never computes
a quotient twice, so the result needs no barrier to be materialized, and can be fused with other
operations. A polynomial for 2**r would be slightly faster, but XLA would recompute it for each
user. The errors are at most 1.15 ulp, and 0.51 ulp for the power; exp(x log 2) would be much less
precise.
"""

import numpy as np

from hlofront.base.elements import float32, float64, int32, int64
from hlofront.base.typing import Array
from hlofront.lowering.core.formulas import Formula, clip, polynomial, rounded, where
from hlofront.lowering.cpu.float_bits import as_dtype, reinterpreted, shifted_left
from hlofront.lowering.min_sizes import MIN_SIZES
from hlofront.lowering.replacements import (
    Candidate,
    Emit,
    computed_in,
    has_default_accuracy,
    is_large,
    replaces,
    traced,
)
from hlofront.primitives.elementwise import elementwise as e

_BITS = {float32: int32, float64: int64}

# Interpolations at Chebyshev's points of r / tanh(r log(2) / 2) to 1/2, as polynomials of the
# square: with relative errors of 1.8e-9 and 1.6e-17.
_QUOTIENT = {
    float32: [2.8853900869218165, 0.11552415967147486, -0.0009211135213008522],
    float64: [
        2.8853900817779268,
        0.11552453009332359,
        -0.0009250684777172445,
        1.0582188496594394e-05,
        -1.271021888694399e-07,
        1.5281487752255911e-09,
    ],
}


@replaces(e.exp2_p, splits=True)
def _(equation: Candidate) -> Emit | None:
    """A vectorized formula."""
    (aval,) = equation.avals_in
    dtype = computed_in(aval.dtype)
    if dtype not in _BITS or not has_default_accuracy(equation):
        return None
    return traced(_of_array) if is_large(aval, MIN_SIZES["exp2"][dtype.name]) else None


def _of_array(x: Array) -> Array:
    return as_dtype(_power_of_two(as_dtype(Formula(x), computed_in(x.dtype))), x.dtype).value


def _power_of_two(x: Formula) -> Formula:
    """Return two to the power of numbers of float32 or float64."""
    limits, bits = np.finfo(x.dtype), _BITS[x.dtype]
    # By the shift below, 2**(least - 1) gets the bits of 0, and 2**maxexp those of infinity.
    number = clip(limits.minexp - 1, x, limits.maxexp)
    fraction = number - rounded(number)
    quotient = polynomial(fraction * fraction, _QUOTIENT[x.dtype])
    power = 1 + (fraction + fraction) / (quotient - fraction)
    # The last bits of this sum are those of the integer part.
    whole = reinterpreted(number + 1.5 * 2.0**limits.nmant, bits)
    result = reinterpreted(reinterpreted(power, bits) + shifted_left(whole, limits.nmant), x.dtype)
    # XLA's arithmetic flushes subnormal results to zero. The difference is 0, or NaN for a NaN.
    return where(x >= limits.minexp, result, number - number)
