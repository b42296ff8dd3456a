"""Inverse functions of many numbers of complex64 on CPUs: errors, ends, cuts, and uses."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront
from hlofront import lax
from tests.support.complex_numbers import (
    assert_for_many_on_cpus,
    assert_parts_near,
    assert_same_parts,
    ends,
    points,
)
from tests.support.many_numbers import ENOUGH, computed

NAMES = ["asin", "acos", "atan", "asinh", "acosh", "atanh"]
NUMPY = {name: getattr(np, name.replace("a", "arc", 1)) for name in NAMES}
# Subnormal results are zeros or have their neighbors' values.
UNITS = 1.1

random = np.random.default_rng(0)


def assert_near(name, x):
    x = x.astype("complex64")
    assert_parts_near(computed(name, x), getattr(mpmath, name), x, UNITS)


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1, 25, 1e20])
@pytest.mark.parametrize("name", NAMES)
def test_errors_are_few_units(name, scale):
    assert_near(name, points(random, 200, scale, "complex64"))


@pytest.mark.parametrize("name", NAMES)
def test_errors_of_any_magnitude(name):
    sizes = 2.0 ** random.uniform(-100, 100, (2, 200))
    assert_near(name, sizes[0] + 1j * sizes[1])
    assert_near(name, -sizes[0] - 1j * sizes[0] * 1e-6)


@pytest.mark.parametrize("point", [1, -1, 1j, -1j])
@pytest.mark.parametrize("name", NAMES)
def test_errors_beside_branch_points(name, point):
    distances = points(random, 200, 1, "complex128") * 10.0 ** random.uniform(-8, -1, 200)
    assert_near(name, point + distances)
    # Beside the axes and the unit circle one of the parts is a small difference.
    assert_near(name, point * (random.normal(size=200) * 2 + 1j * distances.real * 1e-5))
    assert_near(name, point * np.exp(1j * random.uniform(-1, 1, 200)))


@pytest.mark.parametrize("name", NAMES)
def test_ends_of_the_range(name):
    x = ends("complex64")
    with np.errstate(all="ignore"):
        wanted = NUMPY[name](x)
    result = computed(name, x)
    # C knows some parts of numbers that have a NaN: here they may be NaN, or a limit.
    is_known = ~np.isnan(x)
    assert_same_parts(result[is_known], wanted[is_known])
    assert np.isnan(result[~is_known & ~np.isinf(x)]).all()


@pytest.mark.parametrize("name", NAMES)
def test_both_sides_of_the_cuts(name):
    x = np.array([complex(a, b) for a in (2, -2, 0.5, -0.5) for b in (0.0, -0.0)], "complex64")
    x = np.concatenate([x, np.stack([x.imag, x.real], axis=1).view("complex64")[:, 0]])
    assert_same_parts(computed(name, x), NUMPY[name](x))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.complex_numbers(max_magnitude=1e30, min_magnitude=1e-30), min_size=1))
def test_of_any_numbers(numbers):
    x = np.array(numbers, "complex64")
    for name in NAMES:
        with np.errstate(divide="ignore"):
            wanted = NUMPY[name](x.astype(complex))
        np.testing.assert_allclose(computed(name, x), wanted, rtol=1e-6, atol=1e-37)


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_and_batches(name):
    x = points(random, 2 * ENOUGH, 1, "complex64").reshape(2, ENOUGH)
    function, wanted = getattr(lax, name), NUMPY[name](x)
    np.testing.assert_allclose(hlofront.vmap(function)(x), wanted, rtol=1e-5)
    found, slope = hlofront.jvp(function, (x,), (np.ones_like(x),))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    step = 1e-3
    wide = x.astype(complex)
    difference = (NUMPY[name](wide + step * 1j) - NUMPY[name](wide - step * 1j)) / (2j * step)
    smooth = abs(difference) < 5
    np.testing.assert_allclose(slope[smooth], difference[smooth], rtol=1e-2)


@pytest.mark.parametrize("name", NAMES)
def test_where_they_are_used(name):
    assert_for_many_on_cpus(name, "complex64")
