"""Spectra of pieces of sequences: Welch's method (1967), short-time Fourier transforms."""

import warnings
from typing import Any, NamedTuple

import numpy as np

import hlofront.numpy as jnp
import hlofront.numpy.fft as fourier
from hlofront.base.dtypes import is_complex, to_complex_dtype
from hlofront.core.aval import typeof
from hlofront.core.dimensions import canonical_axis
from hlofront.numpy.promotion import check_arraylike, promote_args_inexact
from hlofront.primitives import elementwise
from hlofront.runtime.dispatch.operation import operation
from hlofront.scipy.signal.trends import detrend as without_trend
from hlofront.scipy.signal.windows import window_of


class _Settings(NamedTuple):
    """How sequences are cut into pieces and transformed; what a program is compiled for."""

    count: int
    overlap: int
    transformed: int
    detrend: Any
    onesided: bool
    scaling: str
    spectrum: bool
    boundary: str | None
    padded: bool
    average: str | None


def _segment(window: Any, nperseg: Any, size: int) -> tuple[Any, int]:
    """The window as an array, and how many elements a piece has."""
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


def _counts(count: int, noverlap: Any, nfft: Any) -> tuple[int, int]:
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


def _warn_of_sides(asked: bool, onesided: bool) -> None:
    if asked and not onesided:
        warnings.warn("Input data is complex, switching to return_onesided=False", stacklevel=3)


# ---- pieces, transformed -------------------------------------------------------------------------


def _extended(x: Any, boundary: str | None, half: int) -> Any:
    """x with half a piece before and after its last axis."""
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


def _pieces(x: Any, window: Any, settings: _Settings) -> Any:
    """The transforms of windowed pieces, as (..., piece, frequency)."""
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


def _along_last(vector: Any, x: Any) -> Any:
    """A vector along the last axis of x, of x's rank and dtype."""
    aval = typeof(x)
    return jnp.reshape(vector, (1,) * (aval.ndim - 1) + (-1,)).astype(aval.dtype)


@operation(static_argnames=("settings", "axis"))
def _spectrum(x, y, window, fs, settings, axis):
    """The spectrum of pieces with the axis of frequencies in the place of the sequences'."""
    if y is None:
        (x,) = promote_args_inexact("csd", x)
    else:
        x, y = promote_args_inexact("csd", x, y)
    dtype = np.zeros((), typeof(x).dtype).real.dtype
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
            # The other half of the spectrum is the same; but zero and the highest are there once.
            last = None if settings.transformed % 2 else -1
            result = result.at[..., 1:last].multiply(2)
    # (..., piece, frequency) -> (..., frequency, ..., piece)
    result = jnp.moveaxis(result, -1, axis if axis >= 0 else axis - 1)
    if settings.average is not None:
        result = _averaged(result, settings.average)
    return jnp.real(result) if y is None and not settings.spectrum else result


def _equally_long(x: Any, y: Any) -> tuple[Any, Any]:
    """Both with zeros after the last axis of the shorter one."""
    sizes = typeof(x).shape[-1], typeof(y).shape[-1]

    def extended(a, size):
        missing = max(sizes) - size
        return jnp.pad(a, [(0, 0)] * (typeof(a).ndim - 1) + [(0, missing)]) if missing else a

    return extended(x, sizes[0]), extended(y, sizes[1])


def _averaged(x: Any, average: str) -> Any:
    count = typeof(x).shape[-1]
    if average == "mean":
        return jnp.mean(x, axis=-1)
    # What the median of this many exponentially distributed numbers is, by their mean.
    even = 2.0 * np.arange(1, (count - 1) // 2 + 1)
    bias = 1 + float(np.sum(1 / (even + 1) - 1 / even))
    if is_complex(typeof(x).dtype):
        parts = [jnp.median(part, axis=-1) for part in (jnp.real(x), jnp.imag(x))]
        return elementwise.complex(*parts) / bias
    return jnp.median(x, axis=-1) / bias


def _frequencies(count: int, fs: Any, onesided: bool) -> Any:
    function = fourier.rfftfreq if onesided else fourier.fftfreq
    return function(count, 1 / fs)


_BOUNDARIES = ("even", "odd", "constant", "zeros", None)


def csd(
    x: Any,
    y: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Any, Any]:
    """The cross power spectral density of two sequences, by Welch's method (1967).

    Args:
      x: an array.
      y: an array of as many axes, or None for `x`.
      fs: how many elements there are in a unit of time.
      window: the name of a window, a tuple of its name and parameters, or an array.
      nperseg: how many elements a piece has, 256 by default.
      noverlap: how many of them the next piece has too, half of them by default.
      nfft: how many elements are transformed, with zeros after those of a piece.
      detrend: "constant" or "linear", what is taken off each piece; False; or a function of
        pieces.
      return_onesided: whether to leave out what real sequences have twice.
      scaling: "density", per unit of frequency, or "spectrum".
      axis: the axis of the sequences.
      average: of pieces: "mean" or "median".

    Returns:
      The frequencies, and the spectrum with their axis in the place of the sequences'.

    Raises:
      ValueError: if an argument is another than these, or pieces do not fit.
    """
    check_arraylike("csd", x)
    if y is not None:
        check_arraylike("csd", y)
        ranks = typeof(x).ndim, typeof(y).ndim
        if ranks[0] != ranks[1]:
            raise ValueError(f"two-arguments must have the same rank ({ranks[0]} vs {ranks[1]}).")
    if average not in ("mean", "median"):
        raise ValueError(f'average must be "median" or "mean", got {average}')
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"Unknown scaling: {scaling}")
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
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Any, Any]:
    """The power spectral density of a sequence, by Welch's method (1967): `csd` of it with itself.

    Args:
      x: an array.
      fs: how many elements there are in a unit of time.
      window: the name of a window, a tuple of its name and parameters, or an array.
      nperseg: how many elements a piece has, 256 by default.
      noverlap: how many of them the next piece has too, half of them by default.
      nfft: how many elements are transformed, with zeros after those of a piece.
      detrend: "constant" or "linear", what is taken off each piece; False; or a function of
        pieces.
      return_onesided: whether to leave out what real sequences have twice.
      scaling: "density", per unit of frequency, or "spectrum".
      axis: the axis of the sequences.
      average: of pieces: "mean" or "median".

    Returns:
      The frequencies, and the real spectrum with their axis in the place of the sequences'.

    Raises:
      ValueError: if an argument is another than these, or pieces do not fit.
    """
    options = (fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling)
    frequencies, result = csd(x, None, *options, axis, average)
    return frequencies, jnp.real(result)


# ---- short-time transforms -----------------------------------------------------------------------


def stft(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Any, Any, Any]:
    """The Fourier transforms of overlapping pieces of a sequence.

    Args:
      x: an array.
      fs: how many elements there are in a unit of time.
      window: the name of a window, a tuple of its name and parameters, or an array.
      nperseg: how many elements a piece has.
      noverlap: how many of them the next piece has too, half of them by default.
      nfft: how many elements are transformed, with zeros after those of a piece.
      detrend: "constant" or "linear", what is taken off each piece; False; or a function of
        pieces.
      return_onesided: whether to leave out what real sequences have twice.
      boundary: what half a piece at both ends is filled with: "zeros", "even", "odd", "constant",
        or None if there is none.
      padded: whether zeros are put after the end, so that the last piece is whole.
      axis: the axis of the sequence.

    Returns:
      The frequencies, the times of pieces, and the transforms: the axis of frequencies in the
      place of the sequence's, and that of times last.

    Raises:
      ValueError: if an argument is another than these, or pieces do not fit.
    """
    check_arraylike("stft", x)
    if boundary not in _BOUNDARIES:
        raise ValueError(
            f"Unknown boundary option {boundary!r}, must be one of: {list(_BOUNDARIES)}"
        )
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
    dtype = np.zeros((), typeof(result).dtype).real.dtype
    return _frequencies(transformed, fs, onesided), jnp.asarray(times, dtype), result


@operation(static_argnames=("count", "overlap", "transformed", "onesided", "boundary"))
def _joined(pieces, window, count, overlap, transformed, onesided, boundary):
    """The sequence whose transforms pieces are, of shape (..., frequency, piece)."""
    pieces = jnp.moveaxis(pieces, -1, -2)
    dtype = to_complex_dtype(typeof(pieces).dtype)
    pieces = pieces.astype(dtype)
    parts = (fourier.irfft if onesided else fourier.ifft)(pieces, transformed)[..., :count]
    window = jnp.asarray(window, np.zeros((), dtype).real.dtype)
    parts = parts * _along_last(window, parts)
    parts = parts * jnp.sum(window).astype(typeof(parts).dtype)
    step = count - overlap
    number = typeof(parts).shape[-2]
    size = count + (number - 1) * step
    places = np.arange(number)[:, None] * step + np.arange(count)
    shape = (*typeof(parts).shape[:-2], size)
    result = jnp.zeros(shape, typeof(parts).dtype).at[..., places].add(parts)
    squares = jnp.broadcast_to(window * window, (number, count))
    weights = jnp.zeros((size,), typeof(window).dtype).at[places].add(squares)
    if boundary:
        half = count // 2
        result, weights = result[..., half : size - half], weights[half : size - half]
    # Where no window reaches there is nothing to be found.
    return result / _along_last(jnp.where(weights > 1e-10, weights, 1.0), result)


def istft(
    Zxx: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Any, Any]:
    """The sequence whose short-time Fourier transforms these are, by least squares.

    As Griffin and Lim (1984): overlapping pieces are added, and divided by what their windows add
    up to.

    Args:
      Zxx: an array, as `stft` gives it.
      fs: how many elements there are in a unit of time.
      window: the name of a window, a tuple of its name and parameters, or an array.
      nperseg: how many elements a piece has.
      noverlap: how many of them the next piece has too, half of them by default.
      nfft: how many elements were transformed.
      input_onesided: whether the transforms are those of real sequences, with half of them left
        out.
      boundary: whether half a piece at both ends is cut off.
      time_axis: the axis of pieces.
      freq_axis: the axis of frequencies.

    Returns:
      The times, and the sequence along the last axis.

    Raises:
      ValueError: if there are fewer than two axes, both axes are the same, or sizes do not fit.
    """
    check_arraylike("istft", Zxx)
    ndim = typeof(Zxx).ndim
    if ndim < 2:
        raise ValueError(f"Input stft must be at least 2d!, got {ndim} axes")
    time, frequency = canonical_axis(time_axis, ndim), canonical_axis(freq_axis, ndim)
    if time == frequency:
        raise ValueError("Must specify differing time and frequency axes!")
    Zxx = jnp.moveaxis(jnp.asarray(Zxx), (frequency, time), (-2, -1))
    found = typeof(Zxx).shape[-2]
    whole = 2 * (found - 1) if input_onesided else found
    count = whole if nperseg is None else int(nperseg)
    if count < 1:
        raise ValueError(f"nperseg must be a positive integer, got {count}")
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
    dtype = np.zeros((), typeof(result).dtype).real.dtype
    return jnp.asarray(np.arange(typeof(result).shape[-1]) / fs, dtype), result
