"""Fourier transforms: against NumPy, back and forth, derivatives."""

import numpy as np
import pytest

import hlofront as jax
from hlofront import numpy as jnp
from hlofront.test_util import check_grads


def draw(*shape, is_complex=False):
    generator = np.random.default_rng(shape)
    values = generator.normal(size=shape)
    return values + 1j * generator.normal(size=shape) if is_complex else values


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
def test_inverses(norm):
    x, z = draw(3, 5), draw(3, 5, is_complex=True)
    with jax.enable_x64(True):
        for there, back, values in (
            (jnp.fft.fft, jnp.fft.ifft, z),
            (jnp.fft.fft2, jnp.fft.ifft2, z),
            (jnp.fft.fftn, jnp.fft.ifftn, z),
        ):
            np.testing.assert_allclose(back(there(values, norm=norm), norm=norm), values)
        half = jnp.fft.rfft(x, norm=norm)
        np.testing.assert_allclose(jnp.fft.irfft(half, 5, norm=norm), x)
        half = jnp.fft.rfftn(x, norm=norm)
        np.testing.assert_allclose(jnp.fft.irfftn(half, x.shape, norm=norm), x)
        half = jnp.fft.ihfft(x, norm=norm)
        np.testing.assert_allclose(jnp.fft.hfft(half, 5, norm=norm), x)


def test_more_axes_than_xla_transforms_at_once():
    x = draw(2, 3, 2, 2, 3)
    with jax.enable_x64(True):
        np.testing.assert_allclose(jnp.fft.fftn(x), np.fft.fftn(x), atol=1e-12)
        axes = (4, 0, 3, 1)
        np.testing.assert_allclose(
            jnp.fft.rfftn(x, axes=axes), np.fft.rfftn(x, axes=axes), atol=1e-12
        )
        z = draw(2, 3, 2, 2, 3, is_complex=True)
        np.testing.assert_allclose(
            jnp.fft.irfftn(z, axes=axes), np.fft.irfftn(z, axes=axes), atol=1e-12
        )


def test_nothing():
    assert jnp.fft.fft(np.zeros((0, 4), np.float32)).shape == (0, 4)
    assert jnp.fft.fft(np.zeros((4, 0), np.float32)).shape == (4, 0)
    assert jnp.fft.irfft(np.zeros((0, 3), np.complex64)).shape == (0, 4)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "hfft", "fft2", "rfftn"])
def test_integers_of_64_bits_keep_their_digits(name):
    x = np.full((2, 4), 2**40 + 1)
    x[:, 1] = 0
    with jax.enable_x64(True):
        found = getattr(jnp.fft, name)(x)
        np.testing.assert_allclose(found, getattr(np.fft, name)(x), rtol=1e-15)
        assert getattr(jnp.fft, name)(x.astype(np.int32)).dtype.itemsize == found.dtype.itemsize / 2


def test_derivatives():
    def energies(x, z):
        parts = (
            jnp.fft.rfft(x),
            jnp.fft.rfft(x, 6),
            jnp.fft.rfft2(x),
            jnp.fft.irfft(z),
            jnp.fft.irfft(z, 5),
            jnp.fft.ifftn(z, norm="ortho"),
        )
        return [(jnp.abs(part) ** 4).sum() for part in parts]

    with jax.enable_x64(True):
        check_grads(energies, (draw(2, 5), draw(2, 3, is_complex=True)), order=2)


def test_batches():
    x = draw(3, 4, 5)
    with jax.enable_x64(True):
        for axis in (0, 1, 2):
            found = jax.vmap(jnp.fft.rfft2, axis, axis)(x)
            wanted = np.moveaxis(np.fft.rfft2(np.moveaxis(x, axis, 0)), 0, axis)
            np.testing.assert_allclose(found, wanted, atol=1e-12)
