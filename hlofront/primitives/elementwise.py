"""Primitives that act on each element: arithmetic, powers, exponentials, trigonometry."""

from hlofront.primitives.families import COMPLEX, FLOAT, NUMBER, elementwise

add_p, add = elementwise("add", NUMBER, 2, doc="Elementwise sum `x + y`.")
mul_p, mul = elementwise("mul", NUMBER, 2, doc="Elementwise product `x * y`.")
sin_p, sin = elementwise(
    "sin", FLOAT + COMPLEX, doc="Elementwise sine, of radians.", with_accuracy=True
)
