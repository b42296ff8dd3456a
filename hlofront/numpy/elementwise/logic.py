"""Comparisons, truth values, and predicates such as isfinite, isnan and isclose."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from hlofront.base.config import numpy_dtype_promotion
from hlofront.base.dtypes import dtype_of, is_complex, issubdtype
from hlofront.base.elements import ExtendedDType, bool_
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.numpy.arrays.creation import asarray
from hlofront.numpy.elementwise.ufuncs import (
    any_operand,
    is_integer,
    ordering,
    refuse_out,
    rename,
    scalar_like,
)
from hlofront.numpy.support.like import like, operation_like
from hlofront.numpy.support.promotion import (
    as_operand,
    broadcast_together,
    converted,
    host_scalar,
    promote_args,
    promote_args_inexact,
    promote_dtypes,
)
from hlofront.primitives.arrays import creation
from hlofront.primitives.arrays.reducing import reduce_and
from hlofront.primitives.elementwise import compare, elementwise
from hlofront.primitives.elementwise.converting import convert
from hlofront.runtime.dispatch.operation import operation

# ---- comparisons -------------------------------------------------------------------------------


def _comparison(
    reference: object, doc: str, comparison: Callable[[Array, Array], Array]
) -> Callable[..., Array]:
    """Make a comparison function of two promoted arrays, documented by `reference` and `doc`.

    The parameters have JAX's names.
    """
    name = reference.__name__

    def function(x: ArrayLike, y: ArrayLike, /) -> Array:
        return comparison(*promote_args(name, x, y))

    return operation(like(reference)(rename(function, name, doc)))


equal = _comparison(
    np.equal,
    """Return `x == y` elementwise, as booleans.

    Example:
      >>> jnp.equal(jnp.array([1, jnp.nan]), jnp.array([1, jnp.nan]))
      Array([ True, False], dtype=bool)
    """,
    compare.eq,
)
not_equal = _comparison(
    np.not_equal,
    """Return `x != y` elementwise, as booleans.

    Example:
      >>> jnp.not_equal(jnp.array([1, jnp.nan]), jnp.array([1, jnp.nan]))
      Array([False,  True], dtype=bool)
    """,
    compare.ne,
)
less = _comparison(np.less, "Return `x < y` elementwise, as booleans.", ordering(compare.lt))
less_equal = _comparison(
    np.less_equal, "Return `x <= y` elementwise, as booleans.", ordering(compare.le)
)
greater = _comparison(np.greater, "Return `x > y` elementwise, as booleans.", ordering(compare.gt))
greater_equal = _comparison(
    np.greater_equal, "Return `x >= y` elementwise, as booleans.", ordering(compare.ge)
)

# ---- truth -------------------------------------------------------------------------------------


def truth(x: ArrayLike) -> ArrayLike:
    """Return `x != 0` elementwise; booleans are returned unchanged.

    As in JAX, the truth of a weakly typed scalar is weakly typed, and that of an array with axes is
    not.
    """
    aval = typeof(x)
    if aval.dtype == bool_:
        return x
    zero = host_scalar(0, aval.dtype) if aval.ndim else scalar_like(aval, 0)
    return compare.ne(x, zero)


def _logical(
    reference: object, doc: str, apply: Callable[[Array, Array], Array]
) -> Callable[..., Array]:
    name = reference.__name__

    def function(x1: ArrayLike, x2: ArrayLike, /) -> Array:
        # The operands are promoted as numbers, as in JAX: weak operands give weak results, and the
        # option jax_numpy_dtype_promotion='strict' is obeyed.
        return apply(*map(truth, promote_args(name, x1, x2)))

    return operation(like(reference)(rename(function, name, doc)))


logical_and = _logical(
    np.logical_and, "Return elementwise whether both are not zero.", elementwise.bitwise_and
)
logical_or = _logical(
    np.logical_or, "Return elementwise whether either is not zero.", elementwise.bitwise_or
)
logical_xor = _logical(
    np.logical_xor, "Return elementwise whether exactly one is not zero.", elementwise.bitwise_xor
)


@operation_like(np.logical_not)
def logical_not(x: ArrayLike, /) -> Array:
    """Return elementwise whether x is zero."""
    return elementwise.bitwise_not(truth(any_operand("logical_not", x)))


# ---- kinds of numbers --------------------------------------------------------------------------


def _answer(x: ArrayLike, value: bool) -> Array:
    return creation.full(typeof(x).shape, value, bool_)


def _weak_answer(x: ArrayLike, value: bool) -> Array:
    """Return a mask of the shape of x filled with `value`, weakly typed for a weak scalar."""
    aval = typeof(x)
    return convert(_answer(x, value), bool_, aval.weak_type and not aval.ndim)


@operation_like(np.isnan)
def isnan(x: ArrayLike, /) -> Array:
    """Return elementwise whether x is NaN.

    Example:
      >>> jnp.isnan(jnp.array([1.0, jnp.nan]))
      Array([False,  True], dtype=bool)
    """
    x = any_operand("isnan", x)
    return compare.ne(x, x)


@operation_like(np.isfinite)
def isfinite(x: ArrayLike, /) -> Array:
    """Return elementwise whether x is neither infinite nor NaN."""
    return _finite(any_operand("isfinite", x))


def _finite(x: ArrayLike) -> Array:
    aval = typeof(x)
    if is_integer(aval):
        return _answer(x, True)
    if is_complex(aval.dtype):
        return elementwise.bitwise_and(
            elementwise.is_finite(elementwise.real(x)), elementwise.is_finite(elementwise.imag(x))
        )
    return elementwise.is_finite(x)


def infinite(x: ArrayLike) -> Array:
    """Return elementwise whether x, or either of its parts, is infinite."""
    aval = typeof(x)
    if is_integer(aval):
        return _answer(x, False)
    if is_complex(aval.dtype):
        return elementwise.bitwise_or(infinite(elementwise.real(x)), infinite(elementwise.imag(x)))
    return compare.eq(elementwise.abs(x), host_scalar(np.inf, aval.dtype))


@operation_like(np.isinf)
def isinf(x: ArrayLike, /) -> Array:
    """Return elementwise whether x is infinite."""
    return infinite(any_operand("isinf", x))


def _is_infinity(name: str, x: ArrayLike, infinity: float, out: None) -> Array:
    refuse_out(name, out)
    x = any_operand(name, x)
    aval = typeof(x)
    if is_complex(aval.dtype):
        raise ValueError(
            f"{name} is not well defined for complex numbers, got dtype {aval.dtype}: apply it to "
            ".real or .imag."
        )
    if is_integer(aval):
        return _answer(x, False)
    return compare.eq(x, host_scalar(infinity, aval.dtype))


@operation_like(np.isposinf)
def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Return elementwise whether x is positive infinity. Raises ValueError for complex numbers."""
    return _is_infinity("isposinf", x, np.inf, out)


@operation_like(np.isneginf)
def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Return elementwise whether x is negative infinity. Raises ValueError for complex numbers."""
    return _is_infinity("isneginf", x, -np.inf, out)


@operation_like(np.iscomplex)
def iscomplex(x: ArrayLike) -> Array:
    """Return elementwise whether x has an imaginary part that is not zero.

    Example:
      >>> jnp.iscomplex(jnp.array([1 + 1j, 2]))
      Array([ True, False], dtype=bool)
    """
    x = any_operand("iscomplex", x)
    if not is_complex(typeof(x).dtype):
        return _weak_answer(x, False)
    part = elementwise.imag(x)
    return compare.ne(part, scalar_like(typeof(part), 0))


@operation_like(np.isreal)
def isreal(x: ArrayLike) -> Array:
    """Return elementwise whether the imaginary part of x is zero.

    Example:
      >>> jnp.isreal(jnp.array([1 + 1j, 2]))
      Array([False,  True], dtype=bool)
    """
    x = any_operand("isreal", x)
    if not is_complex(typeof(x).dtype):
        return _weak_answer(x, True)
    part = elementwise.imag(x)
    return compare.eq(part, scalar_like(typeof(part), 0))


@like(np.iscomplexobj)
def iscomplexobj(x: object) -> bool:
    """Return whether the dtype of x, as an array, is complex.

    Example:
      >>> jnp.iscomplexobj(jnp.array([1 + 0j])), jnp.iscomplexobj(jnp.array([1.0]))
      (True, False)
    """
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        dtype = np.asarray(as_operand(x)).dtype
        if dtype.kind == "O" and x is not None:
            raise TypeError(f"iscomplexobj: {x!r} is neither an array nor a scalar")
    return issubdtype(dtype_of(dtype), np.complexfloating)


@like(np.isrealobj)
def isrealobj(x: object) -> bool:
    """Return whether the dtype of x, as an array, is not complex.

    Example:
      >>> jnp.isrealobj(jnp.array([1 + 0j])), jnp.isrealobj(jnp.array([1.0]))
      (False, True)
    """
    return not iscomplexobj(x)


@like(np.isscalar)
def isscalar(element: object) -> bool:
    """Return whether the argument is a Python or NumPy scalar, or an array without axes.

    Example:
      >>> jnp.isscalar(3.0), jnp.isscalar(jnp.array(3)), jnp.isscalar(jnp.array([3]))
      (True, True, False)
    """
    if np.isscalar(element):
        return True
    return getattr(as_operand(element), "ndim", None) == 0


@like(np.iterable)
def iterable(y: object) -> bool:
    """Return whether y can be iterated over; arrays without axes cannot.

    Example:
      >>> jnp.iterable(jnp.arange(3)), jnp.iterable(jnp.array(3))
      (True, False)
    """
    if getattr(y, "ndim", None) == 0:
        return False
    return isinstance(y, Iterable) or hasattr(y, "__getitem__")


# ---- closeness and equality --------------------------------------------------------------------


def _close(
    name: str, a: ArrayLike, b: ArrayLike, rtol: ArrayLike, atol: ArrayLike, equal_nan: bool
) -> Array:
    if isinstance(typeof(a).dtype, ExtendedDType):
        # PRNG keys have no distance: only equal keys are close.
        return compare.eq(*promote_args(name, a, b))
    a, b = promote_args_inexact(name, a, b)
    gap = elementwise.abs(elementwise.sub(a, b))
    size = elementwise.abs(b)
    real = typeof(gap).dtype
    allowed = elementwise.add(
        converted(atol, typeof(atol), real, False),
        elementwise.mul(converted(rtol, typeof(rtol), real, False), size),
    )
    # NaN is close to nothing, and an infinity only to itself.
    near = elementwise.bitwise_and(_finite(b), compare.le(gap, allowed))
    close = elementwise.bitwise_or(compare.eq(a, b), near)
    if equal_nan:
        close = elementwise.bitwise_or(close, _both_nan(a, b))
    return close


def _both_nan(a: ArrayLike, b: Array) -> Array:
    return elementwise.bitwise_and(compare.ne(a, a), compare.ne(b, b))


def _all(x: Array) -> Array:
    return reduce_and(x, tuple(range(typeof(x).ndim)))


@operation_like(np.isclose, static_argnames=("equal_nan",))
def isclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Return elementwise whether |a - b| <= atol + rtol * |b|.

    NaN is close to NaN if `equal_nan`.

    Example:
      >>> jnp.isclose(jnp.array([1.0, 2.0]), jnp.array([1.0, 2.1]))
      Array([ True, False], dtype=bool)
    """
    return _close("isclose", a, b, rtol, atol, equal_nan)


@operation_like(np.allclose, static_argnames=("equal_nan",))
def allclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Return one boolean: whether all elements of a and b are close by `isclose`.

    Example:
      >>> jnp.allclose(jnp.array([1.0]), jnp.array([1.0 + 1e-7]))
      Array(True, dtype=bool)
    """
    return _all(_close("allclose", a, b, rtol, atol, equal_nan))


@operation(static_argnames=("equal_nan",))
def _array_equal(a: ArrayLike, b: ArrayLike, equal_nan: bool) -> Array:
    a, b = promote_dtypes(a, b)
    same = compare.eq(a, b)
    if equal_nan:
        same = elementwise.bitwise_or(same, _both_nan(a, b))
    return _all(same)


@operation
def _array_equiv(a: ArrayLike, b: ArrayLike) -> Array:
    return _all(compare.eq(*broadcast_together("array_equiv", *promote_dtypes(a, b))))


@like(np.array_equal)
def array_equal(
    a1: ArrayLike | Sequence[ArrayLike],
    a2: ArrayLike | Sequence[ArrayLike],
    equal_nan: bool = False,
) -> Array:
    """Return whether two arrays, or lists of numbers, have one shape and equal elements.

    Example:
      >>> x = jnp.array([1, jnp.nan])
      >>> bool(jnp.array_equal(x, x)), bool(jnp.array_equal(x, x, equal_nan=True))
      (False, True)
    """
    a1, a2 = asarray(a1), asarray(a2)
    if a1.shape != a2.shape:
        return asarray(False)
    return _array_equal(a1, a2, bool(equal_nan))


@like(np.array_equiv)
def array_equiv(a1: ArrayLike | Sequence[ArrayLike], a2: ArrayLike | Sequence[ArrayLike]) -> Array:
    """Return whether two arrays, or lists of numbers, broadcast together and are then equal.

    Example:
      >>> jnp.array_equiv(jnp.ones((2, 3)), jnp.ones(3))
      Array(True, dtype=bool)
    """
    a1, a2 = asarray(a1), asarray(a2)
    try:
        np.broadcast_shapes(a1.shape, a2.shape)
    except ValueError:
        return asarray(False)
    # Arrays of different dtypes may be compared: that is not an error here.
    with numpy_dtype_promotion("standard"):
        return _array_equiv(a1, a2)
