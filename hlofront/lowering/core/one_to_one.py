"""Primitives that lower to a single StableHLO or CHLO operation on their operands."""

from collections.abc import Callable

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.bridge.mlir import Value, ir
from hlofront.core.aval import ShapedArray
from hlofront.core.primitive import Primitive
from hlofront.core.rules import lower
from hlofront.lowering.core import types
from hlofront.lowering.core.emitter import Emitter
from hlofront.primitives.collectives.varying import pvary_p
from hlofront.primitives.elementwise import elementwise as e
from hlofront.primitives.elementwise import special as s
from hlofront.primitives.rules.derivatives import add_any_p

# Primitives whose result is their operand, whose type differs only in jaxprs.
UNCHANGED: frozenset[Primitive] = frozenset((pvary_p,))
# Operands are first broadcast to the result's shape. A row only applies to equations whose
# parameters are all None; others are lowered by the primitive's rule.
DIRECT: dict[Primitive, str] = {
    add_any_p: "stablehlo.add",
    e.abs_p: "stablehlo.abs",
    e.acos_p: "chlo.acos",
    e.acosh_p: "chlo.acosh",
    e.add_p: "stablehlo.add",
    e.and_p: "stablehlo.and",
    e.asin_p: "chlo.asin",
    e.asinh_p: "chlo.asinh",
    e.atan2_p: "stablehlo.atan2",
    e.atan_p: "chlo.atan",
    e.atanh_p: "chlo.atanh",
    e.cbrt_p: "stablehlo.cbrt",
    e.ceil_p: "stablehlo.ceil",
    e.clz_p: "stablehlo.count_leading_zeros",
    e.complex_p: "stablehlo.complex",
    e.div_p: "stablehlo.divide",
    e.floor_p: "stablehlo.floor",
    e.imag_p: "stablehlo.imag",
    e.is_finite_p: "stablehlo.is_finite",
    e.log1p_p: "stablehlo.log_plus_one",
    e.log_p: "stablehlo.log",
    e.mul_p: "stablehlo.multiply",
    e.neg_p: "stablehlo.negate",
    e.nextafter_p: "chlo.next_after",
    e.not_p: "stablehlo.not",
    e.or_p: "stablehlo.or",
    e.population_count_p: "stablehlo.popcnt",
    e.real_p: "stablehlo.real",
    e.rem_p: "stablehlo.remainder",
    e.rsqrt_p: "stablehlo.rsqrt",
    e.shift_left_p: "stablehlo.shift_left",
    e.shift_right_arithmetic_p: "stablehlo.shift_right_arithmetic",
    e.shift_right_logical_p: "stablehlo.shift_right_logical",
    e.sqrt_p: "stablehlo.sqrt",
    e.sub_p: "stablehlo.subtract",
    e.tan_p: "stablehlo.tan",
    e.tanh_p: "stablehlo.tanh",
    e.xor_p: "stablehlo.xor",
    s.digamma_p: "chlo.digamma",
    s.erf_inv_p: "chlo.erf_inv",
    s.erf_p: "chlo.erf",
    s.lgamma_p: "chlo.lgamma",
    s.polygamma_p: "chlo.polygamma",
    s.zeta_p: "chlo.zeta",
}

# Operations whose result for a NaN is arbitrary if XLA's CPU compiler folds them.
_EXPONENTIALS = {
    e.cosh_p: "chlo.cosh",
    e.exp_p: "stablehlo.exponential",
    e.expm1_p: "stablehlo.exponential_minus_one",
    e.logistic_p: "stablehlo.logistic",
    e.sinh_p: "chlo.sinh",
}

# Primitives with parameters of their own, whose rules are in the modules of their families.
_PARAMETERS = (e.mul_p,)


def one_operation(name: str) -> Callable[..., Value]:
    """Return a lowering rule that emits an operation with its `accuracy` as an attribute."""

    def rule(build: Emitter, *operands: Value, accuracy: object = None) -> Value:
        wide = build.broadcast_operands(*operands)
        return build.op(name, wide, **accuracy_attribute(accuracy))

    return rule


def _exponential_rule(name: str) -> Callable[..., Value]:
    """Return a lowering rule that emits an operation of `_EXPONENTIALS`."""

    def rule(build: Emitter, x: Value, *, accuracy: object = None) -> Value:
        result = build.op(name, (x,), **accuracy_attribute(accuracy))
        return keeping_nans(build, x, result, build.avals_in[0])

    return rule


def keeping_nans(build: Emitter, x: Value, result: Value, aval: ShapedArray) -> Value:
    """Return the result of an exponential of x, but NaN where x is, if XLA may see a constant NaN.

    It may in modules for CPUs with a NaN among their constants or the results of constants.
    """
    module = build.module
    is_guarded = module.guards_for_cpu and module.may_find_nans
    # Operations on float64 and on complex numbers are correct.
    if not is_guarded or not issubdtype(aval.dtype, np.floating) or aval.dtype.itemsize > 4:
        return result
    return build.select(build.compare("NE", x, x, aval), x, result, aval)


def accuracy_attribute(accuracy: object) -> dict[str, ir.Attribute]:
    """Return the attribute of an accuracy; no attribute for None and the default mode.

    Raises:
      TypeError: if it is not an AccuracyMode, a Tolerance or None.
    """
    if accuracy is None or accuracy is e.AccuracyMode.DEFAULT:
        return {}
    if accuracy is e.AccuracyMode.HIGHEST:
        atol, rtol, ulps, mode = 0.0, 0.0, 0, "HIGHEST"
    elif isinstance(accuracy, e.Tolerance):
        atol, rtol, ulps, mode = accuracy.atol, accuracy.rtol, accuracy.ulps, "TOLERANCE"
    else:
        raise TypeError(
            f"accuracy must be a lax.AccuracyMode, a lax.Tolerance or None, got {accuracy!r}."
        )
    text = (
        f"#stablehlo.result_accuracy<atol = {float(atol):e}, rtol = {float(rtol):e}, "
        f"ulps = {int(ulps)}, mode = #stablehlo.result_accuracy_mode<{mode}>>"
    )
    return {"result_accuracy": types.attribute(text)}


for _primitive, _name in DIRECT.items():
    if _primitive not in _PARAMETERS:
        lower(_primitive)(one_operation(_name))
for _primitive, _name in _EXPONENTIALS.items():
    lower(_primitive)(_exponential_rule(_name))
