"""Quantiles, covariances, counts and histograms, against NumPy."""

import ml_dtypes
import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp

X = np.array([[3.0, 1, 4, 1], [5, 9, 2, 6], [5, 3, 5, 8]], np.float32)
NANS = np.array([[np.nan, 3, 1, 7], [1, 2, np.nan, np.nan]], np.float32)
Q = np.array([0.1, 0.5, 0.93], np.float32)
V, W = np.float32([3, 1, 4, 1]), np.float32([2, 7, 1, 8])
BINS = np.float32([0, 2, 4, 8])
NUMBERS = np.float32([-1, 0, 1.5, 2, 4, 8, 9])
WEIGHTS = np.float32([0.5, 1, 2, 0.25, 0, 1, 3])


def check(found, wanted, rtol=1e-5):
    wanted = np.asarray(wanted)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=rtol, atol=1e-6)


# ---- quantiles ---------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
def test_median(axis):
    check(jnp.median(X, axis), np.median(X, axis))
    check(jnp.nanmedian(NANS, axis), np.nanmedian(NANS, axis))
    check(jnp.median(X, axis, keepdims=True), np.median(X, axis, keepdims=True))


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "inverted_cdf"])
def test_quantiles(method):
    options = {"axis": 1, "method": method}
    check(jnp.quantile(X, Q, **options), np.quantile(X, Q, **options))
    check(jnp.nanquantile(NANS, Q, **options), np.nanquantile(NANS, Q, **options))


def test_shares_and_percents():
    check(jnp.quantile(X, 0.3), np.quantile(X, 0.3))
    check(jnp.quantile(X, Q[:0], 0), np.zeros((0, 4)))
    check(jnp.quantile(X, 1), 9)
    check(jnp.percentile(X, 30, 1, keepdims=True), np.percentile(X, 30, 1, keepdims=True))
    check(jnp.nanpercentile(NANS, Q * 100, 1), np.nanpercentile(NANS, Q * 100, 1))
    # As JAX has it, the lower one of two that are as near.
    check(jnp.quantile(X, 0.5, 1, method="nearest"), [1, 5, 5])


def test_nan_makes_quantiles_nan():
    assert np.isnan(jnp.quantile(NANS, 0.1, 1)).all()
    assert np.isnan(jnp.median(NANS))
    assert np.isnan(jnp.nanmedian(np.float32([np.nan])))


def test_infinities():
    x = np.float32([1, np.inf, np.inf])
    check(jnp.quantile(x, np.float32([0, 0.75, 1])), [1, np.inf, np.inf])


def test_dtypes_of_quantiles():
    assert jnp.median(X.astype(ml_dtypes.bfloat16)).dtype == ml_dtypes.bfloat16
    assert jnp.quantile(X.astype(np.int8), 0.5).dtype == np.float32
    check(jnp.median(X.astype(np.int8)), np.median(X))


def test_weighted_quantiles():
    weights = np.float32([1, 0, 2, 5])
    options = {"method": "inverted_cdf", "axis": 1}
    check(
        jnp.quantile(X, Q, weights=weights, **options),
        np.quantile(X, Q, weights=np.broadcast_to(weights, X.shape), **options),
    )
    check(
        jnp.nanquantile(NANS, Q, weights=np.abs(np.nan_to_num(NANS)), **options),
        np.nanquantile(NANS, Q, weights=np.abs(np.nan_to_num(NANS)), **options),
    )
    with pytest.raises(NotImplementedError, match="linear doesn't support weights"):
        jnp.quantile(V, 0.5, weights=W)
    with pytest.raises(ValueError, match="Shape of weights"):
        jnp.quantile(X, 0.5, 0, weights=W, method="inverted_cdf")


def test_refused_quantiles():
    for options in ({"method": "none"}, {"overwrite_input": True}, {"out": X}):
        with pytest.raises(ValueError):
            jnp.quantile(X, 0.5, **options)
    with pytest.raises(ValueError, match="complex"):
        jnp.median(X * 1j)
    with pytest.raises(ValueError, match="rank <= 1"):
        jnp.quantile(X, X)
    with pytest.raises(ValueError, match="no elements"):
        jnp.median(X[:0])
    with pytest.raises(TypeError, match="position 1"):
        jnp.quantile(X, [0.5])


# ---- covariance --------------------------------------------------------------------------------


def test_covariance():
    check(jnp.cov(X), np.cov(X))
    check(jnp.cov(V), np.cov(V))
    check(jnp.cov(V, W), np.cov(V, W))
    check(jnp.cov(X, W[None]), np.cov(X, W[None]))
    check(jnp.cov(X, rowvar=False), np.cov(X, rowvar=False))
    check(jnp.cov(X, bias=True), np.cov(X, bias=True))
    check(jnp.cov(X, ddof=0), np.cov(X, ddof=0))
    z = (X[:2] + 1j * X[1:]).astype(np.complex64)
    check(jnp.cov(z), np.cov(z))
    assert jnp.cov(X, dtype="float16").dtype == np.float16
    assert jnp.cov(X.astype(np.int8)).dtype == np.float32


def test_weighted_covariance():
    often = np.array([1, 2, 0, 3])
    check(jnp.cov(X, fweights=often), np.cov(X, fweights=often))
    check(jnp.cov(X, aweights=W), np.cov(X, aweights=W))
    check(jnp.cov(X, fweights=often, aweights=W), np.cov(X, fweights=often, aweights=W))
    with pytest.raises(TypeError, match="fweights must be integer"):
        jnp.cov(X, fweights=W)
    with pytest.raises(RuntimeError, match="samples and fweights"):
        jnp.cov(X, fweights=often[:2])
    with pytest.raises(ValueError, match="more than 2 dimensions"):
        jnp.cov(X[None])


def test_correlation():
    check(jnp.corrcoef(X), np.corrcoef(X))
    check(jnp.corrcoef(V, W), np.corrcoef(V, W))
    check(jnp.corrcoef(V), 1)
    z = (X[:2] + 1j * X[1:]).astype(np.complex64)
    check(jnp.corrcoef(z), np.corrcoef(z))


# ---- counts and bins ---------------------------------------------------------------------------


def test_bincount():
    numbers = np.array([0, 1, 1, 3, 2, 1, 7])
    check(jnp.bincount(numbers), np.bincount(numbers))
    check(jnp.bincount(numbers, WEIGHTS), np.bincount(numbers, WEIGHTS))
    check(jnp.bincount(numbers, minlength=10), np.bincount(numbers, minlength=10))
    check(jnp.bincount(numbers, length=3), [1, 3, 1])
    check(jax.jit(lambda x: jnp.bincount(x, length=9))(numbers), [1, 3, 1, 1, 0, 0, 0, 1, 0])
    check(jnp.bincount(numbers[:0]), np.zeros(0))
    nothing = jax.make_jaxpr(lambda x: jnp.bincount(x, length=3))(np.zeros(0, "uint8"))
    assert "scatter" not in str(nothing)
    with pytest.raises(jax.errors.ConcretizationTypeError, match="length"):
        jax.jit(jnp.bincount)(numbers)
    with pytest.raises(TypeError, match="integer type"):
        jnp.bincount(V)
    with pytest.raises(ValueError, match="1-dimensional"):
        jnp.bincount(numbers[None])
    with pytest.raises(ValueError, match="shape of weights"):
        jnp.bincount(numbers, weights=V)


@pytest.mark.parametrize("right", [False, True])
def test_digitize(right):
    for limits in (BINS, BINS[::-1]):
        check(jnp.digitize(NUMBERS, limits, right), np.digitize(NUMBERS, limits, right))
    check(jnp.digitize(X, BINS, right), np.digitize(X, BINS, right))
    check(jnp.digitize(3.0, BINS, right), np.digitize(3.0, BINS, right))
    check(jnp.digitize(X, BINS[:0]), np.zeros((3, 4)))
    check(jnp.digitize(X, BINS, right, method="sort"), np.digitize(X, BINS, right))


def test_wrong_bins():
    with pytest.raises(ValueError, match="1-dimensional"):
        jnp.digitize(V, X)
    with pytest.raises(ValueError, match="method"):
        jnp.digitize(V, BINS, method="none")
    with pytest.raises(NotImplementedError, match="string values"):
        jnp.histogram(V, "auto")
    with pytest.raises(TypeError, match="one axis"):
        jnp.histogram(V, X)
    with pytest.raises(ValueError, match="positive"):
        jnp.histogram(V, 0)
    with pytest.raises(ValueError, match="no identity"):
        jnp.histogram(V[:0], 3)
    with pytest.raises(ValueError, match="pair of limits"):
        jnp.histogram(V, 3, 4)


def check_all(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        check(one, other)


def test_histogram():
    check_all(jnp.histogram(V), np.histogram(V))
    check_all(jnp.histogram(X, 3), np.histogram(X, 3))
    check_all(jnp.histogram(X, [0, 2, 4, 8]), np.histogram(X, [0, 2, 4, 8]))
    check_all(jnp.histogram(X, 4, (2, 6)), np.histogram(X, 4, (2, 6)))
    options = {"weights": WEIGHTS, "density": True}
    check_all(jnp.histogram(NUMBERS, BINS, **options), np.histogram(NUMBERS, BINS, **options))
    check(jnp.histogram_bin_edges(np.float32([5, 5]), 4), np.histogram_bin_edges([5, 5], 4))
    check(jnp.histogram_bin_edges(V, 5, (0, 10)), np.histogram_bin_edges(V, 5, (0, 10)))
    check_all(jax.jit(lambda x: jnp.histogram(x, 3))(X), np.histogram(X, 3))
    with pytest.raises(ValueError, match="same shape"):
        jnp.histogram(NUMBERS, BINS, weights=V)


def test_half_precision_counts_beyond_256():
    counts, _ = jnp.histogram(np.zeros(1024, ml_dtypes.bfloat16), 2)
    check(counts.astype(np.float32), [0, 1024])


def test_histograms_of_points():
    for bins in (3, [2, 3], BINS, [BINS, 3]):
        check_all(jnp.histogram2d(V, W, bins), np.histogram2d(V, W, bins))
    ranges = [[0, 5], None]
    found = jnp.histogram2d(V, W, 2, ranges, density=True)
    check_all(found, np.histogram2d(V, W, 2, [[0, 5], [1, 8]], density=True))
    counts, edges = jnp.histogramdd(X.T, [2, BINS, 1], weights=W)
    wanted, limits = np.histogramdd(X.T, [2, BINS, 1], weights=W)
    check(counts, wanted)
    check_all(edges, limits)
    with pytest.raises(TypeError, match="equal size"):
        jnp.histogram2d(V, W[:2])
    with pytest.raises(ValueError, match="bin for each dimension"):
        jnp.histogramdd(X, [2, 3])
    with pytest.raises(ValueError, match="pairs or Nones"):
        jnp.histogramdd(X, 2, [[0, 1]])
    with pytest.raises(ValueError, match="dimensions"):
        jnp.histogramdd(V)
