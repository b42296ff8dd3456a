"""Programs over eight devices print what they print under jax 0.10.2."""

import pytest

import hlofront as jax
from tests.many_devices.printed_answers import answers, printed, programs


@pytest.mark.parametrize("title", programs())
def test_as_jax(title):
    assert printed(jax, title, programs()[title]) == answers()[title]
