"""Derivative rules of primitives: their tables, and functions that add rules."""

from hlofront.core.rules import get_primitive_transpose as get_primitive_transpose
from hlofront.core.rules import jvp as primitive_jvps
from hlofront.core.rules import transpose as primitive_transposes
from hlofront.core.symbolic_zeros import UndefinedPrimal as UndefinedPrimal
from hlofront.core.symbolic_zeros import Zero as Zero
from hlofront.core.symbolic_zeros import is_undefined_primal as is_undefined_primal
from hlofront.primitives.rules.derivatives import add_any_p as add_jaxvals_p
from hlofront.primitives.rules.derivatives import add_tangents as add_jaxvals
from hlofront.primitives.rules.derivatives import add_tangents as add_tangents
from hlofront.primitives.rules.derivatives import bilinear as defbilinear
from hlofront.primitives.rules.derivatives import derivative as defjvp
from hlofront.primitives.rules.derivatives import derivative_from_result as defjvp2
from hlofront.primitives.rules.derivatives import instantiate as instantiate_zeros
from hlofront.primitives.rules.derivatives import linear_by_cotangent as deflinear
from hlofront.primitives.rules.derivatives import zeros_of as zeros_like_aval
from hlofront.primitives.rules.extension import deflinear2 as deflinear2
from hlofront.transforms.extension import backward_pass as backward_pass
from hlofront.transforms.extension import jvp as jvp
from hlofront.transforms.extension import jvp_jaxpr as jvp_jaxpr
from hlofront.transforms.extension import linearize as linearize
from hlofront.transforms.jvp import JVPTrace as JVPTrace
from hlofront.transforms.jvp import JVPTracer as JVPTracer

__all__ = [
    "JVPTrace",
    "JVPTracer",
    "UndefinedPrimal",
    "Zero",
    "add_jaxvals",
    "add_jaxvals_p",
    "add_tangents",
    "backward_pass",
    "defbilinear",
    "defjvp",
    "defjvp2",
    "deflinear",
    "deflinear2",
    "get_primitive_transpose",
    "instantiate_zeros",
    "is_undefined_primal",
    "jvp",
    "jvp_jaxpr",
    "linearize",
    "primitive_jvps",
    "primitive_transposes",
    "zeros_like_aval",
]
