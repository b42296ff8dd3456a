"""Prints how much of the wall time of ten programs their measured operations are, on CPUs.

    python -m tests.inspect.profiles

Each program runs ten times, and that three times over: the quietest measurement counts. The exit
status is 1 if the sum of a program's operations is not within 15 % of its wall time.
"""

import sys

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.inspect import profile

TOLERANCE = 0.15


def normal(*shape):
    return jax.random.normal(jax.random.key(0), shape)


def layer_norm(x):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def attention(x, weights):
    q, k, v = (x @ weights[name] for name in "qkv")
    heads = [y.reshape(x.shape[0], 8, -1).swapaxes(0, 1) for y in (q, k, v)]
    scores = heads[0] @ heads[1].swapaxes(1, 2) / 8
    return (jax.nn.softmax(scores) @ heads[2]).swapaxes(0, 1).reshape(x.shape)


def block(x, weights):
    x = x + attention(layer_norm(x), weights)
    return x + jax.nn.gelu(layer_norm(x) @ weights["up"]) @ weights["down"]


def weights_of(size):
    shapes = dict.fromkeys("qkv", (size, size))
    shapes |= {"up": (size, 4 * size), "down": (4 * size, size)}
    return {name: 0.02 * normal(*shape) for name, shape in shapes.items()}


def transformer(x, weights):
    return jax.lax.scan(lambda x, each: (block(x, each), None), x, weights)[0]


def train_step(x, weights):
    gradients = jax.grad(lambda weights: (transformer(x, weights) ** 2).mean())(weights)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)


def stacked(size, layers):
    return jax.tree.map(lambda w: jnp.stack([w] * layers), weights_of(size))


def convolutions(x, kernels):
    for kernel in kernels:
        x = jax.nn.relu(jax.lax.conv(x, kernel, (1, 1), "SAME"))
    return x.mean((2, 3))


def kmeans(points, centers):
    def step(_, centers):
        distances = ((points[:, None] - centers) ** 2).sum(-1)
        chosen = jax.nn.one_hot(distances.argmin(1), len(centers))
        return (chosen.T @ points) / (chosen.sum(0)[:, None] + 1e-6)

    return jax.lax.fori_loop(0, 10, step, centers)


def heat(grid):
    def step(grid, _):
        around = sum(jnp.roll(grid, by, axis) for by in (1, -1) for axis in (0, 1))
        return grid + 0.1 * (around - 4 * grid), grid.max()

    return jax.lax.scan(step, grid, length=50)


def power_iteration(matrix):
    def step(state):
        vector, _, count = state
        product = matrix @ vector
        norm = jnp.linalg.norm(product)
        return product / norm, norm, count + 1

    start = jnp.ones(matrix.shape[0]), jnp.float32(0), 0
    return jax.lax.while_loop(lambda state: state[2] < 200, step, start)[1]


PROGRAMS = {
    "matrix product": (lambda x: x @ x, (normal(1024, 1024),)),
    "elementwise chain": (lambda x: jnp.tanh(jnp.sin(x) * 2).sum(), (normal(2000, 1000),)),
    "transformer block": (block, (normal(256, 512), weights_of(512))),
    "12 layers in a scan": (transformer, (normal(128, 256), stacked(256, 12))),
    "training step of 4 layers": (train_step, (normal(128, 256), stacked(256, 4))),
    "convolutions": (convolutions, (normal(16, 16, 64, 64), [normal(16, 16, 3, 3)] * 3)),
    "k-means in a fori_loop": (kmeans, (normal(5000, 16), normal(20, 16))),
    "heat equation in a scan": (heat, (normal(512, 512),)),
    "power iteration in a while": (power_iteration, (normal(1000, 1000),)),
    "sort and Cholesky": (
        lambda x: (jnp.sort(x, axis=0), jnp.linalg.cholesky(x @ x.T + 1e3 * jnp.eye(len(x)))),
        (normal(600, 600),),
    ),
}


def main():
    beyond = 0
    print(f"{'program':<27} {'wall time':>10} {'operations':>11} {'share':>7} {'between':>9}")
    for name, (function, args) in PROGRAMS.items():
        measured = min((profile(function)(*args) for _ in range(3)), key=lambda each: each.wall)
        share = measured.seconds / measured.wall
        beyond += abs(1 - share) > TOLERANCE
        print(
            f"{name:<27} {measured.wall * 1e3:>7.2f} ms {measured.seconds * 1e3:>8.2f} ms "
            f"{share:>7.1%} {(measured.span - measured.seconds) * 1e3:>6.2f} ms"
        )
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
