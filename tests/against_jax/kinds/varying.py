"""Each program of the corpora inside shard_map, where one of its arguments varies, or all of them.

What is compared is whether a program can be traced, and along which axes its results vary.
"""

import numpy as np

from tests.against_jax.describe import HERE, Corpus, load

KNOWN: dict[str, str] = {}
# Their programs call for other processes, change options or values with state, look at tracers or
# raise by design.
LEFT_OUT = """callbacks debugging errors interpreters names options references symbolic
    with_state""".split()


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    for path in sorted(HERE.glob("corpus_*.py")):
        name = path.stem.removeprefix("corpus_")
        if any(part in name for part in LEFT_OUT):
            continue
        for label, program in load(path.stem, jax, jnp, lax).programs.items():
            leaves, structure = jax.tree_util.tree_flatten(program.operands)
            places = [i for i, leaf in enumerate(leaves) if is_array(leaf)]
            if places:
                function = of_arrays(jax, program, leaves, structure, places)
                run = manual_types(jax, jnp, function, [leaves[i] for i in places])
                corpus.add(f"{name}_{label}", run, x64=program.x64)
    return corpus


def is_array(leaf):
    return isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.kind in "biufcV"


def of_arrays(jax, program, leaves, structure, places):
    """Return a program as a function of its arrays."""

    def function(*arrays):
        changed = list(leaves)
        for place, x in zip(places, arrays, strict=True):
            changed[place] = x
        args = jax.tree_util.tree_unflatten(structure, changed)
        return program.function(*args, **program.keywords)

    return function


def which_vary(count):
    """For each way to call a function of so many arguments, whether each of them varies."""
    yield (True,) * count
    if count > 1:
        yield from (tuple(i == j for j in range(count)) for i in range(count))


def manual_types(jax, jnp, function, values):
    """Return a function of the axes that results vary along, by the arguments that vary."""

    def run():
        try:
            jax.eval_shape(function, *values)
        except Exception:
            return "is not traced"
        return {
            str([int(x) for x in varies]): traced(jax, jnp, function, values, varies)
            for varies in which_vary(len(values))
        }

    return run


def traced(jax, jnp, function, values, varies):
    """Return the axes along which results vary inside shard_map; the error where it raises one."""
    mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    kinds = []

    def per_device(*shards):
        shards = [x[0] if flag else x for x, flag in zip(shards, varies, strict=True)]
        results = jax.tree_util.tree_leaves(function(*shards))
        kinds.extend(
            sorted(jax.typeof(x).manual_axis_type.varying) if hasattr(x, "dtype") else None
            for x in results
        )
        return [jnp.asarray(x)[None] for x in results if hasattr(x, "dtype")]

    spec = jax.sharding.PartitionSpec
    args = [np.asarray(x)[None] if flag else x for x, flag in zip(values, varies, strict=True)]
    specs = tuple(spec("x") if flag else spec() for flag in varies)
    mapped = jax.shard_map(per_device, mesh=mesh, in_specs=specs, out_specs=spec("x"))
    try:
        jax.make_jaxpr(mapped)(*args)
    except Exception as error:
        return f"raises {type(error).__name__}"
    return str(kinds)
