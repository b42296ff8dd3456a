"""The eigenvalues and eigenvectors of tridiagonal matrices."""

from __future__ import annotations

from functools import partial

import numpy as np

from hlofront.base.dtypes import finfo, is_complex
from hlofront.base.elements import host_number, int32
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.higher_order.control_flow.library_loops import scan, while_loop
from hlofront.higher_order.custom_rules.custom_jvp import custom_jvp
from hlofront.numpy.support.promotion import operands
from hlofront.primitives.arrays import creation
from hlofront.primitives.arrays.reducing import reduce_max, reduce_min, reduce_or, reduce_sum
from hlofront.primitives.arrays.shaping import broadcast_in_dim
from hlofront.primitives.arrays.slicing import pad, slice_in_dim
from hlofront.primitives.elementwise import compare
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import (
    abs,
    add,
    bitwise_and,
    div,
    max,
    mul,
    neg,
    real,
    sub,
)
from hlofront.primitives.linalg import spectral
from hlofront.primitives.linalg.matrices import (
    adjoint,
    along_columns,
    conjugate,
    identity,
    real_part,
)
from hlofront.runtime.dispatch.operation import operation


@operation(static_argnames=("eigvals_only", "first", "last"))
def _eigh_tridiagonal(
    d: ArrayLike, e: ArrayLike, tol: ArrayLike, *, eigvals_only: bool, first: int, last: int
) -> Array | tuple[Array, Array]:
    (d, e), (diagonal, off_diagonal) = operands("jax.scipy.linalg.eigh_tridiagonal", (d, e))
    if diagonal.dtype != off_diagonal.dtype:
        raise TypeError(
            "diagonal and off-diagonal values must have same dtype, got "
            f"{diagonal.dtype} and {off_diagonal.dtype}"
        )
    if diagonal.dtype not in (np.float32, np.float64, np.complex64, np.complex128):
        raise TypeError(
            "Only float32 and float64 inputs are supported as inputs to "
            f"jax.scipy.linalg.eigh_tridiagonal, got {diagonal.dtype} and {off_diagonal.dtype}"
        )
    n = diagonal.shape[-1]
    if diagonal.ndim != 1 or off_diagonal.shape != (n - 1 if n else 0,):
        raise TypeError(
            "eigh_tridiagonal requires vectors of n and n - 1 elements, got shapes "
            f"{diagonal.shape} and {off_diagonal.shape}"
        )
    if eigvals_only and n == 1:
        return slice_in_dim(real_part(d), first, last)
    if eigvals_only:
        tol = convert(tol, typeof(real_part(d)).dtype, False)
        return _values(d, e, tol, first, last)
    vectors, values = _dense(d, e)
    return slice_in_dim(values, first, last), slice_in_dim(vectors, first, last, axis=1)


def _dense(d: Array, e: Array) -> tuple[Array, Array]:
    """Return eigenvectors and eigenvalues of a tridiagonal matrix, expanded to a dense one."""
    (n,), dtype = typeof(d).shape, typeof(d).dtype
    diagonal = along_columns(convert(real_part(d), dtype, False), (n, n))
    ones = identity(dtype, (n, n))
    below = along_columns(pad(e, host_number(0, dtype), [(1, 0, 0)]), (n, n))
    rows = creation.broadcasted_iota(int32, (n, n), 0)
    columns = creation.broadcasted_iota(int32, (n, n), 1)
    under = compare.eq(sub(rows, np.int32(1)), columns)
    below = compare.select_n(under, creation.full_like(below, 0), below)
    # Both triangles are set: eigh reads only one, but its derivative rule needs both.
    whole = add(mul(diagonal, ones), add(below, adjoint(below)))
    return spectral.eigh(whole, symmetrize_input=False)


# ---- bisection -----------------------------------------------------------------------------------


@partial(custom_jvp, nondiff_argnums=(3, 4))
def _values(d: Array, e: Array, tol: Array, first: int, last: int) -> Array:
    """Return the eigenvalues of the indices `first` to `last` - 1, by bisection.

    The method is that of Barth, Martin and Wilkinson, "Calculation of the eigenvalues of a
    symmetric tridiagonal matrix by the method of bisection" (1967): the number of eigenvalues below
    a number is the number of negative ones among n quotients of Sturm's polynomials.
    """
    d, e = real_part(d), abs(e)
    (n,), dtype = typeof(d).shape, typeof(d).dtype
    if first >= last:
        return slice_in_dim(d, 0, 0)
    zero, limits = host_number(0, dtype), finfo(dtype)
    squares = pad(mul(e, e), zero, [(1, 0, 0)])
    # Gershgorin: each eigenvalue is within a row's off-diagonal sum of its diagonal element.
    radius = add(pad(e, zero, [(1, 0, 0)]), pad(e, zero, [(0, 1, 0)]))
    low = reduce_min(sub(d, radius), (0,))
    high = reduce_max(add(d, radius), (0,))
    norm = max(abs(low), abs(high))
    least = max(
        mul(reduce_max(squares, (0,)), host_number(limits.tiny, dtype)),
        host_number(limits.tiny, dtype),
    )
    margin = add(
        mul(norm, host_number(2 * n * float(limits.eps), dtype)), mul(least, host_number(2, dtype))
    )
    indices = creation.iota(int32, last - first)
    indices = add(indices, creation.full_like(indices, first))
    tol = max(tol, mul(norm, host_number(float(limits.eps) / 4, dtype)))

    def repeated(x: ArrayLike) -> Array:
        return broadcast_in_dim(x, (last - first,), ())

    def below(x: Array) -> Array:
        """Return the number of eigenvalues less than each element of x."""
        smallest = repeated(least)

        def step(
            carry: tuple[Array, Array], row: tuple[Array, Array]
        ) -> tuple[tuple[Array, Array], None]:
            quotient, count = carry
            own, square = row
            quotient = sub(sub(repeated(own), x), div(repeated(square), quotient))
            # Quotients are bounded away from zero, so that the next one does not overflow.
            tiny = compare.lt(abs(quotient), smallest)
            quotient = compare.select_n(tiny, quotient, neg(smallest))
            is_negative = compare.lt(quotient, creation.full_like(quotient, 0))
            return (quotient, add(count, convert(is_negative, int32, False))), None

        start = creation.full_like(x, 1), creation.full_like(indices, 0)
        return scan(step, start, (d, squares))[0][1]

    def middles(low: Array, high: Array) -> Array:
        return mul(add(low, high), repeated(host_number(0.5, dtype)))

    def cond(carry: tuple[Array, Array, Array]) -> Array:
        steps, low, high = carry
        width = reduce_max(sub(high, low), (0,))
        # An interval that contains no number between its ends cannot be halved.
        halves = middles(low, high)
        is_inside = bitwise_and(compare.gt(halves, low), compare.lt(halves, high))
        unfinished = bitwise_and(compare.gt(width, tol), reduce_or(is_inside, (0,)))
        return bitwise_and(unfinished, compare.lt(steps, np.int32(most)))

    def halve(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        steps, low, high = carry
        middle = middles(low, high)
        above = compare.gt(below(middle), indices)
        return (
            add(steps, np.int32(1)),
            compare.select_n(above, middle, low),
            compare.select_n(above, high, middle),
        )

    # After this many halvings the interval is as narrow as the dtype allows.
    most = limits.nmant + 8 + n.bit_length()
    start = np.int32(0), repeated(sub(low, margin)), repeated(add(high, margin))
    _, low, high = while_loop(cond, halve, start)
    return middles(low, high)


@_values.defjvp
def _(
    first: int, last: int, primals: tuple[Array, Array, Array], tangents: tuple[Array, Array, Array]
) -> tuple[Array, Array]:
    d, e, tol = primals
    d_tangent, e_tangent, _ = tangents
    vectors, _ = _dense(d, e)
    vectors = slice_in_dim(vectors, first, last, axis=1)
    n = typeof(d).shape[0]
    # The tangent of an eigenvalue is v^H dA v, with its eigenvector v and the tangent dA.
    squares = real_part(mul(conjugate(vectors), vectors))
    change = mul(along_columns(real_part(d_tangent), typeof(squares).shape), squares)
    change = reduce_sum(change, (0,))
    if n > 1:
        upper, lower = slice_in_dim(vectors, 0, n - 1), slice_in_dim(vectors, 1, n)
        off_diagonal = mul(
            along_columns(e_tangent, typeof(upper).shape), mul(conjugate(lower), upper)
        )
        off_diagonal = (
            real(off_diagonal) if is_complex(typeof(off_diagonal).dtype) else off_diagonal
        )
        change = add(
            change, mul(reduce_sum(off_diagonal, (0,)), host_number(2, typeof(change).dtype))
        )
    return _values(d, e, tol, first, last), change


def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: ArrayLike | None = None,
    key: object = None,
) -> Array | tuple[Array, Array]:
    """Compute eigenvalues, ascending, and eigenvectors of a Hermitian tridiagonal matrix.

    If only eigenvalues are requested, each is computed by bisection: k of them take O(k n) time.

    Args:
      d: the diagonal, of shape (n,).
      e: the diagonal below `d`, of shape (n - 1,).
      eigvals_only: whether to return only eigenvalues.
      select: "a" for all eigenvalues; "i" for those of the indices select_range[0] to
        select_range[1], inclusive.
      select_range: see `select`.
      tol: the error that eigenvalues may have if only they are returned; by default about the
          precision of the dtype times the largest eigenvalue.
      key: has no effect.

    Returns:
      Eigenvalues, or (eigenvalues, eigenvectors as columns).

    Raises:
      TypeError: if dtypes are not float32, float64 or complex, or sizes do not match.
      ValueError: if `select` is none of these values.
      NotImplementedError: if `select` is "v".
    """
    first, last = 0, typeof(d).shape[-1]
    if select == "i":
        if select_range is None:
            raise ValueError("for select='i', select_range must be specified.")
        if select_range[0] > select_range[1]:
            raise ValueError("for select='i', select_range must be of ascending order.")
        first, last = int(select_range[0]), min(int(select_range[1]) + 1, last)
    elif select == "v":
        raise NotImplementedError(  # JAX raises this class.
            "eigh_tridiagonal(..., select='v') is not implemented: the number of values in "
            "an interval is not known when the program is traced"
        )
    elif select != "a":
        raise ValueError("'select must have a value in {'a', 'i', 'v'}.")
    tol = 0.0 if tol is None else tol
    return _eigh_tridiagonal(d, e, tol, eigvals_only=bool(eigvals_only), first=first, last=last)
