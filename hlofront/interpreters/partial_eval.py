"""Programs made smaller, with the same results: dead code, inlined calls, forwarded inputs."""

from hlofront.core.rules import simplify as dce_rules
from hlofront.transforms.simplify import dce_jaxpr_consts as dce_jaxpr_consts
from hlofront.transforms.simplify import dead_code as dce_jaxpr
from hlofront.transforms.simplify import forwarded as forwarded_inputs
from hlofront.transforms.simplify import inline_jaxpr as inline_jaxpr

__all__ = ["dce_jaxpr", "dce_jaxpr_consts", "dce_rules", "forwarded_inputs", "inline_jaxpr"]
