"""The primitives that are spelt with other primitives: each row is traced and inlined."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hlofront.core.primitive import Primitive
from hlofront.core.rules import lower
from hlofront.lowering.formulas import Formula, exp, sqrt, where
from hlofront.primitives import special as s
from hlofront.primitives.converting import convert

# Up to where the power series is used; and how many terms it and the asymptotic one then need for
# the precision of the dtype.
_BESSEL_TERMS = {np.dtype(np.float32): (9.0, 24, 12), np.dtype(np.float64): (20.0, 50, 34)}


def bessel_i0e(x):
    """exp(-|x|) I0(x): near zero DLMF 10.25.2, whose terms are all positive; else 10.40.1."""
    dtype = x.dtype if x.dtype in _BESSEL_TERMS else np.dtype(np.float32)
    border, near_terms, far_terms = _BESSEL_TERMS[dtype]
    magnitude = abs(Formula(convert(x, dtype, False)))
    is_far = magnitude > border
    near = where(is_far, border, magnitude)
    quarter = near * near * 0.25
    near = exp(-near) * _nested(quarter, [1 / (k * k) for k in range(1, near_terms + 1)])
    far = where(is_far, magnitude, border)
    ratios = [(2 * k - 1) ** 2 / (8 * k) for k in range(1, far_terms + 1)]
    # Each root by itself: the product would overflow for the greatest numbers.
    far = _nested(1 / far, ratios) / (sqrt(far) * math.sqrt(2 * math.pi))
    return convert(where(is_far, far, near).value, x.dtype, False)


def _nested(x: Formula, ratios: list[float]) -> Formula:
    """1 + r1 x (1 + r2 x (1 + ...)): a sum, by the ratios of its successive terms."""
    total = x * 0 + 1
    for ratio in reversed(ratios):
        total = 1 + x * ratio * total
    return total


# Functions of arrays and of the parameters.
BY_TRACING: dict[Primitive, Callable[..., Any]] = {
    s.bessel_i0e_p: bessel_i0e,
}


def _rule(function):
    return lambda build, *operands, **params: build.by_tracing(function, operands, **params)[0]


for _primitive, _function in BY_TRACING.items():
    lower(_primitive)(_rule(_function))
