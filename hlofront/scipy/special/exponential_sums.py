"""Softmax and its logarithm by SciPy's signatures: over all axes by default."""

from typing import Any

from hlofront.nn import normalizing
from hlofront.nn.normalizing import logsumexp as logsumexp


def softmax(x: Any, /, *, axis: int | tuple[int, ...] | None = None) -> Any:
    """Exponentials divided by their sum, so that they add up to 1.

    Args:
      x: an array of numbers.
      axis: an axis, several, or None for all of them.

    Raises:
      TypeError: if x is neither array nor scalar, or of booleans.
      ValueError: if there is no such axis.
    """
    return normalizing.softmax(x, axis=axis)


def log_softmax(x: Any, /, *, axis: int | tuple[int, ...] | None = None) -> Any:
    """The logarithm of `softmax`, which does not underflow.

    Args:
      x: an array of numbers.
      axis: an axis, several, or None for all of them.

    Raises:
      TypeError: if x is neither array nor scalar, or of booleans.
      ValueError: if there is no such axis.
    """
    return normalizing.log_softmax(x, axis=axis)
