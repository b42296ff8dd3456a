"""Fixtures of the tests of lowering rules."""

import pytest

import hlofront
from hlofront.lowering.min_sizes import MIN_SIZES
from tests.support.large_arrays import ENOUGH


@pytest.fixture
def wide_numbers():
    with hlofront.enable_x64(True):
        yield


@pytest.fixture(autouse=True)
def enough_numbers_are_replaced(monkeypatch):
    """Replacements are for arrays of ENOUGH elements: those for which they pay are slow to test."""
    for sizes in MIN_SIZES.values():
        for form, size in sizes.items():
            monkeypatch.setitem(sizes, form, min(size, ENOUGH))
