"""The replacement of the cube root on CPUs: an iteration in float64 without divisions.

XLA's operation calls a scalar function, is wrong for subnormal numbers, and has errors of up to 3.3
ulp in float64; the formula has 0.5 ulp.
"""

import numpy as np

from hlofront.base.elements import float32, float64, int64
from hlofront.lowering.core.formulas import Formula, clip, polynomial, where
from hlofront.lowering.cpu.elementwise import replaced_by_formula
from hlofront.lowering.cpu.float_bits import (
    magnitude,
    narrow,
    reinterpreted,
    shifted_left,
    shifted_right,
    sign_bit,
    with_sign,
    with_sign_of,
    without_last_bits,
)
from hlofront.primitives.elementwise import elementwise as e

# The bits of float64, as an integer, are nearly the logarithm of a number. These are the bits of 1,
# and a correction with which the error of the first guess is at most 4 %.
_BITS_OF_ONE = 1023 * 2.0**52
_CORRECTION = 0.035 * 2.0**52
# The bits of a number from 2**52 to 2**53 are those of 2**52 plus the distance from it.
_BIG = 2.0**52
_BITS_OF_BIG = int(np.float64(_BIG).view(int64))
# The first guess only needs the upper bits; there are fewer than 52.
_DROPPED_BITS = 20


@replaced_by_formula(e.cbrt_p, float32)
def _cube_root(x: Formula) -> Formula:
    number = clip(0, magnitude(x), 1e300)
    inverse = _inverse_root(number)
    return with_sign(narrow(number * inverse * inverse), sign_bit(x))


@replaced_by_formula(e.cbrt_p, float64)
def _cube_root_of_float64(x: Formula) -> Formula:
    bits = reinterpreted(abs(x), int64)
    # The bits of a subnormal number are its multiple of the unit 2**-1074.
    is_subnormal = bits < int(np.finfo(float64).smallest_normal.view(int64))
    units = reinterpreted(bits + _BITS_OF_BIG, float64) - _BIG
    # Scale extreme numbers, so that the products below are not subnormal.
    is_small, is_large = abs(x) < 2.0**-480, abs(x) > 2.0**480
    number = where(is_subnormal, units * 2.0**-534, where(is_small, abs(x) * 2.0**540, abs(x)))
    number = where(is_large, abs(x) * 2.0**-540, number)
    inverse = _inverse_root(number)
    # A root rounded to 24 bits, whose cube is the sum of two exact products, and the error of the
    # cube.
    root = without_last_bits(number * inverse * inverse, 29)
    square = root * root
    first = without_last_bits(square, 27)
    lost = (number - first * root) - (square - first) * root
    error = lost * (inverse * inverse * inverse)
    root = root + root * (error * (1 / 3) + error * error * (2 / 9))
    root = where(is_small, root * 2.0**-180, where(is_large, root * 2.0**180, root))
    root = where(abs(x) < np.inf, root, abs(x))
    root = where(bits.equals(0), 0, root)
    return with_sign_of(x, root)


def _inverse_root(number: Formula) -> Formula:
    """Return number**(-1/3) of positive finite numbers, by an iteration of the fourth order.

    It is the series of (1 - x)**(-1/3). Integers are converted to floats and back by adding a large
    number: AVX2 has no instructions to convert int64, and other code would double the time.
    """
    bits = shifted_right(reinterpreted(number, int64), _DROPPED_BITS) + _BITS_OF_BIG
    logarithm = reinterpreted(bits, float64) - _BIG
    guess = (4 / 3 * _BITS_OF_ONE - _CORRECTION) * 2.0**-_DROPPED_BITS - logarithm * (1 / 3)
    bits = shifted_left(reinterpreted(guess + _BIG, int64), _DROPPED_BITS)
    inverse = reinterpreted(bits, float64)
    for _ in range(2):
        error = 1 - number * inverse * (inverse * inverse)
        series = polynomial(error, [1 / 3, 2 / 9, 14 / 81])
        inverse = inverse + inverse * error * series
    return inverse
