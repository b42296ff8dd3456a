"""Weak types of derivatives: each program of the corpora, with floating arguments weakly typed."""

import numpy as np

from tests.against_jax.describe import HERE, Corpus, load

JITTED = "jax.numpy's functions are jitted, where tangents have the types of values"
GATHERED = "one of the two gathers or pads where the other selects or concatenates"
ELSEWHERE = "the formulas convert intermediate values in other places"
REFUSED = "one of the two refuses"
# Looked into were one or two programs of each family.
KNOWN = {
    r"^jet_": "terms of series: jax's rules for them have constants of their own",
    r"^linalg_.*eig|^linalg_(qr_wide|svd_values|lstsq_none|grad_of_norm_2|grad_of_qr_complete)|"
    r"^linalg_(lax_tridiag|jvp_of_lax_svd|det_one|vector_norm|diagonals)|^scipy_linalg_eigh|"
    r"^numpy_edge_cases_slope_of_norm": GATHERED,
    r"^scipy_linalg_(toeplitz|hankel|circulant|.*companion|convolution_matrix|grad_of_toeplitz)|"
    r"^scipy_linalg_(block_diag|two_vectors)|^numpy_einsum|^members_member_compress|"
    r"^numpy_(reduction_median|ufunc_ldexp)|^numpy_dtype_limits_sets|"
    r"^numpy_polynomials_and_windows_|^scipy_small_(trapezoid|fftconvolve_nothing)|"
    r"^ufuncs_.*accumulate|^ufuncs_mapped_reduce": GATHERED,
    r"^scipy_small_(rotation|slerp|detrend|map_coordinates|grid_nearest|vq|bicgstab|gmres)|"
    r"^scipy_linalg_lu_|^systems_(slogdet|polar|bicgstab|gmres)|^ufuncs_|^numpy_ufunc_hypot|"
    r"^numpy_unusual_arguments_nan|^custom_second_order_of_linear_solve|"
    r"^fft_grad_of_irfft_odd": ELSEWHERE,
    r"^special_(sici|fresnel|expi|expn|xlog1?p?y|zeta|polygamma|.*_complex|log_ndtr)|^stats_|"
    r"^special_logsumexp|^singular_points_|^nn_(logsumexp_factors|sparse_plus)|^operators_pow|"
    r"^(ode|example_libraries|loops_derived|custom_|derivatives_|branches_|batching_|programs_)|"
    r"^lax_reduce_window_known": JITTED,
    r"^(fft_segment|fuzz_regressions_optimized_for_remat|lax_reduce|lax_edge_cases_broadcast)|"
    r"^(linalg_(slogdet_qr|grad_of_eigvals|det_empty|refused)|scipy_linalg_qr_mult)|^nn_activations|"
    r"^(special_sph_harm|special_loggamma|systems_rsf2csf)": REFUSED,
}
# Their programs call for other processes, change options, look at tracers or raise by design.
LEFT_OUT = """callbacks custom_closures debugging errors interpreters names options references
    symbolic""".split()


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
