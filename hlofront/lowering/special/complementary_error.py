"""The lowering of erfc with the highest accuracy, which XLA's operation does not offer."""

import numpy as np

from hlofront.base.elements import float32
from hlofront.base.typing import Array
from hlofront.lowering.core.formulas import Formula, clip, exp, expm1, polynomial, where
from hlofront.primitives.elementwise import elementwise as e
from hlofront.primitives.elementwise.converting import bitcast_convert_type
from hlofront.primitives.elementwise.special import erf

# erfc(x) exp(x**2) (1 + 2 x) of positive x, as a polynomial of (x - _CENTER) / (x + _CENTER):
# interpolated at Chebyshev's points, with an error of 1.4e-16.
_CENTER = 3.75
_SCALED = [
    1.2375126308378275,
    -0.14024059858554522,
    0.0035854154854663067,
    0.08227673848999159,
    -0.10880393014193915,
    0.09230432116435616,
    -0.058693398584491845,
    0.028362277371370044,
    -0.00974657962081509,
    0.0017556261692276722,
    0.00029371408777227685,
    -0.0002901553656394713,
    5.164737123871838e-05,
    2.238759272534769e-05,
    -1.143961526007595e-05,
    -9.79297529099823e-07,
    1.7438577411359181e-06,
    -5.0816911811698186e-08,
    -2.4996538037405243e-07,
    1.8778501156468795e-08,
    3.256499083798513e-08,
    -1.952790162974837e-09,
    -2.7293941332533855e-09,
]
# Up to here 1 - erf(x) is exact enough, and 1 at 0.
_NEAR = 0.25
# From here on the function is 0 in float64.
_LIMIT = 30.0


def exact_erfc(x: Array) -> Array:
    """Return erfc of float32 or float64 numbers, with an error of about 2 ulp."""
    of_x = Formula(x)
    distance = clip(0, abs(of_x), _LIMIT)
    scaled = polynomial((distance - _CENTER) / (distance + _CENTER), _SCALED)
    # The square of the upper half of the digits is exact, and the difference is small.
    upper = Formula(_upper_half(distance.value))
    factor = exp(-(upper * upper))
    rest = expm1((upper - distance) * (upper + distance))
    tail = (factor + factor * rest) * (scaled / (1 + 2 * distance))
    near = 1 - Formula(erf(x))
    return where(distance < _NEAR, near, where(of_x < 0, 2 - tail, tail)).value


def _upper_half(x: Array) -> Array:
    """Return the numbers without the lower half of their digits."""
    unsigned, digits = (np.uint32, 12) if x.dtype == float32 else (np.uint64, 27)
    mask = unsigned(~((1 << digits) - 1) & int(np.iinfo(unsigned).max))
    return bitcast_convert_type(e.bitwise_and(bitcast_convert_type(x, unsigned), mask), x.dtype)
