"""Convolutions with groups of a batch on CPUs: derivatives of grouped convolutions by kernels."""

import ml_dtypes
import numpy as np
import pytest

import hlofront
from hlofront import lax
from hlofront.base.config import options as all_options
from hlofront.lowering.min_sizes import MIN_SIZES

random = np.random.default_rng(0)
with_formulas = all_options["hlofront_cpu_formulas"]
LAYOUTS = {
    1: ("NWC", "WIO", "NWC"),
    2: ("NHWC", "HWIO", "NHWC"),
    3: ("NCDHW", "OIDHW", "NCDHW"),
}


@pytest.fixture(autouse=True)
def small_kernels_too(monkeypatch):
    monkeypatch.setitem(MIN_SIZES["conv_general_dilated"], "groups of a batch", 256)


def whole_numbers(shape, dtype):
    return random.integers(-3, 4, shape).astype(dtype)


def derivative(x, kernel, layout, dtype=np.float32, **options):
    """The derivative by the kernel, as a function of x and a cotangent, and these."""
    options = {"window_strides": (1,) * (len(x) - 2), "padding": "SAME", **options}
    x, kernel = whole_numbers(x, dtype), whole_numbers(kernel, dtype)

    def convolution(x, kernel):
        return lax.conv_general_dilated(x, kernel, dimension_numbers=layout, **options)

    cotangent = whole_numbers(hlofront.eval_shape(convolution, x, kernel).shape, dtype)

    def by_kernel(x, cotangent):
        return hlofront.vjp(lambda kernel: convolution(x, kernel), kernel)[1](cotangent)[0]

    return by_kernel, (x, cotangent)


def text_of(function, operands, platform="cpu"):
    return hlofront.jit(function).trace(*operands).lower(lowering_platforms=(platform,)).as_text()


def check(*case, **options):
    function, operands = derivative(*case, **options)
    assert "stablehlo.convolution" not in text_of(function, operands)
    result = hlofront.jit(function)(*operands)
    with with_formulas(False):
        assert "stablehlo.convolution" in text_of(function, operands)
        wanted = hlofront.jit(function)(*operands)
    assert result.dtype == wanted.dtype
    # The sums of products of small integers are exact.
    np.testing.assert_array_equal(np.asarray(result), np.asarray(wanted))


CASES = {
    "depthwise": ((2, 9, 8, 5), (3, 3, 1, 5), 5, {}),
    "two features for each": ((2, 9, 8, 5), (3, 2, 1, 10), 5, {}),
    "groups": ((2, 9, 8, 6), (3, 3, 3, 8), 2, {}),
    "strides": ((2, 12, 13, 6), (3, 3, 2, 9), 3, {"window_strides": (2, 3)}),
    "dilations": ((2, 12, 13, 4), (3, 2, 1, 4), 4, {"rhs_dilation": (2, 3)}),
    "dilations of both": (
        (2, 8, 9, 4),
        (2, 3, 1, 4),
        4,
        {"lhs_dilation": (2, 1), "padding": ((1, 1), (0, 2))},
    ),
    "paddings": ((3, 9, 10, 4), (3, 3, 1, 4), 4, {"padding": ((2, -1), (-2, 4))}),
    "one axis": ((2, 90, 6), (5, 2, 6), 3, {}),
    "three axes": ((2, 4, 5, 6, 7), (8, 2, 3, 2, 3), 2, {}),
}


@pytest.mark.parametrize("case", CASES)
def test_derivatives_by_kernels(case):
    x, kernel, groups, options = CASES[case]
    check(x, kernel, LAYOUTS[len(x) - 2], feature_group_count=groups, **options)


@pytest.mark.parametrize("layout", [("NCHW", "OIHW", "NCHW"), ("HWCN", "IOHW", "CHWN")], ids=str)
def test_layouts(layout):
    sizes = dict(zip("NHWC", (3, 8, 9, 6))), dict(zip("HWIO", (3, 2, 2, 6)))
    x, kernel = ([size[axis] for axis in axes] for size, axes in zip(sizes, layout))
    check(x, kernel, layout, feature_group_count=3)


@pytest.mark.parametrize("dtype", ["float64", "float16", ml_dtypes.bfloat16])
def test_dtypes(dtype):
    with hlofront.enable_x64(True):
        check((2, 5, 6, 8), (2, 2, 1, 8), LAYOUTS[2], dtype, feature_group_count=8)


def test_numbers_that_are_not_finite_stay_in_their_groups():
    function, (x, cotangent) = derivative(
        (2, 9, 8, 6), (3, 3, 1, 6), LAYOUTS[2], feature_group_count=6
    )
    x[0, 4, 4, 1], x[1, 4, 4, 2] = np.nan, np.inf
    cotangent[1, 4, 4, 2] = 1
    result = np.asarray(hlofront.jit(function)(x, cotangent))
    assert np.isnan(result[..., 1]).all()
    assert result[1, 1, 0, 2] == np.inf
    assert np.isfinite(result[..., [0, 3, 4, 5]]).all()


def test_accuracy():
    function, (x, cotangent) = derivative(
        (4, 40, 40, 4), (3, 3, 1, 4), LAYOUTS[2], feature_group_count=4
    )
    x, cotangent = (random.normal(size=each.shape).astype(np.float32) for each in (x, cotangent))
    result = np.asarray(hlofront.jit(function)(x, cotangent))
    padded = np.pad(x.astype(float), ((0, 0), (1, 1), (1, 1), (0, 0)))
    for i in range(3):
        for j in range(3):
            wanted = (padded[:, i : i + 40, j : j + 40] * cotangent).sum((0, 1, 2))
            np.testing.assert_allclose(result[i, j, 0], wanted, atol=2e-4)


def test_second_derivatives_and_batches():
    function, (x, cotangent) = derivative(
        (2, 9, 8, 6), (3, 3, 2, 6), LAYOUTS[2], feature_group_count=3
    )
    result = hlofront.vmap(function)(np.stack([x, 2 * x]), np.stack([cotangent, cotangent]))
    np.testing.assert_array_equal(result[1], 2 * np.asarray(function(x, cotangent)))
    by_x = hlofront.grad(lambda x: (function(x, cotangent) ** 2).sum())(x)
    with with_formulas(False):
        wanted = hlofront.grad(lambda x: (function(x, cotangent) ** 2).sum())(x)
    np.testing.assert_allclose(by_x, wanted)


def test_others_keep_one_operation():
    function, operands = derivative((2, 9, 8, 6), (3, 3, 2, 6), LAYOUTS[2], feature_group_count=3)
    for platform in ("cuda", "tpu"):
        assert "stablehlo.convolution" in text_of(function, operands, platform)
    kernel = whole_numbers((3, 3, 5, 6), np.float32)
    x = whole_numbers((4, 9, 8, 5), np.float32)

    def grouped(x, kernel):
        return lax.conv_general_dilated(
            x, kernel, (1, 1), "SAME", dimension_numbers=LAYOUTS[2], batch_group_count=2
        )

    assert "stablehlo.convolution" in text_of(grouped, (x, kernel))
