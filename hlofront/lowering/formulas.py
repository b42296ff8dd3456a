"""Numbers that are computed with by operators, for what is spelt with other primitives.

Tracers get their operators from a floor above this one, and promote. Formulas are strict: their
constants have the dtype of what they meet.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from hlofront.primitives import comparing as c
from hlofront.primitives import elementwise as e
from hlofront.primitives.creating import full_like
from hlofront.primitives.reducing import reduce_or


class Formula:
    """An array of numbers or booleans in a formula."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    @property
    def dtype(self):
        return self.value.dtype

    def like(self, other: "Formula | float | bool") -> Any:
        """The other operand, as an array of this one's dtype."""
        return other.value if type(other) is Formula else np.asarray(other, self.dtype)[()]

    def __neg__(self):
        return Formula(e.neg(self.value))

    def __abs__(self):
        return Formula(e.abs(self.value))

    def __invert__(self):
        return Formula(e.bitwise_not(self.value))


def _operator(function: Callable[..., Any], reflected: bool = False) -> Any:
    if reflected:
        return lambda x, y: Formula(function(x.like(y), x.value))
    return lambda x, y: Formula(function(x.value, x.like(y)))


for _name, _function in (("add", e.add), ("sub", e.sub), ("mul", e.mul), ("truediv", e.div)):
    setattr(Formula, f"__{_name}__", _operator(_function))
    setattr(Formula, f"__r{_name}__", _operator(_function, reflected=True))
for _name, _function in (
    *(("lt", c.lt), ("le", c.le), ("gt", c.gt), ("ge", c.ge), ("eq", c.eq), ("ne", c.ne)),
    *(("and", e.bitwise_and), ("or", e.bitwise_or)),
):
    setattr(Formula, f"__{_name}__", _operator(_function))


def _function(function: Callable[..., Any]) -> Callable[[Formula], Formula]:
    return lambda x: Formula(function(x.value))


exp, expm1, log, log1p, sqrt = map(_function, (e.exp, e.expm1, e.log, e.log1p, e.sqrt))
is_finite, sign = map(_function, (e.is_finite, e.sign))
