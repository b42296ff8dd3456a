"""jax.experimental.hijax: values that consist of several arrays, and operations on them."""

from hlofront.core.aval import AbstractValue as AbstractValue
from hlofront.core.aval import ShapedArray as ShapedArray
from hlofront.core.effects import control_flow_allowed_effects as control_flow_allowed_effects
from hlofront.core.high_types import AvalMutableQDD as AvalMutableQDD
from hlofront.core.high_types import AvalQDD as AvalQDD
from hlofront.core.high_types import HiPspec as HiPspec
from hlofront.core.high_types import HiType as HiType
from hlofront.core.high_types import MappingSpec as MappingSpec
from hlofront.core.high_types import MutableHiType as MutableHiType
from hlofront.core.high_types import aval_method as aval_method
from hlofront.core.high_types import aval_property as aval_property
from hlofront.core.high_types import register_hitype as register_hitype
from hlofront.core.references import AbstractRef as AbstractRef
from hlofront.core.symbolic_zeros import Zero as Zero
from hlofront.core.symbolic_zeros import is_undefined_primal as is_undefined_primal
from hlofront.higher_order.accumulators import GradAccum as GradAccum
from hlofront.higher_order.accumulators import NullAccum as NullAccum
from hlofront.higher_order.accumulators import RefAccum as RefAccum
from hlofront.higher_order.accumulators import ValAccum as ValAccum
from hlofront.higher_order.hi_prim_derived import bdims_at_front as bdims_at_front
from hlofront.higher_order.hi_prim_derived import jvp_from_lin as jvp_from_lin
from hlofront.higher_order.hi_prim_derived import linearize_from_jvp as linearize_from_jvp
from hlofront.higher_order.hi_prim_derived import unmap_avals as unmap_avals
from hlofront.higher_order.hi_prim_derived import vjp_from_jvp as vjp_from_jvp
from hlofront.higher_order.hi_prim_derived import vjp_from_lin as vjp_from_lin
from hlofront.higher_order.hi_prim_derived import vmap_rule as vmap_rule
from hlofront.higher_order.hi_prim_rules import HiPrim as HiPrim
from hlofront.higher_order.vjp_hi_primitive import VJPHiPrimitive as VJPHiPrimitive
from hlofront.primitives.references.references import TransformedRef as TransformedRef
from hlofront.primitives.rules.derivatives import instantiate as instantiate_zeros
from hlofront.primitives.rules.high_primitive import HiPrimitive as HiPrimitive

__all__ = [
    "AbstractRef",
    "AbstractValue",
    "AvalMutableQDD",
    "AvalQDD",
    "GradAccum",
    "HiPrim",
    "HiPrimitive",
    "HiPspec",
    "HiType",
    "MappingSpec",
    "MutableHiType",
    "NullAccum",
    "RefAccum",
    "ShapedArray",
    "TransformedRef",
    "VJPHiPrimitive",
    "ValAccum",
    "Zero",
    "aval_method",
    "aval_property",
    "bdims_at_front",
    "control_flow_allowed_effects",
    "instantiate_zeros",
    "is_undefined_primal",
    "jvp_from_lin",
    "linearize_from_jvp",
    "register_hitype",
    "unmap_avals",
    "vjp_from_jvp",
    "vjp_from_lin",
    "vmap_rule",
]
