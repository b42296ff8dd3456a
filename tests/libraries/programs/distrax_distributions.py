"""distrax: distributions, bijectors and flows: densities, samples, entropies and divergences."""
# tolerance: 1e-4 1e-5

import distrax
import jax
import jax.numpy as jnp

key = jax.random.key(0)
x = jnp.array([0.2, 0.5, 0.9])
distributions = {
    "normal": distrax.Normal(0.5, 2.0),
    "laplace": distrax.Laplace(0.0, 1.5),
    "beta": distrax.Beta(2.0, 3.0),
    "gamma": distrax.Gamma(2.0, 1.5),
    "uniform": distrax.Uniform(0.0, 1.0),
    "gumbel": distrax.Gumbel(0.1, 0.7),
    "logistic": distrax.Logistic(0.1, 0.7),
}
for name, each in distributions.items():
    sample, log_prob = each.sample_and_log_prob(seed=key, sample_shape=(3,))
    print(name, each.log_prob(x), each.cdf(x) if name != "beta" else "", each.entropy())
    print("  sampled", sample, log_prob)
categorical = distrax.Categorical(logits=jnp.array([0.1, 1.0, -1.0]))
print(
    "categorical",
    categorical.probs,
    categorical.mode(),
    categorical.sample(seed=key, sample_shape=5),
)
print("greedy", distrax.Greedy(jnp.array([1.0, 3.0, 2.0])).probs)
print("one hot", distrax.OneHotCategorical(probs=jnp.array([0.2, 0.8])).sample(seed=key))
mixture = distrax.MixtureSameFamily(
    distrax.Categorical(probs=jnp.array([0.3, 0.7])),
    distrax.Normal(jnp.array([-1.0, 1.0]), jnp.array([0.5, 1.0])),
)
print("mixture", mixture.log_prob(x), mixture.mean(), mixture.variance())
full = distrax.MultivariateNormalFullCovariance(jnp.zeros(2), jnp.array([[1.0, 0.3], [0.3, 2.0]]))
print("full", full.log_prob(jnp.array([[0.1, 0.2], [1.0, -1.0]])), full.sample(seed=key))
print("kl", distrax.Normal(0.0, 1.0).kl_divergence(distributions["normal"]))
print(
    "kl gradient",
    jax.grad(
        lambda s: full.kl_divergence(
            distrax.MultivariateNormalDiag(jnp.zeros(2), jnp.array([s, 1.0]))
        )
    )(2.0),
)
print("batched", jax.vmap(lambda m: distrax.Normal(m, 1.0).log_prob(0.3))(x))

affine = distrax.ScalarAffine(1.0, 2.0)
for bijector in (
    affine,
    distrax.Sigmoid(),
    distrax.Tanh(),
    distrax.Chain([distrax.Tanh(), affine]),
):
    y, log_det = bijector.forward_and_log_det(x)
    print(type(bijector).__name__, y, log_det, jnp.allclose(bijector.inverse(y), x, atol=1e-4))
spline = distrax.RationalQuadraticSpline(jnp.linspace(-1.0, 1.0, 13), -2.0, 2.0)
print("spline", *spline.forward_and_log_det(x))
flow = distrax.Transformed(
    distrax.MultivariateNormalDiag(jnp.zeros(2), jnp.ones(2)),
    distrax.MaskedCoupling(
        mask=jnp.array([True, False]),
        conditioner=lambda x: jnp.stack([x, 0.3 * x]),
        bijector=lambda params: distrax.ScalarAffine(params[0], log_scale=params[1]),
    ),
)
points = jnp.array([[0.4, -0.3], [1.0, 2.0]])
print("flow", flow.log_prob(points), flow.sample(seed=key, sample_shape=2))
print("flow gradient", jax.jit(jax.grad(lambda p: flow.log_prob(p).sum()))(points))
