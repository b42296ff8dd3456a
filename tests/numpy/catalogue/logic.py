"""Comparisons, truth, bits, and questions about arrays."""

import numpy as np

from tests.numpy.catalogue import ALL, INTEGERS, ODD, alias, but, call, each, tried, wrong
from tests.support.cases import b1, bf16, c64, f16, f32, f64, i8, i32, u8, u32

COMPARED = [
    *each(ALL, lambda t: call(t[2, 3], t[3])),
    *(call(t[3], f[2, 1]) for t, f in ((i8, u8), (i32, u32), (i32, f16), (bf16, f16), (f16, c64))),
    call(f32[()], f32[0, 3]),
    call(f32[3], 1),
    call(0.5, f32[3]),
    call(i8[3], 0.5),
    call(1, 2.0),
    call(ODD[:, None], ODD),
]
COMPARISONS = "equal not_equal less less_equal greater greater_equal"
tried(COMPARISONS, *COMPARED, special=True, narrow=True)
wrong(COMPARISONS, call(f32[2], f32[3]), call(None, f32[3]), call("a", 1), call([1], f32[1]))
BOTH = [
    *each((b1, i8, bf16, f32, c64), lambda t: call(t[2, 3], t[3])),
    call(f32[0], 1),
    but(call(b1[3], 0.0), other_weakness=True),
    call(i32[3], f32[()]),
    call(ODD[:, None], ODD),
    call(1, 0),
]
tried("logical_and logical_or logical_xor", *BOTH, special=True)
tried("logical_not", *each((b1, i8, f32, c64), lambda t: call(t[3])), call(0), call(ODD))
wrong("logical_and logical_not", call("a"), call([1, 2], f32[2]))

ONE = [*each(ALL, lambda t: call(t[3])), call(f32[0, 2]), call(2.0), call(ODD), call(1)]
tried("isfinite isinf isnan", *ONE, special=True)
tried(
    "isneginf isposinf", *(one for one in ONE if "complex" not in repr(one.operands)), special=True
)
for one in ("isneginf", "isposinf"):
    wrong(one, call(c64[3]), call(f32[3], f32[3]))
tried("iscomplex isreal", *ONE, call(np.complex64([1, 1j, 0, np.nan])), special=True)
CLOSE = [
    *each((b1, i8, u8, i32, bf16, f16, f32, f64, c64), lambda t: call(t[2, 3], t[3])),
    call(f32[3], f32[3], rtol=1.0),
    call(f32[3], f32[3], atol=2.0, rtol=0.0),
    call(ODD[:, None], ODD),
    call(ODD[:, None], ODD, equal_nan=True),
    call(f32[3], 1.0),
    call(1.0, 1.0 + 1e-9),
    call(f32[0], f32[0]),
    call(i32[3], f32[3]),
]
tried("isclose", *CLOSE)
tried("allclose", *CLOSE)
EQUAL = [
    *each((b1, i8, bf16, f32, c64), lambda t: call(t[2, 3], t[2, 3])),
    call(ODD, ODD),
    call(np.float32([1, 2]), np.int32([1, 2])),
    call(f32[0], f32[0]),
    call(1, 1.0),
]
tried(
    "array_equal",
    *EQUAL,
    call(f32[3], f32[2]),
    call(ODD, ODD, equal_nan=True),
    call(ODD, ODD, True),
    special=True,
)
tried("array_equiv", call(f32[3], f32[2]), unlike_jax="there it raises TypeError")
tried("array_equiv", *EQUAL, call(np.ones((2, 3)), np.ones(3)), special=True)

BITS = [
    *each((b1, *INTEGERS), lambda t: call(t[2, 3].between(-99, 99), t[3].between(-9, 99))),
    *(call(t[3], u[2, 1]) for t, u in ((i8, u8), (i32, u32), (b1, i8))),
    call(i32[3], 5),
    call(6, u8[0]),
    call(True, b1[3]),
    call(12, 10),
]
tried("bitwise_and bitwise_or bitwise_xor", *BITS)
SHIFTS = [
    *each(INTEGERS, lambda t: call(t[2, 3].between(-99, 99), t[3].between(0, 7))),
    call(i32[3], 5),
    call(6, u8[3]),
    call(i8[2, 1], u8[3].between(0, 3)),
    call(12, 2),
]
tried("left_shift right_shift", *SHIFTS, narrow=True)
alias(bitwise_left_shift="left_shift", bitwise_right_shift="right_shift")
tried("left_shift right_shift", call(np.int32([-8, 8]), np.int32([40, 32])), numpy="too far")
tried("invert", *each((b1, *INTEGERS), lambda t: call(t[3])), call(i8[0]), call(7))
alias(bitwise_not="invert", bitwise_invert="invert")
tried("bitwise_count", *each(INTEGERS, lambda t: call(t[3].between(-99, 99))), call(7))
wrong("bitwise_and left_shift right_shift", call(f32[3], i32[3]), call(i32[3], 1.5))
wrong("invert bitwise_count", call(f32[3]), call(1.5))
wrong("bitwise_count", call(b1[3]))
PACKED = [
    call(b1[3, 10]),
    call(b1[3, 10], axis=0),
    call(b1[3, 10], axis=-1),
    call(b1[3, 10], axis=1, bitorder="little"),
    call(i32[2, 9], 1),
    call(u8[0]),
    call(b1[8, 0], axis=0),
]
tried("packbits", *PACKED)
UNPACKED = [
    call(u8[2, 3].between(0, 255), axis=0),
    call(u8[2, 3].between(0, 255)),
    call(u8[2, 3].between(0, 255), axis=-1, bitorder="little"),
    *(call(u8[2, 3].between(0, 255), axis=1, count=count) for count in (5, -3, 30, 0)),
    call(u8[0]),
]
tried("unpackbits", *UNPACKED)
wrong("packbits", call(f32[3]), call(b1[3], bitorder="x"), call(b1[3], axis=2), call(c64[3]))
wrong("unpackbits", call(i32[3]), call(u8[3], bitorder="x"), call(u8[3], axis=2), call(b1[3]))

ANYTHING = (2, 2.0, True, 1j, None, "abc", [1, 2], np.ones(2), np.complex64(np.ones(1)))
for name in ("isscalar", "iterable", "iscomplexobj", "isrealobj"):
    tried(name, *map(call, ANYTHING), call(c64[2]), concrete=True)
tried("isscalar", call(f32[()]), call(np.ones(())), concrete=True, numpy=lambda x: True)
