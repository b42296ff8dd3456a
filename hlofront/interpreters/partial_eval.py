"""Partial evaluation and dead-code elimination of jaxprs, and tracing into jaxprs."""

from hlofront.core.jaxpr import Value as Val
from hlofront.core.rules import partial_eval_with_policy as partial_eval_jaxpr_custom_rules
from hlofront.core.rules import simplify as dce_rules
from hlofront.transforms.extension import abstract_eval_fun as abstract_eval_fun
from hlofront.transforms.extension import close_jaxpr as close_jaxpr
from hlofront.transforms.extension import convert_constvars_jaxpr as convert_constvars_jaxpr
from hlofront.transforms.extension import move_binders_to_back as move_binders_to_back
from hlofront.transforms.extension import partial_eval_jaxpr_nounits as partial_eval_jaxpr_nounits
from hlofront.transforms.extension import prune_closed_jaxpr_outputs as prune_closed_jaxpr_outputs
from hlofront.transforms.partial_tracers import JaxprTracer as JaxprTracer
from hlofront.transforms.partial_tracers import PartialVal as PartialVal
from hlofront.transforms.partial_tracers import (
    custom_partial_eval_rules as custom_partial_eval_rules,
)
from hlofront.transforms.partial_tracers import lower_jaxpr as lower_jaxpr
from hlofront.transforms.partial_tracers import lower_jaxpr2 as lower_jaxpr2
from hlofront.transforms.partial_tracers import new_eqn_recipe as new_eqn_recipe
from hlofront.transforms.partial_values import dce_jaxpr as dce_jaxpr
from hlofront.transforms.partial_values import dce_jaxpr_call_rule as dce_jaxpr_call_rule
from hlofront.transforms.partial_values import dce_jaxpr_call_rule as dce_jaxpr_closed_call_rule
from hlofront.transforms.partial_values import trace_to_jaxpr_dynamic as trace_to_jaxpr_dynamic
from hlofront.transforms.partial_values import trace_to_jaxpr_nounits as trace_to_jaxpr_nounits
from hlofront.transforms.simplify import dce_jaxpr_consts as dce_jaxpr_consts
from hlofront.transforms.simplify import forwarded as forwarded_inputs
from hlofront.transforms.simplify import inline_jaxpr as inline_jaxpr
from hlofront.transforms.stage import JitTracer as DynamicJaxprTracer

__all__ = [
    "DynamicJaxprTracer",
    "JaxprTracer",
    "PartialVal",
    "Val",
    "abstract_eval_fun",
    "close_jaxpr",
    "convert_constvars_jaxpr",
    "custom_partial_eval_rules",
    "dce_jaxpr",
    "dce_jaxpr_call_rule",
    "dce_jaxpr_closed_call_rule",
    "dce_jaxpr_consts",
    "dce_rules",
    "forwarded_inputs",
    "inline_jaxpr",
    "lower_jaxpr",
    "lower_jaxpr2",
    "move_binders_to_back",
    "new_eqn_recipe",
    "partial_eval_jaxpr_custom_rules",
    "partial_eval_jaxpr_nounits",
    "prune_closed_jaxpr_outputs",
    "trace_to_jaxpr_dynamic",
    "trace_to_jaxpr_nounits",
]
