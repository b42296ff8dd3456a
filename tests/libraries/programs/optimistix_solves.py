"""optimistix: roots, fixed points, least squares and minima, with derivatives through them."""
# tolerance: 2e-3 2e-4

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import optimistix as optx


def residuals(y, scale):
    a, b = y["a"], y["b"]
    return {"first": 10 * (b - a**2) * scale, "second": 1 - a}


start = {"a": jnp.array(-0.5), "b": jnp.array(0.8)}
for solver in (
    optx.LevenbergMarquardt(1e-6, 1e-6),
    optx.GaussNewton(1e-6, 1e-6),
    optx.Dogleg(1e-6, 1e-6),
    optx.IndirectLevenbergMarquardt(1e-5, 1e-5),
):
    solution = optx.least_squares(residuals, solver, start, 1.0, max_steps=200)
    print(type(solver).__name__, solution.value, solution.result == optx.RESULTS.successful)


def rosenbrock(y, args):
    return sum(jnp.sum(leaf**2) for leaf in residuals(y, args).values())


for solver in (
    optx.BFGS(1e-5, 1e-5),
    optx.NonlinearCG(1e-4, 1e-4),
    optx.NelderMead(1e-4, 1e-4),
    optx.OptaxMinimiser(optax.adam(0.05), 1e-5, 1e-5),
):
    solution = optx.minimise(rosenbrock, solver, start, 1.0, max_steps=5000, throw=False)
    print(type(solver).__name__, solution.value)


def equations(y, shift):
    return jnp.array([jnp.cos(y[1]) - y[0] + shift, jnp.sin(y[0]) - y[1]])


for solver in (optx.Newton(1e-6, 1e-6), optx.Chord(1e-6, 1e-6), optx.Dogleg(1e-6, 1e-6)):
    print(type(solver).__name__, optx.root_find(equations, solver, jnp.ones(2), 0.1).value)


@eqx.filter_jit
def root(shift):
    return optx.root_find(equations, optx.Newton(1e-6, 1e-6), jnp.ones(2), shift).value


print("forward", jax.jacfwd(root)(0.1), "reverse", jax.jacrev(root)(0.1))
print("batched", jax.vmap(root)(jnp.linspace(0.0, 0.3, 3)))
bisection = optx.Bisection(1e-6, 1e-6)
print(
    "bisection",
    optx.root_find(
        lambda x, a: x**3 - a, bisection, 1.0, 2.0, options={"lower": 0.0, "upper": 3.0}
    ).value,
)
fixed = optx.fixed_point(
    lambda y, a: jnp.cos(y) * a, optx.FixedPointIteration(1e-6, 1e-6), 0.5, 0.9
)
print("fixed point", fixed.value, fixed.stats["num_steps"])
unrolled = optx.RecursiveCheckpointAdjoint()


def through(a, adjoint):
    iteration = optx.FixedPointIteration(1e-6, 1e-6)
    return optx.fixed_point(
        lambda y, a: jnp.cos(y) * a, iteration, 0.5, a, adjoint=adjoint, max_steps=64
    ).value


for adjoint in (optx.ImplicitAdjoint(), unrolled):
    print(type(adjoint).__name__, jax.grad(through)(0.9, adjoint))
try:
    optx.root_find(lambda y, _: y**2 + 1, optx.Newton(1e-6, 1e-6), jnp.array(0.5), max_steps=5)
except Exception as error:
    print("refused", "maximum number of steps" in str(error))
