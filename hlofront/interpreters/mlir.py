"""Lowering: how a primitive becomes StableHLO, and what lowering rules call."""

from hlofront.bridge.mlir import Value as Token
from hlofront.bridge.mlir import Value as Value
from hlofront.bridge.mlir import ir as ir
from hlofront.lowering.callbacks import emit_python_callback as emit_python_callback
from hlofront.lowering.extension import IrTypes as IrTypes
from hlofront.lowering.extension import IrValues as IrValues
from hlofront.lowering.extension import LoweringRule as LoweringRule
from hlofront.lowering.extension import LoweringRuleContext as LoweringRuleContext
from hlofront.lowering.extension import ModuleContext as ModuleContext
from hlofront.lowering.extension import TokenSet as TokenSet
from hlofront.lowering.extension import aval_to_ir_type as aval_to_ir_type
from hlofront.lowering.extension import aval_to_ir_types as aval_to_ir_types
from hlofront.lowering.extension import core_call_lowering as core_call_lowering
from hlofront.lowering.extension import dense_int_array as dense_int_array
from hlofront.lowering.extension import dense_int_elements as dense_int_elements
from hlofront.lowering.extension import dtype_to_ir_type as dtype_to_ir_type
from hlofront.lowering.extension import flatten_ir_types as flatten_ir_types
from hlofront.lowering.extension import flatten_ir_values as flatten_ir_values
from hlofront.lowering.extension import i32_attr as i32_attr
from hlofront.lowering.extension import i64_attr as i64_attr
from hlofront.lowering.extension import ir_attribute as ir_attribute
from hlofront.lowering.extension import ir_constant as ir_constant
from hlofront.lowering.extension import ir_constants as ir_constants
from hlofront.lowering.extension import jaxpr_subcomp as jaxpr_subcomp
from hlofront.lowering.extension import lower_fun as lower_fun
from hlofront.lowering.extension import make_ir_context as make_ir_context
from hlofront.lowering.extension import module_to_bytecode as module_to_bytecode
from hlofront.lowering.extension import module_to_string as module_to_string
from hlofront.lowering.extension import register_lowering as register_lowering
from hlofront.lowering.extension import shape_tensor as shape_tensor
from hlofront.lowering.extension import token_type as token_type
from hlofront.lowering.extension import (
    unflatten_ir_values_like_types as unflatten_ir_values_like_types,
)

__all__ = [
    "IrTypes",
    "IrValues",
    "LoweringRule",
    "LoweringRuleContext",
    "ModuleContext",
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
    "jaxpr_subcomp",
    "lower_fun",
    "make_ir_context",
    "module_to_bytecode",
    "module_to_string",
    "register_lowering",
    "shape_tensor",
    "token_type",
    "unflatten_ir_values_like_types",
]
