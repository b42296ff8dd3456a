"""The discrete Fourier transform."""

import enum
import math
from collections.abc import Sequence

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import issubdtype, to_complex_dtype, to_inexact_dtype
from hlofront.base.elements import exact_dtype
from hlofront.base.typing import Array, ArrayLike, ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer
from hlofront.core.sizes.dimensions import as_size
from hlofront.core.symbolic_zeros import BatchAxes, Batched
from hlofront.core.trace import process
from hlofront.primitives.arrays.creation import scalar_of
from hlofront.primitives.arrays.shaping import broadcast_in_dim
from hlofront.primitives.arrays.slicing import pad
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import conj, mul, real
from hlofront.primitives.elementwise.families import complex_of, real_of
from hlofront.primitives.rules.batching import move_axis, only_axis
from hlofront.primitives.rules.derivatives import linear

fft_p = Primitive("fft")


class FftType(enum.IntEnum):
    """A kind of Fourier transform: forward or inverse, complex or real."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


_NAMES = {"fft": FftType.FFT, "ifft": FftType.IFFT, "rfft": FftType.RFFT, "irfft": FftType.IRFFT}


@boundary
def fft(x: ArrayLike, fft_type: FftType | str | int, fft_lengths: Sequence[int]) -> ArrayLike:
    """Compute the discrete Fourier transform along the last axes.

    Args:
      x: an array of numbers, real for RFFT.
      fft_type: an FftType, or its name: FFT and its inverse IFFT are complex; RFFT returns the
        nonnegative half of the spectrum along the last axis, and IRFFT inverts it.
      fft_lengths: the sizes of the last axes; for RFFT and IRFFT, those of the real array.

    Returns:
      A complex array, or a real one for IRFFT.

    Raises:
      ValueError: if the type is unknown or does not accept the sizes or the dtype of x.

    Example:
      >>> lax.fft(jnp.array([1.0, 2.0, 3.0, 4.0]), "rfft", (4,)).real.round(3)
      Array([10., -2., -2.], dtype=float32)
    """
    if isinstance(fft_type, str):
        kind = _NAMES.get(fft_type.lower())
        if kind is None:
            raise ValueError(f"Unknown FFT type '{fft_type}': expected one of {sorted(_NAMES)}")
    else:
        kind = FftType(fft_type)
    lengths = tuple(map(as_size, fft_lengths))
    dtype = typeof(x).dtype
    is_complex = issubdtype(dtype, np.complexfloating)
    if kind is FftType.RFFT:
        if is_complex:
            raise ValueError(f"only real valued inputs supported for rfft: got dtype {dtype}")
        dtype = to_inexact_dtype(dtype)
    elif not is_complex:
        dtype = to_complex_dtype(dtype)
    # The rule of this conversion makes the cotangent of a weakly typed array weakly typed.
    x = convert(x, dtype, False)
    if not lengths:
        return x
    return process(fft_p, (x,), {"fft_type": kind, "fft_lengths": lengths})


@infer(fft_p)
def _(x: ShapedArray, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> ShapedArray:
    count = len(fft_lengths)
    if count > x.ndim:
        raise ValueError(
            f"FFT input shape {x.shape} must have at least {count} input dimensions for "
            f"fft_lengths {fft_lengths}."
        )
    batch, transformed_shape = x.shape[: x.ndim - count], x.shape[x.ndim - count :]
    expected = fft_lengths
    halved = (*fft_lengths[:-1], fft_lengths[-1] // 2 + 1)
    if fft_type == FftType.IRFFT:
        # A length of zero has no spectrum.
        expected = (*fft_lengths[:-1], halved[-1] if fft_lengths[-1] else 0)
    if transformed_shape != tuple(expected):
        raise ValueError(
            f"{FftType(fft_type).name} input shape {x.shape} minor dimensions must be equal to "
            f"{tuple(expected)} for fft_lengths {fft_lengths}."
        )
    if fft_type == FftType.RFFT:
        shape = halved if fft_lengths[-1] else fft_lengths
        if x.dtype.name not in ("float32", "float64"):
            raise ValueError(f"RFFT requires float32 or float64 input, got {x.dtype.name}.")
        return ShapedArray((*batch, *shape), complex_of(x.dtype))
    if not issubdtype(x.dtype, np.complexfloating):
        raise ValueError(f"{FftType(fft_type).name} requires complex input, got {x.dtype.name}.")
    if fft_type == FftType.IRFFT:
        return ShapedArray((*batch, *fft_lengths), real_of(x.dtype))
    return ShapedArray((*batch, *fft_lengths), x.dtype)


def _transpose(
    cotangent: ArrayLike, x: ArrayLike, *, fft_type: FftType, fft_lengths: tuple[int, ...]
) -> list[Array]:
    params = {"fft_type": FftType.FFT, "fft_lengths": fft_lengths}
    if fft_type in (FftType.FFT, FftType.IFFT):
        # The matrix of the transform is symmetric.
        return [process(fft_p, (cotangent,), {**params, "fft_type": fft_type})]
    aval = typeof(cotangent)
    if fft_type == FftType.RFFT:
        # The other half of the spectrum is not in the result, so it has no cotangent.
        rows = [(0, 0, 0)] * aval.ndim
        rows[-1] = (0, fft_lengths[-1] - aval.shape[-1], 0)
        whole = pad(cotangent, scalar_of(0, aval.dtype), rows)
        return [real(process(fft_p, (whole,), params))]
    # A coefficient counts twice if it also represents its mirror image.
    spectrum = process(fft_p, (cotangent,), {**params, "fft_type": FftType.RFFT})
    half = typeof(spectrum)
    length = fft_lengths[-1]
    counts = exact_dtype(np.full(half.shape[-1], 2 / math.prod(fft_lengths), half.dtype))
    alone = [0, length // 2] if length % 2 == 0 else [0]
    counts[alone] = 1 / math.prod(fft_lengths)
    weights = broadcast_in_dim(counts, half.shape, (half.ndim - 1,))
    return [conj(mul(spectrum, weights))]


linear(fft_p, _transpose)


@rules.batch(fft_p)
def _(
    values: ArrayLikes, axes: BatchAxes, *, fft_type: FftType, fft_lengths: tuple[int, ...]
) -> Batched:
    x = move_axis(values[0], only_axis(axes), 0)
    return process(fft_p, (x,), {"fft_type": fft_type, "fft_lengths": fft_lengths}), 0
