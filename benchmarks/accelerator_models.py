"""Programs as accelerators run them, for both libraries: a gradient or a step, and its arguments.

Every function takes `jax`, the library itself or hlofront in its place, and returns a function that
can be jitted, and the arguments to call it with: NumPy arrays, the same on both sides. The models
of the other modules of models are listed with them in MODELS.
"""

import attention_models
import looped_models
import models
import numpy as np
from models import convolution, cross_entropy, normal


def hessian(jax):
    """The Hessian of a small network's loss."""
    jnp = jax.numpy
    random = np.random.default_rng(0)

    def loss(weights, x):
        for kernel in weights:
            x = jnp.tanh(x @ kernel)
        return (x**2).mean()

    weights = [normal(random, 16, 16) for _ in range(3)]
    return jax.hessian(loss), (weights, normal(random, 32, 16, scale=1))


def masked_attention(jax):
    """Attention with a causal mask, written with einsum and softmax."""
    jnp = jax.numpy
    random = np.random.default_rng(1)

    def loss(q, k, v):
        scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 8
        mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
        weights = jax.nn.softmax(jnp.where(mask, scores, -1e9))
        return (jnp.einsum("bhqk,bhkd->bhqd", weights, v) ** 2).mean()

    arguments = tuple(normal(random, 4, 8, 256, 64, scale=1) for _ in range(3))
    return jax.value_and_grad(loss, (0, 1, 2)), arguments


def gpt_of_nn(jax, layers=4, width=512, heads=8):
    """A GPT of `jax.nn`'s functions: dot_product_attention, gelu, log_softmax, variances by var."""
    jnp = jax.numpy
    random = np.random.default_rng(2)

    def normalized(x, w):
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * w["scale"] + w["shift"]

    def loss(weights, tokens):
        x = weights["words"][tokens[:, :-1]]
        for w in weights["layers"]:
            y = normalized(x, w["first"])
            q, k, v = (jnp.einsum("btd,dhk->bthk", y, w[name]) for name in "qkv")
            y = jax.nn.dot_product_attention(q, k, v, is_causal=True)
            x = x + jnp.einsum("bthk,hkd->btd", y, w["out"])
            x = x + jax.nn.gelu(normalized(x, w["second"]) @ w["up"]) @ w["down"]
        logits = jax.nn.log_softmax(x @ weights["words"].T)
        return -jnp.take_along_axis(logits, tokens[:, 1:, None], -1).mean()

    def layer():
        norms = {
            name: {"scale": np.ones(width, np.float32), "shift": np.zeros(width, np.float32)}
            for name in ("first", "second")
        }
        each = width // heads
        return norms | {
            **{name: normal(random, width, heads, each, scale=0.04) for name in "qkv"},
            "out": normal(random, heads, each, width),
            "up": normal(random, width, 4 * width),
            "down": normal(random, 4 * width, width),
        }

    weights = {"layers": [layer() for _ in range(layers)], "words": normal(random, 1000, width)}
    tokens = random.integers(0, 1000, (4, 257)).astype(np.int32)
    return jax.value_and_grad(loss), (weights, tokens)


def resnet_by_var(jax):
    """Residual blocks of convolutions whose batch normalization takes its variance by var."""
    jnp = jax.numpy
    random = np.random.default_rng(3)

    def normalized(x):
        return (x - x.mean((0, 1, 2))) / jnp.sqrt(x.var((0, 1, 2)) + 1e-5)

    def loss(kernels, x):
        for first, second in kernels:
            y = jnp.maximum(normalized(convolution(jax, x, first)), 0)
            x = jnp.maximum(normalized(convolution(jax, y, second)) + x, 0)
        return (x**2).mean()

    kernels = [[normal(random, 3, 3, 32, 32) for _ in range(2)] for _ in range(4)]
    return jax.value_and_grad(loss), (kernels, normal(random, 8, 32, 32, 32, scale=1))


def narrow_resnet(jax):
    """Eight blocks of two convolutions of 16 channels, with batch normalization written out."""
    jnp = jax.numpy
    random = np.random.default_rng(22)

    def normalized(x, scale, shift):
        axes = (0, 1, 2)
        return (x - x.mean(axes)) / jnp.sqrt(x.var(axes) + 1e-5) * scale + shift

    def loss(weights, images, labels):
        x = images
        for w in weights["blocks"]:
            y = jax.nn.relu(normalized(convolution(jax, x, w["first"]), *w["norm1"]))
            x = jax.nn.relu(x + normalized(convolution(jax, y, w["second"]), *w["norm2"]))
        return cross_entropy(jnp, x.mean((1, 2)) @ weights["head"], labels)

    ones, zeros = np.ones(16, np.float32), np.zeros(16, np.float32)
    blocks = [
        {
            "first": normal(random, 3, 3, 16, 16),
            "second": normal(random, 3, 3, 16, 16),
            "norm1": (ones, zeros),
            "norm2": (ones, zeros),
        }
        for _ in range(8)
    ]
    weights = {"blocks": blocks, "head": normal(random, 16, 10)}
    labels = np.arange(4, dtype=np.int32)
    return jax.value_and_grad(loss), (weights, normal(random, 4, 16, 16, 16, scale=1), labels)


def steps_hessian(jax):
    """The Hessian of six steps of sines, cumulative sums and norms of sixteen numbers."""
    jnp = jax.numpy

    def loss(x):
        for _ in range(6):
            x = jnp.sin(x) * jnp.cumsum(x) + jnp.linalg.norm(x)
        return x.sum()

    return jax.hessian(loss), (np.linspace(0.1, 1, 16, dtype=np.float32),)


def mixture_of_experts(jax):
    """A layer of eight experts, of which each token uses two, computed densely."""
    jnp = jax.numpy
    random = np.random.default_rng(4)

    def loss(weights, x):
        gates, chosen = jax.lax.top_k(jax.nn.softmax(x @ weights["gate"]), 2)
        gates = gates / gates.sum(-1, keepdims=True)
        share = (jax.nn.one_hot(chosen, 8) * gates[..., None]).sum(1)
        y = jax.nn.silu(jnp.einsum("td,edf->etf", x, weights["up"]))
        y = jnp.einsum("etf,efd,te->td", y, weights["down"], share)
        return ((y - x) ** 2).mean()

    weights = {
        "gate": normal(random, 128, 8),
        "up": normal(random, 8, 128, 256),
        "down": normal(random, 8, 256, 128),
    }
    return jax.value_and_grad(loss), (weights, normal(random, 512, 128, scale=1))


def selective_scan(jax):
    """A layer like Mamba's: a linear recurrence whose coefficients depend on the input."""
    jnp = jax.numpy
    random = np.random.default_rng(5)

    def joined(left, right):
        return left[0] * right[0], right[0] * left[1] + right[1]

    def loss(weights, x):
        step = jax.nn.softplus(x @ weights["step"])
        decay = jnp.exp(step[..., None] * -jnp.exp(weights["decay"]))
        gained = (step * x)[..., None] * (x @ weights["in"])[:, :, None, :]
        _, states = jax.lax.associative_scan(joined, (decay, gained), axis=1)
        return ((states * (x @ weights["out"])[:, :, None, :]).sum(-1) ** 2).mean()

    weights = {name: normal(random, 64, 16) for name in ("decay", "in", "out")}
    weights["step"] = normal(random, 64, 64)
    return jax.value_and_grad(loss), (weights, normal(random, 4, 128, 64))


def diffusion(jax):
    """A denoising step: convolutions, group normalization, silu, sines of the time."""
    jnp = jax.numpy
    random = np.random.default_rng(6)

    def normalized(x):
        groups = x.reshape(*x.shape[:-1], 4, 4)
        mean = groups.mean((1, 2, 4), keepdims=True)
        variance = groups.var((1, 2, 4), keepdims=True)
        return ((groups - mean) / jnp.sqrt(variance + 1e-5)).reshape(x.shape)

    def loss(kernels, x, times):
        angles = times[:, None] * jnp.exp(-jnp.arange(8) / 8 * 9.2)
        times = jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1)[:, None, None, :]
        y = x
        for kernel in kernels:
            y = y + convolution(jax, jax.nn.silu(normalized(y) + times), kernel)
        return ((y - x) ** 2).mean()

    kernels = [normal(random, 3, 3, 16, 16) for _ in range(4)]
    x = normal(random, 4, 32, 32, 16, scale=1)
    return jax.value_and_grad(loss), (kernels, x, np.linspace(0, 1, 4, dtype=np.float32))


def graph_network(jax):
    """Three layers of messages along a graph's edges, which are averaged at the nodes."""
    jnp = jax.numpy
    random = np.random.default_rng(7)

    def loss(kernels, x, senders, receivers):
        counts = jax.ops.segment_sum(jnp.ones(len(receivers)), receivers, len(x))
        for kernel in kernels:
            messages = jax.nn.relu((x @ kernel)[senders])
            x = x + jax.ops.segment_sum(messages, receivers, len(x)) / (1 + counts[:, None])
        return (x**2).mean()

    senders, receivers = random.integers(0, 500, (2, 2000)).astype(np.int32)
    kernels = [normal(random, 64, 64) for _ in range(3)]
    return jax.value_and_grad(loss), (kernels, normal(random, 500, 64), senders, receivers)


def normalizations(jax):
    """Standardize, softmax, a vector norm, std and logsumexp of one matrix."""
    jnp = jax.numpy

    def loss(x):
        y = jax.nn.softmax(jax.nn.standardize(x))
        y = y / (1 + jnp.linalg.norm(x, axis=-1, keepdims=True))
        return (y * jnp.std(x, 0)).sum() + jax.nn.logsumexp(x)

    return jax.value_and_grad(loss), (normal(np.random.default_rng(8), 1024, 1024, scale=1),)


def kalman_filter(jax):
    """The likelihood of fifty observations, by a Kalman filter in a scan."""
    jnp = jax.numpy
    random = np.random.default_rng(9)

    def loss(transition, observation, ys):
        def step(state, y):
            mean, covariance = transition @ state[0], transition @ state[1] @ transition.T
            covariance = covariance + jnp.eye(4) * 0.1
            innovation = observation @ covariance @ observation.T + jnp.eye(2) * 0.1
            gain = jnp.linalg.solve(innovation, observation @ covariance).T
            error = y - observation @ mean
            state = mean + gain @ error, covariance - gain @ observation @ covariance
            return state, error @ error + jnp.linalg.slogdet(innovation)[1]

        return jax.lax.scan(step, (jnp.zeros(4), jnp.eye(4)), ys)[1].sum()

    transition = (np.eye(4) * 0.9).astype(np.float32)
    arguments = (transition, normal(random, 2, 4), normal(random, 50, 2, scale=1))
    return jax.value_and_grad(loss, (0, 1)), arguments


def stencil(jax):
    """Twenty steps of the heat equation, by rolls."""
    jnp = jax.numpy

    def loss(x):
        def step(x, _):
            around = sum(jnp.roll(x, shift, axis) for shift in (1, -1) for axis in (0, 1))
            return x + 0.1 * (around - 4 * x), None

        return (jax.lax.scan(step, x, None, length=20)[0] ** 2).mean()

    return jax.value_and_grad(loss), (normal(np.random.default_rng(10), 256, 256, scale=1),)


def gaussian_process(jax):
    """The likelihood of a Gaussian process, by a Cholesky decomposition."""
    jnp = jax.numpy
    random = np.random.default_rng(11)

    def loss(length, x, y):
        distances = ((x[:, None] - x[None]) ** 2 / length**2).sum(-1)
        factor = jnp.linalg.cholesky(jnp.exp(-0.5 * distances) + 0.1 * jnp.eye(len(x)))
        solved = jax.scipy.linalg.cho_solve((factor, True), y)
        return 0.5 * y @ solved + jnp.log(jnp.diag(factor)).sum()

    x, y = normal(random, 128, 3, scale=1), normal(random, 128, scale=1)
    return jax.value_and_grad(loss), (np.float32(1), x, y)


def decoding(jax):
    """One token's attention to a cache of keys and values, into which its own are written."""
    jnp = jax.numpy
    random = np.random.default_rng(12)

    def step(q, k, v, keys, values, position):
        keys = jax.lax.dynamic_update_slice(keys, k, (0, position, 0, 0))
        values = jax.lax.dynamic_update_slice(values, v, (0, position, 0, 0))
        scores = jnp.einsum("bhd,bthd->bht", q, keys) / 8
        scores = jnp.where(jnp.arange(keys.shape[1]) <= position, scores, -jnp.inf)
        weights = jax.nn.softmax(scores)
        return jnp.einsum("bht,bthd->bhd", weights, values), keys, values

    one, cache = (4, 1, 8, 64), (4, 512, 8, 64)
    arrays = [normal(random, *shape, scale=1) for shape in ((4, 8, 64), one, one, cache, cache)]
    return step, (*arrays, np.int32(7))


def classifier(jax):
    """A wide linear classifier with label smoothing."""
    jnp = jax.numpy
    random = np.random.default_rng(13)

    def loss(kernel, x, labels):
        logits = x @ kernel
        smooth = -jax.nn.log_softmax(logits).mean()
        return 0.9 * cross_entropy(jnp, logits, labels) + 0.1 * smooth

    labels = random.integers(0, 1000, 256).astype(np.int32)
    return jax.value_and_grad(loss), (normal(random, 512, 1000), normal(random, 256, 512), labels)


MODELS = {
    "gpt": lambda jax: models.gpt(jax, 4, 512),
    "gpt_of_nn": gpt_of_nn,
    "vit": lambda jax: models.vit(jax, 2),
    "masked_attention": masked_attention,
    "grouped_queries": attention_models.grouped_queries,
    "position_biases": attention_models.position_biases,
    "sliding_windows": attention_models.sliding_windows,
    "running_softmax": attention_models.running_softmax,
    "linear_attention": attention_models.linear_attention,
    "checkpointed_layers": attention_models.checkpointed_layers,
    "sampled_words": attention_models.sampled_words,
    "causal_attention": attention_models.causal_attention,
    "fused_attention": attention_models.fused_attention,
    "decoding": decoding,
    "mixture_of_experts": mixture_of_experts,
    "selective_scan": selective_scan,
    "lstm": models.lstm,
    "gru": models.gru,
    "resnet": lambda jax: models.resnet(jax, (2, 2, 2, 2)),
    "resnet_by_var": resnet_by_var,
    "narrow_resnet": narrow_resnet,
    "unet": lambda jax: models.unet(jax, 3),
    "densenet": lambda jax: models.densenet(jax, 6),
    "diffusion": diffusion,
    "graph_network": graph_network,
    "classifier": classifier,
    "normalizations": normalizations,
    "mlp_by_adam": lambda jax: models.mlp(jax, 8, 256, optimizer=models.adam),
    "hessian": hessian,
    "steps_hessian": steps_hessian,
    "newton_step": attention_models.newton_step,
    "learned_start": attention_models.learned_start,
    "ode": models.ode,
    "orbit": models.orbit,
    "kalman_filter": kalman_filter,
    "stencil": stencil,
    "gaussian_process": gaussian_process,
    "transducer": looped_models.transducer,
    "hamiltonian_monte_carlo": looped_models.hamiltonian_monte_carlo,
    "ray_marching": looped_models.ray_marching,
    "unet_with_attention": looped_models.unet_with_attention,
}
