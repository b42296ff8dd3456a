"""Options of JAX that hlofront accepts without effect, with a warning when one is set."""

from hlofront.base import source
from hlofront.base.option import (
    BOOL,
    INT,
    TEXT,
    Option,
    OptionKind,
    add_option,
    choice,
    optional,
    unset,
)

_KIND_OF: dict[type, OptionKind] = {bool: BOOL, int: INT, str: TEXT}
_CHECKED = choice("ignore", "raise")
_TEXT_OR_NONE = optional(TEXT)
_INT_OR_NONE = optional(INT)

# Flag: default, effect in JAX, and the kind if it differs from that of the default's type.
OPTIONS_WITHOUT_EFFECT: dict[str, tuple[object, str] | tuple[object, str, OptionKind]] = {
    "eager_constant_folding": (False, "folds constants while tracing"),
    "jax2tf_associative_scan_reductions": (False, "is of jax2tf"),
    "jax2tf_default_native_serialization": (True, "is of jax2tf"),
    "jax_auto_pcast": (True, "inserts casts between varying and replicated values"),
    "jax_backend_target": ("", "is the address of a remote backend"),
    "jax_bcoo_cusparse_lowering": (False, "lowers sparse BCOO operations to cuSPARSE"),
    "jax_check_proxy_envs": (True, "warns of proxies when a cluster is joined"),
    "jax_compilation_cache_check_contents": (False, "compares cached and fresh executables"),
    "jax_compilation_cache_expect_pgle": (False, "warns where a profiled program is not cached"),
    "jax_cpu_collectives_implementation": (
        "gloo",
        "is how several processes on CPUs exchange data",
        optional(choice("gloo", "mpi", "megascale")),
    ),
    "jax_cpu_get_global_topology_timeout_minutes": (5, "limits the wait for other processes"),
    "jax_cpu_get_local_topology_timeout_minutes": (2, "limits the wait for other processes"),
    "jax_cross_host_transfer_socket_address": ("", "is of transfers between hosts"),
    "jax_cross_host_transfer_timeout_seconds": (
        None,
        "is of transfers between hosts",
        _INT_OR_NONE,
    ),
    "jax_cross_host_transfer_transfer_size": (None, "is of transfers between hosts", _INT_OR_NONE),
    "jax_cross_host_transport_addresses": ("", "is of transfers between hosts"),
    "jax_custom_vjp3": (False, "selects an experimental custom_vjp"),
    "jax_debug_leaked_clients_on_clear_backends": (False, "reports clients that stay alive"),
    "jax_disable_vmap_shmap_error": (False, "lets vmap name axes that shard_map uses"),
    "jax_distributed_debug": (False, "logs how processes of a cluster come together"),
    "jax_embedded_constants_max_bytes": (32, "bounds the constants that stay inside of jaxprs"),
    "jax_enable_pgle": (False, "recompiles with profiled latencies"),
    "jax_enable_recoverability": (False, "lets processes of a cluster fail and return"),
    "jax_error_checking_behavior_divide": ("ignore", "is of error checks in jnp", _CHECKED),
    "jax_error_checking_behavior_nan": ("ignore", "is of error checks in jnp", _CHECKED),
    "jax_error_checking_behavior_oob": ("ignore", "is of error checks in jnp", _CHECKED),
    "jax_experimental_unsafe_xla_runtime_errors": (False, "is of errors that programs raise"),
    "jax_export_calling_convention_version": (10, "is of exported programs"),
    "jax_export_ignore_forward_compatibility": (False, "is of exported programs"),
    "jax_force_dcn_cross_host_transfers": (False, "is of transfers between hosts"),
    "jax_mosaic_allow_hlo": (False, "is of Pallas kernels"),
    "jax_mutable_array_checks": (True, "checks that references do not alias or escape"),
    "jax_num_generated_cases": (10, "is of JAX's own tests"),
    "jax_pallas_poison_buffers": (False, "fills buffers of compiled kernels with NaN"),
    "jax_pallas_use_mosaic_gpu": (True, "is of Pallas kernels"),
    "jax_pallas_verbose_errors": (False, "is of Pallas kernels"),
    "jax_pgle_aggregation_percentile": (90, "is of latencies that are profiled"),
    "jax_pgle_profiling_runs": (3, "is of latencies that are profiled"),
    "jax_ragged_dot_use_gpu_pallas_triton_lowering": (False, "lowers ragged dots to Triton"),
    "jax_ragged_dot_use_ragged_dot_instruction": (True, "lowers ragged dots on TPUs otherwise"),
    "jax_refs_to_pins": (False, "lowers references to pinned buffers"),
    "jax_remat3": (False, "selects an experimental checkpoint"),
    "jax_remove_custom_partitioning_ptr_from_cache_key": (False, "is of custom partitioning"),
    "jax_scan3": (False, "selects an experimental scan"),
    "jax_send_traceback_to_runtime": (
        "off",
        "hands the caller's traceback to executions",
        choice("off", "on", "full"),
    ),
    "jax_serialization_version": (0, "is of exported programs"),
    "jax_share_binary_between_hosts": (False, "compiles on one host for all"),
    "jax_share_binary_between_hosts_timeout_ms": (1200000, "is how long other hosts wait for it"),
    "jax_skip_slow_tests": (False, "is of JAX's own tests"),
    "jax_sort_devices_by_process_index": (True, "orders the devices of several processes"),
    "jax_source_url_schema": (None, "is of jaxprs that are dumped as HTML", _TEXT_OR_NONE),
    "jax_test_dut": ("", "is of JAX's own tests"),
    "jax_test_num_threads": (0, "is of JAX's own tests"),
    "jax_test_with_persistent_compilation_cache": (False, "is of JAX's own tests"),
    "jax_tracer_error_num_traceback_frames": (5, "bounds the frames in errors of leaked tracers"),
    "jax_use_direct_linearize": (True, "does nothing any more: linearize is direct"),
    "jax_use_emit_pipeline_primitive": (False, "is of Pallas kernels"),
    "jax_use_shardy_partitioner": (True, "selects GSPMD, where hlofront partitions with Shardy"),
    "jax_xla_backend": ("", "does nothing any more: it selected a backend once"),
}

_warned: set[str] = set()


def _warn_where_changed(option: Option) -> None:
    """Register a hook that warns once when an option is set to a value other than its default."""

    def warn(value: object, local: bool) -> None:
        if value is unset or value == option.default or option.name in _warned:
            return
        _warned.add(option.name)
        source.warn(
            f"the option {option.name} is set to {value!r} and has no effect in hlofront, which "
            f"accepts it for programs that are written for JAX, where it "
            f"{OPTIONS_WITHOUT_EFFECT[option.name][1]}"
        )

    option.watch(warn)


for _flag, (_default, _purpose, *_kind) in OPTIONS_WITHOUT_EFFECT.items():
    _warn_where_changed(
        add_option(
            _flag,
            _default,
            _kind[0] if _kind else _KIND_OF[type(_default)],
            f"has no effect in hlofront; in JAX it {_purpose}",
        )
    )
