"""Lowering rules of primitives that evaluate polynomials."""

from hlofront.base.typing import Array, Shape
from hlofront.bridge.mlir import Value
from hlofront.core.aval import typeof
from hlofront.core.rules import lower
from hlofront.higher_order.control_flow.scan import scan
from hlofront.lowering.core.builder import Builder, in_function
from hlofront.primitives.arrays.shaping import ascending, broadcast_in_dim
from hlofront.primitives.arrays.slicing import stack
from hlofront.primitives.elementwise.elementwise import add, mul
from hlofront.primitives.elementwise.families import operand_shape
from hlofront.primitives.elementwise.polynomials import polynomial_p

# The maximum number of coefficients for which Horner's rule is unrolled.
_UNROLL = 8


@lower(polynomial_p)
@in_function
def _(build: Builder, *operands: Value, unroll: int | None = None) -> Value:
    shape = build.avals_out[0].shape
    return build.by_tracing(horner, operands, shape=shape, unroll=unroll)[0]


def horner(x: Array, *coefficients: Array, shape: Shape, unroll: int | None) -> Array:
    """Evaluate a polynomial at `x` by Horner's rule, unrolled or as a loop over steps.

    Args:
      x: the points.
      coefficients: two or more coefficients, of the powers 0, 1, 2, ...
      shape: the shape of the result, to which all operands broadcast.
      unroll: the number of coefficients up to which there is no loop, and of steps per iteration of
        the loop; None for the default, True to unroll completely.
    """
    unroll = _UNROLL if unroll is None else unroll
    *lower_ones, highest = coefficients
    if unroll is True or len(coefficients) <= unroll:
        result = highest
        for coefficient in reversed(lower_ones):
            result = add(mul(result, x), coefficient)
        return result
    # Scalars stay scalars if all coefficients are.
    common = operand_shape("polynomial", tuple(c.shape for c in lower_ones))
    stacked = stack([_broadcast(c, common) for c in lower_ones])

    def step(result: Array, coefficient: Array) -> tuple[Array, None]:
        return add(mul(result, x), coefficient), None

    return scan(step, _broadcast(highest, shape), stacked, reverse=True, unroll=unroll)[0]


def _broadcast(x: Array, shape: Shape) -> Array:
    return broadcast_in_dim(x, shape, ascending(typeof(x).ndim))
