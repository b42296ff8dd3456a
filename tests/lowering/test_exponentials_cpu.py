"""exp2 on CPUs, by an exponential of the fraction: within one unit in the last place, and exact."""

import ml_dtypes
import numpy as np
import pytest

import hlofront
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base.config import options

FLOATS = ["float32", "float64"]
ENOUGH = 5000  # Smaller arrays of float32 have another formula.


@pytest.fixture(autouse=True)
def wide_numbers():
    with hlofront.enable_x64(True):
        yield


@pytest.mark.parametrize("dtype", FLOATS)
def test_powers_of_whole_numbers_are_exact(dtype):
    limits = np.finfo(dtype)
    few = np.arange(limits.minexp, limits.maxexp)
    for x in (few, np.resize(few, ENOUGH)):
        np.testing.assert_array_equal(jnp.exp2(x.astype(dtype)), np.ldexp(np.ones((), dtype), x))


@pytest.mark.parametrize("dtype", FLOATS)
def test_errors_are_at_most_one_unit(dtype):
    limits = np.finfo(dtype)
    x = np.random.default_rng(0).uniform(limits.minexp, limits.maxexp, ENOUGH).astype(dtype)
    exact = np.exp2(x.astype(np.longdouble))
    for count, bound in ((1000, 1.5), (ENOUGH, 0.51 if dtype == "float32" else 1.5)):
        result = np.asarray(jnp.exp2(x[:count]))
        units = abs(result - exact[:count]) / np.spacing(result)
        assert units.max() <= bound


@pytest.mark.parametrize("dtype", FLOATS)
def test_ends_of_the_range(dtype):
    greatest = np.finfo(dtype).maxexp
    x = np.array([np.nan, np.inf, -np.inf, 0, -0.0, greatest, 1e30, -1e30, -2 * greatest], dtype)
    wanted = [np.nan, np.inf, 0, 1, 1, np.inf, np.inf, 0, 0]
    np.testing.assert_array_equal(jnp.exp2(x), np.array(wanted, dtype))
    np.testing.assert_array_equal(jnp.exp2(np.resize(x, ENOUGH))[: len(x)], np.array(wanted, dtype))
    # The last number whose power is finite: its whole part alone would overflow.
    last = np.nextafter(x[5], 0)
    assert np.isfinite(np.asarray(jnp.exp2(last)))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_narrow_dtypes_are_rounded_once(dtype):
    x = np.array([-3, -0.5, 0.25, 1.5, 5, 7]).astype(dtype)
    wanted = np.exp2(x.astype(np.float64)).astype(dtype)
    np.testing.assert_array_equal(np.asarray(jnp.exp2(x)), wanted)
    np.testing.assert_array_equal(np.asarray(jnp.exp2(np.resize(x, ENOUGH)))[: len(x)], wanted)


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


def test_many_narrow_floats_have_a_polynomial():
    def has_polynomial(x, platforms=("cpu",)):
        text = hlofront.jit(jnp.exp2).trace(x).lower(lowering_platforms=platforms).as_text()
        return "stablehlo.exponential" not in text and "bitcast_convert" in text

    x = np.ones(ENOUGH, np.float32)
    assert has_polynomial(x)
    assert has_polynomial(x.astype(np.float16))
    assert not has_polynomial(x[:10])
    assert not has_polynomial(x.astype(np.float64))
    assert not has_polynomial(x, platforms=["tpu"])
    assert not has_polynomial(x, platforms=["cpu", "tpu"])
    with options["hlofront_fences"](False):
        assert not has_polynomial(x)


def test_a_chain_of_many_powers_computes_each_once():
    def chain(x):
        for _ in range(12):
            x = jnp.exp2(x) * 0.5 + x * 0.1
        return x

    x = np.linspace(-1, 1, ENOUGH, dtype=np.float32)
    compiled = hlofront.jit(chain).lower(x).compile()
    assert compiled.as_text().count("round-nearest-even") == 12
