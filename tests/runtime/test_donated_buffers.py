"""Which arguments are donated, and which donated buffers a result can use without a warning."""

import numpy as np
import pytest

import hlofront
import hlofront.numpy as jnp


@pytest.mark.parametrize("dtype", ["int32", "int8", "complex64"])
def test_a_donated_buffer_may_hold_a_result_of_another_type_and_as_many_elements(dtype):
    x = hlofront.jit(lambda x: x)(np.ones((2, 3), np.float32))
    f = hlofront.jit(lambda x: jnp.ravel(x).astype(dtype), donate_argnums=0)
    assert f(x).tolist() == [1] * 6  # A warning would be an error.


def test_vmap_donates_the_batches_of_donated_arguments():
    f = hlofront.jit(lambda x, y: x * y, donate_argnums=0)
    x, y = jnp.ones((4, 3)), jnp.ones(3)
    hlofront.vmap(f, (0, None))(x, y)
    assert x.is_deleted() and not y.is_deleted()


def test_derivatives_do_not_donate_what_their_backward_pass_may_need():
    square = hlofront.jit(lambda x: x * x, donate_argnums=0)
    x = jnp.arange(3.0)
    _, backward = hlofront.vjp(lambda x: square(jnp.exp(x)), x)
    assert backward(jnp.ones(3))[0].shape == (3,)
    assert not x.is_deleted()


@pytest.mark.parametrize("options", [{"donate_argnums": 0}, {"donate_argnames": ("y",)}])
@pytest.mark.parametrize("donates_first", [True, False])
def test_a_function_that_is_jitted_with_donation_and_without(options, donates_first):
    def f(x, *, y):
        return x + 1, y + 1

    jitted = [hlofront.jit(f, **options), hlofront.jit(f)]
    for donates in (donates_first, not donates_first):
        x, y = jnp.arange(3.0), jnp.arange(4.0)
        jitted[0 if donates else 1](x, y=y)
        assert x.is_deleted() == (donates and "donate_argnums" in options)
        assert y.is_deleted() == (donates and "donate_argnames" in options)
