"""Sums for TPUs, whose factors multiply them; the rule runs on CPUs here, for its values."""

import re

import numpy as np
import pytest

import hlofront
import hlofront.numpy as jnp
from hlofront.core.rules import lower
from hlofront.primitives.arrays.reducing import reduce_sum_p

ROWS, CHANNELS = (16, 1), (8,)


@pytest.fixture
def on_cpus(monkeypatch):
    """The rule for TPUs is that for CPUs."""
    lower.load(reduce_sum_p)
    monkeypatch.setitem(lower.matches, (reduce_sum_p, "cpu"), lower.matches[reduce_sum_p, "tpu"])
    hlofront.clear_caches()
    yield
    hlofront.clear_caches()


def text_of(function, *operands, platform="tpu"):
    return hlofront.jit(function).trace(*operands).lower(lowering_platforms=(platform,)).as_text()


def summed(text):
    """The names of the operations whose results are summed."""
    of = dict(re.findall(r"(%\w+) = (?:stablehlo\.)?(\w+)", text))
    return [of.get(name, "argument") for name in re.findall(r"stablehlo.reduce\((%\w+)", text)]


def products(x, factor, others):
    return (x * factor).sum(1), (x * factor + others).sum(1), (others + factor * x).sum(1)


def test_factors_of_sums_multiply_them():
    x, others = np.ones((2, 16, 8), np.float32)
    factor = np.ones((16, 1), np.float32)
    text = text_of(lambda *xs: products(*xs), x, factor, others)
    assert summed(text) == ["argument"] * 5
    assert text.count("stablehlo.multiply %") == 3 + 3  # Those of the elements remain for others.


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_other_platforms_sum_products(platform):
    x, others = np.ones((2, 16, 8), np.float32)
    factor = np.ones((16, 1), np.float32)
    text = text_of(lambda *xs: products(*xs), x, factor, others, platform=platform)
    assert summed(text) == ["multiply", "add", "add"]


@pytest.mark.parametrize(
    ("dtype", "shape", "axes"),
    [
        (np.float16, (16, 1), (1,)),  # Sums of float16 may overflow where the products do not.
        (np.int32, (16, 1), (1,)),
        (np.float32, (16, 1), (0,)),  # The factor varies along the summed axis.
        (np.float32, (16, 1), (0, 1)),
        (np.float32, (1, 1), (1,)),  # It is one number.
        (np.float32, (), (1,)),
    ],
)
def test_other_sums_are_of_products(dtype, shape, axes):
    operands = np.ones((16, 8), dtype), np.ones(shape, dtype)
    text = text_of(lambda x, y: hlofront.lax.reduce_sum_p.bind(x * y, axes=axes), *operands)
    assert summed(text) == ["multiply"]


@pytest.mark.usefixtures("on_cpus")
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((16, 1, 1), (1, 2)), ((16, 1, 1), (2,)), ((1, 5, 1), (0, 2)), ((5, 8), (0,)), ((8,), (0, 1))],
)
def test_sums_of_products_and_of_what_is_added(shape, axes):
    random = np.random.default_rng(0)
    x, others = random.normal(size=(2, 16, 5, 8)).astype(np.float32)
    first, second = random.normal(size=(2, *shape)).astype(np.float32)

    def function(x, others, first, second):
        sums = (x * first, second * x + others, (x * first + others) + second * others)
        return [each.sum(axes) for each in sums]

    operands = x, others, first, second
    assert summed(text_of(function, *operands)).count("add") == 0
    wide = function(*(each.astype(np.float64) for each in operands))
    for ours, numpys in zip(hlofront.jit(function)(*operands), wide, strict=True):
        np.testing.assert_allclose(ours, numpys, rtol=1e-5, atol=1e-4)


@pytest.mark.usefixtures("on_cpus")
def test_sums_of_products_of_one_value_with_itself():
    x = np.arange(4, dtype=np.float32)
    squares = hlofront.jit(lambda x: (jnp.broadcast_to(x[:, None], (4, 3)) * x[:, None]).sum(1))
    np.testing.assert_allclose(squares(x), 3 * x**2)


@pytest.mark.usefixtures("on_cpus")
@pytest.mark.parametrize("axes", [(1,), (0,)])
@pytest.mark.parametrize("order", [1, 2])
def test_derivatives_of_normalizations(axes, order):
    random = np.random.default_rng(0)
    x = random.normal(size=(6, 5)) * 3 + 1

    def normalized(x):
        centered = x - x.mean(axes, keepdims=True)
        scaled = centered / jnp.sqrt((centered**2).mean(axes, keepdims=True) + 1e-3)
        by_var = (x - x.mean(axes, keepdims=True)) * x.var(axes, keepdims=True)
        return jnp.sum(jnp.sin(scaled) + jnp.tanh(by_var / 9))

    hlofront.test_util.check_grads(normalized, (x,), order, modes=["rev"], atol=0.05, rtol=0.05)


def test_the_gradient_of_a_normalization_sums_no_product_with_the_slope_of_its_variance():
    def loss(x):
        squares = jnp.square(x - x.mean(1, keepdims=True))
        centered = x - x.mean(1, keepdims=True)
        return jnp.tanh(centered * squares.mean(1, keepdims=True)).sum()

    x = np.ones((16, 8), np.float32)
    text = text_of(hlofront.grad(loss), x)
    # One sum depends on the other in the program for CPUs: the slope of the variance is one.
    assert depth_of_sums(text) < depth_of_sums(text_of(hlofront.grad(loss), x, platform="cpu"))


def depth_of_sums(text):
    """The most sums on a way from an argument to a result, each of which needs the one before."""
    depths = {}
    for name, line in re.findall(r"(%\w+) = (.*)", text):
        before = [depths.get(each, 0) for each in re.findall(r"%\w+", line)]
        depths[name] = max(before, default=0) + line.startswith("stablehlo.reduce(")
    return max(depths.values())
