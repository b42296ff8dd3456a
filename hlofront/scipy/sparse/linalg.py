"""hlofront.scipy.sparse.linalg: iterative solvers of linear systems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np

import hlofront.numpy as jnp
from hlofront.base import tree
from hlofront.base.choices import check_choice
from hlofront.base.dtypes import finfo
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import is_value, typeof
from hlofront.higher_order.control_flow.library_loops import fori_loop, while_loop
from hlofront.higher_order.custom_rules.linear_solve import custom_linear_solve
from hlofront.numpy.arrays.raveling import ravel_pytree
from hlofront.numpy.linalg.decompositions import qr
from hlofront.numpy.support.promotion import promote_own_dtypes
from hlofront.primitives.elementwise import elementwise
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.linalg.dot_general import Precision, dot_general
from hlofront.primitives.linalg.solving import triangular_solve
from hlofront.runtime.dispatch.eval_shape import eval_shape
from hlofront.transforms.linear_transpose import linear_transpose

__all__ = ["bicgstab", "cg", "gmres"]
__dir__ = dir_of(__name__)

# ---- pytrees as vectors --------------------------------------------------------------------------

_map = tree.tree_map
# A vector of the linear system: a pytree of arrays.
Vector: TypeAlias = Any
# A linear function from vectors to vectors.
Operator: TypeAlias = Callable[[Vector], Vector]


class SupportsMatmul(Protocol):
    """A matrix of a user's class, applied to a vector by `@`."""

    @property
    def shape(self) -> Sequence[int]: ...

    def __matmul__(self, other: Vector, /) -> Vector: ...


# A linear operator as users pass it: an array, an object with `@`, or a function.
Matrix: TypeAlias = ArrayLike | SupportsMatmul | Operator


def _plus(x: Vector, y: Vector) -> Vector:
    return _map(elementwise.add, x, y)


def _minus(x: Vector, y: Vector) -> Vector:
    return _map(elementwise.sub, x, y)


def _times(factor: Array, x: Vector) -> Vector:
    def product(leaf: Array) -> Array:
        own, other = promote_own_dtypes(factor, leaf)
        return (own * other).astype(typeof(leaf).dtype)

    return _map(product, x)


def _product(x: Vector, y: Vector) -> Array:
    """Return the inner product of two pytrees of arrays; the elements of x are conjugated."""
    parts = _map(lambda a, b: jnp.vdot(a, b, precision=Precision.HIGHEST), x, y)
    return sum(tree.tree_leaves(parts))


def _squared_norm(x: Vector) -> Array:
    return jnp.real(_product(x, x))


def _identity(x: Vector) -> Vector:
    """Return the vector unchanged: the preconditioner of systems that have no other."""
    return x


def _operator(A: Matrix) -> Operator:
    """Return a matrix, an object with `@` or a function as a linear function."""
    if callable(A):
        return A
    is_matrix = is_value(A) and not isinstance(A, bool | int | float | complex)
    if not is_matrix and not (hasattr(A, "shape") and hasattr(A, "__matmul__")):
        raise TypeError(
            f"linear operator must be either a function or ndarray: {A}. Give a function, a "
            "matrix, or an object with `shape` and `@`."
        )
    shape = tuple(typeof(A).shape if is_matrix else A.shape)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"linear operator must be a square matrix, but has shape: {shape}")
    if is_matrix:
        return partial(jnp.matmul, A, precision=Precision.HIGHEST)
    return lambda x: A @ x


def _shapes(x: Vector) -> list[tuple[int, ...]]:
    return [typeof(leaf).shape for leaf in tree.tree_leaves(x)]


def _solve(
    method: Callable[..., Vector],
    A: Matrix,
    b: Vector,
    x0: Vector,
    M: Matrix | None,
    symmetric: bool,
    limits: dict[str, object],
) -> Vector:
    """Solve A x = b by `method`; the derivative rules solve another system with equal limits."""
    matvec, preconditioner = _operator(A), _identity if M is None else _operator(M)
    b = _map(jnp.asarray, b)
    x0 = _map(jnp.zeros_like, b) if x0 is None else _map(jnp.asarray, x0)
    if tree.tree_structure(x0) != tree.tree_structure(b):
        raise ValueError(
            "x0 and b must have matching tree structure: "
            f"{tree.tree_structure(x0)} vs {tree.tree_structure(b)}"
        )
    if _shapes(x0) != _shapes(b):
        raise ValueError(
            f"arrays in x0 and b must have matching shapes: {_shapes(x0)} vs {_shapes(b)}"
        )
    for leaf in tree.tree_leaves(b):
        if not jnp.issubdtype(typeof(leaf).dtype, np.inexact):
            raise TypeError(
                f"linear systems are solved in floats, got b of {typeof(leaf).dtype}: convert it"
            )
    made = eval_shape(matvec, b)
    if _shapes_of(made) != _shapes(b):
        raise ValueError(
            f"matvec() output shapes must match b, got {_shapes_of(made)} and {_shapes(b)}"
        )

    def solve(operator: Operator, right: Vector) -> Vector:
        return method(operator, right, x0=x0, M=preconditioner, **limits)

    def transpose_solve(operator: Operator, right: Vector) -> Vector:
        # The transpose of an approximate inverse of A is an approximate inverse of A transposed.
        better = preconditioner if M is None else _transposed(preconditioner, right)
        start = _map(jnp.zeros_like, right)
        return method(operator, right, x0=start, M=better, **limits)

    x = custom_linear_solve(
        matvec,
        b,
        solve=solve,
        transpose_solve=None if symmetric else transpose_solve,
        symmetric=symmetric,
    )
    if symmetric or not any(typeof(leaf).weak_type for leaf in tree.tree_leaves(b)):
        return x
    # The solution is weakly typed where the operands and the matrix are, as in JAX.
    leaves = tree.tree_leaves((b, x0, made))
    weak = all(typeof(leaf).weak_type for leaf in leaves)
    return _map(lambda leaf: convert(leaf, typeof(leaf).dtype, weak), x)


def _transposed(preconditioner: Operator, like: Vector) -> Operator:
    """Return the transpose of a preconditioner, or the preconditioner if it has no transpose."""
    transposed = linear_transpose(preconditioner, like)
    try:
        eval_shape(transposed, like)
    except (NotImplementedError, TypeError, ValueError):
        # The preconditioner affects only convergence: the solution is equal within the tolerance.
        return preconditioner
    return lambda x: transposed(x)[0]


def _shapes_of(avals: Vector) -> list[tuple[int, ...]]:
    return [tuple(leaf.shape) for leaf in tree.tree_leaves(avals)]


def _count(b: Vector, maxiter: int | None) -> int:
    sizes = [int(np.prod(shape, dtype=np.int64)) for shape in _shapes(b)]
    return 10 * sum(sizes) if maxiter is None else maxiter


def _small_enough(b: Vector, tol: float, atol: float) -> Array:
    """Return the squared residual norm at which the search ends."""
    squares = _squared_norm(b)
    return jnp.maximum(jnp.square(tol) * squares, jnp.square(atol)).astype(typeof(squares).dtype)


# ---- conjugate gradients -------------------------------------------------------------------------


def _cg(
    A: Operator, b: Vector, *, x0: Vector, M: Operator, tol: float, atol: float, maxiter: int
) -> Vector:
    tolerance = _small_enough(b, tol, atol)

    def going(state: tuple[Vector, ...]) -> Array:
        _, residual, _, size, count = state
        # Without a preconditioner the state holds the squared norm already.
        squares = size if M is _identity else _squared_norm(residual)
        return (squares > tolerance) & (count < maxiter)

    def body(state: tuple[Vector, ...]) -> tuple[Vector, ...]:
        x, residual, direction, size, count = state
        image = A(direction)
        step = size / jnp.real(_product(direction, image)).astype(typeof(size).dtype)
        x = _plus(x, _times(step, direction))
        residual = _minus(residual, _times(step, image))
        better = M(residual)
        new = jnp.real(_product(residual, better)).astype(typeof(size).dtype)
        direction = _plus(better, _times(new / size, direction))
        return x, residual, direction, new, count + 1

    residual = _minus(b, A(x0))
    direction = M(residual)
    size = jnp.real(_product(residual, direction))
    x, *_ = while_loop(going, body, (x0, residual, direction, size, 0))
    return x


def cg(
    A: Matrix,
    b: Vector,
    x0: Vector = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Matrix | None = None,
) -> tuple[Vector, None]:
    """Solve A x = b for hermitian positive definite A by conjugate gradients.

    The method is that of Hestenes and Stiefel (1952), with a preconditioner. Derivatives, of `b`
    and of what `A` closes over, solve one more system.

    Args:
      A: a square matrix, an object with `shape` and `@`, or a linear function of pytrees like `b`.
      b: the right-hand side: a pytree of arrays of floats or complex numbers.
      x0: the first vector, zeros by default.
      tol: the bound on the norm of the residual, divided by that of `b`.
      atol: the bound on the norm of the residual itself; the greater of both bounds counts.
      maxiter: the greatest number of steps, ten for each element by default.
      M: an approximation of the inverse of `A`, as a matrix, an object or a function.

    Returns:
      (solution, None).

    Raises:
      ValueError: if shapes or structures do not fit.
      TypeError: if `A` or `M` is neither matrix nor function, or `b` is of integers.
    """
    limits = {"tol": tol, "atol": atol, "maxiter": _count(b, maxiter)}
    return _solve(_cg, A, b, x0, M, True, limits), None


# ---- BiCGStab ------------------------------------------------------------------------------------


def _bicgstab(
    A: Operator, b: Vector, *, x0: Vector, M: Operator, tol: float, atol: float, maxiter: int
) -> Vector:
    tolerance = _small_enough(b, tol, atol)
    shadow = _minus(b, A(x0))
    one = jnp.ones_like(_product(b, b))

    def going(state: tuple[Vector, ...]) -> Array:
        _, residual, _, _, _, _, _, count = state
        # A negative count marks a breakdown of the method.
        return (_squared_norm(residual) > tolerance) & (count < maxiter) & (count >= 0)

    def body(state: tuple[Vector, ...]) -> tuple[Vector, ...]:
        x, residual, alpha, omega, rho, direction, image, count = state
        new = _product(shadow, residual)
        beta = new / rho * alpha / omega
        direction = _plus(residual, _times(beta, _minus(direction, _times(omega, image))))
        better = M(direction)
        image = A(better)
        alpha = new / _product(shadow, image)
        half = _minus(residual, _times(alpha, image))
        enough = _squared_norm(half) < tolerance
        better_half = M(half)
        other = A(better_half)
        omega = _product(other, half) / _product(other, other)
        omega = jnp.where(enough, jnp.zeros_like(omega), omega)
        # For a residual of zero the quotient is NaN, and is not used.
        stay = jnp.where(enough, 0, 1)
        moved = _map(
            lambda step: jnp.where(enough, jnp.zeros_like(step), step), _times(omega, better_half)
        )
        x = _plus(_plus(x, _times(alpha, better)), moved)
        residual = _map(
            lambda part, step: jnp.where(enough, part, part - step), half, _times(omega, other)
        )
        broken = ((omega == 0) & (stay == 1)) | (alpha == 0) | (new == 0)
        count = jnp.where(broken, -1, count + 1)
        return x, residual, alpha, omega, new, direction, image, count

    zeros = _map(jnp.zeros_like, b)
    state = (x0, shadow, one, one, one, zeros, zeros, 0)
    x, *_ = while_loop(going, body, state)
    return x


def bicgstab(
    A: Matrix,
    b: Vector,
    x0: Vector = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Matrix | None = None,
) -> tuple[Vector, None]:
    """Solve A x = b by stabilized biconjugate gradients: van der Vorst (1992).

    Derivatives, of `b` and of what `A` closes over, solve one more system.

    Args:
      A: a square matrix, an object with `shape` and `@`, or a linear function of pytrees like `b`.
      b: the right-hand side: a pytree of arrays of floats or complex numbers.
      x0: the first vector, zeros by default.
      tol: the bound on the norm of the residual, divided by that of `b`.
      atol: the bound on the norm of the residual itself; the greater of both bounds counts.
      maxiter: the greatest number of steps, ten for each element by default.
      M: an approximation of the inverse of `A`, as a matrix, an object or a function.

    Returns:
      (solution, None).

    Raises:
      ValueError: if shapes or structures do not fit.
      TypeError: if `A` or `M` is neither matrix nor function, or `b` is of integers.
    """
    limits = {"tol": tol, "atol": atol, "maxiter": _count(b, maxiter)}
    return _solve(_bicgstab, A, b, x0, M, False, limits), None


# ---- GMRES ---------------------------------------------------------------------------------------


def _orthogonalized(basis: Array, vector: Array) -> tuple[Array, Array]:
    """Return the components of a vector along a basis's rows, and the orthogonal remainder.

    The projection is done twice, so that the rest is orthogonal to the dtype's precision.
    """
    shares = jnp.zeros((typeof(basis).shape[0],), typeof(basis).dtype)
    for _ in range(2):
        numbers = (((1,), (0,)), ((), ()))
        along = dot_general(jnp.conj(basis), vector, numbers, precision=Precision.HIGHEST)
        numbers = (((0,), (0,)), ((), ()))
        vector = vector - dot_general(along, basis, numbers, precision=Precision.HIGHEST)
        shares = shares + along
    return shares, vector


def _unit(vector: Array, least: ArrayLike = 0.0) -> tuple[Array, Array]:
    """Return the unit vector and the norm of a vector; zeros if the norm is `least` or less."""
    length = jnp.sqrt(jnp.sum(jnp.square(jnp.abs(vector))))
    there = length > least
    divided = vector / jnp.where(there, length, 1).astype(typeof(vector).dtype)
    return jnp.where(there, divided, 0), jnp.where(there, length, 0)


def _gmres_cycle(
    A: Callable[[Array], Array],
    x: Array,
    residual: Array,
    restart: int,
    tolerance: Array,
    stops: bool,
) -> Array:
    """Return the least-residual solution in the residual's Krylov space, by an Arnoldi basis."""
    dtype = typeof(residual).dtype
    eps = float(finfo(dtype).eps)
    first, beta = _unit(residual)
    basis = jnp.zeros((restart + 1, typeof(residual).shape[0]), dtype).at[0].set(first)
    # Where the space is exhausted, diagonal ones make the remaining unknowns zero.
    matrix = jnp.eye(restart, restart + 1, dtype=dtype)
    right = jnp.zeros((restart + 1,), dtype).at[0].set(beta.astype(dtype))

    def extend(count: Array, basis: Array, matrix: Array) -> tuple[Array, Array]:
        image = A(basis[count])
        before = jnp.sqrt(jnp.sum(jnp.square(jnp.abs(image))))
        shares, rest = _orthogonalized(basis, image)
        vector, length = _unit(rest, 10 * eps * before)
        basis = basis.at[count + 1].set(vector)
        row = shares.at[count + 1].set(length.astype(dtype))
        there = jnp.any(basis[count] != 0)
        return basis, matrix.at[count].set(jnp.where(there, row, matrix[count]))

    def least_squares(matrix: Array) -> Array:
        q, r = qr(matrix.T)
        projected = jnp.matmul(jnp.conj(q.T), right, precision=Precision.HIGHEST)
        diagonal = jnp.diagonal(r)
        # A singular operator gives rows of zeros.
        r = r + jnp.diag(jnp.where(diagonal == 0, 1, 0).astype(dtype))
        return triangular_solve(r, projected[:, None], left_side=True)[:, 0]

    if stops:
        # Columns are added one by one until the residual is small enough.
        def going(state: tuple[Array, Array, Array, Array]) -> Array:
            _, _, size, count = state
            return (count < restart) & (size > tolerance)

        def body(state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
            basis, matrix, _, count = state
            basis, matrix = extend(count, basis, matrix)
            earlier = jnp.arange(restart) <= count
            shares = jnp.where(earlier, least_squares(matrix), 0)
            missing = right - jnp.matmul(matrix.T, shares, precision=Precision.HIGHEST)
            size = jnp.sqrt(jnp.sum(jnp.square(jnp.abs(missing))))
            return basis, matrix, size, count + 1

        basis, matrix, _, count = while_loop(going, body, (basis, matrix, beta, 0))
        shares = jnp.where(jnp.arange(restart) < count, least_squares(matrix), 0)
    else:
        basis, matrix = fori_loop(0, restart, lambda i, state: extend(i, *state), (basis, matrix))
        shares = least_squares(matrix)
    return x + jnp.matmul(shares, basis[:-1], precision=Precision.HIGHEST)


def _gmres(
    A: Operator,
    b: Vector,
    *,
    x0: Vector,
    M: Operator,
    tol: float,
    atol: float,
    maxiter: int,
    restart: int,
    stops: bool,
) -> Vector:
    flat_b, unravel = ravel_pytree(b)
    flat_x0, _ = ravel_pytree(x0)
    size = typeof(flat_b).shape[0]
    restart = min(restart, size)
    if not size:
        return b

    def residual_of(x: Array) -> Array:
        return ravel_pytree(M(_minus(b, A(unravel(x)))))[0]

    def operator(x: Array) -> Array:
        return ravel_pytree(M(A(unravel(x))))[0]

    tolerance = jnp.sqrt(_small_enough(b, tol, atol))
    # Preconditioned residuals are compared with the preconditioned right-hand side.
    plain, better = jnp.sqrt(_squared_norm(b)), jnp.sqrt(_squared_norm(M(b)))
    tolerance = tolerance * better / jnp.where(plain > 0, plain, 1)

    def length(x: Array) -> Array:
        return jnp.sqrt(jnp.sum(jnp.square(jnp.abs(x))))

    def going(state: tuple[Array, Array, Array]) -> Array:
        _, residual, count = state
        return (length(residual) > tolerance) & (count < maxiter)

    def body(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, residual, count = state
        x = _gmres_cycle(operator, x, residual, restart, tolerance, stops)
        return x, residual_of(x), count + 1

    x, _, _ = while_loop(going, body, (flat_x0, residual_of(flat_x0), 0))
    return unravel(x)


def gmres(
    A: Matrix,
    b: Vector,
    x0: Vector = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Matrix | None = None,
    solve_method: str = "batched",
) -> tuple[Vector, Array]:
    """Solve A x = b by the generalized minimal residual method: Saad and Schultz (1986).

    Derivatives, of `b` and of what `A` closes over, solve one more system.

    Args:
      A: a square matrix, an object with `shape` and `@`, or a linear function of pytrees like `b`.
      b: the right-hand side: a pytree of arrays of floats or complex numbers.
      x0: the first vector, zeros by default.
      tol: the bound on the norm of the residual, divided by that of `b`.
      atol: the bound on the norm of the residual itself; the greater of both bounds counts.
      restart: the dimension of the space of solutions at which the search restarts.
      maxiter: the greatest number of restarts, ten for each element by default.
      M: an approximation of the inverse of `A`, as a matrix, an object or a function.
      solve_method: "batched", which builds the whole space before it computes the residual; or
        "incremental", which computes the residual after each step.

    Returns:
      (solution, status), where the status is 1 if the solution has a NaN, else 0.

    Raises:
      ValueError: if shapes or structures do not fit, or there is no such method.
      TypeError: if `A` or `M` is neither matrix nor function, or `b` is of integers.
    """
    check_choice("gmres", "solve_method", solve_method, ("incremental", "batched"))
    limits = {"tol": tol, "atol": atol, "maxiter": _count(b, maxiter), "restart": restart}
    limits["stops"] = solve_method == "incremental"
    x = _solve(_gmres, A, b, x0, M, False, limits)
    bad = [jnp.any(jnp.isnan(leaf)) for leaf in tree.tree_leaves(x)]
    failed = jnp.any(jnp.stack(bad)) if bad else jnp.zeros((), bool)
    return x, jnp.where(failed, 1, 0)
