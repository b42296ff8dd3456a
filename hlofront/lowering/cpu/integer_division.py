"""Replacements of div and rem on CPUs for integers of at most 32 bits: quotients in float64.

XLA's CPU code divides one pair of integers at a time. The distance of a fractional quotient from
the next integer exceeds the rounding error of float64, so its integer part is correct.
"""

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.lowering.core.formulas import Formula, floor, where
from hlofront.lowering.cpu.elementwise import replaced_by_formula
from hlofront.lowering.cpu.float_bits import as_dtype, last_bits, wide
from hlofront.primitives.elementwise import elementwise as e


def _quotient(x: Formula, y: Formula) -> Formula:
    """Return quotients of integers, rounded toward zero; division by zero is undefined."""
    magnitude = as_dtype(last_bits(floor(abs(wide(x) / wide(y)))), x.dtype)
    if issubdtype(x.dtype, np.unsignedinteger):
        return magnitude
    is_negative = Formula(e.bitwise_xor(x.value, y.value)) < 0
    return where(is_negative, -magnitude, magnitude)


def _quotient_or_all_bits(x: Formula, y: Formula) -> Formula:
    all_bits = -1 if issubdtype(x.dtype, np.signedinteger) else np.iinfo(x.dtype).max
    return where(y.equals(0), all_bits, _quotient(x, y))


def _rest(x: Formula, y: Formula) -> Formula:
    return where(y.equals(0), x, x - _quotient(x, y) * y)


for _dtype in map(np.dtype, ("int8", "int16", "int32", "uint8", "uint16", "uint32")):
    replaced_by_formula(e.div_p, _dtype)(_quotient_or_all_bits)
    replaced_by_formula(e.rem_p, _dtype)(_rest)
