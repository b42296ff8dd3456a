"""The modules of lowering rules, and the primitives that each has rules of.

A module is imported when one of its primitives is first lowered, for the platform at the end of its
name if there is one: most programs need few of them. `direct` is not listed: its rules are there
with the builder.
"""

import importlib

from hlofront.base.garbage_collection import collection_paused
from hlofront.core.rules import lower

with collection_paused():
    from hlofront.lowering.module import lower_program

__all__ = ["MODULES", "import_all", "lower_program"]

MODULES: dict[str, str] = {
    "argmax_cpu": "argmax argmin",
    "barriers": "after_all create_token dce_sink optimization_barrier",
    "bessel_cpu": "bessel_i0e bessel_i1e",
    "block_contracting": "ragged_dot_general scaled_dot",
    "branching": "cond platform_index while",
    "by_tracing": "bessel_i0e",
    "callbacks": "buffer_callback debug_callback debug_print io_callback pure_callback",
    "checking": "check",
    "collectives": (
        "all_gather all_gather_invariant all_gather_reduced all_to_all axis_index pbroadcast "
        "pmax pmin ppermute precv preduced psend psum psum_invariant pvary ragged_all_to_all "
        "reduce_scatter reduce_scatter_done reduce_scatter_start reduced_vary_cast_p "
        "unreduced_pmax unreduced_pmin unreduced_psum unreduced_reduce_scatter "
        "unreduced_reduce_scatter_start vary_unreduced_cast_p"
    ),
    "comparing": "eq eq_to ge gt le le_to lt lt_to ne select_n",
    "complex_cpu": "exp expm1 log log1p",
    "complex_powers_cpu": "rsqrt sqrt",
    "composite": "composite",
    "contracting": "dot_general",
    "contracting_cpu": "dot_general",
    "converting": (
        "bitcast_convert_type convert_element_type copy from_edtype reduce_precision stage "
        "stop_gradient to_edtype"
    ),
    "convolving": "conv_general_dilated",
    "convolving_cpu": "conv_general_dilated",
    "creating": "empty empty2 iota",
    "cumulative": "cumlogsumexp cummax cummin cumprod cumsum",
    "cumulative_cpu": "cumlogsumexp cummax cummin cumprod cumsum",
    "dynamic_slicing": "dynamic_slice dynamic_update_slice",
    "elementwise": (
        "clamp conj cos exp2 integer_pow log2 max min mul mulhi one_minus_square pow round "
        "sign sin square"
    ),
    "error_function_cpu": "erf erf_inv",
    "exponentials_cpu": "exp2",
    "exported_call": "call_exported",
    "factoring": (
        "cholesky cholesky_update geqp3 geqrf householder_product lu lu_pivots_to_permutation "
        "ormqr qr symmetric_product"
    ),
    "ffi": "ffi_call",
    "fourier": "fft",
    "gamma_cpu": "digamma lgamma",
    "gathering": "gather",
    "gathering_tpu": "gather",
    "integer_division_cpu": "div rem",
    "keys": (
        "random_bits random_clone random_fold_in random_gamma random_seed random_split "
        "random_unwrap random_wrap"
    ),
    "layouts": "layout_constraint",
    "logarithms_cpu": "acosh asinh atanh log log1p",
    "looping": "scan",
    "manual": "shard_map",
    "maxima_cpu": (
        "pmax pmin reduce reduce_max reduce_min reduce_window reduce_window_max reduce_window_min "
        "unreduced_pmax unreduced_pmin"
    ),
    "metadata": "compute_on xla_metadata_call xla_metadata_value",
    "partitioning": "custom_partitioning inspect_sharding",
    "placing": "device_put",
    "polynomials": "polynomial",
    "powers_cpu": "pow sinh",
    "process_parts": "global_array_to_host_local_array host_local_array_to_global_array",
    "programs": (
        "call call_hi_primitive call_hi_primitive_jvp call_hi_primitive_linearized "
        "closed_call custom_jvp_call custom_lin custom_linear_solve custom_vjp_call "
        "custom_vmap_call jit linear_call name remat2 remat_opt"
    ),
    "random_bits": "rng_bit_generator rng_uniform threefry2x32",
    "reduce": "reduce reduce_window select_and_scatter",
    "reducing": (
        "argmax argmin reduce_and reduce_max reduce_min reduce_or reduce_prod reduce_sum reduce_xor"
    ),
    "reducing_cpu": "reduce_and reduce_max reduce_min reduce_or reduce_sum reduce_xor",
    "reducing_tpu": "reduce_sum",
    "remainder_cpu": "rem",
    "roots_cpu": "cbrt",
    "scattering": "scatter scatter-add scatter-max scatter-min scatter-mul scatter-sub",
    "shaping": "broadcast_in_dim reshape rev squeeze tile transpose",
    "sharding": "argument_sharding reshard sharding_constraint",
    "sizes": "dim_as_value",
    "slicing": "concatenate pad slice split stack unstack",
    "solving": "triangular_solve tridiagonal_solve",
    "sorting": "approx_top_k sort top_k",
    "sorting_cpu": "approx_top_k sort top_k",
    "sparse_elements": (
        "bcoo_extract bcoo_fromdense bcoo_sort_indices bcoo_sum_duplicates bcoo_todense "
        "bcoo_transpose todense"
    ),
    "sparse_matrices": (
        "coo_fromdense coo_matmat coo_matvec coo_todense csr_fromdense csr_matmat csr_matvec "
        "csr_todense"
    ),
    "sparse_products": "bcoo_dot_general bcoo_dot_general_sampled bcoo_spdot_general",
    "sparse_rows": "bcsr_dot_general bcsr_extract bcsr_fromdense bcsr_todense",
    "sparse_solving": "spsolve",
    "special": (
        "bessel_i1e erfc igamma igamma_grad_a igammac random_gamma_grad regularized_incomplete_beta"
    ),
    "spectral": "eig eigh hessenberg schur svd tridiagonal",
    "spectral_gpu": "eig eigh svd",
    "spectral_tpu": "eigh svd",
    "trigonometric_cpu": "acos asin atan atan2 cos sin tan",
    "wide_exponentials_cpu": "cosh expm1 sinh",
    "wide_powers_cpu": "pow",
    "wide_trigonometric_cpu": "acos asin atan atan2 cos sin tan",
    "windowed": (
        "reduce_window_max reduce_window_min reduce_window_sum select_and_gather_add "
        "select_and_scatter_add"
    ),
    "windowed_cpu": "reduce_window_max reduce_window_min reduce_window_sum select_and_scatter_add",
    "zeta_cpu": "polygamma zeta",
}

# The dtypes of the results that a module has rules for, by the name of the module or the first word
# of it. Modules that are not here have rules for many.
DTYPES: dict[str, str] = {
    "complex": "complex64 complex128",
    "integer_division_cpu": "int8 int16 int32 uint8 uint16 uint32",
    "logarithms_cpu": "float64",
    "wide": "float64",
}


def _dtypes_of(module: str) -> str:
    """Return the dtypes of the results that a module has rules for; "" if they are many."""
    return DTYPES.get(module) or DTYPES.get(module.partition("_")[0], "")


for _module, _names in MODULES.items():
    for _name in _names.split():
        lower.modules.setdefault(_name, []).append(f"{__package__}.{_module}")
    if _dtypes := _dtypes_of(_module):
        lower.dtypes[f"{__package__}.{_module}"] = frozenset(_dtypes.split())


def import_all() -> None:
    """Import all modules of lowering rules, for those who look through the table."""
    for module in MODULES:
        importlib.import_module(f"{__package__}.{module}")
