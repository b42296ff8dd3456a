"""Sums and their kin, moments, NaN-proof ones, cumulative ones, statistics, quantiles."""

import numpy as np

from tests.numpy.catalogue import ALL, NUMBERS, ODD, REALS, alias, but, call, each, tried, wrong
from tests.support.cases import b1, bf16, c64, f16, f32, f64, i8, i32, i64, u8

MASK = np.array([True, False, True])
NANS = np.float32([[np.nan, 1, 2], [np.nan, 3, -1]])
NOTHING = np.full((2, 3), np.nan, np.float32)


def reduced(makers, axis_tuple=True, keepdims=True):
    return [
        *each(makers, lambda t: call(t[2, 3], axis=0)),
        *(call(f32[2, 1, 3], axis=axis) for axis in (None, -1, 1)),
        *([call(f32[2, 1, 3], (0, -1)), call(f32[2, 3], axis=())] if axis_tuple else []),
        *([call(f32[2, 3], axis=1, keepdims=True), call(f32[2, 3], keepdims=True)] * keepdims),
        call(f32[()]),
        call(2),
        call(2.5),
    ]


EMPTY = [call(f32[0, 3], axis=0), call(f32[0]), call(f32[2, 0], axis=1)]
ODD_ONES = [call(ODD), call(NANS, axis=0), call(NANS, axis=1)]
DTYPES = [call(i32[2, 3], dtype=np.float32), call(f32[3], dtype=np.float16), call(b1[3], dtype=int)]

# ---- sums, extremes, truth -----------------------------------------------------------------------

SUMS = [
    *reduced(ALL),
    *EMPTY,
    *ODD_ONES,
    *DTYPES,
    call(f32[2, 3], axis=1, where=MASK),
    call(f32[2, 3], where=b1[2, 3]),
    call(i8[2, 3], where=b1[3], initial=2),
    call(f32[2, 3], axis=0, initial=1.5),
    call(f32[0, 3], initial=3.0),
]
tried("sum prod", *SUMS, ulps=90)
tried("sum prod", call(i8[3], promote_integers=False), numpy="only jax's")
wrong("sum prod max mean any", call(f32[3], out=1), call(f32[3], axis=2))
wrong("sum max any", call([1, 2, 3]), call("a"), call(None), call(f32[3], where=np.ones(2, bool)))
wrong("sum", call(f32[3], where=f32[3]), call(f32[3], initial=f32[3]), call(f32[3], dtype="q9"))
EXTREMES = [
    *reduced(ALL),
    *ODD_ONES,
    call(f32[2, 3], axis=1, where=MASK, initial=-1.0),
    call(f32[2, 3], where=b1[2, 3], initial=0),
    call(i8[2, 3], axis=0, initial=2),
    call(f32[0, 3], initial=3.0),
    call(f32[0, 3], axis=1),
    call(f32[2, 0], axis=0),
]
tried("max min", *EXTREMES, special=True)
alias(amax="max", amin="min")
wrong("max min ptp", call(f32[0]), call(f32[0, 3], axis=0))
wrong("max min", call(f32[3], where=MASK), call(f32[3], initial=f32[3]))
tried("ptp", *reduced(NUMBERS), call(NANS, axis=1))
wrong("ptp", call(b1[3]))
TRUTH = [*reduced(ALL), *EMPTY, *ODD_ONES, call(f32[2, 3], axis=1, where=MASK)]
tried("all any", *TRUTH)
COUNTED = [
    *each(ALL, lambda t: call(t[2, 3], axis=0)),
    call(f32[2, 1, 3]),
    call(f32[2, 1, 3], axis=(0, -1), keepdims=True),
    call(f32[0, 3], axis=0),
    call(3),
    call(ODD),
]
tried("count_nonzero", *COUNTED)
WHERE_EXTREME = [
    *each((b1, *REALS), lambda t: call(t[2, 3], axis=0)),
    call(f32[2, 3]),
    call(f32[2, 1, 3], axis=-1),
    call(f32[2, 3], axis=1, keepdims=True),
    call(f32[2, 3], keepdims=True),
    call(f32[()]),
    call(3),
    call(ODD),
    call(NANS, axis=1),
    call(i32[2, 0, 3], axis=0),
]
tried("argmax argmin", *WHERE_EXTREME, special=True)
wrong("argmax argmin", call(f32[0]), call(f32[0, 3], axis=0), call(f32[3], axis=1))
wrong("argmax argmin", call(f32[3], out=1), call(f32[2, 3], axis=(0, 1)))

# ---- moments -------------------------------------------------------------------------------------

MEANS = [
    *reduced(ALL),
    *EMPTY,
    *ODD_ONES,
    *DTYPES[:2],
    call(f32[2, 3], axis=1, where=MASK),
    call(f32[2, 3], where=b1[2, 3]),
]
tried("mean", *MEANS)
SPREADS = [
    *MEANS,
    call(f32[2, 3], ddof=1),
    call(f32[2, 3], axis=1, correction=1),
    call(f32[2, 3], axis=1, mean=f32[2, 1]),
]
tried("var std", *SPREADS, ulps=200)
wrong(
    "var std", call(f32[3], ddof=1, correction=2), call(f32[3], dtype=np.int32), call(f32[3], out=1)
)
wrong("mean", call(f32[3], dtype="q"), call([1.0, 2.0]))
AVERAGED = [
    *each((b1, i8, bf16, f16, f32, c64, f64), lambda t: call(t[2, 3], axis=0)),
    call(f32[2, 3], weights=f32[2, 3].between(1, 2)),
    call(f32[2, 3], axis=1, weights=f32[3].between(1, 2)),
    call(f32[2, 3], axis=0, weights=i32[2].between(1, 3), keepdims=True),
    call(f32[2, 3], axis=0, weights=f32[2].between(1, 2), returned=True),
    call(f32[2, 3], returned=True),
    call(f32[2, 1, 3], axis=(0, 2)),
    call(i32[3], weights=i32[3].between(1, 3)),
    call(2.0),
]
tried("average", *AVERAGED)
wrong("average", call(f32[2, 3], weights=f32[3]), call(f32[2, 3], 0, weights=f32[3]))
wrong(
    "average", call(f32[2, 3], 0, weights=f32[2, 1]), call([1, 2]), call(f32[3], weights=[1, 2, 3])
)

# ---- as if NaN were not there --------------------------------------------------------------------

NAN_SUMS = [
    *each((b1, i8, u8, bf16, f16, f32, c64, f64), lambda t: call(t[2, 3], axis=0)),
    call(NANS),
    call(NANS, axis=0),
    call(NANS, axis=(0, 1), keepdims=True),
    call(NANS * 1j, axis=1),
    call(NOTHING, axis=0),
    call(f32[0, 3], axis=0),
    call(2.0),
]
WITH_INITIAL = [call(NANS, axis=1, where=MASK, initial=1.0), call(NANS, initial=2)]
tried("nansum nanprod", *NAN_SUMS, *WITH_INITIAL, call(NANS, dtype=np.float16), special=True)
tried("nanmax nanmin", *NAN_SUMS[:-2], *WITH_INITIAL, call(2.0), special=True)
tried("nanmean", *NAN_SUMS, call(NANS, axis=1, where=MASK))
NAN_SPREADS = [*NAN_SUMS, call(NANS, ddof=1), call(NANS, axis=1, where=MASK)]
tried("nanvar nanstd", *NAN_SPREADS, ulps=200)
tried("nanvar nanstd", call(NANS, axis=1, mean=np.float32([[1], [2]])))
NAN_WHERE = [*NAN_SUMS[:4], call(f32[2, 3], axis=1), call(NANS), call(NANS, axis=1, keepdims=True)]
tried("nanargmax nanargmin", *NAN_WHERE)
tried("nanargmax nanargmin", call(NOTHING, axis=0), call(NANS, axis=0), numpy="NumPy raises")
wrong("nanargmax nanmax", call(f32[0]), call(f32[3], axis=1), call("a"), call([1, 2]))

# ---- cumulative ----------------------------------------------------------------------------------

RUNNING = [
    *each(ALL, lambda t: call(t[2, 3], axis=0)),
    *(call(f32[2, 1, 3], axis=axis) for axis in (-1, 1)),
    call(f32[2, 3]),
    call(f32[0, 3], axis=0),
    call(i8[3], dtype=np.float32),
    call(f32[3], dtype=np.float16),
    call(f32[()]),
    call(3),
    call(NANS, axis=1),
]
tried("cumsum cumprod nancumsum nancumprod", *RUNNING, special=True)
CUMULATIVE = [but(one, keywords={"axis": 0, **one.keywords}) for one in RUNNING[1:-3:2]]
INITIAL = [call(f32[2, 3], axis=1, include_initial=True), call(i8[3], include_initial=True)]
tried("cumulative_sum cumulative_prod", *CUMULATIVE, *INITIAL)
wrong("cumulative_sum cumulative_prod", call(f32[2, 3]), call(f32[()]), call(f32[3], axis=1))
wrong("cumsum cumprod", call(f32[3], axis=1), call(f32[3], out=1), call([1, 2]), call(f32[3], (0,)))

# ---- statistics ----------------------------------------------------------------------------------

COVARIANCES = [
    *each((i8, f16, f32, c64, f64), lambda t: call(t[2, 5])),
    call(f32[5]),
    call(f32[5], f32[5]),
    call(f32[2, 5], f32[1, 5]),
    call(f32[5, 2], rowvar=False),
    call(f32[5, 2], f32[5, 1], False),
]
tried("cov corrcoef", *COVARIANCES, ulps=300, fragile=True)
COV = [
    call(f32[2, 5], bias=True),
    call(f32[2, 5], ddof=0),
    call(f32[2, 5], fweights=i32[5].between(1, 3)),
    call(f32[2, 5], aweights=f32[5].between(1, 3)),
    call(f32[2, 5], fweights=np.int32([1, 2, 1, 1, 3]), aweights=f32[5].between(1, 2)),
    call(f32[2, 5], dtype=np.float16),
]
tried("cov", *COV, ulps=300)
tried("corrcoef", call(f32[2, 5], dtype=np.float32), ulps=300, fragile=True)
wrong("cov", call(f32[2, 2, 2]), call(f32[2, 5], ddof=0.5), call(f32[2, 5], fweights=f32[5]))
wrong("cov", call(f32[2, 5], aweights=f32[4]), call(f32[2, 5], aweights=f32[5, 1]), call("a"))
BINNED = [
    call(i32[7].between(0, 4), length=5),
    call(u8[7].between(0, 4), f32[7], length=6),
    call(i32[7].between(0, 4), minlength=3, length=5),
    call(i32[0], length=2),
]


def counted(x, weights=None, minlength=0, length=None):
    if weights is not None and not len(weights):
        weights = None
    return np.bincount(x.astype(int), weights, max(minlength, length or 0))


tried("bincount", *BINNED, numpy=counted)
EAGER = [call(i32[7].between(0, 4)), call(i32[7].between(0, 4), minlength=9)]
tried("bincount", call(b1[5], length=2), numpy="of integers alone")
tried("bincount", *EAGER, numpy=counted, concrete=True)
tried("bincount", call(np.int32([-1, 7, 2]), length=4), numpy="NumPy refuses negative ones")
wrong("bincount", call(f32[3]), call(i32[2, 2]), call(i32[3]), call(i32[3], length=-1))
DIGITS = [
    *each((i8, f16, bf16, f32, f64), lambda t: call(t[2, 3], np.array([-1, 0, 2]))),
    call(f32[5], np.float32([2, 1, -1])),
    call(f32[5], np.float32([-1, 1]), right=True),
    call(i32[5], np.int32([2, 1, -1]), True),
    call(f32[()], np.float32([0])),
    call(f32[0], np.float32([0, 1])),
    call(0.5, np.float32([0, 1])),
]
tried("digitize", *DIGITS, narrow=True, fragile=True)
tried("digitize", call(f32[5], np.float32([0, 1]), method="sort"), numpy="no methods")
wrong(
    "digitize", call(f32[3], f32[2, 2]), call(c64[3], f32[3]), call(f32[3], 1.0), call("a", f32[3])
)

# ---- quantiles -----------------------------------------------------------------------------------

MEDIANS = [
    *each((b1, i8, u8, bf16, f16, f32, f64), lambda t: call(t[2, 3], axis=1)),
    *(call(f32[2, 1, 3], axis=axis) for axis in (None, 0, -1, (0, 2))),
    call(f32[2, 3], axis=1, keepdims=True),
    call(f32[4]),
    call(NANS, axis=1),
    call(f32[()]),
]
tried("median nanmedian", *MEDIANS[1:], not_smooth=None)
tried("median", MEDIANS[0], numpy="NumPy refuses booleans")
METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def quantiles(q, several, makers=(f32, i8)):
    return [
        *each(makers, lambda t: call(t[2, 3], q, axis=1)),
        *(call(f32[2, 1, 3], several, axis=axis) for axis in (None, 0, -1, (0, 2))),
        call(f32[2, 3], q, axis=1, keepdims=True),
        call(f32[2, 3], several, axis=0, keepdims=True),
        *(call(f32[7], q, method=method) for method in METHODS),
        call(NANS, q, axis=1),
        call(i64[4], several.astype(np.float64)),
    ]


WHOLE = (np.float32([0, 25, 60, 100]), np.float32([0, 0.25, 0.6, 1]))
for prefix in ("", "nan"):
    tried(f"{prefix}percentile", *quantiles(30, WHOLE[0])[::3])
    tried(f"{prefix}quantile", *quantiles(0.3, WHOLE[1])[len(prefix) and 2 :])
tried("quantile", *quantiles(0.3, WHOLE[1], (u8, f16, bf16, f64))[:4])
WEIGHTED = [
    call(f32[4], 0.4, weights=f32[4].between(1, 2), method="inverted_cdf"),
    call(f32[2, 4], WHOLE[1], axis=1, weights=f32[4].between(1, 2), method="inverted_cdf"),
]
tried("quantile nanquantile", WEIGHTED[0])
tried("quantile nanquantile", WEIGHTED[1], numpy="NumPy 2.4 is wrong here")
wrong("quantile percentile", call(c64[3], 0.5), call(f32[3], 0.5, method="x"), call(f32[3], "a"))
wrong("quantile nanpercentile", call(f32[5], f32[4, 1]))
wrong("quantile", call(f32[3], 0.5, axis=1), call(f32[3], 0.5, weights=f32[3]), call([1.0], 0.5))
wrong("median nanmedian", call(c64[3]), call(f32[3], axis=2), call(f32[3], out=1))

# ---- histograms ----------------------------------------------------------------------------------

EDGES = np.float32([-3, -1, 0, 3])
HISTOGRAMS = [
    call(f32[9]),
    call(f32[9], 4),
    call(f32[9], bins=EDGES),
    call(f32[2, 5], 3, range=(-2, 2)),
    call(f32[9], 3, weights=f32[9]),
]
tried("histogram", *HISTOGRAMS, narrow=True, fragile=True, other_kind=True)
DENSITIES = [
    call(f32[9], 4, density=True),
    call(f32[9], 4, weights=f32[9].between(1, 2), density=True),
]
tried("histogram", *DENSITIES, narrow=True, fragile=True, ulps=500)
tried("histogram_bin_edges", *HISTOGRAMS, narrow=True, fragile=True)
wrong("histogram histogram_bin_edges", call(f32[0], 3))
PLANES = [
    call(f32[9], f32[9], 3),
    call(f32[9], f32[9], [2, 3]),
    call(f32[9], f32[9], [EDGES, EDGES]),
    call(f32[9], f32[9], 3, range=[[-3, 3], [-2, 2]], weights=f32[9]),
    call(f32[9], f32[9], bins=2, density=True),
    call(f32[9], f32[9], EDGES),
]
tried("histogram2d", *PLANES, narrow=True, fragile=True, ulps=500, other_kind=True)
SPACES = [
    call(f32[9, 2], 3),
    call(f32[9, 3], (2, 3, 1)),
    call(f32[9, 2], [EDGES, EDGES]),
    call(f32[9, 2], 2, range=[(-3, 3), None], density=True),
    call(f32[9, 2], 2, weights=f32[9]),
]
tried("histogramdd", *SPACES, narrow=True, fragile=True, ulps=500, other_kind=True)
wrong(
    "histogram",
    call(f32[3], bins="auto"),
    call(f32[3], 2, range=(1,)),
    call(f32[3], weights=f32[2]),
)
wrong("histogram2d", call(f32[3], f32[4]), call(f32[3], f32[3], [1, 2, 3]), call(c64[3], c64[3]))
wrong(
    "histogramdd",
    call([f32[9], f32[9]]),
    call(f32[9, 2], [2]),
    call(f32[9, 2], 2, weights=f32[8]),
    call("a"),
)
