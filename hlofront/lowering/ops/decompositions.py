"""Primitives that lower to other primitives: each function is traced and called."""

import math

import numpy as np

from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array
from hlofront.lowering.core.formulas import Formula, by_tracing, exp, sqrt, where
from hlofront.primitives.elementwise import special as s
from hlofront.primitives.elementwise.converting import convert


class _BesselTerms(NamedTuple):
    """The greatest x for the power series, and the numbers of terms of both series."""

    border: float
    near: int
    far: int


# The number of terms for the precision of each dtype.
_BESSEL_TERMS = {
    np.dtype(np.float32): _BesselTerms(9.0, 24, 12),
    np.dtype(np.float64): _BesselTerms(20.0, 50, 34),
}


@by_tracing(s.bessel_i0e_p)
def bessel_i0e(x: Array) -> Array:
    """Return exp(-|x|) I0(x), by DLMF 10.25.2 near zero and by DLMF 10.40.1 elsewhere."""
    dtype = x.dtype if x.dtype in _BESSEL_TERMS else np.dtype(np.float32)
    terms = _BESSEL_TERMS[dtype]
    magnitude = abs(Formula(convert(x, dtype, False)))
    is_far = magnitude > terms.border
    near = where(is_far, terms.border, magnitude)
    quarter = near * near * 0.25
    near = exp(-near) * _nested(quarter, [1 / (k * k) for k in range(1, terms.near + 1)])
    far = where(is_far, magnitude, terms.border)
    ratios = [(2 * k - 1) ** 2 / (8 * k) for k in range(1, terms.far + 1)]
    # Take each square root separately: the product overflows for the largest x.
    far = _nested(1 / far, ratios) / (sqrt(far) * math.sqrt(2 * math.pi))
    return convert(where(is_far, far, near).value, x.dtype, False)


def _nested(x: Formula, ratios: list[float]) -> Formula:
    """Return 1 + r1 x (1 + r2 x (1 + ...)), a power series whose terms have these ratios."""
    total = x * 0 + 1
    for ratio in reversed(ratios):
        total = 1 + x * ratio * total
    return total
