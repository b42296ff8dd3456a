"""The associated Legendre functions of the first kind, and the spherical harmonics."""

from __future__ import annotations

import math
import operator

import numpy as np

import hlofront.numpy as jnp
from hlofront.base.dtypes import issubdtype
from hlofront.base.errors import ConcretizationTypeError
from hlofront.base.typing import Array, ArrayLike, NumPyArray
from hlofront.core.aval import typeof
from hlofront.core.trace import Tracer, as_array
from hlofront.higher_order.control_flow.library_loops import fori_loop
from hlofront.numpy.arrays.creation import asarray
from hlofront.numpy.support.promotion import broadcast_together, promote_args_inexact
from hlofront.primitives.elementwise import elementwise
from hlofront.runtime.dispatch.operation import operation


def lpmn(m: int, n: int, z: ArrayLike) -> tuple[Array, Array]:
    """Return the associated Legendre functions P_l^k(z) and their derivatives.

    They have the phase (-1)^k of Condon and Shortley.

    Args:
      m: the largest order k.
      n: the largest degree l.
      z: the arguments in [-1, 1], of rank 1, of float32 or float64.

    Returns:
      Two arrays of shape (m + 1, n + 1, len(z)) and the dtype of z. Derivatives of order 1 are
      infinite at -1 and 1.

    Raises:
      TypeError: if z has another dtype.
      ValueError: if z is not of rank 1.

    Example:
      >>> values, derivatives = lpmn(2, 2, jnp.array([0.0, 0.5]))
    """
    m, n, z = _checked(m, n, z)
    # The k-th derivatives of Legendre polynomials; P_l^k is (-1)^k (1 - z^2)^(k/2) times one.
    polynomials = _by_degrees(m + 1, n, z, normalized=False)
    order = np.arange(m + 1)[:, None, None]
    sign = np.where(order % 2, -1, 1).astype(z.dtype)
    root = jnp.sqrt(1 - z * z)
    power = root[None, None] ** order
    here, next_one = polynomials[:-1], polynomials[1:]
    values = sign * power * here
    # The factor (1 - z^2)^((k - 2) / 2) does not occur for order 0, and is infinite at the ends for
    # order 1.
    lower = jnp.where(order == 1, 1 / root, root[None, None] ** np.maximum(order - 2, 0))
    inner = jnp.where((order > 0) & (here != 0), order * z * lower * here, 0)
    return values, sign * (power * next_one - inner)


def lpmn_values(m: int, n: int, z: ArrayLike, is_normalized: bool) -> Array:
    """Return the associated Legendre functions P_l^k(z).

    Args:
      m: the largest order k.
      n: the largest degree l.
      z: the arguments in [-1, 1], of rank 1, of float32 or float64.
      is_normalized: whether each function is multiplied by the factor that makes the spherical
        harmonics of its degree and order orthonormal on the sphere.

    Returns:
      An array of shape (m + 1, n + 1, len(z)) and the dtype of z.

    Raises:
      TypeError: if z has another dtype.
      ValueError: if z is not of rank 1.
    """
    m, n, z = _checked(m, n, z)
    order = np.arange(m + 1)[:, None, None]
    sign = np.where(order % 2, -1, 1).astype(z.dtype)
    power = jnp.sqrt(1 - z * z)[None, None] ** order
    return sign * power * _by_degrees(m, n, z, is_normalized)


def _checked(m: int, n: int, z: ArrayLike) -> tuple[int, int, Array]:
    aval = typeof(z)
    if aval.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise TypeError(f"z.dtype={aval.dtype} is not supported: it is float32 or float64.")
    if aval.ndim != 1:
        raise ValueError(f"z must be a 1D array: got {aval.str_short()}.")
    return operator.index(m), operator.index(n), jnp.asarray(z)


def _by_degrees(m: int, n: int, z: Array, normalized: bool) -> Array:
    """Return d^k/dz^k P_l(z) for the orders k up to m and the degrees l up to n.

    Each degree follows from the two before it, for all orders together, by DLMF 14.10.3. The value
    for a degree equal to the order is a constant.
    """
    order = np.arange(m + 1, dtype=np.float64)
    first, second = _coefficients(order, n, normalized)
    diagonal = _diagonal(order, normalized)
    before = jnp.zeros((m + 1, len(z)), z.dtype)
    last = before
    rows: list[Array] = []
    for degree in range(n + 1):
        a, b = (c[degree][:, None].astype(z.dtype) for c in (first, second))
        own = np.where(order == degree, diagonal, 0)[:, None].astype(z.dtype)
        before, last = last, a * z * last - b * before + own
        rows.append(last)
    return jnp.stack(rows, axis=1)


def _coefficients(
    order: NumPyArray, n: int, normalized: bool
) -> tuple[list[NumPyArray], list[NumPyArray]]:
    """Return per degree the factors of the two degrees before, for each order; 0 from it on."""
    first: list[NumPyArray] = []
    second: list[NumPyArray] = []
    for degree in range(n + 1):
        below = order < degree
        k = np.where(below, order, 0)
        l = float(degree)
        if not degree:
            first.append(0 * order)
            second.append(0 * order)
        elif normalized:
            factor = np.sqrt((4 * l * l - 1) / (l * l - k * k))
            ratio = np.sqrt(np.maximum((l - 1) ** 2 - k * k, 0) / abs(4 * (l - 1) ** 2 - 1))
            first.append(np.where(below, factor, 0))
            second.append(np.where(below, factor * ratio, 0))
        else:
            first.append(np.where(below, (2 * l - 1) / (l - k), 0))
            second.append(np.where(below, (l + k - 1) / (l - k), 0))
    return first, second


def _diagonal(order: NumPyArray, normalized: bool) -> NumPyArray:
    """Return the derivative of order k of the polynomial of degree k: 1 * 3 * ... * (2k - 1)."""
    if normalized:
        factors = np.sqrt((2 * order + 1) / np.maximum(2 * order, 1))
        return np.cumprod(factors) / np.sqrt(4 * np.pi)
    with np.errstate(over="ignore"):
        return np.cumprod(np.maximum(2 * order - 1, 1))


# ---- spherical harmonics -------------------------------------------------------------------------


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
