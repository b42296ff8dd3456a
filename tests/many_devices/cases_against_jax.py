"""Small calls about shardings and where values are give what they give under jax 0.10.2."""

import pytest

import hlofront as jax
import hlofront.numpy
import hlofront.sharding
from tests.many_devices.sharding_answers import ask, calls_and_answers, names_for


@pytest.fixture(scope="module")
def names():
    return names_for(jax)


@pytest.mark.parametrize(
    ("call", "answer"), calls_and_answers(), ids=[call for call, _ in calls_and_answers()]
)
def test_as_jax(call, answer, names):
    assert ask(call, names) == answer.strip()
