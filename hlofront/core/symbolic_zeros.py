"""Values in rules besides arrays: UndefinedPrimal operands, symbolic zeros, absent batch axes."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, final

from hlofront.base import tree
from hlofront.base.typing import ArrayLike, Value
from hlofront.core.aval import typeof

if TYPE_CHECKING:
    from typing_extensions import TypeIs


@final
class UndefinedPrimal:
    """A linear operand of a transpose rule; only its aval is known.

    Attributes:
      aval: the aval.
      accumulator: the RefAccumulator of the cotangent, if the operand is a mutable reference.
    """

    __slots__ = ("accumulator", "aval")

    def __init__(self, aval: Any, accumulator: Any = None):
        self.aval = aval
        self.accumulator = accumulator

    def __repr__(self) -> str:
        return f"UndefinedPrimal({self.aval})"


@final
class Zero:
    """A symbolic zero: a tangent or cotangent that is zero and was never computed."""

    __slots__ = ("aval",)

    def __init__(self, aval: Any):
        self.aval = aval

    @staticmethod
    def of(primal: Value) -> "Zero":
        """Return the symbolic zero tangent of a value."""
        return Zero(typeof(primal).to_tangent_aval())

    from_primal_value = of

    # Return the array of zeros; set by primitives/rules/derivatives.py, which makes it.
    instantiate: ClassVar[Callable[["Zero"], Any]]

    def __repr__(self) -> str:
        return f"Zero({self.aval})"


@final
class ZeroSeries:
    """A symbolic Taylor series whose terms are all zero, such as that of a constant."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "zero_series"


zero_series = ZeroSeries()

# UndefinedPrimal and Zero are pytree nodes without leaves.
tree.register_pytree_node(
    UndefinedPrimal, lambda mark: ((), mark.aval), lambda aval, _: UndefinedPrimal(aval)
)
tree.register_pytree_node(Zero, lambda mark: ((), mark.aval), lambda aval, _: Zero(aval))


def is_undefined_primal(x: object) -> "TypeIs[UndefinedPrimal]":
    return type(x) is UndefinedPrimal


# The tangent or the cotangent of a value.
Tangent = ArrayLike | Zero
Cotangent = ArrayLike | Zero
Tangents = Sequence[Tangent]
# What a transpose rule returns: None for operands that the operation is not linear in.
Cotangents = Sequence[Cotangent | None]
# A value and its tangent, and the values and tangents of several.
Dual = tuple[ArrayLike, Tangent]
Duals = tuple[Sequence[ArrayLike], Tangents]
# The terms of orders 1 to n of a Taylor series: the term of order k is the k-th derivative, divided
# by the factorial of k.
Series = Sequence[ArrayLike] | ZeroSeries
# An operand of a transpose rule: its value, or only its aval where the operation is linear in it.
Operand = ArrayLike | UndefinedPrimal
# The axis of a value that vmap maps over; None if the whole batch shares the value.
BatchAxis = int | None
BatchAxes = Sequence[BatchAxis]
# A value and its batch axis.
Batched = tuple[ArrayLike, BatchAxis]
# The batch axis of an operand that has none.
not_mapped = None
