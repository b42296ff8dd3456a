"""Samples of the elementwise primitives."""

import ml_dtypes
import numpy as np

from hlofront import lax
from tests.samples import sample
from tests.support.cases import b1, bf16, c64, f8, f16, f32, f64, i4, i8, i16, i32, u4, u8, u32


def wide(function):
    """The reference that computes with twice the bits or more, and rounds once."""

    def reference(*operands, **params):
        return function(*map(widened, operands), **params)

    return reference


def widened(x):
    x = np.asarray(x)
    if x.dtype.kind == "c":
        return x.astype(np.complex128)
    return x if x.dtype.kind in "biu" else x.astype(np.float64)


inf, nan = np.inf, np.nan
EDGES = np.array(
    [[nan, inf, -inf, 0.0, -0.0, 0.5], [-0.5, 1.5, -1.5, 2.5, -2.5, 1e-3], [1, -1, 30, -30, 7, -7]],
    np.float32,
)
LEAST, MOST = np.iinfo(np.int32).min, np.iinfo(np.int32).max
INTEGERS = np.array([LEAST, LEAST + 1, -5, -1, 0, 1, 7, MOST], np.int32)
DIVISORS = np.array([-1, 2, 2, 0, 0, -3, 3, 5], np.int32)

# ---- of floats, and mostly of complex numbers ------------------------------------------------


def logistic(x):
    return 1 / (1 + np.exp(-x))


def logistic_of_complex(x):
    return 1 / (1 + np.exp(-x.astype(np.complex128)))


def rsqrt(x):
    return 1 / np.sqrt(x)


# jax 0.10.2, which imports this file too, has neither of these.
def log2(x, **parameters):
    return lax.log2(x, **parameters)


def one_minus_square(x):
    return lax.one_minus_square(x)


ANYWHERE = ((-3, 3), True)
for function, reference, (bounds, is_complex_too) in (
    (lax.exp, np.exp, ANYWHERE),
    (lax.exp2, np.exp2, ANYWHERE),
    (lax.expm1, np.expm1, ANYWHERE),
    (lax.log, np.log, ((0.1, 9), True)),
    (log2, np.log2, ((0.1, 9), True)),
    (lax.log1p, np.log1p, ((-0.9, 9), True)),
    (lax.logistic, logistic, ANYWHERE),
    (lax.sqrt, np.sqrt, ((0, 9), True)),
    (lax.rsqrt, rsqrt, ((0.1, 9), True)),
    (lax.cbrt, np.cbrt, ((-9, 9), False)),
    (lax.sin, np.sin, ANYWHERE),
    (lax.cos, np.cos, ANYWHERE),
    (lax.tan, np.tan, ((-1.4, 1.4), True)),
    (lax.tanh, np.tanh, ANYWHERE),
    (lax.asin, np.arcsin, ((-1, 1), True)),
    (lax.acos, np.arccos, ((-1, 1), True)),
    (lax.atan, np.arctan, ANYWHERE),
    (lax.sinh, np.sinh, ANYWHERE),
    (lax.cosh, np.cosh, ANYWHERE),
    (lax.asinh, np.arcsinh, ANYWHERE),
    (lax.acosh, np.arccosh, ((1, 9), True)),
    (lax.atanh, np.arctanh, ((-0.9, 0.9), True)),
):
    sample(function, EDGES, reference=wide(reference), name=f"{function.__name__}(edges)")
    sample(function, bf16[2, 1, 2].between(*bounds), reference=wide(reference))
    if is_complex_too:
        if function is lax.exp2:
            reference = lambda x: np.exp(x * np.log(2))
        sample(function, c64[5], reference=wide(reference))

for function, reference in (
    (lax.floor, np.floor),
    (lax.ceil, np.ceil),
    (lax.is_finite, np.isfinite),
    (lax.round, lambda x: np.trunc(x + np.copysign(0.5, x))),
):
    sample(function, EDGES, reference=wide(reference), name=f"{function.__name__}(edges)")
    sample(function, f16[3, 2], reference=wide(reference))
sample(lax.round, EDGES, lax.RoundingMethod.TO_NEAREST_EVEN, name="round(edges, to even)")
sample(lax.round, f32[4], rounding_method=1, reference=lambda x, rounding_method: np.rint(x))
sample(lax.floor, f8[4], reference=wide(np.floor))
sample(lax.exp, f8[3], reference=wide(np.exp))
sample(lax.sin, f32[0, 3], reference=wide(np.sin))
sample(lax.sin, f32[()], reference=wide(np.sin))
sample(lax.sin, f64[3], reference=np.sin)
sample(lax.exp2, f64[3], reference=np.exp2)
sample(lax.tanh, 0.25, reference=np.tanh)
sample(lax.sin, np.complex64([0j, 50j, -0.0 - 50j, 2 + 200j, complex(0, inf)]), name="sin(far up)")
sample(lax.cos, np.complex64([0j, 50j, -0.0 - 50j, 2 + 200j, complex(0, inf)]), name="cos(far up)")
for accuracy in (lax.AccuracyMode.HIGHEST, lax.AccuracyMode.DEFAULT, lax.Tolerance(1e-3, 1e-3, 2)):
    sample(lax.exp, f32[3], accuracy=accuracy, reference=lambda x, accuracy: np.exp(x))
for function in (lax.cos, lax.exp2, log2, lax.logistic, lax.sqrt, lax.tan):
    sample(function, f32[3].between(0.1, 1), accuracy=lax.AccuracyMode.HIGHEST)

# ---- of all numbers --------------------------------------------------------------------------

for function, reference in (
    (lax.neg, np.negative),
    (lax.sign, np.sign),
    (lax.square, np.square),
    (one_minus_square, lambda x: (1 + x) * (1 - x)),
    (lax.abs, np.abs),
):
    sample(function, EDGES, reference=reference, name=f"{function.__name__}(edges)")
    sample(function, INTEGERS, reference=reference, name=f"{function.__name__}(integers)")
    sample(function, bf16[2, 2], reference=wide(reference))
    constant = "jax holds the sign of a complex number for constant"
    sample(
        function,
        c64[3],
        reference=wide(reference),
        not_smooth=constant if function is lax.sign else None,
    )
    if function is not lax.abs:
        sample(function, u8[4].between(0, 9), reference=reference)
        sample(function, i4[4].between(-7, 7), reference=reference)
sample(
    lax.sign,
    np.complex64([0, 3 - 4j]),
    reference=np.sign,
    name="sign(complex zero)",
    not_smooth=constant,
)
sample(lax.abs, 0 - 2j, reference=np.abs)

for y in (-3, -1, 0, 1, 2, 7):
    power = lambda x, y: np.power(x, float(y))
    sample(lax.integer_pow, EDGES, y, reference=wide(power), name=f"integer_pow(edges, {y})")
for y in (0, 1, 5):
    sample(lax.integer_pow, i16[2, 3], y, reference=np.power)
    sample(lax.integer_pow, f32[3].between(0.5, 2), y, reference=np.power)
sample(lax.integer_pow, f32[3].between(0.5, 2), -3, reference=lambda x, y: x ** float(y))
sample(lax.integer_pow, c64[3], -2, reference=lambda x, y: x**-2.0)
sample(lax.integer_pow, 3, 4, reference=np.power)
sample(lax.reciprocal, EDGES, reference=np.reciprocal, name="reciprocal(edges)")

sample(lax.real, c64[2, 3], reference=np.real)
sample(lax.imag, c64[2, 3], reference=np.imag)
sample(lax.conj, c64[2, 3], reference=np.conj)
sample(lax.conj, f32[3], reference=lambda x: x.astype(np.complex64))
sample(lax.complex, f32[2, 3], f32[()], reference=lambda x, y: x + 1j * y)
sample(lax.complex, f64[2], f64[2], reference=lambda x, y: x + 1j * y)

# ---- of two numbers --------------------------------------------------------------------------

ROW = EDGES.reshape(1, -1)
COLUMN = np.float32([nan, inf, -inf, 0.0, -0.0, 2, -3]).reshape(-1, 1)
for function, reference in (
    (lax.add, np.add),
    (lax.sub, np.subtract),
    (lax.mul, np.multiply),
    (lax.div, np.divide),
    (lax.rem, np.fmod),
    (lax.max, np.maximum),
    (lax.min, np.minimum),
    (lax.pow, np.power),
    (lax.atan2, np.arctan2),
    (lax.nextafter, np.nextafter),
):
    sample(function, ROW, COLUMN, reference=reference, name=f"{function.__name__}(edges)")
    if function is not lax.nextafter:
        sample(function, bf16[2, 3].between(0.1, 5), bf16[2, 1], reference=wide(reference))
for function, reference in (
    (lax.add, np.add),
    (lax.sub, np.subtract),
    (lax.mul, np.multiply),
    (lax.max, np.maximum),
    (lax.min, np.minimum),
):
    sample(function, INTEGERS, DIVISORS, reference=reference, name=f"{function.__name__}(integers)")
    sample(function, u8[3, 1].between(0, 255), u8[1, 2].between(0, 255), reference=reference)
    sample(function, c64[3], c64[3])
    sample(function, i4[4].between(-8, 7), i4[4].between(-8, 7))
for function in (lax.div, lax.rem):
    sample(function, INTEGERS, DIVISORS, name=f"{function.__name__}(integers)")
    sample(function, u32[5].between(0, 99), u32[5].between(0, 7))
    sample(function, i8[5].between(-99, 99), np.int8(7))
sample(lax.div, c64[3], c64[3], reference=np.divide)
sample(lax.atan2, c64[3], c64[3])
sample(lax.add, f32[0, 3], f32[1, 3], reference=np.add)
sample(lax.add, f32[2, 3], 1.5, reference=np.add)
sample(lax.add, 1, 2, reference=np.add)
sample(lax.add, f64[3], f64[3], reference=np.add)
sample(lax.add, f8[4], f8[4])
sample(lax.mul, f32[3], 2.0, out_dtype="bfloat16")
sample(
    lax.mul,
    i8[4].between(-128, 127),
    i8[4].between(-128, 127),
    out_dtype=np.int32,
    reference=lambda x, y, out_dtype: x.astype(out_dtype) * y.astype(out_dtype),
)
sample(lax.mul, bf16[3], bf16[3], out_dtype=np.float32)
sample(lax.max, b1[4], b1[4], reference=np.maximum)
sample(
    lax.max, np.complex64([1 + 2j, 2 + 1j, nan]), np.complex64([1 + 3j, 1 + 5j, 1]), name="max(c)"
)
sample(
    lax.min, np.complex64([1 + 2j, 2 + 1j, nan]), np.complex64([1 + 3j, 1 + 5j, 1]), name="min(c)"
)
for exponent in (i32[2, 3], u8[2, 1], i8[()]):
    sample(lax.pow, f32[2, 3].between(0.5, 3), exponent, reference=np.power)
sample(lax.pow, c64[3], c64[3], reference=np.power)
sample(lax.pow, c64[3], i32[3], reference=wide(np.power))
sample(lax.pow, 2.0, 3, reference=np.power)
sample(lax.pow, 2.0, i32[3], reference=lambda x, y: np.float32(x) ** y)
HALVES = np.array([0, 1, -1, nan, inf, 2], ml_dtypes.bfloat16)
sample(lax.nextafter, HALVES, HALVES[::-1], reference=np.nextafter, name="nextafter(bf16)")

# ---- of bits ---------------------------------------------------------------------------------

for function, reference in (
    (lax.bitwise_and, np.bitwise_and),
    (lax.bitwise_or, np.bitwise_or),
    (lax.bitwise_xor, np.bitwise_xor),
):
    sample(function, INTEGERS, DIVISORS, reference=reference, name=f"{function.__name__}(integers)")
    sample(function, b1[2, 3], b1[1, 3], reference=reference)
    sample(function, u8[3].between(0, 255), u8[3].between(0, 255), reference=reference)
for spec in (b1[3], i32[2, 2], u4[4].between(0, 15)):
    sample(lax.bitwise_not, spec, reference=None if spec.dtype == ml_dtypes.uint4 else np.invert)
SHIFTS = np.array([0, 1, 31, 32, 33, -1, 8, 2], np.int32)
for function in (lax.shift_left, lax.shift_right_logical, lax.shift_right_arithmetic):
    sample(function, INTEGERS, SHIFTS, name=f"{function.__name__}(integers)")
    sample(function, u8[5].between(0, 255), u8[5].between(0, 9))
    sample(function, i8[5].between(-128, 127), np.int8(3))
count_bits = np.vectorize(lambda x: bin(int(x) & 0xFFFFFFFF).count("1"))
sample(lax.population_count, INTEGERS, reference=count_bits)
sample(lax.population_count, u8[4].between(0, 255), reference=np.bitwise_count)
sample(lax.population_count, i4[4].between(-8, 7))
leading_zeros = np.vectorize(lambda x: 32 - (int(x) & 0xFFFFFFFF).bit_length())
sample(lax.clz, INTEGERS, reference=leading_zeros)
sample(lax.clz, u8[4].between(0, 255))
high = lambda x, y: ((x.astype(np.int64) * y) >> 32).astype(np.int32)
sample(lax.mulhi, INTEGERS, INTEGERS[::-1], reference=high, name="mulhi(integers)")
sample(lax.mulhi, u32[4].between(0, 2**32 - 1), u32[()].between(0, 2**32 - 1))
sample(lax.mulhi, i8[4].between(-128, 127), i8[4].between(-128, 127))

# ---- clamp -----------------------------------------------------------------------------------

clip = lambda low, x, high: np.minimum(np.maximum(x, low), high)
sample(lax.clamp, -1.0, EDGES, 2.0, reference=clip, name="clamp(edges)")
sample(lax.clamp, np.float32(3), EDGES, np.float32(2), reference=clip, name="clamp(crossed)")
sample(lax.clamp, i32[2, 3], i32[2, 3], i32[2, 3].between(3, 5), reference=clip)
sample(lax.clamp, u8[()].between(1, 2), u8[4].between(0, 9), u8[4].between(4, 5), reference=clip)
sample(lax.clamp, False, b1[3], True, reference=lambda low, x, high: x)
sample(lax.clamp, bf16[0], bf16[0], bf16[0], reference=clip)
sample(
    lax.clamp,
    np.complex64(0),
    c64[3],
    np.complex64(1 + 1j),
    not_differentiable=(TypeError, "gt does not accept dtype complex128"),
)
sample(lax.clamp, 0, 5, 3, reference=clip)
