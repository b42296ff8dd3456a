"""Numbers that are computed with by operators, for what is spelt with other primitives.

Tracers get their operators from a floor above this one, and promote. Formulas are strict: their
constants have the dtype of what they meet.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofront.base.elements import exact_dtype
from hlofront.primitives import comparing as c
from hlofront.primitives import elementwise as e
from hlofront.primitives import special as s
from hlofront.primitives.creating import full_like


class Formula:
    """An array of numbers or booleans in a formula."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    @property
    def dtype(self):
        return self.value.dtype

    def _other(self, x: Any) -> Any:
        """The other operand, as an array of this one's dtype."""
        return x.value if type(x) is Formula else exact_dtype(np.asarray(x, self.dtype)[()])

    def __neg__(self):
        return Formula(e.neg(self.value))

    def __abs__(self):
        return Formula(e.abs(self.value))

    def __invert__(self):
        return Formula(e.bitwise_not(self.value))

    def __add__(self, x: Any):
        return Formula(e.add(self.value, self._other(x)))

    def __sub__(self, x: Any):
        return Formula(e.sub(self.value, self._other(x)))

    def __rsub__(self, x: Any):
        return Formula(e.sub(self._other(x), self.value))

    def __mul__(self, x: Any):
        return Formula(e.mul(self.value, self._other(x)))

    def __truediv__(self, x: Any):
        return Formula(e.div(self.value, self._other(x)))

    def __rtruediv__(self, x: Any):
        return Formula(e.div(self._other(x), self.value))

    __radd__ = __add__
    __rmul__ = __mul__

    def __and__(self, x: Any):
        return Formula(e.bitwise_and(self.value, self._other(x)))

    def __or__(self, x: Any):
        return Formula(e.bitwise_or(self.value, self._other(x)))

    def __lt__(self, x: Any):
        return Formula(c.lt(self.value, self._other(x)))

    def __le__(self, x: Any):
        return Formula(c.le(self.value, self._other(x)))

    def __gt__(self, x: Any):
        return Formula(c.gt(self.value, self._other(x)))

    def __ge__(self, x: Any):
        return Formula(c.ge(self.value, self._other(x)))

    def equals(self, x: Any) -> "Formula":
        return Formula(c.eq(self.value, self._other(x)))


def function(of_array: Callable[..., Any]) -> Callable[[Formula], Formula]:
    """A function of arrays as one of formulas."""
    return lambda x: Formula(of_array(x.value))


exp, expm1, log, log1p = map(function, (e.exp, e.expm1, e.log, e.log1p))
sqrt, sign, is_finite = map(function, (e.sqrt, e.sign, e.is_finite))
lgamma, digamma, erfc = map(function, (s.lgamma, s.digamma, s.erfc))


def power(x: Formula, exponent: Formula) -> Formula:
    """x**exponent, of positive x."""
    return Formula(e.pow(x.value, exponent.value))


def where(condition: Formula, yes: Any, no: Any) -> Formula:
    """`yes` where the condition holds, else `no`; one of them may be a constant."""
    array = yes.value if type(yes) is Formula else no.value
    yes, no = (x.value if type(x) is Formula else full_like(array, x) for x in (yes, no))
    return Formula(c.select(condition.value, yes, no))


def clip(low: float, x: Formula, high: float) -> Formula:
    return Formula(e.clamp(x._other(low), x.value, x._other(high)))


def polynomial(x: Formula, coefficients: Sequence[float]) -> Formula:
    """The sum of coefficients[k] * x**k, by Horner's rule."""
    result = Formula(full_like(x.value, coefficients[-1]))
    for coefficient in reversed(coefficients[:-1]):
        result = result * x + coefficient
    return result
