"""hlofront.scipy.integrate: integrals of samples."""

from typing import Any

from hlofront.numpy.differences import trapezoid as trapezoid_of_samples


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral of a function from its values, by lines between them.

    Args:
      y: the values.
      x: the places that they are at: an array of the shape of `y`, or of its size along the axis.
      dx: the distance of places, where `x` is None.
      axis: the axis along which to integrate.

    Returns:
      An array of the shape of `y` without the axis.

    Raises:
      TypeError: if an operand is neither array nor scalar.
    """
    return trapezoid_of_samples(y, x, dx, axis)
