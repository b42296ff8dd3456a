"""Packing, unpacking and stochastic rounding in kernels, in all modes and in Mosaic."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.experimental import pallas as pl
from hlofront.experimental.pallas import tpu as pltpu
from tests.pallas.test_mosaic import map_elements

MODES = [True, pltpu.InterpretParams()]
modes = pytest.mark.parametrize("interpret", MODES, ids=["interpreted", "modeled"])
BF16, F32, U32 = jnp.bfloat16, jnp.float32, jnp.uint32


def run(function, *args, interpret):
    """The result of a kernel that computes a function of its inputs."""

    def kernel(*refs):
        refs[-1][...] = function(*[ref[...] for ref in refs[:-1]])

    out = jax.eval_shape(function, *args)
    return np.asarray(pl.pallas_call(kernel, out, interpret=interpret)(*args))


def packed(*xs, dtype):
    return pltpu.pack_elementwise(xs, packed_dtype=dtype)


def part(x, index, dtype, wide):
    return pltpu.unpack_elementwise(x, index=index, packed_dtype=dtype, unpacked_dtype=wide)


@modes
def test_floats_are_packed_as_bfloat16_the_first_in_the_lower_half(interpret):
    x, y = np.float32([[1.0, -2.5]]), np.float32([[0.1, 3.0]])
    words = run(lambda x, y: packed(x, y, dtype=BF16), x, y, interpret=interpret)
    halves = words.view(np.uint16).reshape(1, 2, 2)
    for index, source in enumerate((x, y)):
        np.testing.assert_array_equal(halves[..., index].view(BF16), source.astype(BF16))
        back = run(lambda w, i=index: part(w, i, BF16, F32), words, interpret=interpret)
        np.testing.assert_array_equal(back, source.astype(BF16).astype(np.float32))


@modes
@pytest.mark.parametrize(
    ("narrow", "wide"), [("int8", "int16"), ("uint8", "int32"), ("int4", "int8"), ("int2", "int8")]
)
def test_integers_lose_their_upper_bits_and_get_their_sign_back(narrow, wide, interpret):
    count = jnp.iinfo(wide).bits // jnp.iinfo(narrow).bits
    xs = [np.arange(-8, 8, dtype=wide).reshape(2, 8) * (n + 3) for n in range(count)]
    words = run(lambda *xs: packed(*xs, dtype=narrow), *xs, interpret=interpret)
    for index, x in enumerate(xs):
        back = run(lambda w, i=index: part(w, i, narrow, wide), words, interpret=interpret)
        bits = jnp.iinfo(narrow).bits
        lower = x.astype(np.int64) & ((1 << bits) - 1)
        sign = 0 if narrow[0] == "u" else (lower >> (bits - 1)) << bits
        np.testing.assert_array_equal(back, lower - sign)


@modes
def test_numbers_of_six_bits_are_split_and_joined(interpret):
    x = np.arange(64, dtype=np.int8).reshape(2, 32)
    two, four = (
        run(lambda x, n=n: pltpu.pack_fp6(x)[n].astype(jnp.int8), x, interpret=interpret)
        for n in (0, 1)
    )
    np.testing.assert_array_equal(two & 3, x >> 4)
    np.testing.assert_array_equal(four & 15, x & 15)
    back = run(lambda x: pltpu.unpack_fp6(*pltpu.pack_fp6(x)), x, interpret=interpret)
    np.testing.assert_array_equal(back, x)


@modes
def test_a_number_is_rounded_up_as_often_as_it_is_close_to_the_upper_one(interpret):
    # Three quarters of the way from 1 to the next bfloat16, 1 + 2**-7.
    x = np.full((4, 256), 1 + 0.75 * 2**-7, np.float32)
    bits = (np.arange(1024, dtype=np.uint32) * 64).reshape(x.shape)
    rounded = run(
        lambda x, bits: pltpu.stochastic_round(x, bits, target_dtype=BF16).astype(F32),
        x,
        bits,
        interpret=interpret,
    )
    assert (rounded > 1).mean() == 0.75
    assert set(np.unique(rounded)) == {1, 1 + 2**-7}


def test_an_infinity_is_not_rounded_to_nan():
    x = np.float32([np.inf, -np.inf])
    bits = np.full(2, 2**32 - 1, np.uint32)
    rounded = run(
        lambda x, b: pltpu.stochastic_round(x, b, target_dtype=BF16), x, bits, interpret=True
    )
    np.testing.assert_array_equal(rounded.astype(np.float32), x)


def array(dtype):
    return jax.ShapeDtypeStruct((32, 128), dtype)


@pytest.mark.parametrize(
    ("function", "dtypes", "expected"),
    [
        (lambda x: packed(x, x, dtype=BF16), [F32], "tpu.pack_elementwise"),
        (lambda x: part(x, 1, "int8", "int32"), [U32], "tpu.unpack_elementwise"),
        (lambda x: part(x, 1, "uint8", "int32"), [U32], "arith.andi"),
        (lambda x, b: pltpu.stochastic_round(x, b, target_dtype=BF16), [F32, U32], "stochastic_co"),
    ],
)
def test_it_becomes_an_operation_of_mosaic(function, dtypes, expected):
    assert expected in map_elements(function, *map(array, dtypes))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: packed(x, dtype=BF16), r"packing factor \(2\), got 1"),
        (lambda x: packed(x, x, dtype="int16"), "Only f32 -> bf16 and int -> int"),
        (lambda x: packed(x, x[:1], dtype=BF16), "must have the same shape"),
        (lambda x: part(x, 2, "int16", "int32"), "Index 2 is out of bounds for packing factor 2"),
        (lambda x: part(x, 0, "int8", "int16"), "bitwidth of `x` must match"),
        (
            lambda x: pltpu.stochastic_round(x, x, target_dtype=BF16),
            "must be uint32, but got float",
        ),
        (lambda x: pltpu.split_bits(x, (4,)), "Expected 8-bit array, got float32"),
        (lambda x: pltpu.join_bits(), "At least one bit segment"),
    ],
)
def test_what_does_not_fit_is_refused(function, message):
    with pytest.raises(ValueError, match=message):
        run(function, np.zeros((2, 4), np.float32), interpret=True)
