"""Weak types of derivatives: each program of the corpora, with floating arguments weakly typed."""

import re

import numpy as np

from tests.against_jax.describe import HERE, Corpus, load

# Why programs differ, by their names. Which results differ was looked at for all of them, and the
# jaxprs of both sides for a few of each reason.
REASONS = {
    "jax has no types to compare: it refuses the derivative, or these weakly typed arguments": """
        fft_segment_max_of_known_ids fft_segment_min_of_known_ids fft_segment_sum_of_known_ids
        fuzz_regressions_optimized_for_remat_hessian
        fuzz_regressions_optimized_for_remat_jvp_of_grad
        fuzz_regressions_optimized_for_remat_vmap_of_hessian
        lax_edge_cases_broadcast_crossed_batch_0
        lax_edge_cases_broadcast_crossed_batch_1 lax_edge_cases_broadcast_crossed_batch_2
        lax_edge_cases_broadcast_to_axes_1_0_3_2 lax_edge_cases_broadcast_to_axes_2_0_3_4_2
        lax_reduce_two_at_once lax_reduce_window_of_a_user_function linalg_det_empty
        linalg_grad_of_eigvals scipy_linalg_eigh_tridiagonal scipy_linalg_qr_multiply_left
        scipy_linalg_qr_multiply_right scipy_linalg_qr_multiply_vector special_loggamma_complex
        stats_domains_gumbel_l stats_domains_gumbel_l_quantiles stats_domains_gumbel_r
        stats_domains_gumbel_r_quantiles stats_gumbel_l_quantiles stats_gumbel_r_quantiles
        systems_rsf2csf_derivative""",
    "jax checks that full_matrices and subset_by_index exclude each other only in jit": """
        linalg_refused_lax_svd_subset""",
    "a rule of custom_vmap reads a tracer of the mapped function: refused by both but in jvp": """
        fuzz_regressions_jvp_of_custom_vmap_whose_rule_reads_what_it_closes_over""",
    "series of jet: zeros for an operand without a series are strongly typed in jax, its rules for "
    "powers start from products, and it has other constants": """
        jet_add_by_first jet_asinh jet_atan2 jet_atan2_by_first jet_atanh jet_constants
        jet_div_by_first jet_erf jet_erf_inv jet_erfc jet_integer_pow_-2 jet_integer_pow_2
        jet_integer_pow_3 jet_integer_pow_5 jet_max_by_first jet_min_by_first jet_mul_by_first
        jet_of_grad jet_of_jet jet_padded jet_pow jet_rem jet_rem_by_first jet_rsqrt jet_sqrt
        jet_square jet_sub_by_first""",
    "operators and functions of jax.numpy are jitted in jax, where strongly typed tangents of "
    "weakly typed values become weakly typed, by one way of differentiating and not by another": """
        derivatives_value_and_grad_of_a_polynomial example_libraries_adagrad_0.1
        example_libraries_adagrad_0.1_0.5 example_libraries_rmsprop_0.1
        example_libraries_rmsprop_decay_0.8_1e-06 example_libraries_rmsprop_momentum_0.1
        ode_squares scipy_small_rotation_magnitude singular_points_circular_of_complex
        singular_points_derivatives_of_exponents singular_points_derivatives_of_powers
        singular_points_derivatives_of_square_root singular_points_powers_of_complex
        stats_domains_gennorm stats_gennorm""",
    "jax has weakly typed tangents of strongly typed values, to which a constant was added": """
        singular_points_special_sici special_expi special_fresnel special_fresnel_slope special_sici
        special_sici_slope stats_cauchy stats_laplace stats_slopes_laplace_logpdf""",
    "the contributions to one cotangent are added in another order, whose first has the type of "
    "the sum; alone each has jax's type": """
        derivatives_jvp_of_a_quotient linalg_grad_of_qr_complete linalg_qr_wide
        loops_derived_grad_with_what_all_steps_share loops_derived_hessian_through_scan
        loops_derived_neural_ode numpy_polynomials_and_windows_derivatives_of_polynomials
        numpy_polynomials_and_windows_diff_orders_and_axes
        numpy_polynomials_and_windows_integrals_of_polynomials
        numpy_polynomials_and_windows_sums_of_polynomials""",
    "second derivatives: the formulas of the first ones convert in other places": """
        linalg_jvp_of_lax_eigh linalg_jvp_of_lax_svd singular_points_derivatives_of_bessel
        singular_points_derivatives_of_slope_of_i0
        stats_binom_logpmf_slopes stats_chi2_logcdf_slopes stats_nbinom_logpmf_slopes
        stats_slopes_poisson_logpmf stats_uniform_cdf_slopes""",
    "the steps of odeint are not jax's, and convert in other places": """
        ode_batch_of_times ode_by_all ode_error ode_of_complex ode_quartic""",
    "of empty arrays or of one row nothing is computed, where jax gathers or takes a sign": """
        linalg_det_one linalg_eigh_empty linalg_lstsq_none scipy_small_fftconvolve_nothing
        systems_polar_0_3_3_svd systems_slogdet_twice_one systems_slogdet_twice_one_batch""",
    "jax gathers, pads or sorts where hlofront selects or slices, or the other way round": """
        fft_grad_of_irfft_odd members_member_compress numpy_reduction_median
        scipy_small_map_coordinates_gradients""",
    "zeros and sums that stand for cotangents in loops, branches and mapped rules": """
        branches_grad_of_a_cond_that_saves_from_nan custom_rules_rules_keep_numbers_of_python
        custom_vmap_and_grad_of_custom_vjp
        custom_zero_cotangents_symbolic_rule_in_vmap_of_statistics_blocked_alone
        ufuncs_methods_of_logical_and ufuncs_methods_of_logical_or ufuncs_methods_of_logical_xor""",
    "logaddexp2.outer maps a function of scalars in jax, and logaddexp2.at converts its operand; "
    "sets that are assumed to be unique have the fill value's type": """
        numpy_dtype_limits_sets_of_size_complex_True numpy_dtype_limits_sets_of_size_floats_True
        ufuncs_methods_of_logaddexp2""",
}
KNOWN = {
    rf"^({'|'.join(map(re.escape, names.split()))})$": reason for reason, names in REASONS.items()
}
# Their programs call for other processes, change options or values with state, look at tracers or
# raise by design.
LEFT_OUT = """callbacks custom_closures debugging errors interpreters names options references
    symbolic with_state""".split()


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    for path in sorted(HERE.glob("corpus_*.py")):
        name = path.stem.removeprefix("corpus_")
        if any(part in name for part in LEFT_OUT):
            continue
        for label, program in load(path.stem, jax, jnp, lax).programs.items():
            if any(map(can_be_weak(program.x64), leaves_of(program.operands))):
                run = types_of_derivatives(jax, jnp, program)
                corpus.add(f"{name}_{label}", run, x64=program.x64)
    return corpus


def leaves_of(tree):
    """Return the leaves of tuples, lists and dictionaries."""
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, tuple | list):
        return [leaf for branch in tree for leaf in leaves_of(branch)]
    return [tree]


def is_inexact(leaf):
    """Return whether a leaf is an array of numbers that can be differentiated."""
    dtype = getattr(leaf, "dtype", None)
    return isinstance(dtype, np.dtype) and (dtype.kind in "fc" or "float" in dtype.name)


def can_be_weak(x64):
    """Return a function that returns whether a leaf is an array of Python's floating dtypes."""
    others = ("float32", "complex64") if x64 else ()
    of_python = {"float32", "float64", "complex64", "complex128"}.difference(others)
    return lambda leaf: isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.name in of_python


def types_of_derivatives(jax, jnp, program):
    """Return a function of the types that a program's tangents and gradients have."""

    def run():
        leaves, structure = jax.tree_util.tree_flatten(program.operands)
        varied = [i for i, leaf in enumerate(leaves) if can_be_weak(program.x64)(leaf)]
        weak = [
            jax.ShapeDtypeStruct(x.shape, jnp.asarray(x).dtype, weak_type=True)
            for x in (leaves[i] for i in varied)
        ]

        def function(*numbers):
            changed = list(leaves)
            for i, number in zip(varied, numbers, strict=True):
                changed[i] = number
            args = jax.tree_util.tree_unflatten(structure, changed)
            results = jax.tree_util.tree_leaves(program.function(*args, **program.keywords))
            return [leaf for leaf in results if is_inexact(leaf)]

        def backward(*numbers):
            value, pull = jax.vjp(function, *numbers)
            return pull(value)

        ways = {
            "jvp": lambda *x: jax.jvp(function, x, x),
            "jvp_of_jit": lambda *x: jax.jvp(jax.jit(function), x, x),
            "linearize": lambda *x: jax.linearize(function, *x)[1](*x),
            "vjp": backward,
        }
        return {name: types(jax, way, weak) for name, way in ways.items()}

    return run


def types(jax, function, args):
    """Return the types of a function's results; a word where it raises an error."""
    try:
        return jax.eval_shape(function, *args)
    except Exception:
        return "raises"
