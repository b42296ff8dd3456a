"""Names that JAX deprecates with a warning, and names that it has removed, by module."""

# pyright: strict

_PARTS = "hlofront.jax_names.deprecated_parts"
_AVAL = "hlofront.core.aval"


def at(home: str, names: str) -> dict[str, tuple[str, str]]:
    """Map each of these names to its home: the same name in this module of hlofront."""
    return {name: (home, name) for name in names.split()}


# Module -> its deprecated names -> the module of hlofront and the name there.
DEPRECATED: dict[str, dict[str, tuple[str, str]]] = {
    "jax.core": {
        **at(
            _PARTS,
            """
            JaxprPpContext JaxprPpSettings OutputType call concretization_function_error is_concrete
            is_constant_dim is_constant_shape no_axis_name
            """,
        ),
        "abstract_token": (_AVAL, "token_aval"),
        "aval_mapping_handlers": ("hlofront.core.axes", "aval_mapping_handlers"),
        "custom_typechecks": ("hlofront.core.programs.check", "custom_typechecks"),
        "literalable_types": ("hlofront.transforms.stage", "literalable_types"),
        "pytype_aval_mappings": (_AVAL, "pytype_aval_mappings"),
        "trace_ctx": ("hlofront.jax_names.jax_src_shims", "trace_context"),
    },
    "jax.interpreters.pxla": {
        **at(
            _PARTS,
            """
            ArrayMapping Index are_hlo_shardings_equal array_mapping_to_axis_resources
            global_aval_to_result_handler global_avals_to_results_handler global_result_handlers
            is_hlo_sharding_replicated op_sharding_to_indices thread_resources
            """,
        ),
        "MeshAxisName": ("hlofront.lowering.extension.modules", "MeshAxisName"),
        "MeshComputation": ("hlofront.runtime.dispatch.stages", "Lowered"),
        "MeshExecutable": ("hlofront.runtime.dispatch.executable", "Executable"),
        "_UNSPECIFIED": ("hlofront.runtime.dispatch.jit_layouts", "UNSPECIFIED"),
    },
    # Deprecated since jax 0.12.
    "jax.lax": at("hlofront.lax", "precv psend"),
    "jax.scipy.special": at("hlofront.scipy.special.legendre", "lpmn lpmn_values"),
}

_CORE = "was deprecated in JAX v0.8.2 and removed in JAX v0.10.0"
_IN_EXTEND = "AbstractToken TraceTag call_impl mapped_aval set_current_trace subjaxprs"
_DEVICE_PUT = "is deprecated and was removed; use jax.device_put instead."
_SHARD_MAP = "was removed in JAX v0.10.0. Please use `jax.shard_map` instead of `jax.pmap`."

# Module -> its removed names -> the part of their AttributeError's message after the name.
REMOVED: dict[str, dict[str, str]] = {
    "jax": dict.fromkeys(("device_put_replicated", "device_put_sharded"), _DEVICE_PUT),
    "jax.core": {
        "get_aval": f"{_CORE}; use jax.typeof instead.",
        "traverse_jaxpr_params": f"{_CORE}.",
        **{
            name: f"{_CORE}. Use jax.extend.core.{name}."
            for name in [*_IN_EXTEND.split(), "take_current_trace", "unmapped_aval"]
        },
    },
    "jax.interpreters.ad": {
        "reducing_transposes": "was deprecated in v0.9.0 and removed in v0.10.0."
    },
    "jax.interpreters.batching": {"NotMapped": "is deprecated."},
    "jax.interpreters.pxla": {
        **dict.fromkeys(
            ("MapTracer", "PmapExecutable", "parallel_callable", "shard_args"),
            "was removed in JAX v0.10.0.",
        ),
        **dict.fromkeys(
            (
                "Chunked",
                "NoSharding",
                "Replicated",
                "ShardedAxis",
                "ShardingSpec",
                "Unstacked",
                "spec_to_indices",
            ),
            _SHARD_MAP,
        ),
    },
    "jax.scipy.special": {
        "sph_harm": "was deprecated in v0.7.0 and removed in v0.10.0. Use "
        "jax.scipy.special.sph_harm_y instead."
    },
}
