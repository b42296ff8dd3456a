"""Each program of the corpora with `jax_debug_nans`, with 64-bit types, and under checkify.

What is compared is the results, or the class of the error, under each of them. Under checkify all
checks are on, and whether they found an error is compared as well.
"""

import numpy as np

from tests.against_jax.describe import HERE, Corpus, load
from tests.against_jax.kinds.varying import LEFT_OUT, is_array, of_arrays

KNOWN = {
    r"^checks_custom_closures_mapped_values": "jax fails by an assertion of its own",
    r"^checks_numpy_dtype_limits_sets_of_size": "jax reports an index of its own implementation",
    r"^nans_numpy_dtype_limits_sets_": "the error says that it is the shape which is not known",
}


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    for path in sorted(HERE.glob("corpus_*.py")):
        name = path.stem.removeprefix("corpus_")
        if any(part in name for part in LEFT_OUT):
            continue
        for label, program in load(path.stem, jax, jnp, lax).programs.items():
            leaves, structure = jax.tree_util.tree_flatten(program.operands)
            places = [i for i, leaf in enumerate(leaves) if is_array(leaf)]
            if not places:
                continue
            function = of_arrays(jax, program, leaves, structure, places)
            values = [leaves[i] for i in places]
            options = {"x64": program.x64, "tolerance": program.tolerance}
            corpus.add(f"nans_{name}_{label}", of_debug_nans(jax, function, values), **options)
            corpus.add(f"checks_{name}_{label}", of_checks(jax, function, values), **options)
            if not program.x64:
                options["x64"] = True
                wide = of_plain(jax, function, [widened(value) for value in values])
                corpus.add(f"x64_{name}_{label}", wide, **options)
    return corpus


def widened(value):
    """Return an array of NumPy's default precision, as users have who turn 64-bit types on."""
    wide = {"float32": np.float64, "int32": np.int64, "complex64": np.complex128}
    return np.asarray(value).astype(wide.get(value.dtype.name, value.dtype))


def results_of(jax, run):
    """Return the arrays among results, or the class of the error."""
    try:
        leaves = jax.tree_util.tree_leaves(run())
        arrays = [x for x in leaves if isinstance(x, jax.Array | np.ndarray | np.generic)]
        # Checkify returns arrays of NumPy that functions return as they are given, or does not.
        return [
            np.asarray(x) for x in arrays if not jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended)
        ]
    except Exception as error:
        return [f"raises {type(error).__name__}"]


def of_plain(jax, function, values):
    return lambda: results_of(jax, lambda: function(*values))


def of_debug_nans(jax, function, values):
    def run():
        with jax.debug_nans(True):
            return results_of(jax, lambda: jax.jit(function)(*values))

    return run


def of_checks(jax, function, values):
    from importlib import import_module

    checkify = import_module(f"{jax.__name__}.experimental.checkify")

    def run():
        def checked():
            error, result = checkify.checkify(function, errors=checkify.all_checks)(*values)
            return [result, np.array(error.get() is not None)]

        return results_of(jax, checked)

    return run
