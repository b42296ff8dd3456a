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
