"""Keeps the truth at the points, and how far jax is from it, in known.npz.

`python -m tests.against_jax.accuracy.keep [NAME ...]` makes anew what is of other points, or of
functions with these names, in a few minutes. It needs HLOFRONT_ORACLE_PYTHON, for jax.
"""

import math
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile

import mpmath as m
import numpy as np
from mpmath import mpf

from tests.against_jax.accuracy.compare import FILE
from tests.against_jax.accuracy.distributions import STATS
from tests.against_jax.accuracy.measure import digest, errors
from tests.against_jax.accuracy.of_one_number import DIGITS
from tests.against_jax.accuracy.points import POINTS, WIDE
from tests.against_jax.accuracy.special import SPECIAL
from tests.against_jax.oracle import ROOT, find_interpreter

TRUTH = SPECIAL | STATS


def truth_of(name, args):
    known = {}
    values = []
    for row in zip(*args, strict=True):
        key = repr(row)
        if key not in known:
            known[key] = _truth_at(name, row)
        values.append(known[key])
    return np.array(values)


def _truth_at(name, row):
    function = TRUTH[name]
    with m.workdps(DIGITS):
        if np.iscomplexobj(row[0]):
            return complex(function(m.mpmathify(complex(row[0]))))
        if isinstance(row[0], np.ndarray):
            value = function([mpf(float(x)) for x in row[0]])
        elif any(x != x for x in row):
            value = [math.nan] * 5 if name == "bessel_jn4" else math.nan
        else:
            # A zero is the float itself: mpmath's have no sign.
            value = function(*[float(x) if x == 0 else mpf(float(x)) for x in row])
        if isinstance(value, list):
            return [float(v) for v in value]
        return complex(value) if name.startswith("sph") else float(value)


def ask_jax(names: list[str]) -> dict[tuple[str, str], np.ndarray]:
    """What jax gives, asked in a process of its own."""
    interpreter = find_interpreter()
    if interpreter is None:
        raise RuntimeError("no Python with jax: set HLOFRONT_ORACLE_PYTHON")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "answers"
        command = [interpreter, "-m", "tests.against_jax.accuracy.by_jax", str(path), *names]
        environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
        subprocess.run(command, check=True, cwd=ROOT, env=environment)
        return pickle.loads(path.read_bytes())


def main(names):
    kept = dict(np.load(FILE)) if FILE.exists() else {}
    kept = {key: value for key, value in kept.items() if key.split("@")[0] in POINTS}
    anew = []
    for name, (grid, dtypes) in POINTS.items():
        marks = {dtype: np.array(digest(grid(dtype)), np.uint32) for dtype in dtypes}
        old = all(kept.get(f"{name}@{dtype}@points") == mark for dtype, mark in marks.items())
        if old and name not in names:
            continue
        print(name, flush=True)
        anew.append(name)
        for dtype, mark in marks.items():
            key = f"{name}@{dtype}"
            values = truth_of(name, grid(dtype))
            if dtype not in WIDE:
                with np.errstate(over="ignore", under="ignore"):
                    values = values.astype(np.float32)
            kept[key], kept[f"{key}@points"] = values, mark
    for (name, dtype), found in (ask_jax(anew) if anew else {}).items():
        keep_errors(kept, name, dtype, found)
    np.savez_compressed(FILE, **kept)


def keep_errors(kept, name, dtype, found):
    """How far jax is, by point: the logarithms are of a size that float16 holds."""
    key = f"{name}@{dtype}"
    apart = errors(found, kept[key], dtype)
    with np.errstate(divide="ignore"):
        apart = np.log2(apart.reshape(len(POINTS[name][0](dtype)[0]), -1).max(axis=1))
    kept[f"{key}@jax"] = apart.astype(np.float16)


if __name__ == "__main__":
    main(sys.argv[1:])
