"""Scopes of symbolic sizes: their constraints, and the shapes that are made in them."""

import math
from collections.abc import Sequence

from hlofront.base import source
from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge.fast_parts import get_traceback
from hlofront.core.sizes.bounds import Assumptions
from hlofront.core.sizes.parsing import Parser
from hlofront.core.sizes.symbolic import (
    FLOORDIV,
    MOD,
    ONE,
    Bounds,
    Factor,
    SizeExpression,
    Term,
    combination,
    normalized,
)

Size = int | SizeExpression

_COMPARISONS = "==", ">=", "<="


class Constraint(NamedTuple):
    """A constraint of a scope: a difference of sizes that is 0, or at least 0.

    Attributes:
      text: the constraint in the words of the user.
      difference: the difference, in a form in which this constraint was not yet known.
      is_equation: whether it is 0; else it is at least 0.
    """

    text: str
    difference: Size
    is_equation: bool


class SymbolicScope:
    """The variables of symbolic sizes that can be combined, and the constraints on them.

    Args:
      constraints_str: constraints, each of the form `e1 >= e2`, `e1 <= e2` or `e1 == e2`. The left
        side of an equation is a product, with a coefficient, which the right side replaces.

    Raises:
      ValueError: if a constraint cannot be parsed, or no sizes can satisfy them all.

    Example:
      >>> scope = SymbolicScope(["n >= 8", "mod(n, 4) == 0"])
      >>> n, = symbolic_shape("n", scope=scope)
      >>> n > 7, n % 4, 4 * (n // 4)
      (True, 0, n)
    """

    def __init__(self, constraints_str: Sequence[str] = ()):
        if isinstance(constraints_str, str):
            raise ValueError(
                f"The symbolic constraints should be a sequence of strings. Got {constraints_str!r}"
            )
        self._made_at = source.summarize(get_traceback())
        self.constraints: list[Constraint] = []
        # The equations: each says that a term, times a coefficient, is equal to a size.
        self.rules: dict[Term, tuple[Size, int]] = {}
        self._assumptions = Assumptions(self)
        self._bounds: dict[Size, Bounds] = {}
        for text in constraints_str:
            self._add(text)

    def __str__(self) -> str:
        lines = [f"{id(self)} created at {self._made_at}"]
        if self.constraints:
            lines.append(" with constraints:")
            lines += [f"  {constraint.text}" for constraint in self.constraints]
        return "\n".join(lines)

    __repr__ = __str__

    def bounds(self, expression: Size) -> Bounds:
        """Return the smallest and the largest value of a size; infinite where they are unknown."""
        if not isinstance(expression, SizeExpression):
            return expression, expression
        known = self._bounds.get(expression)
        if known is None:
            known = self._bounds[expression] = self._assumptions.copy().bounds(expression)
        return known

    def advice(self, difference: SizeExpression) -> str:
        """Return which constraints would settle whether a difference is negative."""
        terms = dict(difference.terms)
        constant = terms.pop(ONE, 0)
        left = normalized({t: k for t, k in terms.items() if k > 0}, self)
        right = normalized({t: -k for t, k in terms.items() if k < 0}, self)
        if left == 0:
            at_least, less = f"{right} <= {constant}", f"{right} >= {constant + 1}"
        else:
            # The difference is at least 0 if left >= right - constant.
            at_least = f"{left} >= {right - constant}"
            less = f"{left} <= {right - constant - 1}"
        return (
            f"A constraint settles it: symbolic_shape(..., constraints=[{at_least!r}]) or "
            f"[{less!r}], in the scope {self}."
        )

    # ---- constraints

    def _add(self, text: str) -> None:
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"SymbolicScope constraint must be a string: got {text!r}")
        comparison = next((sign for sign in _COMPARISONS if sign in text), None)
        if comparison is None:
            raise ValueError(
                f"Constraint parsing error: must contain one of '==' or '>=' or '<=': {text!r}"
            )
        left, right = (self._size(side) for side in text.split(comparison, 1))
        if comparison == "<=":
            left, right = right, left
        self._add_constraint(text, left, right, comparison == "==")
        self._bounds.clear()

    def _size(self, text: str) -> Size:
        sizes = Parser(text, self).shape()
        if len(sizes) != 1:
            raise ValueError(f"a side of a constraint is one size: got {text!r}")
        return sizes[0]

    def _add_constraint(self, text: str, left: Size, right: Size, is_equation: bool) -> None:
        difference = combination(left, 1, right, -1, self)
        if not isinstance(difference, SizeExpression):
            if difference < 0 or (is_equation and difference):
                raise ValueError(f"Unsatisfiable explicit constraint: {text}")
            return
        if is_equation:
            self._add_rule(text, left, right)
        self._assume(text, difference, is_equation)
        self.constraints.append(Constraint(text, difference, is_equation))

    def _assume(self, text: str, difference: SizeExpression, is_equation: bool) -> None:
        for term, _ in difference.terms:
            self._assumptions.explain(term)
        self._assumptions.assume(difference, is_equation, text)

    def _add_rule(self, text: str, left: Size, right: Size) -> None:
        if not isinstance(left, SizeExpression) or len(left.terms) != 1:
            raise ValueError(
                f"Invalid equality constraint: {text}. The left-hand-side must be of the form "
                "`term * coefficient`."
            )
        term, coefficient = left.terms[0]
        if term in self.rules:
            raise NotImplementedError(  # JAX raises this class.
                f"Found multiple equality constraints with the same left-hand-side: {term}"
            )
        self.rules[term] = (right, coefficient)
        factor = term.factor
        if factor is None or factor.name != MOD or not factor.operands:
            return
        dividend, divisor = factor.operands
        if coefficient == 1 and right == 0 and not isinstance(divisor, SizeExpression):
            # The division leaves no remainder, so the dividend is the quotient times the divisor.
            quotient = Term(((Factor(FLOORDIV, (dividend, divisor)), 1),))
            difference = combination(normalized({quotient: divisor}, self), 1, dividend, -1, self)
            if isinstance(difference, SizeExpression) and quotient not in self.rules:
                self.rules[quotient] = (dividend, divisor)
                self._assume(text, difference, True)


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple[int | SizeExpression, ...]:
    """Return a shape with symbolic sizes, for exporting a function for arrays of unknown sizes.

    Args:
      shape_spec: sizes separated by commas: integers, variables, which stand for all sizes from 1,
        and expressions of +, -, *, `^` with an integer, floordiv, mod, max and min. `_` stands for
        a size of `like`, and `...`, or None for the whole shape, for its last ones.
      constraints: constraints on the variables: `e1 >= e2`, `e1 <= e2` or `e1 == e2`.
      scope: the scope of the variables, instead of a new one with these constraints.
      like: a shape.

    Returns:
      A tuple of ints and symbolic sizes.

    Raises:
      ValueError: if the text is not a shape, if it differs from `like` in a known size, if both
        constraints and a scope are passed, or if no sizes satisfy the constraints.

    Example:
      >>> b, n = symbolic_shape("b, 2*n", constraints=["b >= 4"])
      >>> b > 3, n // 2, b + n
      (True, n, 2*n + b)
    """
    if shape_spec is not None and not isinstance(shape_spec, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(
            f"polymorphic shape spec should be None or a string. Found {shape_spec!r}."
        )
    if scope is None:
        scope = SymbolicScope(constraints)
    elif constraints:
        raise ValueError("Cannot specify both a `scope` and `constraints`.")
    return Parser("..." if shape_spec is None else shape_spec, scope, like).shape()


def symbolic_dim_bounds(dimension: int | SizeExpression) -> tuple[float, float]:
    """Return the smallest and the largest value of a size that its constraints imply.

    Args:
      dimension: a symbolic size, or an int, whose bounds are itself.

    Returns:
      (least, greatest): numbers, which are minus infinity and infinity where there is no bound.

    Example:
      >>> b, = symbolic_shape("b", constraints=["b <= 64"])
      >>> symbolic_dim_bounds(2 * b - 1)
      (1, 127)
    """
    if not isinstance(dimension, SizeExpression):
        return dimension, dimension
    least, most = dimension.scope.bounds(dimension)
    return (
        least if math.isinf(least) else int(least),
        most if math.isinf(most) else int(most),
    )
