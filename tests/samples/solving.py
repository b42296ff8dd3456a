"""Samples of direct solutions."""

import itertools

import numpy as np

from hlofront import lax
from hlofront import numpy as jnp
from tests.samples import sample
from tests.support.cases import c64, f32, f64

solve = lax.linalg.triangular_solve


def well_posed(a, b, **params):
    """The diagonal is far from zero."""
    return solve(a + 4 * jnp.eye(a.shape[-1], dtype=a.dtype), b, **params)


def solved(
    a, b, left_side=False, lower=False, transpose_a=False, conjugate_a=False, unit_diagonal=False
):
    a = a + 4 * np.eye(a.shape[-1])
    a = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        a = a - a * np.eye(a.shape[-1]) + np.eye(a.shape[-1])
    if transpose_a:
        a = a.swapaxes(-1, -2)
    if conjugate_a:
        a = a.conj()
    if left_side:
        return np.linalg.solve(a, b)
    return np.linalg.solve(a.swapaxes(-1, -2), b.swapaxes(-1, -2)).swapaxes(-1, -2)


NAMES = ("left_side", "lower", "transpose_a", "unit_diagonal")
for flags in itertools.product((False, True), repeat=4):
    params = {name: True for name, flag in zip(NAMES, flags, strict=True) if flag}
    right = f32[3, 2] if flags[0] else f32[2, 3]
    sample(well_posed, f32[3, 3], right, reference=solved, **params)
for params in (
    {"conjugate_a": True},
    {"conjugate_a": True, "transpose_a": True},
    {"transpose_a": True, "lower": True},
):
    sample(well_posed, c64[2, 3, 3], c64[2, 3, 2], left_side=True, reference=solved, **params)
sample(well_posed, f64[2, 2], f64[2, 3], left_side=True, reference=solved)
sample(well_posed, f32[2, 3, 3], f32[2, 3], left_side=True)
sample(well_posed, f32[3, 3], f32[3])
sample(solve, f32[0, 0], f32[0, 2], left_side=True)
sample(solve, f32[2, 2], f32[2, 0], left_side=True)


def tridiagonal(dl, d, du, b, **params):
    return lax.linalg.tridiagonal_solve(dl, d + 6, du, b, **params)


def tridiagonal_solved(dl, d, du, b, **_):
    def one(dl, d, du, b):
        return np.linalg.solve(np.diag(d + 6) + np.diag(dl[1:], -1) + np.diag(du[:-1], 1), b)

    if d.ndim == 1:
        return one(dl, d, du, b)
    return np.stack([one(*x) for x in zip(dl, d, du, b, strict=True)])


for dtype in (f32, c64, f64):
    sample(tridiagonal, dtype[4], dtype[4], dtype[4], dtype[4, 2], reference=tridiagonal_solved)
sample(tridiagonal, f32[2, 3], f32[2, 3], f32[2, 3], f32[2, 3, 1], reference=tridiagonal_solved)
sample(
    tridiagonal,
    f32[3],
    f32[3],
    f32[3],
    f32[3, 2],
    perturb_singular=True,
    reference=tridiagonal_solved,
)
sample(tridiagonal, f32[1], f32[1], f32[1], f32[1, 2], reference=tridiagonal_solved)
