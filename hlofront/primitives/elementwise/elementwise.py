"""Primitives that act on each element: arithmetic, powers, exponentials, trigonometry, bits.

Their derivative rules are in elementwise_rules.py.

Operands have equal dtypes. Their shapes are equal except for scalars, which fit any shape, and
sizes of 1, which fit any size. All functions raise TypeError for dtypes that they do not accept,
for operands of different dtypes, and for shapes that do not fit.
"""

import enum
import operator

import numpy as np

from hlofront.base.dtypes import canonicalize_dtype, dtype_of, issubdtype
from hlofront.base.elements import narrow_integers
from hlofront.base.typing import Array, ArrayLike, DType
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer
from hlofront.core.trace import process
from hlofront.primitives.elementwise.families import (
    ARITHMETIC,
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    NUMBER,
    SIGNED,
    binary,
    check_dtype,
    check_same_dtypes,
    complex_of,
    elementwise_primitive,
    operand_shape,
    real_of,
    to_bool,
    unary,
    unary_with_accuracy,
)


class RoundingMethod(enum.IntEnum):
    """The rounding method of `round` for values halfway between two whole numbers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


class AccuracyMode(enum.Enum):
    """The accuracy requested of XLA's implementation of a function: the highest, or the default."""

    HIGHEST = 1
    DEFAULT = 2


class Tolerance:
    """An error bound for the result of a function: the compiler may choose a faster implementation.

    Args:
      atol: absolute error.
      rtol: relative error.
      ulps: error in units in the last place.

    Raises:
      ValueError: if a bound is negative, or all are 0.
    """

    __slots__ = ("atol", "rtol", "ulps")

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0):
        if atol < 0 or rtol < 0 or ulps < 0:
            raise ValueError(
                f"Tolerances must be non-negative, got atol={atol}, rtol={rtol}, ulps={ulps}."
            )
        if not (atol or rtol or ulps):
            raise ValueError("At least one of atol, rtol, or ulps must be set.")
        self.atol = atol
        self.rtol = rtol
        self.ulps = ulps

    def _key(self) -> tuple[object, ...]:
        return self.atol, self.rtol, self.ulps

    def __eq__(self, other: object) -> bool:
        return type(other) is Tolerance and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"Tolerance(atol={self.atol}, rtol={self.rtol}, ulps={self.ulps})"


_INEXACT = FLOAT + COMPLEX

# ---- arithmetic ------------------------------------------------------------------------------

neg_p, neg = unary(
    "neg",
    NUMBER,
    "Return elementwise the negation `-x`. The least signed integer and unsigned ones wrap.",
    example="""
      >>> lax.neg(jnp.array([1, 0], jnp.uint8))
      Array([255,   0], dtype=uint8)
    """,
)
sign_p, sign = unary(
    "sign",
    NUMBER,
    "Return elementwise the sign: -1, 0 or 1.\n\n"
    "    Zeros keep their sign, NaN stays, and complex x gives x / |x|.",
    example="""
      >>> lax.sign(jnp.array([-0.0, 0.0, -3.0, jnp.nan]))
      Array([-0.,  0., -1., nan], dtype=float32)
    """,
)
add_p, add = binary("add", NUMBER, "Return elementwise the sum `x + y`. Integers wrap.")
sub_p, sub = binary("sub", NUMBER, "Return elementwise the difference `x - y`. Integers wrap.")
div_p, div = binary(
    "div",
    NUMBER,
    "Return elementwise the quotient `x / y`. That of integers is rounded toward zero.\n\n"
    "    Integers divided by zero have all bits set: -1, or the greatest unsigned one.",
    example="""
      >>> lax.div(jnp.array([-7, 7]), 2)
      Array([-3,  3], dtype=int32)
    """,
)
rem_p, rem = binary(
    "rem",
    INT + FLOAT,
    "Return elementwise the remainder of `x / y` rounded toward zero: it has the sign of x.\n"
    "    For integers the remainder of x by zero is x.",
    example="""
      >>> lax.rem(jnp.array([-7, 7]), 3)
      Array([-1,  1], dtype=int32)
    """,
)
max_p, max = binary(
    "max",
    ARITHMETIC,
    "Return elementwise the greater of x and y.\n\n"
    "    NaN wins; complex numbers are ordered by their real, then by their imaginary parts.",
)
min_p, min = binary(
    "min",
    ARITHMETIC,
    "Return elementwise the lesser of x and y.\n\n"
    "    NaN wins; complex numbers are ordered by their real, then by their imaginary parts.",
)
square_p, square = unary("square", NUMBER, "Return elementwise the square `x * x`.")
one_minus_square_p, one_minus_square = unary(
    "one_minus_square",
    NUMBER,
    "Return elementwise `1 - x * x`, computed as `(1 + x) * (1 - x)`.\n\n"
    "    The product is accurate for x near 1 and -1, where the difference cancels.",
)

mul_p = Primitive("mul")


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DType | None = None) -> Array:
    """Return the elementwise product `x * y`. Integers wrap.

    Args:
      x, y: arrays or scalars of numbers, of equal dtype unless `out_dtype` is given. Their axes
        have equal sizes or size 1; a scalar fits every shape.
      out_dtype: the dtype that operands are converted to before the multiplication.

    Returns:
      An array of the common dtype; the shapes of `x` and `y` broadcast to its shape.

    Raises:
      TypeError: if an operand is not an array or scalar, or their dtypes or shapes do not fit.
    """
    if out_dtype is not None:
        out_dtype = canonicalize_dtype(out_dtype)
    return process(mul_p, (x, y), {"out_dtype": out_dtype})


@infer(mul_p)
def _(x: ShapedArray, y: ShapedArray, *, out_dtype: DType | None) -> ShapedArray:
    check_dtype("mul", x.dtype, NUMBER, 0)
    check_dtype("mul", y.dtype, NUMBER, 1)
    shape = operand_shape("mul", (x.shape, y.shape))
    if out_dtype is None:
        check_same_dtypes("mul", (x, y))
    return ShapedArray(
        shape, x.dtype if out_dtype is None else out_dtype, x.weak_type and y.weak_type
    )


abs_p = Primitive("abs")


def abs(x: ArrayLike) -> Array:
    """Return the elementwise absolute value: of complex numbers the modulus.

    The least signed integer has no absolute value and is unchanged.

    Args:
      x: an array or scalar of signed integer, floating-point or complex dtype.

    Returns:
      An array of the shape of `x`, of its dtype or, for complex numbers, the dtype of the parts.

    Raises:
      TypeError: if `x` is not an array or scalar, or has another dtype.
    """
    return process(abs_p, (x,), {})


@infer(abs_p)
def _(x: ShapedArray) -> ShapedArray:
    check_dtype("abs", x.dtype, FLOAT + COMPLEX + SIGNED)
    if x.dtype in narrow_integers:
        raise TypeError(
            f"abs does not accept dtype {x.dtype}: integers of less than 8 bits have few "
            "operations. Convert it to int8 first, with lax.convert_element_type(x, 'int8')."
        )
    return x.update(dtype=real_of(x.dtype))


# ---- rounding --------------------------------------------------------------------------------

floor_p, floor = unary(
    "floor", FLOAT, "Return elementwise the greatest whole number not above x, as a float."
)
ceil_p, ceil = unary(
    "ceil", FLOAT, "Return elementwise the least whole number not below x, as a float."
)
is_finite_p, is_finite = unary(
    "is_finite",
    FLOAT,
    "Return elementwise whether x is neither infinite nor NaN, as booleans.",
    result_dtype=to_bool,
)
nextafter_p = elementwise_primitive("nextafter", FLOAT, 2)
round_p = elementwise_primitive("round", FLOAT)


def round(x: ArrayLike, rounding_method: object = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """Return the elementwise nearest whole number, as a float.

    Args:
      x: an array or scalar of floating-point dtype.
      rounding_method: the RoundingMethod of values halfway between two whole numbers.

    Returns:
      An array of the shape and dtype of `x`.

    Raises:
      TypeError: if `x` is not an array or scalar, or has another dtype.
      ValueError: if `rounding_method` is not a RoundingMethod.

    Example:
      >>> lax.round(jnp.array([0.5, 1.5]), lax.RoundingMethod.TO_NEAREST_EVEN)
      Array([0., 2.], dtype=float32)
    """
    return process(round_p, (x,), {"rounding_method": RoundingMethod(rounding_method)})


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Return the elementwise next floating-point number after x1 in the direction of x2.

    Args:
      x1, x2: arrays or scalars of floating-point dtype, the same for both. Their axes have equal
        sizes or size 1; a scalar fits every shape.

    Returns:
      An array of that dtype; the shapes of `x1` and `x2` broadcast to its shape.

    Raises:
      TypeError: if an operand is not an array or scalar, or their dtypes or shapes do not fit.
    """
    return process(nextafter_p, (x1, x2), {})


# ---- exponentials, logarithms, powers --------------------------------------------------------

exp_p, exp = unary_with_accuracy(
    "exp", _INEXACT, "Compute elementwise the exponential, e to the power x."
)
exp2_p, exp2 = unary_with_accuracy("exp2", _INEXACT, "Return elementwise 2 to the power x.")
expm1_p, expm1 = unary_with_accuracy(
    "expm1", _INEXACT, "Return elementwise `exp(x) - 1`, accurate for x near zero."
)
log_p, log = unary_with_accuracy("log", _INEXACT, "Compute elementwise the natural logarithm.")
log2_p, log2 = unary_with_accuracy("log2", _INEXACT, "Compute elementwise the logarithm to base 2.")
log1p_p, log1p = unary_with_accuracy(
    "log1p", _INEXACT, "Return elementwise `log(1 + x)`, accurate for x near zero."
)
logistic_p, logistic = unary_with_accuracy(
    "logistic", _INEXACT, "Compute elementwise the logistic function, `1 / (1 + exp(-x))`."
)
sqrt_p, sqrt = unary_with_accuracy("sqrt", _INEXACT, "Return elementwise the square root.")
rsqrt_p, rsqrt = unary_with_accuracy(
    "rsqrt", _INEXACT, "Compute elementwise the reciprocal of the square root."
)
cbrt_p, cbrt = unary_with_accuracy("cbrt", FLOAT, "Compute elementwise the cube root.")

pow_p = Primitive("pow")
integer_pow_p = Primitive("integer_pow")


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """Return elementwise x to the power y.

    Args:
      x: an array or scalar of floating-point or complex dtype.
      y: an array or scalar of the dtype of x, or of any integer dtype.

    Returns:
      An array of the dtype of `x`; the shapes of `x` and `y` broadcast to its shape.

    Raises:
      TypeError: if an operand is not an array or scalar, or their dtypes or shapes do not fit.
    """
    return process(pow_p, (x, y), {})


@infer(pow_p)
def _(x: ShapedArray, y: ShapedArray) -> ShapedArray:
    check_dtype("pow", x.dtype, _INEXACT, 0)
    check_dtype("pow", y.dtype, NUMBER, 1)
    if x.dtype != y.dtype and not issubdtype(y.dtype, np.integer):
        raise TypeError(
            f"lax.pow requires an exponent of the dtype of the base or of an integer dtype, got "
            f"{x.dtype} to the power of {y.dtype}. (Tip: jnp.power is a similar function that does "
            "automatic type promotion on inputs)."
        )
    shape = operand_shape("pow", (x.shape, y.shape))
    return ShapedArray(shape, x.dtype, x.weak_type and y.weak_type)


def integer_pow(x: ArrayLike, y: int) -> Array:
    """Return elementwise x to the power y, a Python integer, by repeated multiplication.

    Args:
      x: an array or scalar of numbers.
      y: the exponent, a Python integer.

    Returns:
      An array of the shape and dtype of `x`.

    Raises:
      TypeError: if x is not an array or scalar of numbers, if y is not an integer, or if y is
        negative and x is of an integer dtype.

    Example:
      >>> lax.integer_pow(jnp.array([2, -3]), 3)
      Array([  8, -27], dtype=int32)
    """
    if type(y) is not int:
        # pyrefly: ignore[missing-attribute]
        y = int(y) if isinstance(y, float) and y.is_integer() else operator.index(y)
    return process(integer_pow_p, (x,), {"y": y})


@infer(integer_pow_p)
def _(x: ShapedArray, *, y: int) -> ShapedArray:
    check_dtype("integer_pow", x.dtype, NUMBER)
    if y < 0 and issubdtype(x.dtype, np.integer):
        raise TypeError(f"Integers cannot be raised to negative powers, got integer_pow({x}, {y})")
    return x


def reciprocal(x: ArrayLike) -> Array:
    """Return the elementwise reciprocal `1 / x`.

    Args:
      x: an array or scalar of floating-point or complex dtype.

    Returns:
      An array of the shape and dtype of `x`.

    Raises:
      TypeError: if `x` is not an array or scalar, or has another dtype.
    """
    return process(integer_pow_p, (x,), {"y": -1})


# ---- trigonometry ----------------------------------------------------------------------------

sin_p, sin = unary_with_accuracy("sin", _INEXACT, "Compute elementwise the sine, of radians.")
cos_p, cos = unary_with_accuracy("cos", _INEXACT, "Compute elementwise the cosine, of radians.")
tan_p, tan = unary_with_accuracy("tan", _INEXACT, "Compute elementwise the tangent, of radians.")
asin_p, asin = unary("asin", _INEXACT, "Compute elementwise the arc sine, in radians.")
acos_p, acos = unary("acos", _INEXACT, "Compute elementwise the arc cosine, in radians.")
atan_p, atan = unary("atan", _INEXACT, "Compute elementwise the arc tangent, in radians.")
atan2_p, atan2 = binary(
    "atan2",
    _INEXACT,
    "Compute elementwise the arc tangent of x / y in the quadrant of the point (y, x).",
    example="""
      >>> lax.atan2(jnp.array([1.0, -1.0]), -1.0).round(1)
      Array([ 2.4, -2.4], dtype=float32)
    """,
)
sinh_p, sinh = unary("sinh", _INEXACT, "Compute elementwise the hyperbolic sine.")
cosh_p, cosh = unary("cosh", _INEXACT, "Compute elementwise the hyperbolic cosine.")
tanh_p, tanh = unary_with_accuracy("tanh", _INEXACT, "Compute elementwise the hyperbolic tangent.")
asinh_p, asinh = unary("asinh", _INEXACT, "Compute elementwise the inverse hyperbolic sine.")
acosh_p, acosh = unary("acosh", _INEXACT, "Compute elementwise the inverse hyperbolic cosine.")
atanh_p, atanh = unary("atanh", _INEXACT, "Compute elementwise the inverse hyperbolic tangent.")

# ---- complex numbers -------------------------------------------------------------------------

_PARTS = (np.float32, np.float64)

real_p, real = unary("real", COMPLEX, "Return elementwise the real part.", result_dtype=real_of)
imag_p, imag = unary(
    "imag", COMPLEX, "Return elementwise the imaginary part.", result_dtype=real_of
)
complex_p, complex = binary(
    "complex", _PARTS, "Return elementwise the complex number `x + yi`.", result_dtype=complex_of
)
conj_p = Primitive("conj")


def conj(x: ArrayLike) -> Array:
    """Return the elementwise complex conjugate; a float becomes a complex number.

    Args:
      x: an array or scalar of dtype float32, float64, complex64 or complex128.

    Returns:
      An array of the shape of `x` and of complex dtype: complex64 for float32.

    Raises:
      TypeError: if `x` is not an array or scalar, or has another dtype.
    """
    return process(conj_p, (x,), {"input_dtype": dtype_of(typeof(x).dtype)})


@infer(conj_p)
def _(x: ShapedArray, *, input_dtype: DType) -> ShapedArray:
    check_dtype("conj", x.dtype, (np.float32, *COMPLEX, np.float64))
    return x.update(dtype=complex_of(x.dtype))


# ---- bits ------------------------------------------------------------------------------------

not_p, bitwise_not = unary(
    "not",
    INT + BOOL,
    "Return elementwise the complement of all bits.",
    function_name="bitwise_not",
    example="""
      >>> lax.bitwise_not(jnp.array([0, 5]))
      Array([-1, -6], dtype=int32)
    """,
)
and_p, bitwise_and = binary(
    "and", INT + BOOL, "Return elementwise the conjunction of bits.", function_name="bitwise_and"
)
or_p, bitwise_or = binary(
    "or", INT + BOOL, "Return elementwise the disjunction of bits.", function_name="bitwise_or"
)
xor_p, bitwise_xor = binary(
    "xor",
    INT + BOOL,
    "Return elementwise the exclusive disjunction of bits.",
    function_name="bitwise_xor",
)
shift_left_p, shift_left = binary(
    "shift_left",
    INT,
    "Return elementwise `x << y`. A negative y, or one not below the number of bits, gives 0.",
)
shift_right_logical_p, shift_right_logical = binary(
    "shift_right_logical",
    INT,
    "Return elementwise `x >> y`, with zeros shifted in.\n"
    "    A negative y, or one not below the number of bits, gives 0.",
    example="""
      >>> lax.shift_right_logical(jnp.array([-8, 8]), 1)
      Array([2147483644,          4], dtype=int32)
    """,
)
shift_right_arithmetic_p, shift_right_arithmetic = binary(
    "shift_right_arithmetic",
    INT,
    "Return elementwise `x >> y`, with copies of the sign bit shifted in.\n"
    "    A negative y, or one not below the number of bits, gives 0 or -1.",
    example="""
      >>> lax.shift_right_arithmetic(jnp.array([-8, 8]), 1)
      Array([-4,  4], dtype=int32)
    """,
)
population_count_p, population_count = unary(
    "population_count",
    INT,
    "Return elementwise the number of bits that are set, in the dtype of x.",
    example="""
      >>> lax.population_count(jnp.array([7, -1, 0]))
      Array([ 3, 32,  0], dtype=int32)
    """,
)
clz_p, clz = unary(
    "clz",
    INT,
    "Return elementwise the number of leading bits that are not set.",
    example="""
      >>> lax.clz(jnp.array([1, -1, 0]))
      Array([31,  0, 32], dtype=int32)
    """,
)
mulhi_p = elementwise_primitive("mulhi", INT, 2)


def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Return elementwise the upper half of the bits of the double-width product `x * y`.

    Args:
      x, y: arrays or scalars of integer dtype, the same for both. Their axes have equal sizes or
        size 1; a scalar fits every shape.

    Returns:
      An array of that dtype; the shapes of `x` and `y` broadcast to its shape.

    Raises:
      TypeError: if an operand is not an array or scalar, or their dtypes or shapes do not fit.

    Example:
      >>> lax.mulhi(jnp.uint32(2**31), jnp.uint32(4))
      Array(2, dtype=uint32)
    """
    return process(mulhi_p, (x, y), {})


# ---- several operands ------------------------------------------------------------------------

clamp_p = Primitive("clamp")


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """Limit each element of x to the range from `min` to `max`.

    Where min > max, the result is `max`. NaN stays NaN.

    Args:
      min: the lower bound, a scalar or an array of the shape of x.
      x: an array or scalar of real numbers or booleans.
      max: the upper bound, a scalar or an array of the shape of x.

    Returns:
      An array of the shape and dtype of `x`.

    Raises:
      TypeError: if an operand is not an array or scalar, if the three dtypes differ, or if a bound
        has another shape.

    Example:
      >>> lax.clamp(0, jnp.array([-1, 2, 9]), 5)
      Array([0, 2, 5], dtype=int32)
    """
    return process(clamp_p, (min, x, max), {})


@infer(clamp_p)
def _(min: ShapedArray, x: ShapedArray, max: ShapedArray) -> ShapedArray:
    for position, aval in enumerate((min, x, max)):
        check_dtype("clamp", aval.dtype, ARITHMETIC, position)
    for name, bound in (("min", min), ("max", max)):
        if bound.shape and bound.shape != x.shape:
            raise TypeError(
                f"clamp requires {name}.shape == operand.shape or {name}.shape == (), got "
                f"{name}.shape={bound.shape}, operand.shape={x.shape}."
            )
    check_same_dtypes("clamp", (min, x, max))
    return x.update(weak_type=min.weak_type and x.weak_type and max.weak_type)
