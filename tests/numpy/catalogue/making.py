"""Arrays from nothing, from Python, from ranges; matrices of a kind; conversions; coordinates."""

import numpy as np

from tests.numpy.catalogue import (
    ALL,
    AN_OBJECT,
    FLOATS,
    KINDS,
    but,
    call,
    each,
    excluded,
    tried,
    wrong,
)
from tests.support.cases import b1, bf16, c64, f16, f32, f64, i8, i32, u8

DTYPES = (bool, int, float, complex, np.int8, np.uint32, np.float16, "float32", np.complex64)

# ---- filled --------------------------------------------------------------------------------------

FILLED = [
    call(3),
    call((2, 3)),
    call(()),
    call((0, 2)),
    call([2, np.int32(1)]),
    *(call((2,), dtype) for dtype in DTYPES),
]
tried("zeros ones", *FILLED)
tried("empty", *FILLED, numpy=np.zeros)
tried("full", *(but(one, operands=(one.operands[0], 2, *one.operands[1:])) for one in FILLED))
FULL = [call((2, 3), f32[3]), call((2,), i8[()]), call(2, 1j), call(2, 3.7, int)]
tried("full", *FULL)
LIKE = [
    *each(ALL, lambda t: call(t[2, 3])),
    call(f32[2, 3], dtype=np.int8),
    call(f32[2, 3], shape=(4,)),
    call(f32[0]),
    call(2.0),
    call(3, dtype=np.float16, shape=()),
]
tried("zeros_like ones_like", *LIKE)
tried("empty_like", *LIKE, numpy=np.zeros_like)
tried("full_like", *(but(one, operands=(*one.operands, 1)) for one in LIKE))
tried("full_like", call(f32[2, 3], f32[3]), call(i32[2], 2.5), call(2, i8[()]))
wrong(
    "zeros ones empty full", call(-1), call((2, -1)), call("a"), call(2.5), call(None), call(2, "q")
)
wrong("zeros_like full_like", call("a"), call(None), call([1, 2]), call(f32[3], 1, shape=(-1,)))
wrong("full", call((2, 2), [1, 2.5]), call((2, 3), f32[2]), call(2, None), call(2, "a"))

# ---- from Python ---------------------------------------------------------------------------------

MADE = [
    *map(call, (1, 2.0, True, 1j, [], [1, 2.5], [[1, 2], [3, 4]], (1, True), [[], []])),
    *(
        call(value, dtype)
        for value in ([0, 1.7], 2.5)
        for dtype in (int, np.float16, bool, complex)
    ),
    *each(KINDS, lambda t: call(t[2, 3])),
    call([f32[3], f32[3]]),
    call([[f32[()], 1.0], [2, i8[()]]]),
    call(np.arange(3)),
    call(np.ones((2, 0))),
]
tried("array asarray", *MADE)
tried(
    "array",
    call(2, ndmin=2),
    call(f32[3], ndmin=3),
    but(call([1, 2], None, True, "K", 2), numpy="takes these by name alone"),
)
tried("asarray", call(f32[3], copy=True), call(f32[3], np.int8))
wrong("array asarray", call("a"), call(None), call([None]), call([[1], [1, 2]]), call(AN_OBJECT))
wrong("array asarray", call(["a"]), call({"a": 1}), call(1, "q"), call([f32[2], f32[3]]))
wrong("array asarray", call(2**40), call(1, order="X"), call(1, order="F"), call(1, order="C"))
tried("copy", *each(KINDS, lambda t: call(t[2, 3])), call(2), call(f32[0], order="K"))
CAST = [
    *(call(t[3], u.dtype) for t in (b1, i8, f32, c64) for u in (b1, i8, i32, bf16, f16, c64)),
    *(call(t[3].between(0, 9), u8.dtype) for t in (b1, i8, f32)),
    call(c64[3].between(0, 9), np.uint8),
    call(2.7, int),
    call(f32[3], None),
    call(f32[3], float, copy=True),
    call(f64[3], np.float32),
]
tried(
    "astype",
    *CAST,
    not_smooth="what is rounded makes steps",
    numpy=lambda x, dtype, copy=False: np.asarray(x).astype(dtype or float),
)
wrong("astype", call(f32[3], "q"), call("a", int), call([1], int), call(f32[3]))
FROM = [call(np.float32([1, 2, 3]).tobytes(), np.float32), call(b"abcd", np.uint8, 2, 1)]
tried("frombuffer", *FROM, concrete=True, narrow=True)
excluded("fromiter", "is refused, as jax refuses it")
tried("fromstring", call("1 2 3", sep=" "), call("1,2", int, sep=","), concrete=True, narrow=True)
wrong("frombuffer", call("abc"), call(b"abc", np.float32), call(f32[3]))
wrong("fromiter", call(3, int), call([1]), call([1, 2], int, 5))
excluded("fromfile", "reads a file: test_members.py")
excluded("from_dlpack", "takes arrays of other libraries: tests/runtime/test_protocols.py")

# ---- ranges --------------------------------------------------------------------------------------

RANGES = [
    *map(call, (5, 0, -1, 3.0, 2.5, np.int8(3), np.float32(2.5))),
    call(1, 4),
    call(0, 1, 0.25),
    call(5, 0, -2),
    call(0.5, 3),
    call(3, dtype=np.uint8),
    call(1, 6, 2, np.float16),
    call(start=2, stop=5),
    call(0, 10, 3.5, dtype=int),
]
tried("arange", *RANGES, narrow=True)
wrong("arange", call(), call(None), call("a"), call(1j), call(0, 5, 0), call(f32[3]), call(f32[()]))
wrong("arange", call(3, dtype=bool), call(0, 3, 1, bool), call(0, None, None), call([1]))
SPACED = [
    call(0, 1, 5),
    call(1, 10, 4, endpoint=False),
    call(1.0, 10.0, 1),
    call(1, 10, 0),
    call(f32[3].between(1, 2), 5, 4),
    call(f32[2, 1].between(1, 2), f32[3].between(3, 9), 3, axis=-1),
    call(f32[3].between(1, 2), f32[3].between(3, 9), 3, axis=1),
    call(1, 8, 3, dtype=np.float16),
    call(f16[()].between(1, 2), f16[2].between(3, 9), 3),
    call(c64[()], c64[2], 3),
    call(1, 5),
]
LINE = [
    call(0, 1, 5, retstep=True),
    call(0, 9, 4, dtype=int),
    call(0, 9, 4, True, True),
    call(i8[2], 9, 4),
]
tried("linspace", *SPACED, *LINE, ulps=200)
tried(
    "logspace",
    *SPACED[:8],
    SPACED[9],
    call(0, 3, 4, base=2.0),
    but(call(0, 2, 3, base=f32[3].between(2, 3)), numpy="broadcasts otherwise"),
    ulps=900,
)
tried("geomspace", *SPACED[1:], call(-1, -8, 4), ulps=900, fragile=True)
wrong("linspace logspace geomspace", call(0, 1, -1), call(0, 1, "a"), call(0, 1, 2.5), call("a", 1))
wrong("linspace", call(f32[2], f32[3]), call([1], 2), call(0, 1, 3, axis=2), call(0, 1, None))
GRIDS = [
    call(f32[2], i32[3]),
    call(f32[2], i32[3], b1[1], indexing="ij"),
    call(f32[2], f32[3], sparse=True),
    call(f32[2]),
    call(),
    call(f32[0], f32[3]),
]
tried("meshgrid", *GRIDS)
wrong(
    "meshgrid",
    call(f32[2, 2]),
    call(f32[2], indexing="x"),
    call([1, 2]),
    call(f32[2], copy=False),
    call(f32[2], f32[()]),
)
tried(
    "indices",
    call((2, 3)),
    call([2]),
    call(()),
    call((0, 2)),
    call((2, 3), float),
    call((2, 3), sparse=True),
)
tried("fromfunction", call(lambda i, j: i + 2 * j, (2, 3)), call(lambda i: i, (3,), dtype=np.int8))
wrong("indices", call("a"), call((2, -1)), call((2.5,)), call(3))
excluded("minmax", "is of JAX 0.12: test_reductions.py")
excluded("top_k", "is of JAX 0.12: test_sorting.py")
excluded("mgrid ogrid", "are indexed, not called: test_statistics.py")

# ---- matrices ------------------------------------------------------------------------------------

tried(
    "eye",
    call(3),
    call(2, 3),
    call(3, k=1),
    call(3, 2, -1, np.int8),
    call(0),
    call(2, k=5),
    call(2, k=i32[()]),
)
tried("eye", call(2, None, 0, bool), call(2, 3, dtype=complex))
tried("identity", call(3), call(0), call(2, np.int8), call(2, dtype=bool))
tried("tri", call(3), call(2, 4), call(3, 3, 1), call(3, k=-1, dtype=bool), call(2, 0))
wrong("eye identity tri", call(-1), call("a"), call(2.5), call(None), call(2, "q"), call(2, -1))
DIAGONAL = [call(f32[3], 1), call(f32[3], -2), call(f32[0]), call(f32[2, 3]), call(f32[2, 3], k=1)]
tried("diag", *each(KINDS, lambda t: call(t[3])), *DIAGONAL, call(f32[2, 3], 9), call(f32[0, 3]))
tried("diagflat", *each(KINDS, lambda t: call(t[2, 2])), *DIAGONAL, call(2.0), call(f32[()], 1))
DIAGONALS = [
    *each(KINDS, lambda t: call(t[2, 3])),
    call(f32[2, 3], 1),
    call(f32[2, 3], offset=-1),
    call(f32[2, 3, 4], 0, 1, 2),
    call(f32[2, 3, 4], axis1=-1, axis2=0),
    call(f32[0, 3]),
    call(f32[2, 3], 9),
]
tried("diagonal trace", *DIAGONALS)
tried("trace", call(i8[2, 2], dtype=np.float32), call(f32[3, 3], i32[()].between(0, 0)))
wrong("diag", call(f32[()]), call(f32[2, 2, 2]), call([1]), call(f32[3], 1.5), call(f32[3], "a"))
wrong(
    "diagonal trace", call(f32[3]), call(f32[2, 2], 0, 1, 1), call(f32[2, 2], 0, 0, 5), call([[1]])
)
TRIANGLE = [
    *each((*KINDS, i32, f32), lambda t: call(t[2, 3])),
    *(call(f32[3, 3], k) for k in (-1, 1, 5, -5)),
    call(f32[2, 3, 3], k=1),
    call(f32[0, 3]),
]
tried("tril triu", *TRIANGLE, call(f32[2, 1]))
wrong(
    "tril triu",
    call(f32[3]),
    call(f32[()]),
    call([[1]]),
    call(f32[2, 2], 1.5),
    call(f32[2, 2], "a"),
)
PLACES = [call(3), call(3, 1), call(2, -1, 4), call(3, k=5), call(0), call(3, m=2)]
tried("tril_indices triu_indices", *PLACES)
tried(
    "tril_indices_from triu_indices_from", call(f32[3, 3]), call(f32[2, 3], 1), call(b1[3, 2], k=-1)
)
tried("diag_indices", call(3), call(2, 3), call(0), call(2, ndim=1))
tried("diag_indices_from", call(f32[3, 3]), call(f32[2, 2, 2]))
wrong("diag_indices", call(-1), call("a"), call(2, -1), call(2.5))
wrong("diag_indices_from tril_indices_from", call(f32[3]), call(f32[2, 3, 4]), call("a"))
wrong("tril_indices", call("a"), call(2.5))
VANDERMONDE = [
    *each((i8, *FLOATS, c64), lambda t: call(t[3])),
    call(f32[3], 2),
    call(f32[3], 4, True),
]
tried("vander", *VANDERMONDE, call(f32[0]), call(f32[3], N=0), call(i32[2], increasing=True))
wrong("vander", call(f32[2, 2]), call(f32[3], -1), call([1, 2]), call(f32[3], 1.5))

# ---- coordinates ---------------------------------------------------------------------------------

tried("ix_", call(i32[2], i32[3]), call(np.array([0, 2]), np.array([1])), call(i8[2]), call())
tried(
    "ix_",
    call(np.array([True, False, True]), np.array([1])),
    concrete=True,
    unlike_jax="there masks are refused",
)
tried("ix_", call(f32[0], i8[2]), numpy="gives floats")
wrong("ix_", call(f32[2, 2]), call([1, 2]), call(i32[()]), call("a"))
tried("mask_indices", call(3, np.triu), concrete=True)
tried("mask_indices", call(3, np.tril, 1), concrete=True)
MULTI = [
    call((i32[3].between(0, 1), i32[3].between(0, 2)), (2, 3), mode="clip"),
    call((np.array([0, 1]), np.array([5, -1])), (2, 3), mode="wrap"),
    call((i32[2, 2].between(0, 1), 1), (2, 3), mode="clip", order="F"),
]
tried("ravel_multi_index", *MULTI)
tried("ravel_multi_index", call((np.array([0, 1]), np.array([2, 1])), (2, 3)), concrete=True)
wrong(
    "ravel_multi_index", call((np.array([5]),), (2,)), call((f32[2],), (2,)), call(([1],), (2, 3))
)
wrong(
    "ravel_multi_index",
    call((i32[2],), (2,), mode="x"),
    call((i32[2],), (2,), mode="clip", order="K"),
)
tried("unravel_index", *each((i8, u8, i32), lambda t: call(t[3].between(0, 5), (2, 3))))
tried(
    "unravel_index",
    call(i32[2, 2].between(0, 23), (2, 3, 4)),
    but(call(5, (2, 3)), other_weakness=True),
    call(i32[0], (2,)),
)
tried(
    "unravel_index", call(np.array([-1, 99]), (2, 3)), numpy="NumPy refuses what is out of bounds"
)
wrong(
    "unravel_index",
    call(f32[3], (2, 3)),
    call(i32[3], "a"),
    call([1], (2, 3)),
    call(i32[3], (2.5,)),
)

# ---- dtypes --------------------------------------------------------------------------------------

tried(
    "result_type",
    call(f16[2], 1.0),
    call(np.int8, i32[2]),
    call(1, 2.0),
    call(i8[1], u8[1]),
    concrete=True,
    numpy="JAX's promotion",
)
tried(
    "promote_types",
    call("int8", "uint8"),
    call(np.float16, "bfloat16"),
    call(int, float),
    concrete=True,
    numpy="JAX's promotion",
)
tried(
    "can_cast",
    call("int8", "int32"),
    call(np.float32, np.int8),
    call(np.float64, np.float32, "same_kind"),
    concrete=True,
)
tried(
    "isdtype",
    call(np.dtype("int8"), "integral"),
    call(np.float32, ("bool", "real floating")),
    call(np.dtype("complex64"), np.complex64),
    concrete=True,
    numpy="asks dtypes alone",
)
tried(
    "issubdtype",
    call(np.int8, np.integer),
    call("float32", np.inexact),
    call(bf16.dtype, np.floating),
    call(int, float),
    concrete=True,
    numpy="knows no bfloat16",
)
wrong("result_type", call(), call("q"), call(None, "q"), call("a", "b"))
wrong(
    "promote_types isdtype can_cast",
    call("q", "int8"),
    call(None, None),
    call("int8"),
    call("int8", "x"),
)
NAMES = (
    "bool bool_ int1 int2 int4 int8 int16 int32 int64 int_ uint1 uint2 uint4 uint8 uint16 uint32"
)
NAMES += " uint64 uint bfloat16 float16 float32 float64 float_ single double complex64 complex128"
NAMES += (
    " complex_ csingle cdouble float4_e2m1fn float6_e2m3fn float6_e3m2fn float8_e3m4 float8_e4m3"
)
NAMES += (
    " float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu"
)
excluded(NAMES, "a dtype: tests/against_jax/corpus_numpy.py")
KINDS_OF_DTYPES = (
    "character complexfloating flexible floating generic inexact integer number object_"
)
excluded(
    f"{KINDS_OF_DTYPES} signedinteger unsignedinteger dtype finfo iinfo",
    "NumPy's or ml_dtypes' own",
)
excluded("frompyfunc", "makes functions: test_ufunc.py")
excluded("poly polyfit roots", "tried in test_polynomial.py")
excluded("e euler_gamma inf nan newaxis pi ComplexWarning ndarray", "no function")
