"""Primitives of sparse matrices in coordinates (COO) and in compressed rows (CSR), unbatched."""

from collections.abc import Callable, Mapping
from typing import Any

from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, DType, Shape
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer
from hlofront.core.symbolic_zeros import Cotangents, Dual, Duals, Operand, Tangent, Tangents, Zero
from hlofront.core.trace import process
from hlofront.primitives.arrays.shaping import expand_dims
from hlofront.primitives.arrays.slicing import concatenate
from hlofront.primitives.linalg.dot_general import dot_general
from hlofront.primitives.rules.derivatives import add_tangents, is_linear, known
from hlofront.primitives.sparse.elements import no_tangent
from hlofront.primitives.sparse.layout import columns, read_at
from hlofront.primitives.sparse.rows import indices_of_rows


class COOInfo(NamedTuple):
    """A COO matrix's description in parameters of equations, which hold no buffers.

    Attributes:
      shape: the shape of the matrix.
      rows_sorted: whether the row indices ascend.
      cols_sorted: whether the column indices ascend.
    """

    shape: Shape
    rows_sorted: bool = False
    cols_sorted: bool = False


coo_todense_p = Primitive("coo_todense")
coo_fromdense_p = Primitive("coo_fromdense", multiple_results=True)
coo_matvec_p = Primitive("coo_matvec")
coo_matmat_p = Primitive("coo_matmat")
csr_todense_p = Primitive("csr_todense")
csr_fromdense_p = Primitive("csr_fromdense", multiple_results=True)
csr_matvec_p = Primitive("csr_matvec")
csr_matmat_p = Primitive("csr_matmat")


class MatrixFormat(NamedTuple):
    """A format of sparse matrices, with one buffer of data and two of indices.

    Attributes:
      todense: the primitive to a dense matrix.
      fromdense: the primitive from a dense matrix.
      products: the primitives of products with a vector and with a matrix.
      coordinates: a function from the two buffers of indices to indices (nse, 2).
    """

    todense: Primitive
    fromdense: Primitive
    products: tuple[Primitive, Primitive]
    coordinates: Callable[[ArrayLike, ArrayLike], Array]


def _joined(row: ArrayLike, col: ArrayLike) -> Array:
    return concatenate([expand_dims(row, (1,)), expand_dims(col, (1,))], 1)


COO_FORMAT = MatrixFormat(coo_todense_p, coo_fromdense_p, (coo_matvec_p, coo_matmat_p), _joined)
CSR_FORMAT = MatrixFormat(
    csr_todense_p, csr_fromdense_p, (csr_matvec_p, csr_matmat_p), indices_of_rows
)
FORMATS = (COO_FORMAT, CSR_FORMAT)


def shape_of(params: Mapping[str, Any]) -> Shape:
    """Return the shape of the matrix that an equation's parameters describe."""
    return params["spinfo"].shape if "spinfo" in params else params["shape"]


def elements_at(matrix: ArrayLike, indices: ArrayLike) -> Array:
    """Return the elements of a dense matrix at positions (nse, 2)."""
    return read_at(matrix, indices, {}, (0, 1))


def _register(kind: MatrixFormat) -> None:
    """Register the rules of the primitives of a format."""

    @infer(kind.todense)
    def _(data: ShapedArray, *_: ShapedArray, **params: object) -> ShapedArray:
        return ShapedArray(shape_of(params), data.dtype)

    @rules.jvp(kind.todense)
    def _(primals: ArrayLikes, tangents: Tangents, **params: object) -> Dual:
        result = process(kind.todense, tuple(primals), params)
        if type(tangents[0]) is Zero:
            return result, Zero.of(result)
        return result, process(kind.todense, (tangents[0], *primals[1:]), params)

    @rules.transpose(kind.todense)
    def _(cotangent: ArrayLike, data: Operand, *buffers: ArrayLike, **_: object) -> Cotangents:
        return [elements_at(cotangent, kind.coordinates(*buffers)), None, None]

    @infer(kind.fromdense)
    def _(mat: ShapedArray, *, nse: int, index_dtype: DType) -> list[ShapedArray]:
        of_rows = nse if kind is COO_FORMAT else mat.shape[0] + 1
        first, second = ShapedArray((nse,), index_dtype), ShapedArray((of_rows,), index_dtype)
        return [ShapedArray((nse,), mat.dtype), first, second]

    @rules.jvp(kind.fromdense)
    def _(primals: ArrayLikes, tangents: Tangents, **params: object) -> Duals:
        data, *buffers = process(kind.fromdense, tuple(primals), params)
        tangent: Tangent = Zero.of(data)
        if type(tangents[0]) is not Zero:
            tangent = elements_at(tangents[0], kind.coordinates(*buffers))
        return [data, *buffers], [tangent, *map(no_tangent, buffers)]

    for product in kind.products:
        _register_product(kind, product)


def _register_product(kind: MatrixFormat, product: Primitive) -> None:
    """Register the rules of the product of a format with a vector or a matrix."""

    @infer(product)
    def _(
        data: ShapedArray,
        first: ShapedArray,
        second: ShapedArray,
        v: ShapedArray,
        *,
        transpose: bool,
        **params: object,
    ) -> ShapedArray:
        rows, width = shape_of(params)[::-1] if transpose else shape_of(params)
        assert v.shape[0] == width, (
            f"{product}: a matrix of {width} columns is multiplied by {width} rows, got "
            f"{v.str_short()}"
        )
        assert data.dtype == v.dtype, (
            f"{product}: factors have one dtype, got {data.dtype} and {v.dtype}"
        )
        return ShapedArray((rows, *v.shape[1:]), data.dtype)

    @rules.jvp(product)
    def _(primals: ArrayLikes, tangents: Tangents, **params: object) -> Dual:
        data, *buffers, v = primals
        result = process(product, tuple(primals), params)
        tangent: Tangent = Zero.of(result)
        if type(tangents[0]) is not Zero:
            tangent = process(product, (tangents[0], *buffers, v), params)
        if type(tangents[3]) is not Zero:
            share = process(product, (data, *buffers, tangents[3]), params)
            tangent = add_tangents(tangent, share)
        return result, tangent

    @rules.transpose(product)
    def _(
        cotangent: ArrayLike,
        data: Operand,
        first: ArrayLike,
        second: ArrayLike,
        v: Operand,
        *,
        transpose: bool,
        **params: object,
    ) -> Cotangents:
        if not is_linear(data):
            params |= {"transpose": not transpose}
            return [None, None, None, process(product, (data, first, second, cotangent), params)]
        indices = kind.coordinates(first, second)
        row, col = (1, 0) if transpose else (0, 1)
        ours = read_at(cotangent, columns(indices, (row,)), {}, (0,))
        theirs = read_at(known(v), columns(indices, (col,)), {}, (0,))
        summed = tuple(range(1, typeof(theirs).ndim))
        numbers = ((summed, summed), ((0,), (0,)))
        return [dot_general(ours, theirs, numbers), None, None, None]


for _kind in FORMATS:
    _register(_kind)
