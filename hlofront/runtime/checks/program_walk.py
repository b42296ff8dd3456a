"""The walk that is shared by searches through running programs: it descends into subprograms."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

import numpy as np

from hlofront.core.jaxpr import ClosedJaxpr, Equation
from hlofront.core.programs.subprograms import (
    Subprogram,
    branches_of,
    condition_of,
    executed_by,
    inputs_among,
)

Operand = TypeVar("Operand")
Outcome = TypeVar("Outcome")
Context = TypeVar("Context")


class ProgramWalk(ABC, Generic[Operand, Outcome, Context]):
    """A search through a running program, which descends into the programs inside equations.

    Subclasses define how a program and a loop are searched. An operand is the search's data for a
    value, a context its data for the program that contains an equation, and an outcome its result
    for an equation.
    """

    __slots__ = ()

    def enter(
        self, equation: Equation, operands: Sequence[Operand], context: Context
    ) -> Outcome | None:
        """Search the program that an equation runs on its operands; return None if it runs none."""
        part = executed_by(equation)
        if part is None:
            return None
        if part.role == "body":
            return self.in_loop(equation, part, condition_of(equation), operands, context)
        if part.role == "branch":
            return self.in_branches(equation, branches_of(equation), operands, context)
        return self.in_call(equation, part.closed, inputs_among(part, operands), context, None)

    def in_branches(
        self,
        equation: Equation,
        branches: Sequence[Subprogram],
        operands: Sequence[Operand],
        context: Context,
    ) -> Outcome | None:
        """Search the branch that the first operand selects."""
        chosen = selected(self.array_of(operands[0]), len(branches))
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


def selected(index: object, count: int) -> int:
    """Return the number of the branch that an index selects, clamped to the existing branches."""
    return min(max(int(np.asarray(index)), 0), count - 1)
