"""Arithmetic of polynomials as vectors of coefficients, the highest power first."""

from __future__ import annotations

import operator

import numpy as np

from hlofront.base.dtypes import finfo
from hlofront.base.elements import exact_dtype
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.higher_order.control_flow.library_loops import scan
from hlofront.numpy.arrays.rearranging import trim_zeros
from hlofront.numpy.elementwise.ufuncs import add, multiply
from hlofront.numpy.indexing.selecting import host_value
from hlofront.numpy.products.convolution import convolve
from hlofront.numpy.support.like import like, operation_like
from hlofront.numpy.support.promotion import (
    broadcast_together,
    check_arraylike,
    check_broadcast,
    host_scalar,
    operands,
    promote_dtypes,
    promote_dtypes_inexact,
    with_shape,
)
from hlofront.primitives.arrays import creation
from hlofront.primitives.arrays.shaping import expand_dims
from hlofront.primitives.arrays.slicing import concatenate, index_in_dim, pad, slice_in_dim
from hlofront.primitives.elementwise import elementwise
from hlofront.primitives.elementwise.converting import as_array_of_trace, convert, strong
from hlofront.primitives.elementwise.weak_types import strong_cotangents
from hlofront.runtime.dispatch.operation import operation

# The number of steps that a loop over coefficients unrolls.
UNROLL = 16


def _zero(dtype: np.dtype) -> np.generic:
    return host_scalar(0, dtype)


def _check_vector(name: str, *polynomials: ArrayLike, kind: type[Exception] = ValueError) -> None:
    """Raise TypeError for scalar coefficients, and `kind` (ValueError) for several axes."""
    for p in polynomials:
        aval = typeof(p)
        if aval.ndim != 1:
            raise (kind if aval.ndim else TypeError)(
                f"{name}: coefficients must be an array of one axis, got one of shape {aval.shape}"
            )


# ---- sums --------------------------------------------------------------------------------------


def _sum(name: str, a1: ArrayLike, a2: ArrayLike) -> Array:
    shapes = typeof(a1).shape, typeof(a2).shape
    if not all(shapes):
        raise IndexError(
            f"{name}: coefficients need an axis, got arrays of shapes {shapes[0]} and {shapes[1]}: "
            "use jnp.atleast_1d for constants"
        )
    if shapes[0][0] < shapes[1][0]:
        a1, a2 = a2, a1
    longer, shorter = typeof(a1).shape, typeof(a2).shape
    if longer[0] != shorter[0]:
        # Lower powers are at the end; the other axes of the shorter polynomial may broadcast.
        if len(shorter) != len(longer):
            raise ValueError(
                f"{name}: got {len(longer)} and {len(shorter)} axes, expected equal numbers of axes"
            )
        a2 = with_shape(a2, shorter, check_broadcast(name, [shorter, (1, *longer[1:])]))
        missing = longer[0] - shorter[0]
        aval = typeof(a2)
        zero = host_scalar(0, aval.dtype, aval.weak_type)
        a2 = pad(a2, zero, [(missing, 0, 0), *[(0, 0, 0)] * (len(longer) - 1)])
    return elementwise.add(*broadcast_together(name, a1, a2))


@operation_like(np.polyadd)
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Add two polynomials, as arrays of coefficients.

    Args:
      a1: coefficients, along the first axis.
      a2: coefficients, along the first axis; there may be more or fewer of them.

    Raises:
      TypeError: for booleans, and for arguments that are not arrays.
      IndexError: for arrays without an axis.
      ValueError: if other axes do not fit.

    Example:
      >>> jnp.polyadd(jnp.array([1, 2, 3]), jnp.array([10]))
      Array([ 1,  2, 13], dtype=int32)
    """
    check_arraylike("polyadd", a1, a2)
    return _sum("polyadd", *promote_dtypes(*operands("polyadd", (a1, a2))[0]))


@operation_like(np.polysub)
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Subtract two polynomials, as arrays of coefficients.

    Args:
      a1: coefficients, along the first axis, from the highest power down.
      a2: coefficients, along the first axis; there may be more or fewer of them.

    Raises:
      TypeError: for booleans, and for arguments that are not arrays.
      IndexError: for arrays without an axis.
      ValueError: if other axes do not fit.

    Example:
      >>> jnp.polysub(jnp.array([1, 2, 3]), jnp.array([10]))
      Array([ 1,  2, -7], dtype=int32)
    """
    check_arraylike("polysub", a1, a2)
    a1, a2 = promote_dtypes(*operands("polysub", (a1, a2))[0])
    return _sum("polysub", a1, elementwise.neg(a2))


# ---- products and quotients --------------------------------------------------------------------


def _or_zero(p: Array) -> Array:
    """Return the coefficients, or a single 0 if there are none."""
    aval = typeof(p)
    return p if aval.size or aval.ndim != 1 else creation.full((1,), _zero(aval.dtype))


@operation
def _polymul(a1: ArrayLike, a2: ArrayLike) -> Array:
    a1, a2 = promote_dtypes_inexact(a1, a2)
    _check_vector("polymul", a1, a2)
    return convolve(_or_zero(a1), _or_zero(a2))


@like(np.polymul)
def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """Multiply two polynomials; integers become floats.

    Args:
      a1: coefficients, along one axis.
      a2: coefficients, along one axis.
      trim_leading_zeros: whether to drop leading zeros of both, as NumPy does. The size of the
        result then depends on values, which must not be traced.

    Raises:
      TypeError: for arrays without an axis, and for arguments that are not arrays.
      ValueError: for arrays of several axes.
      ConcretizationTypeError: if zeros of traced arrays would be dropped.

    Example:
      >>> jnp.polymul(jnp.array([1, 1]), jnp.array([1, -1]))
      Array([ 1.,  0., -1.], dtype=float32)
    """
    check_arraylike("polymul", a1, a2)
    (a1, a2), _ = operands("polymul", (a1, a2))
    if trim_leading_zeros:
        _check_vector("polymul", a1, a2)
        a1, a2 = trim_zeros(a1, "f"), trim_zeros(a2, "f")
    return _polymul(a1, a2)


@operation
def _polydiv(u: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
    u, v = promote_dtypes_inexact(u, v)
    _check_vector("polydiv", u, v)
    dtype, weak = typeof(u).dtype, typeof(u).weak_type
    size, count = typeof(u).shape[0], typeof(v).shape[0]
    if not count:
        raise IndexError("polydiv: the divisor v has no coefficients")
    if size < count:
        return creation.full((1,), _zero(dtype)), u
    leading = index_in_dim(v, 0, 0, keepdims=False)
    scale = elementwise.div(host_scalar(1, dtype), leading)
    lower = slice_in_dim(v, 1, count)

    def step(window: Array, entering: Array) -> tuple[Array, tuple[Array, Array]]:
        """Subtract a multiple of v from the next `count` coefficients, and return the rest."""
        window = concatenate([window, expand_dims(entering, (0,))], 0)
        first = index_in_dim(window, 0, 0, keepdims=False)
        factor = elementwise.mul(scale, first)
        remainder = slice_in_dim(window, 1, count)
        remainder = elementwise.sub(
            remainder, elementwise.mul(with_shape(factor, (), (count - 1,)), lower)
        )
        # The first coefficient is zero up to rounding, unless the divisor starts with zero.
        gone = elementwise.sub(first, elementwise.mul(factor, leading))
        return remainder, (factor, gone)

    rest, (quotient, gone) = scan(
        step, slice_in_dim(u, 0, count - 1), slice_in_dim(u, count - 1, size), unroll=UNROLL
    )
    return convert(quotient, dtype, False), convert(concatenate([gone, rest], 0), dtype, weak)


@like(np.polydiv)
def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """Divide two polynomials into quotient and remainder; integers become floats.

    Args:
      u: coefficients, along one axis.
      v: the coefficients of the divisor; the first must not be zero.
      trim_leading_zeros: whether to drop leading coefficients of the remainder that are zero up to
        rounding, as NumPy does. The size of the remainder then depends on values, which must not be
        traced.

    Returns:
      The coefficients of the quotient, and those of the remainder, as many as `u` has.

    Raises:
      TypeError: for arrays without an axis, and for arguments that are not arrays.
      ValueError: for arrays of several axes.
      IndexError: if there are no coefficients in `v`.
      ConcretizationTypeError: if zeros of traced arrays would be dropped.

    Example:
      >>> jnp.polydiv(jnp.array([1, 3, 5]), jnp.array([1, 1]))
      (Array([1., 2.], dtype=float32), Array([0., 0., 3.], dtype=float32))
    """
    check_arraylike("polydiv", u, v)
    (u, v), _ = operands("polydiv", (u, v))
    quotient, remainder = _polydiv(u, v)
    if trim_leading_zeros:
        values = host_value(
            remainder,
            "How much jnp.polydiv cuts off the remainder must be known while tracing: give "
            "trim_leading_zeros=False.",
        )
        allowed = np.sqrt(np.float64(finfo(values.dtype).eps))
        size_of = np.abs(values if values.dtype.kind in "fc" else values.astype(np.float32))
        # NaN is not trimmed.
        (nonzero,) = np.nonzero(~(size_of <= allowed))
        first = int(nonzero[0]) if nonzero.size else values.size
        remainder = slice_in_dim(remainder, first, values.size)
    return quotient, remainder


# ---- derivatives and integrals -----------------------------------------------------------------


def _order(name: str, m: ArrayLike) -> int:
    m = operator.index(m)
    if m < 0:
        raise ValueError(f"{name}: the order m must not be negative, got {m}")
    return m


def _falling(powers: np.ndarray, m: int) -> np.ndarray:
    """Return the products n (n - 1) ... of `m` factors for powers n, with factors of at least 1."""
    factors = powers[None, :] - np.arange(m)[:, None]
    return np.maximum(factors, 1).astype(np.float64).prod(0)


@operation_like(np.polyder, static_argnames=("m",))
def polyder(p: ArrayLike, m: int = 1) -> Array:
    """Differentiate a polynomial; integers become floats.

    Args:
      p: coefficients, along one axis.
      m: the order of the derivative: a Python integer.

    Raises:
      ValueError: if m is negative, or there are several axes.
      TypeError: if m is not an integer, or there is no axis.

    Example:
      >>> jnp.polyder(jnp.array([1, 2, 3]))
      Array([2., 2.], dtype=float32)
    """
    check_arraylike("polyder", p)
    m = _order("polyder", m)
    (p,) = promote_dtypes_inexact(*operands("polyder", (p,))[0])
    if m == 0:
        return as_array_of_trace(p)
    _check_vector("polyder", p)
    aval = typeof(p)
    left = max(aval.shape[0] - m, 0)
    factors = exact_dtype(_falling(np.arange(left)[::-1] + m, m).astype(aval.dtype))
    return elementwise.mul(slice_in_dim(strong_cotangents(p), 0, left), factors)


@operation_like(np.polyint, static_argnames=("m",))
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """Integrate a polynomial; integers become floats.

    Args:
      p: coefficients, along one axis.
      m: the number of integrations: a Python integer.
      k: the constants to add, one for all integrations or one for each; zero by default.

    Raises:
      ValueError: if m is negative, or the number of constants is neither 1 nor m.
      TypeError: if m is not an integer, or there is not one axis.

    Example:
      >>> jnp.polyint(jnp.array([6, 2]), k=7)
      Array([3., 2., 7.], dtype=float32)
    """
    m = _order("polyint", m)
    check_arraylike("polyint", p, 0 if k is None else k)
    p, k = promote_dtypes_inexact(*operands("polyint", (p, 0 if k is None else k))[0])
    constants = typeof(k)
    if constants.ndim > 1 or constants.shape not in ((), (1,), (m,)):
        raise ValueError(
            f"polyint: k must be a scalar or an array of shape (1,) or ({m},), got shape "
            f"{constants.shape}"
        )
    if m == 0:
        return as_array_of_trace(p)
    _check_vector("polyint", p, kind=TypeError)
    k = with_shape(k, constants.shape, (m,))
    aval = typeof(p)
    powers = np.arange(aval.shape[0] + m)[::-1]
    p, k = strong(p), strong(k)
    return elementwise.div(concatenate([p, k], 0), _falling(powers, m).astype(aval.dtype))


# ---- values ------------------------------------------------------------------------------------


@operation_like(np.polyval, static_argnames=("unroll",))
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int | None = UNROLL) -> Array:
    """Evaluate a polynomial by Horner's rule.

    Args:
      p: coefficients, along the first axis; other axes broadcast with `x`.
      x: the points at which to evaluate the polynomial.
      unroll: the number of loop steps unrolled; True for all, None for the default.

    Raises:
      IndexError: if there is no axis of coefficients.
      ValueError: if `unroll` is negative, or shapes do not broadcast.

    Example:
      >>> jnp.polyval(jnp.array([1, 0, 3]), jnp.array([2, 10]))
      Array([  7, 103], dtype=int32)
    """
    check_arraylike("polyval", p, x)
    p, x = promote_dtypes(*operands("polyval", (p, x))[0])
    aval = typeof(p)
    if not aval.ndim:
        raise IndexError("polyval: coefficients need an axis: use jnp.atleast_1d for a constant")
    shape = check_broadcast("polyval", [typeof(x).shape, aval.shape[1:]])
    p, x = (convert(value, aval.dtype, False) for value in (p, x))

    def step(value: Array, coefficient: Array) -> tuple[Array, None]:
        return add(multiply(value, x), coefficient), None

    first = creation.full(shape, _zero(aval.dtype))
    return scan(step, first, p, unroll=UNROLL if unroll is None else unroll)[0]
