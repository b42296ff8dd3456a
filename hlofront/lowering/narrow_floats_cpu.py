"""Elementwise functions of narrow floats on CPUs, by formulas in float64.

Where XLA has no formula of its own, its CPU code calls a scalar function of the C library for each
element. Formulas without branches and calls become vector instructions, and simple ones in float64
err little more than the rounding to float32 does. XLA never computes a quotient twice: one that
several operations read is stored, which ends a fused loop. So quotients are products with
`reciprocal` here.
"""

from collections.abc import Callable

import numpy as np

from hlofront.base.config import enable_x64
from hlofront.base.typing import Array, NumPyArray
from hlofront.bridge.mlir import Value
from hlofront.core.primitive import Primitive
from hlofront.lowering.builder import Builder
from hlofront.lowering.cpu_formulas import Candidate, formula_on_cpu, is_narrow_float
from hlofront.lowering.formulas import Formula, where
from hlofront.lowering.types import NumPyDType
from hlofront.primitives import elementwise as e
from hlofront.primitives.converting import bitcast_convert_type, convert
from hlofront.primitives.creating import full_like
from hlofront.primitives.gathering import GatherDimensionNumbers, gather
from hlofront.primitives.shaping import expand_dims

_int32, _int64 = np.dtype(np.int32), np.dtype(np.int64)
_float32, _float64 = np.dtype(np.float32), np.dtype(np.float64)

# Arrays of fewer elements keep one operation, which is easier to read.
_FEWEST = 4096


def in_float64(primitive: Primitive) -> Callable[[Callable[..., Formula]], Callable[..., Formula]]:
    """Register a formula of float32 operands as the rule of many narrow floats on CPUs.

    Args:
      primitive: an elementwise primitive without parameters, but for an accuracy.

    Returns:
      A decorator of a function that takes operands of float32 and returns the result in float32.
    """

    def register(formula: Callable[..., Formula]) -> Callable[..., Formula]:
        @formula_on_cpu(primitive, when=_pays, stored=True, elementwise=True)
        def _(build: Builder, *operands: Value, accuracy: object = None) -> Value:
            (result,) = build.avals_out

            def of_arrays(*arrays: Array) -> Array:
                narrow_ones = (Formula(convert(x, _float32, False)) for x in arrays)
                return convert(formula(*narrow_ones).value, result.dtype, False)

            operands = tuple(build.broadcast_operands(*operands))
            with enable_x64(True):
                (value,) = build.by_tracing(of_arrays, operands, [result] * len(operands))
            # XLA would compute the formula again for each of its users, and in each of theirs.
            return build.barrier((value,), (result,))[0]

        return formula

    return register


def _pays(equation: Candidate) -> bool:
    """Return whether the equation has many elements, of real floats of at most 32 bits."""
    (result,) = equation.avals_out
    is_usual = equation.params.get("accuracy") in (None, e.AccuracyMode.DEFAULT)
    return is_usual and is_narrow_float(result.dtype) and result.size >= _FEWEST


# ---- dtypes and bits -------------------------------------------------------------------------


def as_dtype(x: Formula, dtype: NumPyDType) -> Formula:
    return Formula(convert(x.value, dtype, False))


def reinterpreted(x: Formula, dtype: NumPyDType) -> Formula:
    """Return the bits of numbers as numbers of another dtype of that size."""
    return Formula(bitcast_convert_type(x.value, dtype))


def wide(x: Formula) -> Formula:
    return as_dtype(x, _float64)


def narrow(x: Formula) -> Formula:
    return as_dtype(x, _float32)


def filled_like(x: Formula, value: float, dtype: NumPyDType) -> Formula:
    return Formula(full_like(x.value, value, dtype=dtype))


def bits_of(x: Formula) -> Formula:
    """Return the bits of float32 numbers as int32."""
    return reinterpreted(x, _int32)


def is_subnormal(x: Formula) -> Formula:
    """Return whether numbers of float32 are subnormal: to XLA's CPU arithmetic they are zeros."""
    return bits_of(abs(x)) < int(np.finfo(_float32).smallest_normal.view(_int32))


def sign_bit(x: Formula) -> Formula:
    """Return int32 numbers that have the sign bits of float32 numbers, and no other bits."""
    return bits_of(x) & np.iinfo(_int32).min


def odd(x: Formula, of_magnitude: Formula) -> Formula:
    """Return an odd function of slope 1 at zero from its values at |x|."""
    return where(is_subnormal(x), x, with_sign(of_magnitude, sign_bit(x)))


def with_sign(x: Formula, sign_bit: Formula) -> Formula:
    """Return float32 numbers whose signs are opposite where the sign bit is set."""
    return reinterpreted(Formula(e.bitwise_xor(bits_of(x).value, sign_bit.value)), _float32)


def looked_up(table: NumPyArray, position: Array) -> Formula:
    """Return the entries of a table at these positions, which must be in it."""
    numbers = GatherDimensionNumbers((), (0,), (0,))
    indices = expand_dims(position, (position.ndim,))
    return Formula(gather(table, indices, numbers, (1,), mode="promise_in_bounds"))


# ---- arithmetic that fuses -------------------------------------------------------------------


def reciprocal(x: Formula) -> Formula:
    """Return 1 / x for positive finite x of float64, by Newton's method.

    The bits of a float, an integer, are nearly its logarithm: the first guess negates them. The
    constant makes its greatest error, an eighth, as small as can be.
    """
    opposite = Formula(e.neg(reinterpreted(x, _int64).value)) + 0x7FDE623822FC16E6
    guess = reinterpreted(opposite, _float64)
    for _ in range(4):
        guess = guess * (2 - x * guess)
    return guess
