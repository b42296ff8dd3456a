"""Members of arrays and tracers, and functions whose signatures are not NumPy's."""

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import floats, ints


def programs(jax, jnp, lax):
    corpus = Corpus(("jit",))
    members_of_arrays(corpus, jax, jnp)
    signatures(corpus, jax, jnp)
    return corpus


def members_of_arrays(corpus, jax, jnp):
    x = floats(3, 4)
    cases = {
        "argpartition": lambda x: x.argpartition(2).shape,
        "argsort": lambda x: (x.argsort(), x.argsort(0, descending=True)),
        "astype": lambda x: (x.astype(int), x.astype("bfloat16"), x.astype(bool)),
        "byteswap": lambda x: x.astype(np.int16).byteswap(),
        "choose": lambda x: jnp.array([0, 1, 1, 0]).choose(x[:2]),
        "clip": lambda x: (x.clip(0), x.clip(max=1), x.clip(-1, 1), x.clip()),
        "compress": lambda x: x.compress(np.array([True, False, True, True]), 1, size=2),
        "conjugates": lambda x: ((x + 1j).conj(), x.conjugate(), (x * 1j).imag, x.real, x.imag),
        "cumulative": lambda x: (x.cumsum(), x.cumsum(0), x.cumprod(1), x.cumsum(dtype=complex)),
        "diagonals": lambda x: (x.diagonal(), x.diagonal(1), x.trace(), x.trace(-1, dtype=int)),
        "dot": lambda x: (x.dot(x.T), x.dot(x[0])),
        "extremes": lambda x: (x.max(), x.min(0), x.argmax(1), x.argmin(), x.ptp(0), x.ptp()),
        "moments": lambda x: (x.mean(0), x.std(), x.var(1, ddof=1), x.mean(keepdims=True)),
        "nonzero": lambda x: (x > 0).nonzero(size=4),
        "reductions": lambda x: (x.sum(0), x.prod(1), (x > 0).any(), (x > 0).all(1)),
        "masked_sum": lambda x: (x.sum(where=x > 0), x.max(initial=0.0, where=x < 0)),
        "repeat": lambda x: (x.repeat(2), x.repeat(2, 1), x.repeat(np.array([1, 2, 0]), 0)),
        "reshape": lambda x: (x.reshape(4, 3), x.reshape((2, -1)), x.reshape(4, 3, order="F")),
        "round": lambda x: (x.round(), x.round(1), round(x[0, 0], 1), round(x[0, 0])),
        "searchsorted": lambda x: (x[:, 0].searchsorted(0.5), x[0].searchsorted(x, side="right")),
        "sort": lambda x: (x.sort(), x.sort(0), x.sort(descending=True), x.sort(axis=None)),
        "squeeze": lambda x: (x[:1].squeeze(), x[:1].squeeze(0), x[None].squeeze((0,))),
        "swapaxes": lambda x: (x.swapaxes(0, 1), x.T, x.mT, x.transpose(), x.transpose(1, 0)),
        "take": lambda x: (x.take(5), x.take(np.array([0, 2]), 1), x.take(99, mode="clip")),
        "flatten": lambda x: (x.flatten(), x.ravel(), x.flatten("F"), x.ravel("F")),
        "view": lambda x: (x.view(np.int32), x.view(np.int16).shape, x.view("uint32")),
        "copy": lambda x: (x.copy(), x.__array_priority__),
        "sizes": lambda x: (x.shape, x.size, x.ndim, x.nbytes, x.itemsize, x.dtype.name),
    }
    for name, function in cases.items():
        corpus.add(f"member_{name}", function, x, modes=("jit",))

    for name, function in {
        "at_add": lambda x: (x.at[0].add(1), x.at[1, ::2].multiply(3), x.at[0, 0].mul(2)),
        "at_set": lambda x: (x.at[:, 1].set(0), x.at[9].set(1), x.at[9].set(1, mode="clip")),
        "at_max": lambda x: (x.at[0].max(0.5), x.at[0].min(0), x.at[0].power(2), x.at[0].divide(2)),
        "at_subtract": lambda x: (x.at[np.array([0, 0])].subtract(1), x.at[0].apply(jnp.abs)),
        "at_get": lambda x: (x.at[0].get(), x.at[9].get(mode="fill", fill_value=7)),
    }.items():
        corpus.add(f"member_{name}", function, x)

    for name in (
        "addressable_shards",
        "committed",
        "global_shards",
        "is_fully_addressable",
        "is_fully_replicated",
        "device",
        "sharding",
        "no_such_member",
    ):
        corpus.add(f"of_a_tracer_{name}", lambda x, name=name: getattr(x, name), x)
    for name in ("is_deleted", "delete", "devices", "on_device_size_in_bytes", "tolist", "item"):
        corpus.add(f"of_a_tracer_{name}", lambda x, name=name: getattr(x, name)(), x)
    for name in ("addressable_data", "unsafe_buffer_pointer"):
        corpus.add(f"of_a_tracer_{name}", lambda x, name=name: getattr(x, name)(0), x)

    @corpus.program(x)
    def tracer_to_a_device(x):
        return x.to_device(jax.devices()[0]) + 1

    @corpus.program(x)
    def inside_of_a_tracer(x):
        return (
            x.full_lower() is x,
            x.get_referent() is x,
            x.get_const(),
            x.cur_qdd(),
            x.mutable_qdd,
            x.parent,
            x.dimension_as_value,
            x.aval_mutable_qdd is x.aval,
            x.to_concrete_value(),
            x.val.aval.shape,
        )

    @corpus.program(x, modes=("value",))
    def of_an_array(x):
        x = jnp.asarray(x)
        return (
            x.committed,
            x.is_fully_addressable,
            x.is_fully_replicated,
            x.is_deleted(),
            len(x.devices()),
            len(x.addressable_shards),
            len(x.global_shards),
            x.addressable_data(0),
            x.block_until_ready() is x,
            x.weak_type,
            x.on_device_size_in_bytes(),
            x.to_device(jax.devices()[0]),
            x.tolist(),
            x.tobytes() == np.asarray(x).tobytes(),
            x.item(3),
            x[0, 0].item(),
            x.clone(),
            x.copy_to_host_async(),
            x.platform(),
            x.aval.shape,
            x.sharding.is_fully_replicated,
        )


def signatures(corpus, jax, jnp):
    @corpus.program(floats(3), ints(3))
    def comparisons(x, n):
        return [
            getattr(jnp, name)(x, n)
            for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
        ]

    @corpus.program(floats(3))
    def full_likes(x):
        return (
            jnp.full_like(x, 2),
            jnp.full_like(x, 2, out_sharding=None),
            jnp.full_like(x, 2, "int8", (2,)),
            jnp.full_like(1.0, 3),
            jnp.full_like(x, fill_value=x[0], shape=2),
        )

    @corpus.program(modes=("value",))
    def kinds_of_dtypes():
        return (
            jnp.issubdtype(arg1=np.float32, arg2=np.floating),
            jnp.issubdtype(jnp.bfloat16, jnp.floating),
            jnp.issubdtype("int8", jnp.signedinteger),
            jnp.issubdtype(int, float),
            jnp.issubdtype(np.dtype("uint8"), np.uint8),
        )
