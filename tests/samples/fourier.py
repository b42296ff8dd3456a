"""Samples of Fourier transforms."""

import numpy as np

from hlofront import lax
from tests.samples import sample
from tests.support.cases import c64, f32, f64, i32


def transformed(x, fft_type, fft_lengths):
    axes = tuple(range(-len(fft_lengths), 0))
    function = getattr(np.fft, f"{fft_type}n")
    if fft_type == "irfft":
        return function(x, fft_lengths, axes)
    return function(x, axes=axes)


for kind, operand, lengths in (
    ("fft", c64[5], (5,)),
    ("fft", c64[2, 3, 4], (3, 4)),
    ("fft", c64[2, 3, 4], (2, 3, 4)),
    ("fft", f32[4], (4,)),
    ("fft", i32[3], (3,)),
    ("ifft", c64[2, 6], (6,)),
    ("ifft", c64[3, 4], (3, 4)),
    ("rfft", f32[5], (5,)),
    ("rfft", f32[2, 6], (6,)),
    ("rfft", f32[3, 4], (3, 4)),
    ("rfft", f64[4], (4,)),
    ("irfft", c64[3], (5,)),
    ("irfft", c64[2, 4], (6,)),
    ("irfft", c64[3, 3], (3, 4)),
    ("fft", c64[0, 3], (3,)),
):
    sample(
        lax.fft,
        operand,
        name=f"{kind}({operand}, {lengths})",
        fft_type=kind,
        fft_lengths=lengths,
        reference=transformed,
        ulps=400,
    )
sample(lax.fft, np.complex64([1, 2j, 3]), fft_type=lax.FftType.FFT, fft_lengths=(3,))
