"""exp2 on CPUs, by an exponential of the fraction: within one unit in the last place, and exact."""

import ml_dtypes
import numpy as np
import pytest

import hlofront
import hlofront.numpy as jnp
from hlofront import lax

FLOATS = ["float32", "float64"]


@pytest.fixture(autouse=True)
def wide_numbers():
    with hlofront.enable_x64(True):
        yield


@pytest.mark.parametrize("dtype", FLOATS)
def test_powers_of_whole_numbers_are_exact(dtype):
    limits = np.finfo(dtype)
    x = np.arange(limits.minexp, limits.maxexp)
    np.testing.assert_array_equal(jnp.exp2(x.astype(dtype)), np.ldexp(np.ones((), dtype), x))


@pytest.mark.parametrize("dtype", FLOATS)
def test_errors_are_at_most_one_unit(dtype):
    limits = np.finfo(dtype)
    x = np.random.default_rng(0).uniform(limits.minexp, limits.maxexp, 5000).astype(dtype)
    exact = np.exp2(x.astype(np.longdouble))
    result = np.asarray(jnp.exp2(x))
    units = abs(result - exact) / np.spacing(result)
    assert units.max() <= 1.5


@pytest.mark.parametrize("dtype", FLOATS)
def test_ends_of_the_range(dtype):
    greatest = np.finfo(dtype).maxexp
    x = np.array([np.nan, np.inf, -np.inf, 0, -0.0, greatest, 1e30, -1e30, -2 * greatest], dtype)
    wanted = [np.nan, np.inf, 0, 1, 1, np.inf, np.inf, 0, 0]
    np.testing.assert_array_equal(jnp.exp2(x), np.array(wanted, dtype))
    # The last number whose power is finite: its whole part alone would overflow.
    last = np.nextafter(x[5], 0)
    assert np.isfinite(np.asarray(jnp.exp2(last)))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_narrow_dtypes_are_rounded_once(dtype):
    x = np.array([-3, -0.5, 0.25, 1.5, 5, 7]).astype(dtype)
    wanted = np.exp2(x.astype(np.float64)).astype(dtype)
    np.testing.assert_array_equal(np.asarray(jnp.exp2(x)), wanted)


def test_derivatives_and_batches():
    x = np.array([[0.5, -2.0], [3.0, 0.0]])
    np.testing.assert_allclose(hlofront.vmap(jnp.exp2)(x), np.exp2(x))
    slopes = hlofront.vmap(hlofront.vmap(hlofront.grad(jnp.exp2)))(x)
    np.testing.assert_allclose(slopes, np.exp2(x) * np.log(2))


def test_other_platforms_and_stated_accuracies_have_other_code():
    x = np.ones(3, np.float32)
    traced = hlofront.jit(jnp.exp2).trace(x)
    assert "bitcast_convert" in traced.lower().as_text()
    assert "stablehlo.power" in traced.lower(lowering_platforms=("tpu",)).as_text()
    text = hlofront.jit(lambda x: lax.exp2(x, accuracy=lax.AccuracyMode.HIGHEST)).lower(x).as_text()
    assert "bitcast_convert" not in text
