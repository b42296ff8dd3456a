"""hlofront.scipy.signal: convolutions, trends, spectra."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    now={
        "hlofront.scipy.signal.convolution": (
            "convolve convolve2d correlate correlate2d fftconvolve"
        ),
        "hlofront.scipy.signal.spectra": "csd istft stft welch",
        "hlofront.scipy.signal.trends": "detrend",
    },
)
