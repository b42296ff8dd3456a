"""jax.lax: the operations of XLA under their own names, strict about dtypes and shapes."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    submodules="linalg",
    now={
        "hlofront.primitives.elementwise.elementwise": (
            "AccuracyMode RoundingMethod Tolerance abs abs_p acos acos_p acosh acosh_p add add_p "
            "and_p asin asin_p asinh asinh_p atan atan2 atan2_p atan_p atanh atanh_p bitwise_and "
            "bitwise_not bitwise_or bitwise_xor cbrt cbrt_p ceil ceil_p clamp clamp_p clz clz_p "
            "complex complex_p conj conj_p cos cos_p cosh cosh_p div div_p exp exp2 exp2_p exp_p "
            "expm1 expm1_p floor floor_p imag imag_p integer_pow integer_pow_p is_finite "
            "is_finite_p log log1p log1p_p log2 log2_p log_p logistic logistic_p max max_p min "
            "min_p mul mul_p mulhi mulhi_p neg neg_p nextafter nextafter_p not_p one_minus_square "
            "one_minus_square_p or_p population_count population_count_p pow pow_p real real_p "
            "reciprocal rem rem_p round round_p rsqrt rsqrt_p shift_left shift_left_p "
            "shift_right_arithmetic shift_right_arithmetic_p shift_right_logical "
            "shift_right_logical_p sign sign_p sin sin_p sinh sinh_p sqrt sqrt_p square square_p "
            "sub sub_p tan tan_p tanh tanh_p xor_p"
        ),
        "hlofront.primitives.sharding.placing": "device_put_p sharding_constraint_p",
        "hlofront.primitives.collectives.collectives": (
            "axis_index axis_index_p axis_size pmax pmax_p pmean pmin pmin_p psum psum_p"
        ),
        "hlofront.primitives.collectives.exchanges": (
            "all_gather all_gather_p all_to_all all_to_all_p pbroadcast ppermute ppermute_p "
            "pshuffle psum_scatter pswapaxes"
        ),
        "hlofront.primitives.collectives.futures": "psum_scatter_start",
        "hlofront.primitives.collectives.pcast": "pcast",
        "hlofront.primitives.elementwise.compare": (
            "eq eq_p eq_to_p ge ge_p gt gt_p le le_p le_to_p lt lt_p lt_to_p ne ne_p select "
            "select_n select_n_p"
        ),
        "hlofront.primitives.elementwise.converting": (
            "bitcast_convert_type bitcast_convert_type_p convert_element_type "
            "convert_element_type_p copy_p dtype reduce_precision reduce_precision_p stage stage_p "
            "stop_gradient stop_gradient_p"
        ),
        "hlofront.primitives.arrays.creation": "broadcasted_iota empty full full_like iota iota_p",
        "hlofront.primitives.elementwise.special": (
            "bessel_i0e bessel_i0e_p bessel_i1e bessel_i1e_p betainc digamma digamma_p erf erf_inv "
            "erf_inv_p erf_p erfc erfc_p igamma igamma_grad_a igamma_grad_a_p igamma_p igammac "
            "igammac_p lgamma lgamma_p polygamma polygamma_p random_gamma_grad "
            "regularized_incomplete_beta_p zeta zeta_p"
        ),
        "hlofront.primitives.arrays.shaping": (
            "broadcast broadcast_in_dim broadcast_in_dim_p broadcast_like broadcast_shapes "
            "broadcast_to_rank collapse expand_dims reshape reshape_p rev rev_p shape_as_value "
            "squeeze squeeze_p transpose transpose_p"
        ),
        "hlofront.primitives.arrays.dynamic_slicing": (
            "dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim dynamic_slice_p "
            "dynamic_update_index_in_dim dynamic_update_slice dynamic_update_slice_in_dim "
            "dynamic_update_slice_p"
        ),
        "hlofront.primitives.arrays.slicing": (
            "concatenate concatenate_p index_in_dim pad pad_p slice slice_in_dim slice_p split "
            "split_p stack stack_p unstack unstack_p"
        ),
        "hlofront.primitives.arrays.gathering": (
            "GatherDimensionNumbers GatherScatterMode gather gather_p index_take"
        ),
        "hlofront.primitives.arrays.scattering": (
            "ScatterDimensionNumbers scatter scatter_add scatter_add_p scatter_max scatter_max_p "
            "scatter_min scatter_min_p scatter_mul scatter_mul_p scatter_p scatter_sub "
            "scatter_sub_p"
        ),
        "hlofront.primitives.arrays.reducing": (
            "argmax argmax_p argmin argmin_p reduce_and reduce_and_p reduce_max reduce_max_p "
            "reduce_min reduce_min_p reduce_or reduce_or_p reduce_prod reduce_prod_p reduce_sum "
            "reduce_sum_p reduce_xor reduce_xor_p"
        ),
        "hlofront.primitives.arrays.cumulative": (
            "associative_scan cumlogsumexp cumlogsumexp_p cummax cummax_p cummin cummin_p cumprod "
            "cumprod_p cumsum cumsum_p"
        ),
        "hlofront.primitives.arrays.windowed": (
            "padtype_to_pads reduce_window_max_p reduce_window_min_p reduce_window_shape_tuple "
            "reduce_window_sum_p select_and_gather_add_p select_and_scatter_add_p"
        ),
        "hlofront.primitives.linalg.contraction_numbers": "DotDimensionNumbers",
        "hlofront.primitives.linalg.dot_general": (
            "DotAlgorithm DotAlgorithmPreset Precision PrecisionLike batch_matmul dot dot_general "
            "dot_general_p"
        ),
        "hlofront.primitives.linalg.ragged_dot": (
            "RaggedDotDimensionNumbers ragged_dot ragged_dot_general"
        ),
        "hlofront.primitives.linalg.scaled_dot": "scaled_dot",
        "hlofront.primitives.linalg.conv": "conv_general_dilated conv_general_dilated_p",
        "hlofront.primitives.linalg.conv_numbers": (
            "ConvDimensionNumbers ConvGeneralDilatedDimensionNumbers conv_dimension_numbers "
            "conv_general_permutations"
        ),
        "hlofront.primitives.arrays.sorting": (
            "approx_max_k approx_min_k approx_top_k_p sort sort_key_val sort_p top_k top_k_p"
        ),
        "hlofront.primitives.random.bits": (
            "RandomAlgorithm rng_bit_generator rng_bit_generator_p rng_uniform rng_uniform_p"
        ),
        "hlofront.primitives.arrays.tiling": "tile tile_p",
        "hlofront.primitives.calls.barriers": (
            "after_all after_all_p create_token create_token_p dce_sink dce_sink_p "
            "optimization_barrier optimization_barrier_p"
        ),
        "hlofront.higher_order.control_flow.cond": "cond cond_p switch",
        "hlofront.higher_order.control_flow.platform": "composite platform_dependent",
        "hlofront.higher_order.control_flow.scan": "scan scan_p",
        "hlofront.higher_order.control_flow.scatter_apply": "scatter_apply",
        "hlofront.higher_order.control_flow.while_loop": "fori_loop while_loop while_p",
    },
    later={
        "hlofront.higher_order.custom_rules.linear_solve": (
            "custom_linear_solve custom_linear_solve_p custom_root linear_solve_p"
        ),
        "hlofront.higher_order.control_flow.mapping": "map",
        "hlofront.higher_order.control_flow.reduce": (
            "reduce reduce_p reduce_window reduce_window_p select_and_scatter_p"
        ),
        "hlofront.primitives.collectives.ragged_exchanges": "ragged_all_to_all ragged_all_to_all_p",
        "hlofront.primitives.collectives.sending": "precv psend",
        "hlofront.primitives.elementwise.polynomials": "polynomial polynomial_p",
        "hlofront.primitives.linalg.conv_variants": (
            "conv conv_general_dilated_local conv_general_dilated_patches conv_general_shape_tuple "
            "conv_shape_tuple conv_transpose conv_transpose_shape_tuple conv_with_general_padding"
        ),
        "hlofront.primitives.linalg.fourier": "FftType fft fft_p",
        "hlofront.runtime.dispatch.jit_shardings": "with_sharding_constraint",
    },
)
