"""Special functions that are no CHLO operation, or none for every dtype."""

from collections.abc import Callable
from typing import Any

import numpy as np

from hlofront.core.aval import ShapedArray
from hlofront.core.rules import lower
from hlofront.lowering import incomplete
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
lower(s.igamma_p)(at_least(4, incomplete.igamma))
lower(s.igammac_p)(at_least(4, incomplete.igammac))
lower(s.igamma_grad_a_p)(at_least(4, incomplete.igamma_grad_a))
lower(s.random_gamma_grad_p)(at_least(4, incomplete.random_gamma_grad))
lower(s.regularized_incomplete_beta_p)(at_least(4, incomplete.betainc))
