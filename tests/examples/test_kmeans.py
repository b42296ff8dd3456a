"""The step of examples/kmeans.py is Lloyd's, by NumPy's account of it."""

import importlib.util

import numpy as np
import pytest

from tests.conventions.source import ROOT


@pytest.fixture(scope="module")
def kmeans():
    spec = importlib.util.spec_from_file_location("kmeans", ROOT / "examples" / "kmeans.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_step_is_lloyds(kmeans):
    points, centers = kmeans.example_args()
    nearest, moved, distance = kmeans.step(points, centers)
    gaps = ((points[:, None] - centers) ** 2).sum(-1)
    np.testing.assert_array_equal(nearest, gaps.argmin(1))
    np.testing.assert_allclose(float(distance), gaps.min(1).sum(), rtol=1e-4)
    wanted = np.stack([points[gaps.argmin(1) == c].mean(0) for c in range(len(centers))])
    np.testing.assert_allclose(moved, wanted, rtol=1e-4, atol=1e-5)


def test_a_center_without_points_stays(kmeans):
    points = np.ones((3, 2), np.float32)
    centers = np.array([[1, 1], [9, 9]], np.float32)
    nearest, moved, _ = kmeans.step(points, centers)
    assert np.asarray(nearest).tolist() == [0, 0, 0]
    np.testing.assert_array_equal(moved, centers)
