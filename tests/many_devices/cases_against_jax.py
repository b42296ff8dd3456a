"""Small calls about shardings and where values are give what they give under jax 0.10.2."""

import pytest

import hlofront as jax
import hlofront.numpy
import hlofront.sharding
from tests.many_devices.sharding_answers import ask, kept, names_for


@pytest.fixture(scope="module")
def names():
    return names_for(jax)


@pytest.mark.parametrize(("call", "answer"), kept(), ids=[call for call, _ in kept()])
def test_as_jax(call, answer, names):
    assert ask(call, names) == answer.strip()
