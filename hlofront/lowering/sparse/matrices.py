"""Lowering rules of sparse matrices (COO, CSR), by those of batched sparse arrays."""

from hlofront.base.typing import Array, DType
from hlofront.lowering.core.formulas import by_tracing
from hlofront.lowering.sparse import elements
from hlofront.lowering.sparse.products import dot_general_of_sparse
from hlofront.primitives.arrays.creation import full
from hlofront.primitives.arrays.shaping import squeeze
from hlofront.primitives.elementwise.compare import lt, select
from hlofront.primitives.sparse import matrices as s
from hlofront.primitives.sparse.layout import SparseInfo, columns
from hlofront.primitives.sparse.rows import rows_of_indices


def _lower(kind: s.MatrixFormat) -> None:
    """Register the lowering rules of the primitives of a format."""

    @by_tracing(kind.todense)
    def todense(data: Array, first: Array, second: Array, **params: object) -> Array:
        info = SparseInfo(s.shape_of(params))
        return elements.todense(data, kind.coordinates(first, second), spinfo=info)

    for primitive in kind.products:

        @by_tracing(primitive)
        def product(
            data: Array, first: Array, second: Array, v: Array, *, transpose: bool, **params: object
        ) -> Array:
            return dot_general_of_sparse(
                data,
                kind.coordinates(first, second),
                v,
                dimension_numbers=(((0 if transpose else 1,), (0,)), ((), ())),
                preferred_element_type=None,
                lhs_spinfo=SparseInfo(s.shape_of(params)),
            )


for _kind in s.FORMATS:
    _lower(_kind)


def _elements(mat: Array, nse: int, index_dtype: DType) -> tuple[Array, Array]:
    """Return data and BCOO indices of a dense matrix."""
    data, indices = elements.fromdense(mat, nse=nse, n_batch=0, n_dense=0, index_dtype=index_dtype)
    return data, indices


def _zero_padding(x: Array, indices: Array, n_rows: int) -> Array:
    """Return indices with zeros where the row is out of bounds, as these formats pad."""
    rows = squeeze(columns(indices, (0,)), (1,))
    inside = lt(rows, full(rows.shape, n_rows, rows.dtype))
    return select(inside, x, full(x.shape, 0, x.dtype))


@by_tracing(s.coo_fromdense_p)
def coordinates_of_dense(mat: Array, *, nse: int, index_dtype: DType) -> list[Array]:
    """Return data, rows and columns of the first `nse` nonzero elements of a matrix."""
    data, indices = _elements(mat, nse, index_dtype)
    row, col = (squeeze(columns(indices, (i,)), (1,)) for i in range(2))
    return [data, *[_zero_padding(x, indices, mat.shape[0]) for x in (row, col)]]


@by_tracing(s.csr_fromdense_p)
def rows_of_dense(mat: Array, *, nse: int, index_dtype: DType) -> list[Array]:
    """Return data, columns and row starts of the first `nse` nonzero elements of a matrix."""
    data, indices = _elements(mat, nse, index_dtype)
    col, indptr = rows_of_indices(indices, mat.shape[0])
    return [data, _zero_padding(col, indices, mat.shape[0]), indptr]
