"""Arithmetic, exponentials, trigonometry, powers, divisions, rounding, parts of floats, complex."""

import itertools

import numpy as np

from tests.numpy.catalogue import (
    ALL,
    FLOATS,
    INTEGERS,
    NUMBERS,
    ODD,
    REALS,
    alias,
    but,
    call,
    each,
    tried,
    wrong,
)
from tests.support.cases import b1, bf16, c64, f16, f32, f64, i8, i32, u8, u32

NO_COUNTERPART = "NumPy has no such function"


def unary(makers, low=-3.0, high=3.0, odd=True):
    """Each dtype, in shapes by turns; Python scalars; odd numbers."""
    shapes = itertools.cycle(((3,), (2, 3), (), (0, 2)))
    return [
        *(call(maker[shape].between(low, high)) for maker, shape in zip(makers, shapes)),
        call(1),
        call(0.5),
        *([call(ODD)] if odd else []),
    ]


def binary(makers, low=-3.0, high=3.0, scalars=(2, 0.5), strong=False):
    """Each dtype and pairs of them, in shapes by turns; Python scalars on either side."""
    first = makers[0]
    shapes = itertools.cycle(
        (((2, 3), (3,)), ((), (2, 1)), ((2, 1, 3), (2, 1)), ((3,), (3,)), ((0, 3), (1, 3)))
    )
    couples = [*((maker, maker) for maker in makers), *pairs(makers)]
    return [
        *(
            call(one[shape].between(low, high), two[other].between(low, high))
            for (one, two), (shape, other) in zip(couples, shapes)
        ),
        *(call(first[3].between(low, high), scalar) for scalar in scalars),
        call(scalars[-1], first[3].between(low, high)),
        but(call(makers[1][3].between(low, high), 0.5), other_weakness=strong),
        but(call(scalars[0], scalars[-1]), other_weakness=strong),
    ]


def pairs(makers):
    """Some pairs of different dtypes."""
    wanted = [(i8, u8), (i32, u32), (i32, f16), (bf16, f16), (u8, bf16), (b1, i8), (f16, c64)]
    return [(a, b) for a, b in wanted if a in makers and b in makers]


# Integers become floats in one place for all: of functions that are for floats, one kind will do.
SMOOTH = (f32, b1, i8, bf16, f16, f64)
COMPLEX_AND_REAL = (f32, *(maker for maker in ALL if maker is not f32))
REAL_ALL = (f32, b1, *(maker for maker in REALS if maker is not f32))

# ---- arithmetic ----------------------------------------------------------------------------------

tried("add multiply", *binary(COMPLEX_AND_REAL, scalars=(2, 0.5, True, 2j)))
tried("subtract", *binary((f32, *NUMBERS), scalars=(2, 0.5, 2j)))
tried("divide", *binary(COMPLEX_AND_REAL, 1, 4, scalars=(2, 0.5, True, 2j)))
tried("divide", call(f32[3], np.float32(0)), call(i32[3], 0))
alias(true_divide="divide")
tried("maximum minimum fmax fmin", *binary(REAL_ALL, scalars=(2, 0.5, True)), special=True)
tried("maximum minimum fmax fmin", call(ODD[:, None], ODD))
tried("maximum minimum", call(c64[3], c64[2, 3]), not_smooth="ties")
tried("negative", *unary(NUMBERS), special=True)
tried("positive", *unary(NUMBERS), special=True)
tried("square", *unary(COMPLEX_AND_REAL), special=True)
tried("reciprocal", *(but(one, numpy=lambda x: 1 / x) for one in unary(FLOATS + (c64,), 0.5, 3)))
tried("reciprocal", *map(call, (i32[3], b1[2])), numpy=lambda x: 1 / x)
tried("sign", *unary(NUMBERS), special=True, not_smooth="a step")
tried("absolute", *unary(COMPLEX_AND_REAL, 0.2, 3), special=True)
tried("absolute", call(i8[9].between(-128, 127)), call(f32[4]))
alias(abs="absolute")
tried("fabs", *unary(REAL_ALL[::2]), special=True)
wrong("negative positive sign subtract fabs", call(b1[3]))
wrong("fabs", call(c64[3]))
wrong("subtract", call(b1[3], b1[3]))
wrong("add subtract multiply divide maximum logaddexp", call(f32[2], f32[3]))
wrong("add maximum power arctan2", call("a", 1), call(f32[3], None), call([1, 2], f32[2]))
wrong("add multiply", call(f32[3], f32[3], where=True), call(f32[3], f32[3], out=1))

# ---- exponentials and logarithms -----------------------------------------------------------------

tried("exp exp2 expm1", *unary((*SMOOTH, c64), -2, 2), special=True)
tried("log log2 log10", *unary((*SMOOTH, c64), 0.5, 3), special=True)
tried("log1p", *unary((*SMOOTH, c64), -0.5, 3), special=True)
tried("log log2 log10 sqrt", call(c64[2, 3]))
tried("sqrt", *unary((*SMOOTH, c64), 0.1, 3), special=True)
tried("cbrt", *unary(SMOOTH, 0.2, 3), special=True)
wrong("cbrt", call(c64[3]))
tried("logaddexp logaddexp2", *binary((*SMOOTH, u8), strong=True), special=True)
tried("logaddexp", call(ODD[:, None], ODD))
tried("logaddexp", call(c64[3], c64[3]), numpy=lambda x, y: np.log(np.exp(x) + np.exp(y)))
tried("logaddexp2", call(c64[3].between(-1, 1), c64[3].between(-1, 1)), numpy=NO_COUNTERPART)

# ---- trigonometry --------------------------------------------------------------------------------

tried("sin cos sinh cosh tanh", *unary((*SMOOTH, c64), -2, 2), special=True)
tried("tan", *unary((*SMOOTH, c64), -1.3, 1.3), special=True)
tried("arcsin arccos arctanh", *unary(SMOOTH, -0.9, 0.9), special=True)
tried("arcsin arccos arctan arcsinh arccosh arctanh", call(c64[5]), call(c64[2, 3]))
tried("arctan arcsinh", *unary(SMOOTH), special=True)
tried("arccosh", *unary(SMOOTH, 1.1, 4), special=True)
alias(asin="arcsin", acos="arccos", atan="arctan", asinh="arcsinh", acosh="arccosh")
alias(atanh="arctanh", atan2="arctan2")
tried("arctan2", *binary((*SMOOTH, u8), 0.5, 3, strong=True), special=True)
tried("arctan2", call(ODD[:, None], ODD), call(f32[3], f32[3]))
tried("hypot", *binary((*SMOOTH, u8), 0.5, 3, strong=True), special=True)
tried("deg2rad rad2deg", *unary(SMOOTH), special=True)
alias(radians="deg2rad", degrees="rad2deg")
wrong("arctan2 hypot", call(c64[3], c64[3]))
wrong("deg2rad rad2deg", call(c64[3]))
tried("sinc", *unary((*SMOOTH, c64), odd=False))
tried("sinc", call(ODD), numpy="gives zero at infinity")
tried("sinc", call(np.float32([0.0, 1.0, 1e-20])))
tried("i0", *unary(FLOATS, odd=False))
tried("i0", call(i32[3]), call(b1[2]))
wrong("i0", call(c64[3]))

# ---- powers and divisions ------------------------------------------------------------------------

POWER = [
    *each(FLOATS, lambda t: call(t[2, 3].between(0.5, 3), t[3])),
    *each(INTEGERS, lambda t: call(t[2, 3], t[3].between(0, 3))),
    *(call(t[3].between(1, 3), p) for t in (f32, bf16, i8, c64) for p in (0, 1, 2, 3)),
    *(call(f32[3].between(1, 3), p) for p in (-1, 0.5, -2.5, 2j, np.int8(2), np.float16(2))),
    *(call(base, t[3].between(0, 3)) for base in (2, 2.5) for t in (f32, i8, u8, bf16)),
    call(c64[3].between(1, 2), f32[3]),
    call(f32[3].between(1, 3), i32[3]),
    call(f32[()].between(1, 2), f32[0, 3]),
    call(2, 3),
    call(2.0, 3),
    call(np.float32([0, 0, 0, -1, -2]), np.float32([0, 1, -1, 2, 0.5])),
    call(ODD[:, None], ODD),
]
tried("power", *POWER)
tried("power", call(b1[3], b1[3]), numpy=lambda x, y: x**y, other_kind=True)
alias(pow="power")
wrong("power", call(i32[3], -1), call(2, -1), call(np.int32([2]), np.int32([-2])))
tried("float_power", *POWER[::3])
DIVISORS = np.float32([2, -1.5, 0.7])
# They share their making: of each dtype, one of them will do.
DIVIDED = {
    "floor_divide": (*INTEGERS, f16, f32),
    "remainder": (*INTEGERS, f16, f32),
    "fmod": (i8, u32, f16, f32),
    "divmod": (i8, u32, f32),
}
for name in ("floor_divide", "remainder", "fmod", "divmod"):
    tried(
        name,
        *each(DIVIDED[name], lambda t: call(t[2, 3].between(-9, 9), t[3].between(1, 3))),
        call(bf16[3].between(-9, 9), bf16[3].between(1, 3)),
        call(f32[3].between(-9, 9), DIVISORS),
        call(i8[3].between(-9, 9), np.int8([2, -3, 7])),
        call(i32[5].between(-9, 9), -4),
        call(7, i32[3].between(1, 5)),
        call(f32[3].between(-9, 9), 0.75),
        call(u8[3].between(0, 9), i8[3].between(1, 4)),
        call(f32[0], 2),
        call(7, 2),
        call(-7.5, 2),
        call(ODD, 2.0),
        call(2.0, ODD),
        narrow=True,
        not_smooth="steps",
    )
    tried(name, call(b1[3], b1[3]), call(i32[3], 0), call(3, u8[2].between(0, 0)), numpy="zeros")
    wrong(name, call(c64[3], c64[3]), call(f32[2], f32[3]))
alias(mod="remainder")
for name in ("gcd", "lcm"):
    tried(name, *each(INTEGERS, lambda t: call(t[2, 3].between(-30, 30), t[3].between(-9, 9))))
    tried(name, call(i32[()], 12), call(12, 18), call(i32[0], i32[1]), call(i8[3], u8[3]))
    wrong(name, call(f32[3], f32[3]), call(b1[3], b1[3]), call(i32[3], 0.5))

# ---- rounding ------------------------------------------------------------------------------------

STEPS = {"not_smooth": "steps", "special": True}
tried("rint floor ceil trunc", *unary(FLOATS), call(f32[9].between(-300, 300)), **STEPS)
tried("floor ceil trunc", *each((*INTEGERS, b1), lambda t: call(t[3])), **STEPS)
tried("rint", *map(call, (c64[3], i32[3], b1[2])), **STEPS)
tried("rint", call(np.float32([0.5, 1.5, 2.5, -0.5, -1.5])), **STEPS)
wrong("floor ceil", call(c64[3]))
ROUND = [
    *each((*INTEGERS, *FLOATS, c64), lambda t: call(t[3])),
    *(call(f32[5].between(-200, 200), decimals) for decimals in (1, 2, -1)),
    call(c64[3], decimals=1),
    call(f32[()]),
    call(f32[0, 2]),
    call(2.567, 1),
    call(7),
]
tried("round", *ROUND, **STEPS, narrow=True)
tried("round", call(i32[5].between(-200, 200), -1), unlike_jax="there it is not implemented")
wrong("round", call(b1[2]))
alias(around="round")
CLIP = [
    *each((*INTEGERS, *FLOATS), lambda t: call(t[2, 3], 0, 2)),
    call(f32[5], -1.0, 1.0),
    call(f32[5], max=1.0),
    call(f32[5], min=f32[5].between(-2, 0)),
    call(f32[2, 3], f32[3].between(-2, -1), f32[2, 1].between(1, 2)),
    call(i32[3], 0.5, 2),
    call(u8[3], min=1),
    call(f32[0], 0, 1),
    call(2, 0, 1),
]
tried("clip", *CLIP, special=True, not_smooth="ties")
tried("clip", call(f32[5]), numpy=np.positive)
wrong("clip", call(c64[3], 0, 1), call(), call(f32[3], "a", 1), call(f32[3], 0j))

# ---- parts of floats -----------------------------------------------------------------------------

tried("frexp modf", *unary((f16, f32), odd=False), narrow=True, not_smooth="steps")
tried("frexp", call(ODD), narrow=True)
tried("modf", call(ODD), numpy="gives zero at infinity")
tried("frexp modf", call(bf16[3]), call(i32[3]), call(b1[3]), numpy="of floats alone")
wrong("frexp modf", call(c64[3]))
LDEXP = [
    *each((f16, f32, bf16), lambda t: call(t[3], i32[3])),
    call(f32[2, 1], i8[3]),
    call(i32[3], i32[3]),
    call(f32[3], 2),
    call(3.0, i32[3]),
    call(np.float32([1, 3e38, 1e-38, np.inf, 0]), np.int32([-149, 1, -10, 3, 8])),
    call(f32[0], i32[1]),
]
tried("ldexp", *LDEXP)
wrong("ldexp", call(f32[3], f32[3]), call(c64[3], 1))
tried("copysign", *binary(REAL_ALL, scalars=(2, -0.5)), call(ODD[:, None], ODD), special=True)
tried(
    "heaviside",
    *binary((f32, i8, u8, bf16, f16), scalars=(1, 0.5), strong=True),
    call(ODD[:, None], ODD),
)
tried(
    "nextafter",
    *each((f16, f32), lambda t: call(t[2, 3], t[3])),
    narrow=True,
    not_smooth="jax has no derivative",
)
tried(
    "nextafter",
    call(ODD[:, None], ODD),
    call(f32[3], f32[()]),
    narrow=True,
    not_smooth="jax has no derivative",
)
tried(
    "nextafter",
    call(bf16[3], bf16[3]),
    call(i32[3], 2),
    call(1, 2),
    numpy="of floats alone",
    not_smooth="jax has no derivative",
)
tried("spacing", *unary((f32,)), narrow=True, special=True, not_smooth="steps")
# Of -inf in float16 jax and hlofront give inf, and NumPy NaN.
tried("spacing", call(f16[3].between(-3.0, 3.0)), narrow=True, not_smooth="steps")
tried("spacing", call(bf16[3]), call(i32[3]), numpy="of floats alone")
tried("signbit", *unary(REAL_ALL[::2]), special=True)
tried("signbit", call(b1[3]), numpy=np.zeros_like)
NANS = np.float32([np.nan, np.inf, -np.inf, 2])
tried(
    "nan_to_num",
    *(but(one, narrow=True, ulps=4) for one in unary((f32, f16, i8, c64))),
    call(NANS, nan=7.0, posinf=1.0, neginf=-1.0),
    call(NANS * (1 + 1j), nan=2.0, posinf=3.0),
    but(call(NANS, False, f32[()]), not_smooth="of float32"),
    special=True,
    narrow=True,
)
tried("nan_to_num", call(bf16[3]), call(b1[3]), special=False)
wrong("copysign heaviside nextafter", call(c64[3], c64[3]), call(f32[2], f32[3]))
wrong("signbit spacing", call(c64[3]))

# ---- complex -------------------------------------------------------------------------------------

tried("conjugate", *unary((f32, c64, i8, bf16, f64)), special=True)
tried("conjugate", call(b1[3]), numpy="gives int8")
tried("real imag", *unary(COMPLEX_AND_REAL), special=True)
alias(conj="conjugate")
tried("angle", *unary(NUMBERS, 0.5, 3))
tried("angle", call(c64[4]), call(c64[4], deg=True), call(f32[3], True), call(b1[2]))
tried("angle", call(np.complex64([-1, 1, -1j, -1 + 1e-9j])))
