"""The direct solution of sparse linear systems: spsolve."""

from typing import cast

import numpy as np

from hlofront.base.elements import NumPyDType
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, NumPyArray
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer
from hlofront.core.symbolic_zeros import Cotangents, Dual, Operand, Tangent, Tangents, Zero
from hlofront.core.trace import process
from hlofront.primitives.arrays.creation import full
from hlofront.primitives.arrays.cumulative import cumsum
from hlofront.primitives.arrays.shaping import expand_dims, squeeze
from hlofront.primitives.arrays.sorting import sort
from hlofront.primitives.elementwise.elementwise import add, neg
from hlofront.primitives.rules.derivatives import add_tangents
from hlofront.primitives.sparse.layout import SparseInfo, add_at, columns
from hlofront.primitives.sparse.matrices import csr_matvec_p
from hlofront.primitives.sparse.rows import indices_of_rows

spsolve_p = Primitive("spsolve")

# Orders of elimination: natural, two for the structure of A + A^T, and one by columns.
_ORDERS = (0, 1, 2, 3)


@infer(spsolve_p)
def _(
    data: ShapedArray,
    indices: ShapedArray,
    indptr: ShapedArray,
    b: ShapedArray,
    *,
    tol: float,
    reorder: int,
) -> ShapedArray:
    shapes = f"data.shape={data.shape} indices.shape={indices.shape} indptr.shape={indptr.shape}"
    if any(aval.ndim != 1 for aval in (data, indices, indptr, b)):
        raise ValueError(f"Arrays must be one-dimensional. Got {shapes} b.shape={b.shape}")
    if indptr.size != b.size + 1 or data.shape != indices.shape:
        raise ValueError(f"Invalid CSR buffer sizes: {shapes}; b.shape={b.shape}")
    if reorder not in _ORDERS:
        raise ValueError(f"reorder={reorder} not valid, must be one of {list(_ORDERS)}")
    if data.dtype != b.dtype:
        raise ValueError(f"data types do not match: data.dtype={data.dtype!r} b.dtype={b.dtype!r}")
    if not all(np.issubdtype(aval.dtype, np.integer) for aval in (indices, indptr)):
        raise ValueError(
            "index arrays must be integer typed; got "
            f"indices.dtype={indices.dtype!r} indptr.dtype={indptr.dtype!r}"
        )
    return b


@rules.jvp(spsolve_p)
def _(primals: ArrayLikes, tangents: Tangents, **params: object) -> Dual:
    data, indices, indptr, b = primals
    x = process(spsolve_p, tuple(primals), params)
    # A' x + A x' = b'
    right: Tangent = tangents[3]
    if type(tangents[0]) is not Zero:
        size = typeof(b).shape[0]
        change = process(
            csr_matvec_p,
            (tangents[0], indices, indptr, x),
            {"shape": (size, size), "transpose": False},
        )
        right = add_tangents(right, neg(change))
    if type(right) is Zero:
        return x, Zero.of(x)
    return x, process(spsolve_p, (data, indices, indptr, right), params)


@rules.transpose(spsolve_p)
def _(
    cotangent: ArrayLike,
    data: ArrayLike,
    indices: ArrayLike,
    indptr: ArrayLike,
    b: Operand,
    **params: object,
) -> Cotangents:
    transposed = _transposed(data, indices, indptr)
    return [None, None, None, process(spsolve_p, (*transposed, cotangent), params)]


def _transposed(
    data: ArrayLike, indices: ArrayLike, indptr: ArrayLike
) -> tuple[Array, Array, Array]:
    """Return the compressed rows of the transpose of a square matrix."""
    size, dtype = typeof(indptr).shape[0], typeof(indices).dtype
    rows = squeeze(columns(indices_of_rows(indices, indptr), (0,)), (1,))
    new_rows, new_columns, new_data = sort((indices, rows, data), num_keys=2)
    ones = full(typeof(indices).shape, 1, dtype)
    at = expand_dims(add(new_rows, ones), (1,))
    counts = add_at((size,), at, ones, 0, SparseInfo((), indices_sorted=True))
    return new_data, new_columns, cumsum(counts, 0)


def solve_on_host(
    data: NumPyArray, indices: NumPyArray, indptr: NumPyArray, b: NumPyArray, dtype: NumPyDType
) -> NumPyArray:
    """Return the solution x, of shape (n,), of a sparse system, by SciPy's direct solver.

    Args:
      data: the elements of the matrix, of shape (nse,).
      indices: their columns, of shape (nse,).
      indptr: the start of each row among them, of shape (n + 1,).
      b: the right-hand side, of shape (n,).
      dtype: the dtype of x.
    """
    from scipy.sparse import csr_matrix, linalg  # pyright: ignore[reportMissingTypeStubs]

    buffers = tuple(map(np.asarray, (data, indices, indptr)))
    matrix = csr_matrix(buffers, shape=(b.size, b.size))
    solution = cast(NumPyArray, linalg.spsolve(matrix, np.asarray(b)))  # pyright: ignore[reportUnknownMemberType]
    return solution.astype(dtype)
