"""Choosing elements by conditions and by indices, as in NumPy."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp

A = np.arange(12, dtype=np.float32).reshape(3, 4)
V = np.array([3, 1, 2, 1], np.int32)
C = A > 5

CASES = {
    "where": lambda m, a, v: m.where(a > 5, a, -a),
    "where broadcast": lambda m, a, v: m.where(v > 1, a, a[0]),
    "where of numbers": lambda m, a, v: m.where(a, v, m.zeros_like(v)),
    "where nonzero": lambda m, a, v: m.where(a > 5)[1].astype("int32"),
    "select": lambda m, a, v: m.select([v > 2, v > 1], [v, -v], 7),
    "argwhere": lambda m, a, v: m.argwhere(a > 5).astype("int32"),
    "flatnonzero": lambda m, a, v: m.flatnonzero(a > 5).astype("int32"),
    "compress": lambda m, a, v: m.compress(v > 1, a, axis=1),
    "compress short": lambda m, a, v: m.compress(np.array([False, True]), a, axis=0),
    "extract": lambda m, a, v: m.extract(a > 5, a),
    "choose": lambda m, a, v: m.choose(v, [v, v * 2, v * 3, v * 4]),
    "choose wrap": lambda m, a, v: m.choose(v * 5 - 7, [v, v * 2], mode="wrap"),
    "choose clip": lambda m, a, v: m.choose(v - 2, [v, v * 2], mode="clip"),
    "take": lambda m, a, v: m.take(a, v, axis=1),
    "take flat": lambda m, a, v: m.take(a, v - 2),
    "take of more axes": lambda m, a, v: m.take(a, v.reshape(2, 2) % 3, axis=0),
    "take wrap": lambda m, a, v: m.take(a, v * 9, axis=0, mode="wrap"),
    "take clip": lambda m, a, v: m.take(a, v * 9 - 20, axis=0, mode="clip"),
    "take nothing": lambda m, a, v: m.take(a[:0], v[:0], axis=0),
    "take_along_axis": lambda m, a, v: m.take_along_axis(a, v[None, :] % 3, 0),
    "take_along_axis sorts": lambda m, a, v: m.take_along_axis(-a, m.argsort(-a, axis=1), 1),
    "take_along_axis broadcast": lambda m, a, v: (
        m.take_along_axis(a[:1], v.reshape(2, 2), 1)
        if m is jnp
        else np.take_along_axis(np.repeat(a[:1], 2, 0), v.reshape(2, 2), 1)
    ),
    "take_along_axis flat": lambda m, a, v: m.take_along_axis(a, v, None),
    "delete": lambda m, a, v: m.delete(a, 1, axis=1),
    "delete several": lambda m, a, v: m.delete(a, np.array([0, 0, -1]), axis=1),
    "delete slice": lambda m, a, v: m.delete(v, slice(None, None, 2)),
    "delete mask": lambda m, a, v: m.delete(v, np.array([True, False, False, True])),
    "insert": lambda m, a, v: m.insert(v, 1, 9),
    "insert column": lambda m, a, v: m.insert(a, 1, a[:, 0], axis=1),
    "insert several": lambda m, a, v: m.insert(v, np.array([3, 1, 1]), np.array([7, 8, 9])),
    "insert slice": lambda m, a, v: m.insert(v, slice(0, 2), np.array([7, 8])),
    "ix_": lambda m, a, v: a[m.ix_(v[:3] % 3, v)],
    "unravel_index": lambda m, a, v: m.unravel_index(v, (2, 2))[1].astype("int32"),
    "ravel_multi_index": lambda m, a, v: m.ravel_multi_index((v, v), (4, 5)).astype("int32"),
    "ravel_multi_index F": lambda m, a, v: m.ravel_multi_index(
        (v * 9, v - 2), (4, 5), mode="clip", order="F"
    ).astype("int32"),
    "mask_indices": lambda m, a, v: m.mask_indices(3, m.triu, 1)[1].astype("int32"),
    "method take": lambda m, a, v: a.take(v, axis=1),
    "method nonzero": lambda m, a, v: a.nonzero()[0].astype("int32"),
    "method compress": lambda m, a, v: a.compress(v > 1, axis=1),
    "method choose": lambda m, a, v: (v % 2).choose([v, v * 2]),
}


@pytest.mark.parametrize("case", CASES)
def test_as_numpy(case):
    expected = CASES[case](np, A, V)
    found = CASES[case](jnp, jnp.asarray(A), jnp.asarray(V))
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape


def test_piecewise():
    functions = [lambda x: -x, lambda x: x * 2, 7.0]
    expected = np.piecewise(A, [A < 3, A > 8], functions)
    np.testing.assert_array_equal(jnp.piecewise(A, [A < 3, A > 8], functions), expected)
    traced = jax.jit(lambda x: jnp.piecewise(x, [x < 3, x < 2], [1.5, lambda x: x / 2]))
    np.testing.assert_array_equal(traced(V), [0, 0, 1, 0])


def inplace(function, a, *args, **kwargs):
    a = a.copy()
    function(a, *args, **kwargs)
    return a


@pytest.mark.parametrize(
    "name, args, kwargs",
    [
        ("put", (np.array([0, -1, 2]), np.array([5, 6])), {}),
        ("put", (np.array([13, -15]), 5.0), {"mode": "wrap"}),
        ("place", (C, np.array([1.0, 2.0, 3.5], np.float32)), {}),
        ("fill_diagonal", (np.array([7.0, 8.0], np.float32),), {}),
        ("put_along_axis", (np.array([[0], [1], [2]]), 9.0, 1), {}),
        ("put_along_axis", (np.array([[1, 0, 2, 1]]), A[:1] * 2, 0), {}),
        ("put_along_axis", (np.array([1, 5]), 9.0, None), {}),
    ],
)
def test_updates_as_numpy(name, args, kwargs):
    expected = inplace(getattr(np, name), A, *args, **kwargs)
    found = getattr(jnp, name)(jnp.asarray(A), *args, **kwargs, inplace=False)
    np.testing.assert_array_equal(found, expected)


def test_results_of_a_given_size():
    mask = jnp.asarray(C)
    rows, columns = jax.jit(lambda c: jnp.nonzero(c, size=8, fill_value=(7, 9)))(mask)
    np.testing.assert_array_equal(rows, [1, 1, 2, 2, 2, 2, 7, 7])
    np.testing.assert_array_equal(columns, [2, 3, 0, 1, 2, 3, 9, 9])
    np.testing.assert_array_equal(jnp.flatnonzero(mask, size=3), [6, 7, 8])
    np.testing.assert_array_equal(jnp.argwhere(mask[:1], size=2, fill_value=-1), [[-1, -1]] * 2)
    np.testing.assert_array_equal(jnp.extract(V == 1, V, size=3, fill_value=9), [1, 1, 9])
    deleted = jax.jit(lambda i: jnp.delete(V, i, assume_unique_indices=True))
    np.testing.assert_array_equal(deleted(np.array([1, -1])), [3, 2])
    inserted = jax.jit(lambda i: jnp.insert(V, i, 9))
    np.testing.assert_array_equal(inserted(np.array([2, 0])), np.insert(V, [2, 0], 9))
    far = np.array([2**32 - 2], np.uint32)
    np.testing.assert_array_equal(inserted(far), np.append(V, 9))
    np.testing.assert_array_equal(deleted(far), V[:-1])


LONG = np.arange(600, dtype=np.float32)
DELETED = [0, 5, -1, slice(10, 20), slice(None, 30), slice(None), slice(0, 12, 2), [1, 2, 3], []]


@pytest.mark.parametrize("shape", [(600,), (1, 600), (150, 4), (4, 150)])
@pytest.mark.parametrize("what", DELETED, ids=str)
def test_deleted_in_programs(what, shape):
    what = np.array(what, np.int32) if isinstance(what, list) else what
    x = LONG.reshape(shape)
    for axis in (None, *(i for i, size in enumerate(shape) if size > 30)):

        def rest(x, axis=axis):
            return jnp.delete(x, what, axis=axis)

        wanted = np.delete(x, what, axis)
        np.testing.assert_array_equal(jax.jit(rest)(x), wanted)
        np.testing.assert_array_equal(rest(jnp.asarray(x)), wanted)
        rows = np.stack([x, -x])
        np.testing.assert_array_equal(jax.vmap(rest)(rows), np.stack([wanted, -wanted]))
        counts = jax.grad(lambda x, rest=rest: rest(x).sum())(x)
        is_left = np.zeros(x.size, np.bool_)
        is_left[np.delete(np.arange(600).reshape(shape), what, axis)] = True
        np.testing.assert_array_equal(counts, is_left.reshape(shape))


@pytest.mark.parametrize(
    ("shape", "what", "is_gathered"),
    [
        ((600,), 5, False),
        ((150, 4), slice(3, 9), False),
        ((600,), slice(0, 12, 3), True),
        ((200,), 5, True),
        ((4, 150), 5, True),
    ],
)
def test_what_deletions_leave_is_joined_in_programs(shape, what, is_gathered):
    axis = 1 if shape[0] == 4 else 0
    program = jax.make_jaxpr(lambda x: jnp.delete(x, what, axis=axis))(
        LONG[: np.prod(shape)].reshape(shape)
    )
    assert ("gather" in str(program)) == is_gathered
    assert ("concatenate" in str(program)) != is_gathered


def test_out_of_bounds_is_filled():
    assert np.isnan(jnp.take(A, 99))
    assert jnp.take(V, 99) == np.iinfo(np.int32).min
    assert jnp.take(V, 99, fill_value=5) == 5
    assert jnp.take_along_axis(V, jnp.array([9]), 0, fill_value=8)[0] == 8


def test_equations():
    text = str(jax.make_jaxpr(lambda c, x: jnp.where(c, x, 0))(C, A))
    assert text == (
        "{ lambda ; a:bool[3,4] b:f32[3,4]. let\n"
        "    c:f32[3,4] = broadcast_in_dim 0.0:f32[]\n"
        "    d:f32[3,4] = select_n a c b\n"
        "  in (d,) }"
    )
    taken = jax.make_jaxpr(lambda x, i: jnp.take(x, i, axis=0))(A, V)
    names = [str(e.primitive) for e in taken.jaxpr.eqns]
    assert names == ["lt", "add", "select_n", "broadcast_in_dim", "gather"]
    assert jax.make_jaxpr(lambda c: jnp.where(c, 1, 0))(C).jaxpr.outvars[0].aval.weak_type


@pytest.mark.parametrize(
    "wrong, error, text",
    [
        (lambda x, v: jnp.where(x > 1, x), TypeError, "position 2"),
        (lambda x, v: jnp.where([1], x, x), TypeError, "requires ndarray or scalar"),
        (lambda x, v: jnp.where(x > 1, x, x, size=3), ValueError, "three-term"),
        (lambda x, v: jnp.nonzero(jnp.float32(1)), ValueError, "0d arrays"),
        (lambda x, v: jax.jit(jnp.nonzero)(x), jax.errors.ConcretizationTypeError, "size argument"),
        (
            lambda x, v: jnp.compress(v > 2, x[0, :2], size=9),
            ValueError,
            "size must not be negative",
        ),
        (lambda x, v: jnp.compress(x > 1, x), ValueError, "1D array"),
        (lambda x, v: jnp.choose(v, [v, v]), ValueError, "invalid entry"),
        (lambda x, v: jnp.select([], []), ValueError, "non-empty"),
        (lambda x, v: jnp.take(x, 1.5), ValueError, "integer type"),
        (lambda x, v: jnp.take(x, v, mode="raise"), NotImplementedError, "raise"),
        (lambda x, v: jnp.take(x[:0], v, axis=0), IndexError, "empty axis"),
        (lambda x, v: jnp.take_along_axis(x, v, 0), ValueError, "same number of dimensions"),
        (lambda x, v: jnp.put(v, 0, 1), ValueError, "in-place"),
        (lambda x, v: jnp.delete(v, 9), IndexError, "out of bounds"),
        (lambda x, v: jnp.delete(v, np.array([9])), IndexError, "out of bounds"),
        (lambda x, v: jnp.ravel_multi_index((5, 5), (2, 2)), ValueError, "invalid entry"),
        (lambda x, v: jnp.ix_(x), ValueError, "1-dimensional"),
    ],
)
def test_errors(wrong, error, text):
    with pytest.raises(error, match=text):
        wrong(jnp.asarray(A), jnp.asarray(V))
