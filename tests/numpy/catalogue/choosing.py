"""Choosing by conditions and by places, sorting and searching, sets."""

import numpy as np

from tests.numpy.catalogue import ALL, KINDS, ODD, REALS, call, each, tried, wrong
from tests.support.cases import b1, bf16, c64, f16, f32, f64, i8, i32, u8

MASK = np.array([True, False, True])
STATIC = "a static size is only jax's"

# ---- by conditions -------------------------------------------------------------------------------

WHERE = [
    *each(KINDS, lambda t: call(b1[2, 3], t[2, 3], t[3])),
    call(b1[2, 1], f32[3], i8[()]),
    call(b1[3], 1, 2.0),
    call(b1[3], f16[3], 1.0),
    call(f32[3], f32[3], bf16[3]),
    call(i8[3], i32[3], u8[3]),
    call(True, 1, f32[3]),
    call(b1[0], f32[()], f32[0]),
    call(MASK, 2, 3),
]
tried("where", *WHERE)
tried("where", call(MASK), call(f32[2, 3]), concrete=True)
tried("where", call(b1[2, 3], size=4), call(b1[4], size=3, fill_value=-1), numpy=STATIC)
wrong(
    "where",
    call(b1[3], 1),
    call(b1[2], f32[3], 1),
    call([True], 1, 2),
    call(b1[3], "a", 1),
    call(b1[3]),
)
wrong("where", call(b1[3], f32[3], None), call(), call(b1[3], 1, 2, size=2), call("a", 1, 2))
PLACES = [*each(KINDS, lambda t: call(t[2, 3])), call(f32[0, 2]), call(ODD), call(f32[5])]
tried("nonzero", *PLACES, concrete=True)
tried("flatnonzero argwhere", call(b1[2, 3]), call(ODD), concrete=True)
tried("flatnonzero argwhere", call(2.0), call(0), concrete=True)
SIZED = [
    call(b1[2, 3], size=4),
    call(i8[2, 3], size=2),
    call(f32[5], size=7, fill_value=9),
    call(b1[0, 2], size=2),
]
tried("nonzero flatnonzero argwhere", *SIZED, numpy=STATIC)
tried("nonzero", call(b1[2, 3], size=7, fill_value=(5, 6)), numpy=STATIC)
wrong(
    "nonzero flatnonzero argwhere",
    call(b1[3]),
    call([1, 0]),
    call("a"),
    call(b1[3], size=-1),
    call(b1[3], size="a"),
    call(None),
)
wrong("nonzero", call(f32[()]), call(b1[2, 3], size=2, fill_value=(1, 2, 3)))
CHOSEN = [
    call(i32[3].between(0, 1), [f32[3], f32[3]], mode="clip"),
    call(np.array([0, 1, 1]), (i8[3], f32[()]), mode="wrap"),
    call(np.array([-1, 5]), [f32[2], f32[2]], mode="clip"),
    call(np.array([-1, 5]), [f32[2], f32[2]], mode="wrap"),
    call(i32[2, 1].between(0, 1), [f32[3], c64[2, 3]], mode="clip"),
    call(i32[3].between(0, 1), f32[2, 3], mode="clip"),
]
tried("choose", *CHOSEN)
tried(
    "choose",
    call(np.array([0, 1, 1]), [np.float32([1, 2, 3]), np.float32([4, 5, 6])]),
    concrete=True,
)
wrong(
    "choose",
    call(np.array([0, 2]), [f32[2], f32[2]]),
    call(f32[2], [f32[2]]),
    call(i32[2], []),
    call(i32[2], [1, 2], mode="x"),
)
wrong(
    "choose",
    call(i32[2].between(0, 0), [f32[2]]),
    call([0], [f32[1]]),
    call(i32[2], [f32[2], "a"], mode="clip"),
)
SELECTED = [
    *each(KINDS, lambda t: call([b1[3], b1[3]], [t[3], t[3]])),
    call([b1[2, 1], b1[3]], [f32[3], i8[()]], 7),
    call([b1[3], b1[3]], [f32[3], 2], default=f16[3]),
    call((b1[3],), (1,)),
    call([True, b1[2]], [f32[2], f32[2]], 1.5),
]
tried("select", *SELECTED)
wrong(
    "select",
    call([], []),
    call([b1[3]], [1, 2]),
    call([b1[3]], [f32[2]]),
    call([i32[3]], [f32[3]]),
    call(b1[3], 1),
)
PIECES = [
    call(f32[5], [b1[5]], [1, 2]),
    call(f32[5], [b1[5], b1[5]], [lambda x: -x, lambda x: x * 2, 0]),
    call(f32[2, 3], [b1[2, 3], b1[2, 3]], [3, lambda x: x * x]),
    call(i32[4], b1[1, 4], [lambda x: x + 1, 5]),
    call(f32[5], [b1[5]], [lambda x, k: x + k, lambda x, k: x - k], 3),
    call(f32[5], [b1[5]], [lambda x, k: x + k], k=2),
]
tried("piecewise", *PIECES)
wrong(
    "piecewise",
    call(f32[3], [b1[3]], []),
    call(f32[3], [b1[3]], [1, 2, 3]),
    call(f32[3], [], []),
    call([1], [b1[1]], [1]),
    call(f32[3], b1[2], [1]),
)
TAKEN_BY = [
    call(np.array([True, False, True]), f32[3]),
    call(np.array([0, 1]), f32[2, 3], axis=0),
    call(np.array([False, True]), f32[2, 3], axis=1),
    call(np.array([True, True, False, False, True]), f32[2, 3]),
]
tried("compress", *TAKEN_BY, concrete=True)
tried(
    "compress",
    call(b1[3], f32[3], size=2),
    call(b1[2], f32[2, 3], axis=0, size=2, fill_value=9),
    numpy=STATIC,
)
tried("extract", call(b1[2, 3], f32[2, 3]), call(f32[3], i32[3]), concrete=True)
tried(
    "extract", call(b1[3], f32[3], size=2), call(b1[3], f32[3], size=3, fill_value=-1), numpy=STATIC
)
wrong(
    "compress extract",
    call(b1[3], f32[3], size=4),
    call(b1[3], f32[3]),
    call("a", f32[3]),
    call([True], f32[1]),
    call(b1[3], f32[3], size=-1),
)
wrong(
    "compress",
    call(b1[2, 3], f32[2, 3], size=2),
    call(b1[2], f32[3], axis=1, size=1),
    call(b1[9], f32[2, 3], 1, size=1),
)
tried("count_nonzero", call(b1[2, 3], axis=(0, 1)))

# ---- by places -----------------------------------------------------------------------------------

INSIDE = np.array([[0, 2], [-1, 1]])
OUTSIDE = np.array([0, 5, -7])
TAKEN = [
    *each(KINDS, lambda t: call(t[2, 3], INSIDE, axis=1)),
    call(f32[2, 3], INSIDE),
    call(f32[2, 3], 1, axis=0),
    call(f32[2, 3], i32[4].between(0, 1), 0),
    call(f32[2, 3], u8[2].between(0, 2), axis=-1),
    *(call(f32[3], OUTSIDE, mode=mode) for mode in ("clip", "wrap")),
    call(f32[3], np.array([], int)),
    call(f32[3, 0], 0, axis=0),
]
tried("take", *TAKEN)
LAX = [
    call(f32[3], OUTSIDE),
    call(f32[3], OUTSIDE, mode="fill"),
    call(i8[3], OUTSIDE, mode="fill", fill_value=-1),
    call(c64[3], OUTSIDE, mode="fill"),
    call(b1[3], OUTSIDE, mode="fill"),
    call(f32[3], np.array([0, 1]), unique_indices=True, indices_are_sorted=True),
]
tried("take", *LAX, numpy="jax's modes")
wrong(
    "take",
    call(f32[3], f32[2]),
    call(f32[3], [0]),
    call(f32[3], 0, axis=1),
    call(f32[3], 0, mode="x"),
    call([1], 0),
    call(f32[0], 0),
)
wrong(
    "take",
    call(f32[3], 0, mode="raise"),
    call(f32[3], "a"),
    call(f32[3], b1[3]),
    call(f32[3], None),
    call(f32[3], 0, out=1),
)
ALONG = np.array([[0, 1, 0], [1, -1, 0]])
TAKEN_ALONG = [
    *each(KINDS, lambda t: call(t[2, 3], ALONG, axis=0)),
    call(f32[2, 3], i32[2, 1].between(0, 2), axis=1),
    call(f32[2, 3], np.array([0, 5]), axis=None),
    call(f32[2, 3], np.array([[0], [1]]), -1),
    call(f32[1, 3], i8[4, 3].between(0, 0), 0),
]
tried("take_along_axis", *TAKEN_ALONG)
LAX_ALONG = [
    call(f32[3], OUTSIDE, 0),
    call(f32[3], OUTSIDE, 0, "clip"),
    call(f32[3], OUTSIDE, 0, mode="fill", fill_value=9),
]
tried("take_along_axis", *LAX_ALONG, numpy="jax's modes")
tried("take_along_axis", call(i32[3], OUTSIDE, 0, mode="fill"), numpy="jax's modes")
wrong(
    "take_along_axis",
    call(f32[2, 3], i32[2], axis=0),
    call(f32[3], f32[3], 0),
    call(f32[3], [0], 0),
    call(f32[3], i32[1], 1),
)
wrong(
    "take_along_axis",
    call(f32[2, 3], i32[3, 3], axis=1),
    call(f32[3], i32[1], 0, mode="x"),
    call(f32[2, 3], i32[2, 2], None),
)


def written(name):
    """NumPy's function that writes, as one that gives the array written to."""

    def function(x, *args, inplace=False, **keywords):
        x = np.array(x)
        getattr(np, name)(x, *args, **keywords)
        return x

    return function


PUT = [
    *each(KINDS, lambda t: call(t[2, 3], np.array([0, 4]), t[2], inplace=False)),
    call(f32[2, 3], np.array([0, -1]), 9.0, inplace=False),
    call(f32[2, 3], np.array([1, 2, 3]), np.float32([1, 2]), inplace=False),
    *(
        call(f32[3], OUTSIDE[:2], np.float32([7, 8]), mode=mode, inplace=False)
        for mode in ("clip", "wrap")
    ),
    call(f32[3], np.array([], int), f32[0], inplace=False),
]
tried("put", *PUT, numpy=written("put"))
wrong(
    "put",
    call(f32[3], 0, 1),
    call(f32[3], f32[1], 1, inplace=False),
    call(f32[3], 0, 1, mode="x", inplace=False),
    call([1], 0, 1, inplace=False),
)
PUT_ALONG = [
    *each(KINDS, lambda t: call(t[2, 3], np.array([[0], [2]]), t[2, 1], 1, inplace=False)),
    call(f32[2, 3], ALONG[:1], 9.0, axis=0, inplace=False),
    call(f32[2, 3], np.array([1, 5]), f32[2], axis=None, inplace=False),
]
tried("put_along_axis", *PUT_ALONG, numpy=written("put_along_axis"))
wrong(
    "put_along_axis",
    call(f32[3], i32[1], 1, 0),
    call(f32[3], f32[1], 1, 0, inplace=False),
    call(f32[2, 3], i32[2], 1, 0, inplace=False),
)
PLACED = [
    call(f32[2, 3], np.array([[True, False, True], [False, True, False]]), f32[2], inplace=False),
    call(i8[3], b1[3], i8[3], inplace=False),
    call(f32[3], b1[3], f32[1], inplace=False),
]
tried("place", *PLACED, numpy=written("place"))
wrong(
    "place",
    call(f32[3], b1[3], 1.0),
    call(f32[3], b1[2], f32[1], inplace=False),
    call([1], [True], 1, inplace=False),
    call(f32[3], b1[3], f32[0], inplace=False),
)
FILLED = [
    *each(KINDS, lambda t: call(t[2, 3], t[()], inplace=False)),
    call(f32[4, 2], 7.0, inplace=False),
    call(f32[3, 3], f32[3], inplace=False),
    call(f32[2, 2, 2], 1, inplace=False),
    call(i8[2, 3], np.int8([1, 2]), inplace=False),
]
tried("fill_diagonal", *FILLED, numpy=written("fill_diagonal"))
wrong(
    "fill_diagonal",
    call(f32[5, 2], 7.0, wrap=True, inplace=False),
    call(f32[2, 2], 1),
    call(f32[3], 1, inplace=False),
    call(f32[2, 3, 2], 1, inplace=False),
    call([[1]], 1, inplace=False),
)

# ---- sorting and searching -----------------------------------------------------------------------

SORTED = [
    *each(ALL, lambda t: call(t[2, 3], axis=0)),
    call(f32[2, 1, 3]),
    call(f32[2, 3], axis=None),
    call(f32[0, 3]),
    call(ODD),
]
ONLY_JAX = [
    call(f32[5], descending=True),
    call(ODD, descending=True),
    call(i8[2, 3], axis=0, descending=True, stable=False),
]
tried("sort", *SORTED, special=True)
tried("sort argsort", *ONLY_JAX, numpy="descending is only jax's")
tried(
    "argsort",
    *SORTED,
    call(i8[9], stable=True),
    numpy=lambda x, axis=-1, stable=True, kind=None: np.argsort(x, axis, kind="stable"),
)
wrong(
    "sort argsort",
    call(f32[3], axis=1),
    call([2, 1]),
    call(f32[()]),
    call(f32[3], order="a"),
    call(f32[3], kind="heap"),
    call(f32[3], kind="stable", stable=False),
)
tried(
    "sort_complex",
    *each((b1, i8, f32, c64, f64), lambda t: call(t[2, 3])),
    call(np.complex64([1 + 1j, 1 - 1j])),
)
wrong("sort_complex", call([1]), call("a"), call(2.0))
KEYS = [
    call((f32[3], i8[3])),
    call([i8[5].between(0, 1), i8[5].between(0, 1)]),
    call(f32[2, 3]),
    call((i8[2, 3], f32[2, 3]), axis=0),
    call((f32[0],)),
]
tried("lexsort", *KEYS)
wrong(
    "lexsort",
    call(()),
    call((f32[2], f32[3])),
    call((f32[3],), axis=1),
    call(3),
    call("a"),
    call(f32[()]),
)
PARTED = [
    *each(REALS, lambda t: call(t[5], 2)),
    call(f32[2, 5], 1, axis=0),
    call(f32[2, 5], -2),
    call(f32[3, 1, 4], 0, 1),
]
ORDER = "what is on either side is in any order"
tried("partition argpartition", *PARTED, numpy=ORDER, unlike_jax=ORDER)
wrong(
    "partition argpartition",
    call(f32[3], 5),
    call([1, 2], 0),
    call(f32[3], 1.5),
    call(f32[3], 1, axis=1),
    call(f32[3], i32[2]),
)
EDGES = np.float32([-2, -0.5, 0.5, 1, 1])
FOUND = [
    *each(
        (i8, f16, bf16, f32, f64),
        lambda t: call(EDGES.astype(t.dtype) if t is not f64 else EDGES, t[2, 3]),
    ),
    *(call(EDGES, f32[5], side=side) for side in ("left", "right")),
    call(EDGES, 1.0, "right"),
    call(np.float32([1, -1, 0.5]), f32[4], sorter=np.array([1, 2, 0])),
    call(np.array([-2, 0, 3], np.int8), f32[3]),
    call(f32[0], f32[3]),
    call(EDGES, f32[0]),
    call(np.float32([0, np.inf, np.nan]), ODD),
]
tried("searchsorted", *FOUND, narrow=True)
METHODS = ("scan", "scan_unrolled", "sort", "compare_all")
tried(
    "searchsorted",
    *(call(EDGES, f32[5], method=method) for method in METHODS),
    numpy="methods are jax's",
)
wrong(
    "searchsorted",
    call(f32[2, 2], 1.0),
    call(f32[3], 1.0, side="x"),
    call(f32[3], 1.0, method="x"),
    call([1], 1),
    call(f32[3], "a"),
)

# ---- sets ----------------------------------------------------------------------------------------

FEW = np.array([3, 1, 3, 2, 1, 1])
FEW_FLOATS = np.float32([2, 2, -1, 0, 2])
UNIQUE = [
    *each((b1, bf16, c64), lambda t: call(t[2, 3])),
    call(FEW, True, True, True),
    call(np.array([[1, 2], [1, 2], [0, 2]]), axis=0, return_index=True, return_inverse=True),
    call(ODD),
    call(ODD, equal_nan=False),
    call(f32[0]),
]
tried("unique", *UNIQUE, concrete=True)
SET_SIZES = [
    call(i8[6].between(0, 2), size=4),
    call(FEW, True, True, True, size=2),
    call(FEW_FLOATS, size=5, fill_value=9, return_inverse=True),
    call(np.array([[1, 2], [1, 2], [0, 2]]), axis=0, size=3),
]
tried("unique", *SET_SIZES, numpy=STATIC)
tried(
    "unique_all unique_counts unique_inverse",
    call(FEW_FLOATS),
    concrete=True,
)
tried("unique_values", call(FEW), call(f32[2, 2]), concrete=True, numpy=np.unique)
tried(
    "unique_all unique_counts unique_inverse unique_values",
    call(i8[6].between(0, 2), size=4),
    call(FEW, size=5, fill_value=7),
    numpy=STATIC,
)
wrong(
    "unique",
    call(i32[3]),
    call([1, 2]),
    call("a"),
    call(i32[3], axis=1, size=2),
    call(i32[3], size=-1),
    call(i32[3], size="a"),
)
wrong(
    "unique_all unique_counts unique_inverse unique_values",
    call(i32[3]),
    call([1]),
    call(i32[3], size=-1),
)
OTHERS = np.array([2, 3, 5])
PAIRS = [call(FEW, OTHERS), call(i8[2, 2], f32[0])]
tried("intersect1d union1d setdiff1d setxor1d", *PAIRS, concrete=True)
ASSUMED = [call(np.array([1, 4, 2]), np.array([2, 7]), assume_unique=True)]
tried("intersect1d setdiff1d setxor1d", *ASSUMED, concrete=True)
tried("intersect1d", call(FEW, OTHERS, return_indices=True), concrete=True)
STATIC_SETS = [
    call(i8[5].between(0, 3), i8[4].between(0, 3), size=3),
    call(FEW, OTHERS, size=6, fill_value=-1),
]
tried("intersect1d union1d setdiff1d setxor1d", *STATIC_SETS, numpy=STATIC)
tried("intersect1d", call(FEW, OTHERS, return_indices=True, size=4), numpy=STATIC)
wrong(
    "intersect1d union1d setdiff1d setxor1d",
    call(i32[3], i32[2]),
    call([1], i32[2]),
    call("a", i32[2]),
    call(i32[3], i32[2], size=-1),
)
CONTAINED = [
    *each((b1, i8, u8, bf16, f16, f32, c64, f64), lambda t: call(t[2, 3], t[3])),
    call(FEW, OTHERS),
    call(FEW, OTHERS, invert=True),
    call(FEW, 3),
    call(2, FEW),
    call(f32[0], f32[3]),
    call(i8[3], f32[0]),
    call(ODD, ODD),
]
tried("isin", *CONTAINED)
METHODS_IN = ("auto", "compare_all", "binary_search", "sort")
tried(
    "isin", *(call(FEW, OTHERS, method=method) for method in METHODS_IN), numpy="methods are jax's"
)
wrong("isin", call([1], FEW), call("a", FEW), call(FEW, OTHERS, method="x"), call(None, FEW))
