"""Fixtures of the tests of lowering rules."""

import pytest

import hlofront


@pytest.fixture
def wide_numbers():
    with hlofront.enable_x64(True):
        yield
