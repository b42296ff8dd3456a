"""Derivative rules of primitives: their tables, and functions that add rules."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    now={
        "hlofront.core.rules": (
            "get_primitive_transpose jvp=primitive_jvps transpose=primitive_transposes"
        ),
        "hlofront.core.symbolic_zeros": "UndefinedPrimal Zero is_undefined_primal",
        "hlofront.primitives.rules.derivatives": (
            "add_any_p=add_jaxvals_p add_tangents=add_jaxvals add_tangents bilinear=defbilinear "
            "derivative=defjvp derivative_from_result=defjvp2 instantiate=instantiate_zeros "
            "linear_by_cotangent=deflinear zeros_of=zeros_like_aval"
        ),
        "hlofront.primitives.rules.extension": "deflinear2",
        "hlofront.transforms.extension": "backward_pass jvp jvp_jaxpr linearize",
        "hlofront.transforms.jvp": "JVPTrace JVPTracer",
    },
)
