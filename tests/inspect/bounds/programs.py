"""Fifty programs whose bounds are held against the compilers' own figures."""

from typing import NamedTuple

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax, nn


def f32(*sizes):
    return jax.ShapeDtypeStruct(sizes, "float32")


def bf16(*sizes):
    return jax.ShapeDtypeStruct(sizes, "bfloat16")


def i32(*sizes):
    return jax.ShapeDtypeStruct(sizes, "int32")


class Program(NamedTuple):
    """A function with the arguments that it is compiled for."""

    function: object
    args: tuple[object, ...]


PROGRAMS: dict[str, Program] = {}


def program(*args):
    """Return a decorator that lists a function with its arguments."""

    def listed(function):
        PROGRAMS[function.__name__] = Program(function, args)
        return function

    return listed


# ---- elementwise and reductions -----------------------------------------------------------------


@program(f32(4096, 4096))
def elementwise(x):
    return jnp.tanh(x) * 2 + jnp.exp(-x)


@program(bf16(4096, 4096), bf16(4096))
def biased_gelu(x, b):
    return nn.gelu(x + b)


@program(f32(64, 128), f32(64, 128))
def small(x, y):
    return jnp.where(x > y, x - y, x * y)


@program(f32(4096, 4096))
def total(x):
    return x.sum()


@program(f32(4096, 4096))
def row_statistics(x):
    return x.mean(1), x.std(1), x.max(1)


@program(f32(4096, 4096))
def column_sums(x):
    return (x * x).sum(0)


@program(f32(32, 1024, 1024))
def softmax(x):
    return nn.softmax(x)


@program(bf16(8192, 2048), bf16(2048), bf16(2048))
def layer_norm(x, scale, bias):
    wide = x.astype("float32")
    normal = (wide - wide.mean(-1, keepdims=True)) * lax.rsqrt(wide.var(-1, keepdims=True) + 1e-5)
    return (normal * scale + bias).astype(x.dtype)


@program(f32(4096, 1024))
def running_sum(x):
    return jnp.cumsum(x, axis=0)


@program(f32(4096, 4096))
def transposed(x):
    return x.T + 0.0


@program(f32(2048, 1024), f32(1024, 1024))
def joined(x, y):
    return jnp.concatenate([x, y, x[:512]], axis=0) * 2


@program(f32(1024, 1024))
def padded(x):
    return jnp.pad(x, ((3, 5), (2, 7)), mode="edge")


@program(f32(4096, 4096))
def part(x):
    return jnp.sin(x)[100:200, ::4]


@program(i32(2048, 2048))
def integers(x):
    return (x << 3) ^ (x >> 5) & 255


@program(jax.ShapeDtypeStruct((1024, 1024), "complex64"))
def complex_numbers(x):
    return jnp.exp(x) * x.conj()


# ---- products -----------------------------------------------------------------------------------


@program(f32(2048, 2048), f32(2048, 2048))
def product(x, y):
    return x @ y


@program(f32(2048, 2048), f32(2048, 2048))
def highest_product(x, y):
    return jnp.matmul(x, y, precision="highest")


@program(f32(2048, 2048), f32(2048, 2048))
def high_product(x, y):
    return jnp.matmul(x, y, precision="high")


@program(bf16(4096, 4096), bf16(4096, 4096))
def bfloat16_product(x, y):
    return x @ y


@program(jax.ShapeDtypeStruct((4096, 4096), "int8"), jax.ShapeDtypeStruct((4096, 4096), "int8"))
def int8_product(x, y):
    return lax.dot(x, y, preferred_element_type="int32")


@program(f32(4096, 4096), f32(4096))
def matrix_vector(x, y):
    return x @ y


@program(bf16(64, 512, 64), bf16(64, 64, 512))
def batched_product(x, y):
    return x @ y


@program(f32(512, 512), f32(512, 512), f32(512, 512))
def chain(x, y, z):
    return nn.relu(x @ y) @ z


@program(f32(16, 32, 64), f32(16, 64, 32), f32(32, 8))
def summed_indices(x, y, z):
    return jnp.einsum("bij,bji,ik->bk", x, y, z)


# ---- windows ------------------------------------------------------------------------------------


@program(f32(16, 64, 56, 56), f32(64, 64, 3, 3))
def convolution(x, k):
    return lax.conv_general_dilated(x, k, (1, 1), "SAME")


@program(bf16(16, 56, 56, 64), bf16(3, 3, 64, 128))
def strided_convolution(x, k):
    return lax.conv_general_dilated(
        x, k, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


@program(f32(8, 32, 28, 28), f32(32, 32, 3, 3))
def convolution_gradient(x, k):
    def loss(k):
        return (lax.conv_general_dilated(x, k, (1, 1), "SAME") ** 2).sum()

    return jax.grad(loss)(k)


@program(f32(8, 64, 56, 56), f32(64, 1, 3, 3))
def depthwise_convolution(x, k):
    return lax.conv_general_dilated(x, k, (1, 1), "SAME", feature_group_count=64)


@program(f32(16, 112, 112, 64))
def max_pooling(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


@program(f32(16, 28, 28, 64))
def resized(x):
    return jax.image.resize(x, (16, 56, 56, 64), "bilinear")


# ---- indices, sorts and loops -------------------------------------------------------------------


@program(f32(50000, 512), i32(32, 256))
def embedding(table, tokens):
    return table[tokens]


@program(f32(10000, 512), i32(4096), f32(4096, 512))
def embedding_gradient(table, tokens, updates):
    return table.at[tokens].add(updates)


@program(f32(4096, 512), i32(4096))
def segments(x, ids):
    return jax.ops.segment_sum(x, ids, num_segments=128)


@program(f32(1024, 1024))
def sorted_rows(x):
    return jnp.sort(x, axis=-1)


@program(f32(64, 32000))
def largest(x):
    return lax.top_k(x, 16)


@program(f32(8, 2048, 64), f32(8, 64), i32())
def cache_update(cache, new, index):
    return lax.dynamic_update_slice(cache, new[:, None], (0, index, 0))


@program(f32(128, 512), f32(24, 512, 512))
def scanned_layers(x, weights):
    return lax.scan(lambda h, w: (jnp.tanh(h @ w), h.sum()), x, weights)


@program(f32(128, 512), f32(512, 512))
def repeated(x, w):
    return lax.fori_loop(0, 10, lambda _, h: jnp.tanh(h @ w), x)


@program(f32(512, 512), i32())
def branches(x, i):
    return lax.cond(i > 0, jnp.sin, jnp.cos, x)


@program(f32(64, 4096))
def fourier(x):
    return jnp.abs(jnp.fft.rfft(x))


@program(f32(256, 256), f32(256, 16))
def triangular(a, b):
    return jax.scipy.linalg.solve_triangular(a, b, lower=True)


@program(jax.ShapeDtypeStruct((2,), "uint32"))
def random_numbers(key):
    return jax.random.normal(key, (1024, 1024))


@program(i32(65536))
def counts(x):
    return jnp.bincount(x, length=256)


# ---- models -------------------------------------------------------------------------------------


@program(bf16(8, 1024, 8, 64), bf16(8, 1024, 2, 64), bf16(8, 1024, 2, 64))
def grouped_attention(q, k, v):
    q = q.reshape(8, 1024, 2, 4, 64)
    scores = jnp.einsum("bqhgd,bkhd->bhgqk", q, k) / 8
    mask = jnp.tril(jnp.ones((1024, 1024), bool))
    weights = nn.softmax(jnp.where(mask, scores, -1e9))
    return jnp.einsum("bhgqk,bkhd->bqhgd", weights, v)


def _perceptron(weights, x):
    for w in weights:
        x = jnp.tanh(x @ w)
    return (x**2).mean()


@program([f32(1024, 1024)] * 3, f32(512, 1024))
def perceptron_step(weights, x):
    gradients = jax.grad(_perceptron)(weights, x)
    return [w - 0.1 * g for w, g in zip(weights, gradients, strict=True)]


@program(*[f32(2048, 2048)] * 4)
def adam(w, g, m, v):
    m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    return w - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v


@program(f32(64, 32000), i32(64))
def cross_entropy(logits, labels):
    chosen = jnp.take_along_axis(logits, labels[:, None], axis=-1)[:, 0]
    return (nn.logsumexp(logits, axis=-1) - chosen).mean()


@program(f32(512, 256), f32(256, 8), f32(8, 256, 512))
def mixture(x, gate, experts):
    weights, chosen = lax.top_k(nn.softmax(x @ gate), 2)
    routed = jnp.einsum("te,td,edf->tf", nn.one_hot(chosen, 8).sum(1), x, experts)
    return routed * weights.sum(-1, keepdims=True)


@program(f32(2, 256, 512), f32(512, 1536), f32(512, 512), f32(512, 2048), f32(2048, 512))
def transformer_block_gradient(x, qkv, out, up, down):
    def block(x, qkv, out, up, down):
        q, k, v = (a.reshape(2, 256, 8, 64) for a in jnp.split(x @ qkv, 3, axis=-1))
        weights = nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8)
        x = x + jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape) @ out
        return (x + nn.gelu(x @ up) @ down).sum()

    return jax.grad(block, argnums=(0, 1, 2, 3, 4))(x, qkv, out, up, down)


@program(f32(32, 128), f32(128, 512), f32(128, 512), f32(100, 32, 128))
def recurrent(h, w, u, inputs):
    def step(state, x):
        h, c = state
        i, f, g, o = jnp.split(x @ w + h @ u, 4, axis=-1)
        c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
        return (nn.sigmoid(o) * jnp.tanh(c), c), None

    return lax.scan(step, (h, h), inputs)[0]
