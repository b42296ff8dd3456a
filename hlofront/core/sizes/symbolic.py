"""Symbolic sizes: integer expressions of size variables, in a normal form.

An expression is a sum of terms with integer coefficients; a term is a product of powers of factors;
a factor is a variable, or floordiv, mod, max or min of two expressions. Expressions without
variables are ints. Variables are integers that are at least 1.
"""

import operator
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol, SupportsIndex, TypeGuard, cast

from hlofront.base.errors import InconclusiveDimensionOperation
from hlofront.core.aval import SymbolicSize
from hlofront.core.trace import current_trace

# The least and the greatest value of a size; infinite if it is unbounded.
Bounds = tuple[float, float]
# A value of a size at run time: an int, another expression, or anything with +, -, * and //.
SizeValue = Any

# The maximum number of pairs of terms that a product of two sizes may multiply.
_MAX_PRODUCTS = 100_000
FLOORDIV, MOD, MAX, MIN = "floordiv", "mod", "max", "min"


def _key_of(size: "int | SizeExpression") -> tuple[Any, ...]:
    return size.key if isinstance(size, SizeExpression) else (1, ((ONE.key, size),))


def _key_of_power(power: "tuple[Factor, int]") -> tuple[Any, ...]:
    return power[0].key, power[1]


def _key_of_multiple(multiple: "tuple[Term, int]") -> tuple[Any, ...]:
    return multiple[0].key, multiple[1]


class Factor:
    """A variable, or an operation on two expressions."""

    __slots__ = ("_hash", "key", "name", "operands")

    def __init__(self, name: str, operands: "tuple[int | SizeExpression, ...]" = ()):
        # The name of the variable, or of the operation.
        self.name = name
        self.operands = operands
        keys = tuple(map(_key_of, operands))
        # Factors are ordered by their weight, the number of their parts, and then by names.
        self.key: tuple[Any, ...] = (1 + sum(key[0] for key in keys), name, keys)
        self._hash = hash(self.key)

    @property
    def is_variable(self) -> bool:
        return not self.operands

    def variables(self) -> set[str]:
        if self.is_variable:
            return {self.name}
        return {name for operand in self.operands for name in variables_of(operand)}

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is Factor and self.key == other.key)

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        if self.is_variable:
            return self.name
        return f"{self.name}({', '.join(map(_text, self.operands))})"

    __repr__ = __str__


class Term:
    """A product of powers of factors, the greatest first; the empty product is the constant 1."""

    __slots__ = ("_hash", "factors", "key")

    def __init__(self, factors: Iterable[tuple[Factor, int]]):
        self.factors = tuple(sorted(factors, key=_key_of_power, reverse=True))
        weight = sum(1 + exponent * factor.key[0] for factor, exponent in self.factors)
        self.key: tuple[Any, ...] = (weight, tuple(map(_key_of_power, self.factors)))
        self._hash = hash(self.key)

    @property
    def is_constant(self) -> bool:
        return not self.factors

    @property
    def factor(self) -> Factor | None:
        """The term's factor, if it has exactly one and that is to the power of 1; else None."""
        if len(self.factors) == 1 and self.factors[0][1] == 1:
            return self.factors[0][0]
        return None

    def __mul__(self, other: "Term") -> "Term":
        exponents = dict(self.factors)
        for factor, exponent in other.factors:
            exponents[factor] = exponents.get(factor, 0) + exponent
        return Term(exponents.items())

    def divided_by(self, other: "Term") -> "Term | None":
        """Return the quotient of two terms, or None if it is not a term."""
        exponents = dict(self.factors)
        for factor, exponent in other.factors:
            left = exponents.pop(factor, 0) - exponent
            if left < 0:
                return None
            if left:
                exponents[factor] = left
        return Term(exponents.items())

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is Term and self.key == other.key)

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return "*".join(
            str(factor) if exponent == 1 else f"{factor}^{exponent}"
            for factor, exponent in reversed(self.factors)
        )

    __repr__ = __str__


ONE = Term(())
# Terms with their coefficients.
Coefficients = Mapping[Term, int]


class Scope(Protocol):
    """The protocol of scopes that expressions rely on; `core/sizes/scopes.py` has the class."""

    @property
    def rules(self) -> Mapping[Term, "tuple[int | SizeExpression, int]"]: ...
    def bounds(self, expression: "int | SizeExpression") -> Bounds: ...
    def advice(self, difference: "SizeExpression") -> str: ...


class SymbolicIndexError(InconclusiveDimensionOperation, TypeError):
    """The error for a symbolic size where Python needs an integer.

    It is also a TypeError, which Python raises for values without `__index__`.
    """


class SizeExpression(SymbolicSize):
    """A size that depends on variables. Arithmetic with ints gives expressions or ints.

    A comparison has a result if that is the same for all values of the variables that the
    constraints of the scope allow; otherwise `==` is False and the others raise
    InconclusiveDimensionOperation. Arithmetic with arrays converts the size to a scalar.
    """

    __slots__ = ("_hash", "key", "scope", "terms")

    # As for tracers: NumPy's arrays defer to this class.
    __array_priority__ = 1000

    scope: Scope
    # The terms with their coefficients, the greatest first, and the constant last.
    terms: tuple[tuple[Term, int], ...]

    def __init__(self, terms: Iterable[tuple[Term, int]], scope: Scope):
        self.terms = tuple(sorted(terms, key=_key_of_multiple, reverse=True))
        self.scope = scope
        weight = sum(1 + abs(coefficient) * term.key[0] for term, coefficient in self.terms)
        self.key: tuple[Any, ...] = (weight, tuple(map(_key_of_multiple, self.terms)))
        self._hash = hash((self.key, id(scope)))

    @property
    def term(self) -> Term | None:
        """The term that the expression equals; None if it has another coefficient or more terms."""
        if len(self.terms) == 1 and self.terms[0][1] == 1:
            return self.terms[0][0]
        return None

    # ---- arithmetic

    def __add__(self, other: object) -> Any:
        if not is_size(other):
            return self.as_value() + other
        return combination(self, 1, other, 1, self.scope)

    def __radd__(self, other: object) -> Any:
        return self + other if is_size(other) else other + self.as_value()

    def __sub__(self, other: object) -> Any:
        if not is_size(other):
            return self.as_value() - other
        return combination(self, 1, other, -1, self.scope)

    def __rsub__(self, other: object) -> Any:
        if not is_size(other):
            return other - self.as_value()
        return combination(other, 1, self, -1, self.scope)

    def __neg__(self) -> "int | SizeExpression":
        return combination(self, -1, 0, 0, self.scope)

    def __mul__(self, other: object) -> Any:
        if not is_size(other):
            return self.as_value() * other
        check_scopes(self.scope, other, "in a product")
        coefficients: dict[Term, int] = {}
        terms = terms_of(other)
        if len(self.terms) * len(terms) > _MAX_PRODUCTS:
            raise ValueError(f"a product of {len(self.terms)} and {len(terms)} terms is too long")
        for term, coefficient in self.terms:
            for other_term, other_coefficient in terms:
                product = term * other_term
                known = coefficients.get(product, 0)
                coefficients[product] = known + coefficient * other_coefficient
        return normalized(coefficients, self.scope)

    def __rmul__(self, other: object) -> Any:
        return self * other if is_size(other) else other * self.as_value()

    def __pow__(self, power: Any, modulo: None = None) -> Any:
        if isinstance(power, SizeExpression):
            return self.as_value() ** power.as_value()
        if power != int(power):
            raise ValueError(
                f"Symbolic dimension cannot be raised to non-integer powers: '{self}' ** '{power}'"
            )
        if power < 0:
            raise ValueError(
                f"Symbolic dimension cannot be raised to negative powers: '{self}' ** '{power}'"
            )
        result: Any = 1
        for _ in range(int(power)):
            result = result * self
        return result

    def __rpow__(self, other: object, modulo: None = None) -> Any:
        return other ** self.as_value()

    def __floordiv__(self, other: object) -> Any:
        return self.__divmod__(other)[0] if is_size(other) else self.as_value() // other

    def __rfloordiv__(self, other: Any) -> Any:
        return _divided(other, self, self.scope)[0] if is_size(other) else other // self.as_value()

    def __mod__(self, other: object) -> Any:
        return self.__divmod__(other)[1] if is_size(other) else self.as_value() % other

    def __rmod__(self, other: Any) -> Any:
        return _divided(other, self, self.scope)[1] if is_size(other) else other % self.as_value()

    def __divmod__(self, other: object) -> Any:
        if not is_size(other):
            return divmod(self.as_value(), other)
        return _divided(self, other, self.scope)

    def __rdivmod__(self, other: Any) -> Any:
        if not is_size(other):
            return divmod(other, self.as_value())
        return _divided(other, self, self.scope)

    def __truediv__(self, other: object) -> Any:
        return self.as_value() / (other.as_value() if isinstance(other, SizeExpression) else other)

    def __rtruediv__(self, other: object) -> Any:
        return other / self.as_value()

    def __int__(self) -> int:
        raise InconclusiveDimensionOperation(
            f"Symbolic dimension '{self}' used in a context that requires a constant"
        )

    def __index__(self) -> int:
        raise SymbolicIndexError(
            f"The symbolic dimension '{self}' cannot be interpreted as an integer, as `range(n)`, "
            "indices of lists, or a loop unrolled over it need: its value is not known before the "
            "program is called. Loop with `lax.fori_loop` or `lax.scan`, index arrays, or export "
            "for a constant size."
        )

    # ---- comparisons

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, SizeExpression):
            return self.scope is other.scope and self.key == other.key
        # Expressions that are constants are ints.
        return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return self._hash

    def __ge__(self, other: Any) -> Any:
        return self._compared(self, ">=", other) if is_size(other) else self.as_value() >= other

    def __le__(self, other: Any) -> Any:
        return self._compared(other, "<=", self) if is_size(other) else self.as_value() <= other

    def __gt__(self, other: Any) -> Any:
        if not is_size(other):
            return self.as_value() > other
        return not self._compared(other, ">", self)

    def __lt__(self, other: Any) -> Any:
        if not is_size(other):
            return self.as_value() < other
        return not self._compared(self, "<", other)

    def _compared(
        self, greater: "int | SizeExpression", sign: str, less: "int | SizeExpression"
    ) -> bool:
        """Return whether greater >= less; `sign` is that of the comparison, for the error.

        Raises:
          InconclusiveDimensionOperation: if it depends on the variables.
        """
        other = less if greater is self else greater
        check_scopes(self.scope, other, f"when comparing '{self}' {sign} '{other}'")
        difference = combination(greater, 1, less, -1, self.scope)
        least, most = self.scope.bounds(difference)
        if least >= 0:
            return True
        if most < 0:
            return False
        assert isinstance(difference, SizeExpression)
        raise InconclusiveDimensionOperation(
            f"Symbolic dimension comparison '{self}' {sign} '{other}' is inconclusive: it depends "
            f"on the sizes. {self.scope.advice(difference)}"
        )

    # ---- values

    def as_value(self) -> Any:
        """Return the size as a scalar of the program that is being traced."""
        return current_trace().lift(self)

    def as_number(self, dtype: object) -> Any:
        """Return the size as a scalar of a dtype of the program that is being traced."""
        return self.as_value().astype(dtype)

    def __jax_array__(self) -> Any:
        return self.as_value()

    def dimension_as_value(self) -> Any:
        """Return the result of `as_value`, under JAX's name."""
        return self.as_value()

    def evaluated(self, values: Mapping[str, SizeValue]) -> SizeValue:
        """Return the value of the expression for values of its variables.

        The values may be ints, expressions, or anything with +, -, *, //, % and comparisons, such
        as traced integers.

        Raises:
          KeyError: for a variable without a value.
        """
        total: Any = 0
        for term, coefficient in self.terms:
            product: Any = coefficient
            for factor, exponent in term.factors:
                value = _factor_value(factor, values)
                for _ in range(exponent):
                    product = product * value
            total = total + product
        return total

    def variables(self) -> set[str]:
        """Return the names of the variables."""
        return {
            name
            for term, _ in self.terms
            for factor, _ in term.factors
            for name in factor.variables()
        }

    def __deepcopy__(self, memo: object) -> "SizeExpression":
        return self

    def __str__(self) -> str:
        return _text(self)

    __repr__ = __str__


def _text(size: int | SizeExpression) -> str:
    text = " ".join(_multiple_text(term, coefficient) for term, coefficient in terms_of(size))
    return text.removeprefix("+ ") or "0"


def _multiple_text(term: Term, coefficient: int) -> str:
    sign = "-" if coefficient < 0 else "+"
    if term.is_constant:
        return f"{sign} {abs(coefficient)}"
    return f"{sign} {term}" if abs(coefficient) == 1 else f"{sign} {abs(coefficient)}*{term}"


def is_symbolic_dim(p: object) -> TypeGuard[SizeExpression]:
    """Return whether a size is symbolic rather than an int.

    Args:
      p: a size from an array's shape.

    Example:
      >>> b, n = jax.export.symbolic_shape("b, 3")
      >>> jax.export.is_symbolic_dim(b), jax.export.is_symbolic_dim(n)
      (True, False)
    """
    return isinstance(p, SizeExpression)


def is_size(x: object) -> bool:
    """Return whether a value is a size: an int, of Python or NumPy, or an expression."""
    if isinstance(x, SizeExpression):
        return True
    # Arrays and tracers of integers have this method as well, but are not sizes.
    if not hasattr(x, "__index__") or hasattr(x, "aval"):
        return False
    # NumPy's arrays have `__index__` whatever their shape and dtype.
    try:
        operator.index(cast(SupportsIndex, x))
    except TypeError:
        return False
    return True


def variables_of(size: "int | SizeExpression") -> set[str]:
    """Return the names of the variables of a size."""
    return size.variables() if isinstance(size, SizeExpression) else set()


def terms_of(size: Any) -> Sequence[tuple[Term, int]]:
    """Return the terms of a size with their coefficients."""
    if isinstance(size, SizeExpression):
        return size.terms
    value = operator.index(size)
    return ((ONE, value),) if value else ()


def check_scopes(scope: Scope, size: object, when: str) -> None:
    """Raise ValueError if a size belongs to another scope."""
    if isinstance(size, SizeExpression) and size.scope is not scope:
        raise ValueError(
            f"Invalid mixing of symbolic scopes {when}.\nExpected scope {scope}\nand found for "
            f"'{size}' scope {size.scope}. Make the sizes of one program by a single call of "
            "symbolic_shape, or with the same scope=."
        )


def combination(
    x: object, factor_x: int, y: object, factor_y: int, scope: Scope
) -> "int | SizeExpression":
    """Return factor_x * x + factor_y * y, for sizes of a scope."""
    check_scopes(scope, x, "in a sum")
    check_scopes(scope, y, "in a sum")
    coefficients = {term: factor_x * coefficient for term, coefficient in terms_of(x)}
    for term, coefficient in terms_of(y):
        coefficients[term] = coefficients.get(term, 0) + factor_y * coefficient
    return normalized(coefficients, scope)


def normalized(coefficients: Coefficients, scope: Scope) -> "int | SizeExpression":
    """Return a sum of terms, with terms replaced according to the equations of its scope."""
    rules = scope.rules
    if rules:
        coefficients = _rewritten(coefficients, rules)
    terms = [(term, coefficient) for term, coefficient in coefficients.items() if coefficient]
    if not terms:
        return 0
    if len(terms) == 1 and terms[0][0].is_constant:
        return terms[0][1]
    return SizeExpression(terms, scope)


def _rewritten(
    coefficients: Coefficients, rules: "Mapping[Term, tuple[int | SizeExpression, int]]"
) -> Coefficients:
    """Replace terms, and factors of products, according to the equations of a scope."""
    result = dict(coefficients)
    for term, coefficient in coefficients.items():
        for part in (term, *(Term((power,)) for power in term.factors if len(term.factors) > 1)):
            rule = rules.get(part)
            if rule is None or coefficient % rule[1]:
                continue
            value, multiple = rule
            rest = term.divided_by(part)
            assert rest is not None
            result[term] -= coefficient
            for new, new_coefficient in terms_of(value):
                product = new * rest
                change = new_coefficient * (coefficient // multiple)
                result[product] = result.get(product, 0) + change
            break
    return result


def variable(name: str, scope: Scope) -> "int | SizeExpression":
    """Return the variable of a scope with this name, or the size that an equation sets it to."""
    return normalized({Term(((Factor(name), 1),)): 1}, scope)


def operation(
    name: str, x: "int | SizeExpression", y: "int | SizeExpression", scope: Scope
) -> "int | SizeExpression":
    """Return floordiv, mod, max or min of two sizes as a factor that stands for it."""
    check_scopes(scope, x, f"for operation {name}")
    check_scopes(scope, y, f"for operation {name}")
    return normalized({Term(((Factor(name, (x, y)), 1),)): 1}, scope)


def _divided(
    dividend: "int | SizeExpression", divisor: Any, scope: Scope
) -> "tuple[int | SizeExpression, int | SizeExpression]":
    """Return the quotient, rounded towards minus infinity as for ints, and the remainder.

    Polynomial division finds them if it leaves an int, which must be 0 if the divisor has
    variables. Otherwise they are the symbolic operations floordiv and mod.
    """
    check_scopes(scope, divisor, "in a division")
    quotient: Any = 0
    rest: Any = dividend
    leading, leading_coefficient = (
        (ONE, operator.index(divisor))
        if not isinstance(divisor, SizeExpression)
        else divisor.terms[0]
    )
    if leading.is_constant and not leading_coefficient:
        raise ZeroDivisionError(f"integer division or modulo by zero: '{dividend}' by {divisor}")
    while isinstance(rest, SizeExpression):
        term, coefficient = rest.terms[0]
        ratio = term.divided_by(leading)
        if ratio is None or coefficient % leading_coefficient:
            break
        part = normalized({ratio: coefficient // leading_coefficient}, scope)
        quotient = quotient + part
        rest = rest - part * divisor
    else:
        if not isinstance(divisor, SizeExpression):
            more, remainder = divmod(rest, operator.index(divisor))
            return quotient + more, remainder
        if rest == 0:
            return quotient, 0
    return (
        operation(FLOORDIV, dividend, divisor, scope),
        operation(MOD, dividend, divisor, scope),
    )


def max_dim(d1: Any, d2: Any) -> Any:
    """Return the greater of two sizes, as an expression if it depends on variables."""
    return _extreme(MAX, d1, d2, 1)


def min_dim(d1: Any, d2: Any) -> Any:
    """Return the lesser of two sizes, as an expression if it depends on variables."""
    return _extreme(MIN, d1, d2, -1)


def _extreme(name: str, x: Any, y: Any, sign: int) -> Any:
    """Return max_dim (with sign 1) or min_dim (with sign -1) of two sizes."""
    if isinstance(x, SizeExpression) or isinstance(y, SizeExpression):
        scope = x.scope if isinstance(x, SizeExpression) else y.scope
        least, greatest = scope.bounds(combination(x, sign, y, -sign, scope))
        if least >= 0:
            return x
        return y if greatest <= 0 else operation(name, x, y, scope)
    if isinstance(x, int) and isinstance(y, int):
        return max(x, y) if name == MAX else min(x, y)
    # Traced sizes, such as the lengths of a bucket.
    return x + (y - x) * (y > x if name == MAX else y < x)


def _factor_value(factor: Factor, values: Mapping[str, SizeValue]) -> SizeValue:
    if factor.is_variable:
        return values[factor.name]
    x, y = (
        operand.evaluated(values) if isinstance(operand, SizeExpression) else operand
        for operand in factor.operands
    )
    if factor.name == FLOORDIV:
        return x // y
    if factor.name == MOD:
        return x % y
    return max_dim(x, y) if factor.name == MAX else min_dim(x, y)


def value_of(size: "int | SizeExpression", values: Mapping[str, SizeValue]) -> SizeValue:
    """Return the value of a size for values of its variables."""
    return size.evaluated(values) if isinstance(size, SizeExpression) else size


def has_symbolic_size(shape: Iterable[Hashable]) -> bool:
    """Return whether a size of a shape is symbolic."""
    return any(isinstance(size, SizeExpression) for size in shape)
