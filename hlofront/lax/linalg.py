"""hlofront.lax.linalg: factorizations of matrices and linear systems."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    now={
        "hlofront.higher_order.polar": "qdwh",
        "hlofront.primitives.linalg.factoring": (
            "cholesky cholesky_p cholesky_update cholesky_update_p householder_product "
            "householder_product_p lu lu_p lu_pivots_to_permutation lu_pivots_to_permutation_p "
            "ormqr ormqr_p qr qr_p symmetric_product symmetric_product_p"
        ),
        "hlofront.primitives.linalg.solving": (
            "triangular_solve triangular_solve_p tridiagonal_solve tridiagonal_solve_p"
        ),
        "hlofront.primitives.linalg.spectral": (
            "EighImplementation EigImplementation SvdAlgorithm eig eig_p eigh eigh_p hessenberg "
            "hessenberg_p schur schur_p svd svd_p tridiagonal tridiagonal_p"
        ),
    },
)
