"""Where special functions are held against the truth: their whole range, by function and dtype.

Imported by both sides: NumPy alone.
"""

import decimal
import functools
import itertools
from collections.abc import Callable, Sequence

import ml_dtypes
import numpy as np

INF, NAN = np.inf, np.nan
WIDE = ("float64", "float32")
ALL = ("float64", "float32", "float16", "bfloat16")


def dtype_of(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


def _cast(values: Sequence[float], dtype: str) -> np.ndarray:
    """The values that the dtype has, each once, in order."""
    with np.errstate(over="ignore", under="ignore"):
        cast = np.asarray(values, np.float64).astype(dtype_of(dtype)).astype(np.float64)
    cast = cast[np.isfinite(cast) | ~np.isfinite(np.asarray(values))]
    # Which of the two zeros is the first depends on how the processor sorts.
    cast[cast == 0] = 0.0
    return np.unique(cast) if not np.isnan(cast).any() else np.append(np.unique(cast)[:-1], NAN)


def _decades(dtype: str, low: float, high: float, each: float) -> np.ndarray:
    """From 10**low to 10**high, as many in each decade; cut to what the dtype has."""
    limits = ml_dtypes.finfo(dtype_of(dtype))
    least, most = _log10(float(limits.tiny)), _log10(float(limits.max)) - 1e-3
    low, high = max(low, least), min(high, most)
    count = max(2, round((high - low) * each))
    return np.array([_power_of_10(x) for x in np.linspace(low, high, count).tolist()])


# NumPy's powers and logarithms differ in the last bit between processors. These are the nearest
# floats, so that the points are the same everywhere.
_EXACT = decimal.Context(prec=40)


def _log10(x: float) -> float:
    return float(_EXACT.log10(decimal.Decimal(x)))


@functools.cache
def _power_of_10(x: float) -> float:
    return float(_EXACT.power(decimal.Decimal(10), decimal.Decimal(x)))


def _edges(dtype: str) -> np.ndarray:
    limits = ml_dtypes.finfo(dtype_of(dtype))
    tiny, most = float(limits.tiny), float(limits.max)
    eps = float(limits.eps)
    positive = [0.0, tiny, most, INF, 1, 1 + eps, 1 - eps / 2, eps, eps / 2]
    return np.array([NAN, *positive, *(-x for x in positive)])


def positive(dtype: str) -> np.ndarray:
    """Zero and more."""
    near = (-6, 4, 12) if dtype in WIDE else (-3, 3, 8)
    whole = np.arange(0, 31) if dtype in WIDE else np.arange(0, 12)
    parts = [
        _decades(dtype, *near),
        _decades(dtype, -308, 308, 0.15 if dtype == "float64" else 0.6),
        whole,
        whole + 0.5,
        np.linspace(0.02, 12, 90 if dtype in WIDE else 30),
    ]
    if dtype in WIDE:
        # Near whole numbers, from both sides.
        steps = [1e-2, 1e-4, 1e-6]
        parts += ([k + sign * step for k in (1.0, 2.0, 3.0) for step in steps for sign in (1, -1)],)
        parts += [[33.0, 34.9, 35.1, 88, 100, 140.5, 170.5, 171.6, 172, 700, 709, 710, 745]]
    return np.concatenate([np.ravel(x) for x in parts])


def real(dtype: str) -> np.ndarray:
    size = positive(dtype)
    return np.concatenate([size, -size, _edges(dtype)])


def unit(dtype: str) -> np.ndarray:
    """Probabilities, and a few that are none."""
    small = np.concatenate([_decades(dtype, -308, -0.5, 1.5), np.linspace(0.01, 0.5, 60)])
    eps = float(ml_dtypes.finfo(dtype_of(dtype)).eps)
    edges = [0, 1, -0.1, 1.5, NAN, INF, 0.425, 0.075, 0.5 + eps, eps, 0.5]
    return np.concatenate([small, 1 - small, 1 - _decades(dtype, -14, -1, 3), edges])


def signed_unit(dtype: str) -> np.ndarray:
    values = unit(dtype)
    near_one = 1 - _decades(dtype, -15, -1, 4)
    return np.concatenate([values, -values, near_one, -near_one])


Grid = Callable[[str], tuple[np.ndarray, ...]]


def one(points: Callable[[str], np.ndarray]) -> Grid:
    return lambda dtype: (_cast(points(dtype), dtype),)


def product(*axes: Sequence[float], whole: Sequence[int] = (), most: int = 900) -> Grid:
    """All combinations, or as many of them as this, chosen once."""

    def points(dtype):
        cast = [_cast(axis, dtype) for axis in axes]
        rows = np.array(list(itertools.product(*cast)))
        limit = most if dtype in WIDE else most // 4
        if len(rows) > limit:
            keep = np.random.default_rng(0).choice(len(rows), limit, replace=False)
            rows = rows[np.sort(keep)]
        return tuple(rows.T)

    return points


def _plus_minus(values: Sequence[float]) -> list[float]:
    return [*values, *(-x for x in values)]


SIZES = [1e-30, 1e-8, 1e-3, 0.1, 0.5, 0.9, 1, 1.5, 2, 3.7, 9.9, 15, 50, 171, 1e3, 1e5, 1e9, 1e20]
EDGE = [0, INF, NAN]


def _beside(dtype):
    """Of incomplete gamma functions: a, and x near a as well as far."""
    a = [1e-30, 1e-8, 1e-3, 0.1, 0.5, 0.9, 1, 1.5, 2, 5, 9.9, 10.1, 20, 50, 99, 101]
    a += [200, 499, 501, 1e3, 1e4, 1e5]
    share = [1e-3, 0.1, 0.5, 0.69, 0.71, 0.9, 0.99, 1, 1.01, 1.1, 1.29, 1.31, 1.5, 2, 3]
    x = [0, 1e-30, 1e-8, 1e-3, 0.1, 0.5, 0.9, 1, 1.1, 2, 5, 10, 30, 100, 700, INF, NAN]
    pairs = [(p, p * q) for p in a for q in share] + list(
        itertools.product([*a, 0, INF, NAN, -1], x)
    )
    rows = _unique_rows(pairs, dtype)
    return tuple(rows.T)


def _unique_rows(rows, dtype):
    with np.errstate(over="ignore", under="ignore"):
        found = np.asarray(rows, np.float64).astype(dtype_of(dtype)).astype(np.float64)
    found = np.unique(found, axis=0, equal_nan=True)
    return found if dtype in WIDE else found[::3]


BETA = [1e-8, 1e-3, 0.1, 0.5, 1, 1.5, 2, 5, 20, 99, 300, 1500, 2500, 3e4]
FRACTION = [0, 1e-30, 1e-8, 1e-3, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999, 1 - 1e-6, 1, NAN, 1.5, -0.1]


def _of_beta(dtype):
    rows = list(itertools.product(BETA, BETA, FRACTION))
    # Near the mean, where all of the change is.
    for a, b in itertools.product(BETA[2:], BETA[2:]):
        mean, spread = a / (a + b), np.sqrt(a * b / (a + b + 1)) / (a + b)
        rows += [(a, b, x) for k in (-6, -3, -1, 0, 1, 3, 6) if 0 < (x := mean + k * spread) < 1]
    rows = _unique_rows(rows, dtype)
    keep = np.random.default_rng(1).choice(len(rows), 1200 if dtype in WIDE else 200, replace=False)
    edges = itertools.product([0, 1, INF, -1, NAN], [0, 2, INF, -1], [0, 0.3, 1])
    return tuple(np.concatenate([rows[np.sort(keep)], _unique_rows(list(edges), dtype)]).T)


def _complex(dtype):
    rng = np.random.default_rng(2)
    size = 10 ** rng.uniform(-2, 1.3, 300)
    angle = np.exp(2j * np.pi * rng.uniform(0, 1, 300))
    # NumPy's last bits differ between processors, and these have none of them.
    return ((size * angle).astype(np.complex64).astype(np.complex128),)


def _rows_of_numbers(dtype):
    rng = np.random.default_rng(3)
    rows = [rng.normal(0, s, 6) for s in (1e-3, 1, 30, 400) for _ in range(10)]
    rows += [[INF, 1, 2, 3, 4, 5], [-INF] * 6, [-INF, 1, 2, 0, -INF, 3], [NAN, 1, 2, 3, 4, 5]]
    rows += [
        [1e4, 1e4 + 1, 0, -1e4, 3, 2],
        [0.0] * 6,
        [1e30, 1, 2, 3, 4, 5],
        [INF, -INF, 0, 0, 0, 0],
    ]
    return (np.asarray(rows).astype(dtype_of(dtype)).astype(np.float64),)


# Parameters of distributions; and where they are looked at.
PLACES = _plus_minus(
    [0, 1e-8, 1e-3, 0.1, 0.5, 0.9, 1, 1.5, 2, 3, 5, 8, 13, 20, 37, 40, 100, 1e3, 1e6]
)
PLACES += [1e20, INF, -INF, NAN]
ABOVE = [x for x in PLACES if x > 0] + [0, -1, NAN]
SHAPES = [1e-3, 0.1, 0.5, 1, 1.5, 2, 5, 20, 99, 300, 3e3]
COUNTS = [0, 1, 2, 3, 5, 10, 30, 99, 300, 1000, 5000]
CHANCES = [1e-20, 1e-6, 1e-3, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999, 1 - 1e-6]

# Path of the function -> where it is tried, and in which dtypes.
POINTS: dict[str, tuple[Grid, tuple[str, ...]]] = {}


def _add(names: str, grid: Grid, dtypes: tuple[str, ...] = ALL) -> None:
    for name in names.split():
        POINTS[name] = (grid, dtypes)


_add("dawsn digamma entr erf erfc erfcx expit gamma gammaln gammasgn i0 i0e i1 i1e", one(real))
_add("exp1 expi factorial loggamma sici.0 sici.1 fresnel.0 fresnel.1", one(real))
_add("ndtr log_ndtr", one(real), WIDE)
_add("spence", one(positive), WIDE)
_add("logit", one(unit))
_add("ndtri", one(unit), WIDE)
_add("erfinv", one(signed_unit))
_add("multigammaln3", one(lambda dtype: positive(dtype) + 1.01))
_add("bessel_jn4", one(lambda dtype: np.linspace(-30, 30, 181)), WIDE)
_add("beta betaln", product(*[[*SIZES, -0.5, -1.5, -2.3, -10.7, -1, -2, -5, *EDGE]] * 2))
_add("boxcox", product([*SIZES, *EDGE, -1], [*_plus_minus([*SIZES[:-2], 0.999]), *EDGE]))
_add("boxcox1p", product([*SIZES, *EDGE, -0.3, -1e-9, -1, -2], [*_plus_minus(SIZES[:-2]), *EDGE]))
_add(
    "comb", product([*COUNTS, 7.5, 0.3, -1, 1e6, 1e12, NAN], [0, 1, 2, 3, 5, 11, 60, 500, 2.5, -1])
)
_add("expn", product([0, 1, 2, 3, 5, 10, 50, 200, 5000], [*SIZES[:-2], *EDGE, 0.99, 1.01, 5, -1]))
_add("gammainc gammaincc lax.igamma_grad_a", _beside)
_add("lax.random_gamma_grad", _beside)
_add("kl_div rel_entr", product([*SIZES, 0.5001, 1.7e308, *EDGE, -1], [*SIZES, *EDGE, 2e-308, -1]))
_add("xlogy", product([*_plus_minus(SIZES), *EDGE], [*SIZES, 0.999, 1.001, -1, *EDGE]))
_add("xlog1py", product([*_plus_minus(SIZES), *EDGE], [*SIZES, -0.5, -1, -2, -1e-9, *EDGE]))
_add("owens_t", product([*_plus_minus(SIZES[:-3]), *EDGE], [*_plus_minus(SIZES[:-2]), *EDGE]))
_add(
    "poch",
    product(
        [*SIZES[:-3], -0.5, -2.3, -1, -2, -5, 0], [0, 1, 2, 3, 7, 0.5, 1e-3, 2.5, -1, -2.5, 30]
    ),
)
_add("polygamma", product([0, 1, 2, 3, 5, 10, 20], [*SIZES, -0.5, -1.3, -1, 0, INF, NAN, 7.5]))
_add(
    "zeta",
    product(
        [1, 1.0001, 1.01, 1.5, 2, 3, 4.5, 7, 12, 30, 60, 0.5, INF, NAN],
        [*SIZES, -0.5, -1.5, -2, *EDGE],
    ),
)
_add("betainc", _of_beta)
_HYPER = [-20.3, -5, -2.5, -1, 0.1, 0.5, 1, 1.5, 2, 3.7, 10, 30]
_add(
    "hyp1f1",
    product(
        [*_HYPER, 100],
        [-2.5, -1, *_HYPER[4:], 100],
        _plus_minus([0, 1e-8, 0.1, 0.9, 2, 7, 12, 30, 49, 60, 99, 101, 300]),
    ),
    WIDE,
)
_add(
    "hyp2f1",
    product(
        _HYPER[1:-1],
        _HYPER[2:],
        [-2.5, -1, *_HYPER[4:]],
        [-50, -3, -1, -0.9, -0.3, 0, 1e-6, 0.2, 0.5, 0.85, 0.95, 0.999, 1],
        most=2500,
    ),
    WIDE,
)
_add("wofz complex_loggamma complex_gamma complex_erfcx", _complex, WIDE)
_add("logsumexp softmax log_softmax", _rows_of_numbers)
_DEGREES = ([0, 1, 2, 3, 5, 9, 15], [0, 1, -1, 2, -3, 8], [0, 1e-3, 0.5, 1.5, 3, np.pi], [0, 1, -2])
_add("sph_harm_y15", product(*_DEGREES), WIDE)

_LOCATION = "pdf logpdf cdf logcdf sf logsf"
for _names, _grid in (
    (f"norm: {_LOCATION}; cauchy: {_LOCATION}; logistic: pdf logpdf cdf sf", product(PLACES)),
    (f"gumbel_l: {_LOCATION}; gumbel_r: {_LOCATION}; laplace: pdf logpdf cdf", product(PLACES)),
    (f"expon: {_LOCATION}", product(PLACES)),
    ("norm: ppf isf; cauchy: ppf isf; logistic: ppf isf", one(unit)),
    ("gumbel_l: ppf; gumbel_r: ppf; expon: ppf", one(unit)),
    ("t: pdf logpdf", product(PLACES, [*SHAPES, 1e6])),
    (f"gamma: {_LOCATION}; chi2: {_LOCATION}", product(ABOVE, SHAPES, most=400)),
    (f"beta: {_LOCATION}", product(FRACTION, SHAPES, SHAPES, most=600)),
    (f"pareto: {_LOCATION}", product([*ABOVE, 1.000001, 1.01], SHAPES)),
    ("pareto: ppf", product([*CHANCES, 0, 1, 2], SHAPES)),
    ("gennorm: pdf logpdf cdf", product(PLACES, [0.3, 0.5, 1, 1.5, 2, 5])),
    ("vonmises: pdf logpdf", product([0, 1e-4, 0.1, 1, 3, -2], [1e-3, 1, 10, 1e3, 1e6])),
    (
        "wrapcauchy: pdf logpdf",
        product([0, 1e-4, 0.1, 1, 3, 6.2, -1], [1e-6, 0.1, 0.5, 0.9, 0.9999]),
    ),
    (
        "poisson: pmf logpmf cdf",
        product([*COUNTS, -1, NAN], [1e-10, 0.1, 1, 3, 10, 30, 99, 300, 5e3]),
    ),
    ("binom: pmf logpmf", product(COUNTS, COUNTS, CHANCES, most=500)),
    ("nbinom: pmf logpmf", product(COUNTS, [0.1, 1, 3.5, 20, 300], CHANCES)),
    (
        "betabinom: pmf logpmf",
        product(COUNTS, COUNTS[:-1], [0.1, 1, 3.5, 50], [0.3, 2, 100], most=500),
    ),
    ("geom: pmf logpmf", product([*COUNTS, -1], CHANCES)),
    (
        f"truncnorm: {_LOCATION}",
        product(
            [-40, -9, -2.1, -1, 0, 0.3, 1.5, 3, 10, 38],
            [-INF, -50, -2.1, -1, 0, 9],
            [INF, 50, -1, 0.5, 2, 11],
        ),
    ),
):
    for _group in _names.split(";"):
        _distribution, _several = _group.split(":")
        for _name in _several.split():
            POINTS[f"stats.{_distribution.strip()}.{_name}"] = (_grid, WIDE)


def functions(jax, lax) -> dict[str, Callable[..., object]]:
    """Every name above as a function of arrays, by the module that `jax` is."""
    sp = jax.scipy.special

    def find(name):
        if name.startswith("lax."):
            return getattr(lax, name[4:])
        if name.startswith("stats."):
            _, distribution, function = name.split(".")
            return getattr(getattr(jax.scipy.stats, distribution), function)
        if name.startswith("complex_"):
            return getattr(sp, name[8:])
        if name[-2] == ".":
            return lambda *args: getattr(sp, name[:-2])(*args)[int(name[-1])]
        return getattr(sp, name)

    special = {
        "multigammaln3": lambda x: sp.multigammaln(x, 3),
        "bessel_jn4": lambda x: sp.bessel_jn(x, v=4).T,
        "polygamma": lambda n, x: sp.polygamma(n.astype("int32"), x),
        "sph_harm_y15": lambda n, m, theta, phi: sp.sph_harm_y(
            n.astype("int32"), m.astype("int32"), theta, phi, n_max=15
        ),
        "logsumexp": lambda x: sp.logsumexp(x, axis=-1),
        "softmax": lambda x: sp.softmax(x, axis=-1),
        "log_softmax": lambda x: sp.log_softmax(x, axis=-1),
    }
    return {name: special.get(name) or find(name) for name in POINTS}


def answers(name: str, dtype: str, jax, lax, part: slice = slice(None)) -> np.ndarray:
    """What the function gives at its points, as float64 or complex128."""
    args = [x[part] for x in POINTS[name][0](dtype)]
    with jax.enable_x64(dtype == "float64"):
        function = functions(jax, lax)[name]
        cast = [
            x.astype("complex64" if dtype == "float32" else "complex128")
            if np.iscomplexobj(x)
            else x.astype(dtype_of(dtype))
            for x in args
        ]
        found = np.asarray(jax.jit(function)(*cast))
    return found.astype(np.complex128 if np.iscomplexobj(found) else np.float64)
