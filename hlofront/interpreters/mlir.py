"""Lowering: how a primitive becomes StableHLO, and what lowering rules call."""

from hlofront.bridge.mlir import Value as Token
from hlofront.bridge.mlir import Value as Value
from hlofront.bridge.mlir import ir as ir
from hlofront.core.effects import lowerable_effects as lowerable_effects
from hlofront.core.sharding.mesh import Mesh as Mesh
from hlofront.lowering.core.types import type_handlers as ir_type_handlers
from hlofront.lowering.extension.modules import DEVICE_TO_DEVICE_TYPE as DEVICE_TO_DEVICE_TYPE
from hlofront.lowering.extension.modules import RECV_FROM_HOST_TYPE as RECV_FROM_HOST_TYPE
from hlofront.lowering.extension.modules import SEND_TO_HOST_TYPE as SEND_TO_HOST_TYPE
from hlofront.lowering.extension.modules import AxisContext as AxisContext
from hlofront.lowering.extension.modules import LoweringParameters as LoweringParameters
from hlofront.lowering.extension.modules import LoweringResult as LoweringResult
from hlofront.lowering.extension.modules import MeshAxisName as MeshAxisName
from hlofront.lowering.extension.modules import ShapePolyLoweringState as ShapePolyLoweringState
from hlofront.lowering.extension.modules import ShardingContext as ShardingContext
from hlofront.lowering.extension.modules import SPMDAxisContext as SPMDAxisContext
from hlofront.lowering.extension.modules import lower_jaxpr_to_fun as lower_jaxpr_to_fun
from hlofront.lowering.extension.modules import lower_jaxpr_to_module as lower_jaxpr_to_module
from hlofront.lowering.extension.modules import merge_mlir_modules as merge_mlir_modules
from hlofront.lowering.extension.rules import LoweringRule as LoweringRule
from hlofront.lowering.extension.rules import LoweringRuleContext as LoweringRuleContext
from hlofront.lowering.extension.rules import ModuleContext as ModuleContext
from hlofront.lowering.extension.rules import TokenSet as TokenSet
from hlofront.lowering.extension.rules import core_call_lowering as core_call_lowering
from hlofront.lowering.extension.rules import jaxpr_subcomp as jaxpr_subcomp
from hlofront.lowering.extension.rules import lower_fun as lower_fun
from hlofront.lowering.extension.rules import make_ir_context as make_ir_context
from hlofront.lowering.extension.rules import module_to_bytecode as module_to_bytecode
from hlofront.lowering.extension.rules import module_to_string as module_to_string
from hlofront.lowering.extension.rules import register_lowering as register_lowering
from hlofront.lowering.extension.values import ConstantHandler as ConstantHandler
from hlofront.lowering.extension.values import IrTypes as IrTypes
from hlofront.lowering.extension.values import IrValues as IrValues
from hlofront.lowering.extension.values import aval_to_ir_type as aval_to_ir_type
from hlofront.lowering.extension.values import aval_to_ir_types as aval_to_ir_types
from hlofront.lowering.extension.values import dense_int_array as dense_int_array
from hlofront.lowering.extension.values import dense_int_elements as dense_int_elements
from hlofront.lowering.extension.values import dtype_to_ir_type as dtype_to_ir_type
from hlofront.lowering.extension.values import flatten_ir_types as flatten_ir_types
from hlofront.lowering.extension.values import flatten_ir_values as flatten_ir_values
from hlofront.lowering.extension.values import i32_attr as i32_attr
from hlofront.lowering.extension.values import i64_attr as i64_attr
from hlofront.lowering.extension.values import ir_attribute as ir_attribute
from hlofront.lowering.extension.values import ir_constant as ir_constant
from hlofront.lowering.extension.values import ir_constants as ir_constants
from hlofront.lowering.extension.values import ir_tree_registry as ir_tree_registry
from hlofront.lowering.extension.values import (
    register_constant_handler as register_constant_handler,
)
from hlofront.lowering.extension.values import shape_tensor as shape_tensor
from hlofront.lowering.extension.values import token_type as token_type
from hlofront.lowering.extension.values import (
    unflatten_ir_values_like_types as unflatten_ir_values_like_types,
)
from hlofront.lowering.ops.callbacks import emit_python_callback as emit_python_callback

__all__ = [
    "AxisContext",
    "ConstantHandler",
    "DEVICE_TO_DEVICE_TYPE",
    "IrTypes",
    "IrValues",
    "LoweringParameters",
    "LoweringResult",
    "LoweringRule",
    "LoweringRuleContext",
    "Mesh",
    "MeshAxisName",
    "ModuleContext",
    "RECV_FROM_HOST_TYPE",
    "SEND_TO_HOST_TYPE",
    "SPMDAxisContext",
    "ShapePolyLoweringState",
    "ShardingContext",
    "Token",
    "TokenSet",
    "Value",
    "aval_to_ir_type",
    "aval_to_ir_types",
    "core_call_lowering",
    "dense_int_array",
    "dense_int_elements",
    "dtype_to_ir_type",
    "emit_python_callback",
    "flatten_ir_types",
    "flatten_ir_values",
    "i32_attr",
    "i64_attr",
    "ir",
    "ir_attribute",
    "ir_constant",
    "ir_constants",
    "ir_tree_registry",
    "ir_type_handlers",
    "jaxpr_subcomp",
    "lower_fun",
    "lower_jaxpr_to_fun",
    "lower_jaxpr_to_module",
    "lowerable_effects",
    "make_ir_context",
    "merge_mlir_modules",
    "module_to_bytecode",
    "module_to_string",
    "register_constant_handler",
    "register_lowering",
    "shape_tensor",
    "token_type",
    "unflatten_ir_values_like_types",
]
