"""Permutations of exchanges of rows on CPUs: NumPy's; other platforms keep their programs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront
import hlofront.numpy as jnp
from hlofront.base.config import options
from hlofront.lax import linalg


def exchanged(pivots, size):
    orders = np.tile(np.arange(size), (*pivots.shape[:-1], 1))
    for index in np.ndindex(pivots.shape[:-1]):
        order = orders[index]
        for i, j in enumerate(pivots[index]):
            order[[i, j]] = order[[j, i]]
    return orders


@pytest.mark.cpu
@given(
    st.lists(st.integers(0, 3), max_size=2), st.integers(0, 12), st.integers(0, 3), st.integers(0)
)
@settings(max_examples=25, deadline=None)
def test_any_exchanges(batch, count, more, seed):
    size = count + more
    least = np.arange(count)
    pivots = np.random.default_rng(seed).integers(least, max(size, 1), (*batch, count))
    result = linalg.lu_pivots_to_permutation(pivots.astype(np.int32), size)
    assert result.dtype == np.int32
    np.testing.assert_array_equal(result, exchanged(pivots, size))


@pytest.mark.cpu
def test_batches_and_systems_of_equations():
    random = np.random.default_rng(0)
    matrices = random.normal(size=(3, 20, 20)).astype(np.float32)
    wanted = random.normal(size=(3, 20, 1)).astype(np.float32)
    for solve in (jnp.linalg.solve, hlofront.vmap(jnp.linalg.solve)):
        np.testing.assert_allclose(solve(matrices, matrices @ wanted), wanted, atol=2e-3)


@pytest.mark.cpu
def test_where_it_is_used():
    pivots = np.zeros((2, 3), np.int32)
    traced = hlofront.jit(lambda x: linalg.lu_pivots_to_permutation(x, 4)).trace(pivots)
    assert "scatter" in traced.lower().as_text()
    assert "scatter" not in traced.lower(lowering_platforms=("tpu",)).as_text()
    with options["hlofront_cpu_formulas"](False):
        assert "scatter" not in traced.lower().as_text()
