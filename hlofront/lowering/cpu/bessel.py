"""Replacements of i0e and i1e, modified Bessel functions, on CPUs in float64.

Below a border the unscaled function, divided by x for i1e, is a rational function of x**2, times
exp(-|x|); beyond it the scaled one is a rational function of x, divided by the square root of x
(DLMF 10.25.2 and 10.40.1). The errors are at most 8 ulp. Beyond the border the limit is separated
from the quotient, which loses less precision than two quotients of polynomials.
"""

import math

import numpy as np

from hlofront.base.elements import float64
from hlofront.base.named_tuple import NamedTuple
from hlofront.lowering.core.formulas import Formula, clip, exp, polynomial, where
from hlofront.lowering.cpu.elementwise import replaced_by_formula
from hlofront.lowering.cpu.float_bits import filled_like, inverse_square_root
from hlofront.primitives.elementwise import special as s


class _Approximation(NamedTuple):
    """A numerator and a denominator below the border, and those beyond it."""

    near: tuple[list[float], list[float]]
    far: tuple[list[float], list[float]]


# The limit of the scaled functions times the square root of x.
_AT_INFINITY = 1 / math.sqrt(2 * math.pi)

_BORDER = 15.0
# From here on the rational function of x is constant to the last bit.
_LIMIT = 1e18

# Interpolations at Chebyshev's points, the far ones in 1 / x, with relative errors of 3e-16 and
# 6e-16.
_ORDER_0 = _Approximation(
    near=(
        [
            1.0000000000000002,
            0.24466435836581182,
            0.014304483041360191,
            0.00035398619888065574,
            4.670025608054112e-06,
            3.712957357280574e-08,
            1.913405544588877e-10,
            6.678041017722641e-13,
            1.6152875691625434e-15,
            2.71662020252887e-18,
            3.104797960402449e-21,
            2.2405699873934616e-24,
            8.12090506805312e-28,
        ],
        [
            0.28956699580210427,
            0.00163975373949122,
            4.468913451660856e-06,
            7.664071352923073e-09,
            9.026965470497496e-12,
            7.400022366697585e-15,
            3.9794402887371286e-18,
            1.111152694254136e-21,
        ],
    ),
    far=(
        [
            0.19428950761480102,
            1.2669371961457463,
            -5.3810507539508015,
            3.678934239424256,
            -0.7888716402068265,
            0.04986778505017903,
        ],
        [
            0.0,
            0.0,
            71.87975438145315,
            -145.55632434792133,
            82.40256924464315,
            -16.38176366717878,
            1.0,
        ],
    ),
)
_ORDER_1 = _Approximation(
    near=(
        [
            0.5,
            0.05996586211777557,
            0.0022934334670404602,
            4.180032466710139e-05,
            4.335366210409487e-07,
            2.8243768601342086e-09,
            1.2272447741772554e-11,
            3.68773440096936e-14,
            7.801678028036634e-17,
            1.161543996332184e-19,
            1.1859587593616424e-22,
            7.694261113605077e-26,
            2.5121258346406347e-29,
        ],
        [
            0.3083247543036859,
            0.0016574177356747026,
            4.2762464322437936e-06,
            6.920889105232759e-09,
            7.664354085283556e-12,
            5.880780995882904e-15,
            2.942885997549449e-18,
            7.584885986261609e-22,
        ],
    ),
    far=(
        [
            -0.38279963678377865,
            -4.966604790448428,
            16.17459053698509,
            -10.811195021065934,
            2.335450741363409,
            -0.1496033551505372,
        ],
        [
            0.0,
            0.0,
            57.5975262970782,
            -128.1995633356982,
            76.96836679549143,
            -15.923451632826511,
            1.0,
        ],
    ),
)


def _scaled(x: Formula, known: _Approximation) -> Formula:
    """Return the near rational function times exp(-|x|), or the far one over the root of |x|."""
    distance = abs(x)
    is_near = distance <= _BORDER
    near, far = clip(0, distance, _BORDER), clip(_BORDER, distance, _LIMIT)
    # In the distance from the border, all terms of the denominator are positive.
    below = (_BORDER - near) * (_BORDER + near)
    numerator, denominator = (
        where(is_near, polynomial(z, of_near), polynomial(far, of_far))
        for z, of_near, of_far in zip((near * near, below), known.near, known.far)
    )
    one = filled_like(x, 1, float64)
    total = where(is_near, 0, one * _AT_INFINITY) + numerator / denominator
    # LLVM makes no vector instructions of AVX2 of square roots and exponentials in a loop.
    result = where(is_near, exp(-near), inverse_square_root(distance)) * total
    return where(distance.equals(np.inf), 0, result)


@replaced_by_formula(s.bessel_i0e_p, float64)
def _of_order_zero(x: Formula) -> Formula:
    return _scaled(x, _ORDER_0)


@replaced_by_formula(s.bessel_i1e_p, float64)
def _of_order_one(x: Formula) -> Formula:
    one = filled_like(x, 1, float64)
    return _scaled(x, _ORDER_1) * where(abs(x) <= _BORDER, x, where(x < 0, -1, one))
