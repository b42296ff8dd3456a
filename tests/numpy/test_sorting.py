"""Sorting and searching, as in NumPy."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp

A = np.array([[3, 1, 2, 1], [0, np.nan, -1, 5], [2, 2, 0, -np.inf]], np.float32)
V = np.array([3, 1, 2, 1], np.int32)

CASES = {
    "sort": lambda m, a, v: m.sort(a),
    "sort first axis": lambda m, a, v: m.sort(a, axis=0),
    "sort flat": lambda m, a, v: m.sort(a, axis=None),
    "argsort": lambda m, a, v: m.argsort(a, kind="stable" if m is np else None),
    "argsort flat": lambda m, a, v: m.argsort(v, axis=None, kind="stable" if m is np else None),
    "lexsort": lambda m, a, v: m.lexsort((v, v // 2)),
    "sort_complex": lambda m, a, v: m.sort_complex(v.astype("complex64")),
    "method sort": lambda m, a, v: m.sort(v) if m is np else v.sort(),
    "method argsort": lambda m, a, v: v.argsort(kind="stable") if m is np else v.argsort(),
}


@pytest.mark.parametrize("case", CASES)
def test_as_numpy(case):
    expected = CASES[case](np, A, V)
    found = CASES[case](jnp, jnp.asarray(A), jnp.asarray(V))
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == (np.int32 if expected.dtype == np.int64 else expected.dtype)


def test_descending_keeps_the_order_of_equals():
    np.testing.assert_array_equal(jnp.argsort(V, descending=True), [0, 2, 1, 3])
    np.testing.assert_array_equal(jnp.sort(A[1], descending=True), [np.nan, 5, 0, -1])
    assert jnp.argsort(V, dtype="int8").dtype == np.int8


@pytest.mark.parametrize("kth", [0, 1, -1])
def test_partitions(kth):
    x = np.array([5, 1, 4, 1, 3], np.int32)
    ordered, found = np.sort(x), np.asarray(jnp.partition(x, kth))
    kth %= 5
    assert found[kth] == ordered[kth]
    assert (found[:kth] <= found[kth]).all() and (found[kth:] >= found[kth]).all()
    indices = np.asarray(jnp.argpartition(x, kth))
    assert x[indices][kth] == ordered[kth] and sorted(indices) == list(range(5))


@pytest.mark.parametrize("method", ["scan", "scan_unrolled", "compare_all", "sort"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(method, side):
    a = np.array([-1, 0, 0, 2, 5, np.nan, np.nan], np.float32)
    v = np.array([[0, 7, -9], [np.nan, 2, -0.0]], np.float32)
    found = jnp.searchsorted(a, v, side=side, method=method)
    np.testing.assert_array_equal(found, np.searchsorted(a, v, side=side))
    assert found.dtype == np.int32


@pytest.mark.parametrize("method", ["scan", "scan_unrolled"])
def test_searchsorted_halves_to_one_place_whatever_the_size(method):
    for size in (1, 2, 3, 4, 7, 8):
        a = np.arange(size, dtype=np.int32)
        v = np.arange(-1, size + 1, dtype=np.int32)
        np.testing.assert_array_equal(jnp.searchsorted(a, v, method=method), np.searchsorted(a, v))


def test_a_longer_array_is_searched_by_no_more_equations():
    def equations(size):
        a = np.zeros(size, np.float32)
        return len(str(jax.make_jaxpr(jnp.searchsorted)(a, a)).splitlines())

    assert equations(3000) == equations(3)


def test_searchsorted_of_other_arrays():
    assert jnp.searchsorted(V, 2, sorter=jnp.argsort(V)) == 2
    assert jnp.searchsorted(jnp.zeros(0), 1.0) == 0
    assert jnp.searchsorted(jnp.array([1, 3]), 2.5) == 1
    many = np.arange(0, 40, 3)
    values = np.arange(-2, 45)
    found = jax.jit(jnp.searchsorted)(many, values)
    np.testing.assert_array_equal(found, np.searchsorted(many, values))


@pytest.mark.parametrize(
    "wrong, error, text",
    [
        (lambda: jnp.sort(A, axis=4), ValueError, "out of bounds"),
        (lambda: jnp.sort([1]), TypeError, "requires ndarray or scalar"),
        (lambda: jnp.sort(1.0), ValueError, "out of bounds"),
        (lambda: jnp.sort(A, kind="quicksort"), TypeError, "kind"),
        (lambda: jnp.lexsort(()), TypeError, "len > 0"),
        (lambda: jnp.partition(A, 9), ValueError, "out of bounds"),
        (lambda: jnp.searchsorted(A, 1), ValueError, "1-dimensional"),
        (lambda: jnp.searchsorted(V, 1, side="a"), ValueError, "side"),
        (lambda: jnp.searchsorted(V, 1, method="a"), ValueError, "method"),
    ],
)
def test_errors(wrong, error, text):
    with pytest.raises(error, match=text):
        wrong()


@pytest.mark.parametrize("mode", ["largest", "smallest"])
@pytest.mark.parametrize(
    "dtype", ["float32", "bfloat16", "int8", "uint8", "uint32", "int4", "bool"]
)
def test_top_k_is_the_beginning_of_the_order(mode, dtype):
    x = np.array([[3, 1, 2, 1, 0], [5, 5, 7, 0, 2]]).astype(jnp.dtype(dtype))
    order = np.argsort(x if mode == "smallest" else -x.astype(int), axis=1, kind="stable")[:, :3]
    values, indices = jnp.top_k(x, 3, mode=mode)
    assert (values.dtype, indices.dtype) == (x.dtype, np.int32)
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))


def test_top_k_along_another_axis_of_none_and_of_all():
    x = jnp.array([[2, 5], [3, -7], [8, -4]])
    values, indices = jnp.top_k(x, 1, axis=0, mode="smallest", sorted=False)
    assert (values.tolist(), indices.tolist()) == ([[2, -7]], [[0, 1]])
    assert jnp.top_k(x, 0)[0].shape == (3, 0)
    assert jnp.top_k(x, 3, axis=-2)[1].shape == (3, 2)


def test_the_least_integers_are_the_smallest():
    values, _ = jnp.top_k(jnp.array([-128, 127, 0, -1], jnp.int8), 4, mode="smallest")
    assert values.tolist() == [-128, -1, 0, 127]


def test_nan_counts_as_the_largest():
    x = jnp.array([1, jnp.nan, -jnp.inf, jnp.inf])
    assert jnp.top_k(x, 4)[1].tolist() == [1, 3, 0, 2]
    assert jnp.top_k(x, 4, mode="smallest")[1].tolist() == [2, 0, 3, 1]


def test_top_k_differentiates_and_maps():
    x = jnp.array([[2.0, 5, 1], [3, -7, -2]])
    slope = jax.grad(lambda x: jnp.top_k(x, 2, mode="smallest")[0].sum())(x)
    assert slope.tolist() == [[1, 0, 1], [0, 1, 1]]
    values, _ = jax.vmap(lambda x: jnp.top_k(x, 1))(x)
    assert values.tolist() == [[5], [3]]


@pytest.mark.parametrize(
    ("k", "keywords", "error", "text"),
    [
        (4, {}, ValueError, "no larger than size along axis"),
        (-1, {}, ValueError, "nonnegative"),
        (1.0, {}, TypeError, "k of top_k must be an integer"),
        (1, {"axis": 2}, ValueError, "out of bounds"),
        (1, {"axis": None}, TypeError, "integer"),
        (1, {"mode": "least"}, ValueError, "'largest' or 'smallest'"),
    ],
)
def test_top_k_refuses(k, keywords, error, text):
    with pytest.raises(error, match=text):
        jnp.top_k(np.ones((2, 3)), k, **keywords)
