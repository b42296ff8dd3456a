"""Sparse arrays by hand: what they store, what products are made of, what sparsify does."""

import numpy as np
import pytest

import hlofront
import hlofront.numpy as jnp
from hlofront.experimental import sparse
from hlofront.experimental.sparse import linalg


def matrix():
    return sparse.BCOO.fromdense(jnp.array([[0.0, 1, 0], [2, 0, 3]]))


def test_a_sparse_array_stores_elements_and_where_they_are():
    m = matrix()
    assert m.data.tolist() == [1, 2, 3]
    assert m.indices.tolist() == [[0, 1], [1, 0], [1, 2]]
    assert repr(m) == "BCOO(float32[2, 3], nse=3)"


def test_padding_is_out_of_bounds_and_counts_as_nothing():
    m = sparse.BCOO.fromdense(jnp.array([0.0, 5, 0]), nse=2)
    assert m.indices.tolist() == [[1], [3]]
    assert m.todense().tolist() == [0, 5, 0]


def test_positions_that_repeat_are_summed():
    m = sparse.BCOO((jnp.array([1.0, 2]), jnp.array([[1], [1]])), shape=(3,))
    assert m.todense().tolist() == [0, 3, 0]
    assert m.sum_duplicates().data.tolist() == [3]


def test_the_product_of_a_sparse_array_is_one_equation():
    m = matrix()
    text = str(hlofront.make_jaxpr(lambda m, x: m @ x)(m, jnp.ones(3)))
    assert text.count(" = ") - text.count("[\n") <= 5
    assert "bcoo_dot_general" in text and "bcoo_todense" not in text


def test_the_gradient_by_a_sparse_array_is_computed_at_stored_positions_alone():
    loss = lambda m, x: ((m @ x) ** 2).sum()
    text = str(hlofront.make_jaxpr(sparse.grad(loss))(matrix(), jnp.ones(3)))
    assert "bcoo_dot_general_sampled" in text and "f32[2,3]" not in text


def test_sparsify_keeps_positions_of_functions_that_are_zero_at_zero():
    m = sparse.sparsify(lambda x: jnp.sin(x) + x)(matrix())
    assert m.nse == 3
    with pytest.raises(NotImplementedError, match="cos"):
        sparse.sparsify(jnp.cos)(matrix())


def test_vmap_maps_over_batch_axes():
    batch = sparse.BCOO.fromdense(jnp.stack([jnp.eye(2), 2 * jnp.eye(2)]), n_batch=1)
    assert hlofront.vmap(lambda m: m @ jnp.ones(2))(batch).tolist() == [[1, 1], [2, 2]]


def test_spsolve_calls_cusolver_on_gpus_of_nvidia():
    operands = jnp.ones(2), jnp.arange(2), jnp.arange(3), jnp.ones(2)
    traced = hlofront.jit(linalg.spsolve).trace(*operands)
    assert "@cusolver_csrlsvqr_ffi" in traced.lower(lowering_platforms=("cuda",)).as_text()


def test_the_greatest_eigenvalues_of_a_sparse_matrix():
    m = sparse.BCOO.fromdense(jnp.diag(jnp.arange(1.0, 21.0)))
    start = hlofront.random.normal(hlofront.random.key(0), (20, 2))
    values, _, _ = linalg.lobpcg_standard(lambda x: m @ x, start)
    assert jnp.abs(values - jnp.array([20.0, 19.0])).max() < 1e-3


@pytest.mark.parametrize("n_batch", [0, 1])
@pytest.mark.parametrize("n_dense", [0, 1])
def test_slices_of_bcoo_arrays_are_those_of_dense_ones(n_batch, n_dense):
    dense = np.arange(1.0, 61.0, dtype=np.float32).reshape(3, 4, 5)
    mat = sparse.BCOO.fromdense(dense, n_batch=n_batch, n_dense=n_dense)
    for first, second, third in (
        (np.s_[:], np.s_[1:3], np.s_[:]),
        (np.s_[0:2], np.s_[1:], np.s_[2:4]),
        (np.s_[1:], np.s_[::2], np.s_[::3]),
        (np.s_[2:2], np.s_[3:], np.s_[:]),
    ):
        parts = (first, second, third)
        spans = [part.indices(size) for part, size in zip(parts, dense.shape, strict=True)]
        part = sparse.bcoo_slice(
            mat,
            start_indices=[start for start, _, _ in spans],
            limit_indices=[limit for _, limit, _ in spans],
            strides=[stride for _, _, stride in spans],
        )
        np.testing.assert_array_equal(part.todense(), dense[parts])
