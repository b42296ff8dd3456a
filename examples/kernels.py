"""Three Pallas kernels: softmax, RMS norm and a product of matrices, in blocks.

You see that each computes what `jax.numpy` does, here in interpret mode, which needs no TPU. At the
end, with libtpu installed, they are compiled for an absent TPU v5e, and you see how many
instructions each has, which slots of the core they fill, and what limits them.

Run it:   python examples/kernels.py [ROWS]
"""

import importlib.util
import sys
import tempfile

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.experimental import pallas as pl
from hlofront.experimental.pallas import tpu as pltpu
from hlofront.inspect import dumped, tpu_kernels

BLOCK = 128


# A core computes on blocks in its own memory, VMEM. The specs say which block each step of the grid
# sees: step i has the rows from 128 i on. The blocks of the next step are copied meanwhile.


def softmax_kernel(x_ref, out_ref):
    x = x_ref[...]
    weights = jnp.exp(x - x.max(axis=1, keepdims=True))
    out_ref[...] = weights / weights.sum(axis=1, keepdims=True)


def softmax(x, interpret=False):
    rows = pl.BlockSpec((BLOCK, x.shape[1]), lambda i: (i, 0))
    return pl.pallas_call(
        softmax_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(pl.cdiv(x.shape[0], BLOCK),),
        in_specs=[rows],
        out_specs=rows,
        interpret=interpret,
    )(x)


# An operand that every step sees is copied once.


def rms_norm_kernel(x_ref, scale_ref, out_ref):
    x = x_ref[...]
    out_ref[...] = x * jax.lax.rsqrt((x * x).mean(axis=1, keepdims=True) + 1e-6) * scale_ref[...]


def rms_norm(x, scale, interpret=False):
    rows = pl.BlockSpec((BLOCK, x.shape[1]), lambda i: (i, 0))
    return pl.pallas_call(
        rms_norm_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(pl.cdiv(x.shape[0], BLOCK),),
        in_specs=[rows, pl.BlockSpec((1, x.shape[1]), lambda i: (0, 0))],
        out_specs=rows,
        interpret=interpret,
    )(x, scale[None])


# The last axis of the grid varies fastest: the products of blocks are summed in a buffer that
# persists from step to step, and is cleared when a new block of the result begins.


def matmul_kernel(x_ref, y_ref, out_ref, sum_ref):
    @pl.when(pl.program_id(2) == 0)
    def clear():
        sum_ref[...] = jnp.zeros_like(sum_ref)

    sum_ref[...] += x_ref[...] @ y_ref[...]
    out_ref[...] = sum_ref[...]


def matmul(x, y, interpret=False):
    (rows, inner), columns = x.shape, y.shape[1]
    return pl.pallas_call(
        matmul_kernel,
        out_shape=jax.ShapeDtypeStruct((rows, columns), x.dtype),
        grid=(rows // BLOCK, columns // BLOCK, inner // BLOCK),
        in_specs=[
            pl.BlockSpec((BLOCK, BLOCK), lambda i, j, k: (i, k)),
            pl.BlockSpec((BLOCK, BLOCK), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((BLOCK, BLOCK), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((BLOCK, BLOCK), jnp.float32)],
        interpret=interpret,
    )(x, y)


def main(rows=512):
    x = jax.random.normal(jax.random.key(0), (rows, 512))
    y, scale = x[:512].T, x[0]
    normed = x * jax.lax.rsqrt((x * x).mean(axis=1, keepdims=True) + 1e-6) * scale
    differences = {}
    for kernel, args, expected in (
        (softmax, (x,), jax.nn.softmax(x)),
        (rms_norm, (x, scale), normed),
        (matmul, (x, y), jnp.dot(x, y, precision="highest")),
    ):
        found = kernel(*args, interpret=True)
        name = kernel.__name__
        differences[name] = float(abs(found - expected).max() / abs(expected).max())
        print(f"{name} of {rows} rows differs from jax.numpy by {differences[name]:.0e}")

    if importlib.util.find_spec("libtpu") is None:
        print("pip install libtpu shows what a TPU would run")
        return differences
    for kernel, args in (softmax, (x,)), (rms_norm, (x, scale)), (matmul, (x, y)):
        with tempfile.TemporaryDirectory() as folder:
            dumped(kernel, folder, "tpu:v5e:1x1")(*args)
            print(f"\n{tpu_kernels(folder, 'tpu:v5e:1x1')}")
    return differences


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
