"""What is timed, written once for both: run under hlofront and under jax in processes of their own.

python benchmarks/cases.py hlofront|jax     prints {case: [seconds per call, ...]} as JSON
"""

import gc
import json
import sys
import time

import models
import numpy as np

# Timed rounds of each case; the table shows their median.
ROUNDS = 7


def per_call(function, count):
    """Seconds per call, once per round."""
    function()
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(count):
            function()
        times.append((time.perf_counter() - start) / count)
    return times


def once(prepare, function):
    """Seconds of `function(prepare())`, which must be new each time."""
    times = []
    for _ in range(ROUNDS):
        argument = prepare()
        gc.collect()
        gc.disable()
        start = time.perf_counter()
        result = function(argument)
        times.append(time.perf_counter() - start)
        gc.enable()
        del result
    return times


def chain(lax):
    """A new function of 5,000 lax equations at each call."""

    def prepare():
        def program(x):
            for _ in range(2500):
                x = lax.add(lax.mul(x, x), 1.0)
            return x

        return program

    return prepare


def operators(jnp):
    """A new function of 5,000 equations, as people write them, at each call."""

    def prepare():
        def program(x):
            for _ in range(1000):
                x = x * x + 1.0
                x = jnp.sin(x) - x / 2.0
            return x

        return program

    return prepare


def scanned_lstm(jax, jnp, lax):
    """A new training loss of an LSTM over scan at each call, differentiated, and its arguments."""
    w = {"in": np.ones((64, 512), np.float32), "state": np.ones((128, 512), np.float32)}
    xs = np.ones((50, 32, 64), np.float32)

    def prepare():
        def loss(w, xs):
            def step(state, x):
                h, c = state
                i, f, g, o = jnp.split(x @ w["in"] + h @ w["state"], 4, axis=-1)
                c = lax.logistic(f + 1) * c + lax.logistic(i) * jnp.tanh(g)
                h = lax.logistic(o) * jnp.tanh(c)
                return (h, c), h

            zeros = jnp.zeros((32, 128))
            return (lax.scan(step, (zeros, zeros), xs)[1] ** 2).mean()

        return jax.jit(jax.value_and_grad(loss))

    return prepare, lambda f: f.trace(w, xs)


def small_hessian(jax, jnp):
    def prepare():
        def loss(w, x):
            return jnp.mean(jnp.tanh(jnp.tanh(x @ w) @ w) ** 2)

        return jax.jit(jax.hessian(loss))

    arguments = np.ones((4, 4), np.float32), np.ones((8, 4), np.float32)
    return prepare, lambda f: f.trace(*arguments)


def small_gpt(jax):
    step, arguments = models.gpt(jax, 12, 64, length=32)
    return lambda: jax.jit(lambda *args: step(*args)), lambda f: f.trace(*arguments)


def softmax(jnp, x):
    shifted = jnp.exp(x - x.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


def three_operations(jnp):
    return lambda x: jnp.sum(jnp.sin(x) * x)


def cases(jax, jnp, lax):
    x = jnp.ones((4, 4), jnp.float32)
    x.block_until_ready()
    n = np.ones((4, 4), np.float32)
    index = jnp.array([0, 2])
    tree = {f"layer{i}": {"w": x, "b": x} for i in range(50)}

    add = jax.jit(lambda a, b: a + b)
    through = jax.jit(lambda t: {k: {"w": v["b"], "b": v["w"]} for k, v in t.items()})
    compiled = add.lower(x, x).compile()

    yield "trace 5,000 lax equations", once(chain(lax), lambda f: jax.jit(f).trace(x))
    yield "trace 5,000 of operators", once(operators(jnp), lambda f: jax.jit(f).trace(x))
    yield (
        "lower 5,000 equations",
        once(lambda: jax.jit(chain(lax)()).trace(x), lambda traced: traced.lower()),
    )
    yield "trace value_and_grad of a GPT of 12 layers", once(*small_gpt(jax))
    yield "trace value_and_grad of an LSTM over scan", once(*scanned_lstm(jax, jnp, lax))
    yield "trace hessian", once(*small_hessian(jax, jnp))
    gradient, batched = jax.grad(three_operations(jnp)), jax.vmap(three_operations(jnp))
    yield "eager grad of three operations", per_call(lambda: gradient(x), 30)
    yield "eager vmap of three operations", per_call(lambda: batched(x), 100)
    yield "jit call, arrays", per_call(lambda: add(x, x), 5000)
    yield "jit call, NumPy", per_call(lambda: add(n, n), 5000)
    yield "jit call, Python scalar", per_call(lambda: add(x, 2.0), 5000)
    yield "jit call, 100-leaf pytree", per_call(lambda: through(tree), 500)
    yield "Compiled call", per_call(lambda: compiled(x, x), 5000)
    yield "eager lax.add", per_call(lambda: lax.add(x, x), 3000)
    yield "eager x + x", per_call(lambda: x + x, 3000)
    yield "eager x + 1.0", per_call(lambda: x + 1.0, 3000)
    yield "eager x @ x", per_call(lambda: x @ x, 3000)
    yield "eager x.sum()", per_call(lambda: x.sum(), 3000)
    yield "eager jnp.sin(x)", per_call(lambda: jnp.sin(x), 3000)
    yield "eager x[1]", per_call(lambda: x[1], 500)
    yield "eager x[1:3, ::2]", per_call(lambda: x[1:3, ::2], 500)
    yield "eager x[index]", per_call(lambda: x[index], 500)
    yield "eager x.at[1].set(2.)", per_call(lambda: x.at[1].set(2.0), 500)
    yield "eager jnp.zeros", per_call(lambda: jnp.zeros((4, 4)), 500)
    yield "eager jnp.asarray(NumPy)", per_call(lambda: jnp.asarray(n), 500)
    yield "eager reshape", per_call(lambda: x.reshape(16), 1000)
    yield "eager jnp.where", per_call(lambda: jnp.where(x > 0, x, 0.0), 500)
    yield "eager jnp.concatenate", per_call(lambda: jnp.concatenate([x, x]), 500)
    yield "eager nn.softmax", per_call(lambda: jax.nn.softmax(x), 500)
    yield "eager softmax of five operations", per_call(lambda: softmax(jnp, x), 300)
    yield "device_put(NumPy)", per_call(lambda: jax.device_put(n), 1000)
    yield "np.asarray(x + x)", per_call(lambda: np.asarray(add(x, x)), 2000)


def main():
    if sys.argv[1] == "hlofront":
        import hlofront as jax
        import hlofront.lax as lax
        import hlofront.numpy as jnp
    else:
        import jax
        import jax.lax as lax
        import jax.numpy as jnp
    print(json.dumps(dict(cases(jax, jnp, lax))))


if __name__ == "__main__":
    main()
