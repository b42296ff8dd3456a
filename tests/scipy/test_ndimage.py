"""Values between elements against SciPy's."""

import numpy as np
import pytest
import scipy.ndimage

import hlofront as jax
from hlofront.scipy import ndimage
from hlofront.test_util import check_grads

X = np.random.default_rng(0).normal(size=(5, 6)).astype(np.float32)
PLACES = np.random.default_rng(1).uniform(-7, 12, (2, 40)).astype(np.float32)


@pytest.mark.parametrize("mode", ["constant", "nearest", "mirror", "reflect"])
def test_like_scipy(mode):
    inside = PLACES if mode != "constant" else np.abs(PLACES) % 4
    for order in (0, 1):
        expected = scipy.ndimage.map_coordinates(X, inside, order=order, mode=mode)
        found = ndimage.map_coordinates(X, inside, order, mode)
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_derivatives():
    places = np.array([[0.3, 1.7], [2.2, 3.6]], np.float32)
    f = jax.jit(lambda x, p: ndimage.map_coordinates(x, p, 1))
    check_grads(f, (X, places), order=1, rtol=2e-2, atol=2e-2)
