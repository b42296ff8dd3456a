"""lax.reduce and lax.reduce_window with functions that are extremes: NaNs on CPUs, any start."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base.config import options

FUNCTIONS = {
    "jnp.maximum": (jnp.maximum, np.maximum),
    "jnp.minimum": (jnp.minimum, np.minimum),
    "lax.max": (lax.max, np.maximum),
    "the other way around": (lambda x, y: jnp.minimum(y, x), np.minimum),
}
X = np.random.default_rng(0).normal(size=(70, 80)).astype(np.float32)


def lowered(function, x, platform="cpu"):
    return hlofront.jit(function).trace(x).lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.cpu
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_reductions(name, axes, dtype):
    function, of_numpy = FUNCTIONS[name]
    with hlofront.enable_x64(True):
        x = X.astype(dtype)
        x[3, 5] = np.nan
        reduced = hlofront.jit(lambda x, start: lax.reduce(x, start, function, axes))
        for start in (-np.inf, np.inf, 0.25, np.nan):
            result = reduced(x, dtype(start))
            assert result.dtype == dtype
            wanted = of_numpy.reduce(x, axes, initial=dtype(start))
            np.testing.assert_array_equal(result, wanted)


@pytest.mark.cpu
def test_negative_axes():
    result = lax.reduce(X, np.float32(0), jnp.maximum, (-1,))
    np.testing.assert_array_equal(result, X.max(1, initial=0))


@pytest.mark.cpu
@pytest.mark.parametrize("start", [-np.inf, 0.25], ids=str)
@pytest.mark.parametrize("window", [(2, 2), (7, 16), (70, 80), (1, 80)])
def test_windows(window, start):
    x = X.copy()
    x[3, 5] = np.nan
    maxima = lambda x: lax.reduce_window(
        x, np.float32(start), lambda x, y: jnp.maximum(x, y), window, window, "VALID"
    )
    blocks = x.reshape(70 // window[0], window[0], 80 // window[1], window[1])
    wanted = blocks.max((1, 3), initial=start)
    np.testing.assert_array_equal(hlofront.jit(maxima)(x), wanted)
    assert np.isnan(wanted).sum() == 1


@pytest.mark.cpu
def test_the_start_pads_windows():
    maxima = lambda x: lax.reduce_window(x, np.float32(1), jnp.maximum, (9, 9), (9, 9), "SAME")
    with options["hlofront_cpu_formulas"](False):
        wanted = hlofront.jit(lambda x: maxima(x))(X)
    np.testing.assert_array_equal(hlofront.jit(maxima)(X), wanted)


@pytest.mark.cpu
def test_batches():
    batch = np.stack([X, -X])
    batch[1, 3, 5] = np.nan
    maxima = hlofront.vmap(lambda x: lax.reduce(x, np.float32(0), jnp.maximum, (1,)))
    np.testing.assert_array_equal(maxima(batch), batch.max(2, initial=0))


@pytest.mark.cpu
def test_where_they_are_used():
    function = lambda x: lax.reduce(x, np.float32(0), jnp.maximum, (0, 1))
    windows = lambda x: lax.reduce_window(x, np.float32(0), jnp.maximum, (2, 2), (2, 2), "VALID")
    for each in (function, windows):
        others = [lowered(each, X, platform) for platform in ("tpu", "cuda")]
        others.append(lowered(each, X[:50, :50]))
        with options["hlofront_cpu_formulas"](False):
            others.append(lowered(each, X))
        for text in others:
            assert text.count("stablehlo.maximum") == 1
        assert text != lowered(each, X)
    # Other functions and dtypes keep the operation.
    text = lowered(lambda x: lax.reduce(x, np.float32(0), lambda x, y: abs(x + y), (0, 1)), X)
    assert "stablehlo.abs" in text
    half = lambda x: lax.reduce(x, np.float16(0), jnp.maximum, (0, 1))
    assert lowered(half, X.astype(np.float16)).count("stablehlo.maximum") == 1


@pytest.mark.cpu
@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(width=32, allow_subnormal=False), min_size=1, max_size=9))
def test_extremes_of_any_numbers(numbers):
    x = np.resize(np.array(numbers, np.float32), 5000)
    for function, of_numpy in FUNCTIONS.values():
        result = lax.reduce(x, np.float32(1), function, (0,))
        np.testing.assert_array_equal(result, of_numpy.reduce(x, initial=np.float32(1)))
