"""Samples of taking arrays apart and putting them together."""

import numpy as np

from hlofront import lax
from tests.samples import sample
from tests.support.cases import b1, bf16, c64, f8, f32, i4, i8, i32, u8


def strided(x, start_indices, limit_indices, strides=None):
    strides = strides or [1] * x.ndim
    return x[tuple(map(slice, start_indices, limit_indices, strides))]


for operand, *rest in (
    (f32[4, 5], (1, 0), (3, 5)),
    (f32[4, 5], [0, 1], [4, 5], [2, 3]),
    (f32[4, 5], (1, 1), (1, 5), (3, 2)),
    (c64[3], (0,), (3,)),
    (b1[2, 0, 3], (1, 0, 0), (2, 0, 3)),
    (i4[4], (1,), (3,)),
    (f8[4], (1,), (4,), (2,)),
    (bf16[()], (), ()),
):
    sample(lax.slice, operand, *rest, reference=strided)
sample(lax.slice_in_dim, f32[4, 5], 1, 3, reference=lambda x, *_: x[1:3])
sample(lax.slice_in_dim, f32[4, 5], None, -1, 2, -1, reference=lambda x, *_: x[:, :-1:2])
sample(lax.slice_in_dim, f32[4, 5], -3, None, axis=1, reference=lambda x, *_, **__: x[:, -3:])
sample(lax.index_in_dim, i8[4, 5], 2, reference=lambda x, _: x[2:3])
sample(lax.index_in_dim, i8[4, 5], -1, 1, False, reference=lambda x, *_: x[:, -1])

joined = lambda operands, dimension: np.concatenate(operands, dimension)
two = (np.float32([[1, 2], [3, 4]]), np.float32([[5, 6]]))
sample(lax.concatenate, two, 0, reference=joined, name="concatenate(f32)")
for dtype in ("bool", "int8", "complex64", "int4"):
    sample(
        lambda *xs, dtype=dtype: lax.concatenate(
            [lax.convert_element_type(x, dtype) for x in xs], 1
        ),
        *[i8[2, n].between(0, 1) for n in (1, 0, 2)],
        name=f"concatenate({dtype})",
        reference=lambda *xs: np.concatenate(xs, 1),
    )  # fmt: skip
sample(lax.concatenate, f32[2, 3, 2], 0, reference=lambda x, _: x.reshape(6, 2))
sample(lambda x: lax.concatenate([x], 1), f32[2, 3], name="concatenate(one)", reference=lambda x: x)
sample(lambda *xs: lax.stack(xs), f32[2], f32[2], name="stack", reference=lambda *xs: np.stack(xs))
for axis in (0, 1, -1):
    sample(
        lambda *xs, axis: lax.stack(xs, axis), b1[2, 3], b1[2, 3], b1[2, 3], axis=axis,
        name=f"stack({axis})", reference=lambda *xs, axis: np.stack(xs, axis),
    )  # fmt: skip
sample(lax.stack, i32[2, 3], 1, reference=lambda x, _: x.T)
sample(lax.unstack, f32[2, 3], reference=list)
sample(lax.unstack, c64[2, 3], 1, reference=lambda x, _: list(x.T))
sample(lax.unstack, u8[2, 2, 2], -1, reference=lambda x, _: [x[..., 0], x[..., 1]])
sample(lax.unstack, f32[0, 3], reference=list)
sample(lax.split, f32[2, 5], (1, 0, 4), 1, reference=lambda x, *_: np.split(x, [1, 1], 1))
sample(lax.split, i8[3], [1, 2], reference=lambda x, _: np.split(x, [1]))
sample(lax.split, b1[2, 3], (3,), -1, reference=lambda x, *_: [x])


def padded(x, value, config):
    for axis, (before, after, between) in enumerate(config):
        size = x.shape[axis]
        spread = [
            size + between * max(size - 1, 0) if i == axis else n for i, n in enumerate(x.shape)
        ]
        wide = np.full(spread, value, x.dtype)
        wide[(slice(None),) * axis + (slice(None, None, between + 1),)] = x
        width = [(max(before, 0), max(after, 0)) if i == axis else (0, 0) for i in range(x.ndim)]
        wide = np.pad(wide, width, constant_values=value)
        x = np.take(wide, range(max(-before, 0), wide.shape[axis] - max(-after, 0)), axis)
    return x


for operand, value, config in (
    (f32[2, 3], np.float32(9), [(1, 2, 0), (0, 0, 1)]),
    (f32[2, 3], 9.0, ((-1, 2, 2), (1, -1, 1))),
    (f32[2, 3], f32[()], ((0, 0, 0), (0, 0, 0))),
    (f32[2, 3], 0.0, ((-1, -1, 0), (2, -3, 0))),
    (i8[3], np.int8(1), ((-2, 4, 3),)),
    (b1[2], True, ((1, 1, 1),)),
    (c64[0], np.complex64(1j), ((2, 1, 5),)),
    (bf16[2, 1, 2], bf16[()], ((0, 1, 0), (1, 0, 3), (0, 0, 2))),
    (u8[()], np.uint8(3), ()),
):
    sample(lax.pad, operand, value, config, reference=padded)


# ---- parts that are left out, and constants among operands: their derivatives are padding --------

ONES = np.ones((2, 1), np.float32)


def among_constants(x, y):
    return lax.concatenate([ONES, x, ONES, ONES, y, ONES], 1)


def last_of_three(x):
    zeros = lax.full_like(x, 0)
    return lax.stack([zeros, zeros, x], 1)


def some_of_stack(x, y):
    return lax.stack([x, lax.full_like(x, 1), y, lax.full_like(x, 2)], -1)


sample(
    among_constants,
    f32[2, 3],
    f32[2, 2],
    reference=lambda x, y: np.concatenate([ONES, x, ONES, ONES, y, ONES], 1),
)
sample(last_of_three, f32[2, 3], reference=lambda x: np.stack([x * 0, x * 0, x], 1))
sample(
    some_of_stack,
    f32[2, 3],
    f32[2, 3],
    reference=lambda x, y: np.stack([x, x * 0 + 1, y, x * 0 + 2], -1),
)
for which in ((0,), (2,), (1, 3), (0, 3)):
    sample(
        lambda x, which: [lax.split(x, (1, 2, 0, 3), 1)[i] for i in which],
        f32[2, 6],
        which,
        name=f"some of split({which})",
        reference=lambda x, which: [np.split(x, [1, 3, 3], 1)[i] for i in which],
    )
    sample(
        lambda x, which: [lax.unstack(x, 1)[i] for i in which],
        f32[2, 4, 3],
        which,
        name=f"some of unstack({which})",
        reference=lambda x, which: [x[:, i] for i in which],
    )
