"""Rotations against SciPy's, and their derivatives."""

import numpy as np
import pytest
import scipy.spatial.transform

import hlofront as jax
from hlofront.scipy.spatial.transform import Rotation, Slerp
from hlofront.test_util import check_grads

theirs = scipy.spatial.transform.Rotation
VECTORS = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)


def test_forms():
    found, expected = Rotation.from_rotvec(VECTORS), theirs.from_rotvec(VECTORS)
    for name in ("as_matrix", "as_rotvec", "as_mrp", "magnitude"):
        np.testing.assert_allclose(getattr(found, name)(), getattr(expected, name)(), atol=1e-5)
    back = Rotation.from_matrix(found.as_matrix()) * found.inv()
    np.testing.assert_allclose(back.magnitude(), 0, atol=2e-3)
    turned = found.apply(VECTORS)
    np.testing.assert_allclose(turned, expected.apply(VECTORS), atol=1e-5)


@pytest.mark.parametrize("seq", ["xyz", "XZX", "zyx"])
def test_angles(seq):
    found = Rotation.from_euler(seq, VECTORS).as_euler(seq)
    expected = theirs.from_euler(seq, VECTORS).as_euler(seq)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_between():
    two = Rotation.from_rotvec(VECTORS[:2])
    found = Slerp.init(np.float32([0, 2]), two)(np.float32([0, 0.5, 2]))
    expected = scipy.spatial.transform.Slerp([0, 2], theirs.from_rotvec(VECTORS[:2]))([0, 0.5, 2])
    np.testing.assert_allclose(found.as_matrix(), expected.as_matrix(), atol=1e-5)


def test_derivatives():
    def f(v):
        return Rotation.from_rotvec(v).apply(VECTORS[0])

    check_grads(jax.jit(f), (VECTORS[1],), order=1, rtol=2e-2, atol=2e-2)
    assert np.isfinite(jax.grad(lambda v: f(v).sum())(np.zeros(3, np.float32))).all()


def test_random_ones_have_length_one():
    found = Rotation.random(jax.random.key(0), 7)
    np.testing.assert_allclose(np.linalg.norm(found.quat, axis=1), 1, rtol=1e-5)
