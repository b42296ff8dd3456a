"""Fourteen small programs whose StableHLO people read: for tests, and for benchmarks beside jax."""

from collections.abc import Callable
from typing import Any

import numpy as np

# The name, the function and its operands.
Program = tuple[str, Callable[..., Any], tuple[Any, ...]]


def programs(jax: Any) -> list[Program]:
    """Return the programs, for `hlofront` or the real `jax` as the module `jax`."""
    jnp, nn, lax = jax.numpy, jax.nn, jax.lax
    random = np.random.default_rng(0)

    def array(*shape: int) -> np.ndarray:
        return random.normal(size=shape).astype(np.float32)

    x = array(100_000)
    batch, weights = array(128, 256), (array(256, 512) / 16, array(512, 64) / 22)
    labels = random.integers(0, 64, 128)
    images, kernel = array(8, 28, 28, 16), array(3, 3, 16, 32)
    sequence, cell = array(64, 32, 64), (array(64, 256) / 8, array(64, 256) / 8)
    points, centers = array(2_000, 16), array(10, 16)
    query = array(2, 128, 4, 32)
    moments = {"m": array(256, 512), "v": abs(array(256, 512)), "step": np.float32(3)}

    def mlp(weights: Any, x: Any) -> Any:
        first, second = weights
        return nn.gelu(x @ first) @ second

    def loss(weights: Any, x: Any, labels: Any) -> Any:
        scores = nn.log_softmax(mlp(weights, x))
        return -scores[jnp.arange(labels.size), labels].mean()

    def attention(query: Any, key: Any, value: Any) -> Any:
        scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / np.sqrt(32)
        return jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(scores, -1), value)

    def layer_norm(x: Any) -> Any:
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) * lax.rsqrt(variance + 1e-5)

    def adam(weight: Any, gradient: Any, state: Any) -> Any:
        step = state["step"] + 1
        m = 0.9 * state["m"] + 0.1 * gradient
        v = 0.999 * state["v"] + 0.001 * gradient**2
        update = (m / (1 - 0.9**step)) / (jnp.sqrt(v / (1 - 0.999**step)) + 1e-8)
        return weight - 1e-3 * update, {"m": m, "v": v, "step": step}

    def lstm(cell: Any, sequence: Any) -> Any:
        of_input, of_hidden = cell

        def step(state: Any, x: Any) -> Any:
            hidden, memory = state
            gates = x @ of_input + hidden @ of_hidden
            i, f, g, o = jnp.split(gates, 4, axis=-1)
            memory = nn.sigmoid(f) * memory + nn.sigmoid(i) * jnp.tanh(g)
            hidden = nn.sigmoid(o) * jnp.tanh(memory)
            return (hidden, memory), hidden

        start = jnp.zeros(sequence.shape[1:]), jnp.zeros(sequence.shape[1:])
        return lax.scan(step, start, sequence)[1]

    def convolution(x: Any, kernel: Any) -> Any:
        numbers = ("NHWC", "HWIO", "NHWC")
        y = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=numbers)
        return nn.relu(y).mean((1, 2))

    def k_means(points: Any, centers: Any) -> Any:
        distances = ((points[:, None] - centers) ** 2).sum(-1)
        members = nn.one_hot(jnp.argmin(distances, 1), len(centers))
        return members.T @ points / members.sum(0)[:, None]

    return [
        ("sine and sum", lambda x: jnp.sin(x) * 2 + x.sum(), (x,)),
        ("gelu MLP", mlp, (weights, batch)),
        ("attention", attention, (query, query, query)),
        ("layer norm", layer_norm, (batch,)),
        ("gradient of the MLP", jax.grad(loss), (weights, batch, labels)),
        ("Adam", adam, (weights[0], weights[0], moments)),
        ("random.normal", lambda key: jax.random.normal(key, (1_000, 100)), (jax.random.key(0),)),
        ("LSTM", lstm, (cell, sequence)),
        ("convolution", convolution, (images, kernel)),
        ("sort", jnp.sort, (x,)),
        ("top_k", lambda x: lax.top_k(x, 100), (x,)),
        ("cumsum", jnp.cumsum, (x,)),
        ("k-means", k_means, (points, centers)),
        ("powers", lambda x: abs(x) ** 1.7 + jnp.log1p(abs(x)), (x,)),
    ]
