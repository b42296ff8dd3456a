"""Lowering: how a primitive becomes StableHLO, and what lowering rules call."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    now={
        "hlofront.bridge.mlir": "Value=Token Value ir",
        "hlofront.core.effects": "lowerable_effects",
        "hlofront.core.sharding.mesh": "Mesh",
        "hlofront.lowering.core.types": "type_handlers=ir_type_handlers",
        "hlofront.lowering.extension.modules": (
            "DEVICE_TO_DEVICE_TYPE RECV_FROM_HOST_TYPE SEND_TO_HOST_TYPE AxisContext "
            "LoweringParameters LoweringResult MeshAxisName ShapePolyLoweringState ShardingContext "
            "SPMDAxisContext lower_jaxpr_to_fun lower_jaxpr_to_module merge_mlir_modules"
        ),
        "hlofront.lowering.extension.rules": (
            "LoweringRule LoweringRuleContext ModuleContext TokenSet core_call_lowering "
            "jaxpr_subcomp lower_fun make_ir_context module_to_bytecode module_to_string "
            "register_lowering"
        ),
        "hlofront.lowering.extension.values": (
            "ConstantHandler IrTypes IrValues aval_to_ir_type aval_to_ir_types dense_int_array "
            "dense_int_elements dtype_to_ir_type flatten_ir_types flatten_ir_values i32_attr "
            "i64_attr ir_attribute ir_constant ir_constants ir_tree_registry "
            "register_constant_handler shape_tensor token_type unflatten_ir_values_like_types"
        ),
        "hlofront.lowering.ops.callbacks": "emit_python_callback",
    },
)
