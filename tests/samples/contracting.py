"""Samples of contractions."""

import ml_dtypes
import numpy as np

from hlofront import lax
from tests.samples import sample
from tests.support.cases import b1, bf16, c64, f8, f16, f32, i4, i8, i32, u8

MATRICES = (((1,), (0,)), ((), ()))


def summed(lhs, rhs, dimension_numbers=MATRICES, *_, preferred_element_type=None, **__):
    (lhs_sum, rhs_sum), (lhs_batch, rhs_batch) = dimension_numbers
    letters = iter("abcdefghij")
    left = [next(letters) for _ in lhs.shape]
    right = [next(letters) for _ in rhs.shape]
    for i, j in zip((*lhs_sum, *lhs_batch), (*rhs_sum, *rhs_batch), strict=True):
        right[j] = left[i]
    batch = [left[i] for i in lhs_batch]
    free = [x for i, x in enumerate(left) if i not in (*lhs_sum, *lhs_batch)]
    free += [x for i, x in enumerate(right) if i not in (*rhs_sum, *rhs_batch)]
    dtype = preferred_element_type or lhs.dtype
    wide = bool if lhs.dtype == bool else np.complex128 if lhs.dtype.kind == "c" else np.float64
    text = f"{''.join(left)},{''.join(right)}->{''.join(batch + free)}"
    result = np.einsum(text, lhs.astype(wide), rhs.astype(wide))
    return result.astype(np.int64).astype(dtype) if np.dtype(dtype).kind in "iu" else result


for lhs, rhs, *numbers in (
    (f32[2, 3], f32[3, 4], MATRICES),
    (f32[2, 3], f32[3, 4], ([np.int64(1)], [0]), ([], [])),
    (f32[2, 3], f32[4, 5], (((), ()), ((), ()))),
    (f32[()], f32[()], (((), ()), ((), ()))),
    (f32[5, 2, 3], f32[5, 3, 4], (((2,), (1,)), ((0,), (0,)))),
    (f32[2, 5, 3, 6], f32[6, 3, 4, 5], (((2,), (1,)), ((3, 1), (0, 3)))),
    (f32[2, 3, 4], f32[4, 5, 3], (((1, 2), (2, 0)), ((), ()))),
    (f32[3], f32[3], (((0,), (0,)), ((), ()))),
    (f32[0, 3], f32[3, 4], MATRICES),
    (f32[2, 0], f32[0, 4], MATRICES),
    (c64[2, 3], c64[3, 2], MATRICES),
    (f16[2, 3], f16[3, 2], MATRICES),
    (bf16[2, 3], bf16[3, 2], MATRICES),
    (f8[2, 3].between(0, 1), f8[3, 2].between(0, 1), MATRICES),
    (i8[2, 3], i8[3, 2], MATRICES),
    (u8[2, 3], u8[3, 2], MATRICES),
    (i32[2, 3], i32[3, 2], MATRICES),
    (i4[2, 3].between(0, 1), i4[3, 2].between(0, 1), MATRICES),
    (b1[2, 3], b1[3, 2], MATRICES),
):
    if len(numbers) == 1:
        sample(lax.dot_general, lhs, rhs, *numbers, reference=summed)
    else:
        sample(lax.dot_general, lhs, rhs, tuple(numbers), reference=summed)

# Of two dtypes.
for lhs, rhs in (
    (f32[2, 3], bf16[3, 2]),
    (i8[2, 3], f32[3, 2]),
    (i8[2, 3], u8[3, 2]),
    (c64[2, 3], f32[3, 2]),
    (b1[2, 3], i32[3, 2]),
    (f16[2, 3], bf16[3, 2]),
    (f8[2, 3], f16[3, 2]),
    (i4[2, 3], i8[3, 2]),
):
    sample(lax.dot_general, lhs, rhs, MATRICES)
for operand, dtype in (
    (i8, np.int32),
    (i8, np.float32),
    (u8, np.uint32),
    (bf16, np.float32),
    (f8, np.float32),
    (f32, np.float16),
    (b1, np.int32),
    (i4, np.int32),
):
    sample(
        lax.dot_general,
        operand[2, 3].between(0, 2),
        operand[3, 2].between(0, 2),
        MATRICES,
        preferred_element_type=dtype,
        reference=summed,
    )
sample(lax.dot_general, f32[2, 3], f32[3, 2], MATRICES, preferred_element_type=np.int32)

# Of a precision: on a CPU most compute alike.
for precision in (
    "default",
    "highest",
    "tensorfloat32",
    ("high", "default"),
    lax.Precision.HIGH,
    lax.DotAlgorithmPreset.DEFAULT,
    "F32_F32_F32",
    "BF16_BF16_F32_X3",
    lax.DotAlgorithmPreset.BF16_BF16_F32_X6,
):
    sample(
        lax.dot_general,
        f32[2, 3],
        f32[3, 2],
        MATRICES,
        precision,
        reference=summed,
        ulps=300,
        computes_in="float32" if "F32" in str(precision) else None,
    )
sample(lax.dot_general, f32[2, 3], f32[3, 2], MATRICES, "F16_F16_F16", computes_in="float16")
sample(lax.dot_general, f16[2, 3], f16[3, 2], MATRICES, "BF16_BF16_F32", computes_in="bfloat16")
sample(lax.dot_general, bf16[2, 3], bf16[3, 2], MATRICES, "F64_F64_F64")

for lhs, rhs in ((f32[2, 3], f32[3, 4]), (f32[3], f32[3]), (f32[3], f32[3, 2]), (i8[2, 3], i8[3])):
    sample(lax.dot, lhs, rhs, reference=lambda x, y: x @ y)
sample(lax.dot, bf16[2, 3], bf16[3], precision="highest", preferred_element_type=np.float32)
sample(lax.dot, f32[3, 2], f32[3, 4], dimension_numbers=(((0,), (0,)), ((), ())), reference=summed)
sample(lax.batch_matmul, f32[5, 2, 3], f32[5, 3, 4], reference=np.matmul)
sample(lax.batch_matmul, f32[2, 3], f32[3, 4], "high", reference=lambda x, y, _: x @ y)


# ---- in blocks -----------------------------------------------------------------------------------


def by_rows(lhs, rhs, group_sizes, **_):
    result = np.zeros((lhs.shape[0], rhs.shape[2]), np.float64)
    groups = np.repeat(np.arange(len(group_sizes)), group_sizes)
    for row, group in enumerate(groups[: lhs.shape[0]]):
        result[row] = lhs[row].astype(np.float64) @ rhs[group].astype(np.float64)
    return result


def ragged(lhs, rhs, group_sizes, numbers):
    return lax.ragged_dot_general(lhs, rhs, group_sizes, lax.RaggedDotDimensionNumbers(*numbers))


def sizes(*values):
    return np.array(values, np.int32)


for groups in (sizes(1, 2), sizes(1, 1), sizes(0, 9), sizes(3, 0)):
    name = f"ragged_dot({groups})"
    sample(lax.ragged_dot, f32[3, 4], f32[2, 4, 5], groups, reference=by_rows, name=name)
sample(
    lax.ragged_dot,
    bf16[3, 4],
    bf16[2, 4, 5],
    sizes(2, 1),
    preferred_element_type=np.float32,
    reference=by_rows,
)
SUMMED = (((0,), (0,)), ((), ()))
BATCHED = (((2,), (2,)), ((0,), (0,)))
sample(ragged, f32[3, 4], f32[3, 5], sizes(1, 2), (SUMMED, [0], []))
sample(ragged, f32[3, 4, 5], f32[3, 5, 2], sizes(1, 2), ((((2,), (1,)), ((0,), (0,))), [0], []))
sample(ragged, f32[2, 3, 4], f32[2, 2, 4, 5], sizes(1, 2), (BATCHED, [1], [1]))
sample(ragged, f32[2, 3, 4], f32[2, 2, 4, 5], sizes([1, 2], [0, 3]), (BATCHED, [1], [1]))
FREE = (((2,), (1,)), ((), ()))
sample(ragged, f32[6, 3, 4], f32[2, 4, 5], sizes(1, 2), (FREE, [1], [0]))
sample(ragged, f32[2, 3, 4], f32[2, 4, 5], sizes([1, 2], [3, 0]), (FREE, [1], [0]))
TWO = (((0, 2), (2, 1)), ((), ()))
sample(ragged, f32[4, 3, 6], f32[5, 6, 4, 2], sizes(1, 2), (TWO, [1], [3]))
sample(ragged, f32[6, 3, 4], f32[5, 6, 3], sizes(1, 2), ((((1,), (2,)), ((0,), (1,))), [1], []))
SUMMED_APART = (((1,), (2,)), ((0,), (1,)))
sample(ragged, f32[2, 3, 4], f32[5, 2, 3], sizes([1, 2], [2, 0]), (SUMMED_APART, [1], []))
SUMMED_TWO = (((0, 1), (2, 1)), ((), ()))
sample(ragged, f32[2, 3, 4], f32[5, 3, 2], sizes([1, 2], [2, 0]), (SUMMED_TWO, [1], []))

F8, E8 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu
BLOCKS = np.exp2(np.arange(24).reshape(2, 3, 4) % 5 - 2)


def scaled_dot_of(lhs, rhs, lhs_scale, rhs_scale):
    return lax.scaled_dot(lhs, rhs, lhs_scale=lhs_scale, rhs_scale=rhs_scale)


def unscaled_dot_of(lhs, rhs):
    return lax.scaled_dot(lhs, rhs, preferred_element_type=np.float32)


def rescaled(lhs, rhs, lhs_scale, rhs_scale):
    lhs = lhs.astype(np.float64) * np.repeat(lhs_scale.astype(np.float64), 2, 2)
    return lhs @ (rhs.astype(np.float64) * np.repeat(rhs_scale.astype(np.float64), 2, 1))


sample(
    scaled_dot_of,
    BLOCKS.astype(F8),
    BLOCKS.swapaxes(1, 2).astype(F8),
    BLOCKS[:, :, :2].astype(E8),
    BLOCKS.swapaxes(1, 2)[:, :2].astype(E8),
    reference=rescaled,
)
sample(
    unscaled_dot_of,
    BLOCKS[0].astype(F8),
    BLOCKS[1].T.astype(F8),
    computes_in="bfloat16",
)
