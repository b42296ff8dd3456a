"""Eight schools by numpyro's NUTS. It is a program for jax, which hlofront runs:

python -m hlofront as-jax examples/libraries/numpyro_nuts.py
"""

import time

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

started = time.perf_counter()
effects = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
errors = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def schools(effects):
    mean = numpyro.sample("mean", dist.Normal(0.0, 5.0))
    scale = numpyro.sample("scale", dist.HalfCauchy(5.0))
    with numpyro.plate("schools", 8):
        standard = numpyro.sample("standard", dist.Normal(0.0, 1.0))
        numpyro.sample("effect", dist.Normal(mean + scale * standard, errors), obs=effects)


mcmc = MCMC(NUTS(schools), num_warmup=500, num_samples=1000, progress_bar=False)
mcmc.run(jax.random.key(0), effects)
samples = mcmc.get_samples()
# Rounding differs between compilations, so chains drift apart: they agree to one digit.
print(f"mean {samples['mean'].mean():.0f}")
first = time.perf_counter()
mcmc.run(jax.random.key(1), effects)
last = time.perf_counter()
print(f"time to first result {first - started:.1f} s, per sample {(last - first) / 1.5:.2f} ms")
