"""Lowering rules of i0e and i1e, modified Bessel functions, for CPUs: two rational functions each.

Below a border the unscaled function, divided by x for i1e, is a rational function of x**2, times
exp(-|x|); beyond it the scaled one is a rational function of x, divided by the square root of x
(DLMF 10.25.2 and 10.40.1). The errors are at most 4.4 ulp in float32, where XLA's are 10, and 8 ulp
in float64. Beyond the border the limit is separated from the quotient, which loses less precision
than two quotients of polynomials.
"""

import math

import numpy as np

from hlofront.base.named_tuple import NamedTuple
from hlofront.lowering.core.formulas import Formula, clip, exp, polynomial, sqrt, where
from hlofront.lowering.cpu.elementwise import replaced_by_formula
from hlofront.lowering.cpu.float_bits import filled_like, reinterpreted, shifted_right
from hlofront.primitives.elementwise import special as s

_float32, _float64 = np.dtype(np.float32), np.dtype(np.float64)
_int64 = np.dtype(np.int64)


class _Approximation(NamedTuple):
    """A numerator and a denominator below the border, and those beyond it."""

    near: tuple[list[float], list[float]]
    far: tuple[list[float], list[float]]


class _Range(NamedTuple):
    """The border of the approximations of a dtype, and the greatest number they are needed for."""

    border: float
    limit: float
    """From here on the rational function of x is constant to the last bit."""


# The limit of the scaled functions times the square root of x.
_AT_INFINITY = 1 / math.sqrt(2 * math.pi)

_RANGES = {_float32: _Range(8.0, 1e9), _float64: _Range(15.0, 1e18)}

# Interpolations at Chebyshev's points, the far ones in 1 / x, with relative errors of 6e-10 and
# 2e-9 for float32, and 3e-16 and 6e-16 for float64.
_ORDER_0 = {
    _float32: _Approximation(
        near=(
            [
                1.000000000629994,
                0.23904043196967226,
                0.01293872072955795,
                0.00027604762426087636,
                2.827983276520993e-06,
                1.4622741216447965e-08,
                3.3485758725788515e-11,
            ],
            [
                0.48438974991794287,
                0.005638693403403967,
                3.0855737571749846e-05,
                9.776864163485338e-08,
                1.6208340988092948e-10,
            ],
        ),
        far=(
            [
                0.05082265411868122,
                -0.17401270184373022,
                0.049867791000231684,
            ],
            [
                0.0,
                2.7097277827672794,
                -4.051934452211836,
                1.0,
            ],
        ),
    ),
    _float64: _Approximation(
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
    ),
}
_ORDER_1 = {
    _float32: _Approximation(
        near=(
            [
                0.5000000000217013,
                0.05752143111582887,
                0.00200387910832585,
                3.1025964398540114e-05,
                2.463179663638582e-07,
                1.0273077393189728e-09,
                1.935824013235861e-12,
            ],
            [
                0.5179873369684712,
                0.005471947185416676,
                2.6901870189044217e-05,
                7.55304917944203e-08,
                1.0836825547098505e-10,
            ],
        ),
        far=(
            [
                -0.1780351031735922,
                0.505208051603014,
                -0.14960336330548285,
            ],
            [
                0.0,
                2.068327411364991,
                -3.689462022736886,
                1.0,
            ],
        ),
    ),
    _float64: _Approximation(
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
    ),
}


def _scaled(x: Formula, known: _Approximation) -> Formula:
    """Return the near rational function times exp(-|x|), or the far one over the root of |x|."""
    border, limit = _RANGES[x.dtype]
    distance = abs(x)
    is_near = distance <= border
    near, far = clip(0, distance, border), clip(border, distance, limit)
    # In the distance from the border, all terms of the denominator are positive.
    below = (border - near) * (border + near)
    numerator, denominator = (
        where(is_near, polynomial(z, of_near), polynomial(far, of_far))
        for z, of_near, of_far in zip((near * near, below), known.near, known.far)
    )
    quotient = numerator / denominator
    one = filled_like(x, 1, x.dtype)
    total = where(is_near, 0, one * _AT_INFINITY) + quotient
    result = where(is_near, exp(-near), _inverse_root(distance)) * total
    return where(distance.equals(np.inf), 0, result)


def _inverse_root(x: Formula) -> Formula:
    """Return x**(-1/2) of positive numbers.

    LLVM makes no vector instructions of AVX2 of square roots of float64 and exponentials in a loop.
    Newton's method begins with half of the bits, which are nearly the logarithm, as an integer.
    """
    if x.dtype == _float32:
        return 1 / sqrt(x)
    bits = filled_like(x, 0x5FE6EB50C7B537A9, _int64) - shifted_right(reinterpreted(x, _int64), 1)
    inverse, half = reinterpreted(bits, _float64), x * 0.5
    for _ in range(4):
        inverse = inverse * (1.5 - half * inverse * inverse)
    return inverse


def _of_order_zero(x: Formula) -> Formula:
    return _scaled(x, _ORDER_0[x.dtype])


def _of_order_one(x: Formula) -> Formula:
    border, _ = _RANGES[x.dtype]
    return _scaled(x, _ORDER_1[x.dtype]) * where(
        abs(x) <= border, x, where(x < 0, -1, filled_like(x, 1, x.dtype))
    )


for _dtype in _RANGES:
    replaced_by_formula(s.bessel_i0e_p, _dtype)(_of_order_zero)
    replaced_by_formula(s.bessel_i1e_p, _dtype)(_of_order_one)
