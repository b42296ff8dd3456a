"""Cosine transforms against SciPy's."""

import numpy as np
import pytest
import scipy.fft

import hlofront as jax
import hlofront.scipy.fft as transforms
from hlofront.test_util import check_grads


@pytest.mark.parametrize("norm", [None, "ortho"])
def test_as_scipy(norm):
    x = np.random.default_rng(0).normal(size=(4, 5))
    with jax.enable_x64(True):
        for name in ("dct", "idct"):
            ours, theirs = getattr(transforms, name), getattr(scipy.fft, name)
            for options in ({}, {"axis": 0}, {"n": 3}, {"n": 8}, {"n": 1}):
                options = {"norm": norm, **options}
                np.testing.assert_allclose(ours(x, **options), theirs(x, **options), atol=1e-12)
        for name in ("dctn", "idctn"):
            ours, theirs = getattr(transforms, name), getattr(scipy.fft, name)
            for options in ({}, {"axes": (1,)}, {"s": (3, 6)}):
                options = {"norm": norm, **options}
                np.testing.assert_allclose(ours(x, **options), theirs(x, **options), atol=1e-12)
        np.testing.assert_allclose(transforms.idct(transforms.dct(x, norm=norm), norm=norm), x)


def test_derivatives():
    x = np.random.default_rng(1).normal(size=(2, 5))
    with jax.enable_x64(True):
        check_grads(lambda x: (transforms.dct(x) ** 2, transforms.idctn(x) ** 2), (x,), order=2)
