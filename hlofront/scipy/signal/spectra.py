"""Spectral estimates by Welch's method (1967), and short-time Fourier transforms."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

import hlofront.numpy as jnp
import hlofront.numpy.fft as fourier
from hlofront.base.choices import check_choice
from hlofront.base.dtypes import is_complex, to_complex_dtype
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.numpy.support.promotion import check_arraylike, promote_args_inexact
from hlofront.primitives.elementwise import elementwise
from hlofront.primitives.linalg.matrices import real_dtype
from hlofront.runtime.dispatch.operation import operation
from hlofront.scipy.signal.trends import detrend as without_trend
from hlofront.scipy.signal.windows import WindowName, window_of

# A window: a name, a name with parameters, or an array.
Window: TypeAlias = WindowName | ArrayLike
# The trend to subtract: "constant", "linear", a function of segments, or False for none.
Detrend: TypeAlias = str | bool | Callable[[Array], Array]


class _Settings(NamedTuple):
    """The static settings of how sequences are segmented and transformed."""

    count: int
    overlap: int
    transformed: int
    detrend: Detrend
    onesided: bool
    scaling: str
    spectrum: bool
    boundary: str | None
    padded: bool
    average: str | None


def _segment(window: Window, nperseg: int | None, size: int) -> tuple[ArrayLike, int]:
    """Return the window as an array, and the segment length."""
    if isinstance(window, str | tuple | float | int):
        count = 256 if nperseg is None else int(nperseg)
        if count > size:
            warnings.warn(
                f"nperseg = {count} is greater than input length  = {size}, using nperseg = {size}",
                stacklevel=3,
            )
            count = size
        return window_of(window, count), count
    shape = typeof(jnp.asarray(window)).shape
    if len(shape) != 1:
        raise ValueError(f"window must be 1-D, got shape {shape}")
    if nperseg is not None and nperseg != shape[0]:
        raise ValueError(
            "value specified for nperseg is different from length of window: "
            f"{nperseg} and {shape[0]}"
        )
    if shape[0] > size:
        raise ValueError(f"window is longer than input signal: {shape[0]} and {size}")
    return window, shape[0]


def _counts(count: int, noverlap: int | None, nfft: int | None) -> tuple[int, int]:
    if count < 1:
        raise ValueError(f"nperseg must be a positive integer, got {count}")
    transformed = count if nfft is None else int(nfft)
    if transformed < count:
        raise ValueError(
            f"nfft must be greater than or equal to nperseg., got {transformed} and {count}"
        )
    overlap = count // 2 if noverlap is None else int(noverlap)
    if overlap >= count:
        raise ValueError(f"noverlap must be less than nperseg., got {overlap} and {count}")
    return overlap, transformed


def _warn_of_sides(return_onesided: bool, onesided: bool) -> None:
    if return_onesided and not onesided:
        warnings.warn("Input data is complex, switching to return_onesided=False", stacklevel=3)


# ---- pieces, transformed -------------------------------------------------------------------------


def _extended(x: Array, boundary: str | None, half: int) -> Array:
    """Return x extended by `half` elements at both ends of its last axis, as `boundary` says."""
    if boundary is None or not half:
        return x
    if boundary == "zeros":
        return jnp.pad(x, [(0, 0)] * (typeof(x).ndim - 1) + [(half, half)])
    first, last = x[..., :1], x[..., -1:]
    before, after = x[..., 1 : half + 1][..., ::-1], x[..., -half - 1 : -1][..., ::-1]
    if boundary == "odd":
        before, after = 2 * first - before, 2 * last - after
    elif boundary == "constant":
        before = jnp.broadcast_to(first, typeof(before).shape)
        after = jnp.broadcast_to(last, typeof(after).shape)
    return jnp.concatenate([before, x, after], axis=-1)


def _pieces(x: Array, window: Array, settings: _Settings) -> Array:
    """Return the transforms of the windowed segments of x, of shape (..., segment, frequency)."""
    count = settings.count
    step = count - settings.overlap
    x = _extended(x, settings.boundary, count // 2)
    size = typeof(x).shape[-1]
    if settings.padded:
        missing = max(count - size, -(size - count) % step)
        x = jnp.pad(x, [(0, 0)] * (typeof(x).ndim - 1) + [(0, missing)])
        size += missing
    starts = np.arange((size - settings.overlap) // step) * step
    x = x[..., starts[:, None] + np.arange(count)]
    if isinstance(settings.detrend, str):
        x = without_trend(x, type=settings.detrend)
    elif settings.detrend:
        x = settings.detrend(x)
    x = x * _along_last(window, x)
    transform = fourier.rfft if settings.onesided else fourier.fft
    return transform(x, settings.transformed)


def _along_last(vector: Array, x: Array) -> Array:
    """Return a vector reshaped to the rank of x, along its last axis, in the dtype of x."""
    aval = typeof(x)
    return jnp.reshape(vector, (1,) * (aval.ndim - 1) + (-1,)).astype(aval.dtype)


@operation(static_argnames=("settings", "axis"))
def _spectrum(
    x: ArrayLike,
    y: ArrayLike | None,
    window: ArrayLike,
    fs: ArrayLike,
    settings: _Settings,
    axis: int,
) -> Array:
    """Return the spectral density; the frequency axis replaces the axis of the sequences."""
    if y is None:
        (x,) = promote_args_inexact("csd", x)
    else:
        x, y = promote_args_inexact("csd", x, y)
    dtype = real_dtype(typeof(x).dtype)
    window = jnp.asarray(window, dtype)
    if settings.scaling == "density":
        scale = 1.0 / (fs * jnp.sum(window * window))
    else:
        scale = 1.0 / jnp.sum(window) ** 2
    x = jnp.moveaxis(x, axis, -1)
    if y is not None:
        y = jnp.moveaxis(y, axis, -1)
        x, y = _equally_long(x, y)
    result = _pieces(x, window, settings)
    if settings.spectrum:
        result = result * jnp.sqrt(scale).astype(typeof(result).dtype)
    else:
        other = result if y is None else _pieces(y, window, settings)
        result = jnp.conj(result) * other
        result = result * jnp.asarray(scale).astype(typeof(result).dtype)
        if settings.onesided and settings.transformed > 1:
            # The spectrum is symmetric; frequency zero and the highest have no counterpart.
            last = None if settings.transformed % 2 else -1
            result = result.at[..., 1:last].multiply(2)
    # (..., piece, frequency) -> (..., frequency, ..., piece)
    result = jnp.moveaxis(result, -1, axis if axis >= 0 else axis - 1)
    if settings.average is not None:
        result = _averaged(result, settings.average)
    return jnp.real(result) if y is None and not settings.spectrum else result


def _equally_long(x: Array, y: Array) -> tuple[Array, Array]:
    """Return both arrays zero-padded to the greater length of their last axes."""
    sizes = typeof(x).shape[-1], typeof(y).shape[-1]

    def extended(a: Array, size: int) -> Array:
        missing = max(sizes) - size
        return jnp.pad(a, [(0, 0)] * (typeof(a).ndim - 1) + [(0, missing)]) if missing else a

    return extended(x, sizes[0]), extended(y, sizes[1])


def _averaged(x: Array, average: str) -> Array:
    count = typeof(x).shape[-1]
    if average == "mean":
        return jnp.mean(x, axis=-1)
    # The bias is the median of `count` exponentially distributed numbers, divided by their mean.
    even = 2.0 * np.arange(1, (count - 1) // 2 + 1)
    bias = 1 + float(np.sum(1 / (even + 1) - 1 / even))
    if is_complex(typeof(x).dtype):
        parts = [jnp.median(part, axis=-1) for part in (jnp.real(x), jnp.imag(x))]
        return elementwise.complex(*parts) / bias
    return jnp.median(x, axis=-1) / bias


def _frequencies(count: int, fs: ArrayLike, onesided: bool) -> Array:
    function = fourier.rfftfreq if onesided else fourier.fftfreq
    return function(count, 1 / fs)


def csd(
    x: ArrayLike,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Estimate the cross power spectral density of two sequences, by Welch's method (1967).

    Args:
      x: an array.
      y: an array of as many axes, or None for `x`.
      fs: the number of elements in a unit of time.
      window: the name of a window, a tuple of its name and parameters, or an array.
      nperseg: the number of elements of a piece, 256 by default.
      noverlap: the number of elements that adjacent pieces share, half of a piece by default.
      nfft: the number of elements that are transformed, with zeros after those of a piece.
      detrend: the trend that is subtracted from each piece: "constant", "linear", or a function of
        pieces; False for none.
      return_onesided: whether to leave out negative frequencies, for real sequences.
      scaling: "density", per unit of frequency, or "spectrum".
      axis: the axis of the sequences.
      average: the average over pieces: "mean" or "median".

    Returns:
      The frequencies, and the spectrum: its axis of frequencies replaces that of the sequences.

    Raises:
      ValueError: if an argument has an unknown value, or pieces do not fit.
    """
    check_arraylike("csd", x)
    if y is not None:
        check_arraylike("csd", y)
        ranks = typeof(x).ndim, typeof(y).ndim
        if ranks[0] != ranks[1]:
            raise ValueError(f"two-arguments must have the same rank ({ranks[0]} vs {ranks[1]}).")
    check_choice("csd", "average", average, ("mean", "median"))
    check_choice("csd", "scaling", scaling, ("density", "spectrum"))
    axis = canonical_axis(axis, typeof(x).ndim) - typeof(x).ndim
    shapes = [typeof(a).shape for a in (x, y) if a is not None]
    if any(0 in shape for shape in shapes):
        shape = list(shapes[0])
        shape[axis] = min(shape[axis] for shape in shapes)
        return jnp.zeros(shape), jnp.zeros(shape, shapes and jnp.result_type(x, np.complex64))
    size = max(shape[axis] for shape in shapes)
    window, count = _segment(window, nperseg, size)
    overlap, transformed = _counts(count, noverlap, nfft)
    onesided = return_onesided and not any(
        is_complex(typeof(a).dtype) for a in (x, y) if a is not None
    )
    _warn_of_sides(return_onesided, onesided)
    settings = _Settings(
        count=count,
        overlap=overlap,
        transformed=transformed,
        detrend=detrend,
        onesided=onesided,
        scaling=scaling,
        spectrum=False,
        boundary=None,
        padded=False,
        average=average,
    )
    result = _spectrum(x, y, window, fs, settings, axis)
    return _frequencies(transformed, fs, onesided), result


def welch(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Estimate the power spectral density of a sequence, by Welch's method (1967).

    Args:
      x: an array.
      fs: the number of elements in a unit of time.
      window: the name of a window, a tuple of its name and parameters, or an array.
      nperseg: the number of elements of a piece, 256 by default.
      noverlap: the number of elements that adjacent pieces share, half of a piece by default.
      nfft: the number of elements that are transformed, with zeros after those of a piece.
      detrend: the trend that is subtracted from each piece: "constant", "linear", or a function of
        pieces; False for none.
      return_onesided: whether to leave out negative frequencies, for real sequences.
      scaling: "density", per unit of frequency, or "spectrum".
      axis: the axis of the sequences.
      average: the average over pieces: "mean" or "median".

    Returns:
      The frequencies, and the real spectrum: its axis of frequencies replaces that of the sequence.

    Raises:
      ValueError: if an argument has an unknown value, or pieces do not fit.
    """
    options = (fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling)
    frequencies, result = csd(x, None, *options, axis, average)
    return frequencies, jnp.real(result)


# ---- short-time transforms -----------------------------------------------------------------------


def stft(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """Compute the short-time Fourier transform: that of overlapping segments of a sequence.

    Args:
      x: an array.
      fs: the number of elements in a unit of time.
      window: the name of a window, a tuple of its name and parameters, or an array.
      nperseg: the number of elements of a piece.
      noverlap: the number of elements that adjacent pieces share, half of a piece by default.
      nfft: the number of elements that are transformed, with zeros after those of a piece.
      detrend: the trend that is subtracted from each piece: "constant", "linear", or a function of
        pieces; False for none.
      return_onesided: whether to leave out negative frequencies, for real sequences.
      boundary: the extension by half a piece at both ends: "zeros", "even", "odd", "constant", or
        None for no extension.
      padded: whether to pad with zeros so that the last piece is whole.
      axis: the axis of the sequence.

    Returns:
      The frequencies, the times of pieces, and the transforms: the axis of frequencies
      replaces that of the sequence, and that of times is last.

    Raises:
      ValueError: if an argument has an unknown value, or pieces do not fit.
    """
    check_arraylike("stft", x)
    check_choice("stft", "boundary", boundary, ("even", "odd", "constant", "zeros", None))
    axis = canonical_axis(axis, typeof(x).ndim) - typeof(x).ndim
    size = typeof(x).shape[axis]
    window, count = _segment(window, nperseg, size)
    overlap, transformed = _counts(count, noverlap, nfft)
    onesided = return_onesided and not is_complex(typeof(x).dtype)
    _warn_of_sides(return_onesided, onesided)
    scaling = "spectrum"
    settings = _Settings(
        count=count,
        overlap=overlap,
        transformed=transformed,
        detrend=detrend,
        onesided=onesided,
        scaling=scaling,
        spectrum=True,
        boundary=boundary,
        padded=padded,
        average=None,
    )
    result = _spectrum(x, None, window, fs, settings, axis)
    first = 0.0 if boundary is not None else count / 2
    times = (first + np.arange(typeof(result).shape[-1]) * (count - overlap)) / fs
    dtype = real_dtype(typeof(result).dtype)
    return _frequencies(transformed, fs, onesided), jnp.asarray(times, dtype), result


@operation(static_argnames=("count", "overlap", "transformed", "onesided", "boundary"))
def _joined(
    pieces: Array,
    window: ArrayLike,
    count: int,
    overlap: int,
    transformed: int,
    onesided: bool,
    boundary: bool,
) -> Array:
    """Return the sequence whose segments have the transforms (..., frequency, segment)."""
    pieces = jnp.moveaxis(pieces, -1, -2)
    dtype = to_complex_dtype(typeof(pieces).dtype)
    pieces = pieces.astype(dtype)
    parts = (fourier.irfft if onesided else fourier.ifft)(pieces, transformed)[..., :count]
    window = jnp.asarray(window, real_dtype(dtype))
    parts = parts * _along_last(window, parts)
    parts = parts * jnp.sum(window).astype(typeof(parts).dtype)
    step = count - overlap
    number = typeof(parts).shape[-2]
    size = count + (number - 1) * step
    indices = np.arange(number)[:, None] * step + np.arange(count)
    shape = (*typeof(parts).shape[:-2], size)
    result = jnp.zeros(shape, typeof(parts).dtype).at[..., indices].add(parts)
    squares = jnp.broadcast_to(window * window, (number, count))
    weights = jnp.zeros((size,), typeof(window).dtype).at[indices].add(squares)
    if boundary:
        half = count // 2
        result, weights = result[..., half : size - half], weights[half : size - half]
    # Elements that no window covers are not divided.
    return result / _along_last(jnp.where(weights > 1e-10, weights, 1.0), result)


def istft(
    Zxx: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """Reconstruct a sequence from its short-time Fourier transforms, by least squares.

    The method is that of Griffin and Lim (1984): overlapping pieces are added, and divided by the
    sum of their squared windows.

    Args:
      Zxx: an array, as `stft` returns it.
      fs: the number of elements in a unit of time.
      window: the name of a window, a tuple of its name and parameters, or an array.
      nperseg: the number of elements of a piece.
      noverlap: the number of elements that adjacent pieces share, half of a piece by default.
      nfft: the number of elements that were transformed.
      input_onesided: whether the transforms are those of real sequences, without negative
        frequencies.
      boundary: whether half a piece at both ends is cut off.
      time_axis: the axis of pieces.
      freq_axis: the axis of frequencies.

    Returns:
      The times, and the sequence along the last axis.

    Raises:
      ValueError: if there are fewer than two axes, both axes are the same, or sizes do not match.
    """
    check_arraylike("istft", Zxx)
    ndim = typeof(Zxx).ndim
    if ndim < 2:
        raise ValueError(f"Input stft must be at least 2d!, got {ndim} axes")
    time, frequency = canonical_axis(time_axis, ndim), canonical_axis(freq_axis, ndim)
    if time == frequency:
        raise ValueError("Must specify differing time and frequency axes!")
    Zxx = jnp.moveaxis(jnp.asarray(Zxx), (frequency, time), (-2, -1))
    frequency_count = typeof(Zxx).shape[-2]
    whole = 2 * (frequency_count - 1) if input_onesided else frequency_count
    count = whole if nperseg is None else int(nperseg)
    if nfft is None:
        transformed = count if input_onesided and count == whole + 1 else whole
    else:
        transformed = int(nfft)
    if transformed < count:
        raise ValueError(f"FFT length ({transformed}) must be longer than nperseg ({count}).")
    overlap, _ = _counts(count, noverlap, transformed)
    if isinstance(window, str | tuple | float | int):
        window = window_of(window, count)
    elif typeof(jnp.asarray(window)).shape != (count,):
        raise ValueError(
            f"window must have length of {count}, got shape {typeof(jnp.asarray(window)).shape}"
        )
    result = _joined(Zxx, window, count, overlap, transformed, input_onesided, boundary)
    dtype = real_dtype(typeof(result).dtype)
    return jnp.asarray(np.arange(typeof(result).shape[-1]) / fs, dtype), result
