"""Lowering rules of special functions that CHLO lacks, or only has for some dtypes."""

from collections.abc import Callable
from typing import Concatenate

from hlofront.base.elements import float32
from hlofront.bridge.mlir import Value
from hlofront.core.aval import ShapedArray
from hlofront.core.rules import lower
from hlofront.lowering.core.builder import Builder, in_function
from hlofront.lowering.core.one_to_one import accuracy_attribute
from hlofront.lowering.special import incomplete_beta, incomplete_gamma
from hlofront.lowering.special.complementary_error import exact_erfc
from hlofront.primitives.elementwise import special as s
from hlofront.primitives.elementwise.elementwise import AccuracyMode

# (builder, aval of the operands, operands) -> the result, with that aval.
Rule = Callable[Concatenate[Builder, ShapedArray, ...], Value]


def at_least(itemsize: int, rule: Rule) -> Callable[..., Value]:
    """Return a lowering rule that computes in float32 if the elements are too narrow for `rule`.

    Args:
      itemsize: the minimum number of bytes of an element that `rule` supports.
      rule: `rule(build, aval, *operands)` takes operands with this aval and returns a result.
    """

    def widened(build: Builder, *operands: Value) -> Value:
        out = build.avals_out[0]
        aval = ShapedArray(out.shape, out.dtype if out.dtype.itemsize >= itemsize else float32)
        wide: list[Value] = []
        for operand, operand_aval in zip(operands, build.avals_in, strict=True):
            operand = build.broadcast_to(operand, operand_aval, out)
            wide.append(operand if out.dtype == aval.dtype else build.convert(operand, aval))
        result = rule(build, aval, *wide)
        return result if out.dtype == aval.dtype else build.convert(result, out)

    return widened


def one_operation(name: str) -> Rule:
    """Return the rule of a special function that is a single operation."""

    def rule(build: Builder, aval: ShapedArray, x: Value) -> Value:
        return build.op(name, (x,), aval)

    return rule


# CHLO has these functions, but not for dtypes of 8 bits or less.
lower(s.bessel_i1e_p)(at_least(2, one_operation("chlo.bessel_i1e")))


@lower(s.erfc_p)
def _(build: Builder, x: Value, *, accuracy: object = None) -> Value:
    """Lower erfc to CHLO's or, on request and where CHLO's is less accurate, to a formula."""
    accuracy_attribute(accuracy)  # CHLO's operation has no attribute for a tolerance.
    if accuracy is AccuracyMode.HIGHEST and build.avals_out[0].dtype.itemsize >= 4:
        return build.by_tracing(exact_erfc, [x])[0]
    return at_least(2, one_operation("chlo.erfc"))(build, x)


lower(s.igamma_p)(in_function(at_least(4, incomplete_gamma.igamma)))
lower(s.igammac_p)(in_function(at_least(4, incomplete_gamma.igammac)))
lower(s.igamma_grad_a_p)(in_function(at_least(4, incomplete_gamma.igamma_grad_a)))
lower(s.random_gamma_grad_p)(in_function(at_least(4, incomplete_gamma.random_gamma_grad)))
lower(s.regularized_incomplete_beta_p)(in_function(at_least(4, incomplete_beta.betainc)))
