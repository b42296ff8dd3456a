"""Partial evaluation and dead-code elimination of jaxprs, and tracing into jaxprs."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    now={
        "hlofront.core.jaxpr": "Value=Val",
        "hlofront.core.rules": (
            "partial_eval_with_policy=partial_eval_jaxpr_custom_rules simplify=dce_rules"
        ),
        "hlofront.transforms.extension": (
            "abstract_eval_fun close_jaxpr convert_constvars_jaxpr move_binders_to_back "
            "partial_eval_jaxpr_nounits prune_closed_jaxpr_outputs"
        ),
        "hlofront.transforms.partial_values": (
            "JaxprTracer PartialVal custom_partial_eval_rules dce_jaxpr dce_jaxpr_call_rule "
            "dce_jaxpr_call_rule=dce_jaxpr_closed_call_rule lower_jaxpr lower_jaxpr2 "
            "new_eqn_recipe trace_to_jaxpr_dynamic trace_to_jaxpr_nounits"
        ),
        "hlofront.transforms.simplify": "dce_jaxpr_consts forwarded=forwarded_inputs inline_jaxpr",
        "hlofront.transforms.stage": "JitTracer=DynamicJaxprTracer",
    },
)
