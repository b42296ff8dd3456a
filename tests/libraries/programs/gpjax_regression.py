"""gpjax: Gaussian-process regression, its likelihood, hyperparameters and predictions."""

# tolerance: 1e-3 1e-4

import gpjax as gpx
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
x = jnp.linspace(-2.0, 2.0, 20).reshape(-1, 1)
y = jnp.sin(2 * x) + 0.1 * jax.random.normal(jax.random.key(0), x.shape)
data = gpx.Dataset(x, y)
print("data", data.n, data.in_dim)
for kernel in (gpx.kernels.RBF(), gpx.kernels.Matern32(), gpx.kernels.Periodic()):
    print(
        kernel.name,
        kernel.gram(x[:3]).to_dense()
        if hasattr(kernel.gram(x[:3]), "to_dense")
        else kernel.gram(x[:3]),
    )
prior = gpx.gps.Prior(mean_function=gpx.mean_functions.Zero(), kernel=gpx.kernels.RBF())
posterior = prior * gpx.likelihoods.Gaussian()
print("mll", gpx.objectives.conjugate_mll(posterior, data))
print("loo", gpx.objectives.conjugate_loocv(posterior, data))
predictive = posterior.predict(jnp.array([[0.5], [3.0]]), train_data=data)
print(
    "predicted",
    predictive.mean,
    jnp.diag(predictive.covariance())
    if callable(predictive.covariance)
    else jnp.diag(predictive.covariance),
)
