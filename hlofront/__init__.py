"""NumPy-like Python, traced to jaxprs, lowered to StableHLO, compiled and run by XLA.

    import hlofront as jax
    import hlofront.numpy as jnp

    slope = jax.jit(jax.grad(lambda w, x: jnp.tanh(x @ w).sum()))

The functions are those of JAX, which it does not need. For programs that `import jax`, libraries
among them, `import hlofront.as_jax` comes first, or `python -m hlofront as-jax PROGRAM` runs them.
`python -m hlofront` lists what the command line shows of programs; from Python it is in
`hlofront.inspect`. Read next: help(hlofront.jit), help(hlofront.inspect), README.md.
"""

from hlofront.base.garbage_collection import collection_paused as _collection_paused
from hlofront.base.lazy import lazy as _lazy

with _collection_paused():
    from hlofront.base.caches import clear_caches as clear_caches
    from hlofront.base.config import allow_f16_reductions as allow_f16_reductions
    from hlofront.base.config import (
        array_garbage_collection_guard as array_garbage_collection_guard,
    )
    from hlofront.base.config import auto_pcast as auto_pcast
    from hlofront.base.config import check_tracer_leaks as check_tracer_leaks
    from hlofront.base.config import checking_leaks as checking_leaks
    from hlofront.base.config import config as config
    from hlofront.base.config import debug_infs as debug_infs
    from hlofront.base.config import debug_key_reuse as debug_key_reuse
    from hlofront.base.config import debug_nans as debug_nans
    from hlofront.base.config import default_device as default_device
    from hlofront.base.config import default_matmul_precision as default_matmul_precision
    from hlofront.base.config import default_prng_impl as default_prng_impl
    from hlofront.base.config import disable_jit as disable_jit
    from hlofront.base.config import enable_checks as enable_checks
    from hlofront.base.config import enable_custom_prng as enable_custom_prng
    from hlofront.base.config import enable_x64 as enable_x64
    from hlofront.base.config import explain_cache_misses as explain_cache_misses
    from hlofront.base.config import (
        jax2tf_associative_scan_reductions as jax2tf_associative_scan_reductions,
    )
    from hlofront.base.config import legacy_prng_key as legacy_prng_key
    from hlofront.base.config import log_compiles as log_compiles
    from hlofront.base.config import no_execution as no_execution
    from hlofront.base.config import no_tracing as no_tracing
    from hlofront.base.config import numpy_dtype_promotion as numpy_dtype_promotion
    from hlofront.base.config import numpy_rank_promotion as numpy_rank_promotion
    from hlofront.base.config import (
        remove_size_one_mesh_axis_from_type as remove_size_one_mesh_axis_from_type,
    )
    from hlofront.base.config import softmax_custom_jvp as softmax_custom_jvp
    from hlofront.base.config import thread_guard as thread_guard
    from hlofront.base.config import threefry_partitionable as threefry_partitionable
    from hlofront.base.config import (
        transfer_guard_device_to_device as transfer_guard_device_to_device,
    )
    from hlofront.base.config import transfer_guard_device_to_host as transfer_guard_device_to_host
    from hlofront.base.config import transfer_guard_host_to_device as transfer_guard_host_to_device
    from hlofront.base.elements import float0 as float0
    from hlofront.base.guards import transfer_guard as transfer_guard
    from hlofront.base.version import __version__ as __version__
    from hlofront.bridge.client import Device as Device
    from hlofront.bridge.fast_parts import Array as Array
    from hlofront.core.aval import typeof as typeof
    from hlofront.core.compile_time import ensure_compile_time_eval as ensure_compile_time_eval
    from hlofront.core.names import named_call as named_call
    from hlofront.core.names import named_scope as named_scope
    from hlofront.core.sizes.computed_slices import ds as ds
    from hlofront.higher_order import cond_rules as _cond_rules
    from hlofront.higher_order import scan_rules as _scan_rules
    from hlofront.higher_order import shard_map_rules as _shard_map_rules
    from hlofront.higher_order import while_rules as _while_rules
    from hlofront.higher_order.checkpoint import checkpoint as checkpoint
    from hlofront.higher_order.checkpoint import checkpoint as remat
    from hlofront.higher_order.checkpoint_policies import checkpoint_policies as checkpoint_policies
    from hlofront.higher_order.custom_jvp import custom_jvp as custom_jvp
    from hlofront.higher_order.custom_vjp import custom_vjp as custom_vjp
    from hlofront.higher_order.jit_call import Inline as Inline
    from hlofront.higher_order.shard_map import shard_map as shard_map
    from hlofront.pjrt.compile import CompilerEffortLevel as CompilerEffortLevel
    from hlofront.pjrt.devices import default_backend as default_backend
    from hlofront.pjrt.devices import device_count as device_count
    from hlofront.pjrt.devices import devices as devices
    from hlofront.pjrt.devices import host_count as host_count
    from hlofront.pjrt.devices import host_id as host_id
    from hlofront.pjrt.devices import host_ids as host_ids
    from hlofront.pjrt.devices import local_device_count as local_device_count
    from hlofront.pjrt.devices import local_devices as local_devices
    from hlofront.pjrt.devices import process_count as process_count
    from hlofront.pjrt.devices import process_index as process_index
    from hlofront.pjrt.devices import process_indices as process_indices
    from hlofront.primitives.arrays import dynamic_slicing_rules as _dynamic_slicing_rules
    from hlofront.primitives.arrays import scattering_rules as _scattering_rules
    from hlofront.primitives.arrays import slicing_rules as _slicing_rules
    from hlofront.primitives.collectives import batching as _collective_batching
    from hlofront.primitives.elementwise import special_rules as _special_rules
    from hlofront.primitives.references.references import empty_ref as empty_ref
    from hlofront.primitives.references.references import free_ref as free_ref
    from hlofront.primitives.references.references import freeze as freeze
    from hlofront.primitives.references.references import new_ref as new_ref
    from hlofront.primitives.sharding import products as _sharding_products
    from hlofront.primitives.sharding import shapes as _sharding_rules
    from hlofront.runtime.array import array as _array
    from hlofront.runtime.array.reference import Ref as Ref
    from hlofront.runtime.array.shards import Shard as Shard
    from hlofront.runtime.array.transfer import block_until_ready as block_until_ready
    from hlofront.runtime.array.transfer import copy_to_host_async as copy_to_host_async
    from hlofront.runtime.array.transfer import device_get as device_get
    from hlofront.runtime.array.transfer import device_put as device_put
    from hlofront.runtime.array.transfer import live_arrays as live_arrays
    from hlofront.runtime.compilation.recompilation import max_compiles as max_compiles
    from hlofront.runtime.compilation.recompilation import no_recompile as no_recompile
    from hlofront.runtime.dispatch import eager_rules as _rules
    from hlofront.runtime.dispatch import engine as _engine
    from hlofront.runtime.dispatch import iteration as _iteration
    from hlofront.runtime.dispatch.eval_shape import eval_shape as eval_shape
    from hlofront.runtime.dispatch.jit import jit as jit
    from hlofront.transforms.flatten import ShapeDtypeStruct as ShapeDtypeStruct
    from hlofront.transforms.grad import grad as grad
    from hlofront.transforms.grad import jvp as jvp
    from hlofront.transforms.grad import linearize as linearize
    from hlofront.transforms.grad import value_and_grad as value_and_grad
    from hlofront.transforms.grad import vjp as vjp
    from hlofront.transforms.jacobian import hessian as hessian
    from hlofront.transforms.jacobian import jacfwd as jacfwd
    from hlofront.transforms.jacobian import jacrev as jacobian
    from hlofront.transforms.jacobian import jacrev as jacrev
    from hlofront.transforms.make_jaxpr import closure_convert as closure_convert
    from hlofront.transforms.make_jaxpr import make_jaxpr as make_jaxpr
    from hlofront.transforms.vmap import vmap as vmap

# Imported for their side effects: arrays get their methods; engine and operators are registered.
del (
    _array,
    _collective_batching,
    _dynamic_slicing_rules,
    _engine,
    _iteration,
    _rules,
    _scattering_rules,
    _sharding_products,
    _sharding_rules,
    _slicing_rules,
    _special_rules,
)

__getattr__, __dir__ = _lazy(
    __name__,
    (
        "ad",
        "ad_checkpoint",
        "api_util",
        "bundle",
        "core",
        "custom_batching",
        "custom_derivatives",
        "debug",
        "distributed",
        "dlpack",
        "dtypes",
        "errors",
        "experimental",
        "export",
        "extend",
        "ffi",
        "flatten_util",
        "interpreters",
        "lax",
        "image",
        "inspect",
        "memory",
        "monitoring",
        "nn",
        "numpy",
        "ops",
        "profiler",
        "ref",
        "random",
        "scipy",
        "sharding",
        "stages",
        "test_util",
        "tree",
        "tree_util",
        "typing",
    ),
    {
        "custom_gradient": "hlofront.higher_order.custom_gradient",
        "smap": "hlofront.higher_order.smap",
        "make_array_from_callback": "hlofront.runtime.array.assembling",
        "make_array_from_process_local_data": "hlofront.runtime.array.assembling",
        "make_array_from_single_device_arrays": "hlofront.runtime.array.assembling",
        "fwd_and_bwd": "hlofront.runtime.dispatch.forward_backward",
        "linear_transpose": "hlofront.transforms.linear_transpose",
        "NamedSharding": "hlofront.pjrt.named_shardings",
        "P": "hlofront.core.sharding.partition",
        "reshard": "hlofront.primitives.sharding.resharding",
        "make_mesh": "hlofront.pjrt.device_mesh",
        "get_abstract_mesh": "hlofront.core.sharding.mesh_context",
        "get_mesh": "hlofront.core.sharding.mesh_context",
        "set_mesh": "hlofront.core.sharding.mesh_context",
        "use_abstract_mesh": "hlofront.core.sharding.mesh_context",
        "pmap": "hlofront.runtime.dispatch.pmap",
        "effects_barrier": "hlofront.runtime.dispatch.tokens",
        "make_user_context": "hlofront.base.user_context",
        "print_environment_info": "hlofront.runtime.debugging.environment",
        "fits": "hlofront.inspect.memory_fit",
        "pure_callback": "hlofront.runtime.dispatch.callbacks",
        "target": "hlofront.pjrt.targets",
        "targets": "hlofront.pjrt.targets",
    },
)
