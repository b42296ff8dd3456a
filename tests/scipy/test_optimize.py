"""Minima of functions that are hard for searches along lines."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.scipy.optimize import minimize

LIMITED = "l-bfgs-experimental-do-not-rely-on-this"


def rosenbrock(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@pytest.mark.parametrize("method", ["BFGS", LIMITED])
def test_rosenbrock(method):
    with jax.enable_x64(True):
        found = minimize(rosenbrock, jnp.array([1.5, 1.5]), method=method)
    assert found.success
    np.testing.assert_allclose(found.x, 1, atol=1e-6)
    np.testing.assert_allclose(found.fun, 0, atol=1e-10)
    assert (found.hess_inv is None) == (method == LIMITED)


@pytest.mark.long
def test_what_stops_it():
    start = jnp.array([-1.2, 1.0])

    def stopped(method, **options):
        found = minimize(rosenbrock, start, method=method, options=options)
        return int(found.status), int(found.nit), bool(found.success)

    assert stopped("BFGS", maxiter=3) == (1, 3, False)
    assert stopped("BFGS", maxiter=0) == (1, 0, False)
    assert stopped(LIMITED, maxiter=3) == (1, 4, False)
    assert stopped(LIMITED, maxfun=5)[0] == 2
    assert stopped(LIMITED, maxgrad=5)[0] == 3
    assert stopped(LIMITED, ftol=1e3) == (4, 1, False)
    # An interval with a good step becomes too narrow, or no step is good.
    far = jnp.array([-1.2, 1.0, 0.5])
    assert minimize(rosenbrock, far, method="BFGS").status == 3
    assert minimize(jnp.sum, start, method="BFGS").status == 5
    assert minimize(jnp.sum, start, method=LIMITED).status == 5


def test_transformed():
    def f(to):
        return minimize(lambda x, to: jnp.sum((x - to) ** 4), to * 0, (to,), method="BFGS").x

    targets = jnp.array([[1.0, 2.0], [-3.0, 0.5]])
    np.testing.assert_allclose(jax.jit(jax.vmap(f))(targets), targets, atol=0.05)


@pytest.mark.parametrize("method", ["BFGS", LIMITED])
def test_what_has_no_minimum_is_no_success(method):
    start = np.float32([1.0, 2.0])
    for function in (lambda x: jnp.nan * x.sum(), lambda x: -jnp.exp(x).sum()):
        found = minimize(function, start, method=method)
        assert not found.success and found.status in (3, 5)


def test_lbfgs_of_complex_numbers():
    def distance(x):
        return jnp.sum(jnp.arange(1, 4) * jnp.abs(x - (1 + 2j)) ** 2)

    found = minimize(distance, jnp.full(3, 0.5 + 0j), method=LIMITED)
    assert found.success
    np.testing.assert_allclose(found.x, 1 + 2j, rtol=1e-5)
    np.testing.assert_allclose(found.jac, jax.grad(distance)(found.x), atol=1e-5)
