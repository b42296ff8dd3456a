"""Functions of many numbers of float64 on CPUs: formulas within a unit in the last place."""

from collections.abc import Callable

import mpmath
import numpy as np
import pytest

import hlofront
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base.config import options

ENOUGH = 5000  # Smaller arrays keep the operations of XLA.
EXACT: dict[str, Callable[..., mpmath.mpf]] = {
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "erf": mpmath.erf,
}

random = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def wide_numbers():
    with hlofront.enable_x64(True):
        yield


def computed(name, x):
    """Return the values at fewer numbers than the formula is for."""
    return np.asarray(getattr(lax, name)(np.resize(x, ENOUGH)))[: len(x)]


def assert_near(name, x):
    """Assert that errors are less than a unit, and signs right."""
    result = computed(name, x)
    assert result.dtype == np.float64
    # Products of subnormal numbers may be zeros.
    least = 0.0 if name == "cbrt" else np.finfo(np.float64).tiny
    with mpmath.workdps(60):
        for number, value in zip(x.tolist(), result.tolist()):
            exact = EXACT[name](mpmath.mpf(number))
            unit = max(float(np.spacing(abs(float(exact)))), least)
            assert abs(mpmath.mpf(value) - exact) <= 0.95 * unit, (number, value)
    np.testing.assert_array_equal(
        np.signbit(result), np.signbit([float(EXACT[name](n)) for n in x])
    )


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 0.1, 1, 5, 1e3, 1e5, 1e300])
@pytest.mark.parametrize("name", list(EXACT))
def test_errors_are_less_than_a_unit(name, scale):
    # Huge angles are left to XLA's operation.
    assert_near(name, random.normal(size=400) * scale)


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_angles_near_multiples_of_half_of_pi(name):
    multiples = np.concatenate([np.arange(1, 200), random.integers(1, 660_000, 400)])
    assert_near(name, multiples * (np.pi / 2))
    assert_near(name, multiples * (np.pi / 4))
    # The greatest angles that have the formula.
    assert_near(name, np.nextafter([2.0**20, -(2.0**20)], 0))


def test_errors_of_erf_beside_its_borders():
    for border in (0.845, 1.25, 5.9, 6.0):
        assert_near("erf", border + random.normal(size=100) * 1e-3)


def test_cube_roots_of_all_magnitudes():
    bits = random.integers(0, 2**64, 600, dtype=np.uint64)
    x = bits.view(np.float64)
    assert_near("cbrt", x[np.isfinite(x)])
    assert_near("cbrt", random.integers(-30, 30, 60).astype(np.float64) ** 3)
    assert_near("cbrt", np.array([5e-324, -5e-324, 1e-310, np.finfo(float).tiny, 1.7e308, -8]))


@pytest.mark.parametrize("name", list(EXACT))
def test_infinities_zeros_and_nan(name):
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0])
    ends = {"sin": np.nan, "cos": np.nan, "cbrt": np.inf, "erf": 1.0}
    at_zero = 1.0 if name == "cos" else 0.0
    wanted = [np.nan, ends[name], -ends[name], at_zero, at_zero if name == "cos" else -0.0]
    result = computed(name, x)
    np.testing.assert_array_equal(result, wanted)
    np.testing.assert_array_equal(np.signbit(result[3:]), np.signbit(wanted[3:]))


def test_a_single_huge_angle_leaves_all_to_the_operation():
    x = random.normal(size=ENOUGH)
    x[77] = 1e300
    for name in ("sin", "cos"):
        np.testing.assert_allclose(computed(name, x), getattr(np, name)(x), rtol=1e-14)


def test_derivatives_and_batches():
    x = random.normal(size=(2, ENOUGH))
    np.testing.assert_allclose(hlofront.vmap(jnp.sin)(x), np.sin(x), rtol=1e-14)
    slopes = hlofront.grad(lambda x: jnp.sin(x).sum())(x)
    np.testing.assert_allclose(slopes, np.cos(x), rtol=1e-13)
    slopes = hlofront.grad(lambda x: lax.cbrt(x).sum())(x)
    np.testing.assert_allclose(slopes, 1 / (3 * np.cbrt(x) ** 2), rtol=1e-13)


def uses_formula(name, x, platforms=("cpu",)):
    function = hlofront.jit(getattr(lax, name))
    text = function.trace(x).lower(lowering_platforms=platforms).as_text()
    return "stablehlo.case" in text or "bitcast_convert" in text


@pytest.mark.parametrize("name", list(EXACT))
def test_where_they_are_used(name):
    x = np.ones(ENOUGH)
    assert uses_formula(name, x)
    assert not uses_formula(name, x, platforms=["tpu"])
    assert not uses_formula(name, x, platforms=["cuda"])
    assert not uses_formula(name, x, platforms=["cpu", "tpu"])
    assert not uses_formula(name, x[:10])
    with options["hlofront_fences"](False):
        assert not uses_formula(name, x)
