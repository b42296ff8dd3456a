"""Programs over meshes with explicit axes give the jaxprs, shardings and errors of jax 0.10.2."""

import pytest

import hlofront as jax
import hlofront.numpy
import hlofront.sharding
from tests.many_devices.explicit_answers import answers, ask, names_for


@pytest.fixture(scope="module")
def names():
    return names_for(jax)


@pytest.mark.parametrize(("call", "context"), answers(), ids=" ".join)
def test_as_jax(call, context, names):
    assert ask(call, context, names) == answers()[call, context].strip()
