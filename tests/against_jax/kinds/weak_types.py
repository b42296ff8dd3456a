"""Weak types of derivatives: each program of the corpora, with floating arguments weakly typed."""

import numpy as np

from tests.against_jax.describe import HERE, Corpus, load

KNOWN: dict[str, str] = {}
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
