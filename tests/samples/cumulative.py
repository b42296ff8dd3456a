"""Samples of cumulative operations and of associative_scan."""

import numpy as np

from hlofront import lax
from tests.samples import sample
from tests.support.cases import bf16, c64, f8, f16, f32, i4, i8, i32, u8


def along(function):
    def reference(x, axis=0, reverse=False):
        wide = x.astype(np.float64) if x.dtype.kind == "V" or x.dtype == np.float16 else x
        if reverse:
            return np.flip(function(np.flip(wide, axis), axis=axis), axis).astype(x.dtype)
        return function(wide, axis=axis).astype(x.dtype)

    return reference


for function, reference in (
    (lax.cumsum, along(np.cumsum)),
    (lax.cumprod, along(np.cumprod)),
    (lax.cummax, along(np.maximum.accumulate)),
    (lax.cummin, along(np.minimum.accumulate)),
):
    for operand, *rest in (
        (f32[5],),
        (f32[2, 3, 4], 1),
        (f32[2, 3, 4], 2, True),
        (i8[4], 0, True),
        (u8[2, 3], 1),
        (i32[1, 3], 0),
        (c64[4],),
        (f16[4].between(0, 1),),
        (bf16[3].between(0, 1),),
        (f8[3].between(0, 1),),
        (i4[3].between(0, 1),),
        (f32[0, 3], 0),
        (f32[3, 0], 0),
    ):
        sample(function, operand, *rest, reference=reference)
    long = np.float32(np.linspace(0.99, 1.01, 1000))
    sample(
        function,
        long,
        reference=reference,
        ulps=300,
        name=f"{function.__name__}(long)",
        not_smooth="elements so close that they change places",
    )
sample(lax.cumsum, f32[2, 3], axis=1, reverse=True, reference=along(np.cumsum))
for zeros in ([0, 2, 3], [4, 0, 5, 0, 6]):
    sample(lax.cumprod, np.float32(zeros), reference=along(np.cumprod), name=f"cumprod({zeros})")
for operand, *rest in (
    (f32[5],),
    (f32[2, 3, 4], 1, True),
    (f16[4],),
    (bf16[2, 3], 1),
    (f32[0, 3],),
):
    sample(lax.cumlogsumexp, operand, *rest, reference=along(np.logaddexp.accumulate))
ENDS = np.float32([-np.inf, -np.inf, 0, 80, 100, np.inf, np.inf])
sample(lax.cumlogsumexp, ENDS, reference=along(np.logaddexp.accumulate))
sample(lax.cumlogsumexp, ENDS, 0, True, reference=along(np.logaddexp.accumulate))
sample(lax.cumlogsumexp, np.float32([1, np.nan, 2]))
sample(lax.cumlogsumexp, c64[2, 3], 1)
sample(
    lax.cumlogsumexp,
    f8[4],
    unlike_jax="there it starts from NaN, where a dtype has no infinity",
)


def scan_by_add(x, reverse=False, axis=0):
    return lax.associative_scan(lax.add, x, reverse, axis)


def scan_by_or(x):
    return lax.associative_scan(lax.bitwise_or, x)


def linear_recurrence(a, b):
    """Each b plus a times the result before."""

    def combine(p, q):
        return lax.mul(p[0], q[0]), lax.add(lax.mul(q[0], p[1]), q[1])

    return lax.associative_scan(combine, (a, b))[1]


def solved(a, b):
    result = [b[0]]
    for factor, term in zip(a[1:], b[1:], strict=True):
        result.append(factor * result[-1] + term)
    return np.stack(result)


for size in (0, 1, 2, 3, 8):
    sample(scan_by_add, f32[size], reference=along(np.cumsum))
sample(scan_by_add, i32[2, 5], axis=1, reverse=True, reference=along(np.cumsum))
sample(scan_by_or, np.eye(4, dtype=bool)[:, 1:], reference=np.logical_or.accumulate)
sample(linear_recurrence, f32[6, 2], f32[6, 2], reference=solved)
