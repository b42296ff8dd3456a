"""The windows of signal processing by name, as NumPy arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from hlofront.base.typing import NumPyArray

# A window: a name, a name with parameters, or the parameter of Kaiser's window.
WindowName: TypeAlias = str | float | tuple[object, ...]


def _cosines(*weights: float) -> Callable[[int], NumPyArray]:
    """Return a function of a size that makes a window: a weighted sum of cosines of k periods."""

    def window(count: int) -> NumPyArray:
        angles = np.linspace(-math.pi, math.pi, count)
        return sum(w * np.cos(i * angles) for i, w in enumerate(weights))  # type: ignore[return-value]

    return window


def _triangle(count: int) -> NumPyArray:
    half = np.arange(1, (count + 1) // 2 + 1)
    if count % 2:
        rising = 2 * half / (count + 1)
        return np.concatenate([rising, rising[-2::-1]])
    rising = (2 * half - 1) / count
    return np.concatenate([rising, rising[::-1]])


def _parzen(count: int) -> NumPyArray:
    distances = np.abs(np.arange(count) - (count - 1) / 2) / (count / 2)
    near = 1 - 6 * distances**2 * (1 - distances)
    return np.where(distances <= 0.5 * (count - 1) / count, near, 2 * (1 - distances) ** 3)


def _bohman(count: int) -> NumPyArray:
    x = np.abs(np.linspace(-1, 1, count))
    result = (1 - x) * np.cos(math.pi * x) + np.sin(math.pi * x) / math.pi
    result[[0, -1]] = 0
    return result


def _barthann(count: int) -> NumPyArray:
    x = np.abs(np.arange(count) / (count - 1) - 0.5)
    return 0.62 - 0.48 * x + 0.38 * np.cos(2 * math.pi * x)


def _lanczos(count: int) -> NumPyArray:
    return np.sinc(2 * np.arange(count) / (count - 1) - 1)


def _tukey(count: int, share: float = 0.5) -> NumPyArray:
    """Return Tukey's window (count,): flat in the middle, with cosine tapers for `share` of it."""
    if share <= 0:
        return np.ones(count)
    x = np.minimum(np.arange(count), np.arange(count)[::-1]) / (count - 1)
    x = np.minimum(2 * x / min(share, 1.0), 1.0)
    return 0.5 * (1 - np.cos(math.pi * x))


def _gaussian(count: int, deviation: float) -> NumPyArray:
    x = np.arange(count) - (count - 1) / 2
    return np.exp(-0.5 * (x / deviation) ** 2)


def _general_gaussian(count: int, power: float, deviation: float) -> NumPyArray:
    x = np.arange(count) - (count - 1) / 2
    return np.exp(-0.5 * np.abs(x / deviation) ** (2 * power))


def _exponential(count: int, center: float | None = None, scale: float = 1.0) -> NumPyArray:
    middle = (count - 1) / 2 if center is None else center
    return np.exp(-np.abs(np.arange(count) - middle) / scale)


def _chebyshev(count: int, attenuation: float) -> NumPyArray:
    """Return the Dolph-Chebyshev window (count,), whose side lobes are equal, by an inverse DFT."""
    order = count - 1
    beta = math.cosh(math.acosh(10 ** (abs(attenuation) / 20)) / order)
    x = beta * np.cos(math.pi * np.arange(count) / count)
    beyond = np.cosh(order * np.arccosh(np.maximum(np.abs(x), 1)))
    sign = np.where(x < 0, (-1.0) ** order, 1.0)
    spectrum = np.where(np.abs(x) > 1, sign * beyond, np.cos(order * np.arccos(np.clip(x, -1, 1))))
    if count % 2:
        result = np.fft.fft(spectrum).real[: (count + 1) // 2]
        result = np.concatenate([result[:0:-1], result])
    else:
        turned = spectrum * np.exp(1j * math.pi / count * np.arange(count))
        result = np.fft.fft(turned).real[1 : count // 2 + 1]
        result = np.concatenate([result[::-1], result])
    return result / result.max()


# The coefficients are those of Harris, "On the use of windows for harmonic analysis" (1978), of
# Nuttall (1981), and of the ISO flat top window.
_PLAIN: dict[str, Callable[[int], NumPyArray]] = {
    "boxcar": np.ones,
    "triang": _triangle,
    "bartlett": np.bartlett,
    "parzen": _parzen,
    "bohman": _bohman,
    "barthann": _barthann,
    "lanczos": _lanczos,
    "cosine": lambda count: np.sin(math.pi / count * (np.arange(count) + 0.5)),
    "tukey": _tukey,
    "exponential": _exponential,
    "hann": _cosines(0.5, 0.5),
    "hamming": _cosines(0.54, 0.46),
    "blackman": _cosines(0.42, 0.50, 0.08),
    "nuttall": _cosines(0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "blackmanharris": _cosines(0.35875, 0.48829, 0.14128, 0.01168),
    "flattop": _cosines(0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),
}
_WITH_PARAMETERS: dict[str, Callable[..., NumPyArray]] = {
    "kaiser": np.kaiser,
    "gaussian": _gaussian,
    "general_gaussian": _general_gaussian,
    "general_cosine": lambda count, weights: _cosines(*weights)(count),
    "general_hamming": lambda count, weight: _cosines(weight, 1 - weight)(count),
    "tukey": _tukey,
    "exponential": _exponential,
    "chebwin": _chebyshev,
}
_OTHER_NAMES = {
    **dict.fromkeys(("box", "ones", "rect", "rectangular"), "boxcar"),
    **dict.fromkeys(("triangle", "tri"), "triang"),
    **dict.fromkeys(("bart", "brt"), "bartlett"),
    **dict.fromkeys(("hanning", "han"), "hann"),
    **dict.fromkeys(("hamm", "ham"), "hamming"),
    **dict.fromkeys(("black", "blk"), "blackman"),
    **dict.fromkeys(("nutt", "nut"), "nuttall"),
    **dict.fromkeys(("blackharr", "bkh"), "blackmanharris"),
    **dict.fromkeys(("flat", "flt"), "flattop"),
    **dict.fromkeys(("gauss", "gss"), "gaussian"),
    **dict.fromkeys(("parz", "par"), "parzen"),
    **dict.fromkeys(("bman", "bmn"), "bohman"),
    **dict.fromkeys(("brthan", "bth"), "barthann"),
    **dict.fromkeys(("ksr",), "kaiser"),
    **dict.fromkeys(("poisson",), "exponential"),
    **dict.fromkeys(("tuk",), "tukey"),
    **dict.fromkeys(("cheb",), "chebwin"),
    **dict.fromkeys(("halfcosine",), "cosine"),
    **dict.fromkeys(("sinc",), "lanczos"),
}


def window_of(window: WindowName, count: int) -> NumPyArray:
    """Return a window by its name, a name with parameters, or the parameter of Kaiser's window.

    The window has a period of `count`, as suits spectra: it is the window of one point more,
    without its last point.

    Raises:
      ValueError: if the window is unknown or needs parameters.
    """
    if isinstance(window, str):
        name, parameters = window, ()
    elif isinstance(window, tuple) and window and isinstance(window[0], str):
        name, parameters = window[0], window[1:]
    else:
        try:
            name, parameters = "kaiser", (float(window),)
        except (TypeError, ValueError):
            raise ValueError(f"{type(window)} as window type is not supported.") from None
    known = _OTHER_NAMES.get(name, name)
    table = _WITH_PARAMETERS if parameters else _PLAIN
    if known not in table:
        if known in _WITH_PARAMETERS or known in _PLAIN:
            raise ValueError(
                f"The {name!r} window {'has no' if parameters else 'needs one or more'} "
                f"parameters: got {window!r}"
            )
        raise ValueError(f"Invalid window name {name!r} in parameter {window=}!")
    if count <= 1:
        return np.ones(count)
    return table[known](count + 1, *parameters)[:-1]
