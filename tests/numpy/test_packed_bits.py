"""Bits of bytes are NumPy's, in both orders, and computed by masks that are no constants."""

import numpy as np
import pytest

import hlofront
import hlofront.numpy as jnp

BYTES = np.arange(256, dtype=np.uint8)


@pytest.mark.parametrize("bitorder", ["big", "little"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((256,), None), ((256,), 0), ((2, 128), 1), ((4, 8, 8), -2), ((4, 8, 8), 0), ((0, 3), 0)],
)
def test_unpacked_bits_are_those_of_numpy(shape, axis, bitorder):
    x = BYTES[: np.prod(shape)].reshape(shape)
    bits = jnp.unpackbits(x, axis=axis, bitorder=bitorder)
    assert bits.dtype == np.uint8
    np.testing.assert_array_equal(bits, np.unpackbits(x, axis=axis, bitorder=bitorder))


def test_masks_are_no_constants():
    # XLA's CPU code would load the elements of a constant one by one.
    text = hlofront.jit(jnp.unpackbits).lower(BYTES).as_text()
    assert "stablehlo.iota" in text and "dense<[" not in text
