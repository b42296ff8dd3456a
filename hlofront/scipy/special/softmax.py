"""Softmax and its logarithm with SciPy's signatures."""

from __future__ import annotations

from hlofront.base.typing import Array, ArrayLike
from hlofront.nn import normalizing
from hlofront.nn.normalizing import logsumexp as logsumexp


def softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Compute exponentials divided by their sum over axes.

    Args:
      x: an array of numbers.
      axis: an axis, several, or None for all of them.

    Raises:
      TypeError: if x is boolean.
      ValueError: if there is no such axis.

    Example:
      >>> jax.scipy.special.softmax(jnp.zeros((2, 4)), axis=0)
      Array([[0.5, 0.5, 0.5, 0.5],
             [0.5, 0.5, 0.5, 0.5]], dtype=float32)
    """
    return normalizing.softmax(x, axis=axis)


def log_softmax(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None) -> Array:
    """Compute the logarithm of `softmax`, which does not underflow.

    Args:
      x: an array of numbers.
      axis: an axis, several, or None for all of them.

    Raises:
      TypeError: if x is boolean.
      ValueError: if there is no such axis.
    """
    return normalizing.log_softmax(x, axis=axis)
