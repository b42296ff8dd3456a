"""Selecting operands and results by flags, such as known, linear or used."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core.aval import AbstractValue
from hlofront.core.jaxpr import Atom, Value, Var
from hlofront.core.symbolic_zeros import Cotangent, Operand, Tangent, UndefinedPrimal, Zero

# One boolean per operand, result or member of a carry.
Flags = tuple[bool, ...]
Member = TypeVar("Member")
# The result of `three_parts`.
Parts = tuple[tuple[Member, ...], tuple[Member, ...], tuple[Member, ...]]


def where(members: Iterable[Member], flags: Iterable[bool]) -> list[Member]:
    """Return the members of a sequence whose flag is set."""
    return [member for member, flag in zip(members, flags, strict=True) if flag]


def where_not(members: Iterable[Member], flags: Iterable[bool]) -> list[Member]:
    """Return the members of a sequence whose flag is not set."""
    return [member for member, flag in zip(members, flags, strict=True) if not flag]


def three_parts(members: Iterable[Member], first: int, second: int) -> Parts[Member]:
    """Split a sequence into its first `first` members, the next `second`, and the rest."""
    members = tuple(members)
    return members[:first], members[first : first + second], members[first + second :]


def variables(atoms: Iterable[Atom]) -> list[Var]:
    """Return the atoms of a jaxpr that are variables, without the literals."""
    return [atom for atom in atoms if isinstance(atom, Var)]


def any_of(rows: Iterable[Flags]) -> Flags:
    """Return the elementwise `or` of several sequences of flags."""
    return tuple([any(column) for column in zip(*rows, strict=True)])


def nonzero_flags(tangents: Iterable[Tangent]) -> Flags:
    """Return a flag per tangent or cotangent: whether it is an array, not a symbolic zero."""
    return tuple([type(t) is not Zero for t in tangents])


def nonzero(tangents: Iterable[Tangent]) -> list[ArrayLike]:
    """Return the tangents or cotangents that are arrays, without the symbolic zeros."""
    return [t for t in tangents if not isinstance(t, Zero)]


def with_zeros(
    tangents: Iterable[ArrayLike], present: Iterable[bool], avals: Iterable[AbstractValue]
) -> list[Tangent]:
    """Return one tangent per aval: the next of `tangents` where it is present, else a Zero.

    Args:
      tangents: one array per flag of `present` that is set.
      present: per aval, whether its tangent is among `tangents`.
      avals: the types of the primal values.
    """
    rest = iter(tangents)
    return [
        next(rest) if is_present else Zero(aval.to_tangent_aval())
        for is_present, aval in zip(present, avals, strict=True)
    ]


def cotangent_references(operands: Iterable[Operand]) -> list[Value]:
    """Return the references to the cotangents of linear operands that are references."""
    linear = [x for x in operands if isinstance(x, UndefinedPrimal)]
    return [x.accumulator.instantiated() for x in linear if x.accumulator is not None]


class LinearOperands:
    """The operands of a transpose rule, split into the linear and the known operands.

    Attributes:
      linear: per operand, whether the operation is linear in it.
      nonzero: per cotangent of a result, whether it is an array.
      arguments: the known operands, the references to the cotangents of linear references, then
        the cotangents that are arrays: the inputs of the program that `transpose_program` returns
        for the flags.
    """

    __slots__ = ("_avals", "arguments", "linear", "nonzero")

    def __init__(self, cotangents: Sequence[Cotangent], operands: Sequence[Operand]):
        self.linear: Flags = tuple([type(x) is UndefinedPrimal for x in operands])
        self.nonzero = nonzero_flags(cotangents)
        known = [x for x in operands if not isinstance(x, UndefinedPrimal)]
        references = cotangent_references(operands)
        self.arguments: list[ArrayLike] = [*known, *references, *nonzero(cotangents)]
        self._avals = [x.aval for x in operands if isinstance(x, UndefinedPrimal)]

    def cotangents(self, results: ArrayLikes, present: Sequence[bool]) -> list[Cotangent | None]:
        """Return the cotangents of all operands, with None for the known ones.

        Args:
          results: the nonzero cotangents of linear operands.
          present: per linear operand, whether its cotangent is among `results`.
        """
        of_linear = iter(with_zeros(results, present, self._avals))
        return [next(of_linear) if is_linear else None for is_linear in self.linear]
