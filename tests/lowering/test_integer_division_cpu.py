"""Quotients and remainders of many integers on CPUs: exact, by quotients in float64."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base.config import options
from tests.support.large_arrays import ENOUGH

DTYPES = ["int8", "int16", "int32", "uint8", "uint16", "uint32"]

random = np.random.default_rng(0)


def divided(x, y, dtype):
    """Return the quotient and the remainder of Python's integers as XLA defines them."""
    if y == 0:
        return np.array(-1).astype(dtype), x
    quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    return np.array(quotient).astype(dtype), x - quotient * y


def assert_exact(x, y):
    """Assert that quotients and remainders of arrays are right."""
    wanted = [divided(a, b, x.dtype) for a, b in zip(x.tolist(), y.tolist())]
    for function, values in zip((lax.div, lax.rem), zip(*wanted, strict=True), strict=True):
        result = np.asarray(function(np.resize(x, ENOUGH), np.resize(y, ENOUGH)))
        assert result.dtype == x.dtype
        np.testing.assert_array_equal(result[: len(x)], np.array(values, x.dtype))


def ends_of(dtype):
    limits = np.iinfo(dtype)
    ends = {limits.min, limits.min + 1, limits.max, limits.max - 1, limits.max // 2 + 1, 0, 1, 2, 7}
    return np.array(sorted(ends | ({-1, -2, -7} if limits.min else set())), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_pairs_of_ends(dtype):
    x, y = (each.ravel() for each in np.meshgrid(ends_of(dtype), ends_of(dtype)))
    assert_exact(x, y)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_of_all_magnitudes(dtype):
    limits = np.iinfo(dtype)
    x, y = random.integers(limits.min, limits.max, (2, 2000), dtype, endpoint=True)
    assert_exact(x, y)
    assert_exact(x, y >> random.integers(0, limits.bits, 2000, dtype))
    # Beside whole quotients.
    divisors = np.maximum(y >> (limits.bits // 2), 1)
    for step in (-1, 0, 1):
        assert_exact(x // divisors * divisors + np.array(step).astype(dtype), divisors)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(*[st.integers(-(2**31), 2**31 - 1)] * 2), min_size=1, max_size=20))
def test_any_integers(pairs):
    x, y = np.array(pairs, np.int32).T
    assert_exact(x, y)


def test_batches_and_functions_of_both():
    x = random.integers(-1000, 1000, (2, ENOUGH), np.int32)
    y = random.integers(-30, -1, (2, ENOUGH), np.int32)
    np.testing.assert_array_equal(hlofront.vmap(lax.div)(x, y), np.trunc(x / y))
    np.testing.assert_array_equal(jnp.floor_divide(x, y), x // y)
    np.testing.assert_array_equal(hlofront.jit(lambda x, y: x % y)(x, y[0]), x % y[0])
    np.testing.assert_array_equal(jnp.divmod(x, y[:, :1])[0], x // y[:, :1])


def uses_formula(x, y, function=lax.div, platforms=("cpu",)):
    traced = hlofront.jit(function).trace(x, y)
    return "bitcast_convert" in traced.lower(lowering_platforms=platforms).as_text()


@pytest.mark.parametrize("function", [lax.div, lax.rem])
def test_where_they_are_used(function):
    x = np.ones(ENOUGH, np.int32)
    assert uses_formula(x, x, function)
    assert not uses_formula(x, x, function, platforms=["tpu"])
    assert not uses_formula(x, x, function, platforms=["cuda"])
    assert not uses_formula(x, x, function, platforms=["cpu", "tpu"])
    assert not uses_formula(x[:10], x[:10], function)
    # Constants are scalars.
    assert not uses_formula(x, np.int32(3), function)
    with hlofront.enable_x64(True):
        assert not uses_formula(x.astype(np.int64), x.astype(np.int64), function)
    with options["hlofront_fences"](False):
        assert not uses_formula(x, x, function)
