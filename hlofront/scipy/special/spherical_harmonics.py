"""The spherical harmonics."""

from __future__ import annotations

import math
import operator

import numpy as np

import hlofront.numpy as jnp
from hlofront.base.dtypes import issubdtype
from hlofront.base.errors import ConcretizationTypeError
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.core.trace import Tracer, as_array
from hlofront.higher_order.library_loops import fori_loop
from hlofront.numpy.arrays.creation import asarray
from hlofront.numpy.support.promotion import broadcast_together, promote_args_inexact
from hlofront.primitives.elementwise import elementwise
from hlofront.runtime.dispatch.operation import operation


def sph_harm_y(
    n: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    phi: ArrayLike,
    diff_n: int | None = None,
    n_max: int | None = None,
) -> Array:
    """Compute elementwise the orthonormal spherical harmonics Y of degree n and order m.

    They have the phase (-1)**m of Condon and Shortley. The method is the recurrence in the degree,
    DLMF 14.10.3, of normalized Legendre functions. The result is 0 where abs(m) is greater than n.

    Args:
      n: degrees, integers from 0 to n_max.
      m: orders, integers.
      theta: polar angles, from 0 to pi.
      phi: azimuths, from 0 to 2 pi.
      diff_n: must be None.
      n_max: the greatest degree. It is required where n is traced.

    Returns:
      An array of complex numbers, in the shape that the arguments broadcast to.

    Raises:
      TypeError: if n or m is not of integers.
      NotImplementedError: if diff_n is passed.
      ConcretizationTypeError: if n is traced, and n_max is not passed.
    """
    if diff_n is not None:
        raise NotImplementedError(  # JAX raises this class.
            "The 'diff_n' argument to jax.scipy.special.sph_harm_y is not supported. "
            "Differentiate the function: jax.grad."
        )
    degrees = n  # Within a traced function asarray makes a tracer of NumPy's array.
    n, m, theta, phi = (asarray(x) for x in (n, m, theta, phi))
    for name, x in (("n", n), ("m", m)):
        if not issubdtype(typeof(x).dtype, np.integer):
            raise TypeError(f"sph_harm_y: {name} must be of integers, got {typeof(x).dtype}.")
    if n_max is None:
        if isinstance(degrees, Tracer):
            raise ConcretizationTypeError(
                degrees, "The `n_max` argument of sph_harm_y must be given where n is traced."
            )
        n_max = int(np.max(np.asarray(degrees), initial=0))
    return _sph_harm_y(n, m, theta, phi, n_max=operator.index(n_max))


@operation(static_argnames=("n_max",))
def _sph_harm_y(n: Array, m: Array, theta: ArrayLike, phi: ArrayLike, *, n_max: int) -> Array:
    theta, phi = promote_args_inexact("sph_harm_y", theta, phi)
    n, m, theta, phi = map(as_array, broadcast_together("sph_harm_y", n, m, theta, phi))
    dtype = typeof(theta).dtype
    order = jnp.abs(m)
    size = jnp.asarray(order, dtype)
    sine, cosine = jnp.sin(theta), jnp.cos(theta)
    # The sine is nonnegative, also for polar angles beyond [0, pi]; at the poles its derivative is
    # the one-sided derivative from within.
    sine = jnp.where(sine < 0, -sine, sine)

    def diagonal(k: Array, value: Array) -> Array:
        degree = jnp.asarray(k, dtype) + 1
        factor = -jnp.sqrt((2 * degree + 1) / (2 * degree)) * sine
        return jnp.where(degree <= size, value * factor, value)

    start = jnp.full(typeof(theta).shape, math.sqrt(1 / (4 * math.pi)), dtype)
    first = fori_loop(0, n_max, diagonal, start)

    def next_degree(k: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        before, here, chosen = carry
        degree = jnp.asarray(k, dtype)
        above = degree > size
        distance = jnp.where(above, jnp.square(degree) - jnp.square(size), 1.0)
        factor = jnp.sqrt(jnp.where(above, 4 * jnp.square(degree) - 1, 1.0) / distance)
        # The first degree above the order has no predecessor: its weight is zero.
        behind = jnp.where(degree > size + 1, jnp.square(degree - 1) - jnp.square(size), 0.0)
        weight = jnp.where(behind > 0, behind / (4 * jnp.square(degree - 1) - 1), 0.0)
        root = jnp.where(weight > 0, jnp.sqrt(jnp.where(weight > 0, weight, 1.0)), 0.0)
        value = jnp.where(above, factor * (cosine * here - root * before), first)
        value = jnp.where(degree < size, 0.0, value)
        return here, value, jnp.where(n == k, value, chosen)

    zero = jnp.zeros_like(start)
    legendre = fori_loop(0, n_max + 1, next_degree, (zero, zero, zero))[2]
    # Y of order -m is (-1)**m times the conjugate of Y of order m: DLMF 14.30.6.
    sign = jnp.where((m < 0) & (order % 2 == 1), -1.0, 1.0)
    legendre = legendre * jnp.asarray(sign, dtype)
    angle = elementwise.mul(jnp.asarray(m, dtype), phi)
    return elementwise.complex(legendre * jnp.cos(angle), legendre * jnp.sin(angle))
