"""Samples of arrays made from nothing."""

import ml_dtypes
import numpy as np

import hlofront
from hlofront import lax
from hlofront.extend.core import primitives
from tests.samples import sample
from tests.support.cases import bf16, f32, i8, i32, u8

for dtype in (np.int32, "uint8", float, np.complex64, ml_dtypes.bfloat16, "int4", "float8_e4m3fn"):
    sample(lax.iota, dtype, 5, reference=lambda dtype, size: np.arange(size).astype(dtype))
sample(lax.iota, np.uint8, 300, reference=lambda *_: np.arange(300) % 256)
sample(lax.iota, np.int32, 0, reference=lambda *_: np.arange(0))
indices = lambda dtype, shape, dimension: np.indices(shape)[dimension].astype(dtype)
sample(lax.broadcasted_iota, np.float32, (2, 3), 1, reference=indices)
sample(lax.broadcasted_iota, np.int32, [2, 0, 3], 0, reference=indices)
sample(lax.broadcasted_iota, np.int8, (2, 2, 2), 2, reference=indices)


def filled(shape, value, dtype):
    scalar = np.asarray(value)
    return np.broadcast_to(scalar if dtype is None else scalar.astype(dtype), shape)


for value, dtype in (
    (1.5, None),
    (2, None),
    (True, None),
    (1j, None),
    (np.float32(0.1), None),
    (3.7, np.int32),
    (-1, np.uint8),
    (300, np.int8),
    (2, np.complex64),
    (1, bool),
    (0.3, ml_dtypes.bfloat16),
    (7, "int4"),
):
    sample(
        lax.full, (2, 3), value, dtype,
        name=f"full({value!r}, {dtype})",
        reference=filled,
    )  # fmt: skip
sample(lax.full, (0, 2), 1.0, reference=lambda shape, _: np.empty(shape))
sample(lax.full, (), np.float32(2), reference=lambda shape, value: value)
sample(lax.full, (2,), f32[()], reference=lambda shape, value: np.full(shape, value))
sample(
    lax.full,
    (2,),
    f32[()],
    np.int32,
    reference=lambda _, value, dtype: np.full(2, value).astype(dtype),
)
sample(lax.full, (), i32[()], np.float32, reference=lambda _, value, dtype: value.astype(dtype))

sample(lax.full_like, f32[2, 3], 1, reference=lambda x, value: np.full_like(x, value))
sample(lax.full_like, i8[2, 0], 1.9, reference=lambda x, value: np.full_like(x, value))
sample(lax.full_like, bf16[3], 0.1, reference=lambda x, value: np.full(3, value).astype(x.dtype))
sample(
    lax.full_like, f32[2], 3, dtype=np.int8, shape=(4,), reference=lambda *_, **__: np.full(4, 3)
)
sample(lax.full_like, u8[2], 3, shape=(), reference=lambda *_, **__: 3)
sample(lax.full_like, 1.5, 3, shape=(2,), reference=lambda *_, **__: np.full(2, 3))
sample(lax.full_like, f32[2, 2], f32[()], reference=np.full_like)
sample(lax.empty, (2, 3), np.float32)
sample(lax.empty, (), "bool")
sample(
    primitives.empty2_p.bind,
    dtype=np.dtype(np.float32),
    memory_space=hlofront.memory.Space.Device,
    name="empty2(float32)",
)
