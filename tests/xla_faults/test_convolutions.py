"""The fault "convolutions that cut and pad an axis": they read outside of the array."""

import itertools

import numpy as np
import pytest

import hlofront as jax
from hlofront import lax
from hlofront.base.config import options
from hlofront.bridge import state
from hlofront.bridge.xla_faults import FAULTS

FAULT = next(each for each in FAULTS if each.name == "convolutions that cut and pad an axis")
KERNEL = np.random.default_rng(1).integers(-4, 5, (2, 2, 3, 2)).astype(np.float32)
LAYOUT = ("NHWC", "HWIO", "NHWC")


def convolved(x, padding, dilation=1, kernel=KERNEL, result=None):
    """Return a convolution that is padded along its first spatial axis."""
    return lax.conv_general_dilated(
        x,
        kernel,
        (1, 1),
        [padding, (0, 0)],
        (dilation, 1),
        dimension_numbers=LAYOUT,
        preferred_element_type=result,
    )


def expected(x, padding, dilation=1):
    """Return the same convolution by NumPy."""
    low, high = padding
    dilated = np.zeros((len(x), (x.shape[1] - 1) * dilation + 1, *x.shape[2:]), x.dtype)
    dilated[:, ::dilation] = x
    cut = dilated[:, max(-low, 0) : dilated.shape[1] - max(-high, 0)]
    whole = np.pad(cut, ((0, 0), (max(low, 0), max(high, 0)), (0, 0), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(whole, (2, 2), (1, 2))
    return np.einsum("nhwcij,ijco->nhwo", windows, KERNEL)


def whole_numbers():
    return np.random.default_rng(0).integers(-4, 5, (2, 6, 5, 3)).astype(np.float32)


@pytest.mark.parametrize("dilation", [1, 2, 3])
@pytest.mark.parametrize("padding", list(itertools.product((-2, -1, 0, 1), repeat=2)), ids=str)
def test_convolutions_with_any_padding_are_right(padding, dilation):
    x = whole_numbers()
    found = jax.jit(lambda x: convolved(x, padding, dilation))(x)
    np.testing.assert_array_equal(found, expected(x, padding, dilation))


def test_complex_and_narrow_operands_are_cut_as_well():
    x = whole_numbers()
    found = jax.jit(lambda x: convolved(x + 1j * x, (-1, 2), kernel=KERNEL + 0j))(x)
    np.testing.assert_array_equal(found, (1 + 1j) * expected(x, (-1, 2)))
    kernel = KERNEL.astype(np.int8)
    found = jax.jit(lambda x: convolved(x, (-1, 2), 1, kernel, np.int32))(x.astype(np.int8))
    np.testing.assert_array_equal(found, expected(x, (-1, 2)))


def test_the_fault_is_there_without_the_guard():
    x = whole_numbers()
    with options["hlofront_xla_guards"](False), options["hlofront_cpu_formulas"](False):
        found = jax.jit(lambda x: convolved(x, (-1, 1)))(x)
    is_right = np.array_equal(found, expected(x, (-1, 1)))
    assert is_right == (not FAULT.is_in(state.jaxlib_version))
