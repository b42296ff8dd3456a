"""hlofront.lax.linalg: factorizations of matrices and linear systems."""

from hlofront.higher_order.polar import qdwh as qdwh
from hlofront.primitives.linalg.factoring import cholesky as cholesky
from hlofront.primitives.linalg.factoring import cholesky_p as cholesky_p
from hlofront.primitives.linalg.factoring import cholesky_update as cholesky_update
from hlofront.primitives.linalg.factoring import cholesky_update_p as cholesky_update_p
from hlofront.primitives.linalg.factoring import householder_product as householder_product
from hlofront.primitives.linalg.factoring import householder_product_p as householder_product_p
from hlofront.primitives.linalg.factoring import lu as lu
from hlofront.primitives.linalg.factoring import lu_p as lu_p
from hlofront.primitives.linalg.factoring import (
    lu_pivots_to_permutation as lu_pivots_to_permutation,
)
from hlofront.primitives.linalg.factoring import (
    lu_pivots_to_permutation_p as lu_pivots_to_permutation_p,
)
from hlofront.primitives.linalg.factoring import ormqr as ormqr
from hlofront.primitives.linalg.factoring import ormqr_p as ormqr_p
from hlofront.primitives.linalg.factoring import qr as qr
from hlofront.primitives.linalg.factoring import qr_p as qr_p
from hlofront.primitives.linalg.factoring import symmetric_product as symmetric_product
from hlofront.primitives.linalg.factoring import symmetric_product_p as symmetric_product_p
from hlofront.primitives.linalg.solving import triangular_solve as triangular_solve
from hlofront.primitives.linalg.solving import triangular_solve_p as triangular_solve_p
from hlofront.primitives.linalg.solving import tridiagonal_solve as tridiagonal_solve
from hlofront.primitives.linalg.solving import tridiagonal_solve_p as tridiagonal_solve_p
from hlofront.primitives.linalg.spectral import EighImplementation as EighImplementation
from hlofront.primitives.linalg.spectral import EigImplementation as EigImplementation
from hlofront.primitives.linalg.spectral import SvdAlgorithm as SvdAlgorithm
from hlofront.primitives.linalg.spectral import eig as eig
from hlofront.primitives.linalg.spectral import eig_p as eig_p
from hlofront.primitives.linalg.spectral import eigh as eigh
from hlofront.primitives.linalg.spectral import eigh_p as eigh_p
from hlofront.primitives.linalg.spectral import hessenberg as hessenberg
from hlofront.primitives.linalg.spectral import hessenberg_p as hessenberg_p
from hlofront.primitives.linalg.spectral import schur as schur
from hlofront.primitives.linalg.spectral import schur_p as schur_p
from hlofront.primitives.linalg.spectral import svd as svd
from hlofront.primitives.linalg.spectral import svd_p as svd_p
from hlofront.primitives.linalg.spectral import tridiagonal as tridiagonal
from hlofront.primitives.linalg.spectral import tridiagonal_p as tridiagonal_p
