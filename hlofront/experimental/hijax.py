"""jax.experimental.hijax: values that consist of several arrays, and operations on them."""

from hlofront.core.aval import AbstractValue as AbstractValue
from hlofront.core.aval import ShapedArray as ShapedArray
from hlofront.core.effects import control_flow_allowed_effects as control_flow_allowed_effects
from hlofront.core.high_types import AvalMutableQDD as AvalMutableQDD
from hlofront.core.high_types import AvalQDD as AvalQDD
from hlofront.core.high_types import HiPspec as HiPspec
from hlofront.core.high_types import HiType as HiType
from hlofront.core.high_types import MutableHiType as MutableHiType
from hlofront.core.high_types import aval_method as aval_method
from hlofront.core.high_types import aval_property as aval_property
from hlofront.core.high_types import register_hitype as register_hitype
from hlofront.core.references import AbstractRef as AbstractRef
from hlofront.core.symbolic_zeros import Zero as Zero
from hlofront.core.symbolic_zeros import is_undefined_primal as is_undefined_primal
from hlofront.higher_order.vjp_primitive_rules import VJPHiPrimitive as VJPHiPrimitive
from hlofront.primitives.references.references import TransformedRef as TransformedRef
from hlofront.primitives.rules.derivatives import instantiate as instantiate_zeros
from hlofront.primitives.rules.high_primitive import HiPrimitive as HiPrimitive

__all__ = [
    "AbstractRef",
    "AbstractValue",
    "AvalMutableQDD",
    "AvalQDD",
    "HiPrimitive",
    "HiPspec",
    "HiType",
    "MutableHiType",
    "ShapedArray",
    "TransformedRef",
    "VJPHiPrimitive",
    "Zero",
    "aval_method",
    "aval_property",
    "control_flow_allowed_effects",
    "instantiate_zeros",
    "is_undefined_primal",
    "register_hitype",
]
