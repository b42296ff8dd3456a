"""Replacements of erf and erf_inv on CPUs in float64: polynomials, exp and log.

XLA's CPU code calls a scalar function of the C library for each erf, with errors of at most 0.91
ulp; here they are at most 0.97 ulp. XLA's formula for erf_inv rounds a square, so its errors are
large near 1; here they are at most 2.5 ulp.
"""

import numpy as np

from hlofront.base.elements import float64
from hlofront.lowering.core.formulas import (
    Formula,
    clip,
    exp,
    parallel_polynomial,
    polynomial,
    sqrt,
    where,
)
from hlofront.lowering.cpu.elementwise import replaced_by_formula
from hlofront.lowering.cpu.float_bits import with_sign_of
from hlofront.lowering.cpu.log import logarithm
from hlofront.primitives.elementwise import special as s

_BORDERS = 0.845, 1.25
# From here on the function is 1 to the last bit.
_LIMIT = 6.0

# Interpolations at Chebyshev's points: erf(x) / x - 1 to the first border, as a polynomial of the
# square, erf(1 + x) - erf(1) between the borders, and erfc(x) exp(x**2) from the second one to the
# limit, as a numerator and a denominator. Their errors are 4e-17, 2e-17 and 2e-16.
_NEAR = [
    0.12837916709551256,
    -0.3761263890318335,
    0.11283791670932594,
    -0.026866170640255645,
    0.00522397757126982,
    -0.0008548323506677763,
    0.00012055190337021296,
    -1.4921921653420798e-05,
    1.6399123262977372e-06,
    -1.5697115571004142e-07,
    1.0675693706713948e-08,
]
_AT_ONE = 0.8427007929497149
_AROUND_ONE = [
    -2.4334650801363016e-17,
    0.41510749742059516,
    -0.4151074974205957,
    0.13836916580651576,
    0.06918458290421238,
    -0.06918458283255466,
    0.004612305310442441,
    0.015154712273608402,
    -0.00477700693944342,
    -0.001884980295966903,
    0.0012251837412692614,
    8.33785268980684e-05,
    -0.0001813574669880125,
]
_FAR = (
    [
        0.9999998401900239,
        1.9282023638916175,
        1.825604041792955,
        1.0722796433335626,
        0.4190671974059373,
        0.10936560666527018,
        0.0178958591307727,
        0.0014848100925169614,
    ],
    [
        1.0,
        3.056580094774255,
        4.274591630652284,
        3.591294537168024,
        1.996175989150931,
        0.7586368647867214,
        0.19516137853948526,
        0.03171958416052484,
        0.0026317573701420093,
    ],
)


@replaced_by_formula(s.erf_p, float64)
def _error_function(x: Formula) -> Formula:
    distance = clip(0, abs(x), _LIMIT)
    # Near zero and near one the result is the sum of a large part, which is exact, and a small one.
    square = distance * distance
    near = distance + distance * parallel_polynomial(square, _NEAR)
    around_one = _AT_ONE + parallel_polynomial(distance - 1, _AROUND_ONE)
    numerator, denominator = (parallel_polynomial(distance, coefficients) for coefficients in _FAR)
    far = 1 - exp(-square) * numerator / denominator
    first, second = _BORDERS
    result = where(distance < first, near, where(distance < second, around_one, far))
    return with_sign_of(x, result)


# ---- the inverse ---------------------------------------------------------------------------------

# Interpolations at Chebyshev's points of erf_inv(x) / x, where w is -log(1 - x**2): in w, around
# 3.125, up to 6.25, and in the square root of w, around 4.255, from there on. Their errors are
# 3e-17 and 1e-16.
_BORDER = 6.25
_CENTERS = 3.125, 4.255
_OF_LOGARITHM = [
    1.6536545626831027,
    0.2401581824255883,
    -0.00603367087142785,
    -0.000740702534154477,
    0.00018673420802464837,
    -1.3882523394405316e-05,
    -1.3654691850603575e-06,
    4.234788173782339e-07,
    -2.9070382262927266e-08,
    -4.11266082002324e-09,
    1.0512181539804126e-09,
    -5.414287198084716e-11,
    -1.2976885526532075e-11,
    2.6304834740560442e-12,
    -8.118399443074353e-14,
    -4.001237735091896e-14,
    6.596407712420834e-15,
    -4.0282154327661744e-17,
    -1.3016928016796445e-16,
    1.557432024623325e-17,
    1.150022252066253e-18,
    -3.4996044354754177e-19,
    -1.113483769832702e-21,
    3.240704459379902e-21,
]
_OF_ROOT = [
    4.0972733327968305,
    1.0099853591748127,
    0.0007036633084353835,
    -0.000603666543217407,
    0.00021057441768173064,
    -6.376566245937735e-05,
    2.1627241641142244e-05,
    -9.968230345629464e-06,
    5.664432413048045e-06,
    -3.1373602268774103e-06,
    1.4619931570387882e-06,
    -5.095493496650357e-07,
    9.488312156086506e-08,
    2.345593676869045e-08,
    -2.9138825066258352e-08,
    1.3261274807592605e-08,
    -3.0850713613447387e-09,
    -1.9052234423936496e-10,
    4.467643576902728e-10,
    -1.6593133109826434e-10,
    3.352679392405503e-11,
    -2.9929268412731788e-12,
    -3.753648051608786e-12,
    2.575617647192744e-12,
    -3.384618648860786e-13,
    -1.4230093845331964e-13,
    3.481079187023963e-14,
]


_MORE_EXACT = "A formula that keeps its precision near 1, where XLA's loses half of the digits."


@replaced_by_formula(s.erf_inv_p, float64, description=_MORE_EXACT)
def _inverse(x: Formula) -> Formula:
    # Both factors of 1 - x**2 are exact where their product is small.
    distance = where(abs(x) < 1, abs(x), 0.0)
    w = -logarithm((1 - distance) * (1 + distance))
    of_logarithm = polynomial(w - _CENTERS[0], _OF_LOGARITHM)
    of_root = polynomial(sqrt(where(w < _BORDER, _BORDER, w)) - _CENTERS[1], _OF_ROOT)
    result = x * where(w < _BORDER, of_logarithm, of_root)
    at_end = where(abs(x).equals(1), x * np.inf, np.nan)
    return where(abs(x) < 1, result, at_end)
