"""Samples of eigenvalues and singular values."""

import numpy as np

from hlofront import lax
from hlofront import numpy as jnp
from tests.samples import sample
from tests.support.cases import c64, f32, f64

la = lax.linalg
REFUSED = (NotImplementedError, "Differentiation rule")


def spaced(x, function, **params):
    """Of a matrix whose eigenvalues are apart."""
    return function(x + jnp.diag(jnp.arange(x.shape[-1]) * 8).astype(x.dtype), **params)


def eigh(x, **params):
    return spaced(x, la.eigh, **params)


def eigenvalues(x, **params):
    return spaced(
        x, la.eig, compute_left_eigenvectors=False, compute_right_eigenvectors=False, **params
    )


def eig(x, **params):
    return spaced(x, la.eig, **params)


for operand in (f32[3, 3], f32[2, 3, 3], f64[3, 3], f32[1, 1], f32[0, 0], f32[0, 2, 2]):
    sample(eigh, operand)
sample(
    eigh,
    f32[3, 3],
    symmetrize_input=False,
    lower=False,
    not_smooth="the derivative takes the tangent for Hermitian",
)
sample(eigh, c64[3, 3], not_smooth="phases of vectors jump")
for operand in (f32[3, 3], c64[2, 2, 2], f64[2, 2], f32[0, 0]):
    sample(eigenvalues, operand)
    sample(
        eig,
        operand,
        not_differentiable=(NotImplementedError, "enable_eigvec_derivs"),
    )
sample(
    eig,
    f32[3, 3],
    compute_left_eigenvectors=False,
    not_differentiable=(NotImplementedError, "enable_eigvec_derivs"),
)
# The rotations have complex eigenvalues.
sample(
    la.eig,
    np.float32([[0, -1], [1, 0]]),
    not_differentiable=(NotImplementedError, "enable_eigvec_derivs"),
)

for operand in (f32[3, 3], c64[2, 2], f64[0, 0]):
    sample(eig, operand, enable_eigvec_derivs=True)

FULL = (NotImplementedError, "not implemented for full matrices")
for operand in (f32[3, 3], f32[2, 4, 3], f32[3, 4], f64[3, 2], f32[1, 1]):
    sample(la.svd, operand, full_matrices=False)
    sample(la.svd, operand, compute_uv=False)
    square = operand.shape[-1] == operand.shape[-2]
    sample(la.svd, operand, not_differentiable=None if square else FULL)
sample(la.svd, c64[3, 2], full_matrices=False, not_smooth="phases of vectors jump")
sample(la.svd, c64[2, 3], compute_uv=False)
sample(la.svd, c64[2, 3], not_differentiable=FULL)
for operand in (f32[0, 0], f32[0, 3], f32[3, 0], f32[0, 2, 2]):
    square = operand.shape[-1] == operand.shape[-2]
    sample(la.svd, operand, not_differentiable=None if square else FULL)
    sample(la.svd, operand, full_matrices=False)
sample(la.svd, np.eye(3, 4, dtype=np.float32), full_matrices=False, not_smooth="all are equal")

for operand in (f32[3, 3], f32[2, 4, 4], c64[3, 3], f64[2, 2], f32[0, 0]):
    sample(la.schur, operand, not_differentiable=REFUSED)
sample(la.schur, f32[3, 3], compute_schur_vectors=False, not_differentiable=REFUSED)
for operand in (f32[4, 4], f32[2, 3, 3], c64[3, 3], f32[1, 1], f32[0, 2, 2]):
    sample(la.hessenberg, operand, not_differentiable=REFUSED)
    sample(la.tridiagonal, operand, not_differentiable=REFUSED)
sample(la.tridiagonal, f32[4, 4], lower=False, not_differentiable=REFUSED)
