"""What generators refuse: XLA ends the process on some of it."""

import numpy as np
import pytest

import hlofront
from hlofront import lax

KEY = np.arange(4, dtype=np.uint32)
zero, one = np.float32(0), np.float32(1)


@pytest.mark.parametrize(
    ("call", "class_", "says"),
    [
        (lambda: lax.rng_bit_generator(KEY[:2], (2,)), TypeError, r"uint32\[4\] .* uint32\[2\]"),
        (lambda: lax.rng_bit_generator(KEY.astype(np.int32), (2,)), TypeError, "int32"),
        (lambda: lax.rng_bit_generator(KEY, (2,), np.float32), TypeError, "unsupported dtype"),
        (lambda: lax.rng_bit_generator(KEY, (2,), bool), TypeError, "unsupported dtype bool"),
        (lambda: lax.rng_bit_generator(KEY, (-1,)), TypeError, "nonnegative"),
        (lambda: lax.rng_bit_generator(KEY, (2,), algorithm=7), ValueError, "no algorithm 7"),
        (lambda: lax.rng_bit_generator(KEY, (2,), algorithm="MT"), ValueError, "RNG_PHILOX"),
        (lambda: lax.rng_uniform(np.zeros(2), one, (3,)), ValueError, "must be scalars"),
        (lambda: lax.rng_uniform(zero, np.int32(1), (3,)), ValueError, "identical dtypes"),
        (lambda: lax.rng_uniform(False, True, (3,)), TypeError, "does not accept dtype bool"),
        (lambda: lax.rng_uniform(np.int8(0), np.int8(1), (3,)), TypeError, "int8"),
        (lambda: lax.rng_uniform(1j, 2j, (3,)), TypeError, "complex64"),
        (lambda: lax.rng_uniform(zero, one, (-3,)), TypeError, "nonnegative"),
    ],
)
def test_refused(call, class_, says):
    with pytest.raises(class_, match=says):
        call()


def test_the_state_goes_on():
    key, first = lax.rng_bit_generator(KEY, (4,))
    _, second = lax.rng_bit_generator(key, (4,))
    _, again = lax.rng_bit_generator(KEY, (4,), algorithm="RNG_DEFAULT")
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, again)


def test_keys_of_64_bits():
    with hlofront.enable_x64(True):
        key, bits = lax.rng_bit_generator(KEY[:2].astype(np.uint64), (2,), np.uint64)
        assert key.dtype == bits.dtype == np.uint64
