"""Members of sequences by flags: operands and results that are known, linear, used or moving."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from hlofront.base.typing import ArrayLike
from hlofront.core.aval import ShapedArray
from hlofront.core.jaxpr import Atom, Var
from hlofront.core.symbolic_zeros import Cotangent, Operand, Tangent, UndefinedPrimal, Zero

# One boolean per operand, per result or per member of a carry.
Flags = tuple[bool, ...]
Member = TypeVar("Member")
# What `three_parts` returns.
Parts = tuple[tuple[Member, ...], tuple[Member, ...], tuple[Member, ...]]


def where(members: Iterable[Member], flags: Iterable[bool]) -> list[Member]:
    """Return the members whose flag is set."""
    return [member for member, flag in zip(members, flags, strict=True) if flag]


def where_not(members: Iterable[Member], flags: Iterable[bool]) -> list[Member]:
    """Return the members whose flag is not set."""
    return [member for member, flag in zip(members, flags, strict=True) if not flag]


def three_parts(members: Iterable[Member], first: int, second: int) -> Parts[Member]:
    """Split members into the first, as many as `first`, the next, as many as `second`, the rest."""
    members = tuple(members)
    return members[:first], members[first : first + second], members[first + second :]


def variables(atoms: Iterable[Atom]) -> list[Var]:
    """Return the atoms that are variables, without the literals."""
    return [atom for atom in atoms if isinstance(atom, Var)]


def any_of(rows: Iterable[Flags]) -> Flags:
    """Return per column of these rows whether a flag in it is set."""
    return tuple([any(column) for column in zip(*rows, strict=True)])


def nonzero_flags(tangents: Iterable[Tangent]) -> Flags:
    """Return per tangent or cotangent whether it is an array, not a symbolic zero."""
    return tuple([type(t) is not Zero for t in tangents])


def nonzero(tangents: Iterable[Tangent]) -> list[ArrayLike]:
    """Return the tangents or cotangents that are arrays, without the symbolic zeros."""
    return [t for t in tangents if not isinstance(t, Zero)]


def with_zeros(
    tangents: Iterable[ArrayLike], present: Iterable[bool], avals: Iterable[ShapedArray]
) -> list[Tangent]:
    """Return one tangent per aval: the next of `tangents` where it is present, else a Zero.

    Args:
      tangents: as many arrays as flags of `present` are set.
      present: per aval, whether its tangent is among `tangents`.
      avals: the types of the primal values.
    """
    rest = iter(tangents)
    return [
        next(rest) if is_present else Zero(aval.to_tangent_aval())
        for is_present, aval in zip(present, avals, strict=True)
    ]


class LinearOperands:
    """The operands of a transpose rule, split into those it is linear in and the known ones.

    Attributes:
      linear: per operand, whether the operation is linear in it.
      nonzero: per cotangent of a result, whether it is an array.
      arguments: the known operands, then the cotangents that are arrays. A program that
        `transpose_program` makes for these flags takes them.
    """

    __slots__ = ("_avals", "arguments", "linear", "nonzero")

    def __init__(self, cotangents: Sequence[Cotangent], operands: Sequence[Operand]):
        self.linear: Flags = tuple([type(x) is UndefinedPrimal for x in operands])
        self.nonzero = nonzero_flags(cotangents)
        known = [x for x in operands if not isinstance(x, UndefinedPrimal)]
        self.arguments: list[ArrayLike] = [*known, *nonzero(cotangents)]
        self._avals = [x.aval for x in operands if isinstance(x, UndefinedPrimal)]

    def cotangents(
        self, results: Sequence[ArrayLike], present: Sequence[bool]
    ) -> list[Cotangent | None]:
        """Return the cotangents of all operands; None for those that are known.

        Args:
          results: the cotangents of linear operands that are not zero.
          present: per linear operand, whether its cotangent is among `results`.
        """
        of_linear = iter(with_zeros(results, present, self._avals))
        return [next(of_linear) if is_linear else None for is_linear in self.linear]
