"""The lowering rule of fft."""

from collections.abc import Sequence

from hlofront.bridge.mlir import Value
from hlofront.core.rules import lower
from hlofront.lowering.core import types
from hlofront.lowering.core.builder import Builder
from hlofront.primitives.linalg import fourier
from hlofront.primitives.linalg.fourier import FftType


@lower(fourier.fft_p)
def _(build: Builder, x: Value, *, fft_type: FftType, fft_lengths: Sequence[int]) -> Value:
    (result,) = build.avals_out
    if not result.size or not build.avals_in[0].size:
        return build.full(0, result)
    return build.op(
        "stablehlo.fft",
        (x,),
        fft_type=types.attribute(f"#stablehlo<fft_type {FftType(fft_type).name}>"),
        fft_length=types.i64_array(fft_lengths),
    )
