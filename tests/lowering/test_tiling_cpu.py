"""A few copies of a large array are concatenated on CPUs, and have NumPy's elements."""

import numpy as np
import pytest

import hlofront
import hlofront.numpy as jnp
from hlofront.base.config import options

TAKEN = [((5000,), (3,)), ((5000,), (8,)), ((100, 50), (2, 1)), ((1, 5000), (1, 4))]
LEFT = [((5000,), (9,)), ((4000,), (3,)), ((100, 50), (1, 2)), ((100, 50), (2, 2)), ((5000,), (0,))]


def tiled(reps):
    return hlofront.jit(lambda x: jnp.tile(x, reps))


def is_concatenated(shape, reps, platform="cpu"):
    x = hlofront.ShapeDtypeStruct(shape, np.float32)
    traced = tiled(reps).trace(x)
    return "stablehlo.concatenate" in traced.lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.parametrize("dtype", ["float32", "bool", "int4", "bfloat16", "complex64"])
@pytest.mark.parametrize(("shape", "reps"), [*TAKEN, *LEFT])
def test_numpy_elements(shape, reps, dtype):
    x = jnp.asarray(np.arange(np.prod(shape)).reshape(shape) % 7).astype(dtype)
    result = tiled(reps)(x)
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(result), np.tile(np.asarray(x), reps))


def test_derivatives_and_batches():
    x = jnp.arange(5000.0)
    weights = jnp.arange(15000.0)
    gradient = hlofront.grad(lambda x: (tiled((3,))(x) * weights).sum())(x)
    np.testing.assert_allclose(gradient, weights.reshape(3, -1).sum(0))
    rows = jnp.stack([x, -x])
    np.testing.assert_array_equal(hlofront.vmap(tiled((3,)))(rows), np.tile(rows, (1, 3)))


@pytest.mark.parametrize(("shape", "reps"), TAKEN)
def test_few_copies_are_concatenated_on_cpus_alone(shape, reps):
    assert is_concatenated(shape, reps)
    assert not is_concatenated(shape, reps, "tpu") and not is_concatenated(shape, reps, "cuda")
    with options["hlofront_cpu_formulas"](False):
        assert not is_concatenated(shape, reps)


@pytest.mark.parametrize(("shape", "reps"), LEFT)
def test_other_copies_are_broadcasts(shape, reps):
    assert not is_concatenated(shape, reps)
