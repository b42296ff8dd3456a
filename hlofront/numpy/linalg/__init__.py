"""hlofront.numpy.linalg: linear algebra of matrices and of batches of matrices."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    now={
        "hlofront.numpy.linalg.decompositions": "cholesky eig eigh eigvals eigvalsh qr svd svdvals",
        "hlofront.numpy.linalg.determinants": "det slogdet",
        "hlofront.numpy.linalg.norms": "cond matrix_norm matrix_rank norm vector_norm",
        "hlofront.numpy.linalg.products": (
            "cross diagonal matmul matrix_power matrix_transpose multi_dot outer tensordot trace "
            "vecdot"
        ),
        "hlofront.numpy.linalg.systems": "inv lstsq pinv solve tensorinv tensorsolve",
    },
)
