"""A GPT's training step on one device, and the same step over many in eight ways.

A way is a function of the devices: `Here`, whose step runs, or `Absent`, whose step is compiled.
"""

import functools

import numpy as np

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.sharding import AxisType, NamedSharding, reshard
from hlofront.sharding import PartitionSpec as P

LAYERS, WIDTH, HEADS, TOKENS, LENGTH, BATCH = 2, 16, 4, 32, 16, 16


class Here:
    """The devices of this process, on which steps run."""

    def __init__(self, devices=None):
        self.devices = devices or jax.devices()
        self.count = len(self.devices)

    def mesh(self, shape, names, axis_type=AxisType.Explicit):
        return jax.make_mesh(shape, names, (axis_type,) * len(names), devices=self.devices)

    def put(self, arrays, mesh, spec):
        """Arrays, or a pytree of them, split by a spec."""
        return jax.device_put(arrays, NamedSharding(mesh, spec))

    def run(self, mesh, function, *args):
        with jax.set_mesh(mesh):
            return jax.jit(function)(*args)


class Absent(Here):
    """Devices that are not here, for which steps are compiled."""

    def put(self, arrays, mesh, spec):
        sharding = NamedSharding(mesh, spec)
        return jax.tree.map(
            lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding), arrays
        )

    def run(self, mesh, function, *args):
        with jax.set_mesh(mesh):
            return jax.jit(function).lower(*args).compile()


def parameters(seed=0):
    random = np.random.default_rng(seed)

    def normal(*shape):
        return (random.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)

    def block():
        return {
            "qkv": normal(WIDTH, 3, HEADS, WIDTH // HEADS),
            "out": normal(HEADS, WIDTH // HEADS, WIDTH),
            "up": normal(WIDTH, 4 * WIDTH),
            "down": normal(4 * WIDTH, WIDTH),
        }

    return {"embedding": normal(TOKENS, WIDTH), "blocks": [block() for _ in range(LAYERS)]}


def batch(seed=1):
    random = np.random.default_rng(seed)
    tokens = random.integers(0, TOKENS, (BATCH, LENGTH + 1)).astype(np.int32)
    return tokens[:, :-1], tokens[:, 1:]


def norm(x):
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)


def attention(q, k, v):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
    causal = np.tril(np.ones((q.shape[1], k.shape[1]), bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e9), axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


def block(x, p, attend=attention, summed=lambda y: y):
    q, k, v = jnp.moveaxis(jnp.einsum("btw,wnhd->btnhd", norm(x), p["qkv"]), 2, 0)
    x = x + summed(jnp.einsum("bthd,hdw->btw", attend(q, k, v), p["out"]))
    return x + summed(jax.nn.gelu(norm(x) @ p["up"]) @ p["down"])


def loss(params, inputs, targets, gathered=lambda p: p, **how):
    embedding = gathered(params["embedding"])
    x = jax.nn.one_hot(inputs, TOKENS) @ embedding
    for p in params["blocks"]:
        x = block(x, {name: gathered(w) for name, w in p.items()}, **how)
    logits = norm(x) @ embedding.T
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * jax.nn.one_hot(targets, TOKENS), -1))


def step(params, inputs, targets, loss=loss):
    value, gradients = jax.value_and_grad(loss)(params, inputs, targets)
    return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)


def on_one_device():
    return jax.jit(step)(parameters(), *batch())


def data_parallel(where):
    """The batch is split, in types."""
    mesh = where.mesh((where.count,), ("data",))
    params, data = where.put(parameters(), mesh, P()), where.put(batch(), mesh, P("data"))
    return where.run(mesh, step, params, *data)


def fully_sharded(where):
    """The batch and each parameter are split along one axis; parameters are gathered for use."""
    mesh = where.mesh((where.count,), ("data",))

    def spec(p):
        axis = next(i for i, size in enumerate(p.shape) if size % where.count == 0)
        return P(*[None] * axis, "data")

    params = jax.tree.map(lambda p: where.put(p, mesh, spec(p)), parameters())
    sharded = functools.partial(loss, gathered=lambda p: reshard(p, P()))
    return where.run(
        mesh, functools.partial(step, loss=sharded), params, *where.put(batch(), mesh, P("data"))
    )


BY_HEADS = {
    "qkv": P(None, None, "model"),
    "out": P("model"),
    "up": P(None, "model"),
    "down": P("model"),
}
SPECS = {"embedding": P(), "blocks": [BY_HEADS] * LAYERS}


def tensor_parallel(where):
    """Heads and the inner layer are split in Auto mode, besides the batch."""
    mesh = where.mesh((where.count // 4, 4), ("data", "model"), AxisType.Auto)
    params = jax.tree.map(lambda p, spec: where.put(p, mesh, spec), parameters(), SPECS)
    return where.run(mesh, step, params, *where.put(batch(), mesh, P("data")))


def tensor_parallel_by_hand(where):
    """As tensor_parallel, in shard_map: partial sums are added by psum."""
    mesh = where.mesh((where.count // 4, 4), ("data", "model"))

    @functools.partial(
        jax.shard_map, mesh=mesh, in_specs=(SPECS, P("data"), P("data")), out_specs=P()
    )
    def sharded_loss(params, inputs, targets):
        part = loss(params, inputs, targets, summed=lambda y: lax.psum(y, "model"))
        return lax.pmean(part, "data")

    params = jax.tree.map(lambda p, spec: where.put(p, mesh, spec), parameters(), SPECS)
    return where.run(
        mesh,
        functools.partial(step, loss=sharded_loss),
        params,
        *where.put(batch(), mesh, P("data")),
    )


def ring_attention(q, k, v):
    """Keys and values travel around the devices that the sequence is split over."""
    size, me, length = lax.axis_size("sequence"), lax.axis_index("sequence"), q.shape[1]
    rows = me * length + np.arange(length)[:, None]

    def visit(carry, distance):
        total, weight, highest, k, v = carry
        columns = ((me - distance) % size) * length + np.arange(length)[None, :]
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(q.shape[-1])
        scores = jnp.where(rows >= columns, scores, -1e9)
        new_highest = jnp.maximum(highest, scores.max(-1))
        old, new = jnp.exp(highest - new_highest), jnp.exp(scores - new_highest[..., None])
        total = total * old[..., None] + jnp.einsum("bhqk,bkhd->bhqd", new, v)
        weight = weight * old + new.sum(-1)
        around = [(i, (i + 1) % size) for i in range(size)]
        k, v = lax.ppermute((k, v), "sequence", around)
        return (total, weight, new_highest, k, v), None

    zero = jnp.einsum("bqhd->bhqd", jnp.zeros_like(q))
    start = zero, zero[..., 0], zero[..., 0] - 1e9, k, v
    (total, weight, *_), _ = lax.scan(visit, start, jnp.arange(size))
    return jnp.einsum("bhqd->bqhd", total / weight[..., None])


def sequence_parallel(where):
    """The sequence is split, and attention is ring attention, in shard_map."""
    mesh = where.mesh((where.count,), ("sequence",))
    spec = P(None, "sequence")

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=(P(), spec, spec), out_specs=P())
    def sharded_loss(params, inputs, targets):
        return lax.pmean(loss(params, inputs, targets, attend=ring_attention), "sequence")

    return where.run(
        mesh,
        functools.partial(step, loss=sharded_loss),
        where.put(parameters(), mesh, P()),
        *where.put(batch(), mesh, spec),
    )


def pipeline_parallel(where):
    """The blocks are on devices of their own, and microbatches travel through them."""
    mesh = where.mesh((LAYERS, where.count // LAYERS), ("stage", "data"))

    def sharded_loss(params, inputs, targets):
        stacked = jax.tree.map(lambda *ws: jnp.stack(ws), *params["blocks"])
        x = jax.nn.one_hot(inputs, TOKENS) @ params["embedding"]
        x = staged(jax.tree.map(lambda w: reshard(w, P("stage")), stacked), x)
        logits = norm(x) @ params["embedding"].T
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * jax.nn.one_hot(targets, TOKENS), -1))

    @functools.partial(
        jax.shard_map, mesh=mesh, in_specs=(P("stage"), P("data")), out_specs=P("data")
    )
    def staged(blocks, x):
        own = jax.tree.map(lambda w: w[0], blocks)
        stage = lax.axis_index("stage")
        micro = lax.pcast(x, ("stage",), to="varying")[:, None]  # microbatches of one sequence
        count = micro.shape[0]

        def tick(carry, time):
            held, done = carry
            held = jnp.where(stage == 0, micro[jnp.minimum(time, count - 1)], held)
            held = block(held, own)
            at = jnp.clip(time - (LAYERS - 1), 0, count - 1)
            ready = (stage == LAYERS - 1) & (time >= LAYERS - 1)
            done = done.at[at].set(jnp.where(ready, held, done[at]))
            held = lax.ppermute(held, "stage", [(i, (i + 1) % LAYERS) for i in range(LAYERS)])
            return (held, done), None

        start = jnp.zeros_like(micro[0]), jnp.zeros_like(micro)
        (_, done), _ = lax.scan(tick, start, jnp.arange(count + LAYERS - 1))
        return lax.psum(jnp.where(stage == LAYERS - 1, done, 0), "stage")[:, 0]

    return where.run(
        mesh,
        functools.partial(step, loss=sharded_loss),
        where.put(parameters(), mesh, P()),
        *where.put(batch(), mesh, P("data")),
    )


def experts_and_rows(where, seed):
    """An expert per device, and as many rows for each device."""
    random, count = np.random.default_rng(seed), where.count
    experts = (random.normal(size=(count, WIDTH, WIDTH)) / 4).astype(np.float32)
    return experts, random.normal(size=(count * count, WIDTH)).astype(np.float32), random


def loss_of_experts(experts, rows, chosen):
    y = jnp.einsum("tw,twv->tv", rows, experts[chosen])
    return jnp.mean(jnp.sin(rows + y))


def step_of_experts(experts, *operands, loss=loss_of_experts):
    value, gradient = jax.value_and_grad(loss)(experts, *operands)
    return value, experts - 0.1 * gradient


def expert_parallel(where):
    """Each device has an expert in place of the inner layer, and rows travel to theirs and back.

    Return the arguments of the step on one device, and the result on many.
    """
    mesh = where.mesh((where.count,), ("expert",))
    experts, rows, _ = experts_and_rows(where, 2)
    chosen = np.arange(len(rows)) % where.count  # each device sends one row to each expert

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=P("expert"), out_specs=P())
    def sharded_loss(experts, rows):
        sent = lax.all_to_all(rows, "expert", 0, 0, tiled=True)
        y = lax.all_to_all(sent @ experts[0], "expert", 0, 0, tiled=True)
        return lax.pmean(jnp.mean(jnp.sin(rows + y)), "expert")

    function = functools.partial(step_of_experts, loss=sharded_loss)
    split = where.put((experts, rows), mesh, P("expert"))
    return (experts, rows, chosen), where.run(mesh, function, *split)


def ragged_expert_parallel(where):
    """As expert_parallel, with any number of rows for each expert."""
    mesh = where.mesh((where.count,), ("expert",))
    experts, rows, random = experts_and_rows(where, 3)
    chosen = random.integers(0, where.count, len(rows)).astype(np.int32)

    def exchanged(x):
        return lax.all_to_all(x, "expert", 0, 0, tiled=True)

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=P("expert"), out_specs=P())
    def sharded_loss(experts, rows, chosen):
        order = jnp.argsort(chosen)
        sizes = jnp.sum(chosen[:, None] == np.arange(where.count), axis=0, dtype=np.int32)
        begins = jnp.cumsum(sizes) - sizes
        received = exchanged(sizes)
        arrivals = jnp.cumsum(received) - received
        there = lax.ragged_all_to_all(
            rows[order],
            jnp.zeros((where.count**2, WIDTH)),
            begins,
            sizes,
            exchanged(arrivals),
            received,
            axis_name="expert",
        )
        back = lax.ragged_all_to_all(
            there @ experts[0],
            jnp.zeros_like(rows),
            arrivals,
            received,
            exchanged(begins),
            sizes,
            axis_name="expert",
        )
        y = jnp.zeros_like(rows).at[order].set(back)
        return lax.pmean(jnp.mean(jnp.sin(rows + y)), "expert")

    function = functools.partial(step_of_experts, loss=sharded_loss)
    split = where.put((experts, rows, chosen), mesh, P("expert"))
    return (experts, rows, chosen), where.run(mesh, function, *split)


WAYS = [
    data_parallel,
    fully_sharded,
    tensor_parallel,
    tensor_parallel_by_hand,
    sequence_parallel,
    pipeline_parallel,
]
EXPERT_WAYS = [expert_parallel, ragged_expert_parallel]
