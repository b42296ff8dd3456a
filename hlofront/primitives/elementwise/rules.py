"""Derivative and batch rules of the elementwise primitives.

Operands broadcast, so their tangents do too, and cotangents are summed to their shapes.
"""

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np

from hlofront.base.dtypes import finfo, is_complex, issubdtype
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, DType
from hlofront.core.aval import typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import jvp, transpose
from hlofront.core.symbolic_zeros import (
    Cotangents,
    Dual,
    Operand,
    Tangent,
    Tangents,
    UndefinedPrimal,
    Zero,
)
from hlofront.core.trace import process
from hlofront.primitives.arrays.creation import (
    coefficient_like,
    constant_like,
    scalar_like,
    scalar_of,
)
from hlofront.primitives.arrays.shaping import ascending, broadcast_in_dim_p
from hlofront.primitives.elementwise import elementwise as e
from hlofront.primitives.elementwise.compare import eq, ge, gt, lt, ne, select_n
from hlofront.primitives.elementwise.converting import convert, strong
from hlofront.primitives.elementwise.elementwise import add, complex, div, mul, neg, square, sub
from hlofront.primitives.rules.batching import batch_elementwise, batch_of_one_shape
from hlofront.primitives.rules.derivatives import (
    add_tangents,
    derivative,
    derivative_from_result,
    instantiate,
    is_linear,
    linear,
    no_derivative,
    unbroadcast,
    unknown_derivative,
)

# The makers of primitive families register the batch rules of the other primitives.
batch_elementwise(e.mul_p, e.abs_p, e.pow_p, e.integer_pow_p, e.conj_p)
batch_of_one_shape(e.clamp_p, may_be_scalars=(0, 2))

no_derivative(e.sign_p, e.floor_p, e.ceil_p, e.round_p, e.is_finite_p)
no_derivative(
    e.not_p,
    e.and_p,
    e.or_p,
    e.xor_p,
    e.population_count_p,
    e.clz_p,
    e.mulhi_p,
    e.shift_left_p,
    e.shift_right_logical_p,
    e.shift_right_arithmetic_p,
)
unknown_derivative(
    e.nextafter_p, "give it lax.stop_gradient(x) to take the next number for a constant."
)


class SlopeOfParams(Protocol):
    """The type of slopes of unary operations, which receive the parameters of the operation."""

    def __call__(self, result: ArrayLike, x: ArrayLike, /, **params: object) -> ArrayLike: ...


Slope = Callable[[ArrayLike, ArrayLike], ArrayLike] | SlopeOfParams


def slope(primitive: Primitive, function: Slope) -> None:
    """Register the jvp rule of a unary primitive; `function(result, x, **params)` is its slope."""
    derivative_from_result(
        primitive, lambda t, result, x, **params: mul(t, function(result, x, **params))
    )


def _one_and(x: ArrayLike) -> Array:
    return add(scalar_like(x, 1), x)


def _one_less(x: ArrayLike) -> Array:
    return sub(scalar_like(x, 1), x)


def broadcast_tangent(tangent: ArrayLike, result: ArrayLike) -> ArrayLike:
    """Return the tangent of an operand broadcast to the shape and split of the result."""
    shape, expected = typeof(tangent).shape, typeof(result)
    if shape == expected.shape:
        return tangent
    params = {
        "shape": expected.shape,
        "broadcast_dimensions": ascending(len(shape)),
        "sharding": None if expected.spec is None else expected.sharding,
    }
    return process(broadcast_in_dim_p, (tangent,), params)


# ---- sums and products ---------------------------------------------------------------------------

linear(e.neg_p, lambda cotangent, x: [neg(cotangent)])


@jvp(e.add_p)
def _(primals: ArrayLikes, tangents: Tangents) -> Dual:
    result = process(e.add_p, tuple(primals), {})
    x, y = tangents
    if type(x) is Zero or type(y) is Zero:
        return result, broadcast_tangent(instantiate(y if type(x) is Zero else x), result)
    return result, add(x, y)


@transpose(e.add_p)
def _(cotangent: ArrayLike, x: Operand, y: Operand) -> Cotangents:
    return [unbroadcast(cotangent, z) if is_linear(z) else None for z in (x, y)]


@jvp(e.sub_p)
def _(primals: ArrayLikes, tangents: Tangents) -> Dual:
    result = process(e.sub_p, tuple(primals), {})
    x, y = tangents
    if type(x) is Zero:
        return result, broadcast_tangent(neg(y), result)
    return result, broadcast_tangent(x, result) if type(y) is Zero else sub(x, y)


@transpose(e.sub_p)
def _(cotangent: ArrayLike, x: Operand, y: Operand) -> Cotangents:
    return [
        unbroadcast(cotangent, x) if is_linear(x) else None,
        neg(unbroadcast(cotangent, y)) if is_linear(y) else None,
    ]


derivative(
    e.mul_p,
    lambda t, x, y, **params: process(e.mul_p, (t, y), params),
    lambda t, x, y, **params: process(e.mul_p, (x, t), params),
)


@transpose(e.mul_p)
def _(cotangent: ArrayLike, x: Operand, y: Operand, *, out_dtype: DType | None) -> Cotangents:
    if is_linear(x):
        return [_cotangent_of_factor(cotangent, x, y, out_dtype), None]
    return [None, _cotangent_of_factor(cotangent, y, x, out_dtype) if is_linear(y) else None]


def _cotangent_of_factor(
    cotangent: ArrayLike, operand: UndefinedPrimal, factor: Operand, out_dtype: DType | None
) -> ArrayLike:
    params = {"out_dtype": None if out_dtype is None else operand.aval.dtype}
    return unbroadcast(process(e.mul_p, (cotangent, factor), params), operand)


slope(e.square_p, lambda result, x: mul(coefficient_like(x, 2), x))
slope(e.one_minus_square_p, lambda result, x: mul(scalar_like(x, -2), x))


@jvp(e.div_p)
def _(primals: ArrayLikes, tangents: Tangents) -> Dual:
    x, y = primals
    change, change_of_y = tangents
    result = div(x, y)
    # Neither rule uses the square of y, which may overflow.
    if type(change_of_y) is not Zero and typeof(y).shape != typeof(result).shape:
        # If the denominator is smaller than the result, the tangent is divided before it is
        # broadcast, and the cotangent after it is summed: compilers then compute product and sum in
        # one pass, without dividing each element. Products with x only overflow in float16 and
        # float8, which have smaller exponents.
        change_of_y = neg(div(change_of_y, y))
        is_narrow = finfo(typeof(result).dtype).maxexp < np.finfo(np.float32).maxexp
        gained = mul(change_of_y, result) if is_narrow else mul(div(change_of_y, y), x)
        return result, gained if type(change) is Zero else add(div(change, y), gained)
    if type(change_of_y) is not Zero:
        lost = mul(change_of_y, result)
        change = neg(lost) if type(change) is Zero else sub(change, lost)
    return result, div(change, y)


@transpose(e.div_p)
def _(cotangent: ArrayLike, x: UndefinedPrimal, y: ArrayLike) -> Cotangents:
    return [unbroadcast(div(cotangent, y), x), None]


derivative_from_result(
    e.rem_p,
    lambda t, result, x, y: broadcast_tangent(t, result),
    # The slope is minus the integer quotient.
    lambda t, result, x, y: mul(t, div(sub(result, x), y)),
)

# ---- choices -------------------------------------------------------------------------------------


@jvp(e.max_p)
def _(primals: ArrayLikes, tangents: Tangents) -> Dual:
    return _change_of_extreme(e.max(*primals), primals, tangents)


@jvp(e.min_p)
def _(primals: ArrayLikes, tangents: Tangents) -> Dual:
    return _change_of_extreme(e.min(*primals), primals, tangents)


def _change_of_extreme(result: ArrayLike, primals: ArrayLikes, tangents: Tangents) -> Dual:
    """Return an extremum and its tangent: the selected operand's, or the mean of both at ties."""
    is_x, is_y = (eq(operand, result) for operand in primals)
    none, half, whole = (constant_like(result, share) for share in (0, 0.5, 1))
    total: Tangent = Zero.of(result)
    for tangent, is_it, is_other in zip(tangents, (is_x, is_y), (is_y, is_x), strict=True):
        if type(tangent) is not Zero:
            share = select_n(is_it, none, select_n(is_other, whole, half))
            total = add_tangents(total, mul(tangent, share))
    return result, total


@jvp(e.clamp_p)
def _(primals: ArrayLikes, tangents: Tangents) -> Dual:
    low, x, high = primals
    result = e.clamp(low, x, high)
    total: Tangent = Zero.of(result)
    zeros = constant_like(result, 0)
    for index, tangent in enumerate(tangents):
        if type(tangent) is Zero:
            continue
        if index == 0:
            passes = e.bitwise_and(gt(low, x), lt(low, high))
        elif index == 1:
            passes = e.bitwise_and(gt(x, low), lt(x, high))
        else:
            passes = lt(high, x)
        total = add_tangents(total, select_n(passes, zeros, broadcast_tangent(tangent, result)))
    return result, total


def _change_of_abs(t: ArrayLike, result: ArrayLike, x: ArrayLike) -> Array:
    if not is_complex(typeof(x).dtype):
        return select_n(ge(x, scalar_like(x, 0)), neg(t), t)
    # This uses the modulus rather than `sign`, which has no derivative here.
    size = select_n(eq(result, scalar_like(result, 0)), result, _ones_like(result))
    return e.real(mul(t, div(e.conj(x), convert(size, typeof(x).dtype, False))))


def _ones_like(x: ArrayLike) -> ArrayLike:
    return broadcast_tangent(scalar_like(x, 1), x)


derivative_from_result(e.abs_p, _change_of_abs)

# ---- exponentials, logarithms, powers ------------------------------------------------------------

slope(e.exp_p, lambda result, x, **_: result)
slope(e.exp2_p, lambda result, x, **_: mul(coefficient_like(x, math.log(2)), result))
slope(e.expm1_p, lambda result, x, **_: _one_and(result))
derivative(e.log_p, lambda t, x, **_: div(t, x))
derivative(e.log2_p, lambda t, x, **_: div(t, mul(x, scalar_like(x, math.log(2)))))
derivative(e.log1p_p, lambda t, x, **_: div(t, _one_and(x)))
slope(e.logistic_p, lambda result, x, **_: mul(result, _one_less(result)))
slope(e.sqrt_p, lambda result, x, **_: div(coefficient_like(x, 0.5), result))
slope(e.rsqrt_p, lambda result, x, **_: mul(coefficient_like(x, -0.5), div(result, x)))
slope(e.cbrt_p, lambda result, x, **_: mul(coefficient_like(x, 1 / 3), e.integer_pow(result, -2)))


def _change_of_integer_pow(t: ArrayLike, x: ArrayLike, *, y: int) -> Tangent:
    if y == 0:
        return Zero.of(x)
    if y == 1:
        return t
    return mul(t, mul(coefficient_like(x, y), x if y == 2 else e.integer_pow(x, y - 1)))


derivative(e.integer_pow_p, _change_of_integer_pow)


def _change_by_base(t: ArrayLike, result: ArrayLike, x: ArrayLike, y: ArrayLike) -> Array:
    base, exponent = typeof(x), typeof(y)
    if exponent.dtype == base.dtype:
        # As in JAX, the tangent is strongly typed even if both operands are weakly typed.
        factor = strong(y) if base.weak_type else y
        return mul(t, mul(factor, e.pow(x, sub(y, scalar_like(y, 1)))))
    # Do not decrement an exponent of 0, because zero to the power of -1 is infinite.
    lower = sub(y, convert(ne(y, scalar_like(y, 0)), exponent.dtype, exponent.weak_type))
    return mul(t, mul(convert(y, base.dtype, False), e.pow(x, lower)))


def _change_by_exponent(t: ArrayLike, result: ArrayLike, x: ArrayLike, y: ArrayLike) -> Array:
    # A base of 0 has slope 0 for all positive exponents, although its logarithm is infinite.
    safe = select_n(eq(x, scalar_like(x, 0)), x, constant_like(x, 1))
    return strong(mul(t, mul(e.log(safe), result)))


derivative_from_result(e.pow_p, _change_by_base, _change_by_exponent)

# ---- trigonometry --------------------------------------------------------------------------------

slope(e.sin_p, lambda result, x, **params: e.cos(x, **params))
derivative(e.cos_p, lambda t, x, **params: neg(mul(t, e.sin(x, **params))))
slope(e.tan_p, lambda result, x, **_: add(coefficient_like(x, 1), square(result)))
slope(e.asin_p, lambda result, x: e.rsqrt(sub(coefficient_like(x, 1), square(x))))
slope(e.acos_p, lambda result, x: neg(e.rsqrt(sub(coefficient_like(x, 1), square(x)))))
derivative(e.atan_p, lambda t, x: div(t, add(coefficient_like(x, 1), square(x))))
slope(e.sinh_p, lambda result, x: e.cosh(x))
slope(e.cosh_p, lambda result, x: e.sinh(x))
# This is a product, because the square is rounded to 1 long before the result is.
slope(e.tanh_p, lambda result, x, **_: mul(_one_and(result), _one_less(result)))
derivative(e.atanh_p, lambda t, x: div(t, mul(_one_and(x), _one_less(x))))
slope(e.asinh_p, lambda result, x: e.rsqrt(_one_and(square(x))))


def _change_of_acosh(t: ArrayLike, result: ArrayLike, x: ArrayLike) -> Array:
    if is_complex(typeof(x).dtype):
        # The root of the square would have the wrong sign to the left of the imaginary axis.
        return div(t, e.sinh(result))
    return mul(t, e.rsqrt(sub(square(x), scalar_like(x, 1))))


derivative_from_result(e.acosh_p, _change_of_acosh)


@jvp(e.atan2_p)
def _(primals: ArrayLikes, tangents: Tangents) -> Dual:
    x, y = primals
    result = e.atan2(x, y)
    scale = add(square(x), square(y))
    total: Tangent = Zero.of(result)
    if type(tangents[0]) is not Zero:
        total = mul(tangents[0], div(y, scale))
    if type(tangents[1]) is not Zero:
        total = add_tangents(total, mul(tangents[1], div(neg(x), scale)))
    return result, total


# ---- complex numbers -----------------------------------------------------------------------------


def _zero_of(part: ArrayLike) -> ArrayLike:
    """Return a zero for the other part of a complex cotangent, strongly typed as in JAX."""
    return scalar_of(0, typeof(part).dtype)


# Transposes do not conjugate, so that a cotangent a + bi of x + yi means a for x and -b for y.
linear(e.real_p, lambda cotangent, x: [complex(cotangent, _zero_of(cotangent))])
linear(e.imag_p, lambda cotangent, x: [complex(_zero_of(cotangent), neg(cotangent))])


def _transposed_conj(cotangent: ArrayLike, x: ArrayLike, *, input_dtype: DType) -> list[Array]:
    is_complex = issubdtype(input_dtype, np.complexfloating)
    return [e.conj(cotangent) if is_complex else e.real(cotangent)]


linear(e.conj_p, _transposed_conj)


@jvp(e.complex_p)
def _(primals: ArrayLikes, tangents: Tangents) -> Dual:
    result = complex(*primals)
    x, y = tangents
    if type(x) is Zero:
        x = scalar_like(instantiate(y), 0)
    elif type(y) is Zero:
        y = scalar_like(x, 0)
    return result, broadcast_tangent(complex(x, y), result)


@transpose(e.complex_p)
def _(cotangent: ArrayLike, x: Operand, y: Operand) -> Cotangents:
    return [
        unbroadcast(e.real(cotangent), x) if is_linear(x) else None,
        neg(unbroadcast(e.imag(cotangent), y)) if is_linear(y) else None,
    ]
