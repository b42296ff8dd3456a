"""Elementwise powers: of integers by squaring, of floats by exp and log."""

from __future__ import annotations

import operator

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import issubdtype
from hlofront.base.typing import Array, ArrayLike
from hlofront.bridge.client import ArrayImpl
from hlofront.core.aval import typeof
from hlofront.numpy.elementwise.division import _where
from hlofront.numpy.elementwise.ufuncs import is_integer, numeric_operand, scalar_like
from hlofront.numpy.support.like import like, operation_like
from hlofront.numpy.support.promotion import (
    host_scalar,
    operands,
    promote_args_inexact,
    promote_dtypes_numeric,
    promote_shapes,
)
from hlofront.primitives.elementwise import compare, elementwise
from hlofront.runtime.dispatch.operation import operation

# The number of exponent bits used: beyond it only powers of 0, 1 and -1 fit an integer dtype.
_BITS = 6


def static_exponent(x: ArrayLike) -> int | None:
    """Return a concrete scalar integer exponent as an int, and None for other exponents."""
    type_ = type(x)
    if type_ is int or type_ is bool:
        return int(x)
    if isinstance(x, np.generic | np.ndarray | ArrayImpl):
        return int(x) if x.ndim == 0 and x.dtype.kind in "iu" else None
    return operator.index(x) if isinstance(x, int) else None


def fixed_power(x: ArrayLike, exponent: int) -> Array:
    """Compute the power with a static exponent, by repeated multiplication."""
    return elementwise.integer_pow(numeric_operand("power", x), exponent)


def _power(x1: ArrayLike, x2: ArrayLike) -> Array:
    (x1, x2), _ = operands("power", (x1, x2))
    exponent = static_exponent(x2)
    if exponent is not None:
        return fixed_power(x1, exponent)
    x1, x2 = promote_shapes("power", x1, x2)
    x, y = promote_dtypes_numeric(x1, x2)
    if is_integer(typeof(x)):
        return _integer_power(x, y)
    # Integer exponents are not converted, and so stay exact.
    return elementwise.pow(x, x2 if issubdtype(typeof(x2).dtype, np.integer) else y)


def _integer_power(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute integer powers by repeated squaring, multiplying x ** (2 ** k) for bits k of y."""
    aval = typeof(x)
    zero, one = scalar_like(aval, 0), scalar_like(aval, 1)
    # The result of weakly typed operands is not weakly typed, as these constants are not.
    vanishes = elementwise.bitwise_and(compare.eq(x, zero), compare.ne(y, zero))
    result = _where(vanishes, *(host_scalar(number, aval.dtype) for number in (0, 1)))
    for _ in range(_BITS):
        bit = elementwise.bitwise_and(y, one)
        result = _where(bit, elementwise.mul(result, x), result)
        x = elementwise.mul(x, x)
        y = elementwise.shift_right_logical(y, one)
    return result


@operation(static_argnames=("exponent",))
def integer_power(x: ArrayLike, exponent: int) -> Array:
    """Compute powers such as `x ** 2` eagerly; each static exponent has its own program."""
    return fixed_power(x, exponent)


@operation
def any_power(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Compute x1 ** x2 with an exponent that is not static."""
    return _power(x1, x2)


@boundary
@like(np.power)
def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute x1 to the power x2, elementwise.

    Integers stay integers, and wrap. An exponent that is a single integer known while tracing is
    expanded into multiplications, and its dtype does not matter. Integers raised to a negative
    exponent raise TypeError if it is known while tracing; otherwise their results are meaningless.

    Example:
      >>> jnp.power(jnp.array([2, 3]), 2), jnp.power(jnp.array([-8.0]), 1 / 3)
      (Array([4, 9], dtype=int32), Array([nan], dtype=float32))
    """
    exponent = static_exponent(x2)
    return any_power(x1, x2) if exponent is None else integer_power(x1, exponent)


pow = power


@operation_like(np.float_power)
def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Compute x to the power y, elementwise, always as a float or a complex number.

    Example:
      >>> jnp.float_power(jnp.array([2, 3]), -1).round(3)
      Array([0.5  , 0.333], dtype=float32)
    """
    return elementwise.pow(*promote_args_inexact("float_power", x, y))
