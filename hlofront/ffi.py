"""Re-exports: foreign functions under the names of `jax.ffi`."""

from hlofront.bridge.ffi import include_dir as include_dir
from hlofront.bridge.ffi import pycapsule as pycapsule
from hlofront.bridge.ffi import register_ffi_target as register_ffi_target
from hlofront.bridge.ffi import (
    register_ffi_target_as_batch_partitionable as register_ffi_target_as_batch_partitionable,
)
from hlofront.bridge.ffi import register_ffi_type as register_ffi_type
from hlofront.bridge.ffi import register_ffi_type_id as register_ffi_type_id
from hlofront.core.aval import token_aval as abstract_token
from hlofront.higher_order.calls import callback_batching as _callback_batching
from hlofront.lowering.ops.ffi import build_ffi_lowering_function as build_ffi_lowering_function
from hlofront.lowering.ops.ffi import ffi_lowering as ffi_lowering
from hlofront.primitives.calls.ffi import ffi_call as ffi_call

# Imported for its side effect: foreign calls get their batch rule.
del _callback_batching

__all__ = [
    "abstract_token",
    "build_ffi_lowering_function",
    "ffi_call",
    "ffi_lowering",
    "include_dir",
    "pycapsule",
    "register_ffi_target",
    "register_ffi_target_as_batch_partitionable",
    "register_ffi_type",
    "register_ffi_type_id",
]
