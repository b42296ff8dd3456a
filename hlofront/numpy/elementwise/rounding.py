"""Rounding of numbers, and clipping to bounds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlofront.base.dtypes import iinfo, is_complex, issubdtype, python_scalar_dtype
from hlofront.base.elements import bool_
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.numpy.elementwise.ufuncs import (
    any_operand,
    inexact_operand,
    is_integer,
    refuse_out,
    scalar_like,
    unary_operation,
)
from hlofront.numpy.support.like import operation_like
from hlofront.numpy.support.promotion import choose, operand, promote_args
from hlofront.primitives.elementwise import compare, converting, elementwise
from hlofront.primitives.elementwise.converting import as_array_of_trace
from hlofront.primitives.elementwise.elementwise import RoundingMethod


def _unless_integer(apply: Callable[[ArrayLike], Array]) -> Callable[[ArrayLike], ArrayLike]:
    return lambda x: x if is_integer(typeof(x)) else apply(x)


floor = unary_operation(
    np.floor,
    """Return the greatest whole number not above x, elementwise, in its dtype.

    Example:
      >>> jnp.floor(jnp.array([1.7, -1.7]))
      Array([ 1., -2.], dtype=float32)
    """,
    _unless_integer(elementwise.floor),
    any_operand,
)
ceil = unary_operation(
    np.ceil,
    """Return the least whole number not below x, elementwise, in its dtype.

    Example:
      >>> jnp.ceil(jnp.array([1.2, -1.2]))
      Array([ 2., -1.], dtype=float32)
    """,
    _unless_integer(elementwise.ceil),
    any_operand,
)


def toward_zero(x: ArrayLike) -> Array:
    """Truncate floats toward zero."""
    negative = compare.lt(x, scalar_like(typeof(x), 0))
    return compare.select(negative, elementwise.ceil(x), elementwise.floor(x))


@operation_like(np.trunc)
def trunc(x: ArrayLike) -> Array:
    """Truncate each element toward zero, in its dtype.

    Example:
      >>> jnp.trunc(jnp.array([1.7, -1.7]))
      Array([ 1., -1.], dtype=float32)
    """
    return _unless_integer(toward_zero)(any_operand("trunc", x))


def _to_even(x: ArrayLike) -> Array:
    return elementwise.round(x, RoundingMethod.TO_NEAREST_EVEN)


def _parts(x: ArrayLike, apply: Callable[[Array], Array]) -> Array:
    if not is_complex(typeof(x).dtype):
        return apply(x)
    return elementwise.complex(apply(elementwise.real(x)), apply(elementwise.imag(x)))


@operation_like(np.rint)
def rint(x: ArrayLike, /) -> Array:
    """Round each element to the nearest whole number, halves to even, as a float.

    Example:
      >>> jnp.rint(jnp.array([0.5, 1.5, -1.2]))
      Array([ 0.,  2., -1.], dtype=float32)
    """
    x = any_operand("rint", x)
    aval = typeof(x)
    if is_integer(aval):
        return converting.convert(x, python_scalar_dtype(float), False)
    return _parts(inexact_operand("rint", x), _to_even)


@operation_like(np.round, static_argnames=("decimals",), nested=True)
def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Round each element to a number of decimal places, halves to even, in the dtype of `a`.

    Raises ValueError for booleans.

    Example:
      >>> jnp.round(jnp.array([1.26, -0.5]), 1)
      Array([ 1.3000001, -0.5      ], dtype=float32)
    """
    refuse_out("round", out)
    a = any_operand("round", a)
    aval = typeof(a)
    if issubdtype(aval.dtype, np.integer):
        return a if decimals >= 0 else _round_integer(a, 10**-decimals)
    if aval.dtype == bool_:
        raise ValueError("round does not accept booleans: convert them with .astype(int) first.")
    return _parts(a, lambda x: _round_float(x, decimals))


around = round


def _round_float(x: Array, decimals: int) -> Array:
    if decimals == 0:
        return _to_even(x)
    aval = typeof(x)
    # In 16 bits, numbers times 10 ** decimals would soon overflow.
    if aval.dtype == np.float16:
        rounded = _round_float(converting.convert(x, np.dtype("float32"), False), decimals)
        return converting.convert(rounded, aval.dtype, False)
    factor = scalar_like(aval, 10.0**decimals)
    return elementwise.div(_to_even(elementwise.mul(x, factor)), factor)


def _round_integer(x: ArrayLike, power: int) -> ArrayLike:
    aval = typeof(x)
    if power > iinfo(aval.dtype).max:
        return elementwise.mul(x, scalar_like(aval, 0))
    unit, zero, two = (scalar_like(aval, number) for number in (power, 0, 2))
    # The remainder of x over the greatest multiple of `unit` that is at most x.
    left = elementwise.rem(x, unit)
    if issubdtype(aval.dtype, np.signedinteger):
        left = choose("round", compare.lt(left, zero), elementwise.add(left, unit), left)
    below = elementwise.sub(x, left)
    half = elementwise.sub(unit, left)
    is_odd = compare.ne(elementwise.rem(elementwise.div(below, unit), two), zero)
    tie = elementwise.bitwise_and(compare.eq(left, half), is_odd)
    up = elementwise.bitwise_or(compare.gt(left, half), tie)
    return choose("round", up, elementwise.add(below, unit), below)


@operation_like(np.clip)
def clip(
    arr: ArrayLike | None = None, /, min: ArrayLike | None = None, max: ArrayLike | None = None
) -> Array:
    """Clip each element to at least `min` and at most `max`, which has precedence over `min`.

    Raises ValueError for complex numbers.

    Example:
      >>> jnp.clip(jnp.array([-1, 0, 5]), 0, 3)
      Array([0, 0, 3], dtype=int32)
    """
    if arr is None:
        raise ValueError("clip requires an array: jnp.clip(x, min, max)")
    for x in (arr, min, max):
        if x is not None and is_complex(typeof(any_operand("clip", x)).dtype):
            raise ValueError(
                "clip was given complex numbers, which have no order: clip their .real and .imag "
                "parts."
            )
    arr, _ = operand("clip", arr)
    if min is not None:
        arr = elementwise.max(*promote_args("clip", min, arr))
    if max is not None:
        arr = elementwise.min(*promote_args("clip", max, arr))
    return as_array_of_trace(arr)
