"""Less usual forms of lax's operations: their values, weak types, jaxprs, and what is refused."""

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import floats, ints

FOLDS = {
    "add": 0,
    "mul": 1,
    "max": -(2**31),
    "min": 2**31 - 1,
    "bitwise_and": -1,
    "bitwise_or": 0,
    "bitwise_xor": 0,
}


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    broadcasting(corpus, jax, jnp, lax)
    weak_types(corpus, lax)
    sizes(corpus, jax, lax)
    composites(corpus, jax, lax)
    exchanges(corpus, jax, jnp, lax)
    return corpus


def broadcasting(corpus, jax, jnp, lax):
    x = floats(2, 3)
    for dimensions, shape in (
        ((1, 0), (3, 2)),
        ((2, 0), (3, 4, 2)),
        ((1, 1), (3, 3)),
        ((0, 0), (2, 3)),
        ((1, 0), (2, 3)),
    ):
        label = "_".join(map(str, (*dimensions, *shape)))
        corpus.add(
            f"broadcast_to_axes_{label}",
            lambda x, s=shape, d=dimensions: lax.broadcast_in_dim(x, s, d),
            x,
            modes=("jaxpr", "value", "jit"),
        )
    crossed = lambda x: lax.broadcast_in_dim(x, (3, 4, 2), (2, 0))
    for axis in range(3):
        corpus.add(
            f"broadcast_crossed_batch_{axis}",
            lambda x, a=axis: jax.vmap(crossed, a)(x),
            np.moveaxis(floats(5, 2, 3), 0, axis),
        )
    weights = floats(3, 4, 2)
    # Where an axis has size one, jax has this derivative too.
    corpus.add(
        "broadcast_crossed_gradient",
        lambda x, w: jax.grad(lambda x: (crossed(x) * w).sum())(x),
        floats(1, 3),
        weights,
    )
    keys = lambda: jax.random.split(jax.random.key(0), 6).reshape(2, 3)
    corpus.add(
        "broadcast_crossed_keys",
        lambda: jax.random.key_data(lax.broadcast_in_dim(keys(), (3, 4, 2), (2, 0))),
    )


def weak_types(corpus, lax):
    number = lambda value: lax.broadcast(value, (3,))
    for name, start in FOLDS.items():
        fold = lambda x, init, name=name: lax.reduce(x, init, getattr(lax, name), (0,))
        corpus.add(
            f"reduce_of_weak_{name}",
            lambda f=fold, s=start: [
                f(number(2), init) for init in (np.int32(s), s, np.array(s, "int32"))
            ],
        )
        corpus.add(
            f"reduce_of_integers_{name}",
            lambda x, f=fold, s=start: (f(x, s), f(x, np.int32(s))),
            ints(3),
            modes=("value", "jit"),
        )
    for name in ("add", "mul"):
        start = FOLDS[name]
        fold = lambda x, init, name=name: lax.reduce(x, init, getattr(lax, name), (0,))
        corpus.add(
            f"reduce_of_weak_floats_{name}",
            lambda f=fold, s=start: [
                f(number(2.0), np.float32(s)),
                f(number(2.0), float(s)),
                f(number(2j), np.complex64(s)),
                f(number(2j), complex(s)),
            ],
        )


def sizes(corpus, jax, lax):
    struct = jax.ShapeDtypeStruct
    top = lambda x: lax.top_k(x, 3)
    for shape in ((2**31 - 1,), (2**31,), (2**31 + 1,), (2, 2**32), (2**32, 4)):
        label = "_".join(map(str, shape))
        corpus.add(f"top_of_{label}", lambda s=shape: jax.eval_shape(top, struct(s, "int8")))

    @corpus.program()
    def pads_of_numpy_sizes():
        pads = lax.padtype_to_pads(np.array([10, 11]), np.array([3, 2]), np.array([2, 1]), "SAME")
        return [type(size).__name__ == "int" for pair in pads for size in pair], pads


def composites(corpus, jax, lax):
    body = lambda x, omit=None, k=1: x + 1

    def attributes(**given):
        """What the operation of the module says after its operand."""
        made = jax.jit(lambda x: lax.composite(body, "a.b")(x, **given)).lower(np.float32(1))
        (line,) = [line for line in made.as_text().splitlines() if "stablehlo.composite" in line]
        return line.split("%arg0")[-1]

    corpus.add(
        "composite_without_what_is_none",
        lambda: [attributes(omit=None, k=2), attributes(omit=None), attributes(k=3)],
        modes=("repr",),
    )
    corpus.add(
        "composite_of_none_alone",
        lambda x: jax.jit(lambda x: lax.composite(body, "a.b")(x, omit=None))(x),
        np.float32(1),
    )

    @corpus.program(np.float32(1))
    def composite_of_none_inside(x):
        return jax.jit(lambda x: lax.composite(body, "a.b")(x, omit=(None, 1)))(x)


def exchanges(corpus, jax, jnp, lax):
    def over_two(function):
        return jax.vmap(jax.vmap(function, axis_name="j"), axis_name="i")

    x = floats(2, 3, 6, 12)
    for names in (("i", "j"), ("j", "i")):
        for split, concat in ((0, 0), (0, 1), (1, 0), (1, 1)):

            def exchanged(x, names=names, split=split, concat=concat):
                call = lambda tiled: over_two(
                    lambda x: lax.all_to_all(x, names, split, concat, tiled=tiled)
                )
                return [call(tiled)(x) for tiled in ((True,) if split else (False, True))]

            label = f"{''.join(names)}_{split}{concat}"
            corpus.add(f"all_to_all_over_{label}", exchanged, x, modes=("value", "jit"))
        corpus.add(
            f"all_to_all_gradient_{''.join(names)}",
            lambda x, w, n=names: jax.grad(
                lambda x: (over_two(lambda x: lax.all_to_all(x, n, 0, 1))(x) * w).sum()
            )(x),
            x,
            floats(2, 3, 12, 6),
        )
        swapped = lambda x, n=names: over_two(lambda x: lax.pswapaxes(x, n, 0))(x)
        corpus.add(f"pswapaxes_over_{''.join(names)}", swapped, x)

    @corpus.program(floats(2, 2, 3, 12, 2))
    def all_to_all_over_three(x):
        inner = over_two(lambda x: lax.all_to_all(x, ("i", "k", "j"), 0, 1))
        return jax.vmap(inner, axis_name="k")(x)

    @corpus.program(floats(2, 3, 3, 2))
    def all_to_all_of_another_size(x):
        return over_two(lambda x: lax.all_to_all(x, ("i", "j"), 0, 1))(x)

    @corpus.program(floats(2, 3, 3, 2))
    def all_to_all_in_groups_over_two(x):
        groups = [[0, 1, 2], [3, 4, 5]]
        exchange = lambda x: lax.all_to_all(x, ("i", "j"), 0, 1, axis_index_groups=groups)
        return over_two(exchange)(x)
