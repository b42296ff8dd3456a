"""Samples of reductions, with known and with the user's functions."""

import ml_dtypes
import numpy as np

from hlofront import lax
from tests.samples import sample
from tests.support.cases import b1, bf16, c64, f8, f16, f32, i4, i8, i32, u8


def folding(function):
    """A reference that computes in the operand's dtype, or in float64 for narrow floats."""

    def reference(x, axes):
        wide = x.astype(np.float64) if x.dtype.kind == "V" or x.dtype == np.float16 else x
        return np.asarray(function(wide, axis=tuple(axes))).astype(x.dtype)

    return reference


NUMBERS = (f16[2, 3], bf16[2, 3], f8[2, 3], i8[2, 3], u8[2, 3], i4[2, 3].between(-1, 1), c64[2, 3])
for function, reference in (
    (lax.reduce_sum, folding(np.sum)),
    (lax.reduce_prod, folding(np.prod)),
):
    for operand, axes in (
        (f32[2, 3, 4], (0, 2)),
        (f32[2, 3, 4], [1]),
        (f32[2, 3], ()),
        (f32[()], ()),
        (i32[5], (0,)),
        (f32[2, 0, 3], (1,)),
        (f32[0, 3], (1,)),
        *((operand, (1,)) for operand in NUMBERS),
    ):
        sample(function, operand, axes, reference=reference)
for zeros in ([0, 2, 3], [0, 2, 0], [0, 0, 0]):
    sample(
        lax.reduce_prod,
        np.float32([zeros, [4, 5, 6]]),
        (1,),
        reference=folding(np.prod),
        name=f"reduce_prod({zeros})",
    )
for size in (1, 4, 5, 7):
    sample(lax.reduce_prod, f32[2, size], (1,), reference=folding(np.prod))
sample(lax.reduce_prod, f32[2, 3, 2], (0, 1), reference=folding(np.prod))
for function, reference in (
    (lax.reduce_max, folding(np.max)),
    (lax.reduce_min, folding(np.min)),
):
    for operand, axes in (
        (f32[2, 3, 4], (2, 0)),
        (f32[2, 3], ()),
        (f32[3, 0], ()),
        (b1[2, 3], (0,)),
        *((operand, (1,)) for operand in NUMBERS),
    ):
        sample(function, operand, axes, reference=reference)
    sample(function, np.float32([[1, np.nan, 2], [-0.0, 0.0, 3]]), (1,), reference=reference)
    sample(function, c64[3, 0], (1,))
    sample(function, i8[0, 2], (0,))
    sample(function, b1[2, 0], (1,))
    sample(function, f8[2, 0], (1,))
    same_real = np.complex64([[1 + 2j, 1 - 3j, 0 + 9j]])
    sample(
        function,
        same_real,
        (1,),
        reference=reference,
        name=f"{function.__name__}(ties)",
        not_smooth="elements that are equal",
    )
for function, ufunc in (
    (lax.reduce_and, np.bitwise_and),
    (lax.reduce_or, np.bitwise_or),
    (lax.reduce_xor, np.bitwise_xor),
):

    def bits(x, axes, ufunc=ufunc):
        return ufunc.reduce(x, axis=axes) if axes else x

    for operand, axes in (
        (b1[2, 3, 4], (0, 1)),
        (i32[4, 3], (0,)),
        (u8[2, 3], (1, 0)),
        (i8[2, 0], (1,)),
        (b1[0], (0,)),
        (i32[2], ()),
    ):
        sample(function, operand, axes, reference=bits)


def index_of(function):
    return lambda x, axis, dtype: function(np.asarray(x, np.float64), axis).astype(dtype)


NANS = np.float32([[1, np.nan, 3, np.nan], [2, 2, 1, 1]])
for function, reference in ((lax.argmax, index_of(np.argmax)), (lax.argmin, index_of(np.argmin))):
    for operand, axis, dtype in (
        (f32[2, 3, 4], 1, "int32"),
        (NANS, 1, "int32"),
        (NANS, 0, "uint8"),
        (i8[3, 4].between(0, 1), 0, "int16"),
        (b1[4, 2], 0, "int8"),
        (bf16[5], 0, "int32"),
        (u8[0, 3], 1, "int32"),
        (f8[2, 3], 1, "uint32"),
        (i4[2, 5], 1, "int32"),
    ):
        sample(function, operand, axis, dtype, reference=reference)


# ---- with a function -----------------------------------------------------------------------------


def reduce_by_add(x, start, axes):
    return lax.reduce(x, start, lax.add, axes)


def weighted(total, x):
    return lax.add(total, lax.mul(x, x))


def sum_of_squares(x):
    return lax.reduce(x, np.float32(0), weighted, (1,))


def argmax_of_pairs(x, index):
    def later(a, b):
        first = lax.gt(a[0], b[0])
        return lax.select(first, a[0], b[0]), lax.select(first, a[1], b[1])

    starts = (np.float32(-np.inf), np.int32(-1))
    return lax.reduce((x, index), starts, later, (1,))


def reduce_in_tree(x):
    start = {"a": np.float32(1)}
    return lax.reduce({"a": x}, start, lambda p, q: {"a": lax.mul(p["a"], q["a"])}, (-1,))


def reduce_with_constant(x):
    weights = np.arange(300, dtype=np.float32)
    bound = lambda: lax.reduce_max(weights, (0,))
    return lax.reduce(x, np.float32(0), lambda a, b: lax.max(a, lax.min(b, bound())), (0,))


sample(reduce_by_add, f32[2, 3], 0.0, (0,), reference=lambda x, start, axes: x.sum(0))
sample(reduce_by_add, f32[2, 3], 2.0, (0,))
NO_START = {
    "not_differentiable": (NotImplementedError, "initial values"),
    "not_batched": (NotImplementedError, "initial values"),
}
sample(
    reduce_by_add,
    f32[2, 3],
    np.float32(0),
    (0, 1),
    reference=lambda x, *_: x.sum(),
    **NO_START,
)
sample(
    reduce_by_add,
    i8[2, 3, 2],
    np.int8(0),
    (2,),
    reference=lambda x, *_: x.sum(2, np.int8),
    **NO_START,
)
sample(reduce_by_add, bf16[4], np.zeros((), ml_dtypes.bfloat16), (0,), **NO_START)
sample(sum_of_squares, np.float32([[1, 0, 0], [0, 0, 2]]))
sample(argmax_of_pairs, f32[3, 4], np.arange(12, dtype=np.int32).reshape(3, 4))
sample(argmax_of_pairs, f32[3, 0], np.zeros((3, 0), np.int32))
sample(reduce_in_tree, f32[2, 3], reference=lambda x: x.prod(-1))
sample(reduce_with_constant, f32[3, 2], reference=lambda x: np.maximum(x.max(0), 0))
