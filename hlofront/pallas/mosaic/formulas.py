"""Mosaic rules of elementwise operations that are formulas of other operations."""

from collections.abc import Callable
from typing import Concatenate

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import float32, int32, uint32
from hlofront.bridge.mlir import Value
from hlofront.bridge.mosaic import has_operation
from hlofront.core.aval import ShapedArray
from hlofront.core.primitive import Primitive
from hlofront.lowering.core.formulas import (
    Formula,
    exp,
    expm1,
    log,
    log1p,
    polynomial,
    sqrt,
    where,
)
from hlofront.lowering.core.types import NumPyDType
from hlofront.lowering.special.complementary_error import exact_erfc
from hlofront.pallas.mosaic.builder import KernelBuilder
from hlofront.pallas.mosaic.elementwise import alike, converted, floats_within
from hlofront.pallas.mosaic.rules import mosaic
from hlofront.primitives.arrays.creation import full_like
from hlofront.primitives.elementwise import elementwise as e
from hlofront.primitives.elementwise import special as s
from hlofront.primitives.elementwise.converting import bitcast_convert_type, reduce_precision_p

# A function of the operands, which have one shape and dtype, and of the equation's parameters.
Rule = Callable[Concatenate[Formula, ...], Formula]
_LN2 = float(np.log(2))
_LARGEST = float(np.finfo(np.float32).max)


def _signed(size: Formula, x: Formula) -> Formula:
    """Return numbers of the given absolute values with the signs of x."""
    return where(x < 0, -size, size)


def _sign(x: Formula) -> Formula:
    """Return 1, -1, or x, since NaN and both zeros are their own signs."""
    above = where(x > 0, 1, x)
    return above if issubdtype(x.dtype, np.unsignedinteger) else where(x < 0, -1, above)


# ---- powers, exponentials and logarithms ---------------------------------------------------------


def _integer_power(x: Formula, *, y: int) -> Formula:
    result, factor, exponent = None, x, abs(y)
    while exponent:
        if exponent & 1:
            result = factor if result is None else result * factor
        exponent >>= 1
        if exponent:
            factor = factor * factor
    if result is None:
        return Formula(full_like(x.value, 1))
    return result if y > 0 else 1 / result


def _less_one(x: Formula, **_: object) -> Formula:
    """Return exp(x) - 1: near 0 as 2 tanh(x/2) / (1 - tanh(x/2)), which loses no digits."""
    half = Formula(e.tanh((x * 0.5).value))
    return where(abs(x) < 0.5, (half + half) / (1 - half), exp(x) - 1)


def _cube_root(x: Formula, **_: object) -> Formula:
    size = abs(x)
    root = exp(log(size) * (1 / 3))
    # One step of Newton's iteration; 0 and infinity are their own roots.
    exact = root - (root - size / (root * root)) * (1 / 3)
    return _signed(where((size > 0) & (size <= _LARGEST), exact, size), x)


def _hyperbolic_sine(x: Formula) -> Formula:
    less_one, half = expm1(abs(x)), exp(abs(x) * 0.5)
    near = (less_one + less_one / (less_one + 1)) * 0.5
    # exp(x) overflows before exp(x) / 2 does.
    return _signed(where(abs(x) < 80, near, half * 0.5 * half), x)


def _hyperbolic_cosine(x: Formula) -> Formula:
    half = exp(abs(x) * 0.5)
    return half * 0.5 * half + 0.5 / (half * half)


def _inverse_hyperbolic_sine(x: Formula) -> Formula:
    size = abs(x)
    near = log1p(size + size * size / (1 + sqrt(size * size + 1)))
    return _signed(where(size < 1e9, near, log(size) + _LN2), x)


def _inverse_hyperbolic_cosine(x: Formula) -> Formula:
    above = x - 1
    near = log1p(above + sqrt(above * 2 + above * above))
    return where(x < 1, np.nan, where(x < 1e9, near, log(x) + _LN2))


# ---- angles --------------------------------------------------------------------------------------


def _angle(y: Formula, x: Formula) -> Formula:
    return Formula(e.atan2(y.value, x.value))


def _other_leg(x: Formula) -> Formula:
    """Return sqrt(1 - x**2)."""
    return sqrt((1 - x) * (1 + x))


# ---- errors --------------------------------------------------------------------------------------

# Coefficients of Giles, "Approximating the erfinv function", for single precision.
_OF_LOGARITHM = [
    1.50140941,
    0.246640727,
    -0.00417768164,
    -0.00125372503,
    0.00021858087,
    -4.39150654e-06,
    -3.5233877e-06,
    3.43273939e-07,
    2.81022636e-08,
]
_OF_ROOT = [
    2.83297682,
    1.00167406,
    0.00943887047,
    -0.0076224613,
    0.00573950773,
    -0.00367342844,
    0.00134934322,
    0.000100950558,
    -0.000200214257,
]


def _inverse_error(x: Formula) -> Formula:
    w = -log1p(-(x * x))
    near, far = polynomial(w - 2.5, _OF_LOGARITHM), polynomial(sqrt(w) - 3, _OF_ROOT)
    inside = where(w < 5, near, far) * x
    return where(abs(x) < 1, inside, where(abs(x).equals(1), x * np.inf, np.nan))


# ---- bits ----------------------------------------------------------------------------------------


def _as(x: Formula, dtype: NumPyDType) -> Formula:
    """Return the bits of x as numbers of a dtype of the same size."""
    return Formula(bitcast_convert_type(x.value, dtype))


def _above(x: Formula, count: int) -> Formula:
    """Return the bits of x as an unsigned integer, without the lowest `count` ones."""
    return Formula(e.shift_right_logical(x.value, x.operand(count)))


def _next(x: Formula, y: Formula) -> Formula:
    bits = _as(x, int32)
    one = Formula(full_like(bits.value, 1))
    from_zero = where(y < 0, one + _LEAST, one)
    is_away = ((x > 0) & (y > x)) | ((x < 0) & (y < x))
    moved = where(x.equals(0), from_zero, where(is_away, bits + 1, bits - 1))
    result = where(x.equals(y), y, _as(moved, float32))
    return where(x.equals(x) & y.equals(y), result, np.nan)


def _upper_half(x: Formula, y: Formula) -> Formula:
    """Return the upper half of the bits of a product, from four products of half the bits."""
    a, b = _as(x, uint32), _as(y, uint32)
    low, high = a & _HALF, _above(a, 16)
    of_low, of_high = b & _HALF, _above(b, 16)
    middle = high * of_low + _above(low * of_low, 16)
    other = low * of_high + (middle & _HALF)
    result = high * of_high + _above(middle, 16) + _above(other, 16)
    if x.dtype == uint32:
        return result
    # A negative number is less than its bits by 2**32.
    return _as(result - where(x < 0, b, 0) - where(y < 0, a, 0), int32)


def _less_precise(x: Formula, *, exponent_bits: int, mantissa_bits: int) -> Formula:
    bits, dropped = _as(x, uint32), 23 - mantissa_bits
    if dropped > 0:
        # To nearest, ties to even.
        bits = bits + (_above(bits, dropped) & 1) + ((1 << (dropped - 1)) - 1)
        bits = bits & (_WORD - (1 << dropped) + 1)
    if exponent_bits < 8:
        size, sign = bits & (_SIGN - 1), bits & _SIGN
        greatest = (1 << (exponent_bits - 1)) - 1
        bits = where(size < (128 - greatest) << 23, sign, bits)
        bits = where(size >= (128 + greatest) << 23, sign | _INFINITY, bits)
    return where(x.equals(x), _as(bits, float32), x)


# The bits of a word, of the sign, of the lower half, and of infinity; the minimum integer.
_WORD, _SIGN, _HALF, _INFINITY = (1 << 32) - 1, 1 << 31, (1 << 16) - 1, 0xFF << 23
_LEAST = -(1 << 31)


# ---- the table -----------------------------------------------------------------------------------

# By primitive: the formula, and the dtype in which floats are computed; None for their own.
FORMULAS: dict[Primitive, tuple[Rule, NumPyDType | None]] = {
    e.neg_p: (lambda x: 0 - x, None),
    e.sign_p: (_sign, None),
    e.square_p: (lambda x: x * x, None),
    e.integer_pow_p: (_integer_power, None),
    e.expm1_p: (_less_one, None),
    e.log2_p: (lambda x, **_: log(x) * (1 / _LN2), None),
    e.is_finite_p: (lambda x: abs(x) < np.inf, None),
    e.one_minus_square_p: (lambda x: (1 - x) * (1 + x), None),
    e.cbrt_p: (_cube_root, float32),
    e.sinh_p: (_hyperbolic_sine, float32),
    e.cosh_p: (_hyperbolic_cosine, float32),
    e.asinh_p: (_inverse_hyperbolic_sine, float32),
    e.acosh_p: (_inverse_hyperbolic_cosine, float32),
    e.atanh_p: (lambda x: (log1p(x) - log1p(-x)) * 0.5, float32),
    e.asin_p: (lambda x: _angle(x, _other_leg(x)), float32),
    e.acos_p: (lambda x: _angle(_other_leg(x), x), float32),
    e.atan_p: (lambda x: _angle(x, Formula(full_like(x.value, 1))), float32),
    s.erfc_p: (lambda x, **_: Formula(exact_erfc(x.value)), float32),
    s.erf_inv_p: (_inverse_error, float32),
    e.nextafter_p: (_next, None),
    e.mulhi_p: (_upper_half, None),
    reduce_precision_p: (_less_precise, float32),
}
# Formulas of an element's bits, for elements of 32 bits.
_OF_WORDS = (e.nextafter_p, e.mulhi_p)


def _row(formula: Rule, of_floats: NumPyDType | None) -> Callable[..., Value]:
    def rule(build: KernelBuilder, *operands: Value, **params: object) -> Value:
        of, out = build.avals_in[0], build.avals_out[0]
        primitive = build.equation.primitive
        if primitive in _OF_WORDS and of.dtype.itemsize != 4:
            build.refuse(
                f"kernels of TPUs have no {primitive.name} of {of.dtype.name}, only of elements "
                "of 32 bits: convert them before",
                NotImplementedError,
            )
        within = floats_within(of.dtype, out.shape) if of_floats is None else of_floats
        args = [converted(build, x, out.shape, of.dtype, within) for x in alike(build, operands)]
        avals = [ShapedArray(out.shape, within)] * len(args)
        of_arrays = lambda *arrays: [formula(*map(Formula, arrays), **params).value]
        (result,), (aval,) = build.by_tracing(of_arrays, avals, args)
        return converted(build, result, out.shape, aval.dtype, out.dtype)

    return rule


for _primitive, _formula in FORMULAS.items():
    mosaic(_primitive)(_row(*_formula))


_logistic = _row(lambda x, **_: 1 / (1 + exp(0 - x)), None)


@mosaic(e.logistic_p)
def _(build: KernelBuilder, x: Value, **_: object) -> Value:
    if has_operation("tpu.logistic") and build.avals_in[0].shape:
        return build.op("tpu.logistic", (x,))
    return _logistic(build, x)
