"""The decision procedure for symbolic sizes: bounds of sums of terms, by eliminating terms.

What is known is a set of relations: sums of terms that are 0, or at least 0. To bound a sum, its
largest term is eliminated with a relation that has the same largest term, and the rest is bounded
in the same way. Relations come from the constraints of the scope, and from the meaning of terms: a
variable is at least 1, and a quotient times its divisor plus the remainder is the dividend.
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Self

from hlofront.base.errors import InconclusiveDimensionOperation
from hlofront.core.sizes.symbolic import (
    FLOORDIV,
    MAX,
    MOD,
    ONE,
    Bounds,
    Factor,
    Scope,
    SizeExpression,
    Term,
    normalized,
    operation,
    terms_of,
)

Size = int | SizeExpression
# A sum of terms with coefficients that are not 0, the greatest first.
Sum = tuple[tuple[Term, int], ...]

_UNBOUNDED = (-math.inf, math.inf)


class Assumptions:
    """The known bounds of the terms of a scope, and the known relations between them."""

    __slots__ = ("_explained", "_limits", "_relations", "_scope")

    def __init__(self, scope: Scope):
        self._scope = scope
        self._limits: dict[Term, Bounds] = {}
        # The sums that are assumed to be 0 (True) or at least 0 (False), grouped by their greatest
        # term.
        self._relations: dict[Term, dict[Sum, bool]] = {}
        # The terms whose own definition has been added to these relations.
        self._explained: set[Term] = set()

    def copy(self) -> Self:
        """Return a copy to which assumptions can be added."""
        other = type(self)(self._scope)
        other._limits = self._limits.copy()
        other._relations = {term: known.copy() for term, known in self._relations.items()}
        other._explained = self._explained.copy()
        return other

    # ---- adding

    def assume(self, size: Size, is_zero: bool = False, text: str | None = None) -> None:
        """Assume that a size is at least 0, or that it is 0.

        Args:
          text: the constraint in the words of the user, for errors.

        Raises:
          ValueError: if it contradicts earlier assumptions.
        """
        added = tuple(terms_of(size))
        self._store(added, is_zero, text)
        for term, coefficient in added:
            if term.is_constant:
                continue
            for other, other_is_zero in list(self._about(term, anywhere=True)):
                sign = _sign(coefficient) * _sign(dict(other)[term])
                # To subtract a relation it must be an equation: an inequality may only be added.
                if sign < 0:
                    combined = _eliminated(term, added, other)
                elif other_is_zero:
                    combined = _eliminated(term, added, other)
                elif is_zero:
                    combined = _eliminated(term, other, added)
                else:
                    continue
                self._store(combined, is_zero and other_is_zero, text)

    def _store(self, added: Sum, is_zero: bool, text: str | None) -> None:
        """Store that a sum is at least 0, or that it is 0, without deriving its consequences."""
        constant = dict(added).get(ONE, 0)
        variables = len(added) - (constant != 0)
        if variables == 0:
            if constant < 0 or (is_zero and constant):
                raise _unsatisfiable(text or f"{constant} >= 0")
            return
        term, coefficient = added[0]
        if variables > 1:
            known = self._relations.setdefault(term, {})
            known[added] = is_zero or known.get(added, False)
            return
        least, most = self._limits.get(term, _UNBOUNDED)
        if is_zero and constant % coefficient:
            raise _unsatisfiable(text or f"{coefficient}*{term} == {-constant}")
        if is_zero or coefficient > 0:
            least = max(least, _ceiling(-constant, coefficient))
        if is_zero or coefficient < 0:
            most = min(most, _floor(-constant, coefficient))
        if least > most:
            raise _unsatisfiable(text or f"{term} between {least} and {most}")
        self._limits[term] = (least, most)

    def _about(self, term: Term, anywhere: bool) -> Iterator[tuple[Sum, bool]]:
        """Yield (relation, is_zero) for relations with a term as the greatest, or anywhere."""
        least, most = self._limits.get(term, _UNBOUNDED)
        if least > -math.inf:
            yield _sum({term: 1, ONE: -int(least)}), least == most
        if most < math.inf and least != most:
            yield _sum({term: -1, ONE: int(most)}), False
        if not anywhere:
            yield from self._relations.get(term, {}).items()
            return
        for known in self._relations.values():
            for relation, is_zero in known.items():
                if any(other == term for other, _ in relation):
                    yield relation, is_zero

    # ---- asking

    def bounds(self, size: Size) -> Bounds:
        """Return the least and the greatest value of a size; infinite where they are unknown."""
        terms = tuple(terms_of(size))
        for term, _ in terms:
            self.explain(term)
        return self._bounds(terms)

    def _bounds(self, terms: Sum) -> Bounds:
        if not terms:
            return 0, 0
        term, coefficient = terms[0]
        if term.is_constant:
            return coefficient, coefficient
        least, most = _UNBOUNDED
        for relation, is_zero in self._about(term, anywhere=False):
            scale = abs(relation[0][1])
            low, high = self._bounds(_eliminated(term, terms, relation))
            # The sum is the remainder, plus or minus a multiple of the relation, divided by the
            # scale.
            adds = _sign(coefficient) == _sign(relation[0][1])
            if is_zero or adds:
                least = max(least, _ceiling(low, scale))
            if is_zero or not adds:
                most = min(most, _floor(high, scale))
        factor = term.factor
        if factor is not None and not factor.is_variable and factor.name not in (FLOORDIV, MOD):
            low, high = self._bounds_by_operand(factor, coefficient, terms)
            least, most = max(least, low), min(most, high)
        return least, most

    def _bounds_by_operand(self, factor: Factor, coefficient: int, terms: Sum) -> Bounds:
        """Return bounds of a sum that starts with a maximum or minimum, from its operands."""
        cases = [
            self._bounds(_added(terms[1:], 1, tuple(terms_of(operand)), coefficient))
            for operand in factor.operands
        ]
        extreme = max if (factor.name == MAX) == (coefficient > 0) else min
        return extreme(low for low, _ in cases), extreme(high for _, high in cases)

    # ---- definitions of terms

    def explain(self, term: Term) -> None:
        """Add the relations that follow from the definition of a term."""
        if term.is_constant or term in self._explained:
            return
        self._explained.add(term)
        factor = term.factor
        if factor is None:
            self._explain_product(term)
        elif factor.is_variable:
            self._between(term, (1, math.inf))
        else:
            for operand in factor.operands:
                for inner, _ in terms_of(operand):
                    self.explain(inner)
            if factor.name == MOD:
                self._explain_remainder(term, factor)
            elif factor.name == FLOORDIV:
                self._explain_quotient(term, factor)
            else:
                self._explain_extreme(term, factor)

    def _between(self, term: Term, bounds: Bounds) -> None:
        value = self._value(term)
        if bounds[0] > -math.inf:
            self.assume(value - int(bounds[0]))
        if bounds[1] < math.inf:
            self.assume(int(bounds[1]) - value)

    def _value(self, term: Term) -> Size:
        return normalized({term: 1}, self._scope)

    def _explain_product(self, term: Term) -> None:
        powers: list[tuple[float, ...]] = []
        for factor, exponent in term.factors:
            least, most = self.bounds(self._value(Term(((factor, 1),))))
            ends = (least**exponent, most**exponent)
            powers.append((*ends, 0) if least < 0 < most and exponent % 2 == 0 else ends)
        self._between(term, _range(_product(values) for values in itertools.product(*powers)))

    def _explain_remainder(self, term: Term, factor: Factor) -> None:
        divisor, value = factor.operands[1], self._value(term)
        least, most = self.bounds(divisor)
        if least > 0:
            self._between(term, (0, most - 1))
            self.assume(divisor - 1 - value)
        elif most < 0:
            self._between(term, (least + 1, 0))
            self.assume(value - divisor - 1)

    def _explain_quotient(self, term: Term, factor: Factor) -> None:
        dividend, divisor = factor.operands
        divisor_bounds = self.bounds(divisor)
        if divisor_bounds[0] <= 0 <= divisor_bounds[1]:
            raise InconclusiveDimensionOperation(f"Possible division by 0 in division by {divisor}")
        pairs = itertools.product(self.bounds(dividend), divisor_bounds)
        self._between(term, _range(_quotient(x, y) for x, y in pairs))
        if divisor_bounds[0] > 0:
            remainder = operation(MOD, dividend, divisor, self._scope)
            for inner, _ in terms_of(remainder):
                self.explain(inner)
            self.assume(dividend - divisor * self._value(term) - remainder, is_zero=True)

    def _explain_extreme(self, term: Term, factor: Factor) -> None:
        (low_x, high_x), (low_y, high_y) = map(self.bounds, factor.operands)
        extreme, sign = (max, 1) if factor.name == MAX else (min, -1)
        self._between(term, (extreme(low_x, low_y), extreme(high_x, high_y)))
        for operand in factor.operands:
            self.assume(sign * (self._value(term) - operand))


def _unsatisfiable(text: str) -> ValueError:
    return ValueError(f"Unsatisfiable constraint: {text}")


def _sign(x: float) -> int:
    return 1 if x >= 0 else -1


def _sum(coefficients: Mapping[Term, int]) -> Sum:
    pairs = [(term, coefficient) for term, coefficient in coefficients.items() if coefficient]
    return tuple(sorted(pairs, key=lambda pair: pair[0].key, reverse=True))


def _added(x: Sum, factor_x: int, y: Sum, factor_y: int) -> Sum:
    coefficients = {term: factor_x * coefficient for term, coefficient in x}
    for term, coefficient in y:
        coefficients[term] = coefficients.get(term, 0) + factor_y * coefficient
    return _sum(coefficients)


def _eliminated(term: Term, terms: Sum, relation: Sum) -> Sum:
    """Return a positive multiple of a sum, plus the multiple of a relation that cancels a term."""
    own, other = dict(terms)[term], dict(relation)[term]
    return _added(terms, abs(other), relation, -_sign(other) * own)


def _ceiling(x: float, divisor: int) -> float:
    return x * _sign(divisor) if math.isinf(x) else -(-int(x) // divisor)


def _floor(x: float, divisor: int) -> float:
    return x * _sign(divisor) if math.isinf(x) else int(x) // divisor


def _product(values: tuple[float, ...]) -> float:
    # The product of 0 and infinity, the bound of an unbounded factor, is 0.
    return 0 if 0 in values else math.prod(values)


def _quotient(x: float, y: float) -> float:
    """Return the limit of x // y, where either may be infinite."""
    if math.isinf(x):
        return math.inf if _sign(x) == _sign(y) else -math.inf
    if math.isinf(y):
        return 0 if x == 0 or _sign(x) == _sign(y) else -1
    return int(x) // int(y)


def _range(values: Iterator[float]) -> Bounds:
    candidates = list(values)
    return min(candidates), max(candidates)
