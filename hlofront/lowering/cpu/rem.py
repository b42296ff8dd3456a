"""The replacement of rem on CPUs: the dividend minus the divisor times the rounded quotient.

XLA's CPU code calls fmod of the C library for each element, which subtracts bit by bit. If the
quotient is not too large, its product with the divisor is exact, and so is the difference. If any
operand is unusual, XLA's operation computes all elements.
"""

from collections.abc import Callable

from hlofront.base.elements import float32, float64
from hlofront.lowering.core.formulas import Formula, floor, where
from hlofront.lowering.cpu.elementwise import replaced_by_formula
from hlofront.lowering.cpu.float_bits import narrow, sign_bit, wide, with_sign, without_last_bits
from hlofront.primitives.elementwise import elementwise as e


def _needs_fallback(
    greatest_quotient: float, least_divisor: float
) -> Callable[[Formula, Formula], Formula]:
    """Return a function of the operands that is True where the formula may be wrong.

    It may be if the quotient is too large, or if the remainder may be subnormal, because XLA's
    arithmetic flushes subnormal numbers to zero.
    """

    def needs_fallback(x: Formula, y: Formula) -> Formula:
        dividend, divisor = abs(x), abs(y)
        return (dividend >= divisor * greatest_quotient) | (divisor < least_divisor)

    return needs_fallback


@replaced_by_formula(e.rem_p, float32, _needs_fallback(2.0**28, 2.0**-100))
def _rest_of_float32(x: Formula, y: Formula) -> Formula:
    dividend, divisor = wide(abs(x)), wide(abs(y))
    remainder = dividend - floor(dividend / divisor) * divisor
    return where(abs(x) < abs(y), x, with_sign(narrow(remainder), sign_bit(x)))


@replaced_by_formula(e.rem_p, float64, _needs_fallback(2.0**26, 2.0**-960))
def _rest_of_float64(x: Formula, y: Formula) -> Formula:
    dividend, divisor = abs(x), abs(y)
    quotient = floor(dividend / divisor)
    # The products of the quotient and the two parts of the divisor are exact.
    first = without_last_bits(divisor, 27)
    remainder = dividend - quotient * first - quotient * (divisor - first)
    # A quotient just below an integer was rounded up.
    remainder = where(remainder < 0, remainder + divisor, remainder)
    return where(dividend < divisor, x, where(x < 0, -remainder, remainder))
