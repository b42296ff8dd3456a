"""The comparer of the tests refuses what differs: each of its rules is seen to fail."""

import ml_dtypes
import numpy as np
import pytest

from tests.support import closeness
from tests.support.units import Units

ONE = np.float32([1.0, 2.0])
INFINITE = np.complex64([complex(np.inf, 1.0)])


@pytest.mark.parametrize(
    ("found", "wanted", "tolerance"),
    [
        (ONE, ONE.astype(np.float64), None),
        (ONE, ONE[:1], None),
        (ONE, ONE * np.float32(1.0001), None),
        (ONE, ONE * np.float32(1.01), 1e-3),
        (ONE, np.nextafter(np.nextafter(ONE, 3), 3), Units(float32=1)),
        (np.int32([1]), np.int32([2]), 10.0),
        (np.array(["a"]), np.array(["b"]), 10.0),
        (INFINITE, INFINITE + np.complex64(1j), None),
        (INFINITE, -INFINITE, None),
        (np.array([1.0], ml_dtypes.bfloat16), np.array([1.1], ml_dtypes.bfloat16), None),
    ],
)
def test_arrays_that_differ_are_refused(found, wanted, tolerance):
    closeness.assert_close(found, found, tolerance)
    closeness.assert_close(wanted, wanted, tolerance)
    with pytest.raises(AssertionError):
        closeness.assert_close(found, wanted, tolerance)


def test_so_many_units_are_allowed_and_no_more():
    near = ONE + np.float32(4e-7)
    closeness.assert_within(near, ONE, 8)
    with pytest.raises(AssertionError):
        closeness.assert_within(near, ONE, 1)


def test_signs_of_zeros_are_compared():
    closeness.assert_zeros_alike(np.float32([0.0, -1.0]), np.float32([0.0, 1.0]))
    with pytest.raises(AssertionError):
        closeness.assert_zeros_alike(np.float32([0.0]), np.float32([-0.0]))


def test_trees_are_compared_by_their_narrower_dtype():
    closeness.assert_trees_close([ONE], [ONE.astype(np.float64) + 1e-6])
    with pytest.raises(AssertionError):
        closeness.assert_trees_close([ONE.astype(np.float64)], [ONE.astype(np.float64) + 1e-6])


@pytest.mark.parametrize(
    "wanted",
    [
        ("tuple", [("array", "f32", ONE), ("python", "int", 3)]),
        ("list", [("array", "f64", ONE), ("python", "int", 3)]),
        ("list", [("array", "f32", ONE + 1), ("python", "int", 3)]),
        ("list", [("array", "f32", ONE), ("python", "int", 4)]),
    ],
)
def test_results_that_differ_are_refused(wanted):
    found = ("list", [("array", "f32", ONE), ("python", "int", 3)])
    close = lambda mine, theirs, where: closeness.assert_close(mine, theirs, where=where)
    closeness.assert_same_results(found, found, close)
    with pytest.raises(AssertionError):
        closeness.assert_same_results(found, wanted, close)
