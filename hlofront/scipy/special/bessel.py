"""The Bessel functions: modified ones of orders 0 and 1, and those of the first kind."""

from __future__ import annotations

import math
import operator

import hlofront.numpy as jnp
from hlofront.base.dtypes import finfo
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.higher_order.custom_jvp import custom_jvp
from hlofront.higher_order.while_loop import fori_loop
from hlofront.numpy.creation import asarray
from hlofront.numpy.near_zero import bessel_i0, bessel_i1
from hlofront.primitives import elementwise, special
from hlofront.primitives.converting import convert
from hlofront.runtime.dispatch.operation import operation
from hlofront.scipy.special.arguments import in_float32, inexact_arrays, strong_floats


def _weak_as(x: Array, result: Array) -> Array:
    return convert(result, typeof(result).dtype, typeof(x).weak_type)


@operation
def i0e(x: ArrayLike) -> Array:
    """Compute elementwise exp(-abs(x)) times the modified Bessel function of order 0, first kind.

    Args:
      x: real numbers; integers and booleans are taken for default floats.

    Returns:
      An array of the shape and floating-point dtype of x.

    Raises:
      TypeError: if x is neither array nor scalar, or complex.
    """
    return special.bessel_i0e(*inexact_arrays("i0e", x))


@operation
def i0(x: ArrayLike) -> Array:
    """Compute elementwise the modified Bessel function of the first kind and order 0.

    Args:
      x: real numbers; integers and booleans are taken for default floats.

    Returns:
      An array of the shape and floating-point dtype of x.

    Raises:
      TypeError: if x is neither array nor scalar, or complex.
    """
    (x,) = inexact_arrays("i0", x)
    return _weak_as(x, bessel_i0(x))


@operation
def i1e(x: ArrayLike) -> Array:
    """Compute elementwise exp(-abs(x)) times the modified Bessel function of order 1, first kind.

    Args:
      x: real numbers; integers and booleans are taken for default floats.

    Returns:
      An array of the shape and floating-point dtype of x.

    Raises:
      TypeError: if x is neither array nor scalar, or complex.
    """
    return special.bessel_i1e(*inexact_arrays("i1e", x))


@operation
def i1(x: ArrayLike) -> Array:
    """Compute elementwise the modified Bessel function of the first kind and order 1.

    Args:
      x: real numbers; integers and booleans are taken for default floats.

    Returns:
      An array of the shape and floating-point dtype of x.

    Raises:
      TypeError: if x is neither array nor scalar, or complex.
    """
    (x,) = inexact_arrays("i1", x)
    return _weak_as(x, bessel_i1(x))


def _recurrence(z: Array, v: int, n_iter: int) -> Array:
    """Return J of the orders 0 to v at z, by Miller's algorithm, DLMF 3.6(iii).

    The recurrence runs downwards from order n_iter; its values are then divided by the sum
    J_0 + 2 J_2 + 2 J_4 + ..., which is 1.
    """
    limit = math.sqrt(float(finfo(typeof(z).dtype).max)) / (4 * (n_iter + 1))
    # Each step multiplies by at most 2 n / z, so that overflow needs a tiny z.
    tiny = jnp.abs(z) < 2.0 * (n_iter + 1) / math.sqrt(limit)
    divisor = jnp.where(tiny, 1.0, z)
    orders = jnp.arange(v + 1).reshape((-1,) + (1,) * typeof(z).ndim)

    def step(k: Array, carry: tuple[Array, ...]) -> tuple[Array, ...]:
        above, here, total, values = carry
        order = n_iter - k
        # `here` has this order; it is a result, and enters the normalizing sum where even.
        values = jnp.where(orders == order, here, values)
        total = total + jnp.where(order % 2 == 0, here, 0.0) * jnp.where(order == 0, 1.0, 2.0)
        below = (2.0 * order / divisor) * here - above
        scale = jnp.where(jnp.abs(below) > math.sqrt(limit), 1 / math.sqrt(limit), 1.0)
        return here * scale, below * scale, total * scale, values * scale[None]

    start = (
        jnp.zeros_like(z),
        jnp.ones_like(z),
        jnp.zeros_like(z),
        jnp.zeros((v + 1, *typeof(z).shape), typeof(z).dtype),
    )
    _, last, total, values = fori_loop(0, n_iter, step, start)
    values = jnp.where(orders == 0, last, values)
    by_recurrence = values / (total + last)[None]
    # Where z is tiny, the first term of the power series is exact.
    factorials = [1 / math.factorial(k) for k in range(v + 1)]
    shape = typeof(values).shape
    powers = elementwise.pow(jnp.broadcast_to(z / 2, shape), jnp.broadcast_to(orders, shape))
    leading = jnp.asarray(factorials, typeof(z).dtype).reshape(orders.shape) * powers
    return jnp.where(tiny, leading, by_recurrence)


def _orders(z: Array, v: int, n_iter: int) -> Array:
    @custom_jvp
    def bessel_jn(z: Array) -> Array:
        return _recurrence(z, v, n_iter)

    @bessel_jn.defjvp
    def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
        # DLMF 10.6.1: the derivative is half the difference of the neighboring orders.
        several = _orders(primals[0], v + 1, n_iter)
        first = -several[1:2]
        others = (several[:-2] - several[2:]) / 2
        return several[:-1], tangents[0][None] * jnp.concatenate([first, others])

    return bessel_jn(z)


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """Compute elementwise the Bessel functions of the first kind, of the orders 0, 1, ..., v.

    The method is Miller's algorithm, DLMF 3.6(iii).

    Args:
      z: an array of real numbers, of any shape.
      v: the greatest order.
      n_iter: the order that the recurrence starts from: greater than v and than the size of z.

    Returns:
      An array of shape (v + 1, *z.shape).

    Raises:
      ValueError: if z is complex.
    """
    return _bessel_jn(z, v=operator.index(v), n_iter=operator.index(n_iter))


@operation(static_argnames=("v", "n_iter"))
def _bessel_jn(z: ArrayLike, *, v: int, n_iter: int) -> Array:
    (z,) = strong_floats("bessel_jn", asarray(z))
    if v < 0:
        return jnp.zeros((0, *typeof(z).shape), typeof(z).dtype)
    return in_float32(lambda z: _orders(z, v, n_iter), z)
