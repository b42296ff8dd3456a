"""Samples of comparisons and selection."""

import numpy as np

from hlofront import lax
from tests.samples import sample
from tests.support.cases import b1, bf16, c64, f8, f32, i4, i8, i32, u8

inf, nan = np.inf, np.nan
ROW = np.float32([[nan, -nan, inf, -inf, 0.0, -0.0, 1, 2]])
COLUMN = ROW.reshape(-1, 1)

for function, reference in (
    (lax.eq, np.equal),
    (lax.ne, np.not_equal),
    (lax.ge, np.greater_equal),
    (lax.gt, np.greater),
    (lax.le, np.less_equal),
    (lax.lt, np.less),
):
    sample(function, ROW, COLUMN, reference=reference, name=f"{function.__name__}(edges)")
    sample(function, i32[2, 3], i32[2, 1], reference=reference)
    sample(function, u8[9].between(100, 200), u8[()].between(100, 200), reference=reference)
    sample(function, b1[4], b1[4], reference=reference)
    sample(function, 1.0, 2.0, reference=reference)
for function in (lax.eq, lax.ne):
    sample(
        function,
        np.complex64([1j, 1, nan]),
        np.complex64([1j, 2, nan]),
        name=function.__name__ + "(c)",
    )
sample(lax.lt, bf16[0, 2], bf16[0, 2], reference=np.less)
sample(lax.lt, f8[5], f8[5], reference=np.less)
sample(lax.ge, i4[5].between(-8, 7), i4[5].between(-8, 7), reference=np.greater_equal)


def total(x):
    """Integers in the total order of floats."""
    bits = x.view(np.int32)
    return np.where(bits < 0, ~bits, bits | np.int32(-(2**31))).view(np.uint32)


for primitive, reference in (
    (lax.eq_to_p, np.equal),
    (lax.le_to_p, np.less_equal),
    (lax.lt_to_p, np.less),
):
    by_order = lambda x, y, reference=reference: reference(total(x), total(y))
    sample(primitive.bind, ROW, COLUMN, reference=by_order, name=f"{primitive.name}(edges)")
    sample(primitive.bind, i32[4], i32[4], reference=reference, name=f"{primitive.name}(i32)")

choose = lambda which, *cases: np.choose(np.clip(which, 0, len(cases) - 1), cases)
sample(lax.select, b1[2, 3], f32[2, 3], f32[2, 3], reference=np.where)
sample(lax.select, b1[()], i8[2, 3], i8[2, 3], reference=np.where)
sample(lax.select, True, 1.0, 2.0, reference=np.where)
sample(lax.select, b1[0, 2], c64[0, 2], c64[0, 2], reference=np.where)
sample(lax.select, b1[3], b1[3], b1[3], reference=np.where)
sample(lax.select_n, b1[3], f32[3], reference=choose)
sample(lax.select_n, b1[3], f8[3], f8[3])
sample(lax.select_n, i32[9].between(-2, 4), f32[9], f32[9], f32[9], reference=choose)
sample(lax.select_n, i32[()].between(1, 1), *[bf16[2, 2]] * 5, reference=choose)
sample(lax.select_n, u8[9].between(0, 9), *[i32[9]] * 4, reference=choose)
sample(lax.select_n, i4[9].between(-8, 7), *[i32[9]] * 12, name="select_n(i4[9], 12 of i32[9])")
sample(lax.select_n, 1, 3, 4, reference=choose)
sample(lax.select_n, i32[2], i32[2], i32[2].between(5, 9), reference=choose)
