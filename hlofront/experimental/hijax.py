"""jax.experimental.hijax: values that consist of several arrays, and operations on them."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    now={
        "hlofront.core.aval": "AbstractValue ShapedArray",
        "hlofront.core.effects": "control_flow_allowed_effects",
        "hlofront.core.high_types": (
            "AvalMutableQDD AvalQDD HiPspec HiType MappingSpec MutableHiType aval_method "
            "aval_property register_hitype"
        ),
        "hlofront.core.references": "AbstractRef",
        "hlofront.core.symbolic_zeros": "Zero is_undefined_primal",
        "hlofront.higher_order.hi_prim.accumulators": "GradAccum NullAccum RefAccum ValAccum",
        "hlofront.higher_order.hi_prim.hi_prim_derived": (
            "bdims_at_front jvp_from_lin linearize_from_jvp unmap_avals vjp_from_jvp vjp_from_lin "
            "vmap_rule"
        ),
        "hlofront.higher_order.hi_prim.hi_prim_rules": "HiPrim",
        "hlofront.higher_order.hi_prim.vjp_hi_primitive": "VJPHiPrimitive",
        "hlofront.primitives.references.references": "TransformedRef",
        "hlofront.primitives.rules.derivatives": "instantiate=instantiate_zeros",
        "hlofront.primitives.rules.high_primitive": "HiPrimitive",
    },
)
