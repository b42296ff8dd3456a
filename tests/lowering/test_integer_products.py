"""Products of small integers and of two dtypes: what each platform's compiler multiplies."""

import re

import numpy as np
import pytest

import hlofront
from hlofront import lax


def multiplied_dtypes(dtype, shape, platform, result="int32", other=None, precision=None):
    """Return the element types of a dot's operands and result in the module for a platform."""
    rows, contracted, columns = shape

    def product(x, y):
        numbers = (((1,), (0,)), ((), ()))
        return lax.dot_general(x, y, numbers, precision=precision, preferred_element_type=result)

    x = hlofront.ShapeDtypeStruct((rows, contracted), dtype)
    y = hlofront.ShapeDtypeStruct((contracted, columns), other or dtype)
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


@pytest.mark.parametrize("precision", [None, "BF16_BF16_F32"])
def test_operands_of_two_dtypes(precision):
    """TPUs take them as they are, as weights of int8 and activations of bfloat16."""
    shape = (4, 8, 5)
    mixed = ("float32", shape, "tpu", "float32", "bfloat16", precision)
    assert multiplied_dtypes(*mixed) == ["f32", "bf16", "f32"]
    on_gpus = ("float32", shape, "cuda", "float32", "bfloat16", precision)
    assert multiplied_dtypes(*on_gpus) == ["f32", "f32", "f32"]


def test_integers_by_floats_on_tpus():
    shape = (4, 8, 5)
    assert multiplied_dtypes("int8", shape, "tpu", "bfloat16", "bfloat16") == ["i8", "bf16", "bf16"]
    assert multiplied_dtypes("int4", shape, "tpu") == ["i4", "i4", "i32"]
    with hlofront.enable_x64(True):
        wide = multiplied_dtypes("int8", shape, "tpu", "float64", "float64")
        assert wide == ["f64", "f64", "f64"], "XLA's TPU compiler refuses other pairs of 64 bits"


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
