"""The public modules of JAX, and the modules of hlofront that they stand for."""

# pyright: strict

_MODULES_BY_PACKAGE = {
    "jax": """
        ad_checkpoint api_util core custom_batching custom_derivatives debug distributed dlpack
        dtypes errors example_libraries experimental export extend ffi flatten_util image
        interpreters lax memory monitoring nn numpy ops profiler random ref scipy sharding stages
        test_util tree tree_util typing version
        """,
    "jax.example_libraries": "optimizers stax",
    "jax.experimental": """
        array_serialization buffer_callback checkify colocated_python compilation_cache compute_on
        control_deps custom_partitioning fused hijax jet key_reuse layout mesh_utils
        multihost_utils ode overlap pallas pjit profiler random rnn roofline scheduling_groups
        serialize_executable shard_alike shard_map source_mapper sparse topologies transfer
        xla_metadata
        """,
    "jax.experimental.array_serialization": """
        pytree_serialization pytree_serialization_utils serialization tensorstore_impl
        """,
    "jax.experimental.colocated_python": "api func obj serialization",
    "jax.experimental.compilation_cache": "compilation_cache",
    "jax.experimental.pallas": "ops tpu triton",
    "jax.experimental.pallas.ops": "tpu",
    "jax.experimental.pallas.ops.tpu": "splash_attention",
    "jax.experimental.pallas.ops.tpu.splash_attention": """
        splash_attention_kernel splash_attention_mask
        """,
    "jax.experimental.sparse": "ad api bcoo bcsr coo csr linalg random test_util transform util",
    "jax.extend": """
        backend core ifrt_programs linear_util lowering mlir random sharding source_info_util xla
        """,
    "jax.extend.core": "primitives",
    "jax.extend.mlir": "dialects ir passmanager",
    "jax.extend.mlir.dialects": """
        arith builtin chlo func math memref mpmd scf sdy sparse_tensor stablehlo vector
        """,
    "jax.interpreters": "ad batching mlir partial_eval pxla xla",
    "jax.lax": "linalg",
    "jax.nn": "initializers",
    "jax.numpy": "fft linalg",
    "jax.scipy": """
        cluster fft integrate interpolate linalg ndimage optimize signal sparse spatial special
        stats
        """,
    "jax.scipy.cluster": "vq",
    "jax.scipy.sparse": "linalg",
    "jax.scipy.spatial": "transform",
    "jax.scipy.stats": """
        bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l
        gumbel_r laplace logistic multinomial multivariate_normal nbinom norm pareto poisson t
        truncnorm uniform vonmises wrapcauchy
        """,
}
MODULES = frozenset(
    {
        "jax",
        *(f"{package}.{name}" for package, n in _MODULES_BY_PACKAGE.items() for name in n.split()),
    }
)

# Names of hlofront's modules that JAX does not have there. Libraries distinguish versions of JAX
# by whether a name exists, so JAX's own names must be absent where JAX moved them away.
ABSENT = {
    "jax": frozenset(
        {"ad", "bundle", "fits", "inspect", "max_compiles", "no_recompile", "target", "targets"}
    ),
    "jax.core": frozenset(
        {
            "AbstractToken",
            "ClosedJaxpr",
            "Equation",
            "Jaxpr",
            "Literal",
            "Primitive",
            "Var",
            "current_trace",
            "jaxpr_as_fun",
            "subjaxprs",
        }
    ),
}

# Names that JAX still has in one module, with a warning that they have moved to another one.
MOVED: dict[str, dict[str, str]] = {
    "jax.core": dict.fromkeys(
        """
        CallPrimitive DebugInfo DropVar Effect Effects InconclusiveDimensionOperation JaxprTypeError
        check_jaxpr concrete_or_error find_top_trace gensym get_opaque_trace_state jaxprs_in_params
        new_jaxpr_eqn no_effects nonempty_axis_env_DO_NOT_USE primal_dtype_to_tangent_dtype
        unsafe_am_i_under_a_jit_DO_NOT_USE unsafe_am_i_under_a_vmap_DO_NOT_USE
        unsafe_get_axis_names_DO_NOT_USE valid_jaxtype
        """.split(),
        "jax.extend.core",
    )
}


def is_package(name: str) -> bool:
    """Return whether a public module of JAX, such as "jax.numpy", has submodules."""
    return name == "jax" or name in _MODULES_BY_PACKAGE


def home_of(name: str) -> str | None:
    """Return the name of hlofront's module for a public module of JAX, or None if JAX has none.

    hlofront need not have a module of that name.
    """
    if name not in MODULES:
        return None
    if name == "jax.version":
        return "hlofront.jax_names.version"
    return "hlofront" + name.removeprefix("jax")
