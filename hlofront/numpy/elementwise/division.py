"""Integer division: floor_divide, remainder, divmod, fmod, gcd and lcm."""

from __future__ import annotations

import numpy as np

from hlofront.base.dtypes import is_complex, issubdtype
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.higher_order.control_flow.library_loops import while_loop
from hlofront.numpy.elementwise.ufuncs import full_of, is_integer, scalar_like
from hlofront.numpy.support.like import operation_like
from hlofront.numpy.support.promotion import (
    broadcast_together,
    choose,
    host_scalar,
    operands,
    promote_args,
    promote_args_numeric,
    promote_dtypes,
)
from hlofront.primitives.arrays import reducing
from hlofront.primitives.elementwise import compare, elementwise
from hlofront.runtime.dispatch.operation import operation


@operation(nested=True)
def _where(condition: ArrayLike, x: ArrayLike, y: ArrayLike) -> Array:
    """Select x where a condition is true or nonzero, else y, as one nested program.

    An integer condition is true where it is not zero.
    """
    aval = typeof(condition)
    if aval.dtype != np.bool_:
        condition = compare.ne(condition, scalar_like(aval, 0))
    return choose("where", condition, x, y)


def _both(x: Array, y: Array) -> Array:
    """Return the elementwise `and` of two boolean arrays.

    Weak booleans, from comparisons of weak numbers, are promoted as strong ones.
    """
    return elementwise.bitwise_and(*promote_args("logical_and", x, y))


def _floor_divide(x1: Array, x2: Array) -> Array:
    x, y = promote_args_numeric("floor_divide", x1, x2)
    aval = typeof(x)
    if issubdtype(aval.dtype, np.unsignedinteger):
        return elementwise.div(x, y)
    if is_complex(aval.dtype):
        raise TypeError(
            f"floor_divide does not support complex numbers, got dtype {aval.dtype}: they have no "
            "floor. Divide with / instead."
        )
    if not is_integer(aval):
        return _float_divmod(x, y)[0]
    quotient = elementwise.div(x, y)
    # XLA rounds toward zero: for a negative, inexact quotient the floor is one less.
    inexact = _both(
        compare.ne(elementwise.sign(x), elementwise.sign(y)),
        compare.ne(elementwise.rem(x, y), scalar_like(aval, 0)),
    )
    one = host_scalar(1, aval.dtype, aval.weak_type)
    return _where(inexact, elementwise.sub(quotient, one), quotient)


def _float_divmod(x: Array, y: Array) -> tuple[Array, Array]:
    aval = typeof(x)
    zero, one = (host_scalar(number, aval.dtype, aval.weak_type) for number in (0, 1))
    remainder = elementwise.rem(x, y)
    # A division by zero must give an infinity or NaN.
    divisible = _where(compare.eq(y, zero), x, elementwise.sub(x, remainder))
    quotient = elementwise.div(divisible, y)
    other_sign = elementwise.bitwise_and(
        compare.ne(remainder, zero),
        compare.ne(elementwise.sign(y), elementwise.sign(remainder)),
    )
    remainder = compare.select(other_sign, elementwise.add(remainder, y), remainder)
    quotient = compare.select(other_sign, elementwise.sub(quotient, one), quotient)
    return elementwise.round(quotient), remainder


def _remainder(x1: Array, x2: Array) -> Array:
    x, y = promote_args_numeric("remainder", x1, x2)
    aval = typeof(x)
    zero = scalar_like(aval, 0)
    if is_integer(aval):
        y = _nonzero(y)
    remainder = elementwise.rem(x, y)
    nonzero = compare.ne(remainder, zero)
    other_sign = elementwise.bitwise_and(
        compare.ne(compare.lt(remainder, zero), compare.lt(y, zero)), nonzero
    )
    return compare.select(other_sign, elementwise.add(remainder, y), remainder)


def _nonzero(y: ArrayLike) -> Array:
    """Return y with zeros replaced by ones; the remainder of a division by one is zero."""
    aval = typeof(y)
    is_zero = compare.eq(y, scalar_like(aval, 0))
    # The ones are weakly typed if y is, so that nothing is promoted.
    one = full_of(y, 1) if aval.shape else host_scalar(1, aval.dtype, aval.weak_type)
    return _where(is_zero, one, y)


@operation_like(np.floor_divide, nested=True)
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute the elementwise floor of the quotient, in the dtype of the operands.

    Division by zero gives -1 for integers, and infinity or NaN for floats. Complex numbers raise
    TypeError.

    Example:
      >>> jnp.floor_divide(jnp.array([-7, 7]), 2)
      Array([-4,  3], dtype=int32)
    """
    return _floor_divide(x1, x2)


@operation_like(np.remainder, nested=True)
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute the elementwise remainder of the division that rounds down.

    It has the sign of x2, as `%` has.

    The remainder by zero is 0 for integers and NaN for floats. Complex numbers raise TypeError.

    Example:
      >>> jnp.remainder(jnp.array([-7, 7]), jnp.array([3, -3]))
      Array([ 2, -2], dtype=int32)
    """
    return _remainder(x1, x2)


mod = remainder


@operation_like(np.divmod, nested=True)
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """Return the pair of floor_divide and remainder, elementwise.

    Example:
      >>> jnp.divmod(jnp.array([-7, 7]), 3)
      (Array([-3,  2], dtype=int32), Array([2, 1], dtype=int32))
    """
    x, y = promote_args_numeric("divmod", x1, x2)
    if is_integer(typeof(x)):
        return floor_divide(x, y), remainder(x, y)
    if is_complex(typeof(x).dtype):
        return _floor_divide(x, y)  # Unsupported dtypes raise here.
    return _float_divmod(x, y)


@operation_like(np.fmod)
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute the elementwise remainder of the division that rounds toward zero.

    It has the sign of x1.

    Example:
      >>> jnp.fmod(jnp.array([-7, 7]), 3)
      Array([-1,  1], dtype=int32)
    """
    x, y = promote_args_numeric("fmod", x1, x2)
    if is_integer(typeof(x)):
        y = _nonzero(y)
    return elementwise.rem(x, y)


def _two_integers(name: str, x1: ArrayLike, x2: ArrayLike) -> list[ArrayLike]:
    if name == "gcd":
        # The operands broadcast regardless of the rank promotion option, as in
        # broadcast_arrays.
        x, y = broadcast_together(name, *promote_dtypes(*operands(name, (x1, x2))[0]))
    else:
        x, y = promote_args(name, x1, x2)
    aval = typeof(x)
    if not issubdtype(aval.dtype, np.integer):
        raise ValueError(
            f"Arguments to jnp.{name} must be integers, got dtypes {typeof(x1).dtype} and "
            f"{typeof(x2).dtype}. Convert them with .astype(int)."
        )
    return [_magnitude(x), _magnitude(y)]


def _magnitude(x: ArrayLike) -> ArrayLike:
    return x if issubdtype(typeof(x).dtype, np.unsignedinteger) else elementwise.abs(x)


def _gcd(x: ArrayLike, y: Array) -> Array:
    """Compute gcd(x, y) by Euclid's algorithm, with as many steps as the elements take."""

    def cond(pair: tuple[Array, Array]) -> Array:
        divisors = pair[1]
        is_left = compare.ne(divisors, scalar_like(typeof(divisors), 0))
        return reducing.reduce_or(is_left, range(typeof(divisors).ndim))

    def step(pair: tuple[Array, Array]) -> tuple[Array, Array]:
        x, y = pair
        aval = typeof(x)
        zero = scalar_like(aval, 0)
        done = compare.eq(y, zero)
        divisor = choose("gcd", done, scalar_like(aval, 1), y)
        remainder = choose("gcd", done, zero, elementwise.rem(x, divisor))
        return choose("gcd", done, x, y), remainder

    return while_loop(cond, step, (elementwise.max(x, y), elementwise.min(x, y)))[0]


@operation_like(np.gcd)
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Compute the elementwise greatest common divisor of integers.

    Raises ValueError for other dtypes.

    Example:
      >>> jnp.gcd(jnp.array([12, -18, 0]), 8)
      Array([4, 2, 8], dtype=int32)
    """
    return _gcd(*_two_integers("gcd", x1, x2))


@operation_like(np.lcm)
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Compute the elementwise least common multiple of integers.

    Raises ValueError for other dtypes.

    Example:
      >>> jnp.lcm(jnp.array([4, -6]), 10)
      Array([20, 30], dtype=int32)
    """
    x, y = _two_integers("lcm", x1, x2)
    divisor = _gcd(x, y)
    zero, one = scalar_like(typeof(x), 0), scalar_like(typeof(x), 1)
    none = compare.eq(divisor, zero)
    multiple = elementwise.mul(x, elementwise.div(y, choose("lcm", none, one, divisor)))
    return choose("lcm", none, zero, multiple)
