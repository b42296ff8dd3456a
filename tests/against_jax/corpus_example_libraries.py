"""The example libraries against the reference: optimizers, schedules, layers, and their shapes."""

import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus

W = np.array([[1.0, -2.0, 0.5], [0.3, 0.0, -1.0]], np.float32)
B = np.float32(0.7)


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    optimizers = stax = jax
    if not isinstance(jax, Anything):
        optimizers = importlib.import_module(f"{jax.__name__}.example_libraries.optimizers")
        stax = importlib.import_module(f"{jax.__name__}.example_libraries.stax")
    steps(corpus, optimizers, jax, jnp)
    schedules(corpus, optimizers)
    norms_and_states(corpus, optimizers, jax, jnp)
    layers(corpus, stax, jax)
    networks(corpus, stax, jax, jnp)
    return corpus


def steps(corpus, optimizers, jax, jnp):
    decay = optimizers.exponential_decay(0.1, 2, 0.5)
    for name, *args in (
        ("sgd", 0.1),
        ("sgd", decay),
        ("momentum", 0.1, 0.9),
        ("nesterov", decay, 0.8),
        ("adagrad", 0.1),
        ("adagrad", 0.1, 0.5),
        ("rmsprop", 0.1),
        ("rmsprop", decay, 0.8, 1e-6),
        ("rmsprop_momentum", 0.1),
        ("adam", 0.1),
        ("adam", decay, 0.8, 0.9, 1e-6),
        ("adamax", 0.1),
        ("sm3", 0.1),
        ("sm3", decay, 0.5),
    ):

        def three_steps(w, b, name=name, args=args):
            made = getattr(optimizers, name)(*args)
            params = {"w": jnp.asarray(w), "b": [jnp.asarray(b)]}
            state = made.init_fn(params)
            for i in range(3):
                gradient = jax.tree.map(lambda x: x * x - 0.1 * i, made.params_fn(state))
                state = made.update_fn(i, gradient, state)
            return state, made.params_fn(state)

        shown = "_".join("decay" if callable(x) else str(x) for x in args)
        corpus.add(f"{name}_{shown}", three_steps, W, B, tolerance=1e-5)


def schedules(corpus, optimizers):
    for name, *args in (
        ("constant", 0.1),
        ("exponential_decay", 0.1, 10, 0.5),
        ("inverse_time_decay", 0.1, 10, 0.5),
        ("inverse_time_decay", 0.1, 10, 0.5, True),
        ("polynomial_decay", 0.1, 10, 0.01),
        ("polynomial_decay", 0.1, 10, 0.01, 2.0),
        ("piecewise_constant", [2, 6], [1.0, 0.5, 0.1]),
        ("make_schedule", 0.3),
    ):

        def sizes(i, name=name, args=args):
            size = getattr(optimizers, name)(*args)
            return [size(0), size(7), size(i)]

        corpus.add(f"{name}_{len(args)}", sizes, np.int32(4), modes=("jit",), tolerance=1e-6)
    for name, call in (
        ("lengths", lambda: optimizers.piecewise_constant([2, 6], [1.0, 0.5])),
        ("tables", lambda: optimizers.piecewise_constant([[2, 6]], [1.0, 0.5, 0.3])),
        ("a_list", lambda: optimizers.make_schedule([1.0, 2.0])),
    ):
        corpus.add(f"refused_{name}", call)


def norms_and_states(corpus, optimizers, jax, jnp):
    for limit in (1.0, 100.0):
        corpus.add(f"clip_{limit}", lambda x, n=limit: optimizers.clip_grads({"x": x}, n), W)
    corpus.add("norm", lambda x: optimizers.l2_norm([x, (x,)]), W, tolerance=1e-6)
    corpus.add("norm_of_complex", optimizers.l2_norm, np.complex64(3 + 4j))

    @corpus.program(W)
    def packed_and_unpacked(w):
        made = optimizers.adam(0.1)
        marked = optimizers.unpack_optimizer_state(made.init_fn({"w": w}))
        again = optimizers.pack_optimizer_state(marked)
        return marked["w"].subtree, made.params_fn(again)

    @corpus.program(W)
    def other_gradients(w):
        made = optimizers.sgd(0.1)
        return made.update_fn(0, {"v": w}, made.init_fn({"w": w}))

    @corpus.program(W)
    def other_states(w):
        made = optimizers.optimizer(
            lambda: ((lambda x: (x, x)), (lambda i, g, x: x[0]), (lambda x: x[0]))
        )()
        return made.update_fn(0, w, made.init_fn(w))


def layers(corpus, stax, jax):
    image, table = (2, 5, 5, 3), (2, 4)
    for name, layer, shape in (
        ("dense", stax.Dense(3), table),
        ("conv", stax.Conv(3, (2, 2)), image),
        ("conv_strides", stax.Conv(3, (2, 3), (2, 2), "SAME"), image),
        ("conv_transpose", stax.ConvTranspose(3, (2, 2), (2, 2), "SAME"), image),
        ("conv_1d_transpose", stax.Conv1DTranspose(3, (2,), (2,)), (2, 5, 3)),
        ("conv_axes", stax.GeneralConv(("NCHW", "OIHW", "NHWC"), 4, (2, 2)), (2, 3, 5, 6)),
        ("norm", stax.BatchNorm(), image),
        ("norm_uncentered", stax.BatchNorm(axis=(0, 1), center=False), (2, 5, 3)),
        ("norm_unscaled", stax.BatchNorm(axis=0, scale=False), table),
        ("max_pool", stax.MaxPool((2, 2)), image),
        ("sum_pool", stax.SumPool((2, 2), (2, 1), "SAME"), image),
        ("avg_pool", stax.AvgPool((2, 2), (2, 2), "SAME"), image),
        ("avg_pool_axes", stax.AvgPool((2, 3), spec="NCHW"), (2, 3, 5, 6)),
        ("flatten", stax.Flatten, image),
        ("fan_out", stax.FanOut(2), table),
        ("dropout", stax.Dropout(0.5), table),
        ("no_dropout", stax.Dropout(0.5, "test"), table),
        *((name, getattr(stax, name), table) for name in ("Gelu", "LogSoftmax", "Softplus")),
    ):

        def applied(layer=layer, shape=shape):
            init, apply = layer
            output_shape, params = init(jax.random.key(1), shape)
            inputs = jax.random.normal(jax.random.key(2), shape)
            sizes = jax.tree.map(int, output_shape)
            return sizes, params, apply(params, inputs, rng=jax.random.key(3))

        corpus.add(f"layer_{name}", applied, tolerance=1e-5)

    corpus.add("refused_dropout", lambda: stax.Dropout(0.5)[1]((), W))


def networks(corpus, stax, jax, jnp):
    @corpus.program(W, tolerance=1e-5)
    def branches(x):
        init, apply = stax.serial(
            stax.Dense(4),
            stax.Dropout(0.5),
            stax.FanOut(3),
            stax.parallel(stax.Dense(2), stax.Identity, stax.serial(stax.Relu, stax.Dense(2))),
            stax.FanInConcat(),
            stax.shape_dependent(lambda shape: stax.Dense(shape[-1] // 2)),
            stax.FanOut(2),
            stax.FanInSum,
            stax.Softmax,
        )
        shape, params = init(jax.random.key(0), x.shape)
        return jax.tree.map(int, shape), params, apply(params, x, rng=jax.random.key(1))

    @corpus.program(W)
    def own_function(x):
        init, apply = stax.elementwise(lambda x, factor: factor * x, factor=2)
        return init(None, x.shape), apply((), jnp.asarray(x))
