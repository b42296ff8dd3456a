"""Pairs of programs in which one thing was changed, and what the first finding must say of it."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax, nn
from hlofront.sharding import NamedSharding
from hlofront.sharding import PartitionSpec as P


def f32(*sizes, **options):
    return jax.ShapeDtypeStruct(sizes, "float32", **options)


def bf16(*sizes):
    return jax.ShapeDtypeStruct(sizes, "bfloat16")


def i32(*sizes):
    return jax.ShapeDtypeStruct(sizes, "int32")


class Program(NamedTuple):
    """A function with the arguments and options that it is compiled with."""

    function: Callable[..., object]
    args: tuple[object, ...]
    jit_options: dict[str, object] = {}
    compiler_options: dict[str, object] = {}


class Planted(NamedTuple):
    """A pair of programs, which `pair` makes for the devices of a target.

    `finding` is a pattern of the sentence that names the change; with `over_mesh` the programs are
    for several devices. `in_text` is a pattern of what the diff of the texts of the optimized HLO
    says first, and `unknown` are the platforms on which these texts do not have the cause.
    """

    name: str
    pair: Callable[[object], tuple[Program, Program]]
    finding: str
    over_mesh: bool = False
    is_x64: bool = False
    in_text: str = ""
    unknown: tuple[str, ...] = ()

    def pattern(self, target: str) -> str | None:
        """Return a pattern of what the diff of texts says first; None where they do not have it."""
        is_unknown = target.partition(":")[0] in self.unknown
        return None if is_unknown else self.in_text or self.finding


PLANTED: list[Planted] = []
# The names of targets, with those for programs that are over a mesh.
TARGETS = {"cpu": "cpu", "cuda:h100": "cuda:h100:2", "tpu:v5e:1x1": "tpu:v5e:2x2"}


def planted(finding, over_mesh=False, is_x64=False, in_text="", unknown=()):
    """Return a decorator that lists a function, which returns a pair of programs."""

    def listed(pair):
        PLANTED.append(Planted(pair.__name__, pair, finding, over_mesh, is_x64, in_text, unknown))
        return pair

    return listed


# ---- the programs -------------------------------------------------------------------------------

LAYER = f32(256, 256)
X = f32(64, 256)


def perceptron(x, w1, w2):
    return nn.gelu(x @ w1) @ w2


def loss(params, x, y):
    w1, w2 = params
    return jnp.mean((perceptron(x, w1, w2) - y) ** 2)


def step(params, x, y):
    gradients = jax.grad(loss)(params, x, y)
    return [w - 0.1 * g for w, g in zip(params, gradients, strict=True)]


STEP = ([LAYER, LAYER], X, X)


def attention(q, k, v):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8.0
    return jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(scores), v)


def layers(x, weights):
    return lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, weights)[0]


# ---- arguments ----------------------------------------------------------------------------------


@planted(r"argument x: f32\[64,256\] -> bf16\[64,256\]")
def an_arguments_dtype(devices):
    args = LAYER, LAYER
    return Program(perceptron, (X, *args)), Program(perceptron, (bf16(64, 256), *args))


@planted(r"arguments w1, w2: size 256 -> 384")
def an_arguments_shape(devices):
    return Program(perceptron, (X, LAYER, LAYER)), Program(
        perceptron, (X, f32(256, 384), f32(384, 256))
    )


@planted(r"arguments x, y: f32\[64,256\] -> f32\[128,256\]")
def a_larger_batch(devices):
    larger = f32(128, 256)
    return Program(step, STEP), Program(step, (STEP[0], larger, larger))


@planted(r"arguments params\[0\], params\[1\]: no longer donated")
def donation_lost(devices):
    return Program(step, STEP, {"donate_argnums": 0}), Program(step, STEP)


@planted(r"argument table: now a constant, f32\[64,256\]")
def a_constant_captured(devices):
    table = np.linspace(-1, 1, 64 * 256, dtype="float32").reshape(64, 256)

    def shifted(x, w, table):
        return nn.relu(x @ w) + table

    def captured(x, w):
        return nn.relu(x @ w) + table

    return Program(shifted, (X, LAYER, X)), Program(captured, (X, LAYER))


@planted(r"argument w: sharding", over_mesh=True, in_text=r"argument w: (sharding|f32)")
def an_arguments_sharding(devices):
    def apply(x, w):
        return nn.gelu(x @ w)

    mesh = jax.make_mesh((len(devices),), ("data",), devices=devices)
    x = f32(64, 256, sharding=NamedSharding(mesh, P("data")))
    whole = f32(256, 256, sharding=NamedSharding(mesh, P()))
    split = f32(256, 256, sharding=NamedSharding(mesh, P("data")))
    return Program(apply, (x, whole)), Program(apply, (x, split))


# ---- the compiler -------------------------------------------------------------------------------


@planted(r"flag xla_\w+: ", unknown=("cpu", "cuda", "tpu"))
def a_compilers_flag(devices):
    flags = {"xla_disable_hlo_passes": "fusion,priority-fusion,multi_output_fusion"}
    return Program(step, STEP), Program(step, STEP, compiler_options=flags)


@planted(r"precision of dot_general", in_text=r"operand_precision of ", unknown=("tpu",))
def the_precision_of_a_product(devices):
    def exact(x, w1, w2):
        return jnp.dot(nn.gelu(x @ w1), w2, precision="highest")

    return Program(perceptron, (X, LAYER, LAYER)), Program(exact, (X, LAYER, LAYER))


# ---- operations ---------------------------------------------------------------------------------


@planted(r"added .*transpose", in_text=r"(contracting_dims|batch_dims|dim_labels) of ")
def a_transposed_operand(devices):
    def transposed(x, w1, w2):
        return nn.gelu(x @ w1) @ w2.T

    return Program(perceptron, (X, LAYER, LAYER)), Program(transposed, (X, LAYER, LAYER))


@planted(r"recomputation")
def recomputation(devices):
    def remade(params, x, y):
        w1, w2 = params
        return jnp.mean((jax.checkpoint(perceptron)(x, w1, w2) - y) ** 2)

    def remaking_step(params, x, y):
        gradients = jax.grad(remade)(params, x, y)
        return [w - 0.1 * g for w, g in zip(params, gradients, strict=True)]

    return Program(step, STEP), Program(remaking_step, STEP)


@planted(r"added .*reduce")
def an_added_reduction(devices):
    def normalized(x, w1, w2):
        y = nn.gelu(x @ w1)
        return (y / jnp.sum(y, axis=1, keepdims=True)) @ w2

    return Program(perceptron, (X, LAYER, LAYER)), Program(normalized, (X, LAYER, LAYER))


@planted(r"removed .*optimization_barrier", unknown=("cuda", "tpu"))
def a_lost_barrier(devices):
    def with_barrier(x, w):
        y = lax.optimization_barrier(jnp.exp(x))
        return jnp.tanh(y) @ w

    def joined(x, w):
        y = jnp.exp(x)
        return jnp.tanh(y) @ w

    return Program(with_barrier, (X, LAYER)), Program(joined, (X, LAYER))


@planted(r"loop of 6 steps was unrolled")
def an_unrolled_scan(devices):
    def unrolled(x, weights):
        return lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, weights, unroll=6)[0]

    weights = f32(6, 256, 256)
    return Program(layers, (X, weights)), Program(unrolled, (X, weights))


@planted(r"results: added f32\[64,256\]")
def an_argument_returned(devices):
    def returning(x, w1, w2):
        return perceptron(x, w1, w2), x

    return Program(perceptron, (X, LAYER, LAYER)), Program(returning, (X, LAYER, LAYER))


@planted(r"dtype f32 -> f64", is_x64=True, unknown=("tpu",))
def creeping_x64(devices):
    def scaled(x, w1, w2):
        return (nn.gelu(x @ w1) * 0.125) @ w2

    def creeping(x, w1, w2):
        return (nn.gelu(x @ w1) * np.float64(0.125)) @ w2

    return Program(scaled, (X, LAYER, LAYER)), Program(creeping, (X, LAYER, LAYER))


@planted(r"removed dot_general.*; added gather", in_text=r"removed eq|added .*gather")
def a_gather_for_a_one_hot_product(devices):
    def product(i, table, w):
        return nn.one_hot(i, 512) @ table @ w

    def gathered(i, table, w):
        return table[i] @ w

    args = i32(64), f32(512, 256), LAYER
    return Program(product, args), Program(gathered, args)


@planted(r"added call of _bernoulli", in_text=r"added (div$|.*(threefry|_uniform))")
def dropout_left_on(devices):
    def dropping(x, w1, w2, key):
        hidden = nn.gelu(x @ w1)
        kept = jax.random.bernoulli(key, 0.9, hidden.shape)
        return jnp.where(kept, hidden / 0.9, 0.0) @ w2

    def plain(x, w1, w2, key):
        return perceptron(x, w1, w2)

    key = jax.eval_shape(lambda: jax.random.key(0))
    args = X, LAYER, LAYER, key
    return Program(plain, args), Program(dropping, args)


@planted(r"added host callback", in_text=r"added .*debug_callback")
def an_extra_host_callback(devices):
    def watched(x, w1, w2):
        hidden = nn.gelu(x @ w1)
        jax.debug.callback(print, hidden.mean())
        return hidden @ w2

    return Program(perceptron, (X, LAYER, LAYER)), Program(watched, (X, LAYER, LAYER))


@planted(r"dimensions of reduce", unknown=("cuda",))
def the_axis_of_a_softmax(devices):
    def attend(q, k, v):
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8.0
        return jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(scores, axis=2), v)

    x = f32(2, 64, 4, 64)
    return Program(attention, (x, x, x)), Program(attend, (x, x, x))


@planted(r"added .*all_reduce", over_mesh=True)
def an_added_collective(devices):
    def mean_of(mesh, is_summed):
        def local(x, w):
            y = nn.gelu(x @ w)
            return lax.psum(y, "data") if is_summed else y

        return jax.shard_map(
            local, mesh=mesh, in_specs=(P("data"), P()), out_specs=P() if is_summed else P("data")
        )

    mesh = jax.make_mesh((len(devices),), ("data",), devices=devices)
    x = f32(64, 256, sharding=NamedSharding(mesh, P("data")))
    return Program(mean_of(mesh, False), (x, LAYER)), Program(mean_of(mesh, True), (x, LAYER))


def compiled(program: Program):
    """Return a program compiled for the target in use."""
    staged = jax.jit(program.function, **program.jit_options)
    return staged.lower(*program.args).compile(compiler_options=program.compiler_options or None)


def pair_of(case: Planted, device: str):
    """Return both programs of a pair, compiled for one of `TARGETS`."""
    with jax.target(TARGETS[device] if case.over_mesh else device) as target:
        with jax.enable_x64(case.is_x64):
            return tuple(compiled(program) for program in case.pair(target.devices))
