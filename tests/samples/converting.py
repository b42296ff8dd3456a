"""Samples of conversions between dtypes."""

import ml_dtypes
import numpy as np

from hlofront import lax
from tests.samples import sample
from tests.support.cases import b1, bf16, c64, f8, f16, f32, i4, i8, i32, u4, u8, u32

inf, nan = np.inf, np.nan
EDGES = np.float32([nan, inf, -inf, 3e9, -3e9, 300, -300, -1.5, 1.5, 0.5, -0.0])


def cast(x, new_dtype):
    return np.asarray(x).astype(new_dtype)


for dtype in (
    "bool int4 int8 uint8 int16 int32 uint32 uint4 int2 bfloat16 float16 float8_e4m3fn float8_e5m2 "
    "complex64"
).split():
    sample(lax.convert_element_type, EDGES, new_dtype=dtype, name=f"convert(edges, {dtype})")
INTEGERS = np.array([-(2**31), -300, -1, 0, 1, 7, 300, 2**31 - 1], np.int32)
for dtype in ("bool", "int8", "uint8", "uint32", "float32", "bfloat16"):
    sample(
        lax.convert_element_type,
        INTEGERS,
        new_dtype=dtype,
        reference=lambda x, new_dtype: x.astype(
            ml_dtypes.bfloat16 if new_dtype == "bfloat16" else new_dtype
        ),
        name=f"convert(integers, {dtype})",
    )
for spec, dtype in (
    (b1[2, 3], np.float32),
    (b1[3], np.int8),
    (bf16[2, 0], np.float32),
    (f8[4], np.float32),
    (i4[4].between(-8, 7), np.int32),
    (u4[4].between(0, 15), np.float32),
    (f16[3], ml_dtypes.bfloat16),
    (u32[3].between(0, 2**32 - 1), np.float32),
    (f32[2], float),
    (i32[2], int),
    (c64[3], complex),
):
    sample(lax.convert_element_type, spec, dtype, reference=cast)
for scalar, dtype in ((2.5, "float32"), (2, "float32"), (True, "int32"), (3, "bfloat16"), (2, int)):
    sample(lax.convert_element_type, scalar, dtype)

BITS = "a bit pattern is no smooth function of a number"
for spec, dtype in (
    (f32[2, 3], np.int32),
    (i32[2, 3], np.float32),
    (f32[3], np.uint8),
    (u8[3, 4].between(0, 255), np.float32),
    (u8[2, 0, 2].between(0, 255), np.int16),
    (bf16[()], np.uint16),
    (i32[2], np.int32),
):
    reference = None
    if np.dtype(spec.dtype).itemsize == np.dtype(dtype).itemsize:
        reference = lambda x, dtype: x.view(dtype)
    sample(lax.bitcast_convert_type, spec, dtype, reference=reference, not_smooth=BITS)
sample(lax.bitcast_convert_type, i8[3].between(-128, 127), "int4")
sample(lax.bitcast_convert_type, i4[3, 2].between(-8, 7), "int8")
sample(lax.bitcast_convert_type, i4[3].between(-8, 7), "uint4")
sample(lax.bitcast_convert_type, b1[3], "bool")
sample(lax.bitcast_convert_type, c64[3], "complex64", not_smooth=BITS)
sample(lax.bitcast_convert_type, 1.0, "int32")

VALUES = np.float32([1e30, -1e30, 1.2345678, nan, inf, 1e-40, 3e-8, 65504, 65520])
half = lambda x, *bits: x.astype(np.float16).astype(np.float32)
for bits in ((5, 10), (8, 7), (1, 0), (20, 30), (4, 3)):
    sample(lax.reduce_precision, VALUES, *bits, name=f"reduce_precision(values, {bits})")
sample(lax.reduce_precision, f32[2, 3], 8, 23, reference=lambda x, *bits: x, computes_in="float32")
sample(
    lax.reduce_precision,
    f32[2, 3],
    exponent_bits=5,
    mantissa_bits=10,
    computes_in="float16",
)
sample(
    lax.reduce_precision,
    bf16[3],
    5,
    3,
    computes_in="float8_e4m3fn",
    not_smooth="a step of differences is less than a step of its results",
)
sample(lax.reduce_precision, 1.2345, 5, 3)

sample(lax.copy_p.bind, f32[2, 3], reference=lambda x: x, name="copy(f32[2,3])")
sample(lax.copy_p.bind, 1.5, reference=lambda x: x, name="copy(1.5)")
sample(lax.stop_gradient, f32[2, 3], reference=lambda x: x, not_smooth="it is to be constant")
sample(lax.stage, i32[2], reference=lambda x: x)
sample(lax.stage, 2.0, reference=lambda x: np.float32(x))
