"""The search that debug_nans and find_nan share: bad elements, and the visiting of subprograms."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

import numpy as np

from hlofront.base.dtypes import ExtendedDType, issubdtype
from hlofront.base.typing import NumPyArray
from hlofront.core.jaxpr import ClosedJaxpr, Equation
from hlofront.core.subprograms import (
    Subprogram,
    branches_of,
    condition_of,
    executed_by,
    inputs_among,
)

Operand = TypeVar("Operand")
Outcome = TypeVar("Outcome")
Context = TypeVar("Context")


def nonfinite(x: object) -> NumPyArray | None:
    """Return an array as a NumPy array if any of its elements is NaN or infinite, else None."""
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        return np.asarray(x) if isinstance(x, float | complex) and not np.isfinite(x) else None
    if isinstance(dtype, ExtendedDType) or not issubdtype(dtype, np.inexact):
        return None
    array = np.asarray(x)
    # The sum is finite only if all elements are, and needs no memory.
    with np.errstate(all="ignore"):
        total = array.sum()
    if np.isfinite(total) or bool(np.isfinite(array).all()):
        return None
    return array


class NanSearch(ABC, Generic[Operand, Outcome, Context]):
    """A search for NaNs or infinities, which descends into the programs inside equations.

    Subclasses define how a program and a loop are searched. An operand is the search's data for a
    value, a context its data for the program that contains an equation, and an outcome its result
    for an equation.

    Args:
      kinds: the bad values: "nan", "inf", or both.
    """

    __slots__ = ("kinds",)

    def __init__(self, kinds: Sequence[str]):
        self.kinds = tuple(kinds)

    def bad_elements(self, array: NumPyArray) -> NumPyArray | np.bool_:
        """Return the boolean mask of an array's bad elements."""
        if len(self.kinds) == 2:
            return ~np.isfinite(array)
        return np.isnan(array) if self.kinds == ("nan",) else np.isinf(array)

    def kind_of(self, array: NumPyArray) -> str:
        """Return "nan" or "inf", the kind of the bad elements that an array has."""
        return "nan" if "nan" in self.kinds and np.isnan(array).any() else "inf"

    def enter(
        self, equation: Equation, operands: Sequence[Operand], context: Context
    ) -> Outcome | None:
        """Search the program that an equation runs on its operands; return None if it runs none."""
        part = executed_by(equation)
        if part is None:
            return None
        if part.role == "body":
            return self.in_loop(equation, part, condition_of(equation), operands, context)
        chosen = None
        if part.role == "branch":
            branches = branches_of(equation)
            index = int(np.asarray(self.array_of(operands[0])))
            chosen = min(max(index, 0), len(branches) - 1)
            part = branches[chosen]
        return self.in_call(equation, part.closed, inputs_among(part, operands), context, chosen)

    def array_of(self, operand: Operand) -> object:
        """Return the array of an operand."""
        return operand

    @abstractmethod
    def in_call(
        self,
        equation: Equation,
        program: ClosedJaxpr,
        inputs: Sequence[Operand],
        context: Context,
        branch: int | None,
    ) -> Outcome | None:
        """Search a program that runs once, as a call or as the branch of this index."""

    @abstractmethod
    def in_loop(
        self,
        equation: Equation,
        body: Subprogram,
        condition: Subprogram | None,
        operands: Sequence[Operand],
        context: Context,
    ) -> Outcome | None:
        """Search a program that runs in each iteration, while the condition, if any, is true."""
