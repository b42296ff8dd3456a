"""Minima of functions that are hard for searches along lines."""

import numpy as np

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
