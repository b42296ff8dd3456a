"""Samples of rearrangements."""

import numpy as np

from hlofront import lax
from tests.samples import sample
from tests.support.cases import b1, bf16, c64, f8, f32, i4, i8, i32, u8, u32


def in_dim(x, shape, broadcast_dimensions):
    sizes = [1] * len(shape)
    for axis, size in zip(broadcast_dimensions, x.shape, strict=True):
        sizes[axis] = size
    in_order = np.transpose(x, np.argsort(broadcast_dimensions))
    return np.broadcast_to(in_order.reshape(sizes), shape)


sample(lax.broadcast_in_dim, f32[3], shape=(2, 3), broadcast_dimensions=(1,), reference=in_dim)
sample(lax.broadcast_in_dim, f32[3], shape=[3, 2], broadcast_dimensions=[0], reference=in_dim)
sample(
    lax.broadcast_in_dim, i32[2, 1], shape=(2, 4, 3), broadcast_dimensions=(0, 2),
    reference=in_dim,
)  # fmt: skip
sample(lax.broadcast_in_dim, f32[2, 3], shape=(3, 2), broadcast_dimensions=(1, 0), reference=in_dim)
sample(
    lax.broadcast_in_dim, f32[1, 3, 2], shape=(2, 4, 3), broadcast_dimensions=(1, 2, 0),
    reference=in_dim,
)  # fmt: skip
sample(lax.broadcast_in_dim, b1[()], shape=(2, 0), broadcast_dimensions=(), reference=in_dim)
sample(lax.broadcast_in_dim, c64[0], shape=(0, 2), broadcast_dimensions=(0,), reference=in_dim)
sample(lax.broadcast_in_dim, f8[2], shape=(2, 2), broadcast_dimensions=(0,), reference=in_dim)
sample(lax.broadcast_in_dim, i4[2], shape=(2, 2), broadcast_dimensions=(0,), reference=in_dim)
sample(lax.broadcast_in_dim, 2.0, shape=(2, 2), broadcast_dimensions=())
sample(lax.broadcast_in_dim, f32[2, 2], shape=(2, 2), broadcast_dimensions=(0, 1))
broadcast = lambda x, sizes: np.broadcast_to(x, (*sizes, *np.shape(x)))
sample(lax.broadcast, bf16[2], sizes=(3, 1), reference=broadcast)
sample(lax.broadcast, u8[2], sizes=(), reference=broadcast)
sample(lax.broadcast, 1, sizes=(0,), reference=broadcast)
sample(lax.broadcast_like, f32[3], f32[2, 3], reference=lambda x, y: np.broadcast_to(x, y.shape))
sample(lax.broadcast_like, i8[2, 1], f32[2, 3], reference=lambda x, y: np.broadcast_to(x, y.shape))
sample(lax.broadcast_to_rank, f32[2, 3], rank=4, reference=lambda x, rank: x[None, None])
sample(lax.broadcast_to_rank, f32[2, 3], rank=1, reference=lambda x, rank: x)


def reshape(x, new_sizes, dimensions=None):
    return np.reshape(x if dimensions is None else np.transpose(x, dimensions), new_sizes)


sample(lax.reshape, f32[2, 3], new_sizes=(3, 2), reference=reshape)
sample(lax.reshape, f32[2, 3], new_sizes=[6], dimensions=(1, 0), reference=reshape)
sample(lax.reshape, f32[2, 3], new_sizes=(2, 3), dimensions=[1, 0], reference=reshape)
sample(lax.reshape, f32[2, 3], new_sizes=(6, 1), dimensions=(0, 1), reference=reshape)
sample(lax.reshape, c64[2, 3, 2], new_sizes=(12,), dimensions=(2, 0, 1), reference=reshape)
sample(lax.reshape, b1[()], new_sizes=(1, 1), reference=reshape)
sample(lax.reshape, bf16[1], new_sizes=(), reference=reshape)
sample(lax.reshape, i4[6], new_sizes=(2, 3), reference=reshape)
sample(lax.reshape, u32[0, 3], new_sizes=(7, 0, 2), reference=reshape)
sample(lax.reshape, 2.5, new_sizes=(1,), reference=reshape)

# What stays in its order keeps its place when a batch axis comes between; the others move.
for new_sizes in ((2, 12), (6, 4), (2, 1, 3, 4), (8, 3), (2, 3, 2, 2)):
    sample(lax.reshape, f32[2, 3, 4], new_sizes=new_sizes, reference=reshape)
sample(lax.collapse, f32[2, 3, 4], 1, reference=lambda x, _: x.reshape(2, 12))
sample(lax.collapse, f32[2, 3, 4], 0, 2, reference=lambda x, *_: x.reshape(6, 4))
sample(lax.collapse, f32[2, 3, 4], 1, 1, reference=lambda x, *_: x.reshape(2, 1, 3, 4))
sample(lax.collapse, f32[2, 0, 4], -3, -1, reference=lambda x, *_: x.reshape(0, 4))
sample(lax.shape_as_value, (2, 0, 3), reference=np.int32)

for operand, dimensions in (
    (f32[1, 3, 1], (0, 2)),
    (f32[1, 3, 1], (-1,)),
    (b1[0, 1], [1]),
    (i8[1, 1, 1], (2, 0, 1)),
    (f32[2], ()),
):
    sample(
        lax.squeeze,
        operand,
        dimensions=dimensions,
        reference=lambda x, dimensions: np.squeeze(x, tuple(dimensions)),
    )
for operand, dimensions in ((f32[2], (0,)), (c64[2], (-1, 0)), (i32[()], (0, 1)), (f32[0, 2], ())):
    sample(
        lax.expand_dims,
        operand,
        dimensions=dimensions,
        reference=lambda x, dimensions: np.expand_dims(x, dimensions),
    )

for operand, permutation in (
    (f32[2, 3], (1, 0)),
    (f32[2, 3], (0, 1)),
    (bf16[2, 3, 4], [2, 0, 1]),
    (b1[0, 2, 1], (1, 2, 0)),
    (i4[2, 3], (1, 0)),
    (f8[()], ()),
):
    sample(
        lax.transpose,
        operand,
        permutation=permutation,
        reference=lambda x, permutation: np.transpose(x, permutation),
    )
for operand, dimensions in (
    (f32[2, 3], (0,)),
    (f32[2, 3], [1, 0]),
    (u8[4], ()),
    (c64[0, 3], (0,)),
    (b1[2, 2, 2], (2, 0)),
):
    sample(
        lax.rev,
        operand,
        dimensions=dimensions,
        reference=lambda x, dimensions: np.flip(x, tuple(dimensions)),
    )
for operand, reps in (
    (f32[2, 3], (2, 3)),
    (f32[2, 3], (1, 0)),
    (b1[0, 2], [2, 2]),
    (i8[()], ()),
    (c64[2, 1, 3], (1, 2, 2)),
):
    sample(lax.tile, operand, reps=reps, reference=lambda x, reps: np.tile(x, reps))
