"""The fault "strided windows by YNNPACK": dilation and cuts of their operands are ignored."""

import itertools

import numpy as np
import pytest

import hlofront as jax
from hlofront import export, lax
from hlofront.base.config import options
from hlofront.bridge import state
from hlofront.bridge.xla_faults import FAULTS

FAULT = next(each for each in FAULTS if each.name == "strided windows by YNNPACK")
X = np.random.default_rng(0).integers(-5, 6, (513, 8)).astype(np.float32)


def window_sums(x, sizes, strides, dilation):
    return lax.reduce_window(x, np.float32(0), lax.add, sizes, strides, "VALID", dilation)


def padded_first(x, sizes, strides, dilation):
    x = lax.pad(x, np.float32(0), [(0, 0, step - 1) for step in dilation])
    return window_sums(x, sizes, strides, (1, 1))


def padded_by_another_function(x, sizes, strides, dilation):
    x = lax.pad(x, np.float32(0), [(0, 0, step - 1) for step in dilation])
    return jax.jit(lambda x: window_sums(x, sizes, strides, (1, 1)))(x)


def clipped(x, sizes, strides, dilation):
    return lax.max(window_sums(x, sizes, strides, dilation), np.float32(-7))


def expected(x, sizes, strides, dilation):
    """Return the sums of windows by NumPy."""
    dilated = np.zeros([(n - 1) * step + 1 for n, step in zip(x.shape, dilation)], x.dtype)
    dilated[:: dilation[0], :: dilation[1]] = x
    windows = np.lib.stride_tricks.sliding_window_view(dilated, sizes)
    return windows[:: strides[0], :: strides[1]].sum((2, 3))


CASES = list(itertools.product(((1, 1), (2, 1)), ((1, 2), (2, 1), (2, 2)), ((3, 1), (1, 2))))


@pytest.mark.parametrize(
    "function", [window_sums, padded_first, padded_by_another_function], ids=lambda f: f.__name__
)
def test_windows_of_dilated_operands_are_right(function):
    found = jax.jit(lambda x: [function(x, *case) for case in CASES])(X)
    for case, sums in zip(CASES, found, strict=True):
        np.testing.assert_array_equal(sums, expected(X, *case), err_msg=str(case))


def test_what_is_computed_with_such_windows_is_right():
    found = jax.jit(lambda x: [clipped(x, *case) for case in CASES])(X)
    for case, sums in zip(CASES, found, strict=True):
        np.testing.assert_array_equal(sums, np.maximum(expected(X, *case), -7), err_msg=str(case))


def test_windows_of_unknown_numbers_of_rows_and_columns_are_exported():
    def pooled(x):
        return lax.reduce_window(x, np.float32(0), lax.add, (1, 2, 2), (1, 2, 2), "VALID")

    shape = export.symbolic_shape("a, b, c", constraints=["b >= 2", "c >= 2"])
    exported = export.export(jax.jit(pooled))(jax.ShapeDtypeStruct(shape, np.float32))
    x = np.arange(2 * 6 * 4, dtype=np.float32).reshape(2, 6, 4)
    np.testing.assert_array_equal(exported.call(x), pooled(x))


@pytest.mark.parametrize("rows", [1, "all"], ids=["of one row", "of all rows"])
def test_windows_of_dilated_operands_of_unknown_sizes_are_right(rows):
    def sums(x):
        return window_sums(x, (x.shape[0] if rows == "all" else rows, 1), (1, 2), (3, 1))

    shape = export.symbolic_shape("a, b", constraints=["a >= 2", "b >= 2"])
    exported = export.export(jax.jit(sums))(jax.ShapeDtypeStruct(shape, np.float32))
    sizes = (len(X) if rows == "all" else rows, 1)
    np.testing.assert_array_equal(exported.call(X), expected(X, sizes, (1, 2), (3, 1)))


def sums_of_products(a, b):
    """Return sums of two rows each of a product, without its last row and outer columns."""
    return lax.reduce_window(a @ b, np.float32(0), lax.add, (2, 1), (2, 1), ((0, -1), (-1, -1)))


def test_windows_of_products_that_are_cut_are_right():
    a, b = X, X[:8]
    rows = (a @ b)[:-1, 1:-1]
    np.testing.assert_array_equal(jax.jit(sums_of_products)(a, b), rows[::2] + rows[1::2])


@pytest.mark.parametrize("function", [window_sums, padded_first], ids=lambda f: f.__name__)
def test_the_fault_is_there_without_the_guard(function):
    case = ((1, 1), (1, 2), (3, 1))
    with options["hlofront_xla_guards"](False), options["hlofront_cpu_formulas"](False):
        found = jax.jit(lambda x: function(x, *case))(X)
    is_right = np.array_equal(found, expected(X, *case))
    assert is_right == (not FAULT.is_in(state.jaxlib_version))


def test_the_fault_is_there_for_products_without_the_guard():
    a, b = X, X[:8]
    rows = (a @ b)[:-1, 1:-1]
    with options["hlofront_xla_guards"](False), options["hlofront_cpu_formulas"](False):
        found = jax.jit(sums_of_products)(a, b)
    is_right = np.array_equal(found, rows[::2] + rows[1::2])
    assert is_right == (not FAULT.is_in(state.jaxlib_version))
