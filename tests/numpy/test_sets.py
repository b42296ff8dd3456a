"""Sets of elements, as in NumPy."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp

V = np.array([3, 1, 2, 1], np.int32)
W = np.array([1, 3, 3, 9], np.int32)
ROWS = np.array([[1, 2], [1, 2], [0, 5]], np.int32)
NANS = np.array([1, np.nan, np.nan, 0, 1], np.float32)


def agree(found, expected):
    found = found if isinstance(found, tuple) else (found,)
    expected = expected if isinstance(expected, tuple) else (expected,)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.shape == other.shape


CASES = {
    "unique": lambda m, v, w: m.unique(v),
    "unique all": lambda m, v, w: m.unique(v, True, True, True),
    "unique of rows": lambda m, v, w: m.unique(m.asarray(ROWS), True, True, True, axis=0),
    "unique of columns": lambda m, v, w: m.unique(m.asarray(ROWS), axis=1),
    "unique of a matrix": lambda m, v, w: m.unique(m.asarray(ROWS), True, True, True),
    "unique of nothing": lambda m, v, w: m.unique(v[:0], True, True, True),
    "unique NaN": lambda m, v, w: m.unique(m.asarray(NANS), return_counts=True),
    "unequal NaN": lambda m, v, w: m.unique(m.asarray(NANS), False, True, equal_nan=False),
    "unique_all": lambda m, v, w: tuple(m.unique_all(v)),
    "unique_counts": lambda m, v, w: tuple(m.unique_counts(v)),
    "unique_inverse": lambda m, v, w: tuple(m.unique_inverse(v)),
    "unique_values": lambda m, v, w: m.sort(m.unique_values(v)),
    "intersect1d": lambda m, v, w: m.intersect1d(v, w),
    "intersect1d indices": lambda m, v, w: m.intersect1d(v, w, return_indices=True),
    "union1d": lambda m, v, w: m.union1d(v, w),
    "setdiff1d": lambda m, v, w: m.setdiff1d(v, w[1:]),
    "setdiff1d unique": lambda m, v, w: m.setdiff1d(v, w[1:], assume_unique=True),
    "setxor1d": lambda m, v, w: m.setxor1d(v, w),
    "isin": lambda m, v, w: m.isin(v, w),
    "isin inverted": lambda m, v, w: m.isin(m.asarray(ROWS), w, invert=True),
    "isin nothing": lambda m, v, w: m.isin(v, w[:0]),
}


@pytest.mark.parametrize("case", CASES)
def test_as_numpy(case):
    function = CASES[case]
    agree(function(jnp, jnp.asarray(V), jnp.asarray(W)), function(np, V, W))


@pytest.mark.parametrize("size", [1, 31, 32, 33, 64, 100, 128, 129])
def test_isin_of_groups(size):
    random = np.random.default_rng(size)
    elements = random.integers(0, 300, (7, 40)).astype(np.float32)
    elements[0, :2] = np.nan, -0.0
    for last in (299, 0, np.nan, np.inf):
        test = random.integers(0, 300, size).astype(np.float32)
        test[-1] = last
        for invert in (False, True):
            wanted = np.isin(elements, test, invert=invert)
            np.testing.assert_array_equal(jnp.isin(elements, test, invert=invert), wanted)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.uint32, np.bool_])
def test_isin_of_integers(dtype):
    if dtype == np.bool_:
        elements = np.array([[False, True]])
    else:
        limits = np.iinfo(dtype)
        middle = (limits.min + limits.max) // 2
        elements = np.array([limits.min, limits.max, middle, 0, 1, limits.max - 1], dtype)
    for tests in (elements[:1], elements[1:2], elements[2:5], np.tile(elements, 20)):
        for invert in (False, True):
            wanted = np.isin(elements, tests, invert=invert)
            np.testing.assert_array_equal(jnp.isin(elements, tests, invert=invert), wanted)


@pytest.mark.parametrize("method", ["compare_all", "binary_search", "sort"])
def test_isin_by_every_method(method):
    x = np.array([0, np.nan, 2, 9], np.float32)
    found = jnp.isin(x, np.array([9, 2, np.nan, 4], np.float32), method=method)
    np.testing.assert_array_equal(found, [False, False, True, True])


def test_results_of_a_given_size():
    traced = jax.jit(lambda x: jnp.unique(x, True, True, True, size=5))
    agree(
        traced(V),
        (
            np.array([1, 2, 3, 1, 1]),
            np.array([1, 2, 0, 1, 1]),
            np.array([2, 0, 1, 0]),
            np.array([2, 1, 1, 0, 0]),
        ),
    )
    agree(jnp.unique(V, return_counts=True, size=2), (np.array([1, 2]), np.array([2, 1])))
    agree(jnp.unique(ROWS, axis=0, size=3, fill_value=9), np.array([[0, 5], [1, 2], [9, 9]]))
    agree(jax.jit(lambda x, y: jnp.union1d(x, y, size=5))(V, W), np.array([1, 2, 3, 9, 1]))
    agree(
        jnp.intersect1d(V, W, return_indices=True, size=4, fill_value=-1),
        (np.array([1, 3, -1, -1]), np.array([1, 0, 4, 4]), np.array([0, 1, 4, 4])),
    )
    agree(jnp.setdiff1d(V, W[:1], size=4), np.array([2, 3, 0, 0]))
    agree(jnp.setxor1d(V, W, size=4), np.array([2, 9, 2, 2]))


@pytest.mark.parametrize(
    "wrong, error, text",
    [
        (lambda: jax.jit(jnp.unique)(V), jax.errors.ConcretizationTypeError, "size=n"),
        (
            lambda: jax.jit(lambda x: jnp.setdiff1d(V, x))(V),
            jax.errors.ConcretizationTypeError,
            "size=n",
        ),
        (lambda: jnp.unique([1, 2]), TypeError, "requires ndarray or scalar"),
        (lambda: jnp.unique(V[:0], size=2), ValueError, "fill_value must be specified"),
        (lambda: jnp.isin(V, W, method="foo"), ValueError, "foo"),
        (lambda: jnp.intersect1d(V, [1]), TypeError, "position 1"),
    ],
)
def test_errors(wrong, error, text):
    with pytest.raises(error, match=text):
        wrong()


@pytest.mark.parametrize("name", ["union1d", "intersect1d", "setdiff1d", "setxor1d"])
def test_elements_of_sets_have_the_derivatives_of_what_is_selected(name):
    a, b, tangents = np.float32([3, 1, 2, 2]), np.float32([2, 5]), np.float32([10, 20, 30, 40])
    by_value = {3.0: 10.0, 1.0: 20.0, 2.0: 30.0, 5.0: 0.0}
    found, slopes = jax.jvp(lambda a: getattr(jnp, name)(a, b), (a,), (tangents,))
    assert found.tolist() == getattr(np, name)(a, b).tolist()
    assert slopes.tolist() == [by_value[x] for x in found.tolist()]


def test_unique_values_have_derivatives_and_are_known_while_tracing():
    a = np.float32([3, 1, 2, 2])
    assert jax.grad(lambda a: jnp.unique(a) @ np.float32([1, 2, 3]))(a).tolist() == [3, 1, 2, 0]
    assert jax.jit(lambda: jnp.unique(a))().tolist() == [1, 2, 3]
    rows, slopes = jax.jvp(lambda a: jnp.unique(a.reshape(2, 2), axis=0), (a,), (a,))
    assert rows.tolist() == slopes.tolist() == [[2, 2], [3, 1]]
