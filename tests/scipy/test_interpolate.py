"""Values between the points of grids, against SciPy's."""

import numpy as np
import scipy.interpolate

import hlofront as jax
from hlofront.scipy.cluster.vq import vq
from hlofront.scipy.integrate import trapezoid
from hlofront.scipy.interpolate import RegularGridInterpolator

POINTS = (np.array([0.0, 1, 3]), np.array([0.0, 2, 4, 5]))
VALUES = np.random.default_rng(0).normal(size=(3, 4, 2))
AT = np.random.default_rng(1).uniform(-1, 6, (20, 2)).astype(np.float32)


def test_like_scipy():
    for method in ("linear", "nearest"):
        for fill in (np.nan, None):
            options = {"method": method, "bounds_error": False, "fill_value": fill}
            expected = scipy.interpolate.RegularGridInterpolator(POINTS, VALUES, **options)(AT)
            found = RegularGridInterpolator(POINTS, VALUES, **options)(AT)
            np.testing.assert_allclose(found, expected, atol=1e-4)


def test_is_a_tree():
    f = RegularGridInterpolator(POINTS, VALUES)
    found = jax.jit(lambda f, at: f(at))(f, AT)
    np.testing.assert_allclose(found, f(AT), atol=1e-6)


def test_codes_and_integrals():
    codes, distances = vq(AT, AT[:3])
    expected = np.linalg.norm(AT[:, None] - AT[None, :3], axis=-1)
    assert codes.tolist() == expected.argmin(1).tolist()
    np.testing.assert_allclose(distances, expected.min(1), atol=1e-5)
    assert trapezoid(np.float32([1, 2, 4]), dx=0.5) == 2.25
