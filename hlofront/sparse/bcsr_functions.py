"""Functions of sparse arrays in batched compressed rows: products, shapes, duplicates."""

from collections.abc import Sequence

from hlofront.base.boundary import boundary
from hlofront.base.typing import Array, ArrayLike, DTypeLike
from hlofront.core.trace import process
from hlofront.numpy.arrays.creation import asarray
from hlofront.primitives.linalg.contraction_numbers import DotDimensionNumbers
from hlofront.primitives.linalg.dot_general import canonical_element_type, dot_general
from hlofront.primitives.sparse import rows as sparse_rows
from hlofront.sparse.arrays import JAXSparse
from hlofront.sparse.bcoo import bcoo_sum_duplicates
from hlofront.sparse.bcoo_products import canonical_numbers
from hlofront.sparse.bcoo_shaping import bcoo_broadcast_in_dim, bcoo_concatenate
from hlofront.sparse.bcsr import BCSR


@boundary
def bcsr_extract(indices: ArrayLike, indptr: ArrayLike, mat: ArrayLike) -> Array:
    """Return the elements of a dense array at the positions of compressed rows, as BCSR data.

    Args:
      indices: columns, of shape (*batch, nse).
      indptr: row starts, of shape (*batch, rows + 1).
      mat: a dense array of shape (*batch, rows, columns, *dense).
    """
    operands = asarray(indices), asarray(indptr), asarray(mat)
    return process(sparse_rows.bcsr_extract_p, operands, {})


@boundary
def bcsr_dot_general(
    lhs: BCSR | ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers,
    precision: None = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: None = None,
) -> Array:
    """Contract a BCSR array with a dense array.

    Args:
      lhs: an array of two sparse axes, perhaps with batch axes.
      rhs: a dense array.
      dimension_numbers: ((contracting axes of lhs, of rhs), (batch axes of lhs, of rhs)).
      precision: has no effect: products of stored elements are summed up one by one.
      preferred_element_type: the dtype of the sums and of the result.
      out_sharding: must be None.

    Returns:
      A dense array.

    Raises:
      NotImplementedError: if `rhs` is sparse.
    """
    if not isinstance(lhs, JAXSparse) and not isinstance(rhs, JAXSparse):
        return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)
    if not isinstance(lhs, BCSR) or isinstance(rhs, JAXSparse):
        raise NotImplementedError(  # JAX raises this class.
            "bcsr_dot_general currently implemented for BCSR lhs and ndarray rhs."
        )
    params = {
        "dimension_numbers": canonical_numbers(dimension_numbers),
        "preferred_element_type": canonical_element_type(
            preferred_element_type, "bcsr_dot_general"
        ),
        "lhs_spinfo": lhs._info,
    }
    return process(sparse_rows.bcsr_dot_general_p, (*lhs._bufs, asarray(rhs)), params)


@boundary
def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """Return a BCSR array with each position once, in order, and the sums of its elements.

    Args:
      mat: the array.
      nse: the number of stored positions; further ones are dropped. None is as many as needed, a
        number that is not known while tracing.

    Raises:
      ValueError: if `nse` is None while tracing.
    """
    return BCSR.from_bcoo(bcoo_sum_duplicates(mat.to_bcoo(), nse=nse))


@boundary
def bcsr_broadcast_in_dim(
    mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: None = None
) -> BCSR:
    """Return a BCSR array with new batch or dense axes, and such axes of size 1 repeated.

    Args:
      mat: the array.
      shape: the shape of the result.
      broadcast_dimensions: for each axis of the array, the axis of the result that it becomes.
      sharding: must be None.

    Raises:
      ValueError: if there is not one entry of `broadcast_dimensions` per axis.
    """
    broadcast = bcoo_broadcast_in_dim(
        mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions
    )
    return BCSR.from_bcoo(broadcast)


@boundary
def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Join BCSR arrays along a batch axis or a sparse axis.

    Args:
      operands: BCSR arrays of equal dtype, with equal sizes along the other axes.
      dimension: the axis, a batch or a sparse axis.

    Raises:
      ValueError: if there are no arrays, or the roles of their axes differ.
      TypeError: if dtypes or shapes differ, or the axis is out of range.
      NotImplementedError: for a dense axis.
    """
    joined = bcoo_concatenate([mat.to_bcoo() for mat in operands], dimension=dimension)
    return BCSR.from_bcoo(joined)
