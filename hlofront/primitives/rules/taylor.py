# pyright: strict
"""Makers of Taylor rules for operations that are linear, bilinear or locally constant.

A Taylor rule receives the operands along a curve, as truncated power series in the curve's
parameter, and returns the series of the result.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import host_number
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import typeof
from hlofront.core.primitive import ALL, Primitive
from hlofront.core.rules import Results, TaylorRule
from hlofront.core.symbolic_zeros import Series, ZeroSeries, zero_series
from hlofront.core.trace import process

# The coefficients of a polynomial of the curve's parameter, from order 0 up; missing ones at the
# end are zero.
Polynomial = ArrayLikes
Expansion = tuple[Results, Series | Sequence[Series]]

# The primitives whose results have no series, even if their operands do.
LOCALLY_CONSTANT: set[Primitive] = set()


def order_of(series: Iterable[Series]) -> int:
    """Return the order to which operands are expanded; at least one must have a series."""
    return next(len(terms) for terms in series if not isinstance(terms, ZeroSeries))


def polynomial(primal: ArrayLike, series: Series) -> Polynomial:
    """Return the coefficients of an operand: its value, then the terms of its series, if any."""
    return [primal] if isinstance(series, ZeroSeries) else [primal, *series]


def total(terms: Iterable[ArrayLike]) -> ArrayLike | None:
    """Return the sum of arrays of equal type; None if there are no arrays."""
    result = None
    for term in terms:
        # Looked up by name, because the file that defines the primitive imports this one.
        result = term if result is None else process(ALL["add_any"], (result, term), {})
    return result


def has_terms(x: ArrayLike) -> bool:
    """Return whether a value can have a series, which floats and complex numbers can."""
    return issubdtype(typeof(x).dtype, np.inexact)


def linear(*primitives: Primitive) -> None:
    """Register the Taylor rule of primitives that are linear in all floating operands jointly.

    Operands of other dtypes, such as indices, are parameters of the linear function.
    """
    for primitive in primitives:
        _register(primitive, linear_rule(primitive))


def linear_rule(primitive: Primitive) -> TaylorRule:
    """Return the rule that `linear` registers."""

    def rule(primals: ArrayLikes, series: Sequence[Series], **params: object) -> Expansion:
        result = process(primitive, tuple(primals), params)
        multiple = primitive.multiple_results
        flags = [has_terms(x) for x in (result if multiple else [result])]
        if not any(flags):
            return result, [zero_series for _ in flags] if multiple else zero_series
        # A floating operand without a series contributes zeros to each term.
        fixed = [
            _zeros_like(x) if isinstance(s, ZeroSeries) and has_terms(x) else x
            for x, s in zip(primals, series, strict=True)
        ]
        terms = [
            process(
                primitive,
                tuple(
                    [
                        x if isinstance(s, ZeroSeries) else s[k]
                        for x, s in zip(fixed, series, strict=True)
                    ]
                ),
                params,
            )
            for k in range(order_of(series))
        ]
        if not multiple:
            return result, terms
        return result, [
            list(own) if flag else zero_series
            for own, flag in zip(zip(*terms, strict=True), flags, strict=True)
        ]

    return rule


def _zeros_like(x: ArrayLike) -> ArrayLike:
    # Looked up by name, because the file that defines the primitive imports this one.
    aval = typeof(x)
    params = {"shape": aval.shape, "broadcast_dimensions": (), "sharding": None}
    return process(ALL["broadcast_in_dim"], (host_number(0, aval.dtype),), params)


def linear_in_first(primitive: Primitive) -> None:
    """Register the Taylor rule of a primitive that is linear in operand 0.

    Series of the other operands are ignored.
    """

    def rule(primals: ArrayLikes, series: Sequence[Series], **params: object) -> Expansion:
        result = process(primitive, tuple(primals), params)
        terms = series[0]
        if isinstance(terms, ZeroSeries):
            return result, zero_series
        return result, [process(primitive, (term, *primals[1:]), params) for term in terms]

    _register(primitive, rule)


def bilinear(primitive: Primitive) -> None:
    """Register the Taylor rule of a primitive that is linear in each of its first two operands.

    The series of the product is a Cauchy product: its term of order k is the sum of products of
    terms of orders j and k - j.
    """

    def rule(primals: ArrayLikes, series: Sequence[Series], **params: object) -> Expansion:
        result = process(primitive, tuple(primals), params)
        if not has_terms(result):
            return result, zero_series
        x, y = map(polynomial, primals[:2], series[:2])
        other_operands = primals[2:]
        terms: list[ArrayLike] = []
        for k in range(1, order_of(series) + 1):
            term = total(
                process(primitive, (x[j], y[k - j], *other_operands), params)
                for j in range(max(0, k + 1 - len(y)), min(k + 1, len(x)))
            )
            assert term is not None, "one of the operands has a series"
            terms.append(term)
        return result, terms

    _register(primitive, rule)


def locally_constant(primitive: Primitive) -> None:
    """Register the Taylor rule of a primitive whose results are piecewise constant."""
    LOCALLY_CONSTANT.add(primitive)
    _register(primitive, constant_rule(primitive))


def constant_rule(primitive: Primitive) -> TaylorRule:
    """Return the rule that `locally_constant` registers."""

    def rule(primals: ArrayLikes, series: Sequence[Series], **params: object) -> Expansion:
        results = process(primitive, tuple(primals), params)
        if primitive.multiple_results:
            return results, [zero_series for _ in results]
        return results, zero_series

    return rule


def _register(primitive: Primitive, rule: TaylorRule) -> None:
    rule.__name__ = rule.__qualname__ = f"{primitive.name}_taylor"
    rules.taylor(primitive)(rule)
