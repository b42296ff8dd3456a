"""jax.experimental.pallas: kernels that are functions of references to blocks of arrays."""

from hlofront.core.sizes.computed_slices import Slice as Slice
from hlofront.core.sizes.computed_slices import ds as ds
from hlofront.core.sizes.computed_slices import ds as dslice
from hlofront.pallas.block_specs import BlockDim as BlockDim
from hlofront.pallas.block_specs import Blocked as Blocked
from hlofront.pallas.block_specs import BlockSpec as BlockSpec
from hlofront.pallas.block_specs import BoundedSlice as BoundedSlice
from hlofront.pallas.block_specs import Buffered as Buffered
from hlofront.pallas.block_specs import CostEstimate as CostEstimate
from hlofront.pallas.block_specs import Element as Element
from hlofront.pallas.block_specs import Indirect as Indirect
from hlofront.pallas.block_specs import RevisitMode as RevisitMode
from hlofront.pallas.block_specs import Squeezed as Squeezed
from hlofront.pallas.block_specs import no_block_spec as no_block_spec
from hlofront.pallas.block_specs import squeezed as squeezed
from hlofront.pallas.compiler_params import KernelCompilerParams as CompilerParams
from hlofront.pallas.control import align_to as align_to
from hlofront.pallas.control import cdiv as cdiv
from hlofront.pallas.control import loop as loop
from hlofront.pallas.control import multiple_of as multiple_of
from hlofront.pallas.control import next_power_of_2 as next_power_of_2
from hlofront.pallas.control import strides_from_shape as strides_from_shape
from hlofront.pallas.control import when as when
from hlofront.pallas.core_meshes import core_map as core_map
from hlofront.pallas.core_meshes import kernel as kernel
from hlofront.pallas.cost import estimate_cost as estimate_cost
from hlofront.pallas.debug_checks import debug_check as debug_check
from hlofront.pallas.debug_checks import enable_debug_checks as enable_debug_checks
from hlofront.pallas.debug_checks import enable_poison_buffers as enable_poison_buffers
from hlofront.pallas.grid_indices import num_programs as num_programs
from hlofront.pallas.grid_indices import program_id as program_id
from hlofront.pallas.grid_specs import GridSpec as GridSpec
from hlofront.pallas.hints import delay as delay
from hlofront.pallas.kernel_call import pallas_call_p as pallas_call_p
from hlofront.pallas.lower_as_mlir import lower_as_mlir as lower_as_mlir
from hlofront.pallas.memory import ANY as ANY
from hlofront.pallas.memory import HOST as HOST
from hlofront.pallas.memory import KernelMemorySpace as MemorySpace
from hlofront.pallas.memory import MemoryRef as MemoryRef
from hlofront.pallas.memory import empty_like as empty_like
from hlofront.pallas.memory import empty_ref_like as empty_ref_like
from hlofront.pallas.memory import run_state as run_state
from hlofront.pallas.memory import semaphore as semaphore
from hlofront.pallas.pallas_call import pallas_call as pallas_call
from hlofront.pallas.scoped import run_scoped as run_scoped
from hlofront.pallas.scoped import with_scoped as with_scoped
from hlofront.pallas.selected_refs import select_ref as select_ref
from hlofront.pallas.semaphores import DeviceIdType as DeviceIdType
from hlofront.pallas.semaphores import semaphore_read as semaphore_read
from hlofront.pallas.semaphores import semaphore_signal as semaphore_signal
from hlofront.pallas.semaphores import semaphore_wait as semaphore_wait
from hlofront.pallas.tpu_operations import reciprocal as reciprocal
from hlofront.primitives.arrays.creation import empty as empty
from hlofront.primitives.arrays.tiling import broadcast_to as broadcast_to
from hlofront.runtime.debugging.printing import debug_print as debug_print

__all__ = [
    "ANY",
    "HOST",
    "BlockDim",
    "BlockSpec",
    "Blocked",
    "BoundedSlice",
    "Buffered",
    "CompilerParams",
    "CostEstimate",
    "DeviceIdType",
    "Element",
    "GridSpec",
    "Indirect",
    "MemoryRef",
    "MemorySpace",
    "RevisitMode",
    "Slice",
    "Squeezed",
    "align_to",
    "broadcast_to",
    "cdiv",
    "debug_check",
    "debug_print",
    "delay",
    "ds",
    "dslice",
    "empty",
    "empty_like",
    "empty_ref_like",
    "enable_debug_checks",
    "enable_poison_buffers",
    "estimate_cost",
    "kernel",
    "loop",
    "lower_as_mlir",
    "multiple_of",
    "next_power_of_2",
    "no_block_spec",
    "num_programs",
    "pallas_call",
    "pallas_call_p",
    "program_id",
    "run_scoped",
    "run_state",
    "select_ref",
    "semaphore",
    "semaphore_read",
    "semaphore_signal",
    "semaphore_wait",
    "squeezed",
    "strides_from_shape",
    "when",
    "with_scoped",
]
