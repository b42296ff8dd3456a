"""Arrays with arithmetic operators, for functions that lower to other primitives.

The operators of tracers come from a higher layer, and promote dtypes. Those of formulas do not: a
constant takes the dtype of the other operand.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofront.base.elements import exact_dtype
from hlofront.base.typing import Array, ArrayLike
from hlofront.bridge.mlir import Value
from hlofront.core.primitive import Primitive
from hlofront.core.rules import lower
from hlofront.lowering.core.builder import Builder, in_function
from hlofront.lowering.core.types import NumPyDType
from hlofront.primitives.arrays.creation import full_like
from hlofront.primitives.elementwise import compare as c
from hlofront.primitives.elementwise import elementwise as e
from hlofront.primitives.elementwise import special as s


class Formula:
    """An array of numbers or booleans with operators."""

    __slots__ = ("value",)

    def __init__(self, value: Array):
        self.value = value

    @property
    def dtype(self) -> NumPyDType:
        return self.value.dtype

    def operand(self, x: "Formula | float") -> ArrayLike:
        """Return the other operand of an operation; constants become scalars of this dtype."""
        return x.value if isinstance(x, Formula) else exact_dtype(np.asarray(x, self.dtype)[()])

    def __neg__(self) -> "Formula":
        return Formula(e.neg(self.value))

    def __abs__(self) -> "Formula":
        return Formula(e.abs(self.value))

    def __invert__(self) -> "Formula":
        return Formula(e.bitwise_not(self.value))

    def __add__(self, x: "Formula | float") -> "Formula":
        return Formula(e.add(self.value, self.operand(x)))

    def __sub__(self, x: "Formula | float") -> "Formula":
        return Formula(e.sub(self.value, self.operand(x)))

    def __rsub__(self, x: "Formula | float") -> "Formula":
        return Formula(e.sub(self.operand(x), self.value))

    def __mul__(self, x: "Formula | float") -> "Formula":
        return Formula(e.mul(self.value, self.operand(x)))

    def __truediv__(self, x: "Formula | float") -> "Formula":
        return Formula(e.div(self.value, self.operand(x)))

    def __rtruediv__(self, x: "Formula | float") -> "Formula":
        return Formula(e.div(self.operand(x), self.value))

    __radd__ = __add__
    __rmul__ = __mul__

    def __and__(self, x: "Formula | float") -> "Formula":
        return Formula(e.bitwise_and(self.value, self.operand(x)))

    def __or__(self, x: "Formula | float") -> "Formula":
        return Formula(e.bitwise_or(self.value, self.operand(x)))

    def __lt__(self, x: "Formula | float") -> "Formula":
        return Formula(c.lt(self.value, self.operand(x)))

    def __le__(self, x: "Formula | float") -> "Formula":
        return Formula(c.le(self.value, self.operand(x)))

    def __gt__(self, x: "Formula | float") -> "Formula":
        return Formula(c.gt(self.value, self.operand(x)))

    def __ge__(self, x: "Formula | float") -> "Formula":
        return Formula(c.ge(self.value, self.operand(x)))

    def equals(self, x: "Formula | float") -> "Formula":
        return Formula(c.eq(self.value, self.operand(x)))


def function(of_array: Callable[..., Array]) -> Callable[[Formula], Formula]:
    """Return a function of arrays as a function of formulas."""

    def of_formula(x: Formula) -> Formula:
        return Formula(of_array(x.value))

    return of_formula


exp, expm1, log, log1p = map(function, (e.exp, e.expm1, e.log, e.log1p))
sqrt, sign, is_finite, floor = map(function, (e.sqrt, e.sign, e.is_finite, e.floor))
lgamma, digamma, erfc = map(function, (s.lgamma, s.digamma, s.erfc))


def rounded(x: Formula) -> Formula:
    """Round to the nearest integers; ties go to even ones."""
    return Formula(e.round(x.value, e.RoundingMethod.TO_NEAREST_EVEN))


def power(x: Formula, exponent: Formula) -> Formula:
    """Return x**exponent for positive x."""
    return Formula(e.pow(x.value, exponent.value))


def where(condition: Formula, yes: Formula | float, no: Formula | float) -> Formula:
    """Return `yes` where the condition holds, else `no`; one of them may be a constant."""
    like = yes if isinstance(yes, Formula) else no
    if not isinstance(like, Formula):
        raise TypeError(f"one of the values must be a formula, got {yes} and {no}")
    yes_array, no_array = (
        x.value if isinstance(x, Formula) else full_like(like.value, x) for x in (yes, no)
    )
    return Formula(c.select(condition.value, yes_array, no_array))


def by_tracing(primitive: Primitive) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function of arrays and parameters as the general lowering of a primitive."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        def rule(build: Builder, *values: Value, **params: Any) -> Value | list[Value]:
            results = build.by_tracing(function, values, **params)
            return results if primitive.multiple_results else results[0]

        lower(primitive)(in_function(rule))
        return function

    return register


def clip(low: float, x: Formula, high: float) -> Formula:
    return Formula(e.clamp(x.operand(low), x.value, x.operand(high)))


def polynomial(x: Formula, coefficients: Sequence[float]) -> Formula:
    """Return the sum of coefficients[k] * x**k, by Horner's rule."""
    result = Formula(full_like(x.value, coefficients[-1]))
    for coefficient in reversed(coefficients[:-1]):
        result = result * x + coefficient
    return result


def parallel_polynomial(x: Formula, coefficients: Sequence[float]) -> Formula:
    """Return the sum of coefficients[k] * x**k, by Estrin's scheme.

    It has more products than Horner's rule, but fewer dependencies between them, so that a
    processor with several units is faster.
    """
    terms: list[Formula | float] = list(coefficients)
    while len(terms) > 1:
        pairs = zip(terms[::2], terms[1::2])
        last = terms[-1:] if len(terms) % 2 else []
        terms = [x * high + low for low, high in pairs] + last
        x = x * x
    (result,) = terms
    return result if isinstance(result, Formula) else Formula(full_like(x.value, result))
