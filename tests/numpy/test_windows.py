"""Windows, against NumPy."""

import ml_dtypes
import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.test_util import check_grads

NAMES = ("bartlett", "blackman", "hamming", "hanning")


def check(found, wanted, rtol=1e-5, atol=2e-6):
    assert found.shape == np.shape(wanted)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", NAMES)
def test_windows(name):
    ours, reference = getattr(jnp, name), getattr(np, name)
    for size in (0, 1, 2, 5, 8):
        found = ours(size)
        assert found.dtype == np.float32 and not found.weak_type
        check(found, reference(size))
    with jax.enable_x64(True):
        found = ours(9)
        assert found.dtype == np.float64
        check(found, reference(9), 1e-13, 1e-14)


def test_sizes_are_cut_off():
    check(jnp.bartlett(4.9), np.bartlett(4))
    check(jnp.bartlett(jnp.array(4)), np.bartlett(4))
    for size in (-1, None, [3], 2j):
        with pytest.raises(TypeError):
            jnp.hanning(size)


def test_sizes_are_not_traced():
    with pytest.raises(jax.errors.ConcretizationTypeError, match=r"argument M of jnp\.hamming"):
        jax.jit(jnp.hamming)(3)
    with pytest.raises(jax.errors.ConcretizationTypeError, match=r"jnp\.kaiser"):
        jax.jit(jnp.kaiser)(3, 1.0)
    check(jax.jit(jnp.hamming, static_argnums=0)(3), np.hamming(3))


def test_kaiser():
    for beta in (0.0, 2.5, 14, True):
        check(jnp.kaiser(6, beta), np.kaiser(6, beta))
    check(jnp.kaiser(1, 3.0), [1])
    check(jnp.kaiser(0, 3.0), np.zeros(0))
    # One shape for each point.
    betas = np.float32([0, 1, 2])
    check(jnp.kaiser(3, betas), [np.kaiser(3, beta)[i] for i, beta in enumerate(betas)])
    assert jnp.kaiser(3, ml_dtypes.bfloat16(2)).dtype == np.float32
    with jax.enable_x64(True):
        check(jnp.kaiser(6, 2.5), np.kaiser(6, 2.5), 1e-12)
    with pytest.raises(ValueError):
        jnp.kaiser(5, 1j)
    with pytest.raises(TypeError, match="list"):
        jnp.kaiser(5, [1.0])


def test_transformed_kaiser():
    betas = np.array([0.5, 2], np.float32)
    check(jax.vmap(lambda beta: jnp.kaiser(5, beta))(betas), [np.kaiser(5, b) for b in betas])
    window = jax.jit(lambda beta: jnp.kaiser(5, beta))
    check_grads(window, (np.float32(1.5),), order=1, rtol=2e-2)
