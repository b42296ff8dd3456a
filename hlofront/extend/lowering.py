"""jax.extend.lowering: the arguments of other packages' lowering rules."""

from hlofront.bridge.mlir import JaxIrContext as JaxIrContext
from hlofront.bridge.mlir import upstream_dialects as upstream_dialects
from hlofront.lowering.extension.rules import LoweringRuleContext as LoweringRuleContext
