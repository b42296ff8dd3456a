"""What rules are handed in the place of values: an unknown operand, a zero, no batch axis."""

from typing import Any

from hlofront.base import tree
from hlofront.core.aval import typeof


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


def is_undefined_primal(x: Any) -> bool:
    return type(x) is UndefinedPrimal


# In the place of a batch axis: the operand has none.
not_mapped = None
