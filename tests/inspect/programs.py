"""Programs whose compiled texts are read and compared: those of the seeds, and two training steps.

As a script it compiles them in a process of its own and writes the texts, that of the GPT's step
only for TPUs, as other compilers take long for it:

    python programs.py FOLDER TARGET...
"""

import pathlib
import sys

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax, nn


def spec(*sizes, dtype="float32"):
    return jax.ShapeDtypeStruct(sizes, dtype)


# ---- the seeds' ----------------------------------------------------------------------------------


def selu(x, alpha=1.1, scale=1.05):
    return scale * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)


def standardized(x):
    x = x - x.mean(0)
    return x / x.std(0)


def products(x):
    y = x[:, None] @ x[None, :]
    return y.mean(), jnp.minimum(y, 0) + y


def masked(x, mask):
    return x.at[mask].set(-100.0), x.at[2].set(1.0).sort(axis=-1)


def feed_forward(parameters, x):
    for each in parameters:
        x = jnp.tanh(each["W"] @ x + each["b"])
    return x


def fitted(parameters, data):
    """A step of gradient descent on a line."""

    def loss(parameters):
        prediction = parameters["slope"] * data["x"] + parameters["offset"]
        return jnp.mean((data["y"] - prediction) ** 2)

    gradient = jax.grad(loss)(parameters)
    return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradient)


def convolved(x, weights):
    """A convolution that is written for one signal, for many."""

    def one(x):
        return jnp.stack([x[i : i + 3] @ weights for i in range(x.shape[0] - 2)])

    return jax.vmap(one)(x)


def looped(x):
    return lax.fori_loop(0, 10, lambda i, x: jnp.tanh(x) + i, x)


def branched(x, index):
    halved = lax.cond(x.sum() > 0, lambda x: x / 2, lambda x: x, x)
    return lax.switch(index, [jnp.sin, jnp.cos, lambda x: x * x], halved)


# ---- training steps ------------------------------------------------------------------------------


def normalized(x, scale):
    x = x.astype("float32")
    centered = x - x.mean(-1, keepdims=True)
    return (centered * lax.rsqrt((centered**2).mean(-1, keepdims=True) + 1e-5) * scale).astype(
        "bfloat16"
    )


def attention(x, w, heads):
    batch, length, width = x.shape
    qkv = (x @ w["qkv"]).reshape(batch, length, 3, heads, width // heads)
    q, k, v = (qkv[:, :, i] for i in range(3))
    scores = jnp.einsum("bthd,bshd->bhts", q, k).astype("float32") / 4.0
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    mixed = jnp.einsum("bhts,bshd->bthd", nn.softmax(scores).astype("bfloat16"), v)
    return mixed.reshape(batch, length, width) @ w["out"]


def gpt_loss(weights, tokens, heads=2):
    half = jax.tree.map(lambda w: w.astype("bfloat16"), weights)
    x = half["words"][tokens[:, :-1]] + half["places"]
    for w in half["layers"]:
        x = x + attention(normalized(x, w["norm1"]), w, heads)
        x = x + nn.gelu(normalized(x, w["norm2"]) @ w["up"]) @ w["down"]
    logits = (normalized(x, half["norm"]) @ half["words"].T).astype("float32")
    picked = jnp.take_along_axis(nn.log_softmax(logits), tokens[:, 1:, None], -1)
    return -picked.mean()


def gpt_step(weights, momenta, tokens):
    """A training step of a GPT of two layers, in bfloat16 with float32 weights."""
    loss, gradient = jax.value_and_grad(gpt_loss)(weights, tokens)
    momenta = jax.tree.map(lambda m, g: 0.9 * m + g, momenta, gradient)
    return loss, jax.tree.map(lambda w, m: w - 1e-3 * m, weights, momenta), momenta


def gpt_arguments(layers=2, width=32, words=64, batch=2, length=16):
    layer = {
        "norm1": spec(width),
        "norm2": spec(width),
        "qkv": spec(width, 3 * width),
        "out": spec(width, width),
        "up": spec(width, 4 * width),
        "down": spec(4 * width, width),
    }
    weights = {
        "words": spec(words, width),
        "places": spec(length, width),
        "norm": spec(width),
        "layers": [layer] * layers,
    }
    return weights, weights, spec(batch, length + 1, dtype="int32")


def convolution(x, kernel):
    return lax.conv_general_dilated(
        x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def batch_normalized(x, w, running):
    """The result, and the running mean and variance."""
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    running = jax.tree.map(
        lambda old, new: 0.9 * old + 0.1 * new, running, {"mean": mean, "variance": variance}
    )
    return (x - mean) * lax.rsqrt(variance + 1e-5) * w["scale"] + w["bias"], running


def resnet_loss(weights, state, images, labels):
    x = convolution(images, weights["stem"])
    updated = []
    for w, running in zip(weights["blocks"], state, strict=True):
        y, first = batch_normalized(convolution(x, w["first"]), w["norm1"], running[0])
        y, second = batch_normalized(convolution(nn.relu(y), w["second"]), w["norm2"], running[1])
        x = nn.relu(x + y)
        updated.append((first, second))
    logits = x.mean((1, 2)) @ weights["head"]
    loss = -jnp.take_along_axis(nn.log_softmax(logits), labels[:, None], -1).mean()
    return loss, updated


def resnet_step(weights, state, images, labels):
    """A training step of a ResNet of one block with batch norm."""
    (loss, state), gradient = jax.value_and_grad(resnet_loss, has_aux=True)(
        weights, state, images, labels
    )
    return loss, jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradient), state


def resnet_arguments(blocks=1, width=8, batch=4, size=8):
    norm = {"scale": spec(width), "bias": spec(width)}
    block = {
        "first": spec(3, 3, width, width),
        "second": spec(3, 3, width, width),
        "norm1": norm,
        "norm2": norm,
    }
    weights = {
        "stem": spec(3, 3, 3, width),
        "blocks": [block] * blocks,
        "head": spec(width, 10),
    }
    running = {"mean": spec(width), "variance": spec(width)}
    return (
        weights,
        [(running, running)] * blocks,
        spec(batch, size, size, 3),
        spec(batch, dtype="int32"),
    )


# ---- changes in programs -------------------------------------------------------------------------


def activated(x, w, b):
    h = jnp.tanh(x @ w + b)
    return h, (h * h).sum(-1)


def activated_in_half(x, w, b):
    h = jnp.tanh((x @ w + b).astype("bfloat16")).astype("float32")
    return h, (h * h).sum(-1)


def activated_along_columns(x, w, b):
    h = jnp.tanh(x @ w + b)
    return h, (h * h).sum(-2)


def activated_transposed(x, w, b):
    h = jnp.tanh(x @ w.T + b)
    return h, (h * h).sum(-1)


def activated_beside_itself(x, w, b):
    h = lax.optimization_barrier(jnp.tanh(x @ w + b))
    return h, (h * h).sum(-1)


def added(x, w, b):
    return jnp.sin(x) + jnp.cos(w) + x * w + b


def added_in_pairs(x, w, b):
    return (jnp.sin(x) + jnp.cos(w)) + (x * w + b)


def added_backwards(x, w, b):
    return b + (w * x + (jnp.cos(w) + jnp.sin(x)))


def joined(x, w, b, axis=0):
    return jnp.concatenate([jnp.sin(x), w], axis).reshape(64, 128) * 2


def joined_sideways(x, w, b):
    return joined(x, w, b, 1)


SQUARE = spec(64, 64), spec(64, 64), spec(64)


def _layer(out, width):
    return {"W": spec(out, width), "b": spec(out)}


_LINE = {"slope": spec(1), "offset": spec(1)}

# Each function with its arguments.
PROGRAMS = {
    "selu": (selu, (spec(1000),)),
    "standardized": (standardized, (spec(50, 4),)),
    "products": (products, (spec(64, dtype="int32"),)),
    "masked": (masked, (spec(8, 8), spec(8, 8, dtype="bool"))),
    "feed_forward": (feed_forward, ([_layer(64, 784), _layer(10, 64)], spec(784))),
    "fitted": (fitted, (_LINE, {"x": spec(50), "y": spec(50)})),
    "convolved": (convolved, (spec(4, 8), spec(3))),
    "looped": (looped, (spec(16, 16),)),
    "branched": (branched, (spec(32), spec(dtype="int32"))),
    "gpt_step": (gpt_step, gpt_arguments()),
    "resnet_step": (resnet_step, resnet_arguments()),
}
TARGETS = ("cpu", "tpu:v5e:1x1", "cuda:h100")
# The least work of LLVM, which runs after all passes of HLO.
UNOPTIMIZED_CODE = {"xla_backend_optimization_level": 0}


def compiled(name, target, **options):
    """The compiled program of that name for a target, attached or not."""
    function, arguments = PROGRAMS[name]
    if name == "gpt_step" and target.startswith("cuda"):
        # Each layer takes three seconds.
        arguments = gpt_arguments(layers=1)
    return compiled_as(function, arguments, target, **options)


def compiled_as(function, arguments, target, compiler_options=None):
    if not target.startswith("tpu"):
        compiler_options = UNOPTIMIZED_CODE | (compiler_options or {})
    jitted = jax.jit(function, compiler_options=compiler_options)
    if target == "cpu":
        return jitted.lower(*arguments).compile()
    with jax.target(target):
        return jitted.lower(*arguments).compile()


def main(folder, targets):
    for target in targets:
        for name in reversed(PROGRAMS):
            if name == "gpt_step" and not target.startswith("tpu"):
                continue
            file = pathlib.Path(folder) / f"{name}.{target.replace(':', '-')}.hlo"
            file.write_text(compiled(name, target).as_text(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
