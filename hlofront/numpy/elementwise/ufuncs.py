"""Elementwise arithmetic, exponentials and trigonometry, with promotion and broadcasting."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from hlofront.base.dtypes import is_complex, issubdtype, python_scalar_dtype, to_inexact_dtype
from hlofront.base.elements import bool_, host_number
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import ShapedArray, SymbolicSize, typeof
from hlofront.higher_order.custom_rules.custom_jvp import custom_jvp
from hlofront.numpy.support.like import like, operation_like
from hlofront.numpy.support.promotion import (
    choose,
    host_scalar,
    operand,
    promote_args,
    promote_args_inexact,
    promote_args_numeric,
    promote_dtypes_inexact,
)
from hlofront.primitives.arrays import creation
from hlofront.primitives.elementwise import compare, elementwise
from hlofront.primitives.elementwise.converting import as_array_of_trace
from hlofront.runtime.dispatch.operation import operation

# ---- helpers of elementwise functions ----------------------------------------------------------


def any_operand(name: str, x: ArrayLike) -> ArrayLike:
    """Return the operand of the function called `name`, checked."""
    return operand(name, x)[0]


def inexact_operand(name: str, x: ArrayLike) -> ArrayLike:
    """Return the operand of the function called `name` as a float or a complex number."""
    x, aval = operand(name, x)
    return x if to_inexact_dtype(aval.dtype) is aval.dtype else promote_dtypes_inexact(x)[0]


def numeric_operand(name: str, x: ArrayLike) -> ArrayLike:
    """Return the operand of the function called `name`; booleans become integers."""
    return promote_args_numeric(name, x)[0]


def scalar_like(aval: ShapedArray, value: complex) -> ArrayLike:
    """Return a Python scalar in the dtype of an aval.

    The scalar is weak only where that makes no result weaker: results with axes are strong, as in
    JAX.
    """
    kind = aval.dtype.kind
    if isinstance(value, SymbolicSize):
        return host_number(value, aval.dtype)
    if kind == "c":
        value = complex(value)
    elif kind == "f":
        value = float(value)
    made_strong = aval.weak_type and aval.ndim
    if python_scalar_dtype(type(value)) is aval.dtype and not made_strong:
        return value
    return host_scalar(value, aval.dtype)


def is_integer(aval: ShapedArray) -> bool:
    """Return whether the elements of an aval are integers or booleans."""
    return aval.dtype == bool_ or issubdtype(aval.dtype, np.integer)


def full_of(x: ArrayLike, value: ArrayLike) -> ArrayLike:
    """Make an array of the shape and dtype of `x` whose elements are all `value`."""
    return creation.full_like(x, value)


def refuse_out(name: str, out: None, where: ArrayLike | None = None) -> None:
    """Raise NotImplementedError, as JAX does, for arguments that immutable arrays cannot honor."""
    if out is not None:
        raise NotImplementedError(  # JAX raises this class.
            f"The 'out' argument to jnp.{name} is not supported: arrays are immutable. Use the "
            "result that it returns."
        )
    if where is not None:
        raise NotImplementedError(  # JAX raises this class.
            f"The 'where' argument to jnp.{name} is not supported, as there is no `out` to leave "
            f"as it is. Use jnp.where(mask, jnp.{name}(...), other)."
        )


def rename(function: Callable[..., Array], name: str, doc: str) -> Callable[..., Array]:
    """Set the name, qualified name and docstring of a generated function; return it."""
    function.__name__ = function.__qualname__ = name
    function.__code__ = function.__code__.replace(co_name=name, co_qualname=name)
    function.__doc__ = doc
    return function


def unary_operation(
    reference: object,
    doc: str,
    apply: Callable[[Array], Array],
    operand: Callable[[str, ArrayLike], ArrayLike] = inexact_operand,
) -> Callable[..., Array]:
    """Make a function of one array: `apply` of the result of `operand`."""
    name = reference.__name__

    def function(x: ArrayLike, /) -> Array:
        return apply(operand(name, x))

    return operation(like(reference)(rename(function, name, doc)))


def binary_operation(
    reference: object,
    doc: str,
    apply: Callable[[Array, Array], Array],
    promote: Callable[..., list[ArrayLike]] = promote_args,
    logical: Callable[[Array, Array], Array] | None = None,
) -> Callable[..., Array]:
    """Make a function of two arrays: `apply` of promoted operands, or `logical` of booleans."""
    name = reference.__name__

    def function(x1: ArrayLike, x2: ArrayLike, /) -> Array:
        x1, x2 = promote(name, x1, x2)
        if logical is not None and typeof(x1).dtype == bool_:
            return logical(x1, x2)
        return apply(x1, x2)

    return operation(like(reference)(rename(function, name, doc)))


# ---- sums, products, signs ---------------------------------------------------------------------

add = binary_operation(
    np.add,
    """Compute the elementwise sum; for booleans, whether either is true.

    Example:
      >>> jnp.add(jnp.array([True, False]), jnp.array([True, False]))
      Array([ True, False], dtype=bool)
    """,
    elementwise.add,
    logical=elementwise.bitwise_or,
)
subtract = binary_operation(np.subtract, "Compute the elementwise difference.", elementwise.sub)
multiply = binary_operation(
    np.multiply,
    """Compute the elementwise product; for booleans, whether both are true.

    Example:
      >>> jnp.multiply(jnp.array([[1], [2]]), jnp.array([3, 4]))
      Array([[3, 4],
             [6, 8]], dtype=int32)
    """,
    elementwise.mul,
    logical=elementwise.bitwise_and,
)
divide = true_divide = binary_operation(
    np.divide,
    """Compute the elementwise quotient; integers give a float.

    Example:
      >>> jnp.divide(jnp.array([1, -3, 0]), jnp.array([2, 2, 0]))
      Array([ 0.5, -1.5,  nan], dtype=float32)
    """,
    elementwise.div,
    promote_args_inexact,
)
maximum = binary_operation(
    np.maximum,
    """Return the greater element of each pair; NaN takes precedence.

    Example:
      >>> jnp.maximum(jnp.array([1, jnp.nan, 3]), 2)
      Array([ 2., nan,  3.], dtype=float32)
    """,
    elementwise.max,
)
minimum = binary_operation(
    np.minimum,
    """Return the lesser element of each pair; NaN takes precedence.

    Example:
      >>> jnp.minimum(jnp.array([1, jnp.nan, 3]), 2)
      Array([ 1., nan,  2.], dtype=float32)
    """,
    elementwise.min,
)


@operation_like(np.negative)
def negative(x: ArrayLike, /) -> Array:
    """Negate each element. Raises TypeError for booleans: use logical_not."""
    return elementwise.neg(any_operand("negative", x))


positive = unary_operation(
    np.positive, "Return the numbers unchanged.", as_array_of_trace, any_operand
)
square = unary_operation(
    np.square, "Compute the elementwise square.", elementwise.square, numeric_operand
)
reciprocal = unary_operation(
    np.reciprocal,
    """Compute `1 / x` elementwise; integers give a float.

    Example:
      >>> jnp.reciprocal(jnp.array([2, 4]))
      Array([0.5 , 0.25], dtype=float32)
    """,
    elementwise.reciprocal,
)
sign = unary_operation(
    np.sign,
    """Return the elementwise sign: -1, 0 or 1; for complex x, x / |x|.

    Example:
      >>> jnp.sign(jnp.array([3 + 4j, -2])).round(3)
      Array([ 0.6+0.8j, -1. +0.j ], dtype=complex64)
    """,
    elementwise.sign,
    any_operand,
)


def _absolute(x: ArrayLike) -> ArrayLike:
    aval = typeof(x)
    if aval.dtype == bool_ or issubdtype(aval.dtype, np.unsignedinteger):
        return x
    return elementwise.abs(x)


absolute = abs = unary_operation(
    np.absolute,
    """Compute the elementwise absolute value; complex numbers give a float.

    Example:
      >>> jnp.abs(jnp.array([3 + 4j, -5])).round(3)
      Array([5., 5.], dtype=float32)
    """,
    _absolute,
    any_operand,
)


@operation_like(np.fabs)
def fabs(x: ArrayLike, /) -> Array:
    """Compute the elementwise absolute value, as a float. Raises TypeError for complex x.

    Example:
      >>> jnp.fabs(jnp.array([-2, 3]))
      Array([2., 3.], dtype=float32)
    """
    x = inexact_operand("fabs", x)
    if is_complex(typeof(x).dtype):
        raise TypeError(
            f"fabs does not support complex numbers, got dtype {typeof(x).dtype}: use jnp.abs."
        )
    return elementwise.abs(x)


def ordering(comparison: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """Return a comparison that also orders complex numbers, by real, then imaginary part."""

    def apply(x: ArrayLike, y: ArrayLike) -> Array:
        if not is_complex(typeof(x).dtype):
            return comparison(x, y)
        real, imag = elementwise.real, elementwise.imag
        tie = compare.eq(real(x), real(y))
        by_imag = comparison(imag(x), imag(y))
        return compare.select(tie, by_imag, comparison(real(x), real(y)))

    return apply


@operation_like(np.fmax)
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the greater of two elements, elementwise; numbers take precedence over NaN.

    Example:
      >>> jnp.fmax(jnp.array([1, jnp.nan]), jnp.array([jnp.nan, 2]))
      Array([1., 2.], dtype=float32)
    """
    x1, x2 = promote_args("fmax", x1, x2)
    preferred = elementwise.bitwise_or(ordering(compare.gt)(x1, x2), compare.ne(x2, x2))
    return choose("fmax", preferred, x1, x2)


@operation_like(np.fmin)
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the lesser of two elements, elementwise; numbers take precedence over NaN.

    Example:
      >>> jnp.fmin(jnp.array([1, jnp.nan]), jnp.array([jnp.nan, 2]))
      Array([1., 2.], dtype=float32)
    """
    x1, x2 = promote_args("fmin", x1, x2)
    preferred = elementwise.bitwise_or(ordering(compare.lt)(x1, x2), compare.ne(x2, x2))
    return choose("fmin", preferred, x1, x2)


# ---- exponentials and logarithms ---------------------------------------------------------------

exp = unary_operation(np.exp, "Compute the elementwise exponential.", elementwise.exp)
exp2 = unary_operation(np.exp2, "Compute 2 to the power x, elementwise.", elementwise.exp2)
expm1 = unary_operation(
    np.expm1,
    """Compute `exp(x) - 1` elementwise, accurately for x near zero.

    Example:
      >>> x = jnp.array([1e-8])
      >>> (jnp.expm1(x) / x).round(3), jnp.exp(x) - 1
      (Array([1.], dtype=float32), Array([0.], dtype=float32))
    """,
    elementwise.expm1,
)
log = unary_operation(
    np.log,
    """Compute the elementwise natural logarithm.

    Example:
      >>> jnp.log(jnp.array([1, 0, -1]))
      Array([  0., -inf,  nan], dtype=float32)
    """,
    elementwise.log,
)
log1p = unary_operation(
    np.log1p,
    """Compute `log(1 + x)` elementwise, accurately for x near zero.

    Example:
      >>> x = jnp.array([1e-8])
      >>> (jnp.log1p(x) / x).round(3), jnp.log(1 + x)
      (Array([1.], dtype=float32), Array([0.], dtype=float32))
    """,
    elementwise.log1p,
)
sqrt = unary_operation(
    np.sqrt,
    """Compute the elementwise square root.

    Example:
      >>> jnp.sqrt(jnp.array([4, -1])), jnp.sqrt(jnp.array([-1 + 0j]))
      (Array([ 2., nan], dtype=float32), Array([0.+1.j], dtype=complex64))
    """,
    elementwise.sqrt,
)
cbrt = unary_operation(
    np.cbrt,
    """Compute the elementwise cube root.

    Example:
      >>> jnp.cbrt(jnp.array([8, -8])).round(3)
      Array([ 2., -2.], dtype=float32)
    """,
    elementwise.cbrt,
)


def _by_scalar(apply: Callable[[Array, Array], Array], x: ArrayLike, number: float) -> Array:
    return apply(x, scalar_like(typeof(x), number))


def _each_part(x: Array, apply: Callable[[Array], Array]) -> Array:
    """Apply a function to real numbers, or to both parts of complex numbers."""
    if not is_complex(typeof(x).dtype):
        return apply(x)
    return elementwise.complex(apply(elementwise.real(x)), apply(elementwise.imag(x)))


log2 = unary_operation(
    np.log2,
    "Compute the elementwise logarithm to base 2.",
    lambda x: _each_part(
        elementwise.log(x),
        lambda y: elementwise.div(y, host_scalar(math.log(2.0), typeof(y).dtype)),
    ),
)
log10 = unary_operation(
    np.log10,
    "Compute the elementwise logarithm to base 10.",
    lambda x: _each_part(
        elementwise.log(x),
        lambda y: elementwise.mul(y, host_scalar(1.0 / math.log(10.0), typeof(y).dtype)),
    ),
)


def _logaddexp(x: Array, y: Array, power: Callable[..., Array], log_of_base: float) -> Array:
    """Compute the logarithm of `base ** x + base ** y` without overflow."""
    aval = typeof(x)
    greater = elementwise.max(x, y)
    if is_complex(aval.dtype):
        # The lesser number minus the greater one.
        gap = elementwise.sub(elementwise.add(x, y), elementwise.mul(greater, scalar_like(aval, 2)))
        result = elementwise.add(greater, _scaled(elementwise.log1p(power(gap)), 1 / log_of_base))
        half = math.pi / log_of_base
        return elementwise.complex(
            elementwise.real(result), _wrapped(elementwise.imag(result), half)
        )
    gap = elementwise.sub(x, y)
    correction = elementwise.log1p(power(elementwise.neg(elementwise.abs(gap))))
    # The gap between infinities of one sign is NaN; their sum is the right result.
    return compare.select(
        compare.ne(gap, gap),
        elementwise.add(x, y),
        elementwise.add(greater, _scaled(correction, 1 / log_of_base)),
    )


def _scaled(x: Array, factor: float) -> Array:
    if factor == 1:
        return x
    aval = typeof(x)
    # As in JAX, no result with axes is weak.
    weak = aval.weak_type and not aval.ndim and not is_complex(aval.dtype)
    return elementwise.mul(x, host_scalar(factor, aval.dtype, weak))


def _wrapped(x: Array, half: float) -> Array:
    """Wrap angles into [-half, half)."""
    aval = typeof(x)
    period = scalar_like(aval, 2 * half)
    turned = elementwise.rem(elementwise.add(x, scalar_like(aval, half)), period)
    turned = compare.select(
        compare.lt(turned, scalar_like(aval, 0)), elementwise.add(turned, period), turned
    )
    return elementwise.sub(turned, scalar_like(aval, half))


def _smooth(power: Callable[[Array], Array], log_of_base: float) -> Array:
    """Return `_logaddexp` with a JVP rule: the shares of `base ** x` and `base ** y` in the sum."""

    @custom_jvp
    def function(x: Array, y: Array) -> Array:
        return _logaddexp(x, y, power, log_of_base)

    @function.defjvp
    def _(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
        total = function(*primals)
        finite = _infinity_as_zero(total)
        shares = [
            elementwise.mul(t, power(elementwise.sub(_infinity_as_zero(x), finite)))
            for x, t in zip(primals, tangents, strict=True)
        ]
        return total, elementwise.add(*shares)

    return function


def _infinity_as_zero(x: Array) -> Array:
    if is_complex(typeof(x).dtype):
        return x
    infinite = compare.eq(x, scalar_like(typeof(x), math.inf))
    return compare.select(infinite, creation.full_like(x, 0), x)


logaddexp = binary_operation(
    np.logaddexp,
    """Compute `log(exp(x1) + exp(x2))` elementwise, without overflow.

    Example:
      >>> jnp.logaddexp(jnp.array([1000.0]), 1000.0).round(1)
      Array([1000.7], dtype=float32)
    """,
    _smooth(elementwise.exp, 1.0),
    promote_args_inexact,
)
logaddexp2 = binary_operation(
    np.logaddexp2,
    """Compute `log2(2 ** x1 + 2 ** x2)` elementwise, without overflow.

    Example:
      >>> jnp.logaddexp2(jnp.array([1000.0]), 1000.0).round(1)
      Array([1001.], dtype=float32)
    """,
    _smooth(elementwise.exp2, math.log(2.0)),
    promote_args_inexact,
)

# ---- trigonometry ------------------------------------------------------------------------------

sin = unary_operation(np.sin, "Compute the elementwise sine of angles in radians.", elementwise.sin)
cos = unary_operation(
    np.cos, "Compute the elementwise cosine of angles in radians.", elementwise.cos
)
tan = unary_operation(
    np.tan, "Compute the elementwise tangent of angles in radians.", elementwise.tan
)
arcsin = asin = unary_operation(
    np.arcsin,
    """Compute the elementwise arc sine, in radians.

    Example:
      >>> jnp.arcsin(jnp.array([0, 2]))
      Array([ 0., nan], dtype=float32)
    """,
    elementwise.asin,
)
arccos = acos = unary_operation(
    np.arccos, "Compute the elementwise arc cosine, in radians.", elementwise.acos
)
arctan = atan = unary_operation(
    np.arctan, "Compute the elementwise arc tangent, in radians.", elementwise.atan
)
arctan2 = atan2 = binary_operation(
    np.arctan2,
    """Compute the angle of each point (x2, x1), in radians from -pi to pi.

    Example:
      >>> jnp.rad2deg(jnp.arctan2(jnp.array([1, 1, -1]), jnp.array([1, -1, -1]))).round()
      Array([  45.,  135., -135.], dtype=float32)
    """,
    elementwise.atan2,
    promote_args_inexact,
)
sinh = unary_operation(np.sinh, "Compute the elementwise hyperbolic sine.", elementwise.sinh)
cosh = unary_operation(np.cosh, "Compute the elementwise hyperbolic cosine.", elementwise.cosh)
tanh = unary_operation(np.tanh, "Compute the elementwise hyperbolic tangent.", elementwise.tanh)
arcsinh = asinh = unary_operation(
    np.arcsinh, "Compute the elementwise inverse hyperbolic sine.", elementwise.asinh
)
arccosh = acosh = unary_operation(
    np.arccosh,
    """Compute the elementwise inverse hyperbolic cosine.

    Example:
      >>> jnp.arccosh(jnp.array([1, 0.5]))
      Array([ 0., nan], dtype=float32)
    """,
    elementwise.acosh,
)
arctanh = atanh = unary_operation(
    np.arctanh, "Compute the elementwise inverse hyperbolic tangent.", elementwise.atanh
)
deg2rad = radians = unary_operation(
    np.deg2rad,
    "Convert degrees to radians, elementwise.",
    lambda x: _by_scalar(elementwise.mul, x, math.pi / 180),
)
rad2deg = degrees = unary_operation(
    np.rad2deg,
    "Convert radians to degrees, elementwise.",
    lambda x: _by_scalar(elementwise.mul, x, 180 / math.pi),
)
