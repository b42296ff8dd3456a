"""vmap of whole functions, with every spelling of its axes: values, types, numbers of equations."""

import collections

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import bf16, bools, complexes, floats, ints, unit

Pair = collections.namedtuple("Pair", ["first", "second"])


def programs(jax, jnp, lax):
    corpus = Corpus(("equations", "jit"))
    axes(corpus, jax, jnp)
    trees(corpus, jax, jnp)
    results(corpus, jax, jnp)
    nested(corpus, jax, jnp, lax)
    with_derivatives(corpus, jax, jnp, lax)
    functions(corpus, jax, jnp, lax)
    return corpus


def axes(corpus, jax, jnp):
    everywhere = ("equations", "jit", "value")

    @corpus.program(floats(4, 3), unit(4, 3), modes=everywhere)
    def dot_products(x, y):
        return jax.vmap(jnp.dot)(x, y)

    @corpus.program(floats(4, 3), unit(3), modes=everywhere)
    def shared_argument(x, y):
        return jax.vmap(jnp.dot, in_axes=(0, None))(x, y)

    @corpus.program(floats(3, 4), unit(4, 3))
    def axes_that_differ(x, y):
        return jax.vmap(jnp.dot, in_axes=(1, 0))(x, y)

    @corpus.program(floats(2, 3, 4), unit(4, 3))
    def negative_axes(x, y):
        return jax.vmap(lambda x, y: x @ y, in_axes=(-1, -2))(x, y)

    @corpus.program(floats(3, 4))
    def one_axis_for_all(x):
        return jax.vmap(lambda x, y: x * y.sum(), in_axes=1)(x, x)

    @corpus.program(floats(3, 4), unit(2))
    def list_of_axes(x, y):
        return jax.vmap(lambda x, y: jnp.outer(x, y), in_axes=[1, None])(x, y)

    @corpus.program(floats(3), modes=everywhere)
    def axis_size_alone(x):
        return jax.vmap(lambda x: x * 2, in_axes=None, axis_size=4)(x)

    @corpus.program(floats(3))
    def axis_size_and_an_axis(x):
        return jax.vmap(lambda x, y: x + y, in_axes=(0, None), axis_size=3)(x, 2.0)

    @corpus.program(floats(3, 2), keywords={"scale": unit(3)})
    def keywords_are_mapped_over_their_first_axis(x, *, scale):
        return jax.vmap(lambda x, scale: x * scale)(x, scale=scale)

    @corpus.program(floats(0, 2))
    def batches_of_none(x):
        return jax.vmap(lambda x: jnp.sin(x).sum())(x)

    @corpus.program(floats(1, 2))
    def batches_of_one(x):
        return jax.vmap(lambda x: x[::-1] * x)(x)


def trees(corpus, jax, jnp):
    @corpus.program({"a": floats(3, 2), "b": (unit(2, 3), np.float32(2))})
    def axes_as_a_tree(tree):
        f = lambda t: t["a"] @ t["b"][0] * t["b"][1]
        return jax.vmap(f, in_axes=({"a": 0, "b": (1, None)},))(tree)

    @corpus.program({"a": floats(3, 2), "b": (unit(3), unit(3, 1))}, unit(2))
    def axes_as_a_prefix(tree, y):
        f = lambda t, y: t["a"] * y * t["b"][0] + t["b"][1]
        return jax.vmap(f, in_axes=({"a": 0, "b": 0}, None))(tree, y)

    @corpus.program(Pair(floats(3, 2), unit(2)))
    def named_tuples(pair):
        return jax.vmap(lambda p: Pair(p.first.sum(), p.second), in_axes=(Pair(0, None),))(pair)

    @corpus.program(None, floats(3))
    def none_as_an_argument(nothing, x):
        return jax.vmap(lambda nothing, x: (nothing, x + 1))(nothing, x)

    @corpus.program(floats(3, 2))
    def tree_of_results(x):
        return jax.vmap(lambda x: {"sum": x.sum(), "all": [x, (x[0], 1, None)]})(x)


def results(corpus, jax, jnp):
    @corpus.program(floats(3, 2))
    def results_along_the_last_axis(x):
        return jax.vmap(lambda x: jnp.outer(x, x), out_axes=-1)(x)

    @corpus.program(floats(3, 2))
    def results_along_axes_that_differ(x):
        f = lambda x: (jnp.outer(x, x), {"a": x})
        return jax.vmap(f, out_axes=(1, {"a": -1}))(x)

    @corpus.program(floats(3, 2), unit(2))
    def results_without_an_axis(x, y):
        return jax.vmap(lambda x, y: (x + y, y * 2), in_axes=(0, None), out_axes=(0, None))(x, y)

    @corpus.program(floats(3, 2))
    def results_that_are_constants(x):
        return jax.vmap(lambda x: (1, 2.5, True, np.arange(2), x))(x)

    @corpus.program(floats(3, 2), unit(2))
    def results_that_do_not_depend(x, y):
        return jax.vmap(lambda x, y: (jnp.sin(y), x), in_axes=(0, None), out_axes=1)(x, y)


def nested(corpus, jax, jnp, lax):
    @corpus.program(floats(3, 2), unit(4, 2), modes=("equations", "jit", "value"))
    def every_pair(x, y):
        return jax.vmap(lambda a: jax.vmap(lambda b: jnp.sum((a - b) ** 2))(y))(x)

    @corpus.program(floats(3, 2), unit(4, 2))
    def every_pair_by_axes(x, y):
        distance = lambda a, b: jnp.sqrt(jnp.sum((a - b) ** 2))
        return jax.vmap(jax.vmap(distance, (None, 0)), (0, None))(x, y)

    @corpus.program(floats(2, 3, 4, 5))
    def three_deep(x):
        f = lambda x: jnp.cumsum(x) / (1 + x * x).sum()
        return jax.vmap(jax.vmap(jax.vmap(f, out_axes=-1), in_axes=-1), in_axes=1, out_axes=2)(x)

    @corpus.program(floats(3, 4))
    def same_axis_twice(x):
        return jax.vmap(lambda row: jax.vmap(lambda e: e * row.sum() + x.max())(row))(x)

    @corpus.program(floats(3, 4))
    def of_jit_and_in_jit(x):
        inner = jax.jit(lambda x: jnp.sin(x) * 2)
        return jax.vmap(lambda x: inner(inner(x)).sum())(x), jax.vmap(inner, in_axes=1)(x)


def with_derivatives(corpus, jax, jnp, lax):
    def loss(w, x, y):
        return jnp.mean((jnp.tanh(x @ w) - y) ** 2)

    @corpus.program(floats(3, 2), unit(5, 3), floats(5, 2), tolerance=1e-5)
    def gradients_of_each_example(w, x, y):
        return jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(w, x, y)

    @corpus.program(floats(3, 2), unit(5, 3), floats(5, 2), tolerance=1e-5)
    def gradient_of_the_mean_over_examples(w, x, y):
        return jax.grad(lambda w: jax.vmap(loss, (None, 0, 0))(w, x, y).mean())(w)

    @corpus.program(unit(4, 3), tolerance=1e-5)
    def vmap_of_grad_of_vmap(x):
        inner = lambda x: jax.vmap(lambda e: jnp.sin(e) * e)(x).sum()
        return jax.vmap(jax.grad(inner))(x)

    @corpus.program(unit(4, 3), floats(4, 3))
    def vmap_of_jvp_and_vjp(x, v):
        f = lambda x: jnp.exp(x) * x[0]
        pushed = jax.vmap(lambda x, v: jax.jvp(f, (x,), (v,)))(x, v)
        return pushed, jax.vmap(lambda x, v: jax.vjp(f, x)[1](v))(x, v)

    @corpus.program(unit(3), np.eye(3, dtype=np.float32))
    def jacobian_by_hand(x, basis):
        f = lambda x: jnp.outer(x, x)[0] * jnp.cos(x)
        pushed = lambda v: jax.jvp(f, (x,), (v,))[1]
        return jax.vmap(pushed, out_axes=-1)(basis), jax.vmap(jax.vjp(f, x)[1])(basis)

    @corpus.program(unit(4, 3), tolerance=1e-5)
    def hessians_of_each_example(x):
        return jax.vmap(jax.hessian(lambda x: jnp.log(jnp.sum(jnp.exp(x * x)))))(x)

    @corpus.program(unit(2, 3, 4), floats(4, 4), tolerance=1e-5)
    def jvp_of_vmap_of_grad(x, w):
        gradients = jax.vmap(jax.grad(lambda x: jnp.sum(jnp.sin(x @ w))))
        return jax.jvp(gradients, (x,), (x,))


def functions(corpus, jax, jnp, lax):
    for name, function, *args in (
        ("matmul", lambda a, b: a @ b, floats(3, 2, 4), unit(3, 4, 2)),
        ("matrix_vector", lambda a, b: a @ b, floats(3, 2, 4), unit(3, 4)),
        ("einsum", lambda a, b: jnp.einsum("ij,kj->ki", a, b), floats(3, 2, 4), unit(3, 5, 4)),
        ("sums", lambda x: (x.sum(), x.mean(0), x.max(-1), x.any()), floats(3, 2, 4)),
        ("order", lambda x: (jnp.sort(x), jnp.argsort(x), lax.top_k(x, 2)), floats(3, 5)),
        ("cumulative", lambda x: (jnp.cumsum(x, 0), jnp.cumprod(x, 1)), unit(3, 2, 4)),
        ("shapes", lambda x: (x.T, x.reshape(-1), x[None], jnp.flip(x, 0)), floats(3, 2, 4)),
        ("joined", lambda x, y: jnp.concatenate([x, y, x]), floats(3, 2), unit(3, 1)),
        ("padded", lambda x: jnp.pad(x, (1, 2)), floats(3, 4)),
        ("chosen", lambda m, x: jnp.where(m, x, -x), bools(3), floats(3, 4)),
        ("chosen_each", lambda m, x: jnp.where(m, x, 0), bools(3, 4), floats(3, 4)),
        ("taken", lambda x, i: x[i], floats(3, 5), ints(3, 2) % np.int32(5)),
        ("taken_alone", lambda x, i: x[i], floats(3, 5), ints(3) % np.int32(5)),
        ("put", lambda x, i: x.at[i].set(1.0), floats(3, 5), ints(3, 2) % np.int32(5)),
        ("added", lambda x, i, y: x.at[i].add(y), floats(3, 5), ints(3) % np.int32(5), unit(3)),
        (
            "dynamic_slice",
            lambda x, i: lax.dynamic_slice(x, (i,), (2,)),
            floats(3, 5),
            ints(3) % np.int32(4),
        ),
        (
            "dynamic_update",
            lambda x, i, y: lax.dynamic_update_slice(x, y, (i,)),
            floats(3, 5),
            ints(3) % np.int32(4),
            unit(3, 2),
        ),
        (
            "convolution",
            lambda x, k: lax.conv_general_dilated(x, k, (1,), "SAME"),
            floats(3, 2, 4, 6),
            unit(3, 5, 4, 2),
        ),
        ("complex", lambda z: (jnp.abs(z), jnp.conj(z) * z, z.real), complexes(3, 2)),
        ("narrow", lambda x: (x * 2, jnp.exp(x).sum()), floats(3, 4, dtype=bf16)),
        ("integers", lambda i: (i // 2, i % 3, i << 1, i.sum()), ints(3, 4)),
        ("made", lambda x: (jnp.zeros(2), jnp.arange(3) + x, jnp.eye(2) * x), floats(3)),
    ):
        mapped = lambda *args, function=function: jax.vmap(function)(*args)
        # Sums of bfloat16 are rounded in the order in which XLA fuses them.
        tolerance = 2.0**-7 if name == "narrow" else 1e-5
        corpus.add(f"all_{name}", mapped, *args, tolerance=tolerance)
        if len(args) > 1:
            for place in range(len(args)):
                in_axes = tuple(0 if i == place else None for i in range(len(args)))
                shared = [x if i == place else x[0] for i, x in enumerate(args)]
                alone = lambda *args, function=function, in_axes=in_axes: jax.vmap(
                    function, in_axes=in_axes
                )(*args)
                corpus.add(f"only_{place}_{name}", alone, *shared, tolerance=1e-5)

    @corpus.program(floats(3, 4), floats(4, 8), unit(8, 2), tolerance=1e-5)
    def network(x, first, second):
        def one(x):
            hidden = jnp.tanh(x @ first)
            logits = hidden @ second
            return logits - jnp.log(jnp.sum(jnp.exp(logits)))

        return jax.vmap(one)(x)

    @corpus.program(floats(4, 3, 5), floats(4, 3, 5), unit(4, 3, 5), tolerance=1e-5)
    def attention_head_by_head(query, key, value):
        def head(query, key, value):
            scores = query @ key.T / np.sqrt(5)
            weights = jnp.exp(scores - scores.max(-1, keepdims=True))
            return (weights / weights.sum(-1, keepdims=True)) @ value

        return jax.vmap(head, in_axes=1, out_axes=1)(query, key, value)
