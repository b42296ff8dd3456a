"""The modules of lowering rules, with the primitives for which each has rules.

A module is imported when one of its primitives is first lowered, for the platform of its folder or
at the end of its name if there is one: most programs need few of them. `one_to_one` is not listed,
because the builder imports it.
"""

import importlib

from hlofront.base.garbage_collection import collection_paused
from hlofront.core.rules import lower

with collection_paused():
    from hlofront.lowering.module import lower_program

__all__ = ["MODULES", "import_all", "lower_program"]

MODULES: dict[str, str] = {
    "ops.ragged_dot": "ragged_dot_general scaled_dot",
    "ops.control_flow": "cond platform_index while",
    "ops.decompositions": "bessel_i0e",
    "ops.callbacks": "buffer_callback debug_callback debug_print io_callback pure_callback",
    "ops.collectives": (
        "all_gather all_gather_invariant all_gather_reduced all_to_all axis_index pbroadcast pmax "
        "pmin ppermute precv preduced psend psum psum_invariant pvary ragged_all_to_all "
        "reduce_scatter reduce_scatter_done reduce_scatter_start reduced_vary_cast_p "
        "unreduced_pmax unreduced_pmin unreduced_psum unreduced_reduce_scatter "
        "unreduced_reduce_scatter_start vary_unreduced_cast_p"
    ),
    "ops.composite": "composite",
    "ops.dot_general": "dot_general",
    "cpu.dot_general": "dot_general",
    "ops.conv": "conv_general_dilated",
    "cpu.conv": "conv_general_dilated",
    "ops.cumsum": "cumlogsumexp cummax cummin cumprod cumsum",
    "cpu.cumsum": "cumlogsumexp cummax cummin cumprod cumsum",
    "ops.elementwise": (
        "bitcast_convert_type clamp conj convert_element_type copy cos eq eq_to exp2 from_edtype "
        "ge gt integer_pow le le_to log2 lt lt_to max min mul mulhi ne one_minus_square pow "
        "reduce_precision round select_n sign sin square stage stop_gradient to_edtype"
    ),
    "cpu.erf_inv": "erf_inv",
    "cpu.exp2": "exp2",
    "ops.exported_call": "call_exported",
    "linalg.factoring": (
        "cholesky cholesky_update geqp3 geqrf householder_product lu lu_pivots_to_permutation "
        "ormqr qr symmetric_product"
    ),
    "ops.ffi": "ffi_call",
    "ops.fft": "fft",
    "cpu.gamma": "digamma lgamma",
    "ops.gather": "gather scatter scatter-add scatter-max scatter-min scatter-mul scatter-sub",
    "tpu.gather": "gather",
    "cpu.integer_division": "div rem",
    "cpu.log": "atanh log1p",
    "ops.scan": "scan",
    "ops.shard_map": "shard_map",
    "cpu.maxima": (
        "pmax pmin reduce reduce_max reduce_min reduce_window reduce_window_max reduce_window_min "
        "unreduced_pmax unreduced_pmin"
    ),
    "ops.partitioning": "custom_partitioning inspect_sharding",
    "special.polynomials": "polynomial",
    "ops.programs": (
        "after_all call call_hi_primitive call_hi_primitive_jvp call_hi_primitive_linearized "
        "check closed_call compute_on create_token custom_jvp_call custom_lin custom_linear_solve "
        "custom_vjp_call custom_vmap_call dce_sink jit linear_call name optimization_barrier "
        "program_order remat2 remat_opt xla_metadata_call xla_metadata_value"
    ),
    "ops.random_bits": (
        "random_bits random_clone random_fold_in random_gamma random_seed random_split "
        "random_unwrap random_wrap rng_bit_generator rng_uniform threefry2x32"
    ),
    "ops.reduce_by_function": "reduce reduce_window select_and_scatter",
    "ops.reduce": (
        "argmax argmin reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_sum reduce_xor"
    ),
    "cpu.reduce": "reduce_and reduce_max reduce_min reduce_or reduce_sum reduce_xor",
    "tpu.reduce": "reduce_sum",
    "cpu.cbrt": "cbrt",
    "ops.shaping": (
        "broadcast_in_dim concatenate dim_as_value dynamic_slice dynamic_update_slice empty "
        "empty2 iota pad reshape rev slice split squeeze stack tile transpose unstack"
    ),
    "ops.sharding": (
        "argument_sharding device_put global_array_to_host_local_array "
        "host_local_array_to_global_array layout_constraint reshard sharding_constraint"
    ),
    "linalg.solving": "triangular_solve tridiagonal_solve",
    "ops.sort": "approx_top_k sort top_k",
    "cpu.sort": "approx_top_k sort top_k",
    "sparse.elements": (
        "bcoo_extract bcoo_fromdense bcoo_sort_indices bcoo_sum_duplicates bcoo_todense "
        "bcoo_transpose todense"
    ),
    "sparse.matrices": (
        "coo_fromdense coo_matmat coo_matvec coo_todense csr_fromdense csr_matmat csr_matvec "
        "csr_todense"
    ),
    "sparse.products": "bcoo_dot_general bcoo_dot_general_sampled bcoo_spdot_general",
    "sparse.rows": "bcsr_dot_general bcsr_extract bcsr_fromdense bcsr_todense",
    "sparse.solving": "spsolve",
    "special.functions": (
        "bessel_i1e erfc igamma igamma_grad_a igammac random_gamma_grad regularized_incomplete_beta"
    ),
    "linalg.spectral": "eig eigh hessenberg schur svd tridiagonal",
    "linalg.spectral_gpu": "eig eigh svd",
    "linalg.spectral_tpu": "eigh svd",
    "cpu.trig": "acos asin atan atan2 cos sin tan",
    "cpu.hyperbolic_f64": "cosh sinh",
    "cpu.trig_f64": "acos asin atan2",
    "ops.reduce_window": (
        "reduce_window_max reduce_window_min reduce_window_sum select_and_gather_add "
        "select_and_scatter_add"
    ),
    "cpu.select_and_scatter": "select_and_scatter_add",
}

# The dtypes of results for which a module has rules. Modules that are not here have rules for many.
DTYPES: dict[str, str] = {
    "cpu.hyperbolic_f64": "float64",
    "cpu.integer_division": "int8 int16 int32 uint8 uint16 uint32",
    "cpu.log": "float64",
    "cpu.trig_f64": "float64",
}

for _module, _names in MODULES.items():
    for _name in _names.split():
        lower.modules.setdefault(_name, []).append(f"{__package__}.{_module}")
    if _module in DTYPES:
        lower.dtypes[f"{__package__}.{_module}"] = frozenset(DTYPES[_module].split())


def import_all() -> None:
    """Import all modules of lowering rules, for code that reads the whole table."""
    for module in MODULES:
        importlib.import_module(f"{__package__}.{module}")
