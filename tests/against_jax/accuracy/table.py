"""Every function in four dtypes, in each way that it is run, against mpmath.

    nice python -m tests.against_jax.accuracy.table                 prints a line for each
    nice python -m tests.against_jax.accuracy.table erf log --write   and keeps it in TABLE.md

The ways are eager calls, jit, jit without the replacements for CPUs, and with them for arrays of
any size. The greatest errors are in units of the last place; infinite are those where a number
should be infinite or no number, or should not. An element's result must not depend on the other
elements of the array: the lines tell where it does.
"""

import argparse
import contextlib
import functools
import math
import pathlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import mpmath as m
import numpy as np

import hlofront
import hlofront.numpy as jnp
import hlofront.scipy.special
import hlofront.scipy.stats
from hlofront import lax
from hlofront.base.config import options
from tests.against_jax.accuracy import compare, keep, points
from tests.against_jax.accuracy.measure import errors
from tests.support.formulas import for_arrays_of_any_size

PATH = pathlib.Path(__file__).with_name("TABLE.md")
WAYS = ("eager", "jit", "without replacements", "with replacements")
# How many points of a function in a dtype of which no truth is kept.
FEW = 100


class Row(NamedTuple):
    """The greatest finite errors of a function in a dtype, by way, and where else it is wrong."""

    name: str
    dtype: str
    ulps: tuple[float, ...]
    infinite: tuple[int, ...]
    depends: int

    def __str__(self) -> str:
        told = [f"{ulps:.3g}{f' ({count} inf)' * (count > 0)}" for ulps, count in self.cells()]
        return f"| {self.name} | {self.dtype} | {' | '.join(told)} | {self.depends or ''} |"

    def cells(self) -> Iterator[tuple[float, int]]:
        return zip(self.ulps, self.infinite, strict=True)


# ---- functions that tests/against_jax/accuracy/points.py leaves out ------------------------------

_LN2 = functools.partial(m.log, 2)
_ONE: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(m, name) for name in "sin cos tan asin acos atan sinh cosh tanh".split()},
    **{name: getattr(m, name) for name in "asinh acosh atanh exp expm1 log log1p sqrt".split()},
    "exp2": lambda x: m.power(2, x),
    "log2": lambda x: m.log(x) / _LN2(),
    "log10": m.log10,
    "cbrt": lambda x: m.sign(x) * m.cbrt(abs(x)),
    "sinc": lambda x: m.sincpi(x),
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1 / x,
    "lax.rsqrt": lambda x: 1 / m.sqrt(x),
    "lax.logistic": lambda x: 1 / (1 + m.exp(-x)),
    "nn.softplus": lambda x: m.log1p(m.exp(x)) if x < 700 else x + m.exp(-x),
    "nn.log_sigmoid": lambda x: -m.log1p(m.exp(-x)) if x > -700 else x - m.exp(x),
    "nn.silu": lambda x: x / (1 + m.exp(-x)),
    "nn.gelu": lambda x: x * m.erfc(-x / m.sqrt(2)) / 2,
}
_TWO: dict[str, Callable[[Any, Any], Any]] = {
    "power": m.power,
    "arctan2": m.atan2,
    "hypot": m.hypot,
    "logaddexp": lambda x, y: max(x, y) + m.log1p(m.exp(-abs(x - y))),
    "logaddexp2": lambda x, y: max(x, y) + m.log1p(m.power(2, -abs(x - y))) / _LN2(),
}
_PAIRS = [1e-30, 1e-8, 1e-3, 0.1, 0.5, 0.999, 1, 1.001, 2, 3.7, 10, 88, 700, 1e5, 1e20]


def _elementary(name: str, dtype: str) -> tuple[np.ndarray, ...]:
    if name in _ONE:
        x = points.one(points.real)(dtype)[0]
        return (x[np.isfinite(x)],)
    both = [*_PAIRS, *(-x for x in _PAIRS)]
    return points.product(_PAIRS if name == "power" else both, both)(dtype)


def _truth(name: str, args: tuple[np.ndarray, ...]) -> np.ndarray:
    function: Any = _ONE.get(name) or _TWO.get(name)
    if function is None:
        return keep.truth_of(name, args)

    def value(*row: float) -> float:
        try:
            found = function(*[m.mpf(x) for x in row])
        except (ValueError, ZeroDivisionError):
            return math.nan if name.startswith("a") or row[0] else math.inf
        except OverflowError:
            return math.inf
        return math.nan if isinstance(found, m.mpc) else float(found)

    with m.workdps(60):
        return np.array([value(*map(float, row)) for row in zip(*args, strict=True)])


def _function(name: str) -> Callable[..., Any]:
    if name in points.POINTS:
        return points.functions(hlofront, lax)[name]
    home, _, short = name.rpartition(".")
    if name == "nn.gelu":
        return functools.partial(hlofront.nn.gelu, approximate=False)
    return getattr({"": jnp, "lax": lax, "nn": hlofront.nn}[home], short)


# ---- running -------------------------------------------------------------------------------------


@contextlib.contextmanager
def way(name: str) -> Iterator[None]:
    """Options under which a function is compiled in a way."""
    replaced = for_arrays_of_any_size() if name == "with replacements" else contextlib.nullcontext()
    with options["hlofront_cpu_formulas"](name != "without replacements"), replaced:
        yield


def neighbors_change(function: Callable[..., Any], args: list[np.ndarray]) -> int:
    """Return how many elements' results change when the other half of the arrays is exchanged."""
    order = np.arange(len(args[0]))
    changed = np.zeros(len(order), bool)
    here = np.asarray(function(*args))
    for kept in (order % 2 == 0, order % 2 == 1):
        # All others are the first of them, and then the last.
        for other in np.flatnonzero(~kept)[[0, -1]]:
            there = np.asarray(function(*[x[np.where(kept, order, other)] for x in args]))
            same = (here == there) | ((here != here) & (there != there))
            changed |= kept & ~same.reshape(len(order), -1).all(axis=1)
    return int(changed.sum())


def measured(name: str, dtype: str) -> Row:
    """Run a function in all ways, and compare it with the truth."""
    if name in points.POINTS:
        grid, dtypes = points.POINTS[name]
        args = grid(dtype)
        if dtype in dtypes:
            truth, _ = compare.truth_and_error_of_jax(name, dtype)
        else:
            few = np.random.default_rng(0).permutation(len(args[0]))[:FEW]
            args = tuple(x[np.sort(few)] for x in args)
            truth = _truth(name, args)
    else:
        args = _elementary(name, dtype)
        truth = _truth(name, args)
    least = float(points.ml_dtypes.finfo(points.dtype_of(dtype)).tiny)
    # Subnormal numbers are zero, to XLA.
    usual = np.array([not any(0 < np.max(np.abs(x)) < least for x in row) for row in zip(*args)])
    ulps, infinite = [], []
    depends = 0
    with hlofront.enable_x64(dtype == "float64"), np.errstate(all="ignore"):
        cast = [_cast(x, dtype) for x in args]
        for each in WAYS:
            function = _function(name)
            with way(each):
                jitted = hlofront.jit(lambda *xs, f=function: f(*xs))
                found = np.asarray((function if each == "eager" else jitted)(*cast))
                if each.startswith("with"):
                    depends += neighbors_change(jitted, cast)
            wide = np.complex128 if np.iscomplexobj(found) else np.float64
            apart = errors(found.astype(wide), truth, dtype).reshape(len(usual), -1).max(axis=1)
            apart = apart[usual]
            ulps.append(float(np.max(apart, where=np.isfinite(apart), initial=0)))
            infinite.append(int(np.sum(~np.isfinite(apart))))
    return Row(name, dtype, tuple(ulps), tuple(infinite), depends)


def _cast(x: np.ndarray, dtype: str) -> np.ndarray:
    if np.iscomplexobj(x):
        return x.astype("complex128" if dtype == "float64" else "complex64")
    return x.astype(points.dtype_of(dtype))


def names() -> list[str]:
    return [*_ONE, *_TWO, *points.POINTS]


HEAD = """# Errors of functions, in units of the last place

`python -m tests.against_jax.accuracy.table --write` writes this table: the greatest error of a
function over its whole range, against mpmath, and in parentheses at how many points a result is
infinite or no number and should not be, or is not and should be. The last column counts elements
whose results depend on their neighbors.

| function | dtype | eager | jit | without replacements | with replacements | neighbors |
|---|---|---|---|---|---|---|
"""


def write(rows: list[Row]) -> None:
    """Write rows into the table, in place of those of the same functions and dtypes."""
    lines = PATH.read_text().splitlines() if PATH.exists() else []
    kept = {tuple(line.split(" | ")[:2]): line for line in lines if line.startswith("| ")}
    kept |= {tuple(str(row).split(" | ")[:2]): str(row) for row in rows}
    order = [(f"| {name}", dtype) for name in names() for dtype in points.ALL]
    PATH.write_text(HEAD + "\n".join(kept[key] for key in order if key in kept) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.against_jax.accuracy.table")
    parser.add_argument("names", nargs="*", help="the first letters of functions' names")
    parser.add_argument("--dtypes", default=",".join(points.ALL))
    parser.add_argument("--write", action="store_true", help="keep the lines in TABLE.md")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in names():
        if given.names and not name.startswith(tuple(given.names)):
            continue
        # Rows of complex numbers have the precision of the dtype.
        dtypes = [each for each in given.dtypes.split(",") if _takes(name, each)]
        rows = [measured(name, dtype) for dtype in dtypes]
        print(*rows, sep="\n", flush=True)
        if given.write:
            write(rows)
        hlofront.clear_caches()


def _takes(name: str, dtype: str) -> bool:
    is_complex = name.startswith(("complex_", "wofz", "sph_"))
    return dtype in points.WIDE or not is_complex


if __name__ == "__main__":
    main()
