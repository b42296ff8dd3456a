"""The private names of JAX that libraries use, and the names that jaxlib's C++ imports.

The list is closed: other names do not exist, as libraries expect of a version of JAX without them.
Each entry says which library needs it.
"""

# pyright: strict

from hlofront.jax_names.deprecated import at
from hlofront.jax_names.private_config import OPTIONS

_CONFIG = "hlofront.jax_names.private_config"
_PARTS = "hlofront.jax_names.jax_src_shims"
# Module -> its names -> the module of hlofront and the name there.
MODULES: dict[str, dict[str, tuple[str, str]]] = {
    "jax._src": {},
    # lineax
    "jax._src.ad_util": {
        "stop_gradient_p": ("hlofront.primitives.elementwise.converting", "stop_gradient_p")
    },
    # pennylane
    "jax._src.api": {"_dtype": (_PARTS, "dtype_of")},
    # e3nn-jax; brainstate
    "jax._src.api_util": {
        "flatten_axes": ("hlofront.api_util", "flatten_axes"),
        "infer_argnums_and_argnames": (_PARTS, "infer_argnums_and_argnames"),
    },
    # pickles of arrays that JAX has written; many, for isinstance
    "jax._src.array": {
        "ArrayImpl": ("hlofront.bridge.client", "ArrayImpl"),
        "_reconstruct_array": (_PARTS, "reconstruct_array"),
    },
    # flax.nnx
    "jax._src.checkify": {
        "Error": ("hlofront.higher_order.checkify.checking", "Error"),
        "JaxException": ("hlofront.higher_order.checkify.checkify_errors", "JaxException"),
        "Out": (_PARTS, "Out"),
        "checkify": ("hlofront.higher_order.checkify.checkify", "checkify"),
        "user_checks": ("hlofront.higher_order.checkify.checkify_errors", "user_checks"),
    },
    # chex, which replaces it to refuse compilation
    "jax._src.compiler": {
        "backend_compile_and_load": ("hlofront.bridge.client", "compile_and_load")
    },
    # quaxed, which reads `config.numpy_rank_promotion.value`; many, for `config`
    "jax._src.config": {
        **at(_CONFIG, " ".join(OPTIONS)),
        "config": ("hlofront", "config"),
    },
    # dynamiqs, flax.linen, jax-md, numpyro; quax, which interprets operations with its own trace;
    # brainstate, brainevent, saiunit, qwix, which intercepts `Primitive.bind`
    "jax._src.core": {
        **at("hlofront.extend.core", "ClosedJaxpr Jaxpr JaxprEqn Literal Var"),
        "JaxprEqnContext": ("hlofront.core.jaxpr", "EquationContext"),
        "closed_call_p": ("hlofront.higher_order.calls.jit_call", "closed_call_p"),
        "is_constant_dim": ("hlofront.jax_names.deprecated_parts", "is_constant_dim"),
        "AbstractValue": ("hlofront.core.aval", "AbstractValue"),
        "Primitive": ("hlofront.core.primitive", "Primitive"),
        "ShapedArray": ("hlofront.core.aval", "ShapedArray"),
        "Trace": ("hlofront.core.trace", "Trace"),
        "TraceTag": ("hlofront.transforms.trace_state", "TraceTag"),
        "Tracer": ("hlofront.core.trace", "Tracer"),
        "concrete_or_error": ("hlofront.core.programs.extension", "concrete_or_error"),
        "full_lower": (_PARTS, "full_lower"),
        "jaxpr_as_fun": ("hlofront.core.programs.as_function", "jaxpr_as_fun"),
        "set_current_trace": ("hlofront.transforms.trace_state", "set_current_trace"),
        "take_current_trace": ("hlofront.transforms.trace_state", "take_current_trace"),
        "trace_ctx": (_PARTS, "trace_context"),
        "trace_state_clean": (_PARTS, "trace_state_clean"),
    },
    # equinox; brainevent
    "jax._src.dispatch": {
        "apply_primitive": ("hlofront.runtime.dispatch.engine", "apply_primitive"),
        "wait_for_tokens": ("hlofront.runtime.dispatch.tokens", "effects_barrier"),
    },
    # orbax
    "jax._src.distributed": {"global_state": (_PARTS, "global_state")},
    # equinox, flax.linen, tinygp; ragged paged attention of JAX 0.12
    "jax._src.dtypes": {
        "DType": ("hlofront.base.typing", "DType"),
        "ExtendedDType": ("hlofront.base.elements", "ExtendedDType"),
        "TypePromotionError": ("hlofront.base.errors", "TypePromotionError"),
        "extended": ("hlofront.base.elements", "extended"),
        "finfo": ("hlofront.base.dtypes", "finfo"),
        "itemsize_bits": ("hlofront.base.dtypes", "bit_width"),
        "supports_inf": (_PARTS, "supports_inf"),
        "to_complex_dtype": ("hlofront.base.dtypes", "to_complex_dtype"),
    },
    # flax.linen
    "jax._src.earray": {"EArray": ("hlofront.runtime.array.extended_array", "EArray")},
    # blackjax
    "jax._src.flatten_util": {"ravel_pytree": ("hlofront.flatten_util", "ravel_pytree")},
    "jax._src.interpreters": {},
    # jaxoplanet; brainstate
    "jax._src.interpreters.batching": {
        **at("hlofront.transforms.batch", "BatchTrace BatchTracer"),
        "is_vmappable": ("hlofront.transforms.vmappable", "is_vmappable"),
        "make_iota": (_PARTS, "iota_of_axis"),
        "to_elt": (_PARTS, "to_element"),
    },
    "jax._src.lax": {},
    # pytensor, pymc
    "jax._src.lax.control_flow": at(
        "hlofront.lax", "associative_scan cond fori_loop map scan switch while_loop"
    ),
    "jax._src.lib": {},
    # qwix
    "jax._src.lib._jax": at("hlofront.bridge.fast_parts", "PjitFunction"),
    # dynamiqs
    "jax._src.lib.xla_client": {"XlaRuntimeError": ("hlofront.errors", "JaxRuntimeError")},
    # many: annotations, and functions for `jax.interpreters.partial_eval`
    "jax._src.linear_util": at(
        "hlofront.extend.linear_util",
        """
        StoreException WrappedFun cache merge_linear_aux transformation transformation2
        transformation_with_aux transformation_with_aux2 wrap_init
        """,
    ),
    # jaxlib from 0.11 on, equinox; quax
    "jax._src.literals": {
        "TypedComplex": ("hlofront.core.typed_scalars", "TypedComplex"),
        "TypedFloat": ("hlofront.core.typed_scalars", "TypedFloat"),
        "TypedInt": ("hlofront.core.typed_scalars", "TypedInt"),
        "TypedNdArray": ("hlofront.bridge.jax_shims", "NoTypedArray"),
    },
    # many
    "jax._src.mesh": {
        **at("hlofront.sharding", "AbstractMesh AxisType Mesh get_abstract_mesh use_abstract_mesh"),
        "get_concrete_mesh": (_PARTS, "concrete_mesh"),
        "thread_resources": ("hlofront.jax_names.deprecated_parts", "thread_resources"),
    },
    # jaxlib
    "jax._src.named_sharding": {"check_pspec": ("hlofront.pjrt.named_shardings", "check_spec")},
    "jax._src.numpy": {},
    # unxt, whose quantities derive their `at` from it
    "jax._src.numpy.array_methods": {
        "_IndexUpdateHelper": ("hlofront.numpy.indexing.updating", "At"),
        "_IndexUpdateRef": ("hlofront.numpy.indexing.updating", "AtIndex"),
    },
    # quaxed, unxt
    "jax._src.numpy.index_tricks": at("hlofront.numpy.indexing.tricks", "CClass RClass"),
    # quaxed
    "jax._src.numpy.vectorize": {
        f"_{name}": ("hlofront.jax_names.private_vectorize", name)
        for name in (
            "apply_excluded",
            "check_output_dims",
            "parse_gufunc_signature",
            "parse_input_dimensions",
        )
    },
    # many
    "jax._src.partition_spec": at("hlofront.sharding", "PartitionSpec"),
    # quax, pennylane; tests of jax's own programs
    "jax._src.pjit": {
        **at("hlofront.higher_order.shard_map.axis_types", "auto_axes explicit_axes"),
        "jit_p": ("hlofront.higher_order.calls.jit_call", "jit_p"),
    },
    # tests of tinygp
    "jax._src.public_test_util": {"check_close": (_PARTS, "check_close")},
    "jax._src.random": {},
    # JAX's own kernels of random bits for TPUs
    "jax._src.random.prng": {
        "PRNGImpl": ("hlofront.primitives.random.keys", "Generator"),
        "register_prng": ("hlofront.primitives.random.keys", "register"),
    },
    # quax; JAX's own kernels of random bits for TPUs
    "jax._src.random.threefry2x32": {
        "threefry2x32_p": ("hlofront.primitives.random.bits", "threefry2x32_p"),
        "threefry_fold_in": ("hlofront.random.threefry", "fold_in"),
        "threefry_random_bits": ("hlofront.random.threefry", "random_bits"),
        "threefry_seed": ("hlofront.random.threefry", "seed"),
        "threefry_split": ("hlofront.random.threefry", "split"),
    },
    # jaxlib; brainstate, quaxed
    "jax._src.sharding_impls": {
        **at("hlofront.sharding", "NamedSharding PartitionSpec SingleDeviceSharding"),
        "UNSPECIFIED": ("hlofront.runtime.dispatch.jit_layouts", "UNSPECIFIED"),
        "canonicalize_sharding": (_PARTS, "canonicalize_sharding"),
        "make_single_device_sharding": ("hlofront.pjrt.shardings", "on_device"),
    },
    # JAX's own kernel that gathers shards of TPUs
    "jax._src.shard_map": at("hlofront", "shard_map"),
    # brainstate
    "jax._src.source_info_util": at(
        "hlofront.extend.source_info_util",
        """
        NameStack SourceInfo current current_name_stack extend_name_stack new_name_stack
        new_source_info register_exclusion reset_name_stack set_name_stack summarize
        transform_name_stack user_context
        """,
    ),
    "jax._src.state": {},
    # flax.nnx
    "jax._src.state.types": {"AbstractRef": ("hlofront.core.references", "AbstractRef")},
    # equinox, flax and its tests, jaxtyping
    "jax._src.traceback_util": {
        "UnfilteredStackTrace": ("hlofront.base.boundary", "UnfilteredTraceback"),
        "_exclude_paths": (_PARTS, "excluded_paths"),
        "api_boundary": ("hlofront.base.boundary", "boundary"),
        "include_frame": (_PARTS, "include_frame"),
        "register_exclusion": ("hlofront.base.source", "register_exclusion"),
    },
    # flax.nnx and its tests, orbax; pickles of tree definitions that JAX has written
    "jax._src.tree_util": {
        "_registry": (_PARTS, "tree_nodes"),
        "default_registry": ("hlofront.base.tree_nodes", "default_registry"),
        "flatten_one_level": ("hlofront.base.tree_nodes", "flatten_one_level"),
        "prefix_errors": (_PARTS, "prefix_errors"),
    },
    # many, for annotations
    "jax._src.typing": {
        **at("hlofront.base.typing", "Array ArrayLike DType DTypeLike Shape SupportsDType"),
    },
    # many
    "jax._src.util": at(
        "hlofront.jax_names.private_util",
        """
        HashableFunction HashablePartial as_hashable_function canonicalize_axis ceil_of_ratio
        concatenate curry foreach fun_name merge_lists partition_list safe_map safe_zip set_module
        split_list subvals tuple_delete tuple_insert tuple_update unzip2 unzip3 wraps
        """,
    ),
    # chex; many
    "jax._src.xla_bridge": {
        **at(
            "hlofront",
            """
            default_backend device_count devices local_device_count local_devices process_count
            process_index
            """,
        ),
        **at("hlofront.extend.backend", "backends get_backend"),
        "_backends": (_PARTS, "clients_made"),
    },
    # JAX still has this module, but no names in it.
    "jax.lib": {},
}


def is_package(name: str) -> bool:
    """Return whether a private module, such as "jax._src", has submodules."""
    return any(module.startswith(f"{name}.") for module in MODULES)
