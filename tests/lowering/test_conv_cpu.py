"""Depthwise convolutions, and those of one signal or image, on CPUs: sums of shifted products."""

import ml_dtypes
import numpy as np
import pytest

import hlofront
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.lowering.min_sizes import MIN_SIZES

random = np.random.default_rng(0)


def convolved(lhs, rhs, layouts=("NHWC", "HWIO", "NHWC"), **options):
    options = {"window_strides": (1,) * (lhs.ndim - 2), "padding": "SAME", **options}
    return lax.conv_general_dilated(
        lhs,
        rhs,
        dimension_numbers=layouts,
        feature_group_count=lhs.shape[layouts[0].index("C")],
        **options,
    )


def is_convolution(function, *operands, platforms=("cpu",)):
    hlofront.clear_caches()  # The sizes that are asked about differ within a test.
    lowered = hlofront.jit(function).trace(*operands).lower(lowering_platforms=platforms)
    return "stablehlo.convolution" in lowered.as_text()


def arrays(*shapes, dtype=np.float32):
    if np.issubdtype(dtype, np.integer):
        return [random.integers(-5, 5, shape).astype(dtype) for shape in shapes]
    results = [random.normal(size=shape) for shape in shapes]
    if np.issubdtype(dtype, np.complexfloating):
        results = [x + 1j * random.normal(size=x.shape) for x in results]
    return [x.astype(dtype) for x in results]


def assert_as_one_operation(monkeypatch, function, *operands, rtol=1e-5, differentiated=True):
    """Assert that sums of products give what XLA's convolution gives, and its derivatives."""

    def total(*operands):
        return (function(*operands) ** 2).sum()

    def results():
        result = hlofront.jit(function)(*operands)
        derivatives = hlofront.grad(total, (0, 1))(*operands) if differentiated else ()
        return [result, *derivatives]

    assert not is_convolution(function, *operands)
    sums = results()
    monkeypatch.setitem(MIN_SIZES["conv_general_dilated"], "depthwise", 10**12)
    assert is_convolution(function, *operands)
    for own, wanted in zip(sums, results(), strict=True):
        assert own.dtype == wanted.dtype
        own, wanted = (np.asarray(x, np.result_type(x.dtype, np.float64)) for x in (own, wanted))
        np.testing.assert_allclose(own, wanted, rtol=rtol, atol=rtol * abs(wanted).max())


@pytest.fixture(autouse=True)
def small_arrays_too(monkeypatch):
    monkeypatch.setitem(MIN_SIZES["conv_general_dilated"], "depthwise", 1)


@pytest.mark.parametrize(
    "options",
    [
        {"padding": "VALID"},
        {"padding": [(-1, 4), (2, -2)]},
        {"window_strides": (2, 3)},
        {"rhs_dilation": (2, 1)},
        {"lhs_dilation": (1, 3), "window_strides": (2, 1), "padding": [(1, 0), (0, 2)]},
        {"lhs_dilation": (2, 2), "rhs_dilation": (3, 2), "padding": [(3, 1), (0, 2)]},
    ],
    ids=str,
)
def test_strides_paddings_and_dilations(monkeypatch, options):
    operands = arrays((2, 9, 8, 3), (3, 2, 1, 3))
    assert_as_one_operation(monkeypatch, lambda x, k: convolved(x, k, **options), *operands)


@pytest.mark.parametrize(
    ("layouts", "shapes"),
    [
        (("NHWC", "HWIO", "NHWC"), [(2, 6, 7, 3), (3, 3, 1, 6)]),
        (("NCHW", "OIHW", "NCHW"), [(2, 3, 6, 7), (6, 1, 3, 2)]),
        (("CNHW", "IHOW", "HCWN"), [(3, 2, 6, 7), (1, 3, 9, 2)]),
        (("NWC", "WIO", "NWC"), [(2, 9, 4), (4, 1, 4)]),
        (("NDHWC", "DHWIO", "NDHWC"), [(1, 4, 5, 6, 2), (3, 2, 2, 1, 2)]),
        (("NC", "OI", "NC"), [(4, 3), (6, 1)]),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_layouts_ranks_and_several_outputs_of_a_feature(monkeypatch, layouts, shapes):
    operands = arrays(*shapes)
    assert_as_one_operation(monkeypatch, lambda x, k: convolved(x, k, layouts), *operands)


@pytest.mark.parametrize(
    ("dtype", "options", "rtol"),
    [
        (np.float64, {}, 1e-12),
        (np.complex64, {}, 1e-5),
        (np.int32, {}, 0),
        (np.int8, {}, 0),
        (np.int8, {"preferred_element_type": np.int32}, 0),
        (np.float16, {}, 2e-3),
        (ml_dtypes.bfloat16, {}, 1.6e-2),
        (ml_dtypes.bfloat16, {"preferred_element_type": np.float32}, 1e-5),
    ],
)
def test_dtypes(monkeypatch, dtype, options, rtol):
    with hlofront.enable_x64(True):
        operands = arrays((2, 6, 5, 3), (3, 3, 1, 3), dtype=dtype)
        function = lambda x, k: convolved(x, k, **options)
        assert_as_one_operation(monkeypatch, function, *operands, rtol=rtol, differentiated=False)


def test_functions_of_one_signal_or_image():
    x, k = arrays((5000,), (9,))
    np.testing.assert_allclose(jnp.convolve(x, k), np.convolve(x, k), rtol=1e-5, atol=1e-5)
    batch = hlofront.vmap(jnp.convolve)(np.stack([x, -x]), np.stack([k, 2 * k]))
    wanted = [np.convolve(x, k), np.convolve(-x, 2 * k)]
    np.testing.assert_allclose(batch, wanted, rtol=1e-5, atol=1e-5)
    assert not is_convolution(jnp.convolve, x, k)


def test_where_they_are_used(monkeypatch):
    depthwise = arrays((2, 16, 16, 8), (3, 3, 1, 8))
    assert not is_convolution(convolved, *depthwise)
    assert is_convolution(convolved, *depthwise, platforms=["tpu"])
    assert is_convolution(convolved, *depthwise, platforms=["cuda"])
    # XLA's own code is used for long kernels, many outputs of one feature, and small sizes.
    assert is_convolution(jnp.convolve, *arrays((5000,), (65,)))
    assert is_convolution(convolved, *arrays((2, 16, 16, 1), (3, 3, 1, 9)))
    monkeypatch.undo()
    assert is_convolution(convolved, *arrays((1, 4, 4, 8), (3, 3, 1, 8)))
    # Sums over features are products of matrices.
    images, kernel = arrays((2, 32, 32, 8), (3, 3, 8, 8))
    layouts = ("NHWC", "HWIO", "NHWC")
    full = lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=layouts)
    assert is_convolution(full, images, kernel)
