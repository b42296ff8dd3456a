"""jax.extend.core.primitives: the primitives of equations, for interpreters of jaxprs."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    now={
        "hlofront.higher_order.calls.call_primitive": (
            "call_p create_call_primitive eval_jaxpr_transpose register_call_primitive_rules"
        ),
        "hlofront.higher_order.checkpoint.checkpoint": "remat_p",
        "hlofront.higher_order.checkpoint.checkpoint_policies": "name_p",
        "hlofront.higher_order.control_flow.cond": "cond_p",
        "hlofront.higher_order.custom_rules.custom_jvp": "custom_jvp_call_p",
        "hlofront.higher_order.custom_rules.custom_vjp_call": "custom_lin_p custom_vjp_call_p",
        "hlofront.higher_order.calls.jit_call": "closed_call_p jit_p",
        "hlofront.higher_order.custom_rules.linear_solve": "linear_solve_p",
        "hlofront.higher_order.random_gamma": "random_gamma_p",
        "hlofront.higher_order.control_flow.reduce": (
            "reduce_p reduce_window_p select_and_scatter_p"
        ),
        "hlofront.higher_order.control_flow.scan": "scan_p",
        "hlofront.higher_order.control_flow.while_loop": "while_p",
        "hlofront.primitives.arrays.creation": "empty2_p iota_p",
        "hlofront.primitives.arrays.cumulative": (
            "cumlogsumexp_p cummax_p cummin_p cumprod_p cumsum_p"
        ),
        "hlofront.primitives.arrays.dynamic_slicing": "dynamic_slice_p dynamic_update_slice_p",
        "hlofront.primitives.arrays.gathering": "gather_p",
        "hlofront.primitives.arrays.reducing": (
            "argmax_p argmin_p reduce_and_p reduce_max_p reduce_min_p reduce_or_p reduce_prod_p "
            "reduce_sum_p reduce_xor_p"
        ),
        "hlofront.primitives.arrays.scattering": (
            "scatter_add_p scatter_max_p scatter_min_p scatter_mul_p scatter_p"
        ),
        "hlofront.primitives.arrays.shaping": (
            "broadcast_in_dim_p reshape_p rev_p squeeze_p transpose_p"
        ),
        "hlofront.primitives.arrays.slicing": "concatenate_p pad_p slice_p",
        "hlofront.primitives.arrays.sorting": "approx_top_k_p sort_p top_k_p",
        "hlofront.primitives.arrays.windowed": (
            "reduce_window_max_p reduce_window_min_p reduce_window_sum_p select_and_gather_add_p "
            "select_and_scatter_add_p"
        ),
        "hlofront.primitives.calls.barriers": "after_all_p create_token_p",
        "hlofront.primitives.collectives.collectives": "axis_index_p pmax_p pmin_p psum_p",
        "hlofront.primitives.collectives.exchanges": "all_gather_p all_to_all_p ppermute_p",
        "hlofront.primitives.collectives.ragged_exchanges": "ragged_all_to_all_p",
        "hlofront.primitives.elementwise.compare": (
            "eq_p eq_to_p ge_p gt_p le_p le_to_p lt_p lt_to_p ne_p select_n_p"
        ),
        "hlofront.primitives.elementwise.converting": (
            "bitcast_convert_type_p convert_element_type_p copy_p reduce_precision_p "
            "stop_gradient_p"
        ),
        "hlofront.primitives.elementwise.elementwise": (
            "abs_p acos_p acosh_p add_p and_p asin_p asinh_p atan2_p atan_p atanh_p cbrt_p ceil_p "
            "clamp_p clz_p complex_p conj_p cos_p cosh_p div_p exp2_p exp_p expm1_p floor_p imag_p "
            "integer_pow_p is_finite_p log1p_p log2_p log_p logistic_p max_p min_p mul_p neg_p "
            "nextafter_p not_p one_minus_square_p or_p population_count_p pow_p real_p rem_p "
            "round_p rsqrt_p shift_left_p shift_right_arithmetic_p shift_right_logical_p sign_p "
            "sin_p sinh_p sqrt_p square_p sub_p tan_p tanh_p xor_p"
        ),
        "hlofront.primitives.elementwise.polynomials": "polynomial_p",
        "hlofront.primitives.elementwise.special": (
            "bessel_i0e_p bessel_i1e_p digamma_p erf_inv_p erf_p erfc_p igamma_grad_a_p igamma_p "
            "igammac_p lgamma_p polygamma_p regularized_incomplete_beta_p zeta_p"
        ),
        "hlofront.primitives.linalg.conv": "conv_general_dilated_p",
        "hlofront.primitives.linalg.dot_general": "dot_general_p",
        "hlofront.primitives.linalg.factoring": "cholesky_p householder_product_p lu_p qr_p",
        "hlofront.primitives.linalg.fourier": "fft_p",
        "hlofront.primitives.linalg.solving": "triangular_solve_p tridiagonal_solve_p",
        "hlofront.primitives.linalg.spectral": (
            "eig_p eigh_p hessenberg_p schur_p svd_p tridiagonal_p"
        ),
        "hlofront.primitives.random.bits": "rng_bit_generator_p rng_uniform_p threefry2x32_p",
        "hlofront.primitives.random.keys": (
            "random_bits_p random_fold_in_p random_seed_p random_split_p"
        ),
        "hlofront.primitives.references.references": "get_p swap_p",
        "hlofront.primitives.rules.derivatives": "add_jaxvals_p",
        "hlofront.primitives.sharding.placing": "device_put_p sharding_constraint_p",
    },
)
