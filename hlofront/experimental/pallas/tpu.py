"""jax.experimental.pallas.tpu: what kernels for TPUs use of their memories, copies and options."""

from hlofront.pallas.barrier import get_barrier_semaphore as get_barrier_semaphore
from hlofront.pallas.buffered_refs import BufferedRef as BufferedRef
from hlofront.pallas.buffered_refs import BufferType as BufferType
from hlofront.pallas.compiler_params import ARBITRARY as ARBITRARY
from hlofront.pallas.compiler_params import CORE_PARALLEL as CORE_PARALLEL
from hlofront.pallas.compiler_params import PARALLEL as PARALLEL
from hlofront.pallas.compiler_params import SUBCORE_PARALLEL as SUBCORE_PARALLEL
from hlofront.pallas.compiler_params import CompilerParams as CompilerParams
from hlofront.pallas.compiler_params import GridDimensionSemantics as GridDimensionSemantics
from hlofront.pallas.compiler_params import LoweringException as LoweringException
from hlofront.pallas.compiler_params import SideEffectType as SideEffectType
from hlofront.pallas.copies import async_copy as async_copy
from hlofront.pallas.copies import async_remote_copy as async_remote_copy
from hlofront.pallas.copies import make_async_copy as make_async_copy
from hlofront.pallas.copies import make_async_remote_copy as make_async_remote_copy
from hlofront.pallas.copies import sync_copy as sync_copy
from hlofront.pallas.core_meshes import CoreType as CoreType
from hlofront.pallas.core_meshes import TensorCoreMesh as TensorCoreMesh
from hlofront.pallas.core_meshes import core_barrier as core_barrier
from hlofront.pallas.core_meshes import create_tensorcore_mesh as create_tensorcore_mesh
from hlofront.pallas.core_meshes import run_on_first_core as run_on_first_core
from hlofront.pallas.einshape import einshape as einshape
from hlofront.pallas.grid_specs import PrefetchScalarGridSpec as PrefetchScalarGridSpec
from hlofront.pallas.hints import touch as touch
from hlofront.pallas.hints import trace_value as trace_value
from hlofront.pallas.interpret_params import InterpretParams as InterpretParams
from hlofront.pallas.interpret_params import force_tpu_interpret_mode as force_tpu_interpret_mode
from hlofront.pallas.interpret_params import (
    reset_tpu_interpret_mode_state as reset_tpu_interpret_mode_state,
)
from hlofront.pallas.interpret_params import set_tpu_interpret_mode as set_tpu_interpret_mode
from hlofront.pallas.masked import load as load
from hlofront.pallas.masked import store as store
from hlofront.pallas.memory import CMEM as CMEM
from hlofront.pallas.memory import HBM as HBM
from hlofront.pallas.memory import SEMAPHORE as SEMAPHORE
from hlofront.pallas.memory import SMEM as SMEM
from hlofront.pallas.memory import VMEM as VMEM
from hlofront.pallas.memory import VMEM_SHARED as VMEM_SHARED
from hlofront.pallas.memory import SemaphoreType as SemaphoreType
from hlofront.pallas.memory import TpuMemorySpace as MemorySpace
from hlofront.pallas.memory import dma_semaphore as dma_semaphore
from hlofront.pallas.memory_hints import annotate as annotate
from hlofront.pallas.memory_hints import has_memory_space as has_memory_space
from hlofront.pallas.memory_hints import (
    with_memory_space_constraint as with_memory_space_constraint,
)
from hlofront.pallas.packing import join_bits as join_bits
from hlofront.pallas.packing import pack_elementwise as pack_elementwise
from hlofront.pallas.packing import pack_fp6 as pack_fp6
from hlofront.pallas.packing import split_bits as split_bits
from hlofront.pallas.packing import stochastic_round as stochastic_round
from hlofront.pallas.packing import unpack_elementwise as unpack_elementwise
from hlofront.pallas.packing import unpack_fp6 as unpack_fp6
from hlofront.pallas.pipeline import PipelineStep as PipelineStep
from hlofront.pallas.pipeline import emit_pipeline as emit_pipeline
from hlofront.pallas.pipeline import (
    emit_pipeline_with_allocations as emit_pipeline_with_allocations,
)
from hlofront.pallas.prng import prng_random_bits as prng_random_bits
from hlofront.pallas.prng import prng_seed as prng_seed
from hlofront.pallas.tpu_info import ChipVersion as ChipVersion
from hlofront.pallas.tpu_info import Tiling as Tiling
from hlofront.pallas.tpu_info import TpuInfo as TpuInfo
from hlofront.pallas.tpu_info import get_tpu_info as get_tpu_info
from hlofront.pallas.tpu_info import get_tpu_info_for_chip as get_tpu_info_for_chip
from hlofront.pallas.tpu_info import is_tpu_device as is_tpu_device
from hlofront.pallas.tpu_operations import bitcast as bitcast
from hlofront.pallas.tpu_operations import reciprocal as reciprocal
from hlofront.pallas.tpu_operations import roll as roll
from hlofront.random.kernels import sample_block as sample_block
from hlofront.random.kernels import stateful_bernoulli as stateful_bernoulli
from hlofront.random.kernels import stateful_bits as stateful_bits
from hlofront.random.kernels import stateful_normal as stateful_normal
from hlofront.random.kernels import stateful_uniform as stateful_uniform
from hlofront.random.kernels import to_pallas_key as to_pallas_key

__all__ = [
    "ARBITRARY",
    "CMEM",
    "CORE_PARALLEL",
    "HBM",
    "PARALLEL",
    "SEMAPHORE",
    "SMEM",
    "SUBCORE_PARALLEL",
    "VMEM",
    "VMEM_SHARED",
    "BufferType",
    "BufferedRef",
    "CompilerParams",
    "CoreType",
    "GridDimensionSemantics",
    "InterpretParams",
    "LoweringException",
    "MemorySpace",
    "PipelineStep",
    "PrefetchScalarGridSpec",
    "SemaphoreType",
    "SideEffectType",
    "TensorCoreMesh",
    "Tiling",
    "annotate",
    "async_copy",
    "async_remote_copy",
    "bitcast",
    "core_barrier",
    "dma_semaphore",
    "einshape",
    "emit_pipeline",
    "emit_pipeline_with_allocations",
    "force_tpu_interpret_mode",
    "get_barrier_semaphore",
    "has_memory_space",
    "is_tpu_device",
    "join_bits",
    "load",
    "make_async_copy",
    "make_async_remote_copy",
    "pack_elementwise",
    "pack_fp6",
    "prng_random_bits",
    "prng_seed",
    "reciprocal",
    "reset_tpu_interpret_mode_state",
    "roll",
    "run_on_first_core",
    "sample_block",
    "set_tpu_interpret_mode",
    "split_bits",
    "stateful_bernoulli",
    "stateful_bits",
    "stateful_normal",
    "stateful_uniform",
    "stochastic_round",
    "store",
    "sync_copy",
    "to_pallas_key",
    "touch",
    "trace_value",
    "unpack_elementwise",
    "unpack_fp6",
    "with_memory_space_constraint",
]
