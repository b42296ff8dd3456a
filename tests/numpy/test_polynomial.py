"""Polynomials, against NumPy."""

import warnings

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.test_util import check_grads
from tests.numpy.double_precision import check, wide

P, Q = np.float32([2, 3, -1, 5, 4]), np.float32([1, 2, -1])
PLACES = np.float32([-1, 0, 0.5, 2, 3, 4])
VALUES = np.float32([3, 1, 4, 1, 5, 9])
WEIGHTS = np.float32([1, 2, 0.5, 1, 3, 1])
DTYPES = [np.int32, np.float16, ml_dtypes.bfloat16, np.float32, np.complex64]


# ---- arithmetic --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_arithmetic(dtype):
    p, q = P.astype(dtype), Q.astype(dtype)
    inexact = np.float32 if dtype is np.int32 else dtype
    for name, result in {
        "polyadd": dtype,
        "polysub": dtype,
        "polymul": inexact,
        "polyval": dtype,
    }.items():
        found = getattr(jnp, name)(p, q)
        assert found.dtype == result and not found.weak_type
        check(found, getattr(np, name)(wide(p), wide(q)), 1e-2, 1e-2)
    for name in ("polyder", "polyint"):
        found = getattr(jnp, name)(p, 2)
        assert found.dtype == inexact
        check(found, getattr(np, name)(wide(p), 2), 1e-2, 1e-2)
    quotient, remainder = jnp.polydiv(p, q)
    assert quotient.dtype == remainder.dtype == inexact
    wanted, rest = np.polydiv(wide(p), wide(q))
    check(quotient, wanted)
    check(remainder, np.concatenate([np.zeros(5 - len(rest)), rest]), 1e-5, 1e-4)


def test_polynomials_of_other_sizes():
    check(jnp.polyadd(Q, P), np.polyadd(Q, P))
    check(jnp.polysub(Q, P), np.polysub(Q, P))
    check(jnp.polyadd(P[:0], Q), Q)
    check(jnp.polymul(P, Q[:0]), np.zeros(5))
    check(jnp.polyadd(np.stack([P, P]).T, Q[:, None]), np.polyadd(P, Q)[:, None] * [1, 1])
    quotient, remainder = jnp.polydiv(Q, P)
    check(quotient, [0])
    check(remainder, Q)


def test_leading_zeros():
    zeros = np.float32([0, 0])
    padded = np.concatenate([zeros, Q])
    check(jnp.polymul(padded, padded, trim_leading_zeros=True), np.polymul(Q, Q))
    assert jnp.polymul(padded, padded).shape == (9,)
    product = np.polymul(P, Q)
    for more in (0, 1):
        found = jnp.polydiv(np.polyadd(product, [more]), Q, trim_leading_zeros=True)
        check(found[0], P)
        assert found[1].shape == (more,)
    with pytest.raises(jax.errors.ConcretizationTypeError, match="trim_leading_zeros=False"):
        jax.jit(lambda u: jnp.polydiv(u, Q, trim_leading_zeros=True))(P)


def test_orders():
    for m in (0, 1, 3, 5, 7):
        check(jnp.polyder(P, m), np.polyder(P, m) if m < 5 else np.zeros(0))
        check(jnp.polyint(P, m), np.polyint(P, m))
    # Nothing is left, of complex numbers too.
    assert jnp.polyder(Q.astype(np.complex64), 3).shape == (0,)
    check(jnp.polyint(P, 2, 3.0), np.polyint(P, 2, 3.0))
    check(jnp.polyint(P, 3, Q), np.polyint(P, 3, Q))
    check(jnp.polyder(jnp.polyint(P, 2, Q[:2]), 2), P)
    for function in (jnp.polyder, jnp.polyint):
        with pytest.raises(ValueError, match="negative"):
            function(P, -1)
        with pytest.raises(TypeError):
            function(P, 1.5)
    with pytest.raises(ValueError, match=r"\(1,\) or \(2,\)"):
        jnp.polyint(P, 2, Q)


def test_values():
    x = np.float32([[0, 1], [-2, 0.5]])
    check(jnp.polyval(P, x), np.polyval(P, x))
    for unroll in (1, 3, True):
        check(jnp.polyval(P, 2.0, unroll=unroll), np.polyval(P, 2.0))
    check(jnp.polyval(P[:0], x), np.zeros((2, 2)))
    several = np.stack([P, P[::-1]], 1)
    check(jnp.polyval(several, 2.0), [np.polyval(P, 2.0), np.polyval(P[::-1], 2.0)])
    long = np.ones(40, np.float32)
    check(jnp.polyval(long, 0.5), 2)
    with jax.enable_x64(True):
        check(jnp.polyval(wide(P), 0.1), np.polyval(wide(P), 0.1), 1e-15)


def test_refused_arithmetic():
    for function in (jnp.polyadd, jnp.polysub, jnp.polymul, jnp.polydiv, jnp.polyval):
        with pytest.raises(TypeError, match="list"):
            function([1, 2], P)
    with pytest.raises(IndexError, match="atleast_1d"):
        jnp.polyadd(P, 1.0)
    with pytest.raises(TypeError):
        jnp.polyadd(P > 0, P > 0)
    with pytest.raises(ValueError):
        jnp.polymul(np.stack([P, P]), Q)
    with pytest.raises(IndexError, match="no coefficients"):
        jnp.polydiv(P, P[:0])


# ---- zeros -------------------------------------------------------------------------------------


def in_order(zeros):
    return np.sort_complex(np.round(wide(np.asarray(zeros).astype(np.complex128)), 4))


def test_polynomials_of_zeros():
    check(jnp.poly(P), np.poly(P), 1e-5, 1e-4)
    check(jnp.poly(P * 1j), np.poly(P * 1j), 1e-5, 1e-4)
    check(jnp.poly(2.0), [1, -2])
    check(jnp.poly(P[:0]), 1)
    matrix = np.float32([[2, 1, 0], [1, 3, 1], [0, -1, 1]])
    check(jnp.poly(matrix), np.poly(matrix) + 0j, 1e-4, 1e-4)
    with pytest.raises(ValueError, match="non-empty square"):
        jnp.poly(matrix[:2])


@pytest.mark.parametrize("dtype", DTYPES)
def test_zeros(dtype):
    p = P.astype(dtype)
    found = jnp.roots(p)
    assert found.dtype == np.complex64
    np.testing.assert_allclose(in_order(found), in_order(np.roots(wide(p))), atol=2e-3)


def test_zeros_of_padded_polynomials():
    padded = np.float32([0, 0, 1, -3, 2, 0])
    np.testing.assert_allclose(in_order(jnp.roots(padded)), [0, 1, 2], atol=1e-4)
    found = np.asarray(jax.jit(lambda p: jnp.roots(p, strip_zeros=False))(padded))
    np.testing.assert_allclose(in_order(found[:3]), [0, 1, 2], atol=1e-4)
    assert np.isnan(found[3:]).all() and found.shape == (5,)
    assert np.isnan(jnp.roots(padded * 0, strip_zeros=False)).all()
    assert jnp.roots(padded * 0).shape == jnp.roots(padded[:1]).shape == (0,)
    assert jnp.roots(np.float32([0, 0, 4])).shape == (0,)
    with pytest.raises(jax.errors.ConcretizationTypeError, match="strip_zeros=False"):
        jax.jit(jnp.roots)(padded)
    with pytest.raises(ValueError, match="rank-1"):
        jnp.roots(padded[None])


def test_precise_zeros():
    with jax.enable_x64(True):
        found = np.asarray(jnp.roots(np.array([1.0, -6, 11, -6])))
        assert found.dtype == np.complex128
        np.testing.assert_allclose(np.sort(found.real), [1, 2, 3], rtol=1e-12)


# ---- fits --------------------------------------------------------------------------------------


def test_fits():
    both = np.stack([VALUES, VALUES[::-1]], 1)
    for degree in (0, 1, 3):
        check(jnp.polyfit(PLACES, VALUES, degree), np.polyfit(PLACES, VALUES, degree), 1e-3, 1e-3)
        check(jnp.polyfit(PLACES, both, degree), np.polyfit(PLACES, both, degree), 1e-3, 1e-3)
    check(
        jnp.polyfit(PLACES, VALUES, 2, w=WEIGHTS),
        np.polyfit(PLACES, VALUES, 2, w=WEIGHTS),
        1e-3,
        1e-3,
    )
    check(jnp.polyfit(PLACES, VALUES * 1j, 1), np.polyfit(PLACES, VALUES * 1j, 1), 1e-3, 1e-3)
    # Integers as floats, and halves rounded once.
    check(jnp.polyfit(np.arange(4), np.arange(4) * 2 + 1, 1), [2, 1])
    half = PLACES.astype(ml_dtypes.bfloat16)
    found = jnp.polyfit(half, half * 2, 1)
    assert found.dtype == ml_dtypes.bfloat16
    check(found, [2, 0], 1e-2, 1e-2)


@pytest.mark.parametrize("options", [{}, {"w": WEIGHTS}, {"rcond": 0.5}])
def test_all_of_a_fit(options):
    found = jnp.polyfit(PLACES, VALUES, 2, full=True, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy warns of fits that are poor.
        wanted = np.polyfit(PLACES, VALUES, 2, full=True, **options)
    coefficients, left_over, rank, values, rcond = found
    check(coefficients, wanted[0], 1e-3, 1e-3)
    if int(rank) == 3:
        check(left_over, wanted[1], 1e-3)
    assert int(rank) == wanted[2]
    check(values, wanted[3])
    assert rcond == pytest.approx(options.get("rcond", 6 * 2.0**-23))


def test_covariances_of_fits():
    both = np.stack([VALUES, VALUES[::-1]], 1)
    for y, options in (
        (VALUES, {"cov": "unscaled"}),
        (VALUES, {"cov": True, "w": WEIGHTS}),
        (both, {"cov": True}),
    ):
        found = jnp.polyfit(PLACES, y, 2, **options)
        wanted = np.polyfit(PLACES, y, 2, **options)
        check(found[0], wanted[0], 1e-3, 1e-3)
        check(found[1], wanted[1], 1e-3, 1e-3)


def test_refused_fits():
    for message, arguments in {
        "deg >= 0": (PLACES, VALUES, -1),
        "must exceed order": (PLACES, VALUES, 5, None, False, None, True),
    }.items():
        with pytest.raises(ValueError, match=message):
            jnp.polyfit(*arguments)
    for message, arguments in {
        "1D vector for x": (PLACES[None], VALUES, 1),
        "non-empty": (PLACES[:0], VALUES, 1),
        "1D or 2D": (PLACES, VALUES[None, None], 1),
        "x and y to have same length": (PLACES, VALUES[:2], 1),
        "1-d array for weights": (PLACES, VALUES, 1, None, False, WEIGHTS[None]),
        "w and y": (PLACES, VALUES, 1, None, False, WEIGHTS[:2]),
    }.items():
        with pytest.raises(TypeError, match=message):
            jnp.polyfit(*arguments)


# ---- transformed -------------------------------------------------------------------------------


def calls(p):
    """Some of each, of five coefficients."""
    return (
        jnp.polyadd(p, Q),
        jnp.polysub(Q, p),
        jnp.polymul(p, p),
        jnp.polydiv(p, p[1:3]),
        jnp.polyder(p, 2),
        jnp.polyint(p, 2, p[:2]),
        jnp.polyval(p, PLACES[:3]),
        jnp.poly(p),
        jnp.polyfit(PLACES[:5], p, 2, w=WEIGHTS[:5]),
    )


def test_traced():
    several = np.stack([P, P[::-1]])
    mapped = jax.jit(jax.vmap(lambda p: (calls(p), jnp.roots(p, strip_zeros=False))))(several)
    for i, p in enumerate(several):
        alone = calls(p)
        for found, wanted in zip(jax.tree.leaves(mapped[0]), jax.tree.leaves(alone), strict=True):
            check(found[i], wanted, 1e-4, 1e-3)
        np.testing.assert_allclose(in_order(mapped[1][i]), in_order(np.roots(wide(p))), atol=1e-3)


def test_derivatives():
    check_grads(jax.jit(lambda p: calls(p)[:-1]), (P / 4,), order=1, rtol=3e-2, atol=3e-2)
    # Fits are linear in what they fit.
    jacobian = jax.jit(jax.jacrev(lambda y: jnp.polyfit(PLACES, y, 2)))(VALUES)
    check(jacobian @ VALUES, np.polyfit(PLACES, VALUES, 2), 1e-3, 1e-3)
    # How a zero z of p moves with the coefficients: -z^n / p'(z).
    p = np.float32([1, -3, 2])
    zeros = np.asarray(jnp.roots(p)).real
    moved = jax.jit(jax.jacfwd(lambda p: jnp.roots(p, strip_zeros=False).real))(p)
    wanted = -np.vander(zeros, 3) / np.polyval(np.polyder(p), zeros)[:, None]
    check(moved, wanted, 1e-3, 1e-3)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_division(data):
    """u = v q + r, of 6 and 3 coefficients; few shapes, so that programs are compiled once."""
    numbers = st.integers(-8, 8)
    u = np.float32([data.draw(numbers) for _ in range(6)])
    leading = data.draw(st.sampled_from([-2, -1, 1, 2]))
    v = np.float32([leading, data.draw(numbers), data.draw(numbers)])
    quotient, remainder = (np.asarray(x, np.float64) for x in jnp.polydiv(u, v))
    scale = max(1.0, np.abs(quotient).max())
    again = np.convolve(wide(v), quotient) + remainder
    np.testing.assert_allclose(again, u, atol=1e-4 * scale)
    np.testing.assert_allclose(remainder[:4], 0, atol=1e-4 * scale)
    check(jnp.polymul(u, v), np.convolve(wide(u), wide(v)))
