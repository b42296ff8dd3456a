"""Programs that XLA's older emitters write wrongly are compiled by the present ones."""

import numpy as np

import hlofront as jax
from tests.support import quick_code


def test_padding_of_two_bits():
    x = np.ones(3, jax.numpy.dtype("int2"))
    with quick_code.compiling_quickly():
        padded = jax.jit(lambda x: jax.lax.pad(x, x[0] * 0, [(1, 2, 0)]))(x)
    assert padded.tolist() == [0, 1, 1, 1, 0, 0]
