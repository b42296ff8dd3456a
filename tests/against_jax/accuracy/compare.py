"""How far special functions are from the truth: ours and jax's, region by region.

`python -m tests.against_jax.accuracy [NAME ...]` prints where ours is worse.
"""

import collections
import dataclasses
import functools
import pathlib
import sys

import ml_dtypes
import numpy as np

from tests.against_jax.accuracy.measure import digest, errors
from tests.against_jax.accuracy.points import POINTS, answers, dtype_of

FILE = pathlib.Path(__file__).parent / "known.npz"

# So many units in the last place are nobody's fault, nor is a twentieth more than jax has; in a
# region of a few points chance makes twice as much.
ULPS, SHARE, SHARE_OF_REGION = 4.0, 1.05, 2.0


@dataclasses.dataclass
class Region:
    """The worst of a region of arguments, in units in the last place, and where ours has it."""

    ours: float = 0.0
    # None where jax has no number at all.
    jax: float | None = None
    at: tuple[object, ...] = ()

    def is_worse(self) -> bool:
        return self.jax is not None and self.ours > max(SHARE_OF_REGION * self.jax, ULPS)


@functools.cache
def known() -> dict[str, np.ndarray]:
    """What is kept of all functions: see keep.py."""
    with np.load(FILE) as kept:
        return dict(kept)


def truth_and_error_of_jax(name: str, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """The truth at the points, and how far jax is from it: 0 where it was not asked."""
    key = f"{name}@{dtype}"
    if known().get(f"{key}@points") != digest(POINTS[name][0](dtype)):
        raise ValueError(
            f"{FILE.name} is of other points for {name} in {dtype}: run "
            f"python -m tests.against_jax.accuracy.keep {name}"
        )
    of_jax = known().get(f"{key}@jax", np.full(len(POINTS[name][0](dtype)[0]), -np.inf))
    return known()[key], np.exp2(of_jax.astype(np.float64))


def _region(row: tuple[object, ...]) -> tuple[object, ...]:
    """By decade of one number; by whether small, middling or large of several."""
    if isinstance(row[0], np.ndarray | complex):
        return ()
    parts = []
    for x in row:
        x = float(x)
        if not np.isfinite(x) or x == 0:
            parts.append(repr(x))
        else:
            decade = np.floor(np.log10(abs(x)))
            bound = 9 if len(row) == 1 else 2
            step = 1 if len(row) == 1 else 2
            parts.append((bool(x > 0), float(np.clip(decade // step, -bound, bound))))
    return tuple(parts)


def compare(name: str, dtype: str, ours: np.ndarray) -> dict[object, Region]:
    """The regions of the function's arguments; what is not finite, or should not be, by point."""
    truth, of_jax = truth_and_error_of_jax(name, dtype)
    rows = list(zip(*POINTS[name][0](dtype), strict=True))
    regions: dict[object, Region] = collections.defaultdict(Region)
    of_ours = errors(ours, truth, dtype).reshape(len(rows), -1).max(axis=1)
    least = float(ml_dtypes.finfo(dtype_of(dtype)).tiny)
    for row, mine, theirs in zip(rows, of_ours, of_jax, strict=True):
        if np.ndim(row[0]) == 0 and any(0 < abs(x) < least for x in row):
            # Zero, to XLA.
            continue
        if np.isfinite(mine) or not np.isfinite(theirs):
            region = regions[_region(row)]
            if np.isfinite(mine) and mine > region.ours:
                region.ours, region.at = float(mine), row
            if np.isfinite(theirs):
                region.jax = max(region.jax or 0.0, float(theirs))
        else:
            regions["infinite or no number", *row] = Region(np.inf, float(theirs), row)
    return regions


def worst(regions: dict[object, Region]) -> tuple[float, float]:
    """The greatest errors that are finite: ours, and jax's."""
    finite = [region for region in regions.values() if np.isfinite(region.ours)]
    ours = max((region.ours for region in finite), default=0.0)
    return ours, max((region.jax or 0.0 for region in finite), default=0.0)


def main(names):
    """Of the functions whose names begin so: a line for each dtype, and where ours is worse."""
    import hlofront
    import hlofront.scipy.special
    import hlofront.scipy.stats
    from hlofront import lax

    for name, (_, dtypes) in POINTS.items():
        if names and not name.startswith(tuple(names)):
            continue
        for dtype in dtypes:
            regions = compare(name, dtype, answers(name, dtype, hlofront, lax))
            worse = [region for region in regions.values() if region.is_worse()]
            ours, jax = worst(regions)
            print(f"{name} {dtype}: {ours:.3g} ulp, jax {jax:.3g}; worse: {len(worse)}")
            for region in sorted(worse, key=lambda region: -region.ours)[:8]:
                at = ", ".join(str(x) for x in region.at)
                print(f"    {region.ours:.3g} > {region.jax:.3g} at {at}")


if __name__ == "__main__":
    main(sys.argv[1:])
