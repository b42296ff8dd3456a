"""Attention in the forms that accelerators run, and derivatives of derivatives, for both libraries.

Every function takes `jax`, the library itself or hlofront in its place, and returns a function that
can be jitted, and the arguments to call it with, as in `accelerator_models.py`, which lists them.
"""

import numpy as np
from models import cross_entropy, normal


def _root_mean_square_norm(jax, x, scale):
    """Return x divided by its root mean square along the last axis, in the dtype of x."""
    jnp = jax.numpy
    y = x.astype(jnp.float32)
    return (y * jax.lax.rsqrt((y**2).mean(-1, keepdims=True) + 1e-6)).astype(x.dtype) * scale


def _rotated(jnp, x):
    """Return x, of shape (batch, time, heads, size), with rotary position embeddings."""
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None] * 10000.0 ** (-jnp.arange(half) / half)
    cos, sin = (f(angles)[:, None, :].astype(x.dtype) for f in (jnp.cos, jnp.sin))
    first, second = x[..., :half], x[..., half:]
    return jnp.concatenate([first * cos - second * sin, second * cos + first * sin], -1)


def grouped_queries(jax):
    """Two blocks as in Llama, in bfloat16: rotary embeddings, four queries for each key."""
    jnp = jax.numpy
    random = np.random.default_rng(20)
    width, size, groups, heads = 512, 64, 2, 4

    def block(w, x):
        y = _root_mean_square_norm(jax, x, w["first"])
        q = _rotated(jnp, (y @ w["q"]).reshape(*y.shape[:2], groups * heads, size))
        k = _rotated(jnp, (y @ w["k"]).reshape(*y.shape[:2], groups, size))
        v = (y @ w["v"]).reshape(*y.shape[:2], groups, size)
        q = q.reshape(*y.shape[:2], groups, heads, size)
        scores = jnp.einsum("btghd,bsgd->bghts", q, k).astype(jnp.float32) / size**0.5
        causal = jnp.tril(jnp.ones(scores.shape[-2:], bool))
        weights = jax.nn.softmax(jnp.where(causal, scores, -jnp.inf)).astype(x.dtype)
        x = x + jnp.einsum("bghts,bsgd->btghd", weights, v).reshape(x.shape) @ w["out"]
        y = _root_mean_square_norm(jax, x, w["second"])
        return x + (jax.nn.silu(y @ w["gate"]) * (y @ w["up"])) @ w["down"]

    def loss(weights, x):
        x = x.astype(jnp.bfloat16)
        for w in jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), weights):
            x = block(w, x)
        return (x.astype(jnp.float32) ** 2).mean()

    def layer():
        shapes = {"q": (512, 512), "k": (512, 128), "v": (512, 128), "out": (512, 512)}
        shapes |= {"gate": (512, 1376), "up": (512, 1376), "down": (1376, 512)}
        norms = {name: np.ones(width, np.float32) for name in ("first", "second")}
        return norms | {name: normal(random, *shape) for name, shape in shapes.items()}

    x = normal(random, 4, 256, width, scale=1)
    return jax.value_and_grad(loss), ([layer() for _ in range(2)], x)


def position_biases(jax):
    """Attention as in T5: learned biases by the distance of the positions, and padding masks."""
    jnp = jax.numpy
    random = np.random.default_rng(21)

    def loss(biases, q, k, v, lengths):
        distance = jnp.arange(128)[:, None] - jnp.arange(128)[None, :]
        bucket = jnp.clip(jnp.log2(jnp.abs(distance) + 1.0).astype(jnp.int32), 0, 7)
        bias = biases[bucket + 8 * (distance > 0)].transpose(2, 0, 1)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) + bias
        present = jnp.arange(128) < lengths[:, None]
        scores = jnp.where(present[:, None, None, :], scores, jnp.finfo(scores.dtype).min)
        y = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)
        return jnp.where(present[:, :, None, None], y, 0).var()

    arrays = [normal(random, 8, 128, 8, 32, scale=1) for _ in range(3)]
    lengths = random.integers(1, 128, 8).astype(np.int32)
    return jax.value_and_grad(loss, (0, 1, 2, 3)), (normal(random, 16, 8), *arrays, lengths)


def sliding_windows(jax):
    """Attention within blocks of 64 positions and the block before."""
    jnp = jax.numpy
    random = np.random.default_rng(22)

    def loss(q, k, v):
        q, k, v = (x.reshape(2, 8, 64, 8, 64) for x in (q, k, v))
        before = [jnp.pad(x[:, :-1], ((0, 0), (1, 0), (0, 0), (0, 0), (0, 0))) for x in (k, v)]
        k, v = (jnp.concatenate(pair, 2) for pair in zip(before, (k, v), strict=True))
        scores = jnp.einsum("bnqhd,bnkhd->bnhqk", q, k) / 8
        distance = jnp.arange(64)[:, None] + 64 - jnp.arange(128)[None, :]
        scores = jnp.where((distance >= 0) & (distance < 64), scores, -1e9)
        return (jnp.einsum("bnhqk,bnkhd->bnqhd", jax.nn.softmax(scores), v) ** 2).mean()

    arrays = tuple(normal(random, 2, 512, 8, 64, scale=1) for _ in range(3))
    return jax.value_and_grad(loss, (0, 1, 2)), arrays


def running_softmax(jax):
    """Attention over blocks of keys in a scan, which keeps the maximum and the sum so far."""
    jnp = jax.numpy
    random = np.random.default_rng(23)

    def attended(q, k, v):
        def step(carry, block):
            most, total, result = carry
            keys, values = block
            scores = jnp.einsum("bqhd,bkhd->bhqk", q, keys) / 8
            new = jnp.maximum(most, scores.max(-1))
            weights = jnp.exp(scores - new[..., None])
            rescale = jnp.exp(most - new)
            result = result * rescale[..., None] + jnp.einsum("bhqk,bkhd->bhqd", weights, values)
            return (new, total * rescale + weights.sum(-1), result), None

        shape = q.shape[0], q.shape[2], q.shape[1]
        first = jnp.full(shape, -jnp.inf), jnp.zeros(shape), jnp.zeros((*shape, q.shape[3]))
        blocks = [jnp.moveaxis(x.reshape(4, 8, 64, 8, 64), 1, 0) for x in (k, v)]
        (_, total, result), _ = jax.lax.scan(jax.checkpoint(step), first, blocks)
        return result / total[..., None]

    def loss(q, k, v):
        return (attended(q, k, v) ** 2).mean()

    arrays = tuple(normal(random, 4, 512, 8, 64, scale=1) for _ in range(3))
    return jax.value_and_grad(loss, (0, 1, 2)), arrays


def linear_attention(jax):
    """Causal attention without a softmax: sums of outer products of keys and values so far."""
    jnp = jax.numpy
    random = np.random.default_rng(24)

    def loss(q, k, v):
        q, k = jax.nn.elu(q) + 1, jax.nn.elu(k) + 1
        sums = jnp.cumsum(k[..., :, None] * v[..., None, :], axis=1)
        norms = jnp.einsum("bthd,bthd->bth", q, jnp.cumsum(k, axis=1))
        return ((jnp.einsum("bthd,bthde->bthe", q, sums) / norms[..., None]) ** 2).mean()

    arrays = tuple(normal(random, 2, 128, 4, 32, scale=1) for _ in range(3))
    return jax.value_and_grad(loss, (0, 1, 2)), arrays


def checkpointed_layers(jax):
    """Eight layers in a scan, which keep their products alone and compute the rest again."""
    jnp = jax.numpy
    random = np.random.default_rng(25)

    def layer(x, w):
        y = jax.nn.standardize(x) * w["scale"] + w["shift"]
        q, k, v = jnp.split(y @ w["qkv"], 3, -1)
        q, k, v = (z.reshape(*z.shape[:2], 4, 64) for z in (q, k, v))
        y = jax.nn.dot_product_attention(q, k, v).reshape(x.shape)
        return x + jax.nn.gelu(y @ w["up"]) @ w["down"], None

    policy = jax.checkpoint_policies.dots_with_no_batch_dims_saveable

    def loss(weights, x):
        x, _ = jax.lax.scan(jax.checkpoint(layer, policy=policy), x, weights)
        return (x**2).mean()

    shapes = {"scale": (256,), "shift": (256,), "qkv": (256, 768)}
    shapes |= {"up": (256, 1024), "down": (1024, 256)}
    weights = {name: normal(random, 8, *shape) for name, shape in shapes.items()}
    return jax.value_and_grad(loss), (weights, normal(random, 4, 128, 256, scale=1))


def sampled_words(jax):
    """Sixteen words drawn one after the other, each from the scores of those before."""
    jnp = jax.numpy
    random = np.random.default_rng(26)

    def draw(words, kernels, key):
        def step(state, key):
            x = words[state["word"]]
            keys = state["keys"].at[:, state["position"]].set(x @ kernels["k"])
            values = state["values"].at[:, state["position"]].set(x @ kernels["v"])
            scores = jnp.einsum("bd,btd->bt", x @ kernels["q"], keys)
            scores = jnp.where(jnp.arange(16) <= state["position"], scores, -jnp.inf)
            y = jnp.einsum("bt,btd->bd", jax.nn.softmax(scores), values)
            word = jax.random.categorical(key, y @ words.T)
            position = state["position"] + 1
            return {"word": word, "position": position, "keys": keys, "values": values}, word

        cache = jnp.zeros((8, 16, 128))
        state = {"word": jnp.zeros(8, int), "position": 0, "keys": cache, "values": cache}
        return jax.lax.scan(step, state, jax.random.split(key, 16))[1]

    kernels = {name: normal(random, 128, 128) for name in "qkv"}
    return draw, (normal(random, 1000, 128), kernels, np.array([0, 7], np.uint32))


def newton_step(jax):
    """A step of Newton's method, by conjugate gradients on products with the Hessian."""
    jnp = jax.numpy
    random = np.random.default_rng(27)

    def loss(weights, x, labels):
        for kernel in weights[:-1]:
            x = jnp.tanh(x @ kernel)
        return cross_entropy(jnp, x @ weights[-1], labels)

    def step(weights, x, labels):
        def gradient(weights):
            return jax.grad(loss)(weights, x, labels)

        def product(tangents):
            curved = jax.jvp(gradient, (weights,), (tangents,))[1]
            return jax.tree.map(lambda h, t: h + 0.1 * t, curved, tangents)

        direction, _ = jax.scipy.sparse.linalg.cg(product, gradient(weights), maxiter=5)
        return jax.tree.map(jnp.subtract, weights, direction)

    weights = [normal(random, 64, 64) for _ in range(3)] + [normal(random, 64, 10)]
    labels = random.integers(0, 10, 128).astype(np.int32)
    return step, (weights, normal(random, 128, 64, scale=1), labels)


def learned_start(jax):
    """A gradient through two steps of descent on each of eight tasks (MAML)."""
    jnp = jax.numpy
    random = np.random.default_rng(28)

    def loss(weights, x, y):
        for kernel in weights[:-1]:
            x = jax.nn.relu(x @ kernel)
        return ((x @ weights[-1] - y) ** 2).mean()

    def adapted(weights, x, y):
        for _ in range(2):
            slopes = jax.grad(loss)(weights, x, y)
            weights = [w - 0.1 * slope for w, slope in zip(weights, slopes, strict=True)]
        return weights

    def mean_loss(weights, x, y):
        def after(x, y):
            return loss(adapted(weights, x[:16], y[:16]), x[16:], y[16:])

        return jnp.mean(jax.vmap(after)(x, y))

    weights = [normal(random, 32, 64), normal(random, 64, 64), normal(random, 64, 1)]
    x, y = normal(random, 8, 32, 32, scale=1), normal(random, 8, 32, 1, scale=1)
    return jax.value_and_grad(mean_loss), (weights, x, y)


def causal_attention(jax, implementation=None):
    """Causal attention in bfloat16 over 1024 positions, with its gradients."""
    random = np.random.default_rng(29)
    arguments = tuple(normal(random, 4, 1024, 16, 128) for _ in range(3))

    def loss(*arguments):
        query, key, value = (x.astype(jax.numpy.bfloat16) for x in arguments)
        result = jax.nn.dot_product_attention(
            query, key, value, is_causal=True, implementation=implementation
        )
        return (result.astype(jax.numpy.float32) ** 2).mean()

    return jax.value_and_grad(loss, (0, 1, 2)), arguments


def fused_attention(jax):
    """Causal attention by cuDNN's kernels on NVIDIA's GPUs, and as XLA compiles it elsewhere."""
    return causal_attention(jax, "cudnn" if jax.default_backend() == "gpu" else None)
