"""The private names of JAX that libraries use, and the names that jaxlib's C++ imports.

The list is closed: other names do not exist, as libraries expect of a version of JAX without them.
Each entry says which library needs it.
"""

# pyright: strict

_PARTS = "hlofront.jax_names.private_parts"
# Module -> its names -> the module of hlofront and the name there.
MODULES: dict[str, dict[str, tuple[str, str]]] = {
    "jax._src": {},
    # lineax
    "jax._src.ad_util": {"stop_gradient_p": ("hlofront.primitives.converting", "stop_gradient_p")},
    # e3nn-jax
    "jax._src.api_util": {"infer_argnums_and_argnames": (_PARTS, "infer_argnums_and_argnames")},
    # pickles of arrays that JAX has written
    "jax._src.array": {"_reconstruct_array": (_PARTS, "reconstruct_array")},
    # flax.nnx
    "jax._src.checkify": {
        "Error": ("hlofront.higher_order.checking", "Error"),
        "JaxException": ("hlofront.higher_order.checkify_errors", "JaxException"),
        "Out": (_PARTS, "Out"),
        "checkify": ("hlofront.higher_order.checkify", "checkify"),
        "user_checks": ("hlofront.higher_order.checkify_errors", "user_checks"),
    },
    # chex, which replaces it to refuse compilation
    "jax._src.compiler": {
        "backend_compile_and_load": ("hlofront.bridge.client", "compile_and_load")
    },
    # dynamiqs, flax.linen, jax-md, numpyro; quax, which interprets operations with its own trace
    "jax._src.core": {
        "AbstractValue": ("hlofront.core.aval", "AbstractValue"),
        "Primitive": ("hlofront.core.primitive", "Primitive"),
        "ShapedArray": ("hlofront.core.aval", "ShapedArray"),
        "Trace": ("hlofront.core.trace", "Trace"),
        "TraceTag": ("hlofront.transforms.trace_state", "TraceTag"),
        "Tracer": ("hlofront.core.trace", "Tracer"),
        "concrete_or_error": ("hlofront.core.programs", "concrete_or_error"),
        "full_lower": (_PARTS, "full_lower"),
        "jaxpr_as_fun": ("hlofront.core.curried", "jaxpr_as_fun"),
        "set_current_trace": ("hlofront.transforms.trace_state", "set_current_trace"),
        "take_current_trace": ("hlofront.transforms.trace_state", "take_current_trace"),
        "trace_ctx": (_PARTS, "trace_context"),
        "trace_state_clean": (_PARTS, "trace_state_clean"),
    },
    # equinox
    "jax._src.dispatch": {
        "wait_for_tokens": ("hlofront.runtime.dispatch.host_calls", "effects_barrier")
    },
    # orbax
    "jax._src.distributed": {"global_state": (_PARTS, "global_state")},
    # equinox, flax.linen, tinygp
    "jax._src.dtypes": {
        "DType": ("hlofront.base.typing", "DType"),
        "ExtendedDType": ("hlofront.base.elements", "ExtendedDType"),
        "TypePromotionError": ("hlofront.base.errors", "TypePromotionError"),
        "extended": ("hlofront.base.elements", "extended"),
        "finfo": ("hlofront.base.dtypes", "finfo"),
        "supports_inf": (_PARTS, "supports_inf"),
        "to_complex_dtype": ("hlofront.base.dtypes", "to_complex_dtype"),
    },
    # flax.linen
    "jax._src.earray": {"EArray": ("hlofront.runtime.array.extended_array", "EArray")},
    # blackjax
    "jax._src.flatten_util": {"ravel_pytree": ("hlofront.flatten_util", "ravel_pytree")},
    "jax._src.interpreters": {},
    # jaxoplanet
    "jax._src.interpreters.batching": {
        "is_vmappable": ("hlofront.transforms.vmappable", "is_vmappable")
    },
    "jax._src.lib": {},
    # dynamiqs
    "jax._src.lib.xla_client": {"XlaRuntimeError": ("hlofront.errors", "JaxRuntimeError")},
    # jaxlib from 0.11 on, equinox; quax
    "jax._src.literals": {
        "TypedComplex": ("hlofront.core.typed_scalars", "TypedComplex"),
        "TypedFloat": ("hlofront.core.typed_scalars", "TypedFloat"),
        "TypedInt": ("hlofront.core.typed_scalars", "TypedInt"),
        "TypedNdArray": ("hlofront.bridge.jax_shims", "NoTypedArray"),
    },
    # jaxlib
    "jax._src.named_sharding": {"check_pspec": ("hlofront.pjrt.named_shardings", "check_spec")},
    # quax
    "jax._src.pjit": {"jit_p": ("hlofront.higher_order.jit_call", "jit_p")},
    # tests of tinygp
    "jax._src.public_test_util": {"check_close": (_PARTS, "check_close")},
    "jax._src.random": {},
    # quax
    "jax._src.random.threefry2x32": {
        "threefry_random_bits": ("hlofront.random.threefry", "random_bits"),
        "threefry_seed": ("hlofront.random.threefry", "seed"),
        "threefry_split": ("hlofront.random.threefry", "split"),
    },
    # jaxlib
    "jax._src.sharding_impls": {
        "make_single_device_sharding": ("hlofront.pjrt.shardings", "on_device")
    },
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
    # chex
    "jax._src.xla_bridge": {"_backends": (_PARTS, "clients_made")},
}


def is_package(name: str) -> bool:
    """Return whether a private module, such as "jax._src", has submodules."""
    return any(module.startswith(f"{name}.") for module in MODULES)
