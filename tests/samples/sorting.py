"""Samples of sorting."""

import numpy as np

from hlofront import lax
from tests.samples import sample
from tests.support.cases import b1, bf16, c64, f8, f16, f32, i4, i8, i32, u8

SPECIAL = np.float32([np.nan, 1, -0.0, 0.0, -np.inf, -np.nan, np.inf, 0.0, -1])


def ordered(x, dimension=-1, **_):
    return np.sort(x.astype(np.float64) if x.dtype.kind == "V" else x, dimension, "stable")


for operand, *rest in (
    (f32[7],),
    (f32[2, 3, 4], 1),
    (f32[2, 3], -2),
    (f32[0, 3], 0),
    (f32[3, 0],),
    (SPECIAL,),
    *((dtype[2, 5],) for dtype in (f16, bf16, f8, i8, u8, i4, b1, c64)),
):
    sample(lax.sort, operand, *rest, reference=ordered)
sample(lax.sort, i32[9], is_stable=False, reference=ordered)
ZEROS = np.complex64([1 + 2j, 1 + 1j, -0.0 + 3j, 0.0 - 1j, complex(np.nan, 0), complex(0, np.nan)])
sample(lax.sort, ZEROS)


def sort_together(*operands, **params):
    return lax.sort(operands, **params)


def after_keys(*operands, dimension=-1, num_keys=1, **_):
    order = np.lexsort(operands[:num_keys][::-1], dimension)
    return [np.take_along_axis(x, order, dimension) for x in operands]


FEW = i8[3, 6].between(0, 1)
sample(sort_together, FEW, f32[3, 6], reference=after_keys)
sample(sort_together, FEW, f32[3, 6], num_keys=2, reference=after_keys)
sample(sort_together, FEW, u8[3, 6].between(0, 2), b1[3, 6], num_keys=3, dimension=0,
       reference=after_keys)  # fmt: skip
sample(sort_together, f32[4], reference=after_keys)
sample(sort_together, np.float32([0.0, -0.0, np.nan, -np.nan, 1]), i32[5], num_keys=2)
sample(lax.sort_key_val, FEW, f32[3, 6], reference=after_keys)
sample(lax.sort_key_val, FEW, f32[3, 6], 0, reference=lambda x, y, _: after_keys(x, y, dimension=0))


def greatest(x, k, axis=-1):
    wide = -np.asarray(x, np.float64)
    # NaN sorts last and is to come first.
    order = np.argsort(np.where(np.isnan(wide), -np.inf, wide), axis, "stable").take(range(k), axis)
    return [np.take_along_axis(x, order, axis), order.astype(np.int32)]


for operand, k, *axis in (
    (f32[3, 5], 2),
    (f32[3, 5], 5),
    (f32[3, 5], 0),
    (f32[2, 0], 0),
    (f32[3, 5, 2], 3, 1),
    (f32[3, 5], 2, 0),
    (i8[9].between(0, 2), 4),
    (u8[3, 4], 2, -2),
    (b1[5], 3),
    (bf16[2, 4], 2),
    (f8[2, 4], 2),
    (i4[2, 4], 2),
):
    params = {"axis": axis[0]} if axis else {}
    sample(
        lax.top_k,
        operand,
        k,
        reference=greatest,
        unlike_jax="there it fails" if operand.dtype.name == "int4" else None,
        **params,
    )
sample(lax.top_k, np.float32([1, np.nan, np.inf, 3, -1]), 4, reference=greatest)

for function, sign in ((lax.approx_max_k, 1), (lax.approx_min_k, -1)):

    def exact(x, k, sign=sign, reduction_dimension=-1, **_):
        values, places = greatest(sign * x, k, reduction_dimension)
        return [sign * values, places]

    sample(function, f32[3, 40], 4, reference=exact)
    sample(function, f32[40, 3], 4, reduction_dimension=0, recall_target=0.8, reference=exact)
    sample(function, bf16[5], 2, reference=exact)
    sample(function, f32[3, 40], 4, aggregate_to_topk=False)
    sample(
        function,
        f32[3000],
        2,
        aggregate_to_topk=False,
        reduction_input_size_override=6000,
        recall_target=0.9,
        not_smooth="elements so close that they change places",
        unlike_loop="how many are kept depends on the rank",
    )
