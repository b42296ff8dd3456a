"""exp2 on CPUs, by a formula of the fraction: with errors of one unit in the last place."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.lowering.min_sizes import MIN_SIZES

FLOATS = ["float32", "float64"]
UNITS = 1.3  # The greatest errors that were seen are 1.15.

pytestmark = pytest.mark.usefixtures("wide_numbers", "formulas_for_any_size")


@pytest.fixture
def formulas_for_any_size(monkeypatch):
    for dtype in FLOATS:
        monkeypatch.setitem(MIN_SIZES["exp2"], dtype, 0)


def assert_near(x):
    """Assert that errors are about one unit in the last place, and subnormal results zeros."""
    limits = np.finfo(x.dtype)
    exact = np.exp2(x.astype(np.longdouble))
    result = np.asarray(jnp.exp2(x))
    assert result.dtype == x.dtype
    is_normal = x >= limits.minexp
    np.testing.assert_array_equal(result[~is_normal], 0)
    exact, result = exact[is_normal], result[is_normal]
    assert (abs(result - exact) <= UNITS * np.spacing(exact.astype(x.dtype))).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_powers_of_whole_numbers_are_exact(dtype):
    limits = np.finfo(dtype)
    x = np.arange(limits.minexp, limits.maxexp)
    np.testing.assert_array_equal(jnp.exp2(x.astype(dtype)), np.ldexp(np.ones((), dtype), x))


@pytest.mark.parametrize("dtype", FLOATS)
def test_errors_are_at_most_about_one_unit(dtype):
    limits = np.finfo(dtype)
    random = np.random.default_rng(0)
    assert_near(random.uniform(limits.minexp, limits.maxexp, 50_000).astype(dtype))
    assert_near(random.uniform(-2, 2, 50_000).astype(dtype))
    # The numbers beside halves, where the whole part changes, and those beside zero.
    halves = (np.arange(2 * limits.minexp, 2 * limits.maxexp) / 2).astype(dtype)
    assert_near(np.concatenate([halves, np.nextafter(halves, -np.inf), np.nextafter(halves, 1e9)]))
    assert_near((random.normal(size=2000) * 10.0 ** random.uniform(-40, 0, 2000)).astype(dtype))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-130, 127.5, width=32), min_size=1, max_size=20))
def test_errors_of_any_numbers(numbers):
    assert_near(np.array(numbers, np.float32))
    assert_near(np.array(numbers, np.float64) * 8)


@pytest.mark.parametrize("dtype", FLOATS)
def test_ends_of_the_range(dtype):
    limits = np.finfo(dtype)
    greatest = limits.maxexp
    x = np.array([np.nan, np.inf, -np.inf, 0, -0.0, greatest, 1e30, -1e30, -2 * greatest], dtype)
    wanted = [np.nan, np.inf, 0, 1, 1, np.inf, np.inf, 0, 0]
    result = np.asarray(jnp.exp2(x))
    np.testing.assert_array_equal(result, np.array(wanted, dtype))
    assert not np.signbit(result[1:]).any()
    # The last number whose power is finite: its whole part alone would overflow.
    assert np.isfinite(np.asarray(jnp.exp2(np.nextafter(x[5], 0))))
    least = np.array(limits.minexp, dtype)
    results = np.asarray(jnp.exp2(np.array([least, np.nextafter(least, -np.inf), least - 1])))
    np.testing.assert_array_equal(results, [limits.smallest_normal, 0, 0])


@pytest.mark.parametrize("dtype, bits", [("float32", "uint32"), ("float64", "uint64")])
def test_the_bits_of_a_nan_do_not_reach_the_exponent(dtype, bits):
    infinity = np.array(np.inf, dtype).view(bits)
    x = (infinity + np.arange(1, 200, dtype=bits)).view(dtype)
    for sign in (1, -1):
        assert np.isnan(np.asarray(jnp.exp2(np.copysign(x, np.array(sign, dtype))))).all()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_narrow_dtypes_are_rounded_once(dtype):
    x = np.array([-3, -0.5, 0.25, 1.5, 5, 7]).astype(dtype)
    wanted = np.exp2(x.astype(np.float64)).astype(dtype)
    np.testing.assert_array_equal(np.asarray(jnp.exp2(x)), wanted)
    # These results are subnormal in float16.
    x = np.array([-15, -20, -24], np.float16)
    np.testing.assert_array_equal(np.asarray(jnp.exp2(x)), np.exp2(x))


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0), (2, 3)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_any_shape(dtype, shape):
    x = np.full(shape, 3, dtype)
    result = np.asarray(jnp.exp2(x))
    assert result.shape == shape
    np.testing.assert_array_equal(result, np.full(shape, 8, dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_derivatives_and_batches(dtype):
    x = np.array([[0.5, -2.0], [3.0, 0.0]], dtype)
    close = 1e-6 if dtype == "float32" else 1e-14
    np.testing.assert_allclose(hlofront.vmap(jnp.exp2)(x), np.exp2(x), rtol=close)
    slopes = hlofront.vmap(hlofront.vmap(hlofront.grad(jnp.exp2)))(x)
    np.testing.assert_allclose(slopes, np.exp2(x) * np.log(2), rtol=close)


@pytest.mark.parametrize("dtype", FLOATS)
def test_fewer_numbers_keep_the_operation_of_xla(monkeypatch, dtype):
    monkeypatch.undo()
    enough = MIN_SIZES["exp2"][dtype]
    few, many = (hlofront.jit(jnp.exp2).lower(np.ones(n, dtype)) for n in (enough - 1, enough))
    assert "stablehlo.power" in few.as_text()
    assert "stablehlo.power" not in many.as_text()


@pytest.mark.parametrize("dtype", FLOATS)
def test_other_platforms_and_stated_accuracies_have_other_code(dtype):
    x = np.ones(3, dtype)
    traced = hlofront.jit(jnp.exp2).trace(x)
    text = traced.lower().as_text()
    assert "bitcast_convert" in text
    assert "stablehlo.exponential" not in text
    assert "stablehlo.power" in traced.lower(lowering_platforms=("tpu",)).as_text()
    text = hlofront.jit(lambda x: lax.exp2(x, accuracy=lax.AccuracyMode.HIGHEST)).lower(x).as_text()
    assert "bitcast_convert" not in text


def test_the_result_is_computed_in_the_loop_that_reads_it():
    x = np.ones(5000, np.float32)
    text = str(hlofront.jit(lambda x: jnp.exp2(x * 0.5) + x).lower(x).compile().as_text())
    assert text.count(" fusion(") == 1
    assert "opt-barrier" not in text


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_chain_of_many_powers_computes_each_once(dtype):
    def chain(x):
        for _ in range(8):
            x = jnp.exp2(x)
            x = jnp.roll(x, 1, 0) * x + jnp.roll(x, 1, 1)
        return x

    x = np.zeros((300, 300), dtype)
    text = str(hlofront.jit(chain).lower(x).compile().as_text())
    assert text.count(" round-nearest-even(") == 8
