"""Fourier transforms as StableHLO."""

from hlofront.core.rules import lower
from hlofront.lowering import types
from hlofront.primitives import fourier
from hlofront.primitives.fourier import FftType


@lower(fourier.fft_p)
def _(build, x, *, fft_type, fft_lengths):
    (result,) = build.avals_out
    if not result.size or not build.avals_in[0].size:
        return build.full(0, result)
    return build.op(
        "stablehlo.fft",
        (x,),
        fft_type=types.attribute(f"#stablehlo<fft_type {FftType(fft_type).name}>"),
        fft_length=types.i64_array(fft_lengths),
    )
