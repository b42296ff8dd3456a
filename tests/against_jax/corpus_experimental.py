"""Small modules of jax.experimental: metadata of operations, LSTMs, generators with a state."""

import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus


def programs(jax, jnp, lax):
    corpus = Corpus(("value", "jit", "jaxpr"))

    def door(name):
        if isinstance(jax, Anything):
            return jax
        return importlib.import_module(f"{jax.__name__}.experimental.{name}")

    x = np.array([0.5, -1.0, 2.0], np.float32)
    set_xla_metadata = door("xla_metadata").set_xla_metadata
    compute_on = door("compute_on").compute_on
    xla_metadata_call = door("scheduling_groups").xla_metadata_call
    rnn = door("rnn")
    stateful_rng = door("random").stateful_rng

    def marked(x):
        with set_xla_metadata(name="value", number=2):
            y = jnp.sin(x) * 2
        return set_xla_metadata({"y": y, "x": x}, flag=True)

    def in_group(x):
        return door("scheduling_groups").scheduling_group("first")(lambda x: jnp.sin(x) * 2)(x)

    def on_host(x):
        return compute_on("device_host")(jax.jit(lambda x: jnp.sin(x) * 2))(x)

    @corpus.program(x)
    def metadata_of_values_and_blocks(x):
        return marked(x)

    @corpus.program(x)
    def metadata_under_derivatives(x):
        return jax.grad(lambda x: jnp.sum(marked(x)["y"]))(x), jax.vmap(marked)(x)

    @corpus.program(x)
    def metadata_as_decorator(x):
        return set_xla_metadata(name="f")(jnp.cos)(x)

    @corpus.program(x)
    def group(x):
        return in_group(x), jax.vmap(in_group)(x)

    @corpus.program(x)
    def gradient_of_group(x):
        return jax.grad(lambda x: jnp.sum(in_group(x)))(x)

    @corpus.program(x)
    def tree_of_group(x):
        return xla_metadata_call(lambda x, y: {"a": x * y, "b": (x, 2 * y)}, key="1")(x, y=x)

    @corpus.program(x)
    def host_computation(x):
        return on_host(x), jax.grad(lambda x: jnp.sum(on_host(x)))(x)

    @corpus.program(x, modes=("value",))
    def compute_type_without_meaning(x):
        with compute_on("moon"):
            return x

    def lstm(bidirectional):
        sizes = (3, 4, 2, bidirectional)
        key = jax.random.key(0)
        weights = rnn.init_lstm_weight(key, *sizes)
        first = jax.random.normal(key, ((4 if bidirectional else 2), 2, 4))
        inputs = jax.random.normal(key, (2, 5, 3))
        parts = rnn.unpack_lstm_weights(weights, *sizes)
        lengths = jnp.array([5, 3])

        def run(inputs, first, parts):
            states = first, first + 1
            return rnn.lstm_ref(inputs, *states, *parts, lengths, *sizes[:3], 0.0, bidirectional)

        gradients = jax.grad(lambda *a: jnp.sum(run(*a)[0] ** 2), (0, 1, 2))
        return run(inputs, first, parts), gradients(inputs, first, parts)

    def lstm_weights(bidirectional):
        sizes = (3, 4, 2, bidirectional)
        weights = jnp.arange(rnn.get_num_params_in_lstm(*sizes))
        return rnn.unpack_lstm_weights(weights, *sizes), rnn.swap_lstm_gates(weights, *sizes)

    for bidirectional in (False, True):
        name = "both_directions" if bidirectional else "one_direction"
        options = {"modes": ("value",), "tolerance": 1e-5}
        corpus.add(f"lstm_of_{name}", lstm, bidirectional, **options)
        corpus.add(f"lstm_weights_of_{name}", lstm_weights, bidirectional, modes=("value",))

    @corpus.program(modes=("value", "jit"))
    def stateful_draws():
        rng = stateful_rng(3)
        children = rng.spawn(2)
        return (
            rng.normal(size=3),
            rng.normal(jnp.ones(2), 3.0),
            rng.uniform(1, jnp.arange(2, 5)),
            rng.integers(7),
            rng.integers(2, 9, (2, 2), dtype="int8"),
            rng.random((2,)),
            jax.random.key_data(rng.key((2,))),
            children[0].random() - children[1].random(),
        )

    @corpus.program(modes=("value",))
    def stateful_draws_across_calls():
        rng = stateful_rng(5)
        draw = jax.jit(lambda rng: rng.normal(size=2))
        return draw(rng), draw(rng), jax.vmap(lambda rng: rng.random())(rng.split(3))

    return corpus
