"""lineax: linear systems and least squares by many solvers, derivatives, batches."""
# tolerance: 1e-3 1e-4

import jax
import jax.numpy as jnp
import lineax as lx

key = jax.random.key(0)
matrix = jax.random.normal(key, (4, 4)) + 4 * jnp.eye(4)
positive = matrix @ matrix.T + jnp.eye(4)
tall = jax.random.normal(key, (6, 3))
vector = jnp.arange(1.0, 5.0)

for solver in (lx.LU(), lx.QR(), lx.SVD(), lx.GMRES(1e-6, 1e-6), lx.AutoLinearSolver(None)):
    solution = lx.linear_solve(lx.MatrixLinearOperator(matrix), vector, solver)
    print(type(solver).__name__, solution.value, solution.result == lx.RESULTS.successful)
definite = lx.MatrixLinearOperator(positive, lx.positive_semidefinite_tag)
for solver in (lx.Cholesky(), lx.CG(1e-6, 1e-6), lx.AutoLinearSolver(well_posed=None)):
    print(type(solver).__name__, lx.linear_solve(definite, vector, solver).value)
for solver in (lx.QR(), lx.SVD(), lx.LSMR(1e-6, 1e-6)):
    print(
        type(solver).__name__,
        lx.linear_solve(lx.MatrixLinearOperator(tall), jnp.arange(6.0), solver).value,
    )
print("diagonal", lx.linear_solve(lx.DiagonalLinearOperator(vector), jnp.ones(4)).value)
tridiagonal = lx.TridiagonalLinearOperator(vector + 3, jnp.ones(3), -jnp.ones(3))
print("tridiagonal", lx.linear_solve(tridiagonal, vector).value, tridiagonal.as_matrix()[1])
triangular = lx.MatrixLinearOperator(jnp.tril(matrix), lx.lower_triangular_tag)
print("triangular", lx.linear_solve(triangular, vector).value)


def solve(matrix, vector, solver=lx.LU()):
    return lx.linear_solve(lx.MatrixLinearOperator(matrix), vector, solver).value


print("gradient", jax.jit(jax.grad(lambda m: solve(m, vector).sum()))(matrix)[0])
print("forward", jax.jvp(solve, (matrix, vector), (jnp.eye(4), jnp.ones(4)))[1])
print("batched", jax.vmap(solve, (None, 0))(matrix, jnp.eye(4))[0])
print(
    "batched gradient",
    jax.grad(lambda m: jax.vmap(solve, (None, 0))(m, jnp.eye(4)).sum())(matrix)[1],
)
print("least squares", jax.grad(lambda a: solve(a, jnp.arange(6.0), lx.QR()).sum())(tall)[0])
print("hessian", jax.hessian(lambda v: jnp.sum(solve(positive, v) ** 2))(vector)[0])

operator = lx.FunctionLinearOperator(
    lambda x: {"a": 2 * x["a"] + x["b"].sum(), "b": x["b"] * 3 + x["a"]},
    {"a": jax.ShapeDtypeStruct((), jnp.float32), "b": jax.ShapeDtypeStruct((2,), jnp.float32)},
)
print(
    "function", lx.linear_solve(operator, {"a": jnp.array(1.0), "b": jnp.array([2.0, 3.0])}).value
)
jacobian = lx.JacobianLinearOperator(lambda x, _: jnp.tanh(matrix @ x), vector / 10)
print("jacobian", lx.linear_solve(jacobian, vector, lx.GMRES(1e-5, 1e-5)).value)
print(
    "composed",
    ((definite / 0.7) @ definite + lx.IdentityLinearOperator(definite.in_structure())).mv(vector),
)
print("scaled", lx.is_positive_semidefinite(definite / 0.7), lx.is_symmetric(definite.T))
try:
    lx.linear_solve(lx.MatrixLinearOperator(jnp.zeros((2, 2))), jnp.ones(2), lx.LU())
except Exception as error:
    print("refused", "singular" in str(error))
state = lx.LU().init(lx.MatrixLinearOperator(matrix), {})
print("state", lx.linear_solve(lx.MatrixLinearOperator(matrix), vector, lx.LU(), state=state).value)
