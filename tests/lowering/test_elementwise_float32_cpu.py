"""Functions of many narrow floats on CPUs, by formulas in float64, which round once."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base.config import options
from tests.support.large_arrays import ENOUGH

FUNCTIONS = ["sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2", "cbrt"]

random = np.random.default_rng(0)


def floats_of_random_bits(count):
    """Return numbers of float32 of every magnitude; some are subnormal, infinite or NaN."""
    return random.integers(0, 2**32, count, dtype=np.uint64).astype(np.uint32).view(np.float32)


def operands_of(name, x):
    if name == "arctan2":  # Its subnormal operands are zeros on CPUs.
        x = np.where(abs(x) < ml_dtypes.finfo(x.dtype).tiny, np.zeros_like(x), x)
        return x, np.roll(x, 1)
    if name in ("arcsin", "arccos"):
        x = np.divide(1, x, where=abs(x) > 1, out=x.copy())
    return (x,)


def assert_signs_equal(result, wanted):
    known = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(result)[known], np.signbit(wanted)[known])


def assert_rounded_once(name, operands):
    """Assert that results of float32 are NumPy's of float64, but for a rounding."""
    with np.errstate(all="ignore"):
        result = np.asarray(getattr(jnp, name)(*operands))
        exact = getattr(np, name)(*(np.asarray(x, np.float64) for x in operands))
        unit = np.spacing(abs(exact).astype(np.float32)).astype(np.float64)
        # Subnormal results may be zeros.
        unit = np.maximum(unit, np.finfo(np.float32).tiny)
        error = abs(result - exact) / unit
    assert result.dtype == np.float32
    np.testing.assert_array_equal(np.isnan(result), np.isnan(exact))
    assert_signs_equal(result, exact)
    assert np.nanmax(error, initial=0) <= 1


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_are_at_most_one_unit(name):
    usual = np.concatenate([random.normal(size=20_000) * 100, np.arange(20_000) * np.pi / 2])
    for x in (floats_of_random_bits(100_000), usual.astype(np.float32)):
        x = x[~np.isnan(x)]
        assert_rounded_once(name, operands_of(name, x))


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_large_angles_near_multiples_of_half_of_pi(name):
    # No number of float32 is nearer to a multiple of pi/2: J.-M. Muller, Elementary Functions.
    nearest = np.float32(16367173.0 * 2.0**72)
    borders = np.float32(2.0) ** np.arange(20, 128, dtype=np.float32)
    x = np.concatenate([[nearest], borders, np.nextafter(borders, 0, dtype=np.float32)])
    assert_rounded_once(name, (np.resize(np.concatenate([x, -x]), ENOUGH),))


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "arctan", "cbrt"])
def test_infinities_zeros_and_nan(name):
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 3e38], np.float32)
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(x)
    result = np.asarray(getattr(jnp, name)(np.tile(x, ENOUGH)))[: len(x)]
    np.testing.assert_allclose(result, wanted, rtol=1e-6)
    assert_signs_equal(result, wanted)


@pytest.mark.parametrize("name", ["arcsin", "arccos"])
def test_outside_of_the_domain_they_are_nan(name):
    x = np.array([np.nan, np.inf, -2.0, np.nextafter(np.float32(1), 2), 1.0, -1.0, 0.0, -0.0])
    x = x.astype(np.float32)
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(x)
    np.testing.assert_allclose(getattr(jnp, name)(np.tile(x, ENOUGH))[: len(x)], wanted, rtol=1e-6)


def test_the_quadrants_of_points():
    ends = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-30, -3e38], np.float32)
    y, x = (np.tile(each.ravel(), 100) for each in np.meshgrid(ends, ends))
    result, wanted = np.asarray(jnp.arctan2(y, x)), np.arctan2(y, x)
    np.testing.assert_allclose(result, wanted, rtol=1e-6, atol=1e-37)
    assert_signs_equal(result, wanted)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=20))
def test_any_numbers(numbers):
    x = np.resize(np.array(numbers, np.float32), ENOUGH)
    for name in ("sin", "arctan2", "cbrt"):
        assert_rounded_once(name, operands_of(name, x))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_narrow_dtypes_are_rounded(name, dtype):
    x = random.uniform(-1, 1, ENOUGH).astype(dtype)
    operands = operands_of(name, x)
    result = np.asarray(getattr(jnp, name)(*operands))
    assert result.dtype == dtype
    with np.errstate(divide="ignore"):
        wanted = getattr(np, name)(*(each.astype(np.float64) for each in operands))
    resolution = float(ml_dtypes.finfo(dtype).eps)
    np.testing.assert_allclose(result.astype(np.float64), wanted, rtol=resolution, atol=1e-7)


def test_derivatives_and_batches():
    x = random.normal(size=(2, ENOUGH)).astype(np.float32)
    np.testing.assert_allclose(hlofront.vmap(jnp.sin)(x), np.sin(x), rtol=1e-5, atol=1e-7)
    slopes = hlofront.grad(lambda x: jnp.sin(x).sum())(x)
    np.testing.assert_allclose(slopes, np.cos(x), rtol=1e-5, atol=1e-7)
    slopes = hlofront.grad(lambda x: jnp.arctan2(x, jnp.full_like(x, 2)).sum())(x)
    np.testing.assert_allclose(slopes, 2 / (4 + x**2), rtol=1e-5)


def uses_formula(function, *operands, platforms=("cpu",)):
    text = hlofront.jit(function).trace(*operands).lower(lowering_platforms=platforms).as_text()
    return "bitcast_convert" in text


@pytest.mark.parametrize("name", FUNCTIONS)
def test_where_they_are_used(name):
    function = getattr(jnp, name)
    operands = operands_of(name, np.ones(ENOUGH, np.float32))
    assert uses_formula(function, *operands)
    assert not uses_formula(function, *operands, platforms=["tpu"])
    assert not uses_formula(function, *operands, platforms=["cuda"])
    assert not uses_formula(function, *(x[:10] for x in operands))


def test_a_stated_accuracy_keeps_the_operation():
    x = np.ones(ENOUGH, np.float32)
    assert not uses_formula(lambda x: lax.sin(x, accuracy=lax.AccuracyMode.HIGHEST), x)


def test_programs_whose_barriers_may_be_dropped_keep_the_operation():
    x = np.ones(ENOUGH, np.float32)
    assert not uses_formula(jnp.sin, x, platforms=["cpu", "tpu"])
    of_any_size = hlofront.ShapeDtypeStruct(hlofront.export.symbolic_shape("n"), x.dtype)
    exported = hlofront.export.export(hlofront.jit(jnp.sin), platforms=["cpu"])(of_any_size)
    assert "bitcast_convert" not in exported.mlir_module()
    with options["hlofront_fences"](False):
        assert not uses_formula(jnp.sin, x)


def test_a_chain_computes_each_function_once():
    def chain(x):
        for _ in range(24):
            x = x + jnp.sin(x) * 0.1
        return x

    x = random.normal(size=ENOUGH).astype(np.float32)
    compiled = hlofront.jit(chain).lower(x).compile()
    # Each sine rounds two products, and their sum to a multiple of pi.
    assert compiled.as_text().count(" round-nearest-even(") == 3 * 24
    wanted = x.astype(np.float64)
    for _ in range(24):
        wanted = wanted + np.sin(wanted) * 0.1
    np.testing.assert_allclose(compiled(x), wanted, rtol=1e-4, atol=1e-5)
