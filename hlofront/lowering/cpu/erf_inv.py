"""The lowering rule of erf_inv for CPUs in float64: polynomials of a logarithm.

XLA's formula rounds a square, so that its errors are large near 1; here they are at most 2.5 ulp.
"""

import numpy as np

from hlofront.base.elements import float64
from hlofront.lowering.core.formulas import Formula, polynomial, sqrt, where
from hlofront.lowering.cpu.elementwise import replaced_by_formula
from hlofront.lowering.cpu.log import logarithm
from hlofront.primitives.elementwise import special as s

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
