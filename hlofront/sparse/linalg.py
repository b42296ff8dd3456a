"""Sparse linear algebra: eigenvectors by LOBPCG, and the direct solution of linear systems."""

from collections.abc import Callable

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import finfo
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.trace import process
from hlofront.higher_order.control_flow.library_loops import while_loop
from hlofront.numpy.arrays.creation import asarray
from hlofront.numpy.arrays.joining import concatenate
from hlofront.numpy.elementwise.ufuncs import abs as absolute
from hlofront.numpy.elementwise.ufuncs import sqrt
from hlofront.numpy.indexing.selecting import where
from hlofront.numpy.linalg.decompositions import eigh
from hlofront.numpy.linalg.norms import norm
from hlofront.numpy.products.matrices import diag
from hlofront.numpy.statistics.reductions import all as array_all
from hlofront.numpy.statistics.reductions import max as array_max
from hlofront.primitives.linalg.dot_general import Precision, dot_general
from hlofront.primitives.sparse.solving import spsolve_p


@boundary
def spsolve(
    data: ArrayLike,
    indices: ArrayLike,
    indptr: ArrayLike,
    b: ArrayLike,
    tol: float = 1e-6,
    reorder: int = 1,
) -> Array:
    """Solve `A x = b`, where the square matrix A is sparse, by a direct method.

    On CPUs SciPy solves the system on the host, on GPUs cuSOLVER does.

    Args:
      data: the stored elements of A in compressed rows, of shape (nse,).
      indices: the columns of the elements.
      indptr: where each row begins and the last one ends, of shape (n + 1,).
      b: a vector of shape (n,), of the dtype of `data`.
      tol: the tolerance that decides whether A is singular, on GPUs.
      reorder: the order of elimination, from 0 to 3, on GPUs.

    Returns:
      x, of shape (n,); NaN if A is singular.

    Raises:
      ValueError: if shapes or dtypes do not fit, or `reorder` is unknown.
    """
    operands = tuple(map(asarray, (data, indices, indptr, b)))
    return process(spsolve_p, operands, {"tol": float(tol), "reorder": int(reorder)})


# ---- LOBPCG --------------------------------------------------------------------------------------

Operator = Callable[[Array], Array]


class _State(NamedTuple):
    """The state of LOBPCG.

    Attributes:
      count: the number of iterations so far.
      vectors: the approximate eigenvectors, orthonormal.
      directions: the last directions of the search, orthonormal to the vectors; or zeros.
      residuals: A X - X theta.
      values: the approximate eigenvalues, in descending order.
      converged: a mask of the eigenvalues that have converged.
    """

    count: int | Array
    vectors: Array
    directions: Array
    residuals: Array
    values: Array
    converged: Array


@boundary
def lobpcg_standard(
    A: Array | Operator, X: ArrayLike, m: int = 100, tol: ArrayLike | None = None
) -> tuple[Array, Array, Array]:
    """Compute the greatest eigenvalues of a Hermitian matrix, and their eigenvectors.

    The method is LOBPCG (Knyazev, "Toward the Optimal Preconditioned Eigensolver", 2001), without
    preconditioner, and with orthonormal bases as in Duersch et al., "A Robust and Efficient
    Implementation of LOBPCG" (2018).

    Args:
      A: a Hermitian matrix of shape (n, n), or a function that multiplies matrices of shape
        (n, k) by it.
      X: the initial vectors, of shape (n, k) with 0 < 5 k < n.
      m: the greatest number of iterations.
      tol: the relative tolerance of residuals; by default that of the dtype.

    Returns:
      The eigenvalues, of shape (k,) in descending order, the eigenvectors as columns, of shape
      (n, k), and the number of iterations.

    Raises:
      ValueError: if shapes or dtypes do not fit.
    """
    X = asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X has two axes, of the initial vectors as columns: got shape {X.shape}")
    n, k = X.shape
    if k == 0:
        raise ValueError(f"must have search dim > 0, got {k}")
    if k * 5 >= n:
        raise ValueError(f"expected search dim * 5 < matrix dim (got {k * 5}, {n})")
    if callable(A):
        operator: Operator = A
    else:
        matrix = asarray(A)
        if matrix.shape != (n, n):
            raise ValueError(f"A has shape {(n, n)} for X of shape {X.shape}: got {matrix.shape}")
        operator = lambda vectors: _product(matrix.astype(X.dtype), vectors)
        if matrix.dtype.kind == "c" and X.dtype.kind != "c":
            raise ValueError(f"A, X must have same dtypes (were {matrix.dtype}, {X.dtype})")
    product = operator(X)
    if product.shape != X.shape or product.dtype != X.dtype:
        raise ValueError(
            f"A maps {X.dtype}{list(X.shape)} to an array of the same type, got "
            f"{product.dtype}{list(product.shape)}"
        )
    epsilon = float(finfo(X.dtype).eps)
    bound = epsilon if tol is None else tol
    return _iterate(operator, X, m, bound, epsilon)


def _iterate(
    operator: Operator, X: Array, m: int, tol: ArrayLike, epsilon: float
) -> tuple[Array, Array, Array]:
    n, k = X.shape
    basis = _orthonormal(X, epsilon)
    values, weights = _ritz(operator, basis, k)
    vectors = _product(basis, weights)

    def measured(count: int | Array, vectors: Array, directions: Array, values: Array) -> _State:
        image = operator(vectors)
        residuals = image - vectors * values
        scale = norm(image, axis=0) + absolute(values)
        converged = norm(residuals, axis=0) < 10 * n * tol * scale
        return _State(count, vectors, directions, residuals, values, converged)

    def proceed(state: _State) -> Array:
        return (state.count < m) & ~array_all(state.converged)

    def step(state: _State) -> _State:
        search = concatenate([state.directions, state.residuals], axis=1)
        search = _orthonormal(_without(search, state.vectors), epsilon)
        search = _orthonormal(_without(search, state.vectors), epsilon)
        basis = concatenate([state.vectors, search], axis=1)
        values, weights = _ritz(operator, basis, k)
        vectors = _product(basis, weights)
        # The part of the step that leaves the old vectors is the next direction.
        directions = _without(_product(search, weights[k:]), vectors)
        return measured(state.count + 1, vectors, _orthonormal(directions, epsilon), values)

    start = measured(0, vectors, X * 0, values)
    end = while_loop(proceed, step, start)
    return end.values, end.vectors, end.count


def _product(x: Array, y: Array) -> Array:
    numbers = (((1,), (0,)), ((), ()))
    return dot_general(x, y, numbers, precision=Precision.HIGHEST)


def _gram(x: Array, y: Array) -> Array:
    """Return the inner products of the columns of x and of y."""
    return _product(x.conj().T, y)


def _without(x: Array, basis: Array) -> Array:
    """Return x without its part in the span of an orthonormal basis."""
    x = x - _product(basis, _gram(basis, x))
    return x - _product(basis, _gram(basis, x))


def _orthonormal(x: Array, epsilon: float) -> Array:
    """Return orthonormal vectors with the span of x, and zeros for those that depend on others.

    The method is by singular vectors of the Gram matrix: Stathopoulos & Wu, "A Block
    Orthogonalization Procedure with Constant Synchronization Requirements" (2002).
    """
    for _ in range(2):
        lengths = norm(x, axis=0)
        x = where(lengths > 0, x / where(lengths > 0, lengths, 1), 0)
        values, weights = eigh(_gram(x, x))
        floor = epsilon * values.shape[0] * array_max(absolute(values))
        inverse = where(values > floor, 1 / sqrt(where(values > floor, values, 1)), 0)
        x = _product(x, weights * inverse.astype(x.dtype))
    return x


def _ritz(operator: Operator, basis: Array, k: int) -> tuple[Array, Array]:
    """Return the k greatest eigenvalues of A in the span of a basis, and the weights of the basis.

    Zeros among the vectors of the basis have no weight.
    """
    image = _gram(basis, operator(basis))
    image = (image + image.conj().T) / 2
    empty = norm(basis, axis=0) < 0.5
    # Less than all eigenvalues, so that it is never among the largest.
    low = -2 * norm(image) - 1
    image = image + diag(where(empty, low, 0).astype(image.dtype))
    values, weights = eigh(image)
    weights = where(empty[:, None], 0, weights)
    return values[::-1][:k], weights[:, ::-1][:, :k]
