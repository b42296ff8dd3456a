"""Differences of neighbors, slopes, areas, interpolation and angles, against NumPy."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.test_util import check_grads
from tests.numpy.double_precision import check, wide

X = np.float32([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3], [5, 8, 9, 7, 9]])
PLACES = np.float32([0, 0.5, 1.25, 4, 5])
DTYPES = [np.int8, np.int32, np.float16, ml_dtypes.bfloat16, np.float32, np.complex64]


# ---- diff --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_differences(dtype):
    x = X.astype(dtype)
    found = jnp.diff(x, 2)
    assert found.dtype == dtype
    check(found, np.diff(wide(x), 2))
    assert jnp.ediff1d(x, 1, x[0]).dtype == dtype
    check(jnp.ediff1d(x, 1, x[0]), np.ediff1d(wide(x), 1, wide(x[0])))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_orders_and_ends(axis):
    for n in (0, 1, 3):
        check(jnp.diff(X, n, axis), np.diff(X, n, axis))
    ends = {"prepend": 7, "append": X}
    check(jnp.diff(X, 1, axis, **ends), np.diff(X, 1, axis, **ends))
    check(jnp.diff(X, 9, axis), np.diff(X, 9, axis))


def test_booleans_differ():
    p = X > 4
    found = jnp.diff(p, prepend=True)
    assert found.dtype == bool
    check(found, np.diff(p, prepend=True))
    with pytest.raises(TypeError):
        jnp.ediff1d(p)


def test_unsigned_differences_wrap():
    n = np.array([3, 1, 2], np.uint8)
    check(jnp.diff(n), [254, 1])


def test_refused_differences():
    with pytest.raises(ValueError, match="non-negative"):
        jnp.diff(X, -1)
    with pytest.raises(ValueError, match="at least one dimensional"):
        jnp.diff(np.float32(1))
    with pytest.raises(TypeError, match="list"):
        jnp.diff([1, 2])
    with pytest.raises(TypeError):
        jnp.diff(X, axis=0, prepend=X[0])


# ---- gradient ----------------------------------------------------------------------------------


def check_all(found, wanted):
    assert type(found) is list
    for one, other in zip(found, wanted, strict=True):
        check(one, other)


def test_slopes():
    check_all(jnp.gradient(X), np.gradient(X))
    check(jnp.gradient(X, axis=1), np.gradient(X, axis=1))
    check_all(jnp.gradient(X, 2.0, axis=(1, 0)), np.gradient(X, 2.0, axis=(1, 0)))
    check_all(jnp.gradient(X, 2.0, 3.0), np.gradient(X, 2.0, 3.0))
    check(jnp.gradient(X[0, :2]), np.gradient(X[0, :2]))
    assert jnp.gradient(np.float32(3)) == []


def test_slopes_at_uneven_places():
    check(jnp.gradient(X, PLACES, axis=1), np.gradient(X, PLACES, axis=1))
    check_all(jnp.gradient(X, PLACES[:3], 2), np.gradient(X, PLACES[:3], 2))
    # A parabola is met exactly inside.
    check(jnp.gradient(PLACES**2, PLACES)[1:-1], 2 * PLACES[1:-1])


@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_dtypes_of_slopes(dtype):
    found = jnp.gradient(X.astype(dtype), axis=0)
    assert found.dtype == (np.float32 if dtype is np.int32 else dtype)
    check(found, np.gradient(wide(X.astype(dtype)), axis=0), 1e-2)


def test_refused_slopes():
    with pytest.raises(NotImplementedError, match="edge_order"):
        jnp.gradient(X, edge_order=2)
    with pytest.raises(ValueError, match="at least 2 elements"):
        jnp.gradient(X[:1])
    with pytest.raises(ValueError, match="same length"):
        jnp.gradient(X, PLACES[:2], axis=1)
    with pytest.raises(TypeError, match="spacing arguments"):
        jnp.gradient(X, 1, 2, 3)


# ---- interp ------------------------------------------------------------------------------------

AT = np.float32([[-1, 0, 0.25], [1.25, 3, 9]])


def test_interpolation():
    check(jnp.interp(AT, PLACES, X[0]), np.interp(AT, PLACES, X[0]))
    check(jnp.interp(AT, PLACES, X[0], -1, 7), np.interp(AT, PLACES, X[0], -1, 7))
    check(jnp.interp(3, PLACES, X[0]), np.interp(3, PLACES, X[0]))
    check(jnp.interp(AT[:0], PLACES, X[0]), np.zeros((0, 3)))
    values = X[0] + 1j * X[1]
    found = jnp.interp(AT, PLACES, values)
    assert found.dtype == np.complex64
    check(found, np.interp(AT, PLACES, values))


def test_periodic_interpolation():
    for period in (2.5, -6, 7):
        wanted = np.interp(AT, PLACES[::-1], X[0], period=period)
        check(jnp.interp(AT, PLACES[::-1], X[0], period=period), wanted)


def test_extrapolation():
    found = jnp.interp(AT, PLACES, X[0], "extrapolate", "extrapolate")
    check(found[0, 0], X[0, 0] - (X[0, 1] - X[0, 0]) / 0.5)
    check(found[1, 2], X[0, 4] + 4 * (X[0, 4] - X[0, 3]))
    check(jnp.interp(AT, PLACES, X[0], left="extrapolate")[1, 2], X[0, 4])


@pytest.mark.parametrize("dtype", [np.int32, np.float16, ml_dtypes.bfloat16])
def test_dtypes_of_interpolation(dtype):
    n = np.arange(5).astype(dtype)
    found = jnp.interp(n, n, n * n)
    assert found.dtype == (np.float32 if dtype is np.int32 else dtype)
    check(found, np.arange(5) ** 2)


def test_points_that_meet():
    check(jnp.interp(np.float32([0, 1, 2]), np.float32([1]), np.float32([5])), [5, 5, 5])
    x = np.float32([0, 1, 1, 2])
    total = jax.jit(lambda y: jnp.interp(np.float32([0.5, 1.5]), x, y).sum())
    found = jax.grad(total)(np.float32(x))
    assert np.isfinite(found).all()


def test_refused_interpolation():
    with pytest.raises(ValueError, match="one axis and one size"):
        jnp.interp(AT, PLACES, X[0, :3])
    with pytest.raises(ValueError, match="must be real"):
        jnp.interp(AT * 1j, PLACES, X[0])
    with pytest.raises(ValueError, match="'extrapolate'"):
        jnp.interp(AT, PLACES, X[0], left="nearest")
    with pytest.raises(ValueError, match="period must be a scalar"):
        jnp.interp(AT, PLACES, X[0], period=PLACES)


# ---- trapezoid ---------------------------------------------------------------------------------


def test_areas():
    check(jnp.trapezoid(X), np.trapezoid(X))
    check(jnp.trapezoid(X, axis=0), np.trapezoid(X, axis=0))
    check(jnp.trapezoid(X, PLACES), np.trapezoid(X, PLACES))
    check(jnp.trapezoid(X, X * 2, axis=0), np.trapezoid(X, X * 2, axis=0))
    check(jnp.trapezoid(X, dx=0.5, axis=0), np.trapezoid(X, dx=0.5, axis=0))
    check(jnp.trapezoid(X, dx=PLACES[1:]), np.trapezoid(X, dx=PLACES[1:]))
    check(jnp.trapezoid(X[:, :1]), np.zeros(3))
    with pytest.raises(IndexError, match="no values"):
        jnp.trapezoid(X[:, :0])
    with pytest.raises(ValueError):
        jnp.trapezoid(X, PLACES, axis=0)


@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_dtypes_of_areas(dtype):
    found = jnp.trapezoid(X.astype(dtype))
    assert found.dtype == (np.float32 if dtype is np.int32 else dtype)
    check(found, np.trapezoid(wide(X.astype(dtype))), 1e-2)


# ---- unwrap ------------------------------------------------------------------------------------


def test_angles():
    p = X * 2
    check(jnp.unwrap(p), np.unwrap(p))
    check(jnp.unwrap(p, axis=0), np.unwrap(p, axis=0))
    check(jnp.unwrap(p, 5.0), np.unwrap(p, 5.0))
    check(jnp.unwrap(p, period=3), np.unwrap(p, period=3))
    check(jnp.unwrap(p[:, :0]), p[:, :0])
    with pytest.raises(ValueError, match="complex"):
        jnp.unwrap(p * 1j)


@pytest.mark.parametrize("period", [3, 4, 5, 256])
def test_integers_unwrap_exactly(period):
    n = np.int32([0, 3, 1, 4, 255, 2, 130, 2])
    found = jnp.unwrap(n, period=period)
    assert found.dtype == np.int32
    check(found, np.unwrap(n, period=period))


def test_dtypes_of_angles():
    assert jnp.unwrap(X.astype(np.int32)).dtype == np.float32
    assert jnp.unwrap(X.astype(np.float16)).dtype == np.float16
    with jax.enable_x64(True):
        p = X.astype(np.float64) * 1.9
        check(jnp.unwrap(p), np.unwrap(p), 1e-13, 1e-12)


# ---- transformed -------------------------------------------------------------------------------


def calls(x):
    """Some of each, of one row."""
    return (
        jnp.diff(x, 2, prepend=1.0),
        jnp.ediff1d(x, x[:1]),
        jnp.gradient(x),
        jnp.gradient(x, PLACES),
        jnp.trapezoid(x, PLACES),
        jnp.trapezoid(x),
        jnp.interp(x / 3 + 0.1, PLACES, x),
        jnp.interp(x / 3, PLACES, x, period=2.3),
        jnp.unwrap(x * 1.1),
    )


def test_traced():
    mapped = jax.jit(jax.vmap(calls))(X)
    for i, row in enumerate(X):
        for found, wanted in zip(mapped, calls(row), strict=True):
            check(found[i], wanted)


def test_derivatives():
    allowed = {"rtol": 2e-2, "atol": 2e-2}
    check_grads(jax.jit(calls), (X[1],), order=1, **allowed)
    interpolated = jax.jit(lambda at, xp: jnp.interp(at, xp, X[0]))
    check_grads(interpolated, (AT + 0.1, PLACES), order=1, **allowed)


# ---- any numbers -------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_interpolation(data):
    """Of 6 points that ascend, at 4 places; few shapes, so that programs are compiled once."""
    numbers = st.integers(-64, 64).map(lambda n: n / 8)
    xp = np.cumsum([data.draw(st.integers(1, 8)) / 8 for _ in range(6)]) + data.draw(numbers)
    fp = np.array([data.draw(numbers) for _ in range(6)])
    x = np.array([data.draw(numbers) for _ in range(4)])
    check(jnp.interp(np.float32(x), np.float32(xp), np.float32(fp)), np.interp(x, xp, fp))
    check(jnp.gradient(np.float32(fp), np.float32(xp)), np.gradient(fp, xp), 1e-4, 1e-3)
    check(jnp.trapezoid(np.float32(fp), np.float32(xp)), np.trapezoid(fp, xp))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(-1000, 1000), min_size=6, max_size=6), st.integers(1, 50))
def test_any_unwrapping(numbers, period):
    found = np.asarray(jnp.unwrap(np.int32(numbers), period=np.int32(period)))
    np.testing.assert_array_equal(found, np.unwrap(numbers, period=period))
    np.testing.assert_array_equal((found - numbers) % period, 0)
