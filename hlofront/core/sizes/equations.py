"""Equations between the symbolic shapes of arguments and the sizes that arguments have."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hlofront.base.errors import InconclusiveDimensionOperation
from hlofront.base.named_tuple import NamedTuple
from hlofront.core.sizes.scopes import SymbolicScope
from hlofront.core.sizes.symbolic import (
    Scope,
    SizeExpression,
    has_symbolic_size,
    value_of,
    variable,
    variables_of,
)

Size = int | SizeExpression
# The parts of a message. Symbolic sizes in it are replaced by their values when it is shown.
Message = tuple["str | Size", ...]


class Dimension(NamedTuple):
    """An axis of an argument with a symbolic size.

    Attributes:
      name: the axis as Python code, `args[0].shape[1]`, which is also the variable for its size.
      argument: the position of the flat argument.
      axis: the axis.
      size: the symbolic size.
    """

    name: str
    argument: int
    axis: int
    size: SizeExpression


class Check(NamedTuple):
    """A condition on the sizes of arguments: left == right, or left >= right."""

    left: Size
    right: Size
    is_equation: bool
    message: Message


class Solution(NamedTuple):
    """The variables of symbolic shapes as functions of the sizes that arguments have.

    Attributes:
      dimensions: the axes with symbolic sizes.
      values: for each variable, its value as an expression of the names of dimensions.
      constraints: the constraints of the scope, in the words of the user.
      checks: the conditions that hold for arguments that fit the shapes, in the order in which they
        are to be checked.
    """

    dimensions: list[Dimension]
    values: dict[str, Size]
    checks: list[Check]
    constraints: list[str]


def solve(shapes: Sequence[Sequence[Size]], name_of: Callable[[int], str]) -> Solution:
    """Return the variables of symbolic shapes as functions of the sizes that arguments have.

    Variables are found one at a time, each from a size that contains it linearly and no other
    unknown variable.

    Args:
      shapes: the shapes of the flat arguments.
      name_of: returns the name of a flat argument, such as `args[0]`.

    Raises:
      ValueError: if a variable cannot be found in this way.
    """
    dimensions = [
        Dimension(f"{name_of(position)}.shape[{axis}]", position, axis, size)
        for position, shape in enumerate(shapes)
        for axis, size in enumerate(shape)
        if isinstance(size, SizeExpression)
    ]
    if not dimensions:
        return Solution([], {}, [], [])
    solver = _Solver(
        "The shapes are "
        + ", ".join(
            f"{name_of(position)}: {tuple(shape)}"
            for position, shape in enumerate(shapes)
            if has_symbolic_size(shape)
        )
    )
    left = dimensions
    while left:
        unsolved = [dimension for dimension in left if not solver.use(dimension)]
        if len(unsolved) == len(left):
            raise solver.unsolvable(unsolved)
        left = unsolved
    scope = dimensions[0].size.scope
    assert isinstance(scope, SymbolicScope)
    solver.check_constraints(scope)
    constraints = [constraint.text for constraint in scope.constraints]
    return Solution(dimensions, solver.values, solver.checks, constraints)


class _Solver:
    def __init__(self, shapes: str):
        self.values: dict[str, Size] = {}
        self.checks: list[Check] = []
        self._shapes = shapes
        # The sizes that arguments have are variables without constraints.
        self._scope: Scope = SymbolicScope()

    def use(self, dimension: Dimension) -> bool:
        """Derive a variable or a check from an axis; return False if it has too many unknowns."""
        actual = variable(dimension.name, self._scope)
        unknown = [
            (term, coefficient)
            for term, coefficient in dimension.size.terms
            if any(not factor.variables() <= self.values.keys() for factor, _ in term.factors)
        ]
        if not unknown:
            expected = value_of(dimension.size, self.values)
            self._check(
                actual,
                expected,
                True,
                (
                    f"{dimension.name} is ",
                    actual,
                    f", and by its symbolic size '{dimension.size}' it is to be ",
                    expected,
                ),
            )
            return True
        (term, coefficient), *others = unknown
        factor = term.factor
        if others or factor is None or not factor.is_variable:
            return False
        known: Any = 0
        for other, other_coefficient in dimension.size.terms:
            if other is not term:
                single = SizeExpression(((other, other_coefficient),), dimension.size.scope)
                known = known + value_of(single, self.values)
        value, remainder = divmod(actual - known, coefficient)
        source = f"{dimension.name} is ", actual, f", and is to be '{dimension.size}'"
        if remainder != 0:
            self._check(remainder, 0, True, (*source, f", which no integer '{factor.name}' gives"))
        self.values[factor.name] = value
        self._check(
            value, 1, False, (*source, f", which gives '{factor.name}' the value ", value, " < 1")
        )
        return True

    def check_constraints(self, scope: SymbolicScope) -> None:
        """Add a check for each constraint of the scope."""
        for constraint in scope.constraints:
            values = dict(self.values)
            for name in variables_of(constraint.difference) - values.keys():
                # An equation replaced the variable in all shapes.
                replacement = variable(name, scope)
                if name in variables_of(replacement):
                    break
                values[name] = value_of(replacement, values)
            else:
                difference = value_of(constraint.difference, values)
                text = f"the sizes do not satisfy the constraint '{constraint.text}': its sides "
                message = (text + "differ by ", difference)
                self._check(difference, 0, constraint.is_equation, message)

    def _check(self, left: Size, right: Size, is_equation: bool, message: Message) -> None:
        known: list[str | Size] = []
        for name, value in self.values.items():
            known += [f"{', ' if known else '; they give '}{name} = ", value]
        whole = ("Input shapes do not match the symbolic shapes: ", *message, ". ", self._shapes)
        self.checks.append(Check(left, right, is_equation, (*whole, *known, ".")))

    def unsolvable(self, dimensions: Sequence[Dimension]) -> ValueError:
        unknown = sorted(
            {name for d in dimensions for name in d.size.variables()} - self.values.keys()
        )
        sizes = ", ".join(f"'{d.size}' of {d.name}" for d in dimensions)
        return ValueError(
            f"Cannot solve for values of dimension variables {set(unknown)}: variables are found "
            "from sizes that are linear in one unknown variable, and the remaining equations are "
            f"{sizes}. {self._shapes}. Give an argument an axis of the size of each variable."
        )


def check_sizes(checks: Sequence[Check], sizes: Mapping[str, Size]) -> None:
    """Raise a ValueError for the first check that fails for the sizes of the dimensions."""
    for check in checks:
        left, right = value_of(check.left, sizes), value_of(check.right, sizes)
        try:
            holds = left == right if check.is_equation else left >= right
        except InconclusiveDimensionOperation as error:
            raise ValueError(f"{message_text(check.message, sizes)} {error}") from None
        if not holds:
            raise ValueError(message_text(check.message, sizes))


def message_text(message: Message, sizes: Mapping[str, Size]) -> str:
    """Return a message as text, with symbolic sizes replaced by their values."""
    return "".join(
        part if isinstance(part, str) else str(value_of(part, sizes)) for part in message
    )
