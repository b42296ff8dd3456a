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

    # ---- dtypes whose tangents have another dtype

    experimental = (
        jax
        if isinstance(jax, Anything)
        else importlib.import_module(f"{jax.__name__}.experimental")
    )
    quantized = experimental.primal_tangent_dtype("int8", "bfloat16")
    halved = experimental.primal_tangent_dtype("float32", "float16", name="halved")
    numbers = np.array([3, -1, 4], np.int8)

    def to(x, dtype=quantized):
        return lax.convert_element_type(x, dtype)

    @jax.custom_vjp
    def dequantized(y):
        return lax.convert_element_type(y, "int8").astype("float32")

    dequantized.defvjp(
        lambda y: (dequantized(y), None), lambda _, ct: ((ct * 3).astype("bfloat16"),)
    )

    @jax.custom_vjp
    def rounded(x):
        return to(jnp.round(x).astype("int8"))

    rounded.defvjp(lambda x: (rounded(x), None), lambda _, ct: (ct.astype("float32"),))

    @corpus.program(numbers, modes=("jit", "jaxpr"))
    def extended_there_and_back(i):
        return lax.convert_element_type(to(i), "int8") * 2, to(i).astype("int8")

    @corpus.program(numbers, modes=("jit",))
    def extended_is_moved(i):
        y = jnp.concatenate([to(i)[1:], to(i)[::-1]]).reshape(5, 1).T
        chosen = jnp.where(i > 0, to(i), to(i + 1))
        return lax.convert_element_type(y, "int8"), lax.convert_element_type(chosen, "int8")

    @corpus.program(x, modes=("jit", "jaxpr"))
    def extended_gradient(x):
        return jax.value_and_grad(lambda x: dequantized(rounded(x)).sum())(x)

    @corpus.program(x, modes=("jit", "jaxpr"))
    def extended_tangents(x):
        there_and_back = lambda x: lax.convert_element_type(to(x, halved), "float32")
        return jax.grad(lambda x: there_and_back(x).sum())(x)

    @corpus.program(x, modes=("jit",))
    def extended_in_loops(x):
        f = lambda x: lax.scan(lambda c, y: (c, dequantized(y)), 0.0, rounded(x))[1].sum()
        cond = lax.cond(x[0] > 0, to, lambda i: to(i + 1), numbers)
        return jax.grad(f)(x), jax.vmap(lambda i: lax.convert_element_type(to(i), "int8"))(
            lax.convert_element_type(cond, "int8")
        )

    @corpus.program(x)
    def extended_of_another_dtype(x):
        return jax.eval_shape(to, x)

    @corpus.program(numbers)
    def extended_to_another_dtype(i):
        return jax.eval_shape(lambda i: lax.convert_element_type(to(i), "float32"), i)

    @corpus.program(numbers)
    def extended_in_sums(i):
        return jax.eval_shape(lambda i: to(i) + to(i), i)

    @corpus.program(modes=("repr",))
    def extended_names():
        tangent = jax.core.ShapedArray((4,), quantized).to_tangent_aval()
        subtypes = [jnp.issubdtype(quantized, kind) for kind in (jax.dtypes.extended, np.inexact)]
        again = experimental.primal_tangent_dtype(jnp.int8, jnp.bfloat16)
        return quantized, halved, tangent, subtypes, quantized == again, quantized == halved

    @corpus.program(modes=("repr",))
    def array_of_extended_dtype():
        key = jax.random.key(3)
        array = experimental.EArray(jax.typeof(key), jax.random.key_data(key))
        facts = array.shape, array.dtype, array.ndim, array.size, array.itemsize, array.committed
        drawn = float(jax.random.uniform(array)), float(jax.jit(jax.random.uniform)(array))
        return array, facts, drawn, isinstance(array, jax.Array), len(jax.tree.leaves(array))

    return corpus
