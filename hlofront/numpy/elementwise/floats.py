"""The parts of floating-point numbers, their neighbors, and nan_to_num and hypot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hlofront.base.dtypes import bit_width, finfo, float0, is_complex, issubdtype
from hlofront.base.elements import exact_dtype
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.higher_order.custom_rules.custom_jvp import custom_jvp
from hlofront.numpy.elementwise.logic import infinite
from hlofront.numpy.elementwise.rounding import toward_zero
from hlofront.numpy.elementwise.ufuncs import (
    any_operand,
    full_of,
    inexact_operand,
    is_integer,
    refuse_out,
    scalar_like,
)
from hlofront.numpy.support.like import operation_like
from hlofront.numpy.support.promotion import (
    choose,
    host_scalar,
    operands,
    promote_args_inexact,
    promote_dtypes_inexact,
    promote_shapes,
)
from hlofront.primitives.arrays import creation
from hlofront.primitives.elementwise import compare, converting, elementwise
from hlofront.primitives.elementwise.weak_types import times_one

if TYPE_CHECKING:
    from hlofront.core.aval import ShapedArray

_float16 = np.dtype(np.float16)


def _no_complex(name: str, error: type[Exception], *avals: ShapedArray) -> None:
    for aval in avals:
        if is_complex(aval.dtype):
            raise error(f"{name} does not support complex numbers, got dtype {aval.dtype}")


def _bits(x: ArrayLike) -> Array:
    """Return the bits of floats as signed integers of equal width."""
    return converting.bitcast_convert_type(x, f"int{bit_width(typeof(x).dtype)}")


# ---- signs -------------------------------------------------------------------------------------


def _sign_bit(x: ArrayLike) -> Array:
    bits = _bits(x)
    return compare.lt(bits, scalar_like(typeof(bits), 0))


@operation_like(np.signbit)
def signbit(x: ArrayLike, /) -> Array:
    """Return elementwise whether the sign bit is set, also for -0.0 and NaN.

    Raises ValueError for complex x.

    Example:
      >>> jnp.signbit(jnp.array([-0.0, 0.0, -1]))
      Array([ True, False,  True], dtype=bool)
    """
    x = any_operand("signbit", x)
    aval = typeof(x)
    _no_complex("signbit", ValueError, aval)
    if issubdtype(aval.dtype, np.signedinteger):
        return compare.lt(x, host_scalar(0, aval.dtype))
    if is_integer(aval):
        return creation.full(aval.shape, False, np.bool_)
    return _sign_bit(x)


def _with_sign(x1: ArrayLike, x2: ArrayLike) -> Array:
    magnitude = elementwise.abs(x1)
    return choose("copysign", _sign_bit(x2), elementwise.neg(magnitude), magnitude)


@operation_like(np.copysign)
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return x1 with the sign of x2, elementwise, as floats.

    Raises TypeError for complex numbers.

    Example:
      >>> jnp.copysign(3, jnp.array([-0.0, 0.0]))
      Array([-3.,  3.], dtype=float32)
    """
    x1, x2 = promote_args_inexact("copysign", x1, x2)
    _no_complex("copysign", TypeError, typeof(x1))
    return _with_sign(x1, x2)


def _strong_arrays(x: ArrayLike, y: ArrayLike) -> tuple[ArrayLike, ArrayLike]:
    """Return scalars unchanged and arrays strongly typed; in JAX no result with axes is weak."""
    if typeof(x).weak_type and typeof(y).weak_type and (typeof(x).ndim or typeof(y).ndim):
        return times_one(x), times_one(y)
    return x, y


@operation_like(np.heaviside)
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute the Heaviside step function elementwise, as floats.

    It is 0 for negative x1, x2 at zero, 1 for positive x1.

    Example:
      >>> jnp.heaviside(jnp.array([-2, 0, 2]), 0.5)
      Array([0. , 0.5, 1. ], dtype=float32)
    """
    x, y = promote_dtypes_inexact(*operands("heaviside", (x1, x2))[0])
    zero, one = (scalar_like(typeof(x), number) for number in (0, 1))
    result = choose("heaviside", compare.ne(x, x), x, y)
    result = choose("heaviside", compare.gt(x, zero), one, result)
    return choose("heaviside", compare.lt(x, zero), zero, result)


# ---- neighbors ---------------------------------------------------------------------------------


@operation_like(np.nextafter)
def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return the next float after x in the direction of y, elementwise.

    Example:
      >>> jnp.nextafter(jnp.float32(1), 2) - 1 == jnp.finfo(jnp.float32).eps
      Array(True, dtype=bool)
    """
    return elementwise.nextafter(*promote_args_inexact("nextafter", x, y))


@operation_like(np.spacing)
def spacing(x: ArrayLike, /) -> Array:
    """Compute the distance to the next float away from zero, elementwise, with the sign of x.

    For float16 it is, as in NumPy, the distance to the next greater float, and positive.

    Raises:
      ValueError: if x is complex.
      NotImplementedError: if its dtype has no infinity.

    Example:
      >>> jnp.spacing(jnp.array([1.0, 2.0])) / jnp.finfo(jnp.float32).eps
      Array([1., 2.], dtype=float32)
    """
    x = inexact_operand("spacing", x)
    aval = typeof(x)
    _no_complex("spacing", ValueError, aval)
    if not np.isinf(np.asarray(np.inf).astype(aval.dtype)):
        raise NotImplementedError(  # JAX raises this class.
            f"spacing needs a dtype that has an infinity, got {aval.dtype}. Convert x to a wider "
            "one: x.astype('float32')."
        )
    x = converting.convert(x, aval.dtype, False)
    infinity = full_of(x, np.inf)
    if aval.dtype == _float16:
        # NumPy returns the distance to the next greater number, which is positive, for this dtype.
        return elementwise.sub(elementwise.nextafter(x, infinity), x)
    gap = elementwise.sub(elementwise.nextafter(x, _with_sign(infinity, x)), x)
    # Where subnormal numbers are flushed to zero, the distance would be flushed as well.
    least = full_of(x, finfo(aval.dtype).smallest_subnormal)
    return choose("spacing", compare.eq(gap, scalar_like(aval, 0)), _with_sign(least, x), gap)


# ---- mantissas and exponents -------------------------------------------------------------------


@custom_jvp
def _frexp(x: Array) -> tuple[Array, Array]:
    aval = typeof(x)
    info = finfo(aval.dtype)
    bits, mantissa, exponent_bits = info.bits, info.nmant, info.nexp
    integer = np.dtype(f"int{bits}")

    def constant(value: int) -> np.generic:
        # The mask of the sign bit as a signed integer of this width is negative.
        return exact_dtype(np.asarray(value & (1 << bits) - 1, f"uint{bits}").astype(integer)[()])

    exponent_mask = (1 << exponent_bits) - 1
    bias = exponent_mask >> 1
    # Subnormal numbers have no exponent of their own; scaled up, they have one.
    small = compare.lt(elementwise.abs(x), scalar_like(aval, float(info.smallest_normal)))
    scaled = choose("frexp", small, elementwise.mul(x, scalar_like(aval, 2.0**mantissa)), x)
    shift = choose("frexp", small, constant(-mantissa), constant(0))
    pattern = _bits(scaled)
    exponent = elementwise.bitwise_and(
        elementwise.shift_right_logical(pattern, constant(mantissa)), constant(exponent_mask)
    )
    exponent = elementwise.add(shift, elementwise.sub(exponent, constant(bias - 1)))
    # The exponent field is replaced by the one of numbers in [0.5, 1).
    pattern = elementwise.bitwise_and(pattern, constant(~(exponent_mask << mantissa)))
    pattern = elementwise.bitwise_or(pattern, constant((bias - 1) << mantissa))
    fraction = converting.bitcast_convert_type(pattern, aval.dtype)
    whole = elementwise.bitwise_or(infinite(x), compare.ne(x, x))
    whole = elementwise.bitwise_or(whole, compare.eq(x, scalar_like(aval, 0)))
    exponent = converting.convert(exponent, np.dtype("int32"), False)
    return (
        choose("frexp", whole, x, fraction),
        choose("frexp", whole, np.int32(0), exponent),
    )


@_frexp.defjvp
def _(
    primals: tuple[Array, ...], tangents: tuple[ArrayLike, ...]
) -> tuple[Array | tuple[Array, Array], Array | tuple[Array, np.ndarray]]:
    # Between powers of two the exponent is constant, and the fraction is x times a constant.
    fraction, exponent = _frexp(*primals)
    share = _scaled(full_of(fraction, 1), elementwise.neg(exponent))
    change = elementwise.mul(tangents[0], share)
    return (fraction, exponent), (change, np.zeros(typeof(exponent).shape, float0))


@operation_like(np.frexp)
def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """Split each x into a fraction within [0.5, 1), with the sign of x, and an int32 exponent.

    `x = fraction * 2 ** exponent`; zeros, infinities and NaN are their own fractions. Raises
    TypeError for complex numbers.

    Example:
      >>> jnp.frexp(jnp.array([8.0, -3.0]))
      (Array([ 0.5 , -0.75], dtype=float32), Array([4, 2], dtype=int32))
    """
    x = inexact_operand("frexp", x)
    _no_complex("frexp", TypeError, typeof(x))
    return _frexp(x)


@custom_jvp
def _scaled(x1: Array, x2: Array) -> Array:
    """Compute `x1 * 2 ** x2` for integers x2, exactly even where the power is out of range."""
    aval = typeof(x1)
    fraction, old_exponent = _frexp(x1)
    exponent = elementwise.add(old_exponent, converting.convert(x2, np.dtype("int32"), False))
    # The product is made in two steps, so that neither power overflows while their product is
    # finite.
    positive = compare.gt(exponent, np.int32(0))
    fraction = choose(
        "ldexp", positive, elementwise.mul(fraction, scalar_like(aval, 2.0)), fraction
    )
    exponent = elementwise.sub(exponent, choose("ldexp", positive, np.int32(1), np.int32(0)))
    power_of_two = elementwise.pow(
        scalar_like(aval, 2.0), converting.convert(exponent, aval.dtype, False)
    )
    result = elementwise.mul(fraction, power_of_two)
    same = elementwise.bitwise_or(infinite(x1), compare.eq(x1, scalar_like(aval, 0)))
    return choose("ldexp", same, x1, result)


@_scaled.defjvp
def _(
    primals: tuple[Array, ...], tangents: tuple[ArrayLike, ...]
) -> tuple[Array | tuple[Array, Array], Array | tuple[Array, np.ndarray]]:
    x1, x2 = primals
    factor = _scaled(full_of(x1, 1), x2)
    return _scaled(x1, x2), elementwise.mul(converting.strong(tangents[0]), factor)


@operation_like(np.ldexp)
def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute `x1 * 2 ** x2` elementwise for integers x2. Raises ValueError for other dtypes.

    Example:
      >>> jnp.ldexp(jnp.array([0.5, 0.75]), jnp.array([4, 2]))
      Array([8., 3.], dtype=float32)
    """
    (x1, x2), (base, power) = operands("ldexp", (x1, x2))
    if is_complex(base.dtype) or not is_integer(power):
        raise ValueError(
            f"ldexp expects a float and an integer array, got dtypes {base.dtype} and {power.dtype}"
        )
    x1 = inexact_operand("ldexp", x1)
    return _scaled(*promote_shapes("ldexp", x1, x2))


@operation_like(np.modf)
def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """Split each x into its fraction and its whole part, as floats, both with the sign of x.

    Example:
      >>> jnp.modf(jnp.array([2.5, -2.5]))
      (Array([ 0.5, -0.5], dtype=float32), Array([ 2., -2.], dtype=float32))
    """
    refuse_out("modf", out)
    x = inexact_operand("modf", x)
    whole = toward_zero(x)
    return elementwise.sub(x, whole), whole


# ---- NaN and infinities ------------------------------------------------------------------------


@operation_like(np.nan_to_num, static_argnames=("copy",))
def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """Replace NaN and the infinities by finite numbers, elementwise.

    Args:
      x: an array.
      nan: the number that replaces NaN.
      posinf, neginf: the numbers that replace the infinities; by default the greatest and the least
        number of the dtype.
      copy: has no effect, as arrays are immutable.

    Example:
      >>> jnp.nan_to_num(jnp.array([jnp.nan, jnp.inf, 1]), nan=-1, posinf=99)
      Array([-1., 99.,  1.], dtype=float32)
    """
    x = any_operand("nan_to_num", x)
    aval = typeof(x)
    if is_integer(aval):
        return x
    if is_complex(aval.dtype):
        return elementwise.complex(
            _numbers(elementwise.real(x), nan, posinf, neginf),
            _numbers(elementwise.imag(x), nan, posinf, neginf),
        )
    return _numbers(x, nan, posinf, neginf)


def _numbers(
    x: ArrayLike, nan: ArrayLike, posinf: ArrayLike | None, neginf: ArrayLike | None
) -> Array:
    aval = typeof(x)
    info = finfo(aval.dtype)
    posinf = info.max if posinf is None else posinf
    neginf = info.min if neginf is None else neginf

    def put(where: Array, value: ArrayLike, x: ArrayLike) -> Array:
        value = converting.convert(value, aval.dtype, False)
        return choose("nan_to_num", where, value, x)

    result = put(compare.ne(x, x), nan, x)
    result = put(compare.eq(x, scalar_like(aval, np.inf)), posinf, result)
    return put(compare.eq(x, scalar_like(aval, -np.inf)), neginf, result)


# ---- functions without overflow ----------------------------------------------------------------


@operation_like(np.hypot)
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Compute `sqrt(x1 ** 2 + x2 ** 2)` elementwise without overflow.

    Raises ValueError for complex numbers.

    Example:
      >>> (jnp.hypot(jnp.array([3e30]), 4e30) / 1e30).round(3)
      Array([5.], dtype=float32)
    """
    x, y = _strong_arrays(*promote_args_inexact("hypot", x1, x2))
    aval = typeof(x)
    _no_complex("hypot", ValueError, aval)
    x, y = elementwise.abs(x), elementwise.abs(y)
    zero, one, infinity = (
        host_scalar(number, aval.dtype, aval.weak_type) for number in (0, 1, np.inf)
    )
    unbounded = elementwise.bitwise_or(compare.eq(x, infinity), compare.eq(y, infinity))
    longer, shorter = elementwise.max(x, y), elementwise.min(x, y)
    nothing = compare.eq(longer, zero)
    ratio = elementwise.div(shorter, choose("hypot", nothing, one, longer))
    length = elementwise.mul(
        longer, elementwise.sqrt(elementwise.add(one, elementwise.square(ratio)))
    )
    length = choose("hypot", nothing, longer, length)
    return choose("hypot", unbounded, infinity, length)
