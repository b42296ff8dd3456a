"""What experts ask of arrays: axes as lists, containers in operators, masks beside indices."""

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import floats, ints


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    axes(corpus, jax, jnp)
    containers(corpus, jax, jnp)
    masks_beside_indices(corpus, jnp)
    updates(corpus, jnp)
    weak_types(corpus, jax, jnp)
    refused(corpus, jnp)
    return corpus


def each(corpus, prefix, **functions):
    for name, function in functions.items():
        corpus.add(f"{prefix}_{name}", function)


def axes(corpus, jax, jnp):
    x = floats(2, 3)
    folds = (jnp.sum, jnp.prod, jnp.max, jnp.any, jnp.mean, jnp.var, jnp.ptp, jnp.average)

    @corpus.program(x)
    def axes_in_a_list(x):
        x = jnp.asarray(x)
        given = [
            fold(x, axis=axis)
            for fold in folds
            for axis in ([0, 1], [1], np.array(1), (np.int64(0), np.array(1)))
        ]
        return given, x.sum([0]), x.sum(axis=[]), x.mean(axis=list(range(2)), keepdims=True)

    @corpus.program(x)
    def axes_in_arrays(x):
        x = jnp.asarray(x)
        one = jnp.array(1)
        return (
            x.sum(axis=one),
            jnp.max(x, axis=jnp.array([0, 1])),
            jnp.argmax(x, one),
            jnp.flip(x, one),
            jnp.expand_dims(x, np.array(1)),
            jnp.roll(x, 1, one),
            jnp.take(x, 0, axis=np.array(1)),
            jnp.moveaxis(x, np.array(1), 0),
            jnp.stack([x, x], np.array(1)),
            jnp.concatenate([x, x], one),
        )

    @corpus.program(x, modes=("jit",))
    def axes_in_a_list_traced(x):
        return x.sum(axis=[0, 1]), jnp.mean(x, [1]), jax.grad(lambda x: jnp.var(x, axis=[0, 1]))(x)

    each(
        corpus,
        "axes",
        twice=lambda: jnp.sum(x, axis=[0, 0]),
        beyond=lambda: jnp.sum(x, axis=[5]),
        of_argmax=lambda: jnp.argmax(x, [0]),
        of_stack=lambda: jnp.stack([x, x], [0]),
    )


def containers(corpus, jax, jnp):
    x = jnp.asarray(ints(2))

    def extended():
        values = [1, 2]
        values += x
        return values

    each(
        corpus,
        "container",
        equal=lambda: x == [1, 2],
        unequal=lambda: x != (1, 2),
        less=lambda: x < [1, 2],
        of_nothing=lambda: x == {},
        a_set=lambda: {1} == x,
        repeated=lambda: [1] * jnp.array(3),
        reflected=lambda: (1, 2) + x,
        extended=extended,
        power=lambda: x ** [1, 2],
        reflected_power=lambda: [1, 2] ** x,
        matmul=lambda: x @ [1, 2],
        reflected_matmul=lambda: [1, 2] @ x,
        divmod=lambda: divmod(x, [1, 2]),
        traced=lambda: jax.jit(lambda x: x + [1, 2])(x),
        traced_equal=lambda: jax.jit(lambda x: x == [1, 2])(x),
        traced_power=lambda: jax.jit(lambda x: x ** (2,))(x),
        traced_matmul=lambda: jax.jit(lambda x: x @ [2, 3])(x),
        none_equal=lambda: (x == None, x != None, jax.jit(lambda x: x == None)(x)),  # noqa: E711
        text_equal=lambda: x == "text",
        none_in=lambda: None in x,
        text_in=lambda: "text" in x,
        list_in=lambda: [1] in x,
        number_in=lambda: (np.int64(1) in x, jnp.array(7) in x, 1.5 in x),
    )


def masks_beside_indices(corpus, jnp):
    zeros = jnp.zeros((2, 3))
    row, columns = jnp.array([True, False]), jnp.array([True, False, True])
    each(
        corpus,
        "mask",
        beside_integers=lambda: zeros.at[row, jnp.array([1, 2])].set(7),
        beside_a_scalar=lambda: zeros.at[row, jnp.array(1)].add(7),
        beside_a_mask=lambda: zeros.at[jnp.array([True, True]), columns].set(7),
        beside_masks_that_differ=lambda: zeros.at[row, columns].add(7),
        beside_a_new_axis=lambda: (zeros.at[None, row].set(7), zeros.at[row, None].add(7)),
        beside_true=lambda: zeros.at[row, True].add(7),
        beside_a_row=lambda: zeros.at[jnp.array([0]), columns].power(2),
        beside_a_slice=lambda: zeros.at[::-1, columns].multiply(7),
        beside_an_ellipsis=lambda: zeros.at[..., columns].max(7),
        of_rows=lambda: zeros.at[row].set(floats(3)),
        too_long=lambda: zeros.at[columns].set(7),
    )


def updates(corpus, jnp):
    x = jnp.arange(6)
    twice = jnp.array([1, 1])
    each(
        corpus,
        "updated",
        repeatedly=lambda: (
            x.at[twice].add(jnp.array([1, 2])),
            x.at[twice].multiply(3),
            x.at[twice].power(2),
            x.at[twice].divide(2),
            x.at[twice].min(jnp.array(0.5)),
            x.at[twice].apply(lambda x: x * 10),
        ),
        narrow=lambda: (
            x.astype("uint8").at[twice].subtract(5),
            x.astype("int8").at[0].set(300),
            x.astype("int4").at[twice].set(-3),
        ),
        from_the_end=lambda: [
            x.at[jnp.array([0, -1])].set(5, wrap_negative_indices=False),
            x.at[jnp.array([0, -9])].get(mode="fill", wrap_negative_indices=False),
            x.at[-1:].set(5, wrap_negative_indices=False),
        ],
        filled=lambda: [
            x.astype(dtype).at[7].get(mode="fill")
            for dtype in ("int32", "uint8", "bool", "complex64", "bfloat16", "int4")
        ],
        with_an_empty_index=lambda: (
            x.at[jnp.zeros(0, int)].set(2),
            x.at[3:3].set(5),
            x.at[False].set(5),
            x.at[None, 2].set(5),
        ),
    )


def weak_types(corpus, jax, jnp):
    weak = jnp.atleast_1d(1.0)
    couples = ((1, 2), (1.0, 2), (jnp.int8(1), 4.0), (weak, 4.0), (np.float32(1), 2), (True, 4.0))
    each(
        corpus,
        "weak",
        logarithms=lambda: [jnp.logaddexp2(x, y) for x, y in couples],
        lengths=lambda: [jnp.hypot(x, y) for x, y in couples],
        steps=lambda: [jnp.heaviside(x, y) for x, y in couples],
        derivative=lambda: jax.grad(jnp.logaddexp2)(1.0, 2.0),
        sets=lambda: (
            jnp.unique(3.0),
            jnp.unique(3, size=2),
            jnp.unique_all(3.0),
            jnp.intersect1d(1.0, 1.0, return_indices=True),
            jnp.union1d(1.0, jnp.array([2])),
            jnp.union1d(1.0, jnp.array([2.0])),
            jnp.setdiff1d(1.0, jnp.array([2.0])),
            jnp.setdiff1d(1.0, 2.0, size=2),
            jnp.setxor1d(1.0, 2.0),
        ),
        truth=lambda: [
            function(x, y)
            for function in (jnp.logical_and, jnp.logical_or, jnp.logical_xor)
            for x, y in (*couples, (weak, weak), (weak, True), (jnp.array([True]), 2.5), (2, 3))
        ],
        negation=lambda: [jnp.logical_not(x) for x in (weak, 1.0, True, jnp.array([0.0]))],
        inserted=lambda: (jnp.insert(3.0, 0, 2), jnp.insert(1j, 0, 2), jnp.insert(1, 0, 2.7)),
        chosen=lambda: [
            jnp.choose(jnp.array([0, 1]), given) for given in ([1, 2], (1.0, 2), [weak, 2])
        ],
        diagonal=lambda: (jnp.diag(weak), jnp.diagflat(weak), jnp.vander(weak)),
    )


def refused(corpus, jnp):
    each(
        corpus,
        "refused",
        text=lambda: jnp.sin("text"),
        nothing=lambda: jnp.matmul(None, 1),
        texts=lambda: jnp.sin(np.array(["text"])),
        text_as_end=lambda: jnp.linspace("text", 1),
        half_a_number=lambda: jnp.linspace(0, 1, 2.5),
        no_step=lambda: jnp.arange(0, 5, 0),
    )
