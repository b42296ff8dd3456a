"""Signals against SciPy's own functions."""

import numpy as np
import pytest
import scipy.signal

import hlofront as jax
from hlofront.scipy import signal
from hlofront.scipy.signal.windows import window_of
from hlofront.test_util import check_grads

X = np.random.default_rng(0).normal(size=60).astype(np.float32)


def test_short_time_transforms():
    expected = scipy.signal.stft(X, fs=2.0, nperseg=16, noverlap=12)
    found = signal.stft(X, fs=2.0, nperseg=16, noverlap=12)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)
    _, back = signal.istft(found[2], fs=2.0, nperseg=16, noverlap=12)
    np.testing.assert_allclose(back[:60], X, atol=1e-5)


def test_spectra():
    y = X[::-1].copy()
    for options in ({"average": "median"}, {"scaling": "spectrum", "detrend": "linear"}):
        found = signal.csd(X, y, nperseg=16, **options)[1]
        expected = scipy.signal.csd(X, y, nperseg=16, **options)[1]
        np.testing.assert_allclose(found, expected, atol=1e-5)


NAMED = (
    *"boxcar triang bartlett parzen bohman barthann cosine hann hamming blackman nuttall".split(),
    *"blackmanharris flattop tukey exponential lanczos".split(),
    ("kaiser", 5.0),
    ("gaussian", 3.0),
    ("general_gaussian", 1.5, 3.0),
    ("chebwin", 60.0),
    ("general_hamming", 0.6),
    ("tukey", 0.3),
    ("exponential", None, 2.0),
    4.0,
)


@pytest.mark.parametrize("window", NAMED, ids=str)
def test_windows(window):
    for count in (11, 12):
        expected = scipy.signal.get_window(window, count)
        np.testing.assert_allclose(window_of(window, count), expected, atol=1e-9)


def test_convolutions_transformed():
    y = X[:4]
    check_grads(jax.jit(lambda x, y: signal.convolve(x, y, "same")), (X[:9], y), order=1, rtol=2e-2)
    mapped = jax.vmap(lambda x: signal.fftconvolve(x, y))(X.reshape(6, 10))
    np.testing.assert_allclose(mapped[2], np.convolve(X[20:30], y), atol=1e-5)
    found = signal.correlate2d(X.reshape(6, 10), X[:6].reshape(2, 3), "same")
    expected = scipy.signal.correlate2d(X.reshape(6, 10), X[:6].reshape(2, 3), "same")
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("nperseg", [1, 2, 7, 8, 9])
@pytest.mark.parametrize("scaling", ["density", "spectrum"])
def test_power_spectra_of_even_and_odd_lengths(nperseg, scaling):
    options = {"fs": 2.0, "nperseg": nperseg, "scaling": scaling, "window": "boxcar"}
    found = signal.welch(X, **options, detrend=False)
    expected = scipy.signal.welch(X, **options, detrend=False)
    np.testing.assert_allclose(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-4, atol=1e-5)
