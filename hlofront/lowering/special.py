"""Special functions that are no CHLO operation, or not for every dtype: spelt with primitives."""

from collections.abc import Callable
from typing import Any

import numpy as np

from hlofront.core.aval import ShapedArray
from hlofront.core.rules import lower
from hlofront.lowering import incomplete
from hlofront.lowering.formulas import Formula, exp, sqrt, where
from hlofront.primitives import special as s

_FLOAT32 = np.dtype(np.float32)


def at_least(itemsize: int, rule: Callable[..., Any]) -> Callable[..., Any]:
    """A lowering rule that computes in float32 where elements have less than this many bytes.

    `rule(build, aval, *operands)` is given operands of this aval and returns one.
    """

    def widened(build: Any, *operands: Any) -> Any:
        out = build.avals_out[0]
        aval = ShapedArray(out.shape, out.dtype if out.dtype.itemsize >= itemsize else _FLOAT32)
        wide = []
        for operand, given in zip(operands, build.avals_in, strict=True):
            operand = build.broadcast_to(operand, given, out)
            wide.append(operand if out.dtype == aval.dtype else build.convert(operand, aval))
        result = rule(build, aval, *wide)
        return result if out.dtype == aval.dtype else build.convert(result, out)

    return widened


# CHLO has these, but not for the dtypes of 8 bits and less.
lower(s.bessel_i1e_p)(at_least(2, lambda build, aval, x: build.op("chlo.bessel_i1e", (x,), aval)))
lower(s.erfc_p)(at_least(2, lambda build, aval, x: build.op("chlo.erfc", (x,), aval)))
lower(s.bessel_i0e_p)(
    at_least(4, lambda build, aval, x: build.by_tracing(_bessel_i0e, (x,), (aval,))[0])
)
lower(s.igamma_p)(at_least(4, incomplete.igamma))
lower(s.igammac_p)(at_least(4, incomplete.igammac))
lower(s.igamma_grad_a_p)(at_least(4, incomplete.igamma_grad_a))
lower(s.random_gamma_grad_p)(at_least(4, incomplete.random_gamma_grad))
lower(s.regularized_incomplete_beta_p)(at_least(4, incomplete.betainc))


# Up to where the power series is used; and how many terms it and the asymptotic one then need for
# the precision of the dtype.
_BESSEL_TERMS = {np.dtype(np.float32): (9.0, 24, 12), np.dtype(np.float64): (20.0, 50, 34)}


def _bessel_i0e(x):
    """exp(-|x|) I0(x): near zero DLMF 10.25.2, whose terms are all positive; else 10.40.1."""
    border, near_terms, far_terms = _BESSEL_TERMS[x.dtype]
    x = abs(Formula(x))
    is_far = x > border
    # Both sums are nested: 1 + r1 (1 + r2 (1 + ...)), with the ratios of successive terms.
    near = where(is_far, border, x)
    quarter = near * near * 0.25
    total = quarter * 0 + 1
    for k in range(near_terms, 0, -1):
        total = 1 + quarter * (1 / (k * k)) * total
    near = exp(-near) * total
    far = where(is_far, x, border)
    inverse = 1 / far
    total = inverse * 0 + 1
    for k in range(far_terms, 0, -1):
        total = 1 + inverse * ((2 * k - 1) ** 2 / (8 * k)) * total
    far = total / sqrt(far * (2 * np.pi))
    return where(is_far, far, near).value
