"""Samples of factorizations in finitely many steps."""

import numpy as np

from hlofront import lax
from hlofront import numpy as jnp
from tests.samples import sample
from tests.support.cases import c64, f32, f64, i32

la = lax.linalg
REFUSED = (NotImplementedError, "Differentiation rule")


def cholesky(x, **params):
    """Of a matrix that is positive definite."""
    x = x @ x.mT.conj() + jnp.eye(x.shape[-1], dtype=x.dtype)
    return la.cholesky(x, **params)


def cholesky_of(x, **_):
    return np.linalg.cholesky(x @ x.swapaxes(-1, -2).conj() + np.eye(x.shape[-1]))


for operand in (f32[3, 3], f32[2, 3, 3], c64[3, 3], f64[2, 2], f32[1, 1], f32[0, 0], f32[0, 2, 2]):
    sample(cholesky, operand, reference=cholesky_of)
sample(cholesky, f32[3, 3], symmetrize_input=False, reference=cholesky_of)
INDEFINITE = np.float32([[[1, 2], [2, 1]], [[2, 1], [1, 2]]])
sample(la.cholesky, INDEFINITE, not_smooth="one of them has no factor")


def cholesky_update(x, w):
    r = jnp.triu(x) + 4 * jnp.eye(x.shape[-1], dtype=x.dtype)
    return la.cholesky_update(r, w)


def cholesky_update_of(x, w):
    r = np.triu(x) + 4 * np.eye(x.shape[-1])
    return np.linalg.cholesky(r.T @ r + np.outer(w, w)).T


sample(
    cholesky_update,
    f32[3, 3],
    f32[3],
    reference=cholesky_update_of,
    not_differentiable=REFUSED,
)
sample(
    la.symmetric_product,
    f32[3, 2],
    f32[3, 3],
    alpha=2.0,
    beta=0.5,
    reference=lambda a, c, **_: 2 * a @ a.T + 0.5 * c,
    not_differentiable=REFUSED,
)
sample(
    la.symmetric_product,
    f32[2, 3, 2],
    f32[2, 3, 3],
    symmetrize_output=True,
    reference=lambda a, c, **_: a @ a.swapaxes(-1, -2),
    not_differentiable=REFUSED,
)

for operand in (f32[3, 3], f32[2, 4, 3], f32[2, 3, 5], c64[3, 3], c64[4, 2], f64[3, 3], f32[1, 4]):
    sample(la.lu, operand)
for operand in (f32[0, 0], f32[0, 3], f32[3, 0], f32[0, 2, 2]):
    sample(la.lu, operand)
SINGULAR = np.float32([[1, 2, 3], [2, 4, 6], [1, 0, 1]])
sample(la.lu, SINGULAR, not_smooth="the matrix is singular")


def order(pivots, permutation_size):
    def one(pivots):
        found = np.arange(permutation_size)
        for i, j in enumerate(pivots):
            found[[i, j]] = found[[j, i]]
        return found

    return np.stack([one(row) for row in np.reshape(pivots, (-1, pivots.shape[-1]))]).reshape(
        *pivots.shape[:-1], permutation_size
    )


for pivots in (np.int32([2, 2, 3]), np.int32([[4, 1, 2], [0, 4, 4]])):
    sample(la.lu_pivots_to_permutation, pivots, permutation_size=5, reference=order)
sample(la.lu_pivots_to_permutation, i32[0], permutation_size=3)

for operand in (f32[3, 3], f32[2, 4, 3], f32[3, 5], c64[4, 3], c64[2, 2], f64[3, 2], f32[1, 1]):
    sample(la.qr, operand, full_matrices=False)
for operand in (f32[2, 4, 3], f32[3, 5]):
    sample(la.qr, operand)
sample(la.qr, c64[4, 2], not_smooth="LAPACK chooses how the last columns turn")
for operand in (f32[4, 3], c64[2, 3, 3], f32[2, 4]):
    sample(la.qr, operand, pivoting=True, full_matrices=False)
sample(la.qr, f32[4, 3], pivoting=True)
for operand in (f32[0, 0], f32[0, 3], f32[3, 0], f32[0, 2, 2]):
    sample(la.qr, operand)
    if operand.shape[-2]:
        sample(la.qr, operand, pivoting=True, full_matrices=False)


def product_of(a, taus):
    m = a.shape[0]
    total = np.eye(m, dtype=a.dtype)
    for i, tau in enumerate(taus):
        v = np.zeros(m, a.dtype)
        v[i], v[i + 1 :] = 1, a[i + 1 :, i]
        total = total @ (np.eye(m) - tau * np.outer(v, v.conj()))
    return total


for operands in ((f32[4, 3], f32[3]), (f32[3, 3], f32[2]), (c64[4, 2], c64[2])):
    sample(
        la.householder_product,
        *operands,
        reference=lambda a, taus: product_of(a, taus)[:, : a.shape[1]],
        not_differentiable=REFUSED,
    )
sample(la.householder_product, f32[2, 3, 3], f32[2, 3], not_differentiable=REFUSED)
sample(la.householder_product, f32[3, 2], f32[0], not_differentiable=REFUSED)


def multiplied(a, taus, c, left=True, transpose=False):
    q = product_of(a, taus)
    q = q.conj().T if transpose else q
    return q @ c if left else c @ q


for operands in ((f32[4, 3], f32[3], f32[4, 2]), (c64[3, 2], c64[2], c64[3, 3])):
    for transposed in (False, True):
        sample(
            la.ormqr,
            *operands,
            transpose=transposed,
            reference=multiplied,
            not_differentiable=REFUSED,
        )
sample(
    la.ormqr,
    f32[4, 2],
    f32[2],
    f32[3, 4],
    left=False,
    reference=multiplied,
    not_differentiable=REFUSED,
)
