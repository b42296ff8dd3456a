"""Dtypes of other packages, which have rules of JAX's names for conversions and derivatives."""

import dataclasses
import functools

import numpy as np
import pytest

import hlofront as jax
from hlofront import lax
from hlofront import numpy as jnp
from hlofront.base.elements import ExtendedDType
from hlofront.core import ShapedArray

FLOAT = np.dtype(np.float32)


class LargestRules:
    """The rules of a dtype whose cotangents are combined by their maximum instead of their sum."""

    @staticmethod
    def physical_element_aval(dtype):
        return ShapedArray((), dtype.stored)

    @staticmethod
    def convert_from(largest, other):
        return largest.stored == other

    @staticmethod
    def convert_to(other, largest):
        return largest.stored == other

    @staticmethod
    def tangent_dtype(dtype):
        return dtype

    @staticmethod
    def add(dtype, x, y):
        largest = jnp.maximum(*[lax.convert_element_type(each, dtype.stored) for each in (x, y)])
        return lax.convert_element_type(largest, dtype)

    @staticmethod
    def zero(dtype):
        return lax.convert_element_type(np.array(-np.inf, dtype.stored), dtype)


@dataclasses.dataclass(frozen=True)
class Largest(ExtendedDType):
    stored: np.dtype = FLOAT
    _rules: type = LargestRules
    name: str = "largest"
    type: type = jax.dtypes.extended


class PairRules:
    """The rules of a dtype whose elements are two numbers, which anything may be converted to."""

    allow_conversion = True

    @staticmethod
    def physical_element_aval(dtype):
        return ShapedArray((2,), np.float32)

    @staticmethod
    def tangent_dtype(dtype):
        return jax.dtypes.float0


@dataclasses.dataclass(frozen=True)
class Pair(ExtendedDType):
    _rules: type = PairRules
    name: str = "pair"
    type: type = jax.dtypes.extended


@jax.custom_vjp
def reports(x, largest):
    """The number `x`, whose size is the cotangent of `largest`."""
    return x


reports.defvjp(
    lambda x, largest: (x, x),
    lambda x, cotangent: (cotangent, lax.convert_element_type(jnp.abs(x), Largest())),
)


def twice(x, largest):
    return reports(reports(x, largest) * -3.0, largest)


def in_loop(x, largest):
    step = lambda carry, _: (reports(carry, largest) * -2.0, None)
    return lax.scan(step, x, None, length=3)[0]


def by_reference(x, largest):
    ref = jax.new_ref(largest)
    return reports(reports(x, ref[...]) * -3.0, ref[...])


def by_reference_in_loop(x, largest):
    ref = jax.new_ref(largest)
    step = lambda carry, _: (reports(carry, ref[...]) * -2.0, None)
    return lax.scan(step, x, None, length=3)[0]


@pytest.mark.parametrize(
    ("fun", "size"),
    [
        (twice, 6.0),
        (in_loop, 8.0),
        (lambda x, largest: x, 0.0),
        (by_reference, 6.0),
        (by_reference_in_loop, 8.0),
    ],
)
@pytest.mark.parametrize("around", [lambda f: f, jax.checkpoint, jax.jit])
def test_cotangents_are_combined_by_the_rules_of_their_dtype(fun, size, around):
    def f(x, start):
        return around(fun)(x, lax.convert_element_type(start, Largest()))

    result = jax.jit(jax.grad(f, 1))(2.0, 0.0)
    assert result.dtype == np.float32
    assert result == size


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_an_element_may_be_an_array(axis):
    def there_and_back(x):
        pairs = lax.convert_element_type(x, Pair())
        assert (pairs.shape, pairs.dtype) == (x.shape[:-1], Pair())
        return lax.convert_element_type(pairs, np.float32) * 2

    x = np.arange(12.0, dtype=np.float32).reshape(2, 3, 2)
    np.testing.assert_array_equal(jax.jit(there_and_back)(x), x * 2)
    batched = jax.vmap(there_and_back, in_axes=axis, out_axes=axis)
    batch = np.moveaxis(np.stack([x, x + 1]), 0, axis)
    np.testing.assert_array_equal(jax.jit(batched)(batch), batch * 2)


@pytest.mark.parametrize(
    ("x", "dtype", "message"),
    [
        (np.zeros(3, np.float32), Pair(), r"an element of Pair.* is an array of shape \(2,\)"),
        (np.float32(0), Pair(), r"shape \(\) of the array that is converted does not end"),
        (np.zeros(2, np.int32), Pair(), "convert to float32 in between"),
        (np.zeros(2, np.int32), Largest(), "Cannot convert_element_type from int32 to"),
    ],
)
def test_conversions_that_there_are_not(x, dtype, message):
    with pytest.raises(ValueError, match=message):
        jax.jit(functools.partial(lax.convert_element_type, new_dtype=dtype)).lower(x)
