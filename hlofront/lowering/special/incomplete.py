"""Helpers of the incomplete gamma and beta functions: loops over formulas, and power factors.

Sources: C. Loader, Fast and Accurate Computation of Binomial Probabilities (2000), for the powers;
DLMF for the series.
"""

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from hlofront.base.dtypes import finfo
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array
from hlofront.bridge.mlir import Value, Values
from hlofront.core.aval import ShapedArray
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.formulas import (
    Formula,
    is_finite,
    lgamma,
    log,
    log1p,
    polynomial,
    where,
)
from hlofront.primitives.arrays.reducing import reduce_or
from hlofront.primitives.elementwise.converting import convert

_BOOL = ShapedArray((), np.dtype(np.bool_))
_INT = ShapedArray((), np.dtype(np.int32))

# A rule of one of the functions: (builder, aval of the operands, operands) -> the result.
Rule = Callable[..., Value]


def traced(
    build: Builder, formula: Callable[..., Sequence[Formula]], values: Values, aval: ShapedArray
) -> list[Value]:
    """Emit a function of formulas; all values have this aval."""

    def of_arrays(*xs: Array) -> list[Array]:
        return [y.value for y in formula(*map(Formula, xs))]

    return build.by_tracing(of_arrays, values, [aval] * len(values))


class Step(NamedTuple):
    """The result of one iteration: the new state, and a mask of elements that need another one."""

    state: Sequence[Formula]
    active: Formula


def iterate(
    build: Builder, step: Callable[..., Step], state: Values, aval: ShapedArray, limit: int
) -> list[Value]:
    """Repeat `step(n, *state)` for n = 1, 2, ... while any element is active, up to `limit`.

    All arrays of the state have this aval. Elements that are no longer active keep their state, so
    that their results do not depend on the number of steps that others need.
    """

    def body(index: Array, mask: Array, *state: Array) -> list[Array]:
        before, going_on = [Formula(x) for x in state], Formula(mask)
        new, active = step(Formula(convert(index, aval.dtype, False)), *before)
        new = [x if x is y else where(going_on, x, y) for x, y in zip(new, before, strict=True)]
        active = active & going_on
        going = Formula(reduce_or(active.value, tuple(range(aval.ndim))))
        n = Formula(index)
        scalars = [(going & (n < limit)).value, (n + 1).value]
        return [*scalars, active.value, *(x.value for x in new)]

    def cond(_: Builder, going: Value, *rest: Value) -> Value:
        return going

    def traced_body(inner: Builder, _: Value, *rest: Value) -> list[Value]:
        return inner.by_tracing(body, rest, avals[1:])

    mask = aval.update(dtype=np.dtype(np.bool_), weak_type=False)
    avals = [_BOOL, _INT, mask, *[aval] * len(state)]
    start = [build.constant(True), build.constant(np.int32(1)), build.full(True, mask), *state]
    return build.while_loop(cond, traced_body, start, avals)[3:]


def tolerance(aval: ShapedArray) -> float:
    """Return the relative change at which an iteration stops, just above rounding errors."""
    return 4 * float(finfo(aval.dtype).eps)


# ---- power factors of the sums ----------------------------------------------------------------


def log1p_residue(u: Formula) -> Formula:
    """Return u - log(1 + u), accurate for u near 0."""
    v = u / (u + 2)
    series = polynomial(v * v, [0.0, *(1 / (2 * k + 1) for k in range(1, 13))])
    return where(abs(v) < 0.2, v * (u - 2 * series), u - log1p(u))


def deviance_of(m: Formula, x: Formula, difference: Formula | None = None) -> Formula:
    """Return m log(m / x) + x - m, which is not negative: Loader's bd0.

    Args:
      difference: x - m, if known.
    """
    difference = x - m if difference is None else difference
    ratio = m / x
    is_usual = is_finite(ratio) & (ratio > 0)
    logarithm = where(is_usual, log(where(is_usual, ratio, 1.0)), log(m) - log(x))
    u = difference / m
    is_close = abs(u) < 0.4
    near = m * log1p_residue(where(is_close, u, 0.0))
    return where(is_close, near, m * logarithm + difference)


# The coefficients of Stirling's series, DLMF 5.11.1.
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
STIRLING_FROM = 10.0
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def stirling_error(a: Formula) -> Formula:
    """Return the error of Stirling's formula for log(gamma(a))."""
    is_large = a >= STIRLING_FROM
    inverse = 1 / where(is_large, a, STIRLING_FROM)
    small = where(is_large, 1.0, a)
    direct = lgamma(small) - (small - 0.5) * log(small) + small - _HALF_LOG_2PI
    return where(is_large, inverse * polynomial(inverse * inverse, STIRLING), direct)


def lgamma1p(a: Formula) -> Formula:
    """Return log(gamma(1 + a)) for a > 0 by DLMF 5.7.3, accurate for a near 0."""
    near = a <= 0.5
    a_ = where(near, a, 0.25)
    series = polynomial(a_, [1 - np.euler_gamma, *_zeta_terms(_ZETA_TERMS[a.dtype])])
    return where(near, a_ * series - log1p(a_), lgamma(1 + a))


_ZETA_TERMS = {np.dtype(np.float32): 12, np.dtype(np.float64): 26}


@functools.cache
def _zeta_terms(count: int) -> list[float]:
    """Return (-1)**k (zeta(k) - 1) / k for k = 2, 3, ..., by Euler-Maclaurin summation."""
    end = 100.0
    terms: list[float] = []
    for k in range(2, count + 2):
        total = math.fsum(n**-k for n in range(2, int(end)))
        total += end ** (1 - k) / (k - 1) + end**-k / 2 + k * end ** (-k - 1) / 12
        total -= k * (k + 1) * (k + 2) * end ** (-k - 3) / 720
        terms.append((-1) ** k * total / k)
    return terms
