"""Gathers of one element of each row for TPUs; the rule runs on CPUs here, for its values."""

import ml_dtypes
import numpy as np
import pytest

import hlofront
import hlofront.numpy as jnp
from hlofront.core.rules import lower
from hlofront.lowering.tpu import gather as gather_tpu
from hlofront.primitives.arrays.gathering import gather_p


@pytest.fixture
def on_cpus(monkeypatch):
    """The rule for TPUs is that for CPUs."""
    lower.load(gather_p)
    monkeypatch.setitem(lower.matches, (gather_p, "cpu"), lower.matches[gather_p, "tpu"])
    hlofront.clear_caches()
    yield
    hlofront.clear_caches()


def gathers(function, *operands, platform="tpu"):
    """Whether the program of a function has a gather."""
    lowered = hlofront.jit(function).trace(*operands).lower(lowering_platforms=(platform,))
    return "stablehlo.gather" in lowered.as_text()


def chosen(x, indices, axis=-1, mode=None):
    return jnp.take_along_axis(x, indices, axis, mode=mode)


def test_which_gathers_are_maxima():
    x, indices = np.ones((4, 3, 9), np.float32), np.zeros((4, 3, 1), np.int32)
    assert not gathers(chosen, x, indices)
    assert not gathers(chosen, x.astype(ml_dtypes.bfloat16), indices)
    assert not gathers(lambda x, i: chosen(x, i, 1), x, np.zeros((4, 1, 9), np.int32))
    assert not gathers(hlofront.vmap(lambda x, i: chosen(x, i)[..., 0]), x, indices)
    for platform in ("cpu", "cuda"):
        assert gathers(chosen, x, indices, platform=platform)
    assert gathers(chosen, x, np.zeros((4, 3, 2), np.int32))
    assert gathers(chosen, x.astype(np.int32), indices)
    assert gathers(chosen, np.ones((2, gather_tpu._LONGEST + 1), np.float32), indices[:2, 0])
    assert gathers(lambda x, i: x[i], x, indices[..., 0])


@pytest.mark.usefixtures("on_cpus")
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("mode", ["fill", "clip", "promise_in_bounds"])
def test_elements_of_rows(dtype, axis, mode):
    random = np.random.default_rng(0)
    x = random.normal(size=(4, 3, 5))
    special = random.choice([np.nan, np.inf, -np.inf, -0.0, 0.0], x.shape)
    x = np.where(random.random(x.shape) < 0.5, special, x).astype(dtype)
    shape = tuple(1 if i == axis else size for i, size in enumerate(x.shape))
    least = -x.shape[axis] if mode == "fill" else 0
    indices = random.integers(least, x.shape[axis], shape).astype(np.int32)
    function = hlofront.jit(lambda x, i: chosen(x, i, axis, mode))
    assert not gathers(function, x, indices, platform="cpu")
    ours, numpys = np.asarray(function(x, indices)), np.take_along_axis(x, indices, axis)
    ours, numpys = ours.astype(np.float32), numpys.astype(np.float32)
    np.testing.assert_array_equal(ours, numpys)
    np.testing.assert_array_equal(np.signbit(ours[ours == 0]), np.signbit(numpys[numpys == 0]))


@pytest.mark.usefixtures("on_cpus")
def test_indices_that_are_out_of_bounds():
    x, indices = np.arange(8, dtype=np.float32).reshape(2, 4), np.array([[4], [-5]], np.int32)
    assert np.isnan(chosen(x, indices)).all()
    np.testing.assert_array_equal(chosen(x, indices, mode="clip"), [[3], [4]])
    filled = jnp.take_along_axis(x, indices, -1, mode="fill", fill_value=7)
    np.testing.assert_array_equal(filled, [[7], [7]])


@pytest.mark.usefixtures("on_cpus")
def test_the_gradient_of_a_cross_entropy():
    random = np.random.default_rng(0)
    logits, labels = random.normal(size=(5, 7)), np.array([0, 6, 3, 3, -1], np.int32)

    def loss(logits):
        picked = jnp.take_along_axis(hlofront.nn.log_softmax(logits), labels[:, None], -1)
        return -picked.mean()

    exponentials = np.exp(logits)
    expected = exponentials / exponentials.sum(1, keepdims=True)
    expected[np.arange(5), labels] -= 1
    np.testing.assert_allclose(
        hlofront.grad(loss)(logits.astype(np.float32)), expected / 5, rtol=1e-5, atol=1e-6
    )
