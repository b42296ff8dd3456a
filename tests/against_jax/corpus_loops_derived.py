"""What is made of loops: derivatives and batched forms of scan, map and associative_scan."""

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import bf16, floats, unit

# Of what has no derivatives.
TEXT = ("jaxpr", "jit")


def programs(jax, jnp, lax):
    # Their text differs: there are at most as many equations.
    corpus = Corpus(("jit", "equations"))
    derivatives(corpus, jax, jnp, lax)
    batched(corpus, jax, jnp, lax)
    models(corpus, jax, jnp, lax)
    return corpus


def derivatives(corpus, jax, jnp, lax):
    w, c, xs = floats(3, 3) / 3, floats(3), floats(5, 3)

    def rnn(w, c, xs, **options):
        return lax.scan(lambda c, x: (jnp.tanh(w @ c + x), c), c, xs, **options)

    def loss(w, c, xs, **options):
        last, ys = rnn(w, c, xs, **options)
        return last.sum() + (ys * ys).sum()

    def add(name, function, *args):
        corpus.add(name, function, *args, tolerance=1e-5)

    add("jvp_of_rnn", lambda w, c, xs: jax.jvp(rnn, (w, c, xs), (w, c, xs)), w, c, xs)
    add("grad_of_rnn", jax.value_and_grad(loss, (0, 1, 2)), w, c, xs)
    add("grad_in_reverse", jax.grad(lambda *a: loss(*a, reverse=True), (0, 2)), w, c, xs)
    add("grad_unrolled", jax.grad(lambda *a: loss(*a, unroll=2), (0, 2)), w, c, xs)
    add("linearized", lambda w: jax.linearize(lambda w: rnn(w, c, xs), w)[1](w), w)
    add("hessian_through_scan", jax.hessian(lambda c: loss(w, c, xs)), c)
    add("reverse_over_reverse", jax.jacrev(jax.jacrev(lambda c: rnn(w, c, xs)[0])), c)
    add("reverse_over_forward", jax.jacrev(jax.jacfwd(lambda c: rnn(w, c, xs)[0])), c)

    def third(x):
        return lax.scan(lambda c, x: (jnp.sin(c * x), None), x, xs[:, 0])[0]

    add("third_derivative", jax.grad(jax.grad(jax.grad(third))), 1.25)

    def counted(x):
        def step(c, _):
            return (c[0] + 1, jnp.sin(c[1]) * x + c[0]), c[1]

        return lax.scan(step, (0, 1.5), None, length=4)[0][1]

    add("grad_with_a_counter", jax.grad(counted), 2.0)

    def invariant(p):
        def step(c, x):
            return jnp.sin(jnp.exp(p).T @ c + x * jnp.sum(p**2)), c

        return lax.scan(step, c, xs)[0].sum()

    add("grad_with_what_all_steps_share", jax.grad(invariant), w)

    def doubly(w):
        # Contracting: an expanding recurrence would amplify differences between processors.
        def outer(c, x):
            return lax.scan(lambda d, y: (jnp.sin(0.2 * jnp.exp(w) @ d + y * x), d.sum()), c, xs)

        return lax.scan(outer, c, xs)[1].sum()

    add("grad_of_scan_of_scan", jax.grad(doubly), w)

    def in_bf16(w):
        def step(c, x):
            return jnp.tanh((w.astype(bf16) @ c.astype(bf16)).astype(np.float32) + x), None

        return lax.scan(step, c, xs)[0].sum()

    corpus.add("grad_in_bf16", jax.grad(in_bf16), w, tolerance=2e-2)
    add("grad_of_map", jax.grad(lambda w: lax.map(lambda x: jnp.sin(w @ x).sum(), xs).sum()), w)
    # Its equations are not counted: jax slices the constant operand outside of the program.
    corpus.add(
        "grad_of_map_in_batches",
        jax.grad(lambda w: lax.map(lambda x: jnp.sin(w @ x).sum(), xs, batch_size=2).sum()),
        w,
        modes=("jit",),
    )
    add(
        "grad_of_no_steps",
        jax.grad(lambda w: lax.scan(lambda c, x: (w @ c + x, c), c, xs[:0])[0].sum() + w.sum()),
        w,
    )

    def affine(x):
        def step(c, _):
            return (c[0] + 1, c[1] + c[0] * x[0]), c[1] * 2.0

        return lax.scan(step, (0, x[1]), None, length=4)[1]

    # Its equations are not counted: jax runs what is known when the function is transposed.
    corpus.add(
        "linear_transpose", jax.linear_transpose(affine, (3.0, 4.0)), floats(4), modes=("jit",)
    )

    def integers_collected(w):
        last, places = lax.scan(lambda c, x: (jnp.sin(w @ c + x), jnp.argmax(c)), c, xs)
        return last.sum(), places

    add("grad_with_integers_collected", jax.grad(integers_collected, has_aux=True), w)


def batched(corpus, jax, jnp, lax):
    w, c, xs = floats(3, 3) / 3, floats(3), floats(5, 3)

    def rnn(w, c, xs):
        return lax.scan(lambda c, x: (jnp.tanh(w @ c + x), c), c, xs)

    def add(name, function, *args):
        corpus.add(name, function, *args, tolerance=1e-5)

    several = floats(4, 3)
    add("vmap_of_carry", jax.vmap(rnn, (None, 0, None)), w, several, xs)
    add("vmap_of_constants", jax.vmap(rnn, (0, None, None)), np.stack([w, 2 * w]), c, xs)
    add("vmap_of_xs", jax.vmap(rnn, (None, None, 0)), w, c, np.stack([xs, 2 * xs]))
    add(
        "vmap_of_all_at_other_axes",
        jax.vmap(rnn, (2, 1, 2), (0, 2)),
        np.stack([w, 2 * w], 2),
        several[:2].T,
        np.stack([xs, 2 * xs], 2),
    )

    def loss(w, c):
        return rnn(w, c, xs)[1].sum()

    # Its equations are not counted: our tanh keeps one residual, and has an equation more.
    corpus.add(
        "vmap_of_grad", jax.vmap(jax.grad(loss, (0, 1)), (None, 0)), w, several, modes=("jit",)
    )
    add(
        "grad_of_vmap",
        jax.grad(lambda w, c: jax.vmap(loss, (None, 0))(w, c).sum(), (0, 1)),
        w,
        several,
    )
    add("vmap_of_vmap", jax.vmap(jax.vmap(loss, (None, 0)), (0, None)), np.stack([w, -w]), several)
    add(
        "collective_in_a_step",
        jax.vmap(
            lambda x: lax.scan(lambda c, _: (c + lax.psum(x, "i"), None), x, None, length=2),
            axis_name="i",
        ),
        floats(3),
    )
    add(
        "axis_index_in_a_step",
        jax.vmap(
            lambda x: lax.scan(lambda c, _: (c + lax.axis_index("i"), x), 0, None, length=2),
            axis_name="i",
        ),
        floats(3),
    )
    add("vmap_of_map", jax.vmap(lambda x: lax.map(jnp.sin, x), 1), several)
    add(
        "vmap_of_associative_scan",
        jax.vmap(lambda x: lax.associative_scan(jnp.add, x), 1, 1),
        several,
    )


def models(corpus, jax, jnp, lax):
    def add(name, function, *args):
        corpus.add(name, function, *args, tolerance=1e-5)

    params = {"x": floats(4, 12) / 4, "h": floats(3, 12) / 4, "b": unit(12)}
    inputs, targets = floats(6, 2, 4), unit(6, 2, 3)

    def lstm(params, xs):
        def cell(carry, x):
            h, c = carry
            gates = x @ params["x"] + h @ params["h"] + params["b"]
            i, f, g, o = lax.split(gates, (3, 3, 3, 3), axis=1)
            c = lax.logistic(f) * c + lax.logistic(i) * jnp.tanh(g)
            h = lax.logistic(o) * jnp.tanh(c)
            return (h, c), h

        return lax.scan(cell, (jnp.zeros((2, 3)), jnp.zeros((2, 3))), xs)[1]

    corpus.add("lstm", lstm, params, inputs, modes=TEXT)

    def lstm_loss(params, xs, ys):
        return jnp.mean((lstm(params, xs) - ys) ** 2)

    add("lstm_train_step", jax.value_and_grad(lstm_loss), params, inputs, targets)

    def solve(w, y0, ts):
        def slope(y):
            return jnp.tanh(w @ y)

        def step(y, h):
            k1 = slope(y)
            k2 = slope(y + h / 2 * k1)
            k3 = slope(y + h / 2 * k2)
            k4 = slope(y + h * k3)
            return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), y

        return lax.scan(step, y0, ts)

    steps = unit(5) / 5
    corpus.add("runge_kutta", solve, floats(3, 3), floats(3), steps, modes=TEXT)
    add(
        "neural_ode",
        jax.grad(lambda w, y, h: (solve(w, y, h)[1] ** 2).sum(), (0, 1)),
        floats(3, 3),
        floats(3),
        steps,
    )

    def ssm(log_a, b, c, xs):
        """A diagonal state space model: all states at once by an associative scan."""
        decay = jnp.broadcast_to(jnp.exp(-jnp.exp(log_a)), (xs.shape[0], log_a.shape[0]))

        def combine(left, right):
            return left[0] * right[0], left[1] * right[0] + right[1]

        states = lax.associative_scan(combine, (decay, xs @ b))[1]
        return states @ c

    weights = (floats(4), floats(2, 4), floats(4, 2), floats(6, 2))
    corpus.add("state_space_model", ssm, *weights)
    add("grad_of_state_space_model", jax.grad(lambda *a: (ssm(*a) ** 2).sum(), (0, 1, 2)), *weights)

    def layers(params, x):
        """The layers of a deep network as the steps of a scan over stacked weights."""

        def layer(x, p):
            return x + jnp.tanh(x @ p["w"] + p["b"]), None

        return lax.scan(layer, x, params)[0]

    stacked = {"w": floats(4, 3, 3) / 3, "b": unit(4, 3)}
    corpus.add("stacked_layers", layers, stacked, floats(2, 3), modes=TEXT)
    add("grad_of_stacked_layers", jax.grad(lambda p, x: layers(p, x).sum()), stacked, floats(2, 3))

    def newton_by_scan(a):
        return lax.scan(lambda x, _: ((x + a / x) / 2, None), a, None, length=5)[0]

    add("vmap_of_grad_of_newton", jax.vmap(jax.grad(newton_by_scan)), unit(4))
