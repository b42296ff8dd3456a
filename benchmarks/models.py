"""Models as people write them, for both libraries: each is a training step and its arguments.

Every function takes `jax`, the library itself or hlofront in its place, and returns a step, that
can be jitted, and the arguments to call it with: NumPy arrays, the same on both sides.
"""

import numpy as np


def normal(random, *shape, scale=None):
    """Random weights of float32, scaled by the size of what they are contracted with."""
    if scale is None:
        scale = 1 / np.sqrt(np.prod(shape[:-1]))
    return (random.normal(size=shape) * scale).astype(np.float32)


def descent(jax, loss, rate=1e-3):
    """A step of gradient descent: the loss, and the weights after it."""

    def step(weights, *batch):
        value, gradient = jax.value_and_grad(loss)(weights, *batch)
        return value, jax.tree.map(lambda w, g: w - rate * g, weights, gradient)

    return step


def adam(jax, loss, rate=1e-3):
    """A step of Adam: the loss, the weights and both moments after it."""
    jnp = jax.numpy

    def step(state, *batch):
        weights, first, second, count = state
        value, gradient = jax.value_and_grad(loss)(weights, *batch)
        count = count + 1
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradient)

        def moved(w, m, v):
            return w - rate * (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-8)

        return value, (jax.tree.map(moved, weights, first, second), first, second, count)

    return step


def cross_entropy(jnp, logits, labels):
    """The mean over a batch; labels are indices of the last axis."""
    shifted = logits - logits.max(-1, keepdims=True)
    log_sum = jnp.log(jnp.exp(shifted).sum(-1))
    return (log_sum - jnp.take_along_axis(shifted, labels[..., None], -1)[..., 0]).mean()


# ---- transformers --------------------------------------------------------------------------------


def gpt(
    jax,
    layers,
    width=256,
    *,
    batch=4,
    length=128,
    heads=4,
    words=512,
    dtype=np.float32,
    layer_of=lambda layer: layer,
    optimizer=descent,
):
    """A GPT: pre-norm attention and MLP on a residual stream, and weights per layer in a list.

    Args:
      layer_of: what is made of the function of one layer: `jax.jit`, `jax.checkpoint`.
    """
    jnp = jax.numpy
    random = np.random.default_rng(0)

    def normalized(x, scale):
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) / jnp.sqrt(variance + 1e-5) * scale

    def gelu(x):
        return 0.5 * x * (1 + jnp.tanh(0.7978845608 * (x + 0.044715 * x**3)))

    def attention(x, w):
        b, t, d = x.shape
        qkv = (x @ w["qkv"]).reshape(b, t, 3, heads, d // heads)
        q, k, v = (qkv[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
        scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(d // heads).astype(dtype)
        scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -1e9)
        scores = jnp.exp(scores - scores.max(-1, keepdims=True))
        scores = scores / scores.sum(-1, keepdims=True)
        return (scores @ v).transpose(0, 2, 1, 3).reshape(b, t, d) @ w["out"]

    def layer(x, w):
        x = x + attention(normalized(x, w["norm1"]), w)
        return x + gelu(normalized(x, w["norm2"]) @ w["up"]) @ w["down"]

    layer = layer_of(layer)

    def loss(weights, tokens):
        weights = jax.tree.map(lambda w: w.astype(dtype), weights)
        x = weights["words"][tokens[:, :-1]] + weights["places"]
        for w in weights["layers"]:
            x = layer(x, w)
        logits = normalized(x, weights["norm"]) @ weights["words"].T
        return cross_entropy(jnp, logits.astype(np.float32), tokens[:, 1:])

    weights = {
        "words": normal(random, words, width, scale=0.02),
        "places": normal(random, length, width, scale=0.02),
        "norm": np.ones(width, np.float32),
        "layers": [
            {
                "norm1": np.ones(width, np.float32),
                "norm2": np.ones(width, np.float32),
                "qkv": normal(random, width, 3 * width),
                "out": normal(random, width, width),
                "up": normal(random, width, 4 * width),
                "down": normal(random, 4 * width, width),
            }
            for _ in range(layers)
        ],
    }
    tokens = random.integers(0, words, (batch, length + 1)).astype(np.int32)
    if optimizer is adam:
        zeros = jax.tree.map(np.zeros_like, weights)
        weights = (weights, zeros, jax.tree.map(np.copy, zeros), np.float32(0))
    return optimizer(jax, loss), (weights, tokens)


def vit(jax, layers, width=192, *, batch=8, heads=3, patches=64):
    """A vision transformer over patches, with biases, learned branch scales and GELU by erf."""
    jnp, lax = jax.numpy, jax.lax
    random = np.random.default_rng(1)

    def normalized(x, w):
        mean = x.mean(-1, keepdims=True)
        centered = x - mean
        return centered * lax.rsqrt((centered**2).mean(-1, keepdims=True) + 1e-6) * w[0] + w[1]

    def dense(x, w):
        return x @ w[0] + w[1]

    def attention(x, w):
        b, t, d = x.shape
        q, k, v = jnp.split(dense(x, w["qkv"]), 3, axis=-1)
        q, k, v = (y.reshape(b, t, heads, d // heads) for y in (q, k, v))
        scores = jnp.einsum("bthd,bshd->bhts", q, k) / np.float32(np.sqrt(d // heads))
        scores = jnp.exp(scores - lax.stop_gradient(scores.max(-1, keepdims=True)))
        scores = scores / scores.sum(-1, keepdims=True)
        return dense(jnp.einsum("bhts,bshd->bthd", scores, v).reshape(b, t, d), w["out"])

    def loss(weights, images, labels):
        x = dense(images, weights["patches"]) + weights["places"]
        for w in weights["layers"]:
            x = x + w["scale1"] * attention(normalized(x, w["norm1"]), w)
            y = dense(normalized(x, w["norm2"]), w["up"])
            y = 0.5 * y * (1 + lax.erf(y * np.float32(np.sqrt(0.5))))
            x = x + w["scale2"] * dense(y, w["down"])
        x = normalized(x, weights["norm"]).mean(1)
        return cross_entropy(jnp, dense(x, weights["head"]), labels)

    def affine(a, b):
        return [normal(random, a, b), np.zeros(b, np.float32)]

    def norm():
        return [np.ones(width, np.float32), np.zeros(width, np.float32)]

    weights = {
        "patches": affine(48, width),
        "places": normal(random, patches, width, scale=0.02),
        "norm": norm(),
        "head": affine(width, 10),
        "layers": [
            {
                "norm1": norm(),
                "norm2": norm(),
                "scale1": np.full(width, 0.1, np.float32),
                "scale2": np.full(width, 0.1, np.float32),
                "qkv": affine(width, 3 * width),
                "out": affine(width, width),
                "up": affine(width, 4 * width),
                "down": affine(4 * width, width),
            }
            for _ in range(layers)
        ],
    }
    images = normal(random, batch, patches, 48, scale=1)
    return descent(jax, loss), (weights, images, np.arange(batch, dtype=np.int32) % 10)


# ---- recurrent -----------------------------------------------------------------------------------


def lstm(jax, steps=50, *, width=128, features=64, batch=32):
    """An LSTM that is unrolled by a Python loop, as it was done before scan."""
    jnp, lax = jax.numpy, jax.lax
    random = np.random.default_rng(2)

    def loss(weights, inputs, targets):
        h = c = jnp.zeros((batch, width))
        for t in range(steps):
            gates = inputs[:, t] @ weights["in"] + h @ weights["state"] + weights["bias"]
            i, f, g, o = jnp.split(gates, 4, axis=-1)
            c = lax.logistic(f + 1) * c + lax.logistic(i) * jnp.tanh(g)
            h = lax.logistic(o) * jnp.tanh(c)
        return ((h @ weights["out"] - targets) ** 2).mean()

    weights = {
        "in": normal(random, features, 4 * width),
        "state": normal(random, width, 4 * width),
        "bias": np.zeros(4 * width, np.float32),
        "out": normal(random, width, features),
    }
    inputs = normal(random, batch, steps, features, scale=1)
    return descent(jax, loss), (weights, inputs, normal(random, batch, features, scale=1))


def gru(jax, steps=50, *, width=128, features=64, batch=32):
    """A GRU, unrolled, with a loss at each step."""
    jnp, lax = jax.numpy, jax.lax
    random = np.random.default_rng(3)

    def loss(weights, inputs, targets):
        h = jnp.zeros((batch, width))
        total = 0.0
        for t in range(steps):
            x = inputs[:, t] @ weights["in"]
            y = h @ weights["state"]
            r, z = (
                lax.logistic(x[:, :width] + y[:, :width]),
                lax.logistic(x[:, width : 2 * width] + y[:, width : 2 * width]),
            )
            h = (1 - z) * jnp.tanh(x[:, 2 * width :] + r * y[:, 2 * width :]) + z * h
            total = total + ((h @ weights["out"] - targets[:, t]) ** 2).mean()
        return total

    weights = {
        "in": normal(random, features, 3 * width),
        "state": normal(random, width, 3 * width),
        "out": normal(random, width, features),
    }
    inputs = normal(random, batch, steps, features, scale=1)
    return descent(jax, loss), (weights, inputs, normal(random, batch, steps, features, scale=1))


def ode(jax, steps=20, *, width=64, batch=256):
    """A neural ODE: classic Runge-Kutta steps of a small network, unrolled."""
    jnp = jax.numpy
    random = np.random.default_rng(4)

    def loss(weights, x, targets):
        def speed(x):
            return jnp.tanh(x @ weights[0] + weights[1]) @ weights[2]

        for _ in range(steps):
            k1 = speed(x)
            k2 = speed(x + 0.05 * k1)
            k3 = speed(x + 0.05 * k2)
            k4 = speed(x + 0.1 * k3)
            x = x + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return ((x - targets) ** 2).mean()

    weights = [
        normal(random, width, 2 * width),
        np.zeros(2 * width, np.float32),
        normal(random, 2 * width, width),
    ]
    x = normal(random, batch, width, scale=1)
    return descent(jax, loss), (weights, x, normal(random, batch, width, scale=1))


# ---- convolutions --------------------------------------------------------------------------------


def convolution(jax, x, kernel, stride=1):
    return jax.lax.conv_general_dilated(
        x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def batch_normalized(jnp, x, w):
    mean = x.mean((0, 1, 2))
    variance = ((x - mean) ** 2).mean((0, 1, 2))
    return (x - mean) / jnp.sqrt(variance + 1e-5) * w["scale"] + w["shift"]


def normed_kernel(random, size, a, b):
    return {
        "kernel": normal(random, size, size, a, b),
        "scale": np.ones(b, np.float32),
        "shift": np.zeros(b, np.float32),
    }


def resnet(jax, blocks=(3, 4, 6, 3), *, width=8, batch=8, size=32):
    """A ResNet of bottleneck blocks, 50 layers by default, narrow, with batch norm."""
    jnp = jax.numpy
    random = np.random.default_rng(5)

    def block(x, w, stride):
        y = jnp.maximum(batch_normalized(jnp, convolution(jax, x, w[0]["kernel"]), w[0]), 0)
        y = convolution(jax, y, w[1]["kernel"], stride)
        y = jnp.maximum(batch_normalized(jnp, y, w[1]), 0)
        y = batch_normalized(jnp, convolution(jax, y, w[2]["kernel"]), w[2])
        if len(w) == 4:
            x = batch_normalized(jnp, convolution(jax, x, w[3]["kernel"], stride), w[3])
        return jnp.maximum(x + y, 0)

    def loss(weights, images, labels):
        x = convolution(jax, images, weights["stem"]["kernel"])
        x = jnp.maximum(batch_normalized(jnp, x, weights["stem"]), 0)
        for i, stage in enumerate(weights["stages"]):
            for j, w in enumerate(stage):
                x = block(x, w, 2 if i and not j else 1)
        return cross_entropy(jnp, x.mean((1, 2)) @ weights["head"], labels)

    stages, before = [], width
    for i, count in enumerate(blocks):
        inner, stage = width * 2**i, []
        for j in range(count):
            w = [
                normed_kernel(random, 1, before, inner),
                normed_kernel(random, 3, inner, inner),
                normed_kernel(random, 1, inner, 4 * inner),
            ]
            if j == 0:
                w.append(normed_kernel(random, 1, before, 4 * inner))
            before = 4 * inner
            stage.append(w)
        stages.append(stage)
    weights = {
        "stem": normed_kernel(random, 3, 3, width),
        "stages": stages,
        "head": normal(random, before, 10),
    }
    images = normal(random, batch, size, size, 3, scale=1)
    return descent(jax, loss), (weights, images, np.arange(batch, dtype=np.int32) % 10)


def unet(jax, depth=4, *, width=8, batch=4, size=64):
    """A UNet: down by pooling, up by repeating, and skips that are concatenated."""
    jnp = jax.numpy
    random = np.random.default_rng(6)

    def double(x, ws):
        for w in ws:
            x = batch_normalized(jnp, convolution(jax, x, w["kernel"]), w)
            x = jnp.maximum(x, 0.01 * x)
        return x

    def loss(weights, images, targets):
        x, skips = images, []
        for ws in weights["down"]:
            x = double(x, ws)
            skips.append(x)
            b, h, v, c = x.shape
            x = x.reshape(b, h // 2, 2, v // 2, 2, c).max((2, 4))
        x = double(x, weights["bottom"])
        for ws in weights["up"]:
            x = jnp.repeat(jnp.repeat(x, 2, axis=1), 2, axis=2)
            x = double(jnp.concatenate([x, skips.pop()], axis=-1), ws)
        return ((convolution(jax, x, weights["head"]) - targets) ** 2).mean()

    sizes = [width * 2**i for i in range(depth)]
    down, before = [], 3
    for channels in sizes:
        down.append(
            [
                normed_kernel(random, 3, before, channels),
                normed_kernel(random, 3, channels, channels),
            ]
        )
        before = channels
    bottom = [
        normed_kernel(random, 3, before, 2 * before),
        normed_kernel(random, 3, 2 * before, 2 * before),
    ]
    up, before = [], 2 * before
    for channels in reversed(sizes):
        up.append(
            [
                normed_kernel(random, 3, before + channels, channels),
                normed_kernel(random, 3, channels, channels),
            ]
        )
        before = channels
    weights = {"down": down, "bottom": bottom, "up": up, "head": normal(random, 1, 1, before, 3)}
    images = normal(random, batch, size, size, 3, scale=1)
    return descent(jax, loss), (weights, images, normal(random, batch, size, size, 3, scale=1))


def densenet(jax, layers=24, *, growth=8, batch=8, size=16):
    """A DenseNet's block: each layer reads all the layers before it, concatenated."""
    jnp = jax.numpy
    random = np.random.default_rng(7)

    def loss(weights, images, labels):
        x = convolution(jax, images, weights["stem"])
        for w in weights["layers"]:
            y = convolution(jax, jnp.maximum(x, 0), w["kernel"])
            x = jnp.concatenate([x, batch_normalized(jnp, y, w)], axis=-1)
        return cross_entropy(jnp, x.mean((1, 2)) @ weights["head"], labels)

    weights = {
        "stem": normal(random, 3, 3, 3, growth),
        "layers": [normed_kernel(random, 3, growth * (i + 1), growth) for i in range(layers)],
        "head": normal(random, growth * (layers + 1), 10),
    }
    images = normal(random, batch, size, size, 3, scale=1)
    return descent(jax, loss), (weights, images, np.arange(batch, dtype=np.int32) % 10)


# ---- plain ---------------------------------------------------------------------------------------


def mlp(jax, layers, width=64, *, batch=128, residual=False, optimizer=descent):
    """A deep MLP with tanh: plain, or on a residual stream."""
    jnp = jax.numpy
    random = np.random.default_rng(8)

    def loss(weights, x, targets):
        for kernel, bias in weights:
            y = jnp.tanh(x @ kernel + bias)
            x = x + y if residual else y
        return ((x - targets) ** 2).mean()

    weights = [(normal(random, width, width), np.zeros(width, np.float32)) for _ in range(layers)]
    x = normal(random, batch, width, scale=1)
    if optimizer is adam:
        zeros = jax.tree.map(np.zeros_like, weights)
        weights = (weights, zeros, jax.tree.map(np.copy, zeros), np.float32(0))
    return optimizer(jax, loss), (weights, x, normal(random, batch, width, scale=1))


def chain(jax, count=1000, size=4096):
    """Elementwise operations alone, each on the one before, without a gradient."""

    def step(x):
        y = x
        for _ in range(count):
            y = y * x
        return y

    return step, (np.full(size, 1.0, np.float32),)


def orbit(jax, steps=100, *, bodies=4096):
    """A simulation by elementwise arithmetic that keeps all its states, and their gradient."""
    jnp = jax.numpy
    random = np.random.default_rng(9)

    def energy(start):
        x, v = start
        states = []
        for _ in range(steps):
            v = v - 0.01 * x * (1 + 0.1 * x * x)
            x = x + 0.01 * v
            states.append(x)
        return (jnp.stack(states) ** 2).mean()

    return descent(jax, energy), ([normal(random, bodies), normal(random, bodies)],)
