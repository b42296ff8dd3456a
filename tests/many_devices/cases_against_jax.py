"""Small calls about shardings and where values are give what they give under jax 0.10.2."""

import pytest

import hlofront as jax
import hlofront.numpy
import hlofront.sharding
from tests.many_devices import partitioning_names
from tests.many_devices.sharding_answers import PARTITIONING, ask, calls_and_answers, names_for


@pytest.fixture(scope="module")
def names():
    return names_for(jax)


@pytest.fixture(scope="module")
def more_names():
    return partitioning_names.names_for(jax)


# `jit(device=)` warns, in jax as here.
@pytest.mark.filterwarnings("ignore:backend and device arguments of jit:DeprecationWarning")
@pytest.mark.parametrize(
    ("call", "answer"), calls_and_answers(), ids=[call for call, _ in calls_and_answers()]
)
def test_as_jax(call, answer, names):
    assert ask(call, names) == answer.strip()


@pytest.mark.parametrize(
    ("call", "answer"),
    calls_and_answers(PARTITIONING),
    ids=[call for call, _ in calls_and_answers(PARTITIONING)],
)
def test_partitioning_as_jax(call, answer, more_names):
    assert ask(call, more_names) == answer.strip()
