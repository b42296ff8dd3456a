"""The kind of an operation's loss of digits, from three computations of its result."""

import numpy as np

from hlofront.base.dtypes import finfo, issubdtype
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import ArrayLike, ArrayLikes, NumPyArray, Shape
from hlofront.core.jaxpr import Equation
from hlofront.inspect.error.measure import is_inexact, relative_error, relative_size, wide_host
from hlofront.inspect.error.references import Reference
from hlofront.inspect.error.report import Kind
from hlofront.inspect.stepwise.operands import typed
from hlofront.numpy import abs as absolute

# An error jumps at an operation if it is this many times that of the operation's operands.
JUMP = 10.0
# Sums with this condition number or a larger one leave no digits in float64 either.
_NOTHING_LEFT = 1e13

_ADDITIONS = frozenset(("add", "add_any", "sub"))
# Operations whose result on absolute values is the sum of the sizes of the terms they add.
_SUMS = frozenset(
    ("conv_general_dilated", "cumsum", "dot_general", "reduce_sum", "reduce_window_sum",
     "scatter-add")
)  # fmt: skip
_DISCRETE = frozenset(("ceil", "floor", "round", "sign"))


class Loss(NamedTuple):
    """The kind and the size of an operation's loss of digits."""

    kind: Kind
    own_error: float
    """The error of the result against the reference's result on the same operands."""
    condition: float
    """The size of the added terms relative to the result; 1 for operations that are not sums."""

    @property
    def leaves_nothing(self) -> bool:
        """True if the reference has no digits left, either."""
        return self.kind == "cancellation" and self.condition >= _NOTHING_LEFT


def loss_at(
    reference: Reference,
    equation: Equation,
    operands: ArrayLikes,
    exact_operands: ArrayLikes,
    position: int,
    result: ArrayLike,
    exact: ArrayLike,
    worst: Shape,
) -> Loss:
    """Return the kind and the size of an operation's loss of digits.

    Args:
      reference: the reference, which runs the operation again, on the program's operands.
      equation: the operation.
      operands: its operands in the program.
      exact_operands: its operands in the reference.
      position: the number of the result among the operation's results.
      result: the result in the program.
      exact: the result in the reference.
      worst: the index of the result's worst element.
    """
    name = equation.primitive.name
    ours, true = np.asarray(result)[worst], wide_host(exact)[worst]
    if name in _DISCRETE:
        return Loss("decision", 0.0, 1.0)
    if np.isfinite(true) and not np.isfinite(ours):
        return Loss("overflow", float("inf"), 1.0)
    dtype, _ = typed(result)
    if not ours and 0 < abs(true) < float(finfo(dtype).tiny):
        return Loss("underflow", 1.0, 1.0)
    terms = _sizes_of_terms(reference, equation, exact_operands)
    condition = 1.0 if terms is None else relative_size(terms, wide_host(exact))
    if equation.effects:
        return Loss("rounding", relative_error(result, exact), condition)
    on_same_operands = reference.bind(equation, [reference.lift(x) for x in operands])[position]
    own_error = relative_error(result, on_same_operands)
    if condition >= JUMP:
        return Loss("cancellation", own_error, condition)
    inherited = relative_error(on_same_operands, exact)
    return Loss("rounding" if own_error >= inherited else "ill-conditioned", own_error, condition)


def _sizes_of_terms(
    reference: Reference, equation: Equation, operands: ArrayLikes
) -> NumPyArray | None:
    """Return the sum of the sizes of the terms of each element; None if there are no terms."""
    name = equation.primitive.name
    if name in _ADDITIONS:
        left, right = (np.abs(wide_host(x)) for x in operands)
        return left + right
    if name not in _SUMS:
        return None
    sizes = [absolute(x) if is_inexact(x) else x for x in operands]
    if any(issubdtype(typed(x)[0], np.complexfloating) for x in operands):
        return None
    return wide_host(reference.bind(equation, sizes)[0])
