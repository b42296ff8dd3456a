"""numpyro: models with plates and masks, by NUTS, by variational inference, and predictions."""
# tolerance: 5e-3 1e-3

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro import handlers, optim
from numpyro.distributions import constraints, transforms
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, autoguide, log_likelihood

x = jnp.linspace(-1.0, 1.0, 20)
y = 0.5 + 2.0 * x + 0.3 * jax.random.normal(jax.random.key(3), (20,))


def regression(x, y=None):
    intercept = numpyro.sample("intercept", dist.Normal(0.0, 2.0))
    slope = numpyro.sample("slope", dist.Normal(0.0, 2.0))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    with numpyro.plate("data", x.shape[0]):
        mean = numpyro.deterministic("mean", intercept + slope * x)
        numpyro.sample("y", dist.Normal(mean, sigma), obs=y)


key = jax.random.key(0)
mcmc = MCMC(NUTS(regression), num_warmup=60, num_samples=40, num_chains=1, progress_bar=False)
mcmc.run(key, x, y)
samples = mcmc.get_samples()
print("nuts", *(samples[name].mean() for name in ("intercept", "slope", "sigma")))
predictive = Predictive(regression, samples)(jax.random.key(1), jnp.array([0.0, 2.0]))
print("predicted", predictive["y"].mean(0), predictive["mean"].shape)
print("likelihood", log_likelihood(regression, samples, x, y)["y"].mean())
for guide in (
    autoguide.AutoNormal(regression),
    autoguide.AutoMultivariateNormal(regression),
    autoguide.AutoDelta(regression),
):
    svi = SVI(regression, guide, optim.Adam(0.05), Trace_ELBO())
    result = svi.run(key, 100, x, y, progress_bar=False)
    print(type(guide).__name__, result.losses[-1], guide.median(result.params)["slope"])
seeded = handlers.seed(regression, key)
trace = handlers.trace(handlers.condition(seeded, {"slope": jnp.array(1.0)})).get_trace(x)
print("trace", list(trace), trace["intercept"]["value"], trace["y"]["value"][:2])


def mixture(data):
    weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(2)))
    with numpyro.plate("components", 2):
        locs = numpyro.sample("locs", dist.Normal(0.0, 5.0))
    components = dist.MixtureSameFamily(dist.Categorical(weights), dist.Normal(locs, 1.0))
    with numpyro.plate("data", data.shape[0]), handlers.mask(mask=data < 5.0):
        numpyro.sample("obs", components, obs=data)


data = jnp.array([-2.0, -1.8, 1.9, 2.2, 9.0])
density, _ = numpyro.infer.util.log_density(
    mixture, (data,), {}, {"weights": jnp.array([0.4, 0.6]), "locs": jnp.array([-2.0, 2.0])}
)
print("mixture", density)
for each in (
    dist.StudentT(3.0, 0.5, 1.2),
    dist.Gamma(2.0, 1.5),
    dist.BetaBinomial(2.0, 3.0, 10),
    dist.LKJCholesky(3, 1.5),
    dist.ZeroInflatedPoisson(0.3, 2.0),
    dist.VonMises(0.3, 2.0),
    dist.TruncatedNormal(0.3, 1.0, low=-1.0, high=2.0),
    dist.GaussianRandomWalk(0.5, 4),
    dist.MultivariateNormal(jnp.zeros(2), jnp.array([[1.0, 0.3], [0.3, 2.0]])),
    dist.TransformedDistribution(dist.Normal(0.0, 1.0), transforms.ExpTransform()),
):
    sample = each.sample(key, (2,))
    print(type(each).__name__, sample.ravel()[:4], each.log_prob(sample))
bijection = transforms.biject_to(constraints.corr_cholesky)
print("bijection", bijection(jnp.array([0.1, -0.3, 0.5]))[-1])
print("kl", dist.kl_divergence(dist.Normal(0.0, 1.0), dist.Normal(1.0, 2.0)))
