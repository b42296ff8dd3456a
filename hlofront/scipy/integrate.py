"""hlofront.scipy.integrate: integrals of sampled functions."""

from __future__ import annotations

from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array, ArrayLike
from hlofront.numpy.statistics.differences import trapezoid as trapezoid_of_samples

__all__ = ["trapezoid"]
__dir__ = dir_of(__name__)


def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """Compute the integral of a sampled function along an axis by the trapezoidal rule.

    Args:
      y: the values.
      x: the coordinates of the values: an array of the shape of `y`, or of its size along the axis.
      dx: the distance between points where `x` is None.
      axis: the axis along which to integrate.

    Returns:
      An array of the shape of `y` without the axis.
    """
    return trapezoid_of_samples(y, x, dx, axis)
