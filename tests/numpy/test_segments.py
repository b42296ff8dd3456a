"""Reductions of segments, and trees of arrays as vectors."""

import numpy as np
import pytest

import hlofront as jax
from hlofront import numpy as jnp
from hlofront import ops
from hlofront.flatten_util import ravel_pytree

IDS = np.array([0, 2, 2, -1, 7])


def test_segments():
    x = np.float32([1, 2, 3, 4, 5])
    np.testing.assert_array_equal(ops.segment_sum(x, IDS, 4), [1, 0, 5, 0])
    np.testing.assert_array_equal(ops.segment_prod(x, IDS, 4), [1, 1, 6, 1])
    np.testing.assert_array_equal(ops.segment_max(x, IDS, 4), [1, -np.inf, 3, -np.inf])
    np.testing.assert_array_equal(ops.segment_min(x, IDS, 4), [1, np.inf, 2, np.inf])
    np.testing.assert_array_equal(ops.segment_sum(x[:3], IDS[:3]), [1, 0, 5])
    gradient = jax.grad(lambda x: (ops.segment_sum(x, IDS, 4) ** 2).sum())(x)
    np.testing.assert_array_equal(gradient, [2, 10, 10, 0, 0])
    mapped = jax.vmap(lambda x: ops.segment_max(x, IDS, 3), 1, 1)(np.stack([x, -x], 1))
    np.testing.assert_array_equal(mapped, [[1, -1], [-np.inf, -np.inf], [3, -2]])


def test_segments_say_what_they_want():
    with pytest.raises(jax.errors.ConcretizationTypeError, match="num_segments"):
        jax.jit(ops.segment_sum)(np.ones(3), np.arange(3))
    with pytest.raises(ValueError, match="non-negative"):
        ops.segment_sum(np.ones(3), np.arange(3), -1)


def test_trees_as_vectors():
    tree = {"a": np.float32([[1, 2]]), "b": (np.int32(3), None), "c": 4.0}
    flat, unravel = ravel_pytree(tree)
    np.testing.assert_array_equal(flat, [1, 2, 3, 4])
    back = unravel(flat * 2)
    assert jax.tree.structure(back) == jax.tree.structure(tree)
    assert [leaf.dtype for leaf in jax.tree.leaves(back)] == [jnp.float32, jnp.int32, jnp.float32]
    np.testing.assert_array_equal(jax.jit(lambda x: unravel(x)["a"])(flat), [[1, 2]])
    with pytest.raises(ValueError, match="4 elements"):
        unravel(np.float32([1]))
    with pytest.raises(TypeError, match="dtype"):
        unravel(np.int32([1, 2, 3, 4]))
