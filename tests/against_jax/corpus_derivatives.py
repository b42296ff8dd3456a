"""Derivatives of whole functions: their values and types, and how many equations they take."""

import collections

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import bf16, bools, complexes, floats, ints, unit

Layer = collections.namedtuple("Layer", ["weights", "bias"])


def programs(jax, jnp, lax):
    corpus = Corpus(("equations", "jit"))
    small(corpus, jax, jnp, lax)
    arguments(corpus, jax, jnp)
    networks(corpus, jax, jnp, lax)
    higher(corpus, jax, jnp, lax)
    jacobians(corpus, jax, jnp, lax)
    complex_numbers(corpus, jax, jnp, lax)
    without_tangents(corpus, jax, jnp, lax)
    linear(corpus, jax, jnp, lax)
    dtypes(corpus, jax, jnp, lax)
    indexed(corpus, jax, jnp, lax)
    return corpus


def small(corpus, jax, jnp, lax):
    everywhere = ("equations", "jit", "value")

    @corpus.program(1.5, modes=everywhere)
    def grad_of_a_python_scalar(x):
        return jax.grad(lambda x: x * x * 3 + jnp.sin(x))(x)

    @corpus.program(floats(3), modes=everywhere)
    def grad_of_three_operations(x):
        return jax.grad(lambda x: jnp.sum(jnp.tanh(x * x)))(x)

    @corpus.program(floats(3), modes=everywhere)
    def value_and_grad_of_a_polynomial(x):
        return jax.value_and_grad(lambda x: (x**3 - 2 * x**2 + x).sum())(x)

    @corpus.program(unit(4), modes=everywhere)
    def jvp_of_a_quotient(x):
        return jax.jvp(lambda x: jnp.log(x) / (1 + x), (x,), (jnp.ones_like(x),))

    @corpus.program(unit(3), floats(3), modes=everywhere)
    def vjp_of_a_product(x, y):
        result, pull_back = jax.vjp(lambda x, y: x * jnp.exp(y), x, y)
        return result, pull_back(result)

    @corpus.program(floats(4), floats(4))
    def result_that_does_not_depend(x, y):
        return jax.grad(lambda x, y: jnp.sum(y * 2), argnums=(0, 1))(x, y)

    @corpus.program(floats(4))
    def value_used_many_times(x):
        def function(x):
            y = jnp.sin(x)
            return jnp.sum(y * y + y / (2 + y) - y)

        return jax.grad(function)(x)

    @corpus.program(floats(3, 4))
    def grad_of_softplus(x):
        return jax.grad(lambda x: jnp.mean(jnp.logaddexp(x, 0.0)))(x)

    @corpus.program(floats(3, 4))
    def grad_of_where(x):
        return jax.grad(lambda x: jnp.sum(jnp.where(x > 0, x * x, 0.01 * x)))(x)

    @corpus.program(floats(3, 4))
    def grad_of_max_and_clip(x):
        return jax.grad(lambda x: jnp.max(x, axis=1).sum() + jnp.clip(x, -1, 1).sum())(x)

    @corpus.program(unit(3, 4))
    def grad_of_variance_and_norm(x):
        return jax.grad(lambda x: jnp.var(x) + jnp.sqrt(jnp.sum(x**2)))(x)

    @corpus.program(unit(2, 3))
    def grad_of_a_product_of_elements(x):
        return jax.grad(lambda x: jnp.prod(x, axis=0).sum() + jnp.cumprod(x[0])[-1])(x)

    @corpus.program(floats(3))
    def stop_gradient_of_a_part(x):
        return jax.grad(lambda x: jnp.sum(x * lax.stop_gradient(jnp.sin(x))))(x)

    @corpus.program(floats(3))
    def grad_through_jit(x):
        inner = jax.jit(lambda x: jnp.sin(x) * 2)
        return jax.grad(lambda x: inner(inner(x)).sum())(x)

    @corpus.program(np.float32(0.0))
    def at_the_kinks(x):
        return [jax.grad(f)(x) for f in (jnp.abs, lambda x: jnp.maximum(x, 0), jnp.sign, jnp.floor)]


def arguments(corpus, jax, jnp):
    @corpus.program(floats(3), unit(3))
    def argnums_tuple(x, y):
        return jax.grad(lambda x, y: jnp.sum(x * y * y), argnums=(1, 0))(x, y)

    @corpus.program(floats(3), unit(3))
    def argnums_negative(x, y):
        return jax.grad(lambda x, y: jnp.sum(x * y * y), argnums=-1)(x, y)

    @corpus.program({"b": floats(2), "a": (unit(1), [unit(2)])})
    def grad_of_a_tree(tree):
        return jax.grad(lambda t: jnp.sum(t["b"] * t["a"][1][0]) * t["a"][0][0])(tree)

    @corpus.program([Layer(floats(2, 3), unit(3))], unit(2))
    def grad_of_named_tuples(layers, x):
        return jax.grad(lambda layers: jnp.sum(x @ layers[0].weights + layers[0].bias))(layers)

    @corpus.program(floats(3), modes=("equations", "jit", "value"))
    def has_aux(x):
        def function(x):
            y = jnp.sin(x)
            return y.sum(), {"y": y, "shape": 3, "none": None}

        return jax.value_and_grad(function, has_aux=True)(x)

    @corpus.program(floats(3))
    def jvp_and_vjp_with_aux(x):
        def function(x):
            return jnp.sin(x), x + 1

        pushed = jax.jvp(function, (x,), (x,), has_aux=True)
        result, pull_back, aux = jax.vjp(function, x, has_aux=True)
        return pushed, result, pull_back(x), aux

    @corpus.program(floats(3), keywords={"scale": unit(3)})
    def keywords_are_not_differentiated(x, *, scale):
        return jax.grad(lambda x, scale: jnp.sum(x * x * scale))(x, scale=scale)

    @corpus.program(floats(3), None)
    def none_among_the_arguments(x, nothing):
        return jax.grad(lambda x, nothing: jnp.sum(x * x), argnums=(0, 1))(x, nothing)

    @corpus.program(floats(2), modes=("jit",))
    def several_results(x):
        result, pull_back = jax.vjp(lambda x: {"a": jnp.sin(x), "b": (x, 2 * x)}, x)
        return pull_back(jax.tree.map(jnp.ones_like, result))


def networks(corpus, jax, jnp, lax):
    layers = [
        {"w": floats(4, 8) * np.float32(0.4), "b": floats(8)},
        {"w": floats(8, 8) * np.float32(0.3), "b": unit(8)},
        {"w": unit(8, 3) - np.float32(0.5), "b": floats(3)},
    ]

    def mlp(layers, x):
        for layer in layers[:-1]:
            x = jnp.tanh(x @ layer["w"] + layer["b"])
        return x @ layers[-1]["w"] + layers[-1]["b"]

    def cross_entropy(logits, labels):
        shifted = logits - jnp.max(logits, axis=-1, keepdims=True)
        log_probabilities = shifted - jnp.log(jnp.sum(jnp.exp(shifted), axis=-1, keepdims=True))
        return -jnp.mean(jnp.take_along_axis(log_probabilities, labels[:, None], axis=-1))

    def loss(layers, x, labels):
        return cross_entropy(mlp(layers, x), labels)

    labels = np.array([0, 2, 1, 1, 0], np.int32)

    @corpus.program(layers, floats(5, 4), labels, tolerance=1e-5)
    def mlp_with_cross_entropy(layers, x, labels):
        return jax.value_and_grad(loss)(layers, x, labels)

    @corpus.program(layers, floats(5, 4), labels, tolerance=1e-5)
    def step_of_descent(layers, x, labels):
        gradients = jax.grad(loss)(layers, x, labels)
        return jax.tree.map(lambda p, g: p - 0.1 * g, layers, gradients)

    @corpus.program(floats(5, 3), labels)
    def softmax_cross_entropy_of_one_hot(logits, labels):
        def function(logits):
            targets = labels[:, None] == jnp.arange(3)
            highest = lax.stop_gradient(logits.max(-1, keepdims=True))
            total = jnp.log(jnp.exp(logits - highest).sum(-1)) + highest[:, 0]
            return jnp.sum(total - jnp.where(targets, logits, 0).sum(-1))

        return jax.grad(function)(logits)

    def layer_norm(x, scale, bias):
        mean = x.mean(-1, keepdims=True)
        variance = jnp.square(x - mean).mean(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + bias

    @corpus.program(floats(4, 6), unit(6), floats(6), tolerance=1e-5)
    def layer_normalization(x, scale, bias):
        return jax.grad(lambda *a: (layer_norm(*a) ** 2).sum(), argnums=(0, 1, 2))(x, scale, bias)

    def attention(x, w):
        query, key, value = (jnp.einsum("btd,dhk->bthk", x, w[name]) for name in "qkv")
        scores = jnp.einsum("bthk,bshk->bhts", query, key) / np.sqrt(query.shape[-1])
        mask = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool))
        scores = jnp.where(mask, scores, -1e9)
        weights = jnp.exp(scores - scores.max(-1, keepdims=True))
        weights = weights / weights.sum(-1, keepdims=True)
        mixed = jnp.einsum("bhts,bshk->bthk", weights, value)
        return jnp.einsum("bthk,hkd->btd", mixed, w["o"])

    heads = {name: floats(6, 2, 3) * np.float32(0.3) for name in "qkv"}
    heads["o"] = unit(2, 3, 6) - np.float32(0.5)

    @corpus.program(floats(2, 4, 6), heads, tolerance=1e-5)
    def attention_by_hand(x, w):
        return jax.value_and_grad(lambda x, w: jnp.sum(attention(x, w) ** 2), argnums=(0, 1))(x, w)

    @corpus.program(floats(2, 4, 6), heads, unit(6), tolerance=1e-5)
    def block_of_a_transformer(x, w, scale):
        def block(x, w):
            x = x + attention(layer_norm(x, scale, 0.0), w)
            return x + jnp.tanh(layer_norm(x, scale, 1.0))

        return jax.grad(lambda x, w: block(block(x, w), w).mean(), argnums=(0, 1))(x, w)

    @corpus.program(
        floats(2, 7, 7, 3), floats(3, 3, 3, 4), unit(2, 2, 4, 2) - np.float32(0.5), tolerance=1e-5
    )
    def convolutional_network(x, first, second):
        def network(first, second):
            numbers = ("NHWC", "HWIO", "NHWC")
            y = lax.conv_general_dilated(x, first, (1, 1), "SAME", dimension_numbers=numbers)
            y = jnp.maximum(y, 0)
            y = lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
            y = lax.conv_general_dilated(y, second, (1, 1), "VALID", dimension_numbers=numbers)
            return jnp.mean(jnp.square(y))

        return jax.value_and_grad(network, argnums=(0, 1))(first, second)

    @corpus.program(floats(2, 3, 6, 6), floats(4, 3, 3, 3), tolerance=1e-5)
    def strided_convolution_and_mean_pooling(x, kernel):
        def network(x, kernel):
            y = lax.conv_general_dilated(x, kernel, (2, 2), "SAME", rhs_dilation=(2, 1))
            return lax.reduce_window(y, 0.0, lax.add, (1, 1, 2, 2), (1, 1, 1, 1), "SAME").var()

        return jax.grad(network, argnums=(0, 1))(x, kernel)

    @corpus.program(floats(7, 5), ints(4, 3) % np.int32(7), floats(5, 2), tolerance=1e-5)
    def embedding(table, tokens, readout):
        def function(table, readout):
            return jnp.sum(jnp.tanh(table[tokens].mean(1) @ readout))

        return jax.grad(function, argnums=(0, 1))(table, readout)

    @corpus.program(floats(3, 4), floats(4, 4) * np.float32(0.5), floats(2, 4), tolerance=1e-5)
    def recurrence_unrolled(inputs, weights, state):
        def function(weights):
            h = state
            for x in inputs:
                h = jnp.tanh(h @ weights + x)
            return h.sum()

        return jax.grad(function)(weights)


def higher(corpus, jax, jnp, lax):
    @corpus.program(1.3, modes=("equations", "jit", "value"))
    def four_times(x):
        f = lambda x: jnp.sin(x) * x**3
        for _ in range(4):
            f = jax.grad(f)
        return f(x)

    @corpus.program(1.3)
    def of_a_quotient_three_times(x):
        f = lambda x: jnp.exp(x) / (1 + x * x)
        return jax.grad(jax.grad(jax.grad(f)))(x)

    @corpus.program(floats(3))
    def grad_of_grad_of_a_sum(x):
        f = lambda x: jnp.sum(jnp.tanh(x) * x)
        return jax.grad(lambda x: jnp.sum(jax.grad(f)(x) ** 2))(x)

    @corpus.program(floats(3), unit(3))
    def jvp_of_vjp(x, v):
        f = lambda x: jnp.sum(jnp.sin(x) * jnp.cumsum(x))
        return jax.jvp(jax.grad(f), (x,), (v,))

    @corpus.program(floats(3), unit(3))
    def grad_of_jvp(x, v):
        f = lambda x: jnp.sum(jnp.sin(x) * jnp.cumsum(x))
        return jax.grad(lambda x: jax.jvp(f, (x,), (v,))[1])(x)

    @corpus.program(floats(3), unit(3))
    def vjp_of_vjp(x, v):
        pull_back = lambda x, v: jax.vjp(lambda x: jnp.exp(x) * x[::-1], x)[1](v)[0]
        return jax.vjp(pull_back, x, v)[1](v)

    @corpus.program(floats(3), unit(3))
    def jvp_of_jvp_of_a_matrix_product(x, v):
        f = lambda x: jnp.outer(x, x) @ jnp.sin(x)
        g = lambda x: jax.jvp(f, (x,), (v,))[1]
        return jax.jvp(g, (x,), (v,))

    @corpus.program(0.7)
    def perturbations_are_not_confused(x):
        return jax.grad(lambda x: x * jax.grad(lambda y: x * y * y)(1.0))(x)

    @corpus.program(0.7)
    def closures_are_differentiated(x):
        def outer(x):
            inner = lambda y: jnp.sin(y) * x
            return jax.jvp(inner, (x * 2,), (x,))[1] + jax.grad(inner)(x)

        return jax.grad(outer)(x)


def jacobians(corpus, jax, jnp, lax):
    @corpus.program(unit(3), modes=("equations", "jit", "value"))
    def jacfwd_of_a_vector(x):
        return jax.jacfwd(lambda x: jnp.stack([x[0] * x[1], jnp.sin(x[2])]))(x)

    @corpus.program(unit(3))
    def jacrev_of_a_vector(x):
        return jax.jacrev(lambda x: jnp.stack([x[0] * x[1], jnp.sin(x[2])]))(x)

    @corpus.program({"a": unit(2), "b": floats(2, 3)})
    def jacobians_of_trees(tree):
        def function(t):
            return {"y": t["a"] @ t["b"], "z": (jnp.sum(t["a"]) * t["b"][0],)}

        return jax.jacfwd(function)(tree), jax.jacrev(function)(tree)

    @corpus.program(unit(3), floats(2))
    def jacobians_by_argnums_with_aux(x, y):
        f = lambda x, y: (jnp.outer(jnp.sin(x), y), x)
        return (
            jax.jacfwd(f, argnums=(1, 0), has_aux=True)(x, y),
            jax.jacrev(f, argnums=(0, 1), has_aux=True)(x, y),
        )

    @corpus.program(unit(3), tolerance=1e-5)
    def hessian_of_rosenbrock(x):
        f = lambda x: jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
        return jax.hessian(f)(x)

    @corpus.program({"w": floats(2, 2), "b": unit(2)}, unit(2), tolerance=1e-5)
    def hessian_of_a_tree(tree, x):
        return jax.hessian(lambda t: jnp.sum(jnp.tanh(x @ t["w"] + t["b"])))(tree)

    @corpus.program(unit(3), tolerance=1e-5)
    def jacobians_of_jacobians(x):
        f = lambda x: jnp.sin(x) * x[0]
        return jax.jacfwd(jax.jacfwd(f))(x), jax.jacrev(jax.jacrev(f))(x)

    @corpus.program(unit(4), floats(4))
    def hessian_times_vector(x, v):
        f = lambda x: jnp.log(jnp.sum(jnp.exp(x * x)))
        return jax.jvp(jax.grad(f), (x,), (v,))[1], jax.grad(lambda x: jax.grad(f)(x) @ v)(x)


def complex_numbers(corpus, jax, jnp, lax):
    z = complexes(3)

    @corpus.program(z, modes=("equations", "jit", "value"))
    def holomorphic_grad(z):
        return jax.grad(lambda z: jnp.sum(jnp.sin(z) * z), holomorphic=True)(z)

    @corpus.program(z)
    def grad_of_a_real_function(z):
        return jax.grad(lambda z: jnp.sum(jnp.abs(z) ** 2))(z)

    @corpus.program(z)
    def grad_of_parts(z):
        f = lambda z: jnp.sum(z.real**2 * z.imag) + jnp.sum(jnp.conj(z) * z).real
        return jax.grad(f)(z)

    @corpus.program(floats(3), unit(3))
    def complex_in_the_middle(x, y):
        f = lambda x, y: jnp.abs(lax.complex(x, y) * (1 + 2j)).sum()
        return jax.grad(f, argnums=(0, 1))(x, y)

    @corpus.program(z)
    def jvp_and_vjp_of_complex_functions(z):
        f = lambda z: jnp.exp(z) / (1 + z)
        result, pull_back = jax.vjp(f, z)
        return jax.jvp(f, (z,), (1j * z,)), pull_back(result)

    @corpus.program(z)
    def holomorphic_jacobians(z):
        f = lambda z: z * z[::-1] + jnp.sin(z)
        return jax.jacfwd(f, holomorphic=True)(z), jax.jacrev(f, holomorphic=True)(z)

    @corpus.program(complexes(2, 3), complexes(3, 2))
    def complex_matrix_product(a, b):
        return jax.grad(lambda a, b: jnp.abs(a @ b).sum(), argnums=(0, 1))(a, b)


def without_tangents(corpus, jax, jnp, lax):
    @corpus.program(ints(3), floats(3), modes=("value",))
    def allow_int(i, x):
        return jax.grad(lambda i, x: jnp.sum(i * x), argnums=(0, 1), allow_int=True)(i, x)

    @corpus.program(floats(3), bools(3), modes=("value",))
    def vjp_of_integers_and_booleans(x, flags):
        f = lambda x, flags: (jnp.where(flags, x, 0), x > 0)
        return jax.vjp(f, x, flags)[1]((x, np.zeros(3, jax.float0)))

    @corpus.program(ints(3), modes=("value",))
    def jvp_of_integers(i):
        return jax.jvp(lambda i: (jnp.multiply(i, 2), jnp.sin(i)), (i,), (np.zeros(3, jax.float0),))

    @corpus.program(floats(5), ints(2) % np.int32(5))
    def integers_beside_floats(x, places):
        return jax.grad(lambda x: jnp.sum(x[places] * x[jnp.argmax(x)]))(x)

    @corpus.program(floats(3))
    def converted_to_integers_and_back(x):
        return jax.grad(lambda x: jnp.sum(x * x.astype(jnp.int32).astype(jnp.float32)))(x)

    @corpus.program(floats(5))
    def order_of_elements(x):
        f = lambda x: jnp.sum(jnp.sort(x) * jnp.arange(5)) + x[jnp.argsort(x)][0]
        return jax.grad(f)(x)


def linear(corpus, jax, jnp, lax):
    @corpus.program(floats(3), modes=("jit", "value"))
    def linearized(x):
        result, pushed = jax.linearize(lambda x: jnp.sin(x) * x, x)
        return result, pushed(x), pushed(jnp.ones_like(x))

    @corpus.program(floats(3), unit(2))
    def linearized_in_two(x, y):
        f = lambda x, y: {"a": jnp.outer(x, y), "b": jnp.cos(x)}
        result, pushed = jax.linearize(f, x, y)
        return result, pushed(x, y)

    @corpus.program(floats(2, 3), unit(2))
    def linear_transpose_of_a_product(a, y):
        return jax.linear_transpose(lambda x: 2.0 * (a @ x), np.zeros(3, np.float32))(y)

    @corpus.program(unit(4))
    def linear_transpose_of_a_tree(y):
        f = lambda tree: jnp.concatenate([tree["a"][::-1], -tree["b"]])
        zeros = np.zeros(2, np.float32)
        return jax.linear_transpose(f, {"a": zeros, "b": zeros})(y)


def dtypes(corpus, jax, jnp, lax):
    @corpus.program(floats(4, dtype=bf16), floats(4))
    def bfloat16_and_float32(x, y):
        return jax.value_and_grad(lambda x, y: jnp.sum(x * y + jnp.sin(x)), argnums=(0, 1))(x, y)

    @corpus.program(floats(2, 3, dtype=bf16), floats(3, 2, dtype=bf16))
    def product_that_accumulates_in_float32(x, y):
        def function(x, y):
            return jnp.matmul(x, y, preferred_element_type=jnp.float32).sum()

        return jax.grad(function, argnums=(0, 1))(x, y)

    @corpus.program(floats(4, dtype=np.float16))
    def float16(x):
        return jax.grad(lambda x: jnp.mean(jnp.tanh(x) * x))(x)

    @corpus.program(floats(4, dtype=np.float64), x64=True)
    def float64(x):
        return jax.hessian(lambda x: jnp.sum(jnp.exp(x) * x[0]))(x)

    @corpus.program(2.0, floats(3), modes=("equations", "jit", "value"))
    def weak_types(scale, x):
        return jax.grad(lambda s, x: jnp.sum(s * x) * s, argnums=(0, 1))(scale, x)

    @corpus.program(2.0, modes=("equations", "jit", "value"))
    def weak_types_of_jvp(x):
        return jax.jvp(lambda x: (x * 2, x.astype(jnp.bfloat16), x + jnp.arange(3)), (x,), (1.0,))


def indexed(corpus, jax, jnp, lax):
    @corpus.program(floats(4, 5))
    def slices_and_steps(x):
        return jax.grad(lambda x: jnp.sum(x[1:, ::2] * x[:-1, ::-2]) + x[-1, 0])(x)

    @corpus.program(floats(4), floats(2))
    def updates(x, y):
        f = lambda x, y: jnp.sum(x.at[1:3].set(y).at[0].multiply(3.0).at[jnp.array([1, 1])].add(y))
        return jax.grad(lambda x, y: f(jnp.sin(x), y), argnums=(0, 1))(x, y)

    @corpus.program(floats(6), np.int32(2))
    def slices_from_computed_starts(x, start):
        def function(x):
            part = lax.dynamic_slice(x, (start,), (3,))
            return jnp.sum(lax.dynamic_update_slice(x * x, part * part, (start + 1,)))

        return jax.grad(function)(x)

    @corpus.program(floats(3, 4), floats(2, 4))
    def joined_padded_and_turned(x, y):
        def function(x, y):
            z = jnp.concatenate([x, y], axis=0)
            z = jnp.pad(z, ((1, 0), (0, 2)), constant_values=1.0)
            return jnp.sum(z.T.reshape(3, 12)[:, ::-1] ** 2)

        return jax.grad(function, argnums=(0, 1))(x, y)

    @corpus.program(floats(3, 1, 2))
    def broadcast_and_squeezed(x):
        f = lambda x: jnp.sum(jnp.broadcast_to(x, (3, 4, 2)) * jnp.squeeze(x, 1)[:, None] ** 2)
        return jax.grad(f)(x)

    @corpus.program(floats(3, 5))
    def highest_of_each_row(x):
        return jax.grad(lambda x: jnp.sum(lax.top_k(x, 2)[0] ** 2))(x)
