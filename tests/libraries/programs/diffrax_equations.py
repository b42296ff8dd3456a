"""diffrax: ordinary, stiff and stochastic differential equations, events, and gradients."""
# tolerance: 2e-3 2e-4

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx


def lotka_volterra(t, y, args):
    prey, predators = y
    a, b, c, d = args
    return jnp.array([a * prey - b * prey * predators, d * prey * predators - c * predators])


args, start = (1.0, 0.4, 0.9, 0.3), jnp.array([2.0, 1.0])
term = dfx.ODETerm(lotka_volterra)
saves = dfx.SaveAt(ts=jnp.linspace(0.0, 5.0, 4))
controller = dfx.PIDController(rtol=1e-4, atol=1e-6)
for solver in (dfx.Tsit5(), dfx.Dopri5(), dfx.Heun(), dfx.Kvaerno3()):
    solution = dfx.diffeqsolve(
        term, solver, 0.0, 5.0, 0.05, start, args, saveat=saves, stepsize_controller=controller
    )
    print(type(solver).__name__, solution.ys[-1], solution.result == dfx.RESULTS.successful)
fixed = dfx.diffeqsolve(
    term, dfx.Euler(), 0.0, 1.0, 0.1, start, args, saveat=dfx.SaveAt(steps=True)
)
print("steps", fixed.stats["num_steps"], fixed.ys[9])
dense = dfx.diffeqsolve(
    term, dfx.Tsit5(), 0.0, 2.0, 0.1, start, args, saveat=dfx.SaveAt(dense=True)
)
print("dense", dense.evaluate(0.77), dense.derivative(0.77))


def final(y, adjoint):
    return (
        dfx.diffeqsolve(
            term,
            dfx.Tsit5(),
            0.0,
            2.0,
            0.1,
            y,
            args,
            adjoint=adjoint,
            max_steps=64,
            stepsize_controller=controller,
        )
        .ys[0]
        .sum()
    )


for adjoint in (dfx.RecursiveCheckpointAdjoint(), dfx.DirectAdjoint(), dfx.BacksolveAdjoint()):
    print(type(adjoint).__name__, jax.grad(final)(start, adjoint))
print("forward", jax.jvp(lambda y: final(y, dfx.ForwardMode()), (start,), (jnp.ones(2),))[1])
print("batched", jax.vmap(lambda y: final(y, dfx.DirectAdjoint()))(jnp.stack([start, 2 * start])))

event = dfx.Event(lambda t, y, args, **kw: y[0] - 1.0, root_finder=optx.Newton(1e-5, 1e-5))
falling = dfx.diffeqsolve(
    dfx.ODETerm(lambda t, y, _: -y), dfx.Tsit5(), 0.0, 10.0, 0.1, jnp.array([3.0]), event=event
)
print("event", falling.ts[-1], jnp.log(3.0))

motion = dfx.VirtualBrownianTree(0.0, 1.0, tol=1e-3, shape=(2,), key=jax.random.key(0))
noise = dfx.ControlTerm(lambda t, y, _: jnp.diag(0.2 * y), motion)
drift = dfx.ODETerm(lambda t, y, _: -y)
for solver in (dfx.EulerHeun(), dfx.ItoMilstein(), dfx.Heun()):
    path = dfx.diffeqsolve(dfx.MultiTerm(drift, noise), solver, 0.0, 1.0, 0.05, start)
    print(type(solver).__name__, path.ys[-1])

times = jnp.linspace(0.0, 1.0, 6)
spline = dfx.CubicInterpolation(
    times, dfx.backward_hermite_coefficients(times, jnp.sin(3 * times)[:, None])
)
print("spline", spline.evaluate(0.33), spline.derivative(0.33))


class Field(eqx.Module):
    network: eqx.nn.MLP

    def __call__(self, t, y, args):
        return self.network(y)


@eqx.filter_jit
@eqx.filter_value_and_grad
def loss(field):
    solution = dfx.diffeqsolve(dfx.ODETerm(field), dfx.Tsit5(), 0.0, 1.0, 0.2, start, max_steps=16)
    return jnp.sum((solution.ys[0] - 1) ** 2)


value, gradients = loss(Field(eqx.nn.MLP(2, 2, 8, 1, key=jax.random.key(1))))
print("neural", value, [jnp.abs(leaf).sum() for leaf in jax.tree.leaves(gradients)])
