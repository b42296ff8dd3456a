"""A table of all options, with their environment variables and context managers.

Options have their names in JAX: the flag `jax_enable_x64` is read as `config.jax_enable_x64`,
set for the process by `config.update("jax_enable_x64", True)` or the environment variable
JAX_ENABLE_X64, and set for a block in one thread by `with enable_x64(True):`. Code that reads an
option often holds the object `options["jax_enable_x64"]`, and reads its `.value`.
"""

from typing import Any

from hlofront.base import options_without_effect as options_without_effect
from hlofront.base.option import (
    AXES,
    BOOL,
    DEVICE,
    FLOAT,
    INT,
    NUMBERS,
    PATTERN,
    SETTINGS,
    TEXT,
    Override,
    add_option,
    choice,
    optional,
    options,
    warn_of_unknown_variables,
    words,
)
from hlofront.base.option import Option as Option
from hlofront.base.option import config as config

# ---- the table ---------------------------------------------------------------------------------

_LEVEL = choice("UNKNOWN", "O0", "O1", "O2", "O3")
_GUARD = optional(choice("allow", "log", "disallow", "log_explicit", "disallow_explicit"))
_PRECISION = optional(
    choice(
        "default",
        "high",
        "highest",
        "bfloat16",
        "tensorfloat32",
        "float32",
        "ANY_F8_ANY_F8_F32",
        "ANY_F8_ANY_F8_F32_FAST_ACCUM",
        "ANY_F8_ANY_F8_ANY",
        "ANY_F8_ANY_F8_ANY_FAST_ACCUM",
        "F16_F16_F16",
        "F16_F16_F32",
        "BF16_BF16_BF16",
        "BF16_BF16_F32",
        "BF16_BF16_F32_X3",
        "BF16_BF16_F32_X6",
        "BF16_BF16_F32_X9",
        "TF32_TF32_F32",
        "TF32_TF32_F32_X3",
        "F32_F32_F32",
        "F64_F64_F64",
    )
)
_TEXT_OR_NONE = optional(TEXT)
_PRNG = choice("threefry2x32", "threefry4x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32")
_KIND_OF = {bool: BOOL, int: INT, float: FLOAT, str: TEXT, type(None): _TEXT_OR_NONE}

# flag: (default, doc[, kind]); without a kind, that of the default's type. A doc follows "It".
# First, the options that traced or compiled programs depend on.
_OF_PROGRAMS: dict[str, tuple[Any, ...]] = {
    "check_vma": (False, "makes types say along which manual axes values vary; shard_map sets it"),
    "hlofront_array_lines": (
        False,
        "keeps the line that made each array, for array_owners and errors of too little memory",
    ),
    "hlofront_cpu_formulas": (
        True,
        "replaces slow XLA operations on CPUs by formulas; most formulas need hlofront_fences",
    ),
    "hlofront_fences": (
        True,
        "materializes values that XLA's fusion on CPUs would recompute at every use",
    ),
    "hlofront_xla_guards": (True, "guards programs against the known faults of XLA"),
    "jax_allow_f16_reductions": (True, "allows reduce_sum of float16 and bfloat16"),
    "jax_check_static_indices": (False, "checks that static indices are in bounds"),
    "jax_check_tracer_leaks": (False, "searches for traced values that outlive their function"),
    "jax_compiler_enable_remat_pass": (True, "lets XLA recompute values to save memory"),
    "jax_debug_infs": (False, "raises an error if a result is infinite"),
    "jax_debug_key_reuse": (False, "raises an error if a random key is used twice"),
    "jax_debug_nans": (False, "raises an error if a result is NaN"),
    "jax_default_device": (
        None,
        "is the device on which computations run by default",
        optional(DEVICE),
    ),
    "jax_default_matmul_precision": (None, "is the default precision of dots", _PRECISION),
    "jax_default_prng_impl": ("threefry2x32", "is the generator of new random keys", _PRNG),
    "jax_disable_bwd_checks": (False, "skips type checks of custom_vjp backward functions"),
    "jax_disable_jit": (False, "runs jitted functions operation by operation"),
    "jax_disable_most_optimizations": (False, "compiles fast and runs slowly"),
    "jax_enable_checks": (False, "type-checks jaxprs, tangents and cotangents when they are made"),
    "jax_enable_custom_prng": (False, "makes PRNGKey return typed keys"),
    "jax_enable_x64": (False, "keeps 64-bit types, which are otherwise narrowed to 32 bits"),
    "jax_exec_time_optimization_effort": (0.0, "is XLA's effort to reduce run time, from -1 to 1"),
    "jax_pallas_enable_debug_checks": (
        False,
        "checks bounds and pl.debug_check in interpreted kernels",
    ),
    "hlofront_jax_api": (
        "0.10.2",
        "is the version of JAX to follow where versions contradict each other",
        choice("0.10.2", "0.12.0.1"),
    ),
    "jax_explicit_x64_dtypes": (
        "warn",
        "is what an explicit request for a 64-bit dtype does when jax_enable_x64 is off",
        choice("warn", "error", "allow"),
    ),
    "jax_high_dynamic_range_gumbel": (False, "draws Gumbel values with finer tails"),
    "jax_hlo_source_file_canonicalization_regex": (
        None,
        "is a pattern to remove from the names of source files in HLO",
        optional(PATTERN),
    ),
    "jax_include_full_tracebacks_in_locations": (
        True,
        "records the user's whole stack for operations in HLO, not only the innermost line",
    ),
    "jax_legacy_prng_key": (
        "allow",
        "is what using untyped keys does",
        choice("allow", "warn", "error"),
    ),
    "jax_memory_fitting_effort": (0.0, "is XLA's effort to save memory, from -1 to 1"),
    "jax_memory_fitting_level": ("O2", "is XLA's level of effort to save memory", _LEVEL),
    "jax_no_collectives": (
        frozenset[object](),
        "lists the mesh axes along which operations must not communicate",
        AXES,
    ),
    "jax_no_execution": (False, "raises an error if a computation would run"),
    "jax_numpy_dtype_promotion": (
        "standard",
        "is how operands of different dtypes are promoted",
        choice("standard", "strict"),
    ),
    "jax_numpy_rank_promotion": (
        "allow",
        "is what combining operands of different ranks does",
        choice("allow", "warn", "raise"),
    ),
    "jax_optimization_level": ("UNKNOWN", "is XLA's level of effort to reduce run time", _LEVEL),
    "jax_random_seed_offset": (0, "is added to every random seed"),
    "jax_remove_size_one_mesh_axis_from_type": (
        False,
        "leaves mesh axes of size one out of the types of arrays",
    ),
    "jax_softmax_custom_jvp": (False, "differentiates softmax by a custom rule"),
    "jax_threefry_gpu_kernel_lowering": (False, "lowers threefry to a kernel on GPUs"),
    "jax_threefry_partitionable": (True, "makes random bits shardable without communication"),
    "jax_traceback_in_locations_limit": (
        100,
        "is the largest number of frames in the location of an operation; -1 is all",
    ),
    "jax_use_magma": ("auto", "selects MAGMA for eig on GPUs", choice("off", "on", "auto")),
    "jax_use_simplified_jaxpr_constants": (False, "keeps constants inside jaxprs"),
    "jax_xla_profile_version": (0, "is the version of the profile that XLA compiles with"),
}

# Second, the options that programs do not depend on.
_OF_THE_HOST: dict[str, tuple[Any, ...]] = {
    "hlofront_warn_recompiles": (
        5,
        "is the number of recompilations at a line of the user's code from which on they are "
        "reported; 0 disables reports",
    ),
    "hlofront_autotune_results": (
        None,
        "is a file of autotuning results, which XLA loads instead of trying kernels when it "
        "compiles for NVIDIA GPUs; set it before that",
    ),
    "hlofront_warn_reshards": (
        False,
        "reports which values of a program for several devices XLA reshards, when it is compiled; "
        "it is compiled twice then",
    ),
    "hlofront_cache": (True, "caches small executables in a folder of the user"),
    "hlofront_cache_dir": (None, "is that folder; by default one below ~/.cache"),
    "hlofront_compare_programs": (
        True,
        "checks, when a program over several processes first runs, that it is the same in all",
    ),
    "hlofront_compare_programs_timeout_secs": (
        1800.0,
        "is how long processes wait for each other to compare a program",
    ),
    "hlofront_compile_apart": (
        True,
        "compiles for TPUs that are not attached in a process of its own, which their compiler may "
        "end",
    ),
    "hlofront_log": (
        None,
        "is a folder for logs of traces, compilations and cache lookups, which "
        "`python -m hlofront log` reads",
    ),
    "hlofront_progress": (
        True,
        "shows the progress of slow commands, and on a terminal that of slow compilations",
    ),
    "hlofront_environments_dir": (
        None,
        "is the folder where `compare` keeps environments of other jaxlibs",
    ),
    "hlofront_watchdog_seconds": (
        0.0,
        "is how long a process of a group may wait for others in a program, before a report says "
        "which process and line they wait for; 0 for no report",
    ),
    "hlofront_cache_max_size": (1 << 28, "is that folder's size in bytes; -1 is unbounded"),
    "jax_array_garbage_collection_guard": (
        None,
        "is what happens if a garbage collection frees an array",
        optional(choice("allow", "log", "fatal")),
    ),
    "jax_captured_constants_report_frames": (
        0,
        "is the number of frames in reports of captured constants",
    ),
    "jax_captured_constants_warn_bytes": (
        2000000000,
        "is the size of captured constants from which a warning is issued",
    ),
    "jax_compilation_cache_dir": (None, "is the directory of the compilation cache"),
    "jax_persistent_cache_enable_xla_caches": (
        "xla_gpu_per_fusion_autotune_cache_dir",
        "names XLA's own caches that are kept in that directory, separated by commas: "
        "xla_gpu_per_fusion_autotune_cache_dir, xla_gpu_kernel_cache_file; or all or none",
        _TEXT_OR_NONE,
    ),
    "jax_compilation_cache_include_metadata_in_key": (False, "puts source lines into cache keys"),
    "jax_compilation_cache_max_size": (-1, "is the cache's size in bytes; -1 is unbounded"),
    "jax_compiler_detailed_logging_min_ops": (
        10,
        "is the number of operations above which XLA logs a compilation in detail",
    ),
    "jax_cpu_enable_async_dispatch": (True, "lets CPU computations run in the background"),
    "jax_cuda_visible_devices": ("all", "lists the CUDA devices to use", NUMBERS),
    "jax_debug_log_modules": ("", "lists modules whose debug log goes to stderr"),
    "jax_disallow_mesh_context_manager": (False, "raises an error on `with mesh:`"),
    "jax_distributed_verify_secure_credentials": (
        False,
        "makes distributed.initialize raise an error without mutual TLS",
    ),
    "jax_dump_ir_modes": (
        "stablehlo",
        "lists the forms of programs that jax_dump_ir_to writes, separated by commas",
        words("stablehlo", "jaxpr", "eqn_count_pprof"),
    ),
    "jax_dump_ir_to": ("", "is the folder to which programs are written when they are compiled"),
    "jax_enable_compilation_cache": (True, "uses the compilation cache, if it has a directory"),
    "jax_enable_preemption_service": (True, "lets reached_preemption_sync_point await SIGTERM"),
    "jax_explain_cache_misses": (False, "logs why a function is traced again"),
    "jax_include_debug_info_in_dumps": (True, "writes source lines into what jax_dump_ir_to dumps"),
    "jax_log_checkpoint_residuals": (False, "logs what a checkpoint saves for the derivative"),
    "jax_log_compiles": (False, "logs each compilation"),
    "jax_logging_level": (
        "NOTSET",
        "is the level of hlofront's log",
        optional(choice("NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")),
    ),
    "jax_mock_gpu_topology": ("", "is the shape of a mock GPU cluster"),
    "jax_mtls_ca_file": (None, "is the file of certificates of authorities for mutual TLS"),
    "jax_mtls_cert_file": (None, "is the file of this process's certificate for mutual TLS"),
    "jax_mtls_key_file": (None, "is the file of the private key of that certificate"),
    "jax_mtls_peer_uri_prefix": (
        None,
        "is the required prefix of a URI in the certificates of peers",
    ),
    "jax_no_tracing": (False, "raises an error if a function would be traced"),
    "jax_num_cpu_devices": (-1, "is the number of CPU devices; -1 leaves it to XLA_FLAGS"),
    "jax_oneapi_visible_devices": ("all", "lists the oneAPI devices to use", NUMBERS),
    "jax_persistent_cache_min_compile_time_secs": (
        1.0,
        "is the minimum compile time of cached programs",
    ),
    "jax_persistent_cache_min_entry_size_bytes": (0, "is the minimum size of cached executables"),
    "jax_pjrt_client_create_options": (
        None,
        "holds the options of plugins' clients",
        optional(SETTINGS),
    ),
    "jax_platform_name": ("", "is the default platform; prefer jax_platforms"),
    "jax_platforms": (None, "lists the platforms to use, the default one first: cuda,cpu"),
    "jax_pprint_use_color": (True, "colors jaxprs on a terminal"),
    "jax_raise_persistent_cache_errors": (
        False,
        "raises errors in reading and writing caches on disk",
    ),
    "jax_rocm_visible_devices": ("all", "lists the ROCm devices to use", NUMBERS),
    "jax_thread_guard": (False, "raises an error if another thread uses a device"),
    "jax_traceback_filtering": (
        "auto",
        "is how hlofront's own frames are removed from tracebacks",
        choice("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto"),
    ),
    "jax_transfer_guard": (None, "sets all three transfer guards", _GUARD),
    "jax_transfer_guard_device_to_device": (
        None,
        "is what happens on implicit copies between devices",
        _GUARD,
    ),
    "jax_transfer_guard_device_to_host": (
        None,
        "is what happens on implicit copies to the host",
        _GUARD,
    ),
    "jax_transfer_guard_host_to_device": (
        None,
        "is what happens on implicit copies from the host",
        _GUARD,
    ),
    "mock_num_gpu_processes": (0, "is the number of processes of a mock GPU cluster"),
}


def _fill(table: dict[str, tuple[Any, ...]], affects_trace: bool) -> None:
    for name, (default, doc, *own_kind) in table.items():
        kind = own_kind[0] if own_kind else _KIND_OF[type(default)]
        add_option(name, default, kind, doc, affects_trace)


_fill(_OF_PROGRAMS, True)
_fill(_OF_THE_HOST, False)
warn_of_unknown_variables()


# ---- context managers --------------------------------------------------------------------------

allow_f16_reductions = options["jax_allow_f16_reductions"]
array_garbage_collection_guard = options["jax_array_garbage_collection_guard"]
auto_pcast = options["jax_auto_pcast"]
check_static_indices = options["jax_check_static_indices"]
check_tracer_leaks = options["jax_check_tracer_leaks"]
disable_bwd_checks = options["jax_disable_bwd_checks"]
debug_infs = options["jax_debug_infs"]
debug_key_reuse = options["jax_debug_key_reuse"]
debug_nans = options["jax_debug_nans"]
default_device = options["jax_default_device"]
default_matmul_precision = options["jax_default_matmul_precision"]
default_prng_impl = options["jax_default_prng_impl"]
enable_checks = options["jax_enable_checks"]
enable_custom_prng = options["jax_enable_custom_prng"]
enable_x64 = options["jax_enable_x64"]
explain_cache_misses = options["jax_explain_cache_misses"]
jax2tf_associative_scan_reductions = options["jax2tf_associative_scan_reductions"]
legacy_prng_key = options["jax_legacy_prng_key"]
log_compiles = options["jax_log_compiles"]
no_collectives = options["jax_no_collectives"]
no_execution = options["jax_no_execution"]
no_tracing = options["jax_no_tracing"]
numpy_dtype_promotion = options["jax_numpy_dtype_promotion"]
numpy_rank_promotion = options["jax_numpy_rank_promotion"]
remove_size_one_mesh_axis_from_type = options["jax_remove_size_one_mesh_axis_from_type"]
softmax_custom_jvp = options["jax_softmax_custom_jvp"]
thread_guard = options["jax_thread_guard"]
threefry_partitionable = options["jax_threefry_partitionable"]
transfer_guard_device_to_device = options["jax_transfer_guard_device_to_device"]
transfer_guard_device_to_host = options["jax_transfer_guard_device_to_host"]
transfer_guard_host_to_device = options["jax_transfer_guard_host_to_device"]


def follows_jax_0_12() -> bool:
    """Return whether the API follows JAX 0.12.0.1 where that contradicts 0.10.2."""
    return options["hlofront_jax_api"].value == "0.12.0.1"


def checking_leaks() -> Override:
    """Return a context manager that raises an error for tracers that outlive their function."""
    return check_tracer_leaks(True)


def disable_jit(disable: bool = True) -> Override:
    """Return a context manager under which jitted functions run operation by operation.

    Args:
      disable: False enables jit again inside such a block.
    """
    return options["jax_disable_jit"](disable)
