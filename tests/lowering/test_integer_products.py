"""Products of small integers: the dtypes that each platform's compiler multiplies rightly."""

import re

import numpy as np
import pytest

import hlofront
from hlofront import lax


def multiplied_dtypes(dtype, shape, platform, result="int32"):
    """Return the element types of a dot's operands and result in the module for a platform."""
    rows, contracted, columns = shape

    def product(x, y):
        numbers = (((1,), (0,)), ((), ()))
        return lax.dot_general(x, y, numbers, preferred_element_type=result)

    x = hlofront.ShapeDtypeStruct((rows, contracted), dtype)
    y = hlofront.ShapeDtypeStruct((contracted, columns), dtype)
    module = hlofront.jit(product).trace(x, y).lower(lowering_platforms=(platform,)).as_text()
    (types,) = re.findall(r"dot_general.*: (\(.*)", module)
    return re.findall(r"x([a-z]+\d+)>", types)


@pytest.mark.parametrize("dtype", ["int2", "int4", "uint4"])
def test_integers_below_a_byte(dtype):
    """CPUs multiply whole bytes. XLA's kernel of bytes on GPUs gives other numbers."""
    of_bytes = "i8" if dtype.startswith("int") else "ui8"
    assert multiplied_dtypes(dtype, (4, 8, 5), "cpu") == [of_bytes, of_bytes, "i32"]
    assert multiplied_dtypes(dtype, (4, 8, 5), "cuda") == ["i32", "i32", "i32"]
    assert multiplied_dtypes(dtype, (4, 8, 5), "cuda", "float32") == ["f32", "f32", "f32"]


@pytest.mark.parametrize("contracted", [3, 33])
def test_bytes_that_gpus_multiply_wrongly(contracted):
    """XLA's kernel of bytes on GPUs doubled products whose contracted size is no multiple of 4."""
    shape = (4, contracted, 5)
    assert multiplied_dtypes("int8", shape, "cuda") == ["i32", "i32", "i32"]
    assert multiplied_dtypes("int8", shape, "cuda", "float32") == ["f32", "f32", "f32"]
    assert multiplied_dtypes("int8", shape, "cpu") == ["i8", "i8", "i32"]


def test_bytes_that_gpus_multiply():
    assert multiplied_dtypes("int8", (4, 8, 5), "cuda") == ["i8", "i8", "i32"]
    assert multiplied_dtypes("int8", (4, 8, 5), "cuda", "float32") == ["i8", "i8", "i32"]


@pytest.mark.parametrize("dtype", ["int2", "int4", "uint4", "int8", "uint8"])
@pytest.mark.parametrize("shape", [(4, 3, 5), (64, 33, 64), (4, 8, 5)])
def test_products_of_small_integers(dtype, shape):
    rows, contracted, columns = shape
    random = np.random.RandomState(0)
    least, most = (-2, 2) if dtype.startswith("int") else (0, 4)
    x = random.randint(least, most, (rows, contracted))
    y = random.randint(least, most, (contracted, columns))
    numbers = (((1,), (0,)), ((), ()))
    product = lax.dot_general(
        hlofront.numpy.asarray(x).astype(dtype),
        hlofront.numpy.asarray(y).astype(dtype),
        numbers,
        preferred_element_type="int32",
    )
    np.testing.assert_array_equal(product, x @ y)
