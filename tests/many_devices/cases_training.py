"""Training steps over eight devices are those of one, to rounding."""

import numpy as np
import pytest

import hlofront as jax
from tests.many_devices import training_steps


@pytest.fixture(scope="module")
def on_one_device():
    return training_steps.on_one_device()


def assert_same_step(found, wanted):
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("way", training_steps.WAYS, ids=lambda way: way.__name__)
def test_a_step_over_devices_is_that_of_one(way, on_one_device):
    assert_same_step(way(training_steps.Here()), on_one_device)


@pytest.mark.parametrize("way", training_steps.EXPERT_WAYS, ids=lambda way: way.__name__)
def test_a_step_of_experts_is_that_of_one_device(way):
    arguments, many = way(training_steps.Here())
    assert_same_step(many, jax.jit(training_steps.step_of_experts)(*arguments))
