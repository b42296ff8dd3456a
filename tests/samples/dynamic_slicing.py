"""Samples of slices at computed places."""

import numpy as np

from hlofront import lax
from tests.samples import sample
from tests.support.cases import b1, bf16, c64, f8, f32, i4, i8, i16, i32, u8


def slices_of(shape, starts, sizes, negative):
    """The slices that begin at these starts, moved into the array."""
    if isinstance(negative, bool):
        negative = [negative] * len(shape)
    slices = []
    for start, size, whole, allowed in zip(starts, sizes, shape, negative, strict=True):
        start = int(start) + (whole if start < 0 and allowed else 0)
        start = min(max(start, 0), whole - size)
        slices.append(slice(start, start + size))
    return tuple(slices)


def taken(x, starts, sizes, allow_negative_indices=True):
    return x[slices_of(x.shape, starts, sizes, allow_negative_indices)]


def updated(x, update, starts, allow_negative_indices=True):
    result = np.array(x)
    result[slices_of(x.shape, starts, update.shape, allow_negative_indices)] = update
    return result


for operand in (f32[3, 4], b1[3, 4], c64[3, 4], bf16[3, 4], i4[3, 4], f8[3, 4]):
    sample(lax.dynamic_slice, operand, i32[2].between(-3, 2), (2, 3), reference=taken)
    sample(
        lax.dynamic_update_slice, operand, type(operand)(operand.dtype, (2, 3)),
        i32[2].between(-3, 2), reference=updated,
    )  # fmt: skip
for starts in ((0, 1), (-1, -2), (7, -9), [np.int8(1), np.int8(-1)], np.array([1, 1])):
    sample(lax.dynamic_slice, f32[3, 4], starts, (2, 2), reference=taken)
    sample(lax.dynamic_update_slice, f32[3, 4], f32[1, 2], starts, reference=updated)
for index in (
    u8[1].between(250, 255),
    i8[1].between(100, 127),
    i16[1].between(-9, -9),
    i32[1].between(290, 320),
):
    sample(lax.dynamic_slice, i32[100], index, (9,), reference=taken)
    sample(lax.dynamic_update_slice, i32[100], i32[9], index, reference=updated)
sample(lax.dynamic_slice, f32[0, 3], i32[2], (0, 2), reference=taken)
sample(lax.dynamic_slice, f32[3], i32[1], (0,), reference=taken)
sample(lax.dynamic_slice, f32[()], (), (), reference=taken)
sample(lax.dynamic_update_slice, f32[()], f32[()], (), reference=updated)
sample(lax.dynamic_update_slice, f32[3, 2], f32[0, 2], i32[2], reference=updated)
for allowed in (False, (False, True)):
    sample(
        lax.dynamic_update_slice, f32[3, 4], f32[2, 2], i32[2].between(0, 5),
        allow_negative_indices=allowed, reference=updated,
    )  # fmt: skip

sample(lax.dynamic_slice_in_dim, f32[4, 5], 1, 2, reference=lambda x, *_: x[1:3])
sample(lax.dynamic_slice_in_dim, f32[4, 5], np.int8(-2), 2, -1, reference=lambda x, *_: x[:, 3:])
sample(
    lax.dynamic_slice_in_dim,
    f32[4, 5],
    i32[()].between(9, 9),
    2,
    1,
    reference=lambda x, *_: x[:, 3:],
)
sample(lax.dynamic_index_in_dim, f32[4, 5], i32[()].between(-1, -1), reference=lambda x, _: x[3:])
sample(lax.dynamic_index_in_dim, f32[4, 5], 2, 1, False, reference=lambda x, *_: x[:, 2])
sample(
    lax.dynamic_index_in_dim, f32[4, 5], u8[()].between(2, 2), axis=-1, keepdims=False,
    allow_negative_indices=False, reference=lambda x, _, **__: x[:, 2],
)  # fmt: skip


def column(x, update, index, axis):
    result = np.array(x)
    result[(slice(None),) * (axis % x.ndim) + (index,)] = np.squeeze(update)
    return result


sample(lax.dynamic_update_slice_in_dim, f32[4, 5], f32[4, 1], -2, 1, reference=column)
sample(lax.dynamic_update_index_in_dim, f32[4, 5], f32[4], -2, 1, reference=column)
sample(lax.dynamic_update_index_in_dim, f32[4, 5], f32[1, 5], 2, 0, reference=column)
sample(
    lax.dynamic_update_index_in_dim, f32[4, 5], f32[4], i8[()].between(-1, -1), -1, reference=column
)
sample(lax.dynamic_update_index_in_dim, i8[4], np.int8(9), 2, 0, reference=column)

# Where slices are as large as the array, where they begin is of no account.
sample(lax.dynamic_slice, f32[3, 4, 2], i32[3].between(0, 2), (1, 4, 2), reference=taken)
sample(lax.dynamic_slice, f32[3, 4, 2], i32[3].between(0, 2), (3, 4, 2), reference=taken)
sample(lax.dynamic_slice, f32[3, 4, 2], i32[3].between(0, 3), (2, 3, 1), reference=taken)
sample(lax.dynamic_update_slice, f32[3, 4], f32[1, 4], i32[2].between(0, 2), reference=updated)
sample(lax.dynamic_update_slice, f32[3, 4], f32[3, 4], i32[2].between(0, 2), reference=updated)
