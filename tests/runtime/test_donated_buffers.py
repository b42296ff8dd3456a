"""Which donated buffers a result can use, and so raise no warning."""

import numpy as np
import pytest

import hlofront
import hlofront.numpy as jnp


@pytest.mark.parametrize("dtype", ["int32", "int8", "complex64"])
def test_a_donated_buffer_may_hold_a_result_of_another_type_and_as_many_elements(dtype):
    x = hlofront.jit(lambda x: x)(np.ones((2, 3), np.float32))
    f = hlofront.jit(lambda x: jnp.ravel(x).astype(dtype), donate_argnums=0)
    assert f(x).tolist() == [1] * 6  # A warning would be an error.
