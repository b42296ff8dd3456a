"""A few copies of a large array, and parts of them, are concatenated and have NumPy's elements."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


def resized(shape):
    return hlofront.jit(lambda x: jnp.resize(x, shape))


def slices(function, x, platform="cpu"):
    """Return how many slices the program of a function is, and how many of them of copies."""
    lowered = hlofront.jit(lambda x: function(x)).trace(x).lower(lowering_platforms=(platform,))
    lines = [line for line in lowered.as_text().splitlines() if "stablehlo.slice" in line]
    return len(lines), sum("slice %arg0" not in line for line in lines)


RESIZED = [(5000, 17000), (5000, 5001), (5000, 39999), (5000, 10000), (10, 23)]


@pytest.mark.parametrize("dtype", ["float32", "bool", "int4", "complex64"])
@pytest.mark.parametrize(("size", "new"), RESIZED)
def test_resized_arrays_have_numpy_elements(size, new, dtype):
    x = jnp.asarray(np.arange(size) % 7).astype(dtype)
    result = resized((new,))(x)
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(result), np.resize(np.asarray(x), (new,)))


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from([((5000,), (3,)), ((1, 5000), (1, 2)), ((100, 50), (2, 1))]),
    st.lists(st.integers(0, 15000), min_size=2, max_size=2),
    st.integers(0, 2),
)
def test_any_part_of_copies(copies, bounds, stride):
    (shape, reps), (start, limit) = copies, sorted(bounds)
    x = np.arange(5000, dtype=np.float32).reshape(shape)
    where = (slice(start, limit, stride or None),)
    if shape[0] == 1:
        where = (slice(None), *where)
    if shape[0] == 100:
        where = (slice(start % 200, None), slice(0, 50 - limit % 10))
    part = hlofront.jit(lambda x: jnp.tile(x, reps)[where])(x)
    np.testing.assert_array_equal(part, np.tile(x, reps)[where])


def test_parts_of_copies_are_joined_on_cpus_alone():
    x = jnp.arange(5000.0)
    assert slices(resized((17000,)), x) == (1, 0)
    assert slices(lambda x: jnp.tile(x, 3)[100:9000], x) == (2, 0)
    assert slices(lambda x: jnp.tile(x, 3)[5100:9600], x) == (1, 0)
    assert slices(lambda x: jnp.tile(x, 3)[100:9000:2], x) == (1, 1)
    assert slices(lambda x: jnp.concatenate([x, 2 * x])[100:9000], x) == (1, 1)
    assert slices(resized((17000,)), x, "tpu") == (1, 1)
    with options["hlofront_cpu_formulas"](False):
        assert slices(resized((17000,)), x) == (1, 1)


def test_resized_keys_derivatives_and_batches():
    keys = hlofront.random.split(hlofront.random.key(0), 5000)
    part = hlofront.jit(lambda keys: jnp.tile(keys, 3)[100:9000])(keys)
    wanted = np.tile(hlofront.random.key_data(keys), (3, 1))[100:9000]
    np.testing.assert_array_equal(hlofront.random.key_data(part), wanted)
    x = jnp.arange(5000.0)
    gradient = hlofront.grad(lambda x: (resized((7000,))(x) * jnp.arange(7000.0)).sum())(x)
    weights = np.pad(np.arange(7000.0), (0, 3000)).reshape(2, 5000).sum(0)
    np.testing.assert_allclose(gradient, weights)
    rows = jnp.stack([x, -x])
    batch = hlofront.vmap(resized((7000,)))(rows)
    np.testing.assert_array_equal(batch, np.tile(rows, (1, 2))[:, :7000])
