"""Maxima and minima on CPUs whose XLA has a kernel that ignores NaNs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base.config import options
from hlofront.lowering.cpu import maxima as maxima_cpu

FUNCTIONS = {
    "jnp.maximum": (jnp.maximum, np.maximum),
    "jnp.minimum": (jnp.minimum, np.minimum),
    "lax.max": (lax.max, np.maximum),
    "the other way around": (lambda x, y: jnp.minimum(y, x), np.minimum),
}


@pytest.fixture(autouse=True)
def with_the_fault(monkeypatch):
    """Lower as under a jaxlib that has the fault."""
    monkeypatch.setattr(maxima_cpu, "is_fault_lowered", lambda: True)
    hlofront.clear_caches()
    yield
    hlofront.clear_caches()


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
        with options["hlofront_xla_guards"](False):
            others.append(lowered(each, X))
        for text in others:
            assert text.count("stablehlo.maximum") == 1
        assert text != lowered(each, X)
    # Other functions and dtypes keep the operation.
    text = lowered(lambda x: lax.reduce(x, np.float32(0), lambda x, y: abs(x + y), (0, 1)), X)
    assert "stablehlo.abs" in text
    of_integers = lambda x: lax.reduce(x, np.int16(0), jnp.maximum, (0, 1))
    assert lowered(of_integers, X.astype(np.int16)).count("stablehlo.maximum") == 1


@pytest.mark.cpu
@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(width=32, allow_subnormal=False), min_size=1, max_size=9))
def test_extremes_of_any_numbers(numbers):
    x = np.resize(np.array(numbers, np.float32), 5000)
    for function, of_numpy in FUNCTIONS.values():
        result = lax.reduce(x, np.float32(1), function, (0,))
        np.testing.assert_array_equal(result, of_numpy.reduce(x, initial=np.float32(1)))


# ---- axes and windows ----------------------------------------------------------------------------

LARGE = np.random.default_rng(1).normal(size=(2, 48, 60, 4)).astype(np.float32)
WINDOWS = {
    "windows that do not overlap": {"window": (2, 2), "strides": (2, 2)},
    "padded ones": {"window": (3, 3), "strides": (3, 3), "padding": [(1, 1), (2, 1)]},
    "windows with gaps": {"window": (2, 3), "strides": (4, 5)},
    "large windows that overlap": {"window": (12, 10), "strides": (3, 5)},
    "dilated windows": {"window": (12, 10), "window_dilation": (2, 2), "strides": (9, 9)},
    "one window with padding": {"window": (48, 60), "padding": "SAME", "strides": (48, 60)},
    "columns": {"window": (48, 1)},
    "every second element": {"window": (1, 1), "strides": (2, 2)},
}
STARTS = {"max": -np.inf, "min": np.inf, "add": 0}


def windowed(x, name, window, strides=(1, 1), padding="VALID", **dilations):
    if not isinstance(padding, str):
        padding = [(0, 0), *padding, (0, 0)]
    dilations = {key: (1, *value, 1) for key, value in dilations.items()}
    combine, start = getattr(lax, name), np.array(STARTS[name], x.dtype)
    return lax.reduce_window(
        x, start, combine, (1, *window, 1), (1, *strides, 1), padding, **dilations
    )


@pytest.mark.cpu
@pytest.mark.parametrize("formulas", [True, False], ids=["with formulas", "without formulas"])
@pytest.mark.parametrize("case", WINDOWS)
def test_a_window_is_nan_where_an_element_is(case, formulas):
    windows = WINDOWS[case]
    x = LARGE.copy()
    x[1, 0, 0, 0], x[0, 0, 0, 2] = np.inf, -np.inf
    extremes = hlofront.jit(lambda x: [windowed(x, name, **windows) for name in ("max", "min")])
    with options["hlofront_xla_guards"](False):
        expected = hlofront.jit(lambda x: extremes(x))(x)
    with options["hlofront_cpu_formulas"](formulas):
        for result, wanted in zip(extremes(x), expected):
            np.testing.assert_array_equal(result, wanted)
        # Sums are NaN in the windows that a NaN is in, and in no others.
        x[1, 0, 0, 0] = x[0, 0, 0, 2] = 0
        x[0, 11, 7, 1] = x[1, 0, 0, 3] = np.nan
        are_nan = np.isnan(windowed(x, "add", **windows))
        for result in extremes(x):
            np.testing.assert_array_equal(np.isnan(result), are_nan)


@pytest.mark.cpu
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("axes", [0, 1, (0, 1)])
@pytest.mark.parametrize("formulas", [True, False], ids=["with formulas", "without formulas"])
def test_extremes_along_axes_are_nan_where_an_element_is(axes, dtype, formulas):
    with hlofront.enable_x64(True), options["hlofront_cpu_formulas"](formulas):
        x = X.astype(dtype)
        x[3, 5], x[4, 6], x[5, 7] = np.nan, np.inf, -np.inf
        np.testing.assert_array_equal(hlofront.jit(lambda x: x.max(axes))(x), x.max(axes))
        np.testing.assert_array_equal(hlofront.jit(lambda x: x.min(axes))(x), x.min(axes))


NUMBERS = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2e-38, np.inf, -np.inf, np.nan, 3e38])


@pytest.mark.cpu
@settings(max_examples=20, deadline=None)
@given(st.lists(NUMBERS, min_size=1, max_size=12), st.integers(1, 4), st.integers(1, 3))
def test_maxima_of_windows_of_any_numbers(numbers, width, stride):
    x = np.array(numbers, np.float32)[:, None].repeat(5000, 1)
    width = min(width, len(x))
    result = lax.reduce_window(x, -np.inf, lax.max, (width, 1), (stride, 1), "VALID")
    windows = np.lib.stride_tricks.sliding_window_view(x, width, 0)[::stride]
    np.testing.assert_array_equal(result, windows.max(-1))


@pytest.mark.parametrize("function", ["max", "min"])
def test_the_option_that_the_readme_names_gives_maxima_of_nans(function):
    x = np.zeros(10**5, np.float32)
    x[33:66] = np.nan
    options = {"xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_DOT"}
    assert np.isnan(hlofront.jit(getattr(jnp, function), compiler_options=options)(x))
