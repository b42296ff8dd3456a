"""tinygp: Gaussian processes with dense and quasiseparable kernels, fitted and conditioned."""
# tolerance: 1e-3 1e-4

import jax
import jax.numpy as jnp
import tinygp
from tinygp import GaussianProcess, kernels, transforms

x = jnp.linspace(0.0, 5.0, 20)
y = jnp.sin(x) + 0.1 * jax.random.normal(jax.random.key(0), (20,))


def build(parameters):
    kernel = jnp.exp(parameters["amplitude"]) * kernels.ExpSquared(jnp.exp(parameters["scale"]))
    return GaussianProcess(kernel, x, diag=jnp.exp(parameters["noise"]), mean=parameters["mean"])


@jax.jit
def loss(parameters):
    return -build(parameters).log_probability(y)


parameters = {"amplitude": 0.0, "scale": 0.1, "noise": -2.0, "mean": 0.2}
for _ in range(5):
    value, gradients = jax.value_and_grad(loss)(parameters)
    parameters = jax.tree.map(lambda p, g: p - 0.01 * g, parameters, gradients)
    print("loss", value, gradients["scale"])
process = build(parameters)
log_probability, conditioned = process.condition(y, jnp.array([0.5, 2.5]))
print("conditioned", log_probability, conditioned.mean, conditioned.variance)
print("sample", process.sample(jax.random.key(1), (2,))[:, :3])
for kernel in (
    kernels.Matern32(1.5),
    kernels.Matern52(0.7) + kernels.DotProduct(),
    kernels.RationalQuadratic(alpha=1.2) * kernels.Cosine(3.0),
    kernels.ExpSineSquared(2.0, gamma=0.5),
    transforms.Linear(2.0, kernels.Exp()),
):
    print(type(kernel).__name__, GaussianProcess(kernel, x, diag=0.1).log_probability(y))
quasi = tinygp.kernels.quasisep
for kernel in (
    quasi.Matern32(1.5),
    quasi.SHO(omega=2.0, quality=3.0) + quasi.Exp(scale=1.0),
    quasi.Celerite(1.0, 0.5, 0.2, 0.1),
):
    fast = GaussianProcess(kernel, x, diag=0.1)
    print(type(kernel).__name__, fast.log_probability(y))
print("predicted", GaussianProcess(quasi.Matern32(1.5), x, diag=0.1).predict(y)[:3])
print(
    "gradient",
    jax.grad(lambda s: GaussianProcess(quasi.Matern52(s), x, diag=0.1).log_probability(y))(1.2),
)
print(
    "batched",
    jax.vmap(lambda s: GaussianProcess(kernels.Exp(s), x, diag=0.1).log_probability(y))(
        jnp.ones(2)
    ),
)
