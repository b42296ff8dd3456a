"""Systems solved by their operator, against dense solutions; derivatives."""

import numpy as np
import pytest

import hlofront as jax
from hlofront.scipy.sparse import linalg
from hlofront.test_util import check_grads

A = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)
P = A @ A.T + 6 * np.eye(6, dtype=np.float32)
B = np.random.default_rng(1).normal(size=6).astype(np.float32)


@pytest.mark.parametrize("solver", [linalg.cg, linalg.bicgstab, linalg.gmres])
def test_solutions(solver):
    a = P if solver is linalg.cg else P + np.triu(A, 1)
    expected = np.linalg.solve(a, B)
    np.testing.assert_allclose(solver(a, B, tol=1e-6)[0], expected, atol=1e-4)
    f = jax.jit(lambda a, b: solver(a @ a.T if solver is linalg.cg else a, b, tol=1e-7)[0])
    check_grads(
        f, (np.linalg.cholesky(P) if solver is linalg.cg else a, B), 1, rtol=3e-2, atol=3e-2
    )
    mapped = jax.vmap(lambda b: solver(a, b, tol=1e-6)[0])(np.stack([B, 2 * B]))
    np.testing.assert_allclose(mapped[1], 2 * expected, atol=1e-4)


def test_gmres_gives_up_on_nothing():
    singular = np.diag([1.0, 2.0, 0.0]).astype(np.float32)
    for method in ("batched", "incremental"):
        x, info = linalg.gmres(singular, np.float32([1, 2, 0]), solve_method=method, maxiter=2)
        assert info == 0
        np.testing.assert_allclose(x[:2], 1, atol=1e-5)


@pytest.mark.parametrize("solver", [linalg.bicgstab, linalg.gmres])
def test_the_preconditioner_of_a_derivative_is_transposed(solver):
    # So far from symmetric that few steps are enough only with the right preconditioner.
    a = np.diag(np.float32([1, 10, 100, 1000, 1e4, 1e5])) @ (np.eye(6) + np.triu(A, 1) / 4)
    a = a.astype(np.float32)
    inverse = np.linalg.inv(a.astype(np.float64)).astype(np.float32)
    if solver is linalg.gmres:
        options = {"M": lambda x: inverse @ x, "restart": 2}
    else:
        options = {"M": inverse}
    gradient = jax.grad(lambda b: solver(a, b, maxiter=2, tol=1e-6, **options)[0].sum())
    wanted = np.linalg.solve(a.T.astype(np.float64), np.ones(6))
    np.testing.assert_allclose(jax.jit(gradient)(B), wanted, rtol=1e-3, atol=1e-4)


def test_a_preconditioner_that_cannot_be_transposed_stays_as_it_is():
    def halved(x):
        # A loop of unknown length.
        return jax.lax.while_loop(lambda y: False, lambda y: y, x) / 2

    a = (P + np.triu(A, 1)).astype(np.float32)
    found = jax.grad(lambda b: linalg.bicgstab(a, b, M=halved, tol=1e-6)[0].sum())(B)
    np.testing.assert_allclose(found, np.linalg.solve(a.T, np.ones(6)), rtol=1e-3)


@pytest.mark.parametrize(("preconditioner", "norms"), [(None, 0), (lambda x: x / 2, 1)])
def test_conjugate_gradients_compute_the_norm_once(preconditioner, norms):
    """The condition of the loop computes a norm only if a preconditioner makes it another one."""
    jaxpr = jax.make_jaxpr(lambda b: linalg.cg(P, b, M=preconditioner)[0])(B)
    (solve,) = (e for e in jaxpr.eqns if e.primitive.name == "custom_linear_solve")
    inner = solve.params["jaxprs"].solve
    (loop,) = (e for e in inner.eqns if e.primitive.name == "while")
    assert str(loop.params["cond_jaxpr"]).count("dot_general") == norms
