"""Primitives that evaluate polynomials: polynomial."""

import operator
from collections.abc import Iterable

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import is_complex
from hlofront.base.typing import Array, ArrayLike, ArrayLikes
from hlofront.core.aval import typeof
from hlofront.core.rules import jvp, transpose
from hlofront.core.symbolic_zeros import (
    Cotangent,
    Cotangents,
    Dual,
    Operand,
    Tangent,
    Tangents,
    Zero,
)
from hlofront.core.trace import process
from hlofront.primitives.arrays.creation import full_like, scalar_like
from hlofront.primitives.arrays.shaping import ascending, broadcast_in_dim
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import mul
from hlofront.primitives.elementwise.families import (
    NUMBER,
    check_dtype,
    elementwise_primitive,
    operand_shape,
)
from hlofront.primitives.elementwise.rules import broadcast_tangent
from hlofront.primitives.rules.derivatives import add_tangents, is_linear, unbroadcast

# Operand 0 is the point, operand k + 1 the coefficient of power k; there are two or more.
polynomial_p = elementwise_primitive("polynomial", NUMBER, arity=2)


@boundary
def polynomial(x: ArrayLike, coeffs: Iterable[ArrayLike], *, unroll: int | None = None) -> Array:
    """Return the value of a polynomial at each element of an array, by Horner's rule.

    `polynomial(x, [a, b, c])` is `a + x * (b + x * c)`. Its derivative with respect to `x` is the
    derivative polynomial, not a derivative of each step.

    Args:
      x: the points: integers, floats or complex numbers of any shape.
      coeffs: the coefficients of the powers 0, 1, 2, ... of `x`: scalars, or arrays of the rank of
        `x` whose sizes are equal or 1. They are converted to the dtype of `x`; floats are truncated
        if `x` is an integer. An array is the sequence of its elements along axis 0.
      unroll: the number of coefficients up to which the steps are unrolled completely, and the
        number of steps per iteration of the loop for more coefficients; by default 8.

    Returns:
      An array of the dtype of `x` and of the shape that `x` and the coefficients broadcast to;
      zeros of the shape of `x` if there are no coefficients.

    Raises:
      TypeError: if the dtype of `x` is not numeric, ranks or sizes do not fit, a coefficient is
        complex and `x` is not, or `unroll` is not an integer.
      ValueError: if `unroll` is negative.

    Example:
      >>> lax.polynomial(3.0, [1.0, 5.0, 2.0])
      Array(34., dtype=float32, weak_type=True)
    """
    if unroll is not None and not isinstance(unroll, bool) and operator.index(unroll) < 0:
        raise ValueError(
            f"`unroll` must be a `bool` or a non-negative `int`; polynomial got unroll={unroll}."
        )
    point = typeof(x)
    check_dtype("polynomial", point.dtype, NUMBER, 0)
    coefficients = [_as_coefficient(coefficient, x) for coefficient in coeffs]
    if not coefficients:
        return full_like(x, 0)
    if len(coefficients) == 1:
        shapes = (point.shape, typeof(coefficients[0]).shape)
        return _broadcast(coefficients[0], operand_shape("polynomial", shapes))
    return process(polynomial_p, (x, *coefficients), {"unroll": unroll})


def _as_coefficient(coefficient: ArrayLike, x: ArrayLike) -> ArrayLike:
    """Return a coefficient with the dtype of the point; scalars also get its weak type."""
    point, aval = typeof(x), typeof(coefficient)
    if is_complex(aval.dtype) and not is_complex(point.dtype):
        raise TypeError(
            f"polynomial got a coefficient of dtype {aval.dtype} for x of dtype {point.dtype}: "
            "coefficients are converted to the dtype of x, so convert x to a complex dtype first."
        )
    return convert(coefficient, point.dtype, point.weak_type and not aval.shape)


def _broadcast(x: ArrayLike, shape: tuple[int, ...]) -> Array:
    return broadcast_in_dim(x, shape, ascending(typeof(x).ndim))


@jvp(polynomial_p)
def _(primals: ArrayLikes, tangents: Tangents, **params: object) -> Dual:
    x, *coefficients = primals
    change, *changes = tangents
    result = process(polynomial_p, tuple(primals), params)
    total: Tangent = Zero.of(result)
    if type(change) is not Zero:
        slopes = [mul(scalar_like(c, k), c) for k, c in enumerate(coefficients) if k]
        total = broadcast_tangent(mul(change, _evaluated(x, slopes, params)), result)
    while changes and type(changes[-1]) is Zero:
        changes.pop()
    if changes:
        filled = [scalar_like(result, 0) if type(t) is Zero else t for t in changes]
        share = broadcast_tangent(_evaluated(x, filled, params), result)
        total = add_tangents(total, share)
    return result, total


def _evaluated(x: ArrayLike, coefficients: ArrayLikes, params: dict[str, object]) -> ArrayLike:
    """Return a polynomial of one or more coefficients, whose shape may be smaller for one."""
    if len(coefficients) == 1:
        return coefficients[0]
    return process(polynomial_p, (x, *coefficients), params)


@transpose(polynomial_p)
def _(cotangent: ArrayLike, x: Operand, *coefficients: Operand, **params: object) -> Cotangents:
    if is_linear(x):
        raise TypeError(
            "polynomial is linear in its coefficients, not in x, and cannot be transposed by x."
        )
    # The cotangent of the coefficient of a power is the result's cotangent times that power.
    cotangents: list[Cotangent | None] = [None]
    scaled = cotangent
    for degree, coefficient in enumerate(coefficients):
        if degree:
            scaled = mul(scaled, x)
        cotangents.append(unbroadcast(scaled, coefficient) if is_linear(coefficient) else None)
    return cotangents
