"""Complex numbers that threads share unequally on CPUs: as a vector of an even length."""

import numpy as np
import pytest

import hlofront
from hlofront import lax

SHAPES = [(8193,), (9999,), (2801, 3), (901, 10), (2, 4501, 1)]
NUMPY = {"exp": np.exp, "log": np.log, "sqrt": np.sqrt, "sin": np.sin, "asinh": np.arcsinh}

pytestmark = pytest.mark.usefixtures("wide_numbers")

random = np.random.default_rng(0)


def numbers(shape, dtype):
    real, imag = random.normal(size=(2, *shape))
    return (real + 1j * imag).astype(dtype)


def text_of(function, *operands, platforms=("cpu",)):
    return hlofront.jit(function).trace(*operands).lower(lowering_platforms=platforms).as_text()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", NUMPY)
def test_values_are_those_of_all_elements(name, dtype, shape):
    x = numbers(shape, dtype)
    function = getattr(lax, name)
    result = hlofront.jit(function)(x)
    assert result.dtype == dtype
    np.testing.assert_allclose(result, NUMPY[name](x), rtol=1e-5 if dtype == "complex64" else 1e-12)
    has_formula = name != "asinh" or dtype == "complex64"
    assert ("stablehlo.pad" in text_of(function, x)) == has_formula
    assert "stablehlo.pad" not in text_of(function, x, platforms=("tpu",))


@pytest.mark.parametrize("shape", [(8192,), (4099, 16), (3, 4099), (401, 33)])
def test_even_numbers_and_long_lines_are_not_lengthened(shape):
    assert "stablehlo.pad" not in text_of(lax.exp, np.ones(shape, np.complex64))


def test_powers_of_vectors_with_one_exponent():
    x = numbers((5001,), "complex64")
    np.testing.assert_allclose(lax.pow(x, np.complex64(1.5)), x**1.5, rtol=1e-5)
    exponents = numbers((5001,), "complex64")
    np.testing.assert_allclose(lax.pow(x, exponents), x**exponents, rtol=1e-4)


def test_derivatives_and_batches():
    x = numbers((5001,), "complex128")
    found, slope = hlofront.jvp(lax.exp, (x,), (np.ones_like(x),))
    np.testing.assert_allclose([found, slope], [np.exp(x)] * 2, rtol=1e-13)
    result = hlofront.vmap(lax.exp)(x.reshape(-1, 3))
    np.testing.assert_allclose(result, np.exp(x.reshape(-1, 3)), rtol=1e-13)


def test_huge_angles_of_uneven_numbers():
    x = 1j * np.full(5001, 1e20)
    np.testing.assert_allclose(lax.exp(x), np.exp(x), rtol=1e-13)
