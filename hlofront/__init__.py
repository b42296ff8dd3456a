"""NumPy-like Python, traced to jaxprs, lowered to StableHLO, compiled and run by XLA.

    import hlofront as jax
    import hlofront.numpy as jnp

    slope = jax.jit(jax.grad(lambda w, x: jnp.tanh(x @ w).sum()))

The functions are those of JAX, which it does not need. For programs that `import jax`, libraries
among them, `import hlofront.as_jax` comes first, or `python -m hlofront as-jax PROGRAM` runs them.
`python -m hlofront` lists what the command line shows of programs; from Python it is in
`hlofront.inspect`. Read next: help(hlofront.jit), help(hlofront.inspect), README.md.
"""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    submodules=(
        "ad ad_checkpoint api_util bundle core custom_batching custom_derivatives debug "
        "distributed dlpack dtypes errors experimental export extend ffi flatten_util image "
        "inspect interpreters lax memory monitoring nn numpy ops profiler random ref scipy "
        "sharding stages test_util tree tree_util typing"
    ),
    now={
        "hlofront.base.caches": "clear_caches",
        "hlofront.base.config": (
            "allow_f16_reductions array_garbage_collection_guard auto_pcast check_tracer_leaks "
            "checking_leaks config debug_infs debug_key_reuse debug_nans default_device "
            "default_matmul_precision default_prng_impl disable_jit enable_checks "
            "enable_custom_prng enable_x64 explain_cache_misses jax2tf_associative_scan_reductions "
            "legacy_prng_key log_compiles no_execution no_tracing numpy_dtype_promotion "
            "numpy_rank_promotion remove_size_one_mesh_axis_from_type softmax_custom_jvp "
            "thread_guard threefry_partitionable transfer_guard_device_to_device "
            "transfer_guard_device_to_host transfer_guard_host_to_device"
        ),
        "hlofront.base.elements": "float0",
        "hlofront.base.guards": "transfer_guard",
        "hlofront.base.version": "__version__",
        "hlofront.bridge.client": "Device",
        "hlofront.bridge.fast_parts": "Array",
        "hlofront.core.aval": "typeof",
        "hlofront.core.compile_time": "ensure_compile_time_eval",
        "hlofront.core.names": "named_call named_scope",
        "hlofront.core.sizes.computed_slices": "ds",
        "hlofront.higher_order.control_flow.cond_rules": "",
        "hlofront.higher_order.control_flow.scan_rules": "",
        "hlofront.higher_order.shard_map.shard_map_rules": "",
        "hlofront.higher_order.control_flow.while_rules": "",
        "hlofront.higher_order.checkpoint.checkpoint": "checkpoint checkpoint=remat",
        "hlofront.higher_order.checkpoint.checkpoint_policies": "checkpoint_policies",
        "hlofront.higher_order.custom_rules.custom_jvp": "custom_jvp",
        "hlofront.higher_order.custom_rules.custom_vjp": "custom_vjp",
        "hlofront.higher_order.calls.jit_call": "Inline",
        "hlofront.higher_order.shard_map.shard_map": "shard_map",
        "hlofront.pjrt.compile": "CompilerEffortLevel",
        "hlofront.pjrt.devices": (
            "default_backend device_count devices host_count host_id host_ids local_device_count "
            "local_devices process_count process_index process_indices"
        ),
        "hlofront.primitives.arrays.dynamic_slicing_rules": "",
        "hlofront.primitives.arrays.scattering_rules": "",
        "hlofront.primitives.arrays.slicing_rules": "",
        "hlofront.primitives.collectives.batching": "",
        "hlofront.primitives.elementwise.special_rules": "",
        "hlofront.primitives.references.references": "empty_ref free_ref freeze new_ref",
        "hlofront.primitives.sharding.products": "",
        "hlofront.primitives.sharding.shapes": "",
        "hlofront.runtime.array.array": "",
        "hlofront.runtime.array.reference": "Ref",
        "hlofront.runtime.array.shards": "Shard",
        "hlofront.runtime.array.transfer": (
            "block_until_ready copy_to_host_async device_get device_put live_arrays"
        ),
        "hlofront.runtime.compilation.recompilation": "max_compiles no_recompile",
        "hlofront.runtime.dispatch.eager_rules": "",
        "hlofront.runtime.dispatch.engine": "",
        "hlofront.runtime.dispatch.iteration": "",
        "hlofront.runtime.dispatch.eval_shape": "eval_shape",
        "hlofront.runtime.dispatch.jit_function": "jit",
        "hlofront.transforms.flatten": "ShapeDtypeStruct",
        "hlofront.transforms.grad": "grad jvp linearize value_and_grad vjp",
        "hlofront.transforms.jacobian": "hessian jacfwd jacrev=jacobian jacrev",
        "hlofront.transforms.make_jaxpr": "closure_convert make_jaxpr",
        "hlofront.transforms.vmap": "vmap",
    },
    later={
        "hlofront.base.user_context": "make_user_context",
        "hlofront.core.sharding.mesh_context": (
            "get_abstract_mesh get_mesh set_mesh use_abstract_mesh"
        ),
        "hlofront.core.sharding.partition": "P",
        "hlofront.higher_order.custom_rules.custom_gradient": "custom_gradient",
        "hlofront.higher_order.shard_map.smap": "smap",
        "hlofront.inspect.memory_fit": "fits",
        "hlofront.pjrt.device_mesh": "make_mesh",
        "hlofront.pjrt.named_shardings": "NamedSharding",
        "hlofront.pjrt.targets": "target targets",
        "hlofront.primitives.sharding.resharding": "reshard",
        "hlofront.runtime.array.assembling": (
            "make_array_from_callback make_array_from_process_local_data "
            "make_array_from_single_device_arrays"
        ),
        "hlofront.runtime.debugging.environment": "print_environment_info",
        "hlofront.runtime.dispatch.callbacks": "pure_callback",
        "hlofront.runtime.dispatch.forward_backward": "fwd_and_bwd",
        "hlofront.runtime.dispatch.pmap": "pmap",
        "hlofront.runtime.dispatch.tokens": "effects_barrier",
        "hlofront.transforms.linear_transpose": "linear_transpose",
    },
)
