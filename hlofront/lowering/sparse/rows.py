"""Lowering rules of sparse arrays in compressed rows (BCSR), by those of coordinates."""

from hlofront.base.typing import Array, DType
from hlofront.lowering.core.formulas import by_tracing
from hlofront.lowering.sparse.elements import extract, fromdense, todense
from hlofront.lowering.sparse.products import dot_general_of_sparse
from hlofront.primitives.sparse import rows as s
from hlofront.primitives.sparse.layout import SparseInfo, common_batch, with_batch
from hlofront.primitives.sparse.products import Numbers


@by_tracing(s.bcsr_todense_p)
def dense_of_rows(data: Array, indices: Array, indptr: Array, *, spinfo: SparseInfo) -> Array:
    """Return the dense array of compressed rows."""
    coordinates = s.indices_of_rows(*_of_one_batch(indices, indptr))
    return todense(data, coordinates, spinfo=spinfo)


@by_tracing(s.bcsr_extract_p)
def elements_of_rows(indices: Array, indptr: Array, array: Array) -> Array:
    """Return the elements of a dense array at the positions of compressed rows."""
    coordinates = s.indices_of_rows(*_of_one_batch(indices, indptr))
    return extract(coordinates, array, assume_unique=True)


@by_tracing(s.bcsr_fromdense_p)
def rows_of_dense(
    mat: Array, *, nse: int, n_batch: int, n_dense: int, index_dtype: DType
) -> list[Array]:
    """Return the compressed rows of a dense array."""
    data, indices = fromdense(
        mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype
    )
    return [data, *s.rows_of_indices(indices, mat.shape[n_batch])]


@by_tracing(s.bcsr_dot_general_p)
def product_of_rows(
    data: Array,
    indices: Array,
    indptr: Array,
    rhs: Array,
    *,
    dimension_numbers: Numbers,
    preferred_element_type: DType | None,
    lhs_spinfo: SparseInfo,
) -> Array:
    """Return a product of compressed rows and a dense array."""
    return dot_general_of_sparse(
        data,
        s.indices_of_rows(*_of_one_batch(indices, indptr)),
        rhs,
        dimension_numbers=dimension_numbers,
        preferred_element_type=preferred_element_type,
        lhs_spinfo=lhs_spinfo,
    )


def _of_one_batch(indices: Array, indptr: Array) -> tuple[Array, Array]:
    """Return columns and row pointers with equal batch sizes."""
    batch = common_batch(indices.shape, indptr.shape, n_batch=indices.ndim - 1)
    return with_batch(indices, batch), with_batch(indptr, batch)
