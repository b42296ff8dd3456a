"""The window functions of signal processing: bartlett, blackman, hamming, hanning, kaiser."""

from __future__ import annotations

import math

import numpy as np

from hlofront.base.dtypes import python_scalar_dtype
from hlofront.base.errors import ConcretizationTypeError
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.sizes.dimensions import canonical_shape
from hlofront.core.trace import Tracer
from hlofront.numpy.elementwise.ufuncs import divide, multiply
from hlofront.numpy.support.like import like
from hlofront.numpy.support.near_zero import i0
from hlofront.numpy.support.promotion import check_arraylike, host_scalar
from hlofront.primitives.arrays import creation
from hlofront.primitives.elementwise import elementwise
from hlofront.runtime.dispatch.operation import operation


def _count(name: str, M: object) -> int:
    """Return the number of points of a window, which must be known while tracing."""
    if isinstance(M, Tracer):
        raise ConcretizationTypeError(
            M,
            f"It is the argument M of jnp.{name}: the size of the result depends on it. Give a "
            "Python integer, or name the argument in static_argnums of jit.",
        )
    (count,) = canonical_shape((int(M),))
    return count


def _scalar(value: float) -> Array:
    return host_scalar(value, python_scalar_dtype(float))


def _ones(count: int) -> Array:
    return creation.full((count,), 1, python_scalar_dtype(float))


def _points(count: int) -> Array:
    return creation.iota(python_scalar_dtype(float), count)


def _cosines(count: int, *weights: float) -> Array:
    """Return the weighted sum of cosines of 0, 1, 2 ... whole periods."""
    result, points = _scalar(weights[0]), _points(count)
    for turns, weight in enumerate(weights[1:], 1):
        angle = elementwise.mul(_scalar(2 * math.pi * turns), points)
        wave = elementwise.cos(elementwise.div(angle, _scalar(count - 1)))
        result = elementwise.add(result, elementwise.mul(_scalar(weight), wave))
    return result


@operation(static_argnames=("count", "weights"))
def _cosine_window(count: int, weights: tuple[float, ...]) -> Array:
    return _ones(count) if count <= 1 else _cosines(count, *weights)


@operation(static_argnames=("count",))
def _bartlett(count: int) -> Array:
    if count <= 1:
        return _ones(count)
    # The distance of each point from the center, in half steps so that it is exact.
    twice = elementwise.mul(_scalar(2), _points(count))
    distance = elementwise.abs(elementwise.sub(twice, _scalar(count - 1)))
    return elementwise.sub(_scalar(1), elementwise.div(distance, _scalar(count - 1)))


@operation(static_argnames=("count",))
def _kaiser(beta: ArrayLike, *, count: int) -> Array:
    check_arraylike("kaiser", beta)
    if count <= 1:
        return _ones(count)
    half = _scalar((count - 1) / 2)
    position = elementwise.div(elementwise.sub(_points(count), half), half)
    height = elementwise.sqrt(elementwise.sub(_scalar(1), elementwise.square(position)))
    return divide(i0(multiply(beta, height)), i0(beta))


@like(np.bartlett)
def bartlett(M: int) -> Array:
    """Return the triangular Bartlett window: zero at both ends, 1 in the middle.

    Args:
      M: the number of points; a window of one point is 1.

    Returns:
      An array of shape (M,), in the default floating-point dtype.

    Raises:
      TypeError: if M is negative or not a number.
      ConcretizationTypeError: if M is a traced value.

    Example:
      >>> jnp.bartlett(5)
      Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _bartlett(_count("bartlett", M))


@like(np.blackman)
def blackman(M: int) -> Array:
    """Return the Blackman window of M points, zero at both ends: floats of shape (M,).

    Raises:
      TypeError: if M is negative or not a number.
      ConcretizationTypeError: if M is a traced value.

    Example:
      >>> jnp.blackman(5)[1:4].round(2)
      Array([0.34, 1.  , 0.34], dtype=float32)
    """
    return _cosine_window(_count("blackman", M), (0.42, -0.5, 0.08))


@like(np.hamming)
def hamming(M: int) -> Array:
    """Return the Hamming window of M points, 0.08 at both ends: floats of shape (M,).

    Raises:
      TypeError: if M is negative or not a number.
      ConcretizationTypeError: if M is a traced value.

    Example:
      >>> jnp.hamming(3).round(2)
      Array([0.08, 1.  , 0.08], dtype=float32)
    """
    return _cosine_window(_count("hamming", M), (0.54, -0.46))


@like(np.hanning)
def hanning(M: int) -> Array:
    """Return the Hann window of M points, zero at both ends: floats of shape (M,).

    Raises:
      TypeError: if M is negative or not a number.
      ConcretizationTypeError: if M is a traced value.

    Example:
      >>> jnp.hanning(5).round(2)
      Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _cosine_window(_count("hanning", M), (0.5, -0.5))


@like(np.kaiser)
def kaiser(M: int, beta: ArrayLike) -> Array:
    """Return the Kaiser window; a greater `beta` makes it narrower.

    Args:
      M: the number of points; a window of one point is 1.
      beta: the window's shape: 0 for ones, 14 for a narrow bell. It may be traced.

    Returns:
      An array of shape (M,).

    Raises:
      TypeError: if M is negative or not a number.
      ValueError: if beta is complex.
      ConcretizationTypeError: if M is a traced value.

    Example:
      >>> jnp.kaiser(3, 14.0).round(3)
      Array([0., 1., 0.], dtype=float32)
    """
    return _kaiser(beta, count=_count("kaiser", M))
