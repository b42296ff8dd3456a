"""Small models of jax, which this script lowers and compiles: `python jax_models.py FOLDER [N]`.

For CPUs they are compiled, so that XLA dumps them into the folder of XLA_FLAGS. For TPUs and GPUs
they are written as StableHLO into FOLDER/tpu and FOLDER/cuda. N is the number of models, all by
default. It runs under a Python that has jax.
"""

import functools
import pathlib
import sys

import jax
import jax.numpy as jnp
from jax import lax


def spec(*sizes, dtype="float32"):
    return jax.ShapeDtypeStruct(sizes, dtype)


def mlp(weights, x):
    for w in weights:
        x = jax.nn.gelu(x @ w)
    return (x**2).mean()


def attention(q, k, v):
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


def convolutions(x, w):
    x = lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return lax.reduce_window(jax.nn.relu(x), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def recurrent(w, x):
    def step(h, row):
        h = jnp.tanh(h @ w + row)
        return h, h.sum()

    return lax.scan(step, jnp.zeros(x.shape[1:]), x)[1].sum()


def layer_norm(x, scale):
    x = (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-6)
    return (x * scale).sum()


def newton(x):
    def step(state):
        x, _, n = state
        return (x + 2 / x) / 2, x, n + 1

    return lax.while_loop(lambda s: (abs(s[0] - s[1]) > 1e-6) & (s[2] < 50), step, (x, x + 1, 0))


def branches(n, x):
    return lax.switch(n, [jnp.sin, jnp.cos, lambda x: -x], x) + lax.cond(n > 1, jnp.exp, abs, x)


def routed(x, gates, experts):
    weights, chosen = lax.top_k(jax.nn.softmax(x @ gates), 2)
    outputs = jnp.einsum("nd,ndke->nke", x, experts[chosen].swapaxes(1, 2))
    return (weights[..., None] * outputs).sum(1)


def dropout(seed, x):
    keep = jax.random.bernoulli(jax.random.key(seed), 0.9, x.shape)
    return jnp.where(keep, x / 0.9, 0) + jax.random.normal(jax.random.key(seed + 1), x.shape)


def solved(a, b):
    return jnp.linalg.solve(a @ a.T + jnp.eye(len(a)), b), jnp.linalg.qr(a)[1]


def waves(x):
    return jnp.fft.irfft(jnp.fft.rfft(x) * jnp.exp(1j * 0.5)), jnp.abs(jnp.fft.fft2(x + 0j))


def updated(x, indices, rows):
    return (
        x.at[indices].add(rows).at[0].set(1),
        x[indices, None],
        jnp.take_along_axis(x, x.argsort(), 1),
    )


def ordered(x):
    return jnp.sort(x, axis=0), jnp.argsort(-x), jnp.median(x), jnp.unique(x, size=8), jnp.cumsum(x)


def quantized(x, w):
    products = lax.dot(x, w, preferred_element_type=jnp.int32)
    return (products.astype("float32") / 127).astype(jnp.bfloat16).astype(jnp.float8_e4m3fn)


def hessian(x):
    return jax.hessian(lambda x: jnp.sum(jnp.sin(x) * x[::-1]))(x)


def sinkhorn(costs):
    k = jnp.exp(-costs)

    def step(_, scales):
        u, v = scales
        return 1 / (k @ v), 1 / (k.T @ u)

    return lax.fori_loop(0, 20, step, (jnp.ones(len(costs)), jnp.ones(costs.shape[1])))


def special(x):
    return jax.scipy.special.gammaln(x) + lax.erf_inv(x) + jnp.arctan2(x, 2) + lax.igamma(x, x)


def masked(images, lengths):
    mask = jnp.arange(images.shape[1]) < lengths[:, None]
    segments = jax.ops.segment_sum(images.sum(-1).ravel(), jnp.arange(mask.size) % 7, 7)
    return jnp.where(mask[..., None], images, -jnp.inf).max(1), segments


def bits(x):
    packed = lax.bitcast_convert_type(x, jnp.uint32)
    return lax.population_count(packed) ^ (packed >> 3), lax.clz(packed), jnp.packbits(x > 0)


def interpolated(image):
    return jax.image.resize(image, (48, 48, 3), "bilinear"), jnp.roll(jnp.pad(image, 1), 5, 1)


def polynomial(x):
    return jnp.polyval(jnp.arange(5.0), x), jnp.interp(x, x.cumsum(), x), jnp.convolve(x, x[:7])


def remembered(w, x):
    def block(x):
        return jnp.tanh(x @ w) @ w.T

    return sum(jax.checkpoint(block)(x).ravel() for _ in range(2)).mean()


def sampled(logits):
    return jax.random.categorical(jax.random.key(0), logits), jax.random.permutation(
        jax.random.key(1), logits, axis=0
    )


def beam(scores, starts):
    rows = jax.vmap(lambda x, s: lax.dynamic_slice(x, (s,), (8,)))(scores, starts)
    return lax.dynamic_update_slice(scores, rows, (0, 3)), lax.approx_max_k(scores, 4)


MODELS = {
    "mlp": (jax.value_and_grad(mlp), [spec(32, 64), spec(64, 16)], spec(8, 32)),
    "attention": (attention, *[spec(2, 64, 4, 32, dtype="bfloat16")] * 3),
    "convolutions": (convolutions, spec(2, 16, 16, 3), spec(3, 3, 3, 8)),
    "recurrent": (jax.grad(recurrent), spec(16, 16), spec(12, 4, 16)),
    "layer_norm": (jax.grad(layer_norm, (0, 1)), spec(8, 128), spec(128)),
    "newton": (newton, spec()),
    "branches": (branches, spec(dtype="int32"), spec(32)),
    "routed": (routed, spec(8, 16), spec(16, 4), spec(4, 16, 32)),
    "dropout": (dropout, spec(dtype="uint32"), spec(16, 16)),
    "solved": (solved, spec(12, 12), spec(12)),
    "waves": (waves, spec(16, 32)),
    "updated": (updated, spec(16, 8), spec(5, dtype="int32"), spec(5, 8)),
    "ordered": (ordered, spec(64)),
    "quantized": (quantized, spec(16, 32, dtype="int8"), spec(32, 16, dtype="int8")),
    "hessian": (hessian, spec(12)),
    "sinkhorn": (sinkhorn, spec(16, 24)),
    "special": (special, spec(32)),
    "masked": (masked, spec(4, 8, 16), spec(4, dtype="int32")),
    "bits": (bits, spec(64)),
    "interpolated": (interpolated, spec(32, 32, 3)),
    "polynomial": (polynomial, spec(32)),
    "remembered": (jax.grad(remembered), spec(16, 16), spec(8, 16)),
    "sampled": (sampled, spec(8, 32)),
    "beam": (beam, spec(4, 64), spec(4, dtype="int32")),
}


def named(name, function):
    @functools.wraps(function)
    def call(*args):
        return function(*args)

    call.__name__ = name
    return call


def main(folder, count):
    for name, (function, *args) in list(MODELS.items())[:count]:
        traced = jax.jit(named(name, function)).trace(*args)
        traced.lower().compile()
        for platform in ("tpu", "cuda"):
            text = traced.lower(lowering_platforms=(platform,)).as_text(debug_info=True)
            path = pathlib.Path(folder) / platform / f"{name}.mlir"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None)
