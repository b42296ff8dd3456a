"""The Bessel functions: modified ones of orders 0 and 1, and those of the first kind."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np

import hlofront.numpy as jnp
from hlofront.base.dtypes import finfo
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.higher_order.control_flow.library_loops import fori_loop, scan
from hlofront.higher_order.custom_rules.custom_jvp import custom_jvp
from hlofront.numpy.arrays.creation import asarray
from hlofront.numpy.support.near_zero import bessel_i0, bessel_i1
from hlofront.primitives.elementwise import special
from hlofront.primitives.elementwise.converting import convert
from hlofront.runtime.dispatch.operation import operation
from hlofront.scipy.special.arguments import in_float32, inexact_arrays, strong_floats


def _weak_as(x: Array, result: Array) -> Array:
    return convert(result, typeof(result).dtype, typeof(x).weak_type)


@operation
def i0e(x: ArrayLike) -> Array:
    """Compute elementwise exp(-abs(x)) times the modified Bessel function of order 0, first kind.

    Args:
      x: real numbers; integers and booleans are converted to the default float dtype.

    Returns:
      An array of the shape and floating-point dtype of x.

    Raises:
      TypeError: if x is complex.
    """
    return special.bessel_i0e(*inexact_arrays("i0e", x))


@operation
def i0(x: ArrayLike) -> Array:
    """Compute elementwise the modified Bessel function of the first kind and order 0.

    Args:
      x: real numbers; integers and booleans are converted to the default float dtype.

    Returns:
      An array of the shape and floating-point dtype of x.

    Raises:
      TypeError: if x is complex.
    """
    (x,) = inexact_arrays("i0", x)
    return _weak_as(x, bessel_i0(x))


@operation
def i1e(x: ArrayLike) -> Array:
    """Compute elementwise exp(-abs(x)) times the modified Bessel function of order 1, first kind.

    Args:
      x: real numbers; integers and booleans are converted to the default float dtype.

    Returns:
      An array of the shape and floating-point dtype of x.

    Raises:
      TypeError: if x is complex.
    """
    return special.bessel_i1e(*inexact_arrays("i1e", x))


@operation
def i1(x: ArrayLike) -> Array:
    """Compute elementwise the modified Bessel function of the first kind and order 1.

    Args:
      x: real numbers; integers and booleans are converted to the default float dtype.

    Returns:
      An array of the shape and floating-point dtype of x.

    Raises:
      TypeError: if x is complex.
    """
    (x,) = inexact_arrays("i1", x)
    return _weak_as(x, bessel_i1(x))


# The recurrence's steps per iteration, and how many of its last steps are unrolled.
_STEPS, _UNROLLED = 2, 8
# Where f leaves the range from this to its inverse, it is scaled by a power of two.
_SMALL = 2.0**-30


def _recurrence(z: Array, v: int, n_iter: int) -> Array:
    """Return J of the orders 0 to v at z, by Miller's algorithm, DLMF 3.6(iii).

    The recurrence runs downwards from order n_iter, or from a lower one beyond which J of the
    element is negligible; its values are then divided by the sum J_0 + 2 J_2 + 2 J_4 + ...,
    which is 1. Above order v it is the recurrence of f_k = J_k k! / (z / 2)^k, which needs no
    division and does not overflow where z is tiny.
    """
    dtype = typeof(z).dtype
    infinite = jnp.isinf(z)
    size = jnp.where(infinite, 0.0, jnp.abs(z))
    half = size / 2
    last = max(v, 1)
    own_steps = _iterations(size, last, n_iter)
    steps = jnp.max(own_steps, initial=0)

    def step(k: Array, values: Sequence[Array], is_even: bool) -> list[Array]:
        above, here, total = values
        below = here - half * half * (1 / (k * (k + 1))) * above
        # The terms of the sum from order k on, relative to (z / 2)^k / k!.
        total = half * (1 / k) * total
        return [here, below, total + 2 * below if is_even else total]

    def several(i: Array, start: Sequence[Array]) -> list[Array]:
        values = start
        highest = (last + _STEPS * (steps - i)).astype(dtype)
        for j in range(_STEPS):
            values = step(highest - j, values, is_even=(last - j) % 2 != 0)
        reach = jnp.abs(values[0]) + jnp.abs(values[1])
        large = jnp.where(reach > 1 / _SMALL, _SMALL, 1.0)
        scale = jnp.where(reach < _SMALL, 1 / _SMALL, large)
        # An element is unchanged until its own recurrence starts.
        going = i >= steps - own_steps
        pairs = zip(values, start, strict=True)
        return [jnp.where(going, value * scale, before) for value, before in pairs]

    one = jnp.ones_like(z)
    total = jnp.zeros_like(z) if last % 2 else 2 * one
    above, here, total = fori_loop(0, steps, several, [one, one, total])
    return _lower_orders(z, half, (above * half / (last + 1), here, total), last, infinite)[: v + 1]


def _iterations(size: Array, last: int, n_iter: int) -> Array:
    """Return the numbers of iterations down to order `last`, from n_iter or the first needed.

    Beyond order n and argument z <= n the function falls as Airy's, DLMF 9.7.5 and 10.20.4: it is
    negligible from order n + (-3 log(eps) / sqrt(8))^(2/3) n^(1/3) on.
    """
    most = jnp.maximum(jnp.where(size < 1e6, size, 0.0), last)
    width = (-3 * math.log(float(finfo(typeof(size).dtype).eps)) / math.sqrt(8)) ** (2 / 3)
    needed = most + width * jnp.cbrt(most) + 3 - last
    return jnp.ceil(jnp.clip(needed, 1, max(n_iter - last, 1)) / _STEPS).astype(int)


def _lower_orders(
    z: Array, half: Array, start: tuple[Array, Array, Array], last: int, infinite: Array
) -> Array:
    """Return J of the orders 0 to `last`, by a recurrence scaled by products of min(1, z / (2 k)).

    Args:
      z: the argument.
      half: half of its absolute value.
      start: multiples of J of the orders last + 1 and last, and of the sum from the latter on.
      last: the greatest order, at least 1.
      infinite: a mask of where the result is 0.
    """
    dtype = typeof(z).dtype
    orders = np.arange(last, 0, -1).astype(dtype)
    weights = np.where(orders % 2 == 0, 0, np.where(orders == 1, 1, 2)).astype(dtype)
    unroll = last if last <= _UNROLLED else 1

    def ratio(k: Array) -> Array:
        return jnp.where(k < half, 1.0, half / k)

    def down(values: tuple[Array, ...], at: tuple[Array, Array]) -> tuple[tuple[Array, ...], Array]:
        above, here, total = values
        k, weight = at
        below = jnp.where(k < half, k / half, 1.0) * here - ratio(k) * above
        return (ratio(k) * here, below, ratio(k) * total + weight * below), here

    (_, first, total), several = scan(down, start, (orders, weights), unroll=unroll)
    sign = jnp.where(jnp.signbit(z), -1.0, 1.0)

    def up(factor: Array, at: tuple[Array, Array]) -> tuple[Array, Array]:
        k, value = at
        factor = factor * sign * ratio(k)
        return factor, factor * value

    factor = jnp.where(infinite, 0.0, 1 / total)
    ascending = (orders[::-1], several[::-1])
    later = scan(up, factor, ascending, unroll=unroll)[1]
    return jnp.concatenate([(factor * first)[None], later])


def _orders(z: Array, v: int, n_iter: int) -> Array:
    @custom_jvp
    def bessel_jn(z: Array) -> Array:
        return _recurrence(z, v, n_iter)

    @bessel_jn.defjvp
    def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
        # DLMF 10.6.1: the derivative is half the difference of the neighboring orders.
        several = _orders(primals[0], v + 1, n_iter)
        first = -several[1:2]
        inner_slopes = (several[:-2] - several[2:]) / 2
        return several[:-1], tangents[0][None] * jnp.concatenate([first, inner_slopes])

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
