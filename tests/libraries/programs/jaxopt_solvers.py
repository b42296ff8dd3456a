"""jaxopt: minimizers, roots, least squares and projections, and derivatives through solutions."""
# tolerance: 2e-3 1e-4

import jax
import jax.numpy as jnp
import jaxopt
from jaxopt import projection, prox

matrix = jax.random.normal(jax.random.key(0), (20, 5))
truth = jnp.array([1.0, -2.0, 0.0, 0.5, 0.0])
targets = matrix @ truth


def ridge(w, regularization):
    return 0.5 * jnp.mean((matrix @ w - targets) ** 2) + 0.5 * regularization * jnp.sum(w**2)


def rosenbrock(x):
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


start = jnp.zeros(5)
for solver in (
    jaxopt.GradientDescent(ridge, maxiter=500),
    jaxopt.LBFGS(ridge, maxiter=50),
    jaxopt.BFGS(ridge, maxiter=50),
    jaxopt.NonlinearCG(ridge, maxiter=100),
):
    solution = solver.run(start, regularization=0.1).params
    print(type(solver).__name__, solution)

solve = jax.jit(lambda r: jaxopt.LBFGS(ridge, maxiter=100, tol=1e-6).run(start, r).params)
print("sensitivity", jax.jacobian(solve)(0.1))
lasso = jaxopt.ProximalGradient(
    jaxopt.objective.least_squares, prox.prox_lasso, maxiter=500, tol=1e-5
)
print("lasso", lasso.run(start, hyperparams_prox=0.1, data=(matrix, targets)).params)
bounded = jaxopt.ProjectedGradient(ridge, projection.projection_box, maxiter=300)
print("box", bounded.run(start, hyperparams_proj=(-0.5, 0.5), regularization=0.1).params)
print("rosenbrock", jaxopt.LBFGS(rosenbrock, maxiter=200).run(jnp.zeros(3)).params)
gauss = jaxopt.LevenbergMarquardt(lambda w: jnp.tanh(matrix @ w) - jnp.tanh(targets))
print("levenberg", gauss.run(jnp.ones(5) * 0.1).params)
print("bisection", jaxopt.Bisection(lambda x: x**3 - x - 2, lower=1, upper=2).run().params)


def cube_root(y):
    iteration = jaxopt.FixedPointIteration(lambda x, y: (2 * x + y / x**2) / 3, maxiter=50)
    return iteration.run(1.0, y).params


print("fixed point", cube_root(8.0), jax.grad(cube_root)(8.0))
problem = jaxopt.OSQP()
result = problem.run(
    params_obj=(jnp.eye(2) * 2, jnp.array([-2.0, -5.0])),
    params_ineq=(jnp.array([[1.0, 1.0]]), jnp.array([2.0])),
)
print("osqp", result.params.primal)
print("simplex", projection.projection_simplex(jnp.array([0.3, 1.2, -0.4])))
print("ball", projection.projection_l1_ball(jnp.array([3.0, -1.0, 0.5]), 2.0))
isotonic = jaxopt.isotonic.isotonic_l2_pav(jnp.array([3.0, 1.0, 2.0, 0.5]))
print("isotonic", isotonic)
