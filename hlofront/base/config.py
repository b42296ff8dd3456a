"""Every option in one table, with its environment variable and its context manager.

An option is called as in JAX: the flag `jax_enable_x64` is read as `config.jax_enable_x64`, set for
the process by `config.update("jax_enable_x64", True)` or the environment variable JAX_ENABLE_X64,
and set for a block of one thread by `with enable_x64(True):`. Code that reads one often keeps
the option itself, `options["jax_enable_x64"]`, and reads its `.value`.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

from hlofront.base.option import (
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
    unset,
    words,
)
from hlofront.base.option import Option as Option
from hlofront.base.option import config as config
from hlofront.bridge import state

# ---- the table ---------------------------------------------------------------------------------

_LEVEL = choice("UNKNOWN", "O0", "O1", "O2", "O3")
_CHECKED = choice("ignore", "raise")
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
_INT_OR_NONE = optional(INT)
_PRNG = choice("threefry2x32", "threefry4x32", "rbg", "unsafe_rbg", "philox2x32", "philox4x32")
_KIND_OF = {bool: BOOL, int: INT, float: FLOAT, str: TEXT, type(None): _TEXT_OR_NONE}

# flag: (default, doc[, kind]); without a kind, that of the default's type. A doc follows "It".
# First, those that a traced or compiled program depends on.
_OF_PROGRAMS: dict[str, tuple[Any, ...]] = {
    "hlofront_fences": (True, "stores what XLA's fusion for CPUs would compute at every use"),
    "check_vma": (False, "checks over which mesh axes values vary inside shard_map"),
    "eager_constant_folding": (False, "folds constants while tracing"),
    "jax2tf_associative_scan_reductions": (False, "lowers cumulative operations as scans"),
    "jax_allow_f16_reductions": (True, "allows reduce_sum of float16 and bfloat16"),
    "jax_auto_pcast": (True, "inserts casts between varying and replicated values"),
    "jax_bcoo_cusparse_lowering": (False, "lowers sparse BCOO operations to cuSPARSE"),
    "jax_check_static_indices": (False, "checks that static indices are in bounds"),
    "jax_check_tracer_leaks": (False, "looks for traced values that outlive their function"),
    "jax_compiler_enable_remat_pass": (True, "lets XLA recompute values to save memory"),
    "jax_custom_vjp3": (False, "selects an experimental custom_vjp in JAX; no effect here"),
    "jax_debug_infs": (False, "raises an error where a result is infinite"),
    "jax_debug_key_reuse": (False, "raises an error where a random key is used twice"),
    "jax_debug_nans": (False, "raises an error where a result is NaN"),
    "jax_default_device": (None, "is where computations run by default", optional(DEVICE)),
    "jax_default_matmul_precision": (None, "is the precision of dots by default", _PRECISION),
    "jax_default_prng_impl": ("threefry2x32", "is the generator of new random keys", _PRNG),
    "jax_disable_bwd_checks": (False, "skips type checks of custom_vjp backward functions"),
    "jax_disable_jit": (False, "runs jitted functions operation by operation"),
    "jax_disable_most_optimizations": (False, "compiles fast and runs slowly"),
    "jax_disable_vmap_shmap_error": (False, "allows vmap of shard_map over its own axes"),
    "jax_embedded_constants_max_bytes": (32, "is the size from which constants are arguments"),
    "jax_enable_checks": (False, "type-checks jaxprs, tangents and cotangents when they are made"),
    "jax_enable_custom_prng": (False, "makes PRNGKey return typed keys"),
    "jax_enable_x64": (False, "keeps 64-bit types, which are otherwise narrowed to 32 bits"),
    "jax_error_checking_behavior_divide": ("ignore", "is what division by zero does", _CHECKED),
    "jax_error_checking_behavior_nan": ("ignore", "is what a NaN result does", _CHECKED),
    "jax_error_checking_behavior_oob": ("ignore", "is what a bad index does", _CHECKED),
    "jax_exec_time_optimization_effort": (0.0, "is XLA's effort on run time, from -1 to 1"),
    "jax_explicit_x64_dtypes": (
        "warn",
        "is what an explicit request for a 64-bit dtype does when jax_enable_x64 is off",
        choice("warn", "error", "allow"),
    ),
    "jax_high_dynamic_range_gumbel": (False, "draws Gumbel values with finer tails"),
    "jax_hlo_source_file_canonicalization_regex": (
        *(None, "is removed from the names of source files that operations in HLO come from"),
        optional(PATTERN),
    ),
    "jax_include_full_tracebacks_in_locations": (
        *(True, "gives operations in HLO the user's whole stack, not the innermost line alone"),
    ),
    "jax_legacy_prng_key": ("allow", "is what untyped keys do", choice("allow", "warn", "error")),
    "jax_memory_fitting_effort": (0.0, "is XLA's effort to save memory, from -1 to 1"),
    "jax_memory_fitting_level": ("O2", "is XLA's level of effort to save memory", _LEVEL),
    "jax_mosaic_allow_hlo": (False, "allows HLO operations in TPU kernels"),
    "jax_mutable_array_checks": (True, "checks that references do not alias or escape"),
    "jax_no_execution": (False, "raises an error where a computation would run"),
    "jax_numpy_dtype_promotion": (
        "standard",
        "is how dtypes of operands are brought together",
        choice("standard", "strict"),
    ),
    "jax_numpy_rank_promotion": (
        "allow",
        "is what operands of different ranks do",
        choice("allow", "warn", "raise"),
    ),
    "jax_optimization_level": ("UNKNOWN", "is XLA's level of effort on run time", _LEVEL),
    "jax_pallas_enable_debug_checks": (False, "runs debug checks in kernels"),
    "jax_pallas_poison_buffers": (False, "fills fresh buffers of kernels with NaN"),
    "jax_pallas_use_mosaic_gpu": (True, "compiles GPU kernels through Mosaic"),
    "jax_ragged_dot_use_gpu_pallas_triton_lowering": (False, "lowers ragged dots to Triton"),
    "jax_ragged_dot_use_ragged_dot_instruction": (True, "lowers ragged dots to one operation"),
    "jax_random_seed_offset": (0, "is added to every random seed"),
    "jax_refs_to_pins": (False, "lowers references to pinned buffers"),
    "jax_remat3": (False, "selects an experimental checkpoint in JAX; no effect here"),
    "jax_remove_size_one_mesh_axis_from_type": (False, "drops mesh axes of size 1 from types"),
    "jax_scan3": (False, "selects an experimental scan in JAX; no effect here"),
    "jax_softmax_custom_jvp": (False, "differentiates softmax by a rule of its own"),
    "jax_threefry_gpu_kernel_lowering": (False, "lowers threefry to a kernel on GPUs"),
    "jax_threefry_partitionable": (True, "makes random bits shard without communication"),
    "jax_traceback_in_locations_limit": (
        *(100, "is the largest number of frames in the location of an operation; -1 is all"),
    ),
    "jax_use_direct_linearize": (True, "linearizes directly, not by jvp and partial evaluation"),
    "jax_use_emit_pipeline_primitive": (False, "keeps pipelines of kernels as one operation"),
    "jax_use_magma": ("auto", "selects MAGMA for eig on GPUs", choice("off", "on", "auto")),
    "jax_use_shardy_partitioner": (True, "partitions programs with Shardy, not GSPMD"),
    "jax_use_simplified_jaxpr_constants": (False, "keeps constants inside jaxprs"),
    "jax_xla_profile_version": (0, "is the version of the profile that XLA compiles with"),
}

# Then those that programs do not depend on.
_OF_THE_HOST: dict[str, tuple[Any, ...]] = {
    "hlofront_warn_recompiles": (
        5,
        "is the number of recompilations at one line of the user's from which it is told; 0 never",
    ),
    "hlofront_cache": (True, "keeps small executables in a folder of the user's"),
    "hlofront_cache_dir": (None, "is that folder; by default one below ~/.cache"),
    "hlofront_compile_apart": (
        True,
        "compiles for TPUs that are not there in a process of its own, which their compiler may "
        "end",
    ),
    "hlofront_environments_dir": (None, "is where `compare` keeps environments of other jaxlibs"),
    "hlofront_cache_max_size": (1 << 28, "is that folder's size in bytes; -1 is unbounded"),
    "jax2tf_default_native_serialization": (True, "is jax2tf's; no effect here"),
    "jax_array_garbage_collection_guard": (
        None,
        "is what an array freed by a garbage collection does",
        optional(choice("allow", "log", "fatal")),
    ),
    "jax_backend_target": ("", "is the address of a remote backend"),
    "jax_captured_constants_report_frames": (0, "is how many frames captured constants report"),
    "jax_captured_constants_warn_bytes": (2000000000, "is the size of constants that warns"),
    "jax_check_proxy_envs": (True, "warns of proxies when a cluster is joined"),
    "jax_compilation_cache_check_contents": (False, "compiles anyway and compares with the cache"),
    "jax_compilation_cache_dir": (None, "is the directory of the compilation cache"),
    "jax_compilation_cache_expect_pgle": (False, "warns where a profiled program is not cached"),
    "jax_compilation_cache_include_metadata_in_key": (False, "puts source lines into cache keys"),
    "jax_compilation_cache_max_size": (-1, "is the cache's size in bytes; -1 is unbounded"),
    "jax_compiler_detailed_logging_min_ops": (
        10,
        "is the size in operations above which XLA logs a compilation in detail",
    ),
    "jax_cpu_collectives_implementation": (
        "gloo",
        "is how processes on CPUs exchange data",
        optional(choice("gloo", "mpi", "megascale")),
    ),
    "jax_cpu_enable_async_dispatch": (True, "lets CPU computations run in the background"),
    "jax_cpu_get_global_topology_timeout_minutes": (5, "is how long to wait for all processes"),
    "jax_cpu_get_local_topology_timeout_minutes": (2, "is how long to wait for this process"),
    "jax_cross_host_transfer_socket_address": ("", "is the address for transfers between hosts"),
    "jax_cross_host_transfer_timeout_seconds": (None, "limits such transfers", _INT_OR_NONE),
    "jax_cross_host_transfer_transfer_size": (None, "is the size of such transfers", _INT_OR_NONE),
    "jax_cross_host_transport_addresses": ("", "lists the addresses for such transfers"),
    "jax_cuda_visible_devices": ("all", "is which CUDA devices to use", NUMBERS),
    "jax_debug_leaked_clients_on_clear_backends": (False, "reports clients that stay alive"),
    "jax_debug_log_modules": ("", "lists modules whose debug log goes to stderr"),
    "jax_disallow_mesh_context_manager": (False, "raises an error on `with mesh:`"),
    "jax_distributed_debug": (False, "logs the details of joining a cluster"),
    "jax_dump_ir_modes": (
        "stablehlo",
        "lists what jax_dump_ir_to writes of a program, with commas between",
        words("stablehlo", "jaxpr", "eqn_count_pprof"),
    ),
    "jax_dump_ir_to": ("", "is the folder that programs are written to when they are compiled"),
    "jax_enable_compilation_cache": (True, "uses the compilation cache, if it has a directory"),
    "jax_enable_pgle": (False, "compiles anew with latencies that were profiled"),
    "jax_enable_preemption_service": (True, "watches for preemption in a cluster"),
    "jax_enable_recoverability": (False, "lets processes of a cluster fail and return"),
    "jax_experimental_unsafe_xla_runtime_errors": (False, "lets programs raise errors at run time"),
    "jax_explain_cache_misses": (False, "logs why a function is traced again"),
    "jax_export_calling_convention_version": (10, "is the calling convention of exported programs"),
    "jax_export_ignore_forward_compatibility": (False, "exports with operations of this release"),
    "jax_force_dcn_cross_host_transfers": (False, "sends transfers over the data center network"),
    "jax_include_debug_info_in_dumps": (True, "writes source lines into what jax_dump_ir_to dumps"),
    "jax_log_checkpoint_residuals": (False, "logs what a checkpoint saves for the derivative"),
    "jax_log_compiles": (False, "logs each compilation"),
    "jax_logging_level": (
        "NOTSET",
        "is the level of our own log",
        optional(choice("NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")),
    ),
    "jax_mock_gpu_topology": ("", "is the shape of a pretended GPU cluster"),
    "jax_no_tracing": (False, "raises an error where a function would be traced"),
    "jax_num_cpu_devices": (-1, "is the number of CPU devices; -1 leaves it to XLA_FLAGS"),
    "jax_num_generated_cases": (10, "is how many cases a generated test draws"),
    "jax_oneapi_visible_devices": ("all", "is which oneAPI devices to use", NUMBERS),
    "jax_pallas_verbose_errors": (False, "makes errors of kernels longer"),
    "jax_persistent_cache_enable_xla_caches": (
        "xla_gpu_per_fusion_autotune_cache_dir",
        "lists the caches of XLA itself to keep on disk",
        _TEXT_OR_NONE,
    ),
    "jax_persistent_cache_min_compile_time_secs": (1.0, "is the compile time worth caching"),
    "jax_persistent_cache_min_entry_size_bytes": (0, "is the size of an executable worth caching"),
    "jax_pgle_aggregation_percentile": (90, "is which percentile of latencies is taken"),
    "jax_pgle_profiling_runs": (3, "is how many runs are profiled"),
    "jax_pjrt_client_create_options": (
        *(None, "is what the clients of plugins are made with"),
        optional(SETTINGS),
    ),
    "jax_platform_name": ("", "is the default platform; jax_platforms is to be preferred"),
    "jax_platforms": (None, "lists the platforms to use, the default one first: cuda,cpu"),
    "jax_pprint_use_color": (True, "colours jaxprs on a terminal"),
    "jax_raise_persistent_cache_errors": (False, "raises errors of the compilation cache"),
    "jax_remove_custom_partitioning_ptr_from_cache_key": (False, "makes cache keys portable"),
    "jax_rocm_visible_devices": ("all", "is which ROCm devices to use", NUMBERS),
    "jax_send_traceback_to_runtime": (
        "off",
        "is whether executions carry the caller's traceback",
        choice("off", "on", "full"),
    ),
    "jax_serialization_version": (0, "is the version of serialized programs; 0 is the newest"),
    "jax_share_binary_between_hosts": (False, "compiles on one host and sends to the others"),
    "jax_share_binary_between_hosts_timeout_ms": (1200000, "is how long the others wait, in ms"),
    "jax_skip_slow_tests": (False, "skips tests marked as slow"),
    "jax_sort_devices_by_process_index": (True, "orders devices() by process"),
    "jax_source_url_schema": (None, "turns source files into links"),
    "jax_test_dut": ("", "is the device that tests run on"),
    "jax_test_num_threads": (0, "is the number of threads that tests run in"),
    "jax_test_with_persistent_compilation_cache": (False, "runs tests with the cache on disk"),
    "jax_thread_guard": (False, "raises an error where another thread uses a device"),
    "jax_traceback_filtering": (
        "auto",
        "is how our own frames leave a traceback",
        choice("off", "tracebackhide", "remove_frames", "quiet_remove_frames", "auto"),
    ),
    "jax_tracer_error_num_traceback_frames": (5, "is how many frames an error of tracing shows"),
    "jax_transfer_guard": (None, "sets the three transfer guards at once", _GUARD),
    "jax_transfer_guard_device_to_device": (None, "is what a copy between devices does", _GUARD),
    "jax_transfer_guard_device_to_host": (None, "is what a copy to the host does", _GUARD),
    "jax_transfer_guard_host_to_device": (None, "is what a copy from the host does", _GUARD),
    "jax_xla_backend": ("", "selected a backend once; no effect"),
    "mock_num_gpu_processes": (0, "is the number of processes of a pretended GPU cluster"),
}


def _fill(table, affects_trace):
    for name, (default, doc, *kind) in table.items():
        add_option(name, default, *kind or (_KIND_OF[type(default)],), doc, affects_trace)


_fill(_OF_PROGRAMS, True)
_fill(_OF_THE_HOST, False)


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


def checking_leaks() -> Override:
    """A context manager: look for traced values that outlive their function."""
    return check_tracer_leaks(True)


def disable_jit(disable: bool = True) -> Override:
    """A context manager: run jitted functions operation by operation, to debug them.

    Args:
      disable: False brings jit back inside such a block.
    """
    return options["jax_disable_jit"](disable)


_every_transfer_guard = options["jax_transfer_guard"]
_transfer_guards = {
    "host_to_device": transfer_guard_host_to_device,
    "device_to_device": transfer_guard_device_to_device,
    "device_to_host": transfer_guard_device_to_host,
}


@contextlib.contextmanager
def transfer_guard(new_val: str | None) -> Iterator[None]:
    """A context manager: what copies between host and devices do, in this thread.

    Args:
      new_val: "allow"; "log" or "disallow" what was not asked for by device_put and its like;
        "log_explicit" or "disallow_explicit" all; None for the defaults.
    """
    with contextlib.ExitStack() as stack:
        for option in (_every_transfer_guard, *_transfer_guards.values()):
            stack.enter_context(option(new_val))
        yield


# ---- options that C++ enforces -----------------------------------------------------------------


def _enforce(field, option, levels):
    """Hand an option to the field of that name in jaxlib's guards."""

    def hook(value, local):
        place = state.guards.thread_local_state() if local else state.guards.global_state()
        level = None if value is unset or value is None else getattr(levels, value.upper())
        setattr(place, field, level)

    option.watch(hook)


def _set_every_guard(value, local):
    # Within a thread, transfer_guard() sets each itself, and so can restore each.
    if not local:
        for option in _transfer_guards.values():
            option.set(value)


def _set_thread_guard(value, local):
    state.guards.update_thread_guard_global_state(value is True)


for _field, _guard in _transfer_guards.items():
    _enforce(_field, _guard, state.guards.TransferGuardLevel)
_enforce(
    "garbage_collect_array",
    array_garbage_collection_guard,
    state.guards.GarbageCollectionGuardLevel,
)
_every_transfer_guard.watch(_set_every_guard)
thread_guard.watch(_set_thread_guard)
