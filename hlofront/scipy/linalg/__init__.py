"""hlofront.scipy.linalg: linear algebra by SciPy's names."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    now={
        "hlofront.scipy.linalg.decompositions": (
            "cholesky eigh hessenberg lu polar qr qr_multiply rsf2csf schur svd"
        ),
        "hlofront.scipy.linalg.matrix_functions": "expm expm_frechet funm sqrtm",
        "hlofront.scipy.linalg.special_matrices": (
            "block_diag circulant companion convolution_matrix dft fiedler fiedler_companion "
            "hadamard hankel helmert hilbert invhilbert invpascal leslie pascal toeplitz"
        ),
        "hlofront.scipy.linalg.systems": (
            "cho_factor cho_solve det inv lu_factor lu_solve solve solve_sylvester solve_triangular"
        ),
        "hlofront.scipy.linalg.tridiagonal": "eigh_tridiagonal",
    },
)
