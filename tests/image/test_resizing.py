"""Images in other sizes: sums, constants, derivatives, transformations."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import image
from hlofront.test_util import check_grads

X = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)


@pytest.mark.parametrize("method", sorted({m.name for m in image.ResizeMethod}))
def test_constants_stay(method):
    method = image.ResizeMethod[method]
    found = image.resize(jnp.ones((4, 6)), (7, 3), method)
    np.testing.assert_allclose(found, np.ones((7, 3)), atol=1e-5)


def test_names_of_one_method():
    x = jnp.arange(12.0).reshape(3, 4)
    given = image.resize(x, (2, 2), "bicubic-pytorch")
    np.testing.assert_array_equal(given, image.resize(x, (2, 2), "cubic-pytorch"))


def test_area_is_the_mean_of_blocks():
    expected = X.reshape(2, 2, 3, 2).mean((1, 3))
    np.testing.assert_allclose(image.resize(X, (2, 3), "area"), expected, atol=1e-6)


def test_transformed():
    mapped = jax.vmap(lambda x: image.resize(x, (3,), "cubic"))(X)
    np.testing.assert_allclose(mapped, image.resize(X, (4, 3), "cubic"), atol=1e-5)

    def f(x, scale, move):
        return image.scale_and_translate(x, (4, 5), (1,), scale, move, "cubic")

    check_grads(jax.jit(f), (X, jnp.array([0.8]), jnp.array([0.3])), order=1, rtol=3e-2, atol=3e-2)


@pytest.mark.parametrize("method", ["linear", "cubic", "lanczos3"])
def test_smaller_images_have_a_part_of_each_element(method):
    weights = image.resize(jnp.eye(32), (4, 32), method)
    assert (np.abs(weights).sum(axis=0) > 0.01).all()
    sampled = image.resize(jnp.eye(32), (4, 32), method, antialias=False)
    assert (np.abs(sampled).sum(axis=0) == 0).any()
