# pyright: strict
"""Taylor rules of elementwise primitives: recurrences for the terms of a series.

Source: A. Griewank and A. Walther, Evaluating Derivatives, 2nd edition, SIAM 2008, chapter 13: if
v' = w u' along a curve, the coefficients of v follow from those of u and w, where w may depend on
the earlier ones of v. Primitives without a rule here, such as log or erf, use the general one of
transforms/taylor.py.
"""

import math
from collections.abc import Callable, Sequence

from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core.aval import typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import TaylorRule, taylor
from hlofront.core.symbolic_zeros import Series, ZeroSeries, zero_series
from hlofront.core.trace import process
from hlofront.primitives.arrays.creation import scalar_like
from hlofront.primitives.arrays.dynamic_slicing import dynamic_update_slice_p
from hlofront.primitives.arrays.gathering import gather_p
from hlofront.primitives.arrays.scattering import scatter_add_p, scatter_sub_p
from hlofront.primitives.arrays.shaping import ascending, broadcast_in_dim
from hlofront.primitives.arrays.slicing import concatenate_p, pad_p, stack_p
from hlofront.primitives.elementwise import elementwise as e
from hlofront.primitives.elementwise.compare import select_n_p
from hlofront.primitives.elementwise.converting import convert_element_type_p
from hlofront.primitives.elementwise.elementwise import add, div, mul, neg, square, sub
from hlofront.primitives.rules.taylor import (
    Expansion,
    Polynomial,
    bilinear,
    linear,
    polynomial,
    total,
)
from hlofront.primitives.sharding.placing import device_put_p

# These use their jvp rules, whose derivatives omit operands without tangents.
linear(e.complex_p, convert_element_type_p, device_put_p, select_n_p)
linear(concatenate_p, pad_p, stack_p, gather_p, dynamic_update_slice_p)
linear(scatter_add_p, scatter_sub_p)
bilinear(e.mul_p)


# ---- arithmetic of series ------------------------------------------------------------------------


def scaled(x: ArrayLike, factor: float) -> ArrayLike:
    """Return an array times a number."""
    return x if factor == 1 else mul(scalar_like(x, factor), x)


def _derivative(u: Polynomial) -> Polynomial:
    return [scaled(u[k], k) for k in range(1, len(u))]


def _products(x: Polynomial, y: Polynomial, degree: int, first: int = 0) -> ArrayLike | None:
    """Return the sum of x[j] y[degree - j] for j >= `first`, or None if there is no such term."""
    last = min(degree, len(x) - 1)
    return total(mul(x[j], y[degree - j]) for j in range(max(first, degree + 1 - len(y)), last + 1))


def integral(u: Polynomial, w: Polynomial) -> ArrayLikes:
    """Return the terms of v with v' = w u', where w has one order less than u or no terms."""
    du = _derivative(u)
    return [
        scaled(term, 1 / k)
        for k in range(1, len(u))
        if (term := _products(du, w, k - 1)) is not None
    ]


def _divided(u: ArrayLike | None, known: ArrayLike | None, divisor: ArrayLike) -> ArrayLike:
    """Return (u - known) / divisor, where u or known may be None and u may have to broadcast."""
    if known is None:
        assert u is not None, "the dividend or the divisor has a series"
        return div(u, divisor)
    return div(neg(known) if u is None else sub(u, known), divisor)


def _unary(primitive: Primitive) -> Callable[[Callable[..., Series]], None]:
    """Register a function (coefficients of x, result, **params) -> series as a Taylor rule."""

    def register(terms: Callable[..., Series]) -> None:
        def rule(primals: ArrayLikes, series: Sequence[Series], **params: object) -> Expansion:
            result = process(primitive, tuple(primals), params)
            return result, terms(polynomial(primals[0], series[0]), result, **params)

        _named(primitive, rule)

    return register


def _named(primitive: Primitive, rule: TaylorRule) -> None:
    rule.__name__ = rule.__qualname__ = f"{primitive.name}_taylor"
    taylor(primitive)(rule)


def solution(
    primitive: Primitive,
    slope: Callable[[Polynomial, int], ArrayLike],
    factor: float = 1,
) -> None:
    """Register the Taylor rule of a function v of u with v' = factor * w u', by a slope w of v.

    Args:
      primitive: the primitive that computes v.
      slope: (coefficients of v up to order k, k) -> the coefficient of w of order k.
      factor: a constant factor of the derivative.
    """

    @_unary(primitive)
    def _(u: Polynomial, result: ArrayLike, **_: object) -> ArrayLikes:
        du = [scaled(x, factor) for x in _derivative(u)]
        v: list[ArrayLike] = [result]
        w: list[ArrayLike] = []
        for k in range(1, len(u)):
            w.append(slope(v, k - 1))
            change = _products(du, w, k - 1)
            assert change is not None, "both have a coefficient of order 0"
            v.append(scaled(change, 1 / k))
        return v[1:]


# ---- sums, products and quotients ----------------------------------------------------------------


def _of_shape(term: ArrayLike, result: ArrayLike) -> ArrayLike:
    shape, expected = typeof(term).shape, typeof(result).shape
    return term if shape == expected else broadcast_in_dim(term, expected, ascending(len(shape)))


@taylor(e.add_p)
def _(primals: ArrayLikes, series: Sequence[Series]) -> Expansion:
    result = add(*primals)
    x, y = series
    if isinstance(x, ZeroSeries):
        x, y = y, x
    assert not isinstance(x, ZeroSeries), "one of the operands has a series"
    if isinstance(y, ZeroSeries):
        return result, [_of_shape(term, result) for term in x]
    return result, [add(a, b) for a, b in zip(x, y, strict=True)]


@taylor(e.sub_p)
def _(primals: ArrayLikes, series: Sequence[Series]) -> Expansion:
    result = sub(*primals)
    x, y = series
    if isinstance(x, ZeroSeries):
        assert not isinstance(y, ZeroSeries), "one of the operands has a series"
        return result, [_of_shape(neg(term), result) for term in y]
    if isinstance(y, ZeroSeries):
        return result, [_of_shape(term, result) for term in x]
    return result, [sub(a, b) for a, b in zip(x, y, strict=True)]


@taylor(e.div_p)
def _(primals: ArrayLikes, series: Sequence[Series]) -> Expansion:
    u, w = map(polynomial, primals, series)
    v: list[ArrayLike] = [div(*primals)]
    for k in range(1, max(len(u), len(w))):
        known = _products(w, v, k, first=1)
        v.append(_divided(u[k] if k < len(u) else None, known, w[0]))
    return v[0], v[1:]


@_unary(e.square_p)
def _(u: Polynomial, result: ArrayLike) -> ArrayLikes:
    return _power(u, 2)[1:]


def _multiplied(x: Polynomial, y: Polynomial, count: int) -> Polynomial:
    """Return the first `count` coefficients of the product of two polynomials with as many."""
    terms = [_products(x, y, k) for k in range(count)]
    return [term for term in terms if term is not None]


def _power(u: Polynomial, exponent: int) -> Polynomial:
    """Return the coefficients of a positive integer power, by repeated squaring."""
    half = u if exponent < 4 else _power(u, exponent // 2)
    whole = half if exponent == 1 else _multiplied(half, half, len(u))
    return _multiplied(whole, u, len(u)) if exponent % 2 and exponent > 1 else whole


@_unary(e.integer_pow_p)
def _(u: Polynomial, result: ArrayLike, *, y: int) -> Series:
    if y == 0:
        return zero_series
    return _power(u, y)[1:] if y > 0 else _power_terms(u, result, y)


def _power_terms(u: Polynomial, result: ArrayLike, exponent: float) -> ArrayLikes:
    """Return the terms of a power v of u that is not a polynomial: u v' = exponent * v u'."""
    v: list[ArrayLike] = [result]
    for k in range(1, len(u)):
        change = total(
            scaled(mul(u[j], v[k - j]), (exponent + 1) * j / k - 1) for j in range(1, k + 1)
        )
        assert change is not None, "k is positive"
        v.append(div(change, u[0]))
    return v[1:]


def power(primitive: Primitive, exponent: float) -> None:
    """Register the Taylor rule of a primitive that is a fixed power of its operand."""

    @_unary(primitive)
    def _(u: Polynomial, result: ArrayLike, **_: object) -> ArrayLikes:
        return _power_terms(u, result, exponent)


power(e.rsqrt_p, -1 / 2)
power(e.cbrt_p, 1 / 3)


@_unary(e.sqrt_p)
def _(u: Polynomial, result: ArrayLike, **_: object) -> ArrayLikes:
    v: list[ArrayLike] = [result]
    for k in range(1, len(u)):
        v.append(_divided(u[k], _products(v, v, k, first=1), scaled(result, 2)))
    return v[1:]


# ---- solutions of differential equations ---------------------------------------------------------

solution(e.exp_p, lambda v, k: v[k])
solution(e.exp2_p, lambda v, k: v[k], factor=math.log(2))
solution(e.expm1_p, lambda v, k: v[k] if k else add(scalar_like(v[0], 1), v[0]))


def _squared(v: Polynomial, k: int) -> ArrayLike:
    term = _products(v, v, k)
    assert term is not None, "v has coefficients up to order k"
    return term


def _one_less(x: ArrayLike) -> ArrayLike:
    return sub(scalar_like(x, 1), x)


def _one_and(x: ArrayLike) -> ArrayLike:
    return add(scalar_like(x, 1), x)


solution(e.tan_p, lambda v, k: _squared(v, k) if k else _one_and(square(v[0])))
# Order 0 is computed as a product, because the square rounds to 1 long before the result does.
solution(e.tanh_p, lambda v, k: neg(_squared(v, k)) if k else mul(_one_and(v[0]), _one_less(v[0])))
solution(e.logistic_p, lambda v, k: sub(v[k], _squared(v, k)) if k else mul(v[0], _one_less(v[0])))


def pair(
    primitive: Primitive, partner: Callable[..., ArrayLike], sign: float, sign_of_partner: float
) -> None:
    """Register the Taylor rule of v(u), where v and w(u) are each other's derivatives up to sign.

    Args:
      primitive: the primitive that computes v.
      partner: computes w from the value of u and the parameters.
      sign: v' = sign * w u'.
      sign_of_partner: w' = sign_of_partner * v u'.
    """

    @_unary(primitive)
    def _(u: Polynomial, result: ArrayLike, **params: object) -> ArrayLikes:
        du = _derivative(u)
        v: list[ArrayLike] = [result]
        w: list[ArrayLike] = [partner(u[0], **params)]
        for k in range(1, len(u)):
            # Both are known to order k - 1, before either is extended.
            change, change_of_partner = _products(du, w, k - 1), _products(du, v, k - 1)
            assert change is not None and change_of_partner is not None, "u has a term of order 1"
            v.append(scaled(change, sign / k))
            w.append(scaled(change_of_partner, sign_of_partner / k))
        return v[1:]


pair(e.sin_p, e.cos, 1, -1)
pair(e.cos_p, e.sin, -1, 1)
pair(e.sinh_p, e.cosh, 1, 1)
pair(e.cosh_p, e.sinh, 1, 1)
