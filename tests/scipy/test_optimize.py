"""Minima of functions that are hard for searches along lines."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.scipy.optimize import minimize

LIMITED = "l-bfgs-experimental-do-not-rely-on-this"


def rosenbrock(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def test_rosenbrock():
    for method in ("BFGS", LIMITED):
        found = minimize(rosenbrock, jnp.array([-1.2, 1.0, 0.5]), method=method)
        assert found.success
        np.testing.assert_allclose(found.x, 1, atol=2e-3)
        assert (found.hess_inv is None) == (method == LIMITED)


def test_what_stops_it():
    found = minimize(rosenbrock, jnp.array([-1.2, 1.0]), method="BFGS", options={"maxiter": 3})
    assert (found.status, found.nit, bool(found.success)) == (1, 3, False)
    assert minimize(lambda x: jnp.sum(jnp.log(x)), jnp.array([-1.0]), method="BFGS").status == 3


def test_transformed():
    def f(to):
        return minimize(lambda x, to: jnp.sum((x - to) ** 4), to * 0, (to,), method="BFGS").x

    targets = jnp.array([[1.0, 2.0], [-3.0, 0.5]])
    np.testing.assert_allclose(jax.jit(jax.vmap(f))(targets), targets, atol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["BFGS", LIMITED])
def test_steep_functions(method):
    """Rounding errors of the first step outweigh the rest of BFGS's inverse: it begins anew."""
    for scale, start in ((1e4, np.ones(2)), (1e4, np.arange(1.0, 6.0)), (1e8, np.ones(3))):
        fun = lambda x, scale=scale: jnp.mean((scale * x) ** 2)
        found = minimize(fun, jnp.asarray(start, jnp.float32), method=method)
        assert found.success and found.status == 0
        np.testing.assert_allclose(found.x, 0 * start, atol=2e-8)
        np.testing.assert_allclose(found.fun, fun(found.x), rtol=0.3, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["BFGS", LIMITED])
def test_what_has_no_minimum_is_no_success(method):
    start = np.float32([1.0, 2.0])
    nowhere = minimize(lambda x: jnp.nan * x.sum(), start, method=method)
    np.testing.assert_array_equal(nowhere.x, start)
    endless = minimize(lambda x: -jnp.exp(x).sum(), start, method=method)
    for found in (nowhere, endless):
        assert not found.success and found.status in (3, 5)
    # Without a step there is the count of steps to stop at.
    stopped = minimize(lambda x: jnp.nan * x.sum(), start, method=method, options={"maxiter": 1})
    assert stopped.status == 1 and not stopped.success


def test_lbfgs_of_complex_numbers():
    def distance(x):
        return jnp.sum(jnp.arange(1, 4) * jnp.abs(x - (1 + 2j)) ** 2)

    found = minimize(distance, jnp.full(3, 0.5 + 0j), method=LIMITED)
    assert found.success
    np.testing.assert_allclose(found.x, 1 + 2j, rtol=1e-5)
    np.testing.assert_allclose(found.jac, jax.grad(distance)(found.x), atol=1e-5)
