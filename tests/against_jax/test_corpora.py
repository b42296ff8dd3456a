"""Each program of each corpus gives what it gives under jax 0.10.2."""

import pytest

from tests.against_jax.describe import names_of

CORPORA = (
    "corpus_assembled_dtypes",
    "corpus_experimental",
    "corpus_interpreters",
    "corpus_names_experimental",
    "corpus_names_hijax",
    "corpus_names_modules",
    "corpus_names_interpreters",
    "corpus_names_extend",
    "corpus_names_linear_util",
    "corpus_names_core",
    "corpus_names_mlir",
    "corpus_names_stages",
    "corpus_names_trees",
    "corpus_lax",
    "corpus_lax_edge_cases",
    "corpus_programs",
    "corpus_operators",
    "corpus_numpy",
    "corpus_numpy_polynomials_and_windows",
    "corpus_numpy_errors",
    "corpus_numpy_unusual_arguments",
    "corpus_numpy_axes_and_masks",
    "corpus_numpy_dtype_limits",
    "corpus_numpy_edge_cases",
    "corpus_members",
    "corpus_minimizers",
    "corpus_ufuncs",
    "corpus_indexing",
    "corpus_arrays",
    "corpus_branches",
    "corpus_callbacks",
    "corpus_custom",
    "corpus_custom_closures",
    "corpus_custom_nondiff",
    "corpus_checkpoints",
    "corpus_custom_rules",
    "corpus_custom_vmap",
    "corpus_custom_zero_cotangents",
    "corpus_loops",
    "corpus_loops_derived",
    "corpus_derivatives",
    "corpus_eager_rules",
    "corpus_effects",
    "corpus_batching",
    "corpus_errors",
    "corpus_random",
    "corpus_generators",
    "corpus_linalg",
    "corpus_pallas",
    "corpus_pallas_kernels",
    "corpus_pallas_programs",
    "corpus_references",
    "corpus_reported",
    "corpus_scipy_linalg",
    "corpus_systems",
    "corpus_fft",
    "corpus_special",
    "corpus_stats",
    "corpus_stats_domains",
    "corpus_stats_slopes",
    "corpus_weak_types",
    "corpus_singular_points",
    "corpus_nn",
    "corpus_sparse",
    "corpus_sparse_formats",
    "corpus_scipy_small",
    "corpus_transform_errors",
    "corpus_debugging",
    "corpus_kernels",
    "corpus_fuzz_regressions",
    "corpus_fuzz_arguments_and_rules",
    "corpus_options",
    "corpus_python_scalars",
    "corpus_symbolic_sizes",
    "corpus_values_with_state",
    "corpus_name_stacks",
    "corpus_jet",
    "corpus_ode",
    "corpus_example_libraries",
)


@pytest.mark.parametrize(
    ("corpus", "name"), [(corpus, name) for corpus in CORPORA for name in names_of(corpus)]
)
def test_same_as_jax(same_as_jax, corpus, name):
    same_as_jax(corpus, name)


def test_enough_jaxpr_texts():
    """The issue asks for 60 programs whose jaxprs agree character for character."""
    assert len(names_of("corpus_lax")) + len(names_of("corpus_programs")) >= 60
