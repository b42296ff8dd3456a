"""Polynomials by linear algebra: from roots, roots of polynomials, and least-squares fits."""

from __future__ import annotations

import math

import numpy as np

from hlofront.base.dtypes import (
    finfo,
    is_complex,
    python_scalar_dtype,
    to_complex_dtype,
    to_inexact_dtype,
)
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.higher_order.control_flow.library_loops import scan
from hlofront.numpy.arrays.creation import asarray
from hlofront.numpy.elementwise.ufuncs import divide, multiply
from hlofront.numpy.indexing.selecting import host_value
from hlofront.numpy.products.matrices import eye, vander
from hlofront.numpy.products.polynomial import UNROLL
from hlofront.numpy.support.like import like, operation_like
from hlofront.numpy.support.promotion import (
    check_arraylike,
    choose,
    host_scalar,
    operand,
    operands,
    promote_dtypes_inexact,
    with_shape,
)
from hlofront.primitives.arrays import creation, reducing
from hlofront.primitives.arrays.dynamic_slicing import dynamic_slice
from hlofront.primitives.arrays.shaping import expand_dims, reshape, squeeze, transpose
from hlofront.primitives.arrays.slicing import concatenate, index_in_dim, pad, slice_in_dim
from hlofront.primitives.arrays.sorting import sort_key_val
from hlofront.primitives.elementwise import compare, elementwise
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.weak_types import strong_cotangents, times_one
from hlofront.primitives.linalg.dot_general import Precision, dot_general
from hlofront.primitives.linalg.spectral import eig, svd
from hlofront.runtime.dispatch.operation import operation


def _zero(dtype: np.dtype) -> np.generic:
    return host_scalar(0, dtype)


def _rows(x: Array) -> Array:
    """Return a vector as a matrix of one row."""
    return expand_dims(x, (typeof(x).ndim - 1,))


def _columns(x: ArrayLike) -> Array:
    """Return a vector as a matrix of one column."""
    return expand_dims(x, (typeof(x).ndim,))


def _swap(x: Array) -> Array:
    return transpose(x, (1, 0))


def _adjoint(x: Array) -> Array:
    return elementwise.conj(_swap(x)) if is_complex(typeof(x).dtype) else _swap(x)


def _product(x: Array, y: Array) -> Array:
    """Multiply two matrices in the full precision of their dtype."""
    return dot_general(x, y, (((1,), (0,)), ((), ())), precision=Precision.HIGHEST)


# ---- zeros -------------------------------------------------------------------------------------


def _wide(x: ArrayLike) -> ArrayLike:
    """Return numbers in a dtype that LAPACK supports, strongly typed.

    Half precision becomes float32.
    """
    dtype = typeof(x).dtype
    return convert(x, np.dtype(np.float32) if dtype.itemsize < 4 else dtype, False)


@operation_like(np.poly)
def poly(seq_of_zeros: ArrayLike) -> Array:
    """Return the coefficients of the monic polynomial with roots `seq_of_zeros`.

    Args:
      seq_of_zeros: zeros, along one axis; or a square matrix, which stands for its eigenvalues.

    Returns:
      An array with one more coefficient than there are zeros: complex for a matrix, floats for
        integers. The scalar 1 if there are no zeros.

    Raises:
      ValueError: for other shapes.

    Example:
      >>> jnp.rint(jnp.poly(jnp.array([1.0, 2.0])))
      Array([ 1., -3.,  2.], dtype=float32)
    """
    check_arraylike("poly", seq_of_zeros)
    (zeros,) = promote_dtypes_inexact(*operands("poly", (seq_of_zeros,))[0])
    aval = typeof(zeros)
    if aval.ndim == 2 and aval.size and aval.shape[0] == aval.shape[1]:
        (zeros,) = eig(
            _wide(zeros), compute_left_eigenvectors=False, compute_right_eigenvectors=False
        )
    elif aval.ndim > 1:
        raise ValueError(
            f"poly: input must be 1d or non-empty square 2d array, got shape {aval.shape}."
        )
    aval = typeof(zeros)
    one = host_scalar(1, aval.dtype)
    if not aval.size:
        return creation.full((), one)
    if not aval.ndim:
        zeros = expand_dims(zeros, (0,))

    def step(coefficients: Array, zero: Array) -> tuple[Array, None]:
        """Multiply the polynomial by `x - zero`; the dropped last coefficient is still zero."""
        shifted = concatenate(
            [creation.full((1,), _zero(aval.dtype)), slice_in_dim(coefficients, 0, aval.size)], 0
        )
        return elementwise.sub(coefficients, multiply(zero, shifted)), None

    first = concatenate(
        [creation.full((1,), one), creation.full((aval.size,), _zero(aval.dtype))], 0
    )
    return scan(step, first, times_one(zeros), unroll=UNROLL)[0]


def _zeros_of(p: Array) -> Array:
    """Return a polynomial's roots, the eigenvalues of its companion matrix; p[0] must not be 0."""
    size = typeof(p).shape[0]
    lower = elementwise.neg(slice_in_dim(p, 1, size))
    leading = with_shape(index_in_dim(p, 0, 0, keepdims=False), (), (size - 1,))
    companion = concatenate(
        [_rows(elementwise.div(lower, leading)), eye(size - 2, size - 1, dtype=typeof(p).dtype)], 0
    )
    (zeros,) = eig(companion, compute_left_eigenvectors=False, compute_right_eigenvectors=False)
    return zeros


@operation(static_argnames=("leading",))
def _roots(p: ArrayLike, *, leading: int | None) -> Array:
    """Return the roots of a polynomial as complex numbers.

    `leading` is the number of its leading zero coefficients, or None if it is unknown.
    """
    p = _wide(strong_cotangents(promote_dtypes_inexact(p)[0]))
    size = typeof(p).shape[0]
    degree = size - 1 - (leading or 0)
    if degree < 1:
        return creation.full((0,), 0, to_complex_dtype(typeof(p).dtype))
    if leading is not None:
        return _zeros_of(slice_in_dim(p, leading, size))
    zero = _zero(typeof(p).dtype)
    index = python_scalar_dtype(int)
    nonzero = compare.ne(p, zero)
    any_nonzero = reducing.reduce_or(nonzero, (0,))
    last = host_scalar(size, index)
    before = choose("roots", any_nonzero, reducing.argmax(nonzero, 0, index), last)
    # The leading zeros move to the end, where each adds a root of zero.
    moved = dynamic_slice(pad(p, zero, [(0, size, 0)]), (before,), (size,))
    moved = choose("roots", any_nonzero, moved, host_scalar(1, typeof(p).dtype))
    zeros = _zeros_of(moved)
    dtype = typeof(zeros).dtype
    _, zeros = sort_key_val(compare.eq(zeros, _zero(dtype)), zeros, 0)
    index_of_zero = creation.iota(index, size - 1)
    real = compare.lt(
        index_of_zero,
        with_shape(elementwise.sub(host_scalar(size - 1, index), before), (), (size - 1,)),
    )
    return choose("roots", real, zeros, host_scalar(complex(math.nan, math.nan), dtype))


@like(np.roots)
def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """Return the roots of a polynomial as complex numbers.

    Args:
      p: coefficients, along one axis.
      strip_zeros: whether to drop the leading zeros of `p`. Their number must then be known, so `p`
        must not be traced. If False, each of them adds a NaN at the end.

    Returns:
      An array with one element less than there are coefficients.

    Raises:
      ValueError: if `p` has several axes.
      ConcretizationTypeError: if `p` is traced, unless `strip_zeros` is False.

    Example:
      >>> jnp.sort(jnp.roots(jnp.array([1.0, 0.0, -4.0])).real).round(3)
      Array([-2.,  2.], dtype=float32)
    """
    check_arraylike("roots", p)
    p, aval = operand("roots", p)
    if aval.ndim > 1:
        raise ValueError(f"roots: input must be a rank-1 array, got shape {aval.shape}.")
    if not aval.ndim:
        p = expand_dims(p, (0,))
    if not strip_zeros or typeof(p).shape[0] < 2:
        return _roots(p, leading=None)
    values = host_value(
        p,
        "How many of the first coefficients that jnp.roots is given are zero must be known while "
        "tracing: pass strip_zeros=False, which gives NaN for each of them.",
    )
    (nonzero,) = np.nonzero(values)
    return _roots(p, leading=int(nonzero[0]) if nonzero.size else values.size)


# ---- fits --------------------------------------------------------------------------------------


def _least_squares(a: Array, b: Array, rcond: float) -> tuple[Array, Array, Array, Array, Array]:
    """Return the least-norm columns x that minimize |a x - b|, with residuals and rank.

    Returns:
      x, the sums of squared residuals, the rank, the singular values, and the rows of vh.
    """
    u, s, vh = svd(a, full_matrices=False)
    dtype = typeof(s).dtype
    greatest = index_in_dim(s, 0, 0, keepdims=False)
    least = elementwise.mul(host_scalar(rcond, dtype), greatest)
    used = elementwise.bitwise_and(
        compare.gt(s, host_scalar(0, dtype)),
        compare.ge(s, with_shape(least, (), typeof(s).shape)),
    )
    rank = reducing.reduce_sum(convert(used, python_scalar_dtype(int), False), (0,))
    one, zero = host_scalar(1, dtype), _zero(dtype)
    inverse = choose("polyfit", used, elementwise.div(one, choose("polyfit", used, s, one)), zero)
    x = _product(_adjoint(vh), multiply(_columns(inverse), _product(_adjoint(u), b)))
    residual = elementwise.sub(b, _product(a, x))
    squares = elementwise.square(elementwise.abs(residual))
    return x, reducing.reduce_sum(squares, (0,)), rank, s, vh


def _inverse_of_gram(a: Array, s: Array, vh: Array) -> Array:
    """Return the inverse of `a^T a` from the singular values s and the right vectors vh."""
    if is_complex(typeof(a).dtype):
        u, s, vh = svd(_product(_swap(a), a), full_matrices=False)
        return _product(divide(_adjoint(vh), _rows(s)), _adjoint(u))
    scaled = divide(vh, _columns(s))
    return _product(_swap(scaled), scaled)


@operation_like(np.polyfit, static_argnames=("deg", "rcond", "full", "cov"))
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Array | tuple[ArrayLike, ...]:
    """Fit a polynomial to points by least squares.

    Args:
      x: the coordinates of the points, of shape (n,).
      y: their values, of shape (n,), or (n, k) for k polynomials.
      deg: the degree.
      rcond: the bound below which singular values count as zero, relative to the greatest one; by
        default n times the precision of the dtype of `x`.
      full: whether to return the diagnostics of the least-squares solution.
      w: the weight of each point, of shape (n,).
      cov: whether to return the covariance of the coefficients: "unscaled" if weights are
        inverses of known deviations, else scaled by the residuals.

    Returns:
      Coefficients of shape (deg + 1,) or (deg + 1, k). If `full`, a tuple of them, the sums of
      squared residuals, the rank, the singular values, and rcond; else if `cov`, the covariances of
      shape (deg + 1, deg + 1) or (deg + 1, deg + 1, k).

    Raises:
      ValueError: if the degree is negative, or there are too few points for a covariance.
      TypeError: for shapes that do not match.

    Example:
      >>> x = jnp.arange(4.0)
      >>> jnp.polyfit(x, 2 * x + 1, 1).round(3)
      Array([2., 1.], dtype=float32)
    """
    arguments = (x, y) if w is None else (x, y, w)
    check_arraylike("polyfit", *arguments)
    values, avals = operands("polyfit", arguments)
    count = int(deg) + 1
    if count < 1:
        raise ValueError(f"polyfit: expected deg >= 0, got {deg}")
    if avals[0].ndim != 1:
        raise TypeError(f"polyfit: expected 1D vector for x, got shape {avals[0].shape}")
    number = avals[0].shape[0]
    if not number:
        raise TypeError("polyfit: expected non-empty vector for x")
    if avals[1].ndim not in (1, 2):
        raise TypeError(f"polyfit: expected 1D or 2D array for y, got shape {avals[1].shape}")
    if avals[1].shape[0] != number:
        raise TypeError(
            f"polyfit: expected x and y to have same length, got {number} and {avals[1].shape[0]}"
        )
    if w is not None and avals[2].ndim != 1:
        raise TypeError(f"polyfit: expected a 1-d array for weights, got shape {avals[2].shape}")
    if w is not None and avals[2].shape[0] != number:
        raise TypeError(
            f"polyfit: expected w and y to have the same length, got {avals[2].shape[0]} weights "
            f"for {number} points"
        )
    if cov and not full and cov != "unscaled" and number <= count:
        raise ValueError(
            f"polyfit: the number of data points must exceed order to scale the covariance matrix: "
            f"got {number} points for {count} coefficients. Give cov='unscaled'."
        )
    if rcond is None:
        rcond = number * float(finfo(to_inexact_dtype(avals[0].dtype)).eps)
    values = promote_dtypes_inexact(*values)
    dtype = typeof(values[0]).dtype
    x, y, *weights = map(_wide, values)
    a = vander(x, count)
    b = y if avals[1].ndim == 2 else _columns(y)
    for weight in weights:
        a, b = (multiply(_columns(weight), matrix) for matrix in (a, b))
    # The columns are scaled to unit length, which improves the condition number.
    scale = elementwise.sqrt(reducing.reduce_sum(elementwise.mul(a, a), (0,)))
    a = divide(a, _rows(scale))
    limit = rcond if rcond >= 0 else float(finfo(typeof(a).dtype).eps)
    c, left_over, rank, s, vh = _least_squares(a, b, limit)
    c = divide(c, _columns(scale))

    def finished(result: Array, dtype: np.dtype = dtype) -> Array:
        return convert(result, dtype, False)

    coefficients = finished(c if avals[1].ndim == 2 else squeeze(c, (1,)))
    if full:
        real = to_inexact_dtype(np.zeros((), dtype).real.dtype)
        return coefficients, finished(left_over, real), rank, finished(s, real), asarray(rcond)
    if not cov:
        return coefficients
    scales = multiply(_columns(scale), _rows(scale))
    covariance = elementwise.div(_inverse_of_gram(a, s, vh), scales)
    if cov == "unscaled":
        factor = host_scalar(1, typeof(left_over).dtype)
    else:
        factor = elementwise.div(left_over, host_scalar(number - count, typeof(left_over).dtype))
    if avals[1].ndim == 2:
        covariance = _columns(covariance)
    if cov != "unscaled":
        factor = reshape(factor, (1,) * (typeof(covariance).ndim - 1) + (typeof(factor).size,))
    return coefficients, finished(multiply(covariance, factor))
