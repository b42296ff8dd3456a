"""Partitions of long vectors on CPUs: lesser elements, equal ones and greater ones, in order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.base.config import options

LONG = 131_072  # Shorter vectors are sorted.

random = np.random.default_rng(0)
TINY = np.finfo(np.float32).tiny
SPECIAL = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, TINY, -TINY, 1.0, -1.0, 3e38]


def in_three(x, kth):
    """Return the indices of the elements less than the kth, equal to it, and greater, in order."""
    rank = np.where(np.isnan(x), np.inf, x)
    pivot = np.sort(x)[kth]
    least = np.isnan(x).astype(int) - np.isnan(pivot)
    less = (least < 0) | ((least == 0) & (rank < np.where(np.isnan(pivot), np.inf, pivot)))
    equal = (least == 0) & ((x == pivot) | np.isnan(x))
    return np.concatenate([np.nonzero(each)[0] for each in (less, equal, ~(less | equal))])


def assert_partitioned(x, kth):
    wanted = in_three(x, kth)
    order = jnp.argpartition(x, kth)
    assert order.dtype == np.int32
    np.testing.assert_array_equal(order, wanted)
    parts = jnp.partition(x, kth)
    assert parts.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(parts), x[wanted])
    np.testing.assert_array_equal(np.signbit(parts), np.signbit(x[wanted]))


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(SPECIAL), min_size=1, max_size=9), st.integers(-9, 9))
def test_special_numbers_and_ties(numbers, place):
    x = np.resize(np.float32(numbers), LONG)
    x[place] = 0.5
    assert_partitioned(x, LONG // 2)


@pytest.mark.parametrize("kth", [0, 10, LONG // 2, LONG, -1])
def test_any_position(kth):
    assert_partitioned(random.normal(size=LONG + 1).astype(np.float32), kth)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_floats(dtype):
    with jax.enable_x64(True):
        assert_partitioned(random.normal(size=LONG).astype(dtype), LONG // 3)


@pytest.mark.parametrize("axis", [0, 1])
def test_axes_and_batches(axis):
    x = random.normal(size=(2, LONG)).astype(np.float32)
    wanted = np.stack([row[in_three(row, 9)] for row in x])
    x, wanted = (np.moveaxis(each, 1, axis) for each in (x, wanted))
    mapped = jax.vmap(lambda row: jnp.partition(row, 9), in_axes=1 - axis, out_axes=1 - axis)
    np.testing.assert_array_equal(mapped(x), wanted)
    x, wanted = (each.take([0], 1 - axis) for each in (x, wanted))
    np.testing.assert_array_equal(jnp.partition(x, 9, axis), wanted)


def test_derivatives():
    x = random.normal(size=LONG).astype(np.float32)
    weights = np.arange(LONG, dtype=np.float32)
    order = in_three(x, 7)
    wanted = np.zeros_like(x)
    wanted[order] = weights
    gradient = jax.grad(lambda x: (jnp.partition(x, 7) * weights).sum())(x)
    np.testing.assert_array_equal(gradient, wanted)
    _, tangents = jax.jvp(lambda x: jnp.partition(x, 7), (x,), (weights,))
    np.testing.assert_array_equal(tangents, weights[order])


def operations_of(x, function=jnp.partition, platform="cpu"):
    traced = jax.jit(lambda x: function(x, 5)).trace(x)
    text = traced.lower(lowering_platforms=(platform,)).as_text()
    return [name for name in ("sort", "scatter") if f'"stablehlo.{name}"' in text]


@pytest.mark.parametrize("function", [jnp.partition, jnp.argpartition])
def test_long_vectors_of_floats_on_cpus_alone(function):
    line = jax.ShapeDtypeStruct((LONG,), np.float32)
    assert operations_of(line, function) == ["scatter"]
    assert operations_of(line, function, "cuda") == operations_of(line, function, "tpu") == ["sort"]
    with options["hlofront_cpu_formulas"](False):
        assert operations_of(line, function) == ["sort"]
    assert operations_of(jax.ShapeDtypeStruct((LONG,), np.int32), function) == ["sort"]
    for shape in ((LONG - 1,), (LONG, 6), (6, LONG)):
        assert operations_of(jax.ShapeDtypeStruct(shape, np.float32), function) == ["sort"]
