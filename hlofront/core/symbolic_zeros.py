"""The values that rules take and return beside arrays: unknown operands, zeros, no batch axis."""

from typing import TYPE_CHECKING, Any

from hlofront.base import tree
from hlofront.base.typing import ArrayLike
from hlofront.core.aval import typeof

if TYPE_CHECKING:
    from typing_extensions import TypeIs


class UndefinedPrimal:
    """The operand that a transpose rule is linear in, known only by its aval."""

    __slots__ = ("aval",)

    def __init__(self, aval: Any):
        self.aval = aval

    def __repr__(self):
        return f"UndefinedPrimal({self.aval})"


class Zero:
    """A tangent or cotangent that is zero and was never computed."""

    __slots__ = ("aval",)

    def __init__(self, aval: Any):
        self.aval = aval

    @staticmethod
    def of(primal: Any) -> "Zero":
        """The zero tangent of a value."""
        return Zero(typeof(primal).to_tangent_aval())

    from_primal_value = of

    def __repr__(self):
        return f"Zero({self.aval})"


# Nodes of pytrees without leaves.
tree.register_pytree_node(
    UndefinedPrimal, lambda mark: ((), mark.aval), lambda aval, _: UndefinedPrimal(aval)
)
tree.register_pytree_node(Zero, lambda mark: ((), mark.aval), lambda aval, _: Zero(aval))


def is_undefined_primal(x: object) -> "TypeIs[UndefinedPrimal]":
    return type(x) is UndefinedPrimal


# The tangent or the cotangent of a value.
Tangent = ArrayLike | Zero
Cotangent = ArrayLike | Zero
# An operand of a transpose rule: its value, or only its aval where the operation is linear in it.
Operand = ArrayLike | UndefinedPrimal
# The axis of a value that vmap maps over; None where the value is the same for the whole batch.
BatchAxis = int | None
# The batch axis of an operand that has none.
not_mapped = None
