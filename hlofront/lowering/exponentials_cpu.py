"""The lowering rule of exp2 for CPUs: a function of the fraction, times a power of two.

XLA's CPU code calls a scalar function for the power 2**x that other platforms compute; exponentials
and the bits of powers of two are vectorized. The time of 10^6 elements in microseconds, as a power
and so, on an AMD EPYC of 2 cores by AVX-512: float32 1,270 and 550, float64 2,480 and 1,600. As
exp(x log 2), which has errors of up to 60 units in the last place in float32 and 650 in float64, it
would take 270 and 1,010; powers and this formula stay within one unit.

Powers of many narrow floats are computed in float64, by a polynomial, with errors of 0.501 units:
in 600 microseconds on an Intel Xeon of 2 cores by AVX-512, where the exponential of the fraction
takes 1,090 and exp 560. Fewer numbers have the exponential: the polynomial is stored, or XLA would
compute it for each of its users.
"""

import math
from typing import NamedTuple

import numpy as np

from hlofront.base.config import enable_x64
from hlofront.base.dtypes import is_complex
from hlofront.base.typing import Array
from hlofront.bridge.mlir import Value
from hlofront.core.aval import ShapedArray
from hlofront.lowering.builder import Builder
from hlofront.lowering.cpu_formulas import Candidate, formula_on_cpu, is_narrow_float
from hlofront.lowering.formulas import Formula, clip
from hlofront.lowering.narrow_floats_cpu import as_dtype, narrow, wide
from hlofront.lowering.powers_cpu import power_of_two
from hlofront.lowering.types import NumPyDType
from hlofront.primitives import elementwise as e

_int32 = np.dtype(np.int32)
# Arrays of fewer elements have the exponential.
_FEWEST = 4096


class _Format(NamedTuple):
    """A format of floats: the dtype of its bits, and where the exponent is among them."""

    bits: NumPyDType
    mantissa_width: int
    exponent_bias: int
    limit: int
    """The powers of two of all numbers from this one on are infinite, of their opposites zero."""


_FORMATS = {
    4: _Format(_int32, 23, 127, 160),
    8: _Format(np.dtype(np.int64), 52, 1023, 1100),
}


def _is_plain(equation: Candidate) -> bool:
    """Return whether the operand is real, and the accuracy is the usual one."""
    return equation.params["accuracy"] is None and not is_complex(equation.avals_in[0].dtype)


@formula_on_cpu(e.exp2_p, when=_is_plain, elementwise=True)
def _(build: Builder, x: Value, *, accuracy: None) -> Value:
    aval = build.avals_in[0]
    is_narrow = is_narrow_float(aval.dtype)
    if build.module.keeps_barriers and is_narrow and aval.size >= _FEWEST:
        with enable_x64(True):
            value = build.by_tracing(_by_polynomial, (x,), [aval])
        return build.barrier(value, (aval,))[0]
    if aval.dtype.itemsize in _FORMATS:
        return _power_of_two(build, x, aval)
    wide = aval.update(dtype=np.dtype(np.float32))
    return build.convert(_power_of_two(build, build.convert(x, wide), wide), aval)


def _by_polynomial(x: Array) -> Array:
    limit = _FORMATS[4].limit
    power = narrow(power_of_two(clip(-limit, wide(Formula(x)), limit)))
    return as_dtype(power, x.dtype).value


def _power_of_two(build: Builder, x: Value, aval: ShapedArray) -> Value:
    """Return two to the power of x, an array of float32 or float64 with this aval."""
    limit = _FORMATS[aval.dtype.itemsize].limit
    least, greatest = build.full(-limit, aval), build.full(limit, aval)
    x = build.op("stablehlo.clamp", (least, x, greatest), aval)
    whole = build.op("stablehlo.round_nearest_even", (x,), aval)
    fraction = build.op("stablehlo.subtract", (x, whole), aval)
    scaled = build.op("stablehlo.multiply", (fraction, build.full(math.log(2), aval)), aval)
    result = build.op("stablehlo.exponential", (scaled,), aval)
    # The power of the whole part may overflow or underflow where the result does not: the powers of
    # its halves do not.
    integer = aval.update(dtype=_int32)
    exponent = build.convert(whole, integer)
    one = build.full(1, integer)
    half = build.op("stablehlo.shift_right_arithmetic", (exponent, one), integer)
    rest = build.op("stablehlo.subtract", (exponent, half), integer)
    for part in (half, rest):
        result = build.op("stablehlo.multiply", (result, _float(build, part, aval)), aval)
    return result


def _float(build: Builder, exponent: Value, aval: ShapedArray) -> Value:
    """Return the powers of two, with this aval, whose exponents these integers are."""
    bits, width, bias, _ = _FORMATS[aval.dtype.itemsize]
    integer, pattern = aval.update(dtype=_int32), aval.update(dtype=bits)
    biased = build.op("stablehlo.add", (exponent, build.full(bias, integer)), integer)
    if bits != _int32:
        biased = build.convert(biased, pattern)
    shifted = build.op("stablehlo.shift_left", (biased, build.full(width, pattern)), pattern)
    return build.op("stablehlo.bitcast_convert", (shifted,), aval)
