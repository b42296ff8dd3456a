"""hlofront.scipy.signal: convolutions, trends, spectra."""

from hlofront.base.lazy import lazy as _lazy
from hlofront.scipy.signal.convolution import convolve as convolve
from hlofront.scipy.signal.convolution import convolve2d as convolve2d
from hlofront.scipy.signal.convolution import correlate as correlate
from hlofront.scipy.signal.convolution import correlate2d as correlate2d
from hlofront.scipy.signal.convolution import fftconvolve as fftconvolve
from hlofront.scipy.signal.spectra import csd as csd
from hlofront.scipy.signal.spectra import istft as istft
from hlofront.scipy.signal.spectra import stft as stft
from hlofront.scipy.signal.spectra import welch as welch
from hlofront.scipy.signal.trends import detrend as detrend

__getattr__, __dir__ = _lazy(__name__, ())
