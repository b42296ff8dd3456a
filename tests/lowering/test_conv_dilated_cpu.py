"""Convolutions that CPUs compute as products of matrices, or with exchanged operands."""

from unittest.mock import patch

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront
from hlofront import lax
from hlofront.base.config import options as all_options
from hlofront.lowering.min_sizes import MIN_SIZES

random = np.random.default_rng(0)
with_formulas = all_options["hlofront_cpu_formulas"]
LAYOUTS = [("NWC", "WIO", "NWC"), ("NHWC", "HWIO", "NHWC"), ("HCWN", "OHIW", "CHNW")]
every_size = patch.dict(MIN_SIZES["conv_general_dilated"], {"dilated inputs": 1})


def whole_numbers(shape, dtype):
    return random.integers(-3, 4, shape).astype(dtype)


def convolution(layout, strides=1, padding="VALID", dilation=1, spacing=1, result=None):
    """A convolution with these strides and dilations of the input and of the kernel."""

    def function(x, kernel):
        axes = x.ndim - 2
        return lax.conv_general_dilated(
            x,
            kernel,
            (strides,) * axes,
            padding,
            (dilation,) * axes,
            (spacing,) * axes,
            dimension_numbers=layout,
            preferred_element_type=result,
        )

    return function


def by_kernel(function, kernel):
    """The derivative by the kernel, as a function of the input and a cotangent."""
    return lambda x, cotangent: hlofront.vjp(lambda k: function(x, k), kernel)[1](cotangent)[0]


def text_of(function, *operands, platform="cpu"):
    return hlofront.jit(function).trace(*operands).lower(lowering_platforms=(platform,)).as_text()


def check(function, *operands):
    """Check the values and the dtype against those of the convolution as one operation."""
    result = hlofront.jit(function)(*operands)
    with with_formulas(False):
        wanted = hlofront.jit(function)(*operands)
    assert result.dtype == wanted.dtype
    # The sums of products of small integers are exact.
    np.testing.assert_array_equal(np.asarray(result), np.asarray(wanted))


small, pads = st.integers(1, 3), st.integers(-1, 3)
DTYPES = ["float32", "bfloat16", "int8", "uint8", "int32"]


@every_size
@settings(max_examples=25, deadline=None)
@given(
    st.tuples(small, small, small, st.integers(3, 5)),
    st.tuples(pads, pads, pads, pads),
    st.sampled_from([(1, 2, 1), (1, 3, 1), (2, 1, 1), (1, 1, 2), (1, 1, 1)]),
    st.booleans(),
    st.sampled_from(LAYOUTS),
    st.sampled_from(DTYPES),
)
def test_any_convolution(sizes, padding, steps, is_derivative, layout, dtype):
    """A convolution, or one that is its derivative by the kernel."""
    batch, features, side, size = sizes
    lengths = {**dict.fromkeys("HW", size), "N": batch, "C": features}
    lengths_of_kernel = {**dict.fromkeys("HW", side), "I": features, "O": 2}
    is_derivative = is_derivative and dtype in ("float32", "bfloat16")
    x = whole_numbers([lengths[axis] for axis in layout[0]], dtype)
    kernel = whole_numbers([lengths_of_kernel[axis] for axis in layout[1]], dtype)
    strides, dilation, spacing = steps
    pairs = (padding[:2], padding[2:])[: x.ndim - 2]
    function = convolution(layout, strides, pairs, dilation, spacing)
    shape = hlofront.eval_shape(function, x, kernel).shape
    if is_derivative and 0 not in shape:
        check(by_kernel(function, kernel), x, whole_numbers(shape, dtype))
    else:
        check(function, x, kernel)


NHWC = LAYOUTS[1]


def transposed_by_kernel():
    function = convolution(NHWC, 1, ((1, 2), (1, 2)), 2)
    kernel = np.zeros((3, 3, 8, 9), np.float32)
    x, cotangent = (np.zeros((2, side, side, f), np.float32) for side, f in ((16, 8), (32, 9)))
    return by_kernel(function, kernel), (x, cotangent)


def test_derivatives_of_transposed_convolutions_dilate_the_kernel():
    function, operands = transposed_by_kernel()
    dilated = "lhs_dilate = [2, 2]"
    assert "rhs_dilate = [2, 2]" in (text := text_of(function, *operands))
    assert dilated not in text.replace("rhs", "-") and "stablehlo.reverse" in text
    for platform in ("cuda", "tpu"):
        assert dilated in text_of(function, *operands, platform=platform)
    few = [x[:, :2, :2, :2] for x in operands]
    small = by_kernel(convolution(NHWC, 1, ((1, 0), (1, 0)), 2), np.zeros((2, 2, 2, 2), np.float32))
    assert "lhs_dilate" in text_of(small, few[0], np.zeros((2, 3, 3, 2), np.float32))


@every_size
def test_numbers_that_are_not_finite_stay_in_their_parts():
    x, kernel = (whole_numbers(shape, np.float32) for shape in ((1, 3, 4), (2, 4, 5)))
    x[0, 1, 2] = np.nan
    function = convolution(LAYOUTS[0], 1, ((2, 1),), 3)
    result = np.asarray(hlofront.jit(function)(x, kernel))
    assert np.isnan(result[0, 4:6]).all() and np.isnan(result).sum() == 10


@every_size
def test_second_derivatives_and_batches():
    function = convolution(NHWC, 1, ((1, 1), (1, 1)), 2)
    x, kernel = whole_numbers((2, 3, 3, 2), np.float32), whole_numbers((2, 2, 2, 3), np.float32)

    def of_squares(x, kernel):
        return (function(x, kernel) ** 2).sum()

    of_both = hlofront.jacfwd(hlofront.grad(of_squares, 1))
    batched = hlofront.vmap(function, (0, None))(np.stack([x, 2 * x]), kernel)
    np.testing.assert_array_equal(batched[1], 2 * np.asarray(function(x, kernel)))
    check(of_both, x, kernel)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, np.float64, np.complex64])
@every_size
def test_dtypes(dtype):
    with hlofront.enable_x64(True):
        kernel = whole_numbers((3, 3, 4, 5), dtype)
        function = convolution(NHWC, 1, ((1, 2), (1, 2)), 2)
        x, cotangent = whole_numbers((3, 6, 6, 4), dtype), whole_numbers((3, 12, 12, 5), dtype)
        check(by_kernel(function, kernel), x, cotangent)
        check(convolution(NHWC, 1, ((1, 0), (2, 3)), 3), x, kernel)
