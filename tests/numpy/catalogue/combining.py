"""Products of vectors and matrices, einsum, convolutions."""

import numpy as np

from tests.numpy.catalogue import ALL, call, each, tried, wrong
from tests.support.cases import b1, bf16, c64, f16, f32, f64, i8, i32, u8


def numbers(*shapes, more=()):
    """The same, without booleans."""
    return [one for one in products(*shapes, more=more) if "bool" not in repr(one.operands)]


MIXED = ((i8, u8), (i32, f16), (bf16, f16), (b1, i8), (f16, c64))


def products(*shapes, more=()):
    """Each dtype, mixed dtypes, and shapes."""
    first = shapes[0]
    return [
        *each(ALL, lambda t: call(t[first[0]], t[first[1]])),
        *(call(t[first[0]], u[first[1]]) for t, u in MIXED),
        *(call(f32[one], f32[other]) for one, other in shapes[1:]),
        *more,
    ]


PREFERRED = [
    call(i8[2, 3], i8[3, 2], preferred_element_type=np.int32),
    call(f16[2, 3], f16[3, 2], precision="highest"),
]
SHAPES = [((2, 3), (3, 2)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 0), (0, 3))]
BATCHED = [
    ((4, 2, 3), (4, 3, 2)),
    ((2, 3), (4, 3, 2)),
    ((2, 1, 2, 3), (3, 3, 2)),
    ((4, 2, 3), (3,)),
]
tried("matmul", *products(*SHAPES, *BATCHED))
tried(
    "dot",
    *products(
        *SHAPES, ((2, 3), (4, 3, 2)), ((), (2, 3)), ((), ()), more=[call(f32[3], 2.0), call(2, 3)]
    ),
)
tried("matmul dot", *PREFERRED, numpy=lambda x, y, **_: x.astype(np.float64) @ y, other_kind=True)
wrong(
    "matmul",
    call(f32[()], f32[3]),
    call(f32[3], 2.0),
    call(f32[2, 3], f32[2, 3]),
    call([[1]], f32[1, 1]),
    call(f32[2, 2, 2], f32[3, 2, 2]),
)
wrong(
    "dot matmul",
    call(f32[2], f32[3]),
    call("a", f32[3]),
    call(None, f32[3]),
    call(f32[3], f32[3], precision="x"),
)
tried(
    "inner",
    *products(((2, 3), (4, 3)), ((3,), (3,)), ((2, 3), (3,)), ((), (2,)), more=[call(2, f32[3])]),
)
tried(
    "outer",
    *numbers(((2,), (3,)), ((2, 2), (3, 1)), ((), (3,)), ((0,), (2,)), more=[call(2, f32[3])]),
)
tried("vdot", *products(((2, 3), (2, 3)), ((6,), (2, 3)), ((), ()), ((0,), (0,))))
tried(
    "vecdot",
    *products(((2, 3), (3,)), ((2, 1, 3), (4, 3)), ((0,), (0,))),
    call(f32[3, 2], f32[3, 2], axis=0),
)
tried("matvec", *products(((2, 3), (3,)), ((4, 2, 3), (4, 3)), ((4, 2, 3), (3,))))
tried("vecmat", *products(((3,), (3, 2)), ((4, 3), (4, 3, 2)), ((3,), (4, 3, 2))))
wrong(
    "inner vdot vecdot matvec vecmat",
    call(f32[2], f32[3]),
    call("a", f32[3]),
    call([1], [1]),
    call(f32[()], f32[3]),
    call(None, 1),
)
wrong("kron", call(b1[2], b1[3]))
wrong("outer", call([1], [2]), call("a", 1), call(f32[3]), call(f32[2], f32[2], out=1))
wrong("vecdot", call(f32[2, 3], f32[2, 3], axis=2), call(2.0, 3.0))
tried(
    "kron",
    *numbers(((2,), (3,)), ((2, 2), (1, 3)), ((2,), (2, 2)), ((), (3,)), more=[call(2, f32[3])]),
)
tried("cross", *each((i8, i32, bf16, f16, f32, c64, f64), lambda t: call(t[2, 3], t[3])))
CROSSED = [
    call(f32[3, 2], f32[3, 2], axis=0),
    call(f32[3, 2], f32[2, 3], 0, 1),
    call(f32[2, 3], f32[2, 3], axisc=0),
    call(f32[0, 3], f32[3]),
]
tried("cross", *CROSSED)
PLANAR = [call(f32[2], f32[2]), call(f32[2, 2], f32[3]), call(f32[3], f32[4, 2])]
tried("cross", *PLANAR, numpy="NumPy warns of vectors in the plane")
wrong(
    "cross",
    call(f32[4], f32[3]),
    call(f32[()], f32[3]),
    call([1, 2, 3], f32[3]),
    call(f32[3], f32[3], axis=1),
    call(f32[2, 3], f32[4, 3]),
)
wrong("kron", call([1], 2), call("a", 1), call(None, 1))
CONTRACTED = [
    *each((b1, i8, u8, bf16, f16, f32, c64, f64), lambda t: call(t[2, 3], t[3, 2], 1)),
    call(f32[2, 3], f32[2, 3]),
    call(f32[2, 3], f32[3], axes=0),
    call(f32[2, 3, 4], f32[4, 3, 5], axes=((1, 2), (1, 0))),
    call(f32[2, 3], f32[4, 3], (1, 1)),
    call(f32[2, 3], f32[4, 3], ([-1], [-1])),
    call(f32[2, 0], f32[0, 3], 1),
]
tried("tensordot", *CONTRACTED)
wrong(
    "tensordot",
    call(f32[2, 3], f32[2, 3], 1),
    call(f32[2], f32[2], 2),
    call(f32[2], f32[2], "a"),
    call([1], [1], 1),
    call(f32[2], f32[2], ((0,), (0, 0))),
)
wrong(
    "tensordot",
    call(f32[2], f32[2], -1),
    call(f32[2], f32[2], (0, 3)),
    call(f32[2, 2], f32[2, 2], ((0, 0), (0, 1))),
    call(f32[2], f32[2], (0, 0, 0)),
)
SUMMED = [
    *each((b1, i8, u8, bf16, f16, f32, c64, f64), lambda t: call("ij,jk->ik", t[2, 3], t[3, 2])),
    call("ij,kj", f32[2, 3], f32[4, 3]),
    call("ii", f32[3, 3]),
    call("ii->i", f32[3, 3]),
    call("ij->ji", f32[2, 3]),
    call("...ij,...jk", f32[4, 2, 3], f32[3, 2]),
    call("i,j,k->ijk", f32[2], f32[3], i8[2]),
    call("ij,jk,kl->il", f32[2, 3], f32[3, 2], f32[2, 4], optimize="optimal"),
    call("ij,ij->", f32[2, 3], f32[2, 3]),
    call("bij,bjk->bik", f32[2, 2, 3], f32[2, 3, 2]),
    call("i->", f32[0]),
    call(",i", 2.0, f32[3]),
    call(f32[2, 3], [0, 1], f32[3, 2], [1, 2], [0, 2]),
    call(f32[2, 3], [0, 1]),
    call("i...->...", f32[2, 3, 2]),
]
tried("einsum", *SUMMED)
tried(
    "einsum", call("ij,jk", i8[2, 3], i8[3, 2], preferred_element_type=np.int32), numpy="only jax's"
)
wrong(
    "einsum",
    call("ij,jk", f32[2, 3], f32[2, 3]),
    call("ij", f32[2]),
    call("ij->k", f32[2, 3]),
    call("i,i", f32[2]),
    call("i->", "a"),
    call(),
)
wrong(
    "einsum",
    call("i j", f32[2]),
    call("ij->ii", f32[2, 2]),
    call(3),
    call("i", [1, 2]),
    call("i,i", f32[2], f32[3]),
    call("$", f32[2]),
)
tried(
    "einsum_path",
    call("ij,jk,kl->il", f32[2, 3], f32[3, 2], f32[2, 4]),
    call("ij,jk", f32[2, 3], f32[3, 2], optimize="greedy"),
    concrete=True,
    numpy="opt_einsum writes another report",
    unlike_jax="the report",
)
LENGTHS = [((5,), (3,)), ((3,), (5,)), ((4,), (4,)), ((1,), (3,))]
for name in ("convolve", "correlate"):
    tried(name, *numbers(*LENGTHS), other_kind=True)
    tried(name, call(b1[5], b1[3]), numpy="gives booleans")
    tried(name, *(call(f32[5], f32[2], mode=mode) for mode in ("full", "same", "valid")))
    tried(
        name,
        call(f32[2], f32[5], "same"),
        call(c64[4], c64[2], "full"),
        call(i8[4], f32[2], "valid"),
    )
    wrong(
        name,
        call(f32[0], f32[2]),
        call(f32[2, 2], f32[2]),
        call(f32[2], f32[2], "x"),
        call([1], [2]),
        call(f32[2], "a"),
        call(f32[()], f32[2]),
    )
