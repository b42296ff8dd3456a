"""blackjax: samplers of a correlated Gaussian, with warmup, tempering and variational families."""
# tolerance: 1e-3 1e-4

import blackjax
import jax
import jax.numpy as jnp
import optax

mean = jnp.array([1.0, -1.0])
precision = jnp.linalg.inv(jnp.array([[1.0, 0.6], [0.6, 2.0]]))


def log_density(x):
    return -0.5 * (x - mean) @ precision @ (x - mean)


def chain(step, state, key, count):
    def body(state, key):
        state, info = step(key, state)
        return state, (state.position, info)

    return jax.lax.scan(body, state, jax.random.split(key, count))


key = jax.random.key(0)
start = jnp.zeros(2)
scale = jnp.ones(2)
algorithms = {
    "hmc": blackjax.hmc(log_density, 0.3, scale, 8),
    "nuts": blackjax.nuts(log_density, 0.4, scale),
    "mala": blackjax.mala(log_density, 0.3),
    "rmh": blackjax.rmh(log_density, blackjax.mcmc.random_walk.normal(jnp.eye(2) * 0.8)),
}
for name, algorithm in algorithms.items():
    run = jax.jit(lambda state, key: chain(algorithm.step, state, key, 20))
    state, (positions, info) = run(algorithm.init(start), key)
    print(name, positions.mean(0), positions[-1], jnp.mean(info.acceptance_rate))

warmup = blackjax.window_adaptation(blackjax.nuts, log_density)
(state, parameters), _ = jax.jit(lambda key: warmup.run(key, start, 40))(key)
print("adapted", parameters["step_size"], parameters["inverse_mass_matrix"])
elliptical = blackjax.elliptical_slice(log_density, mean=jnp.zeros(2), cov=jnp.eye(2))
state, (positions, _) = chain(elliptical.step, elliptical.init(start), key, 20)
print("elliptical", positions.mean(0))
sghmc = blackjax.sgld(lambda x, batch: jax.grad(log_density)(x) + 0 * batch.sum())
position = start
for each in jax.random.split(key, 10):
    position = jax.jit(sghmc.step)(each, position, jnp.zeros(3), 1e-2)
print("sgld", position)
fit = blackjax.meanfield_vi(log_density, optax.adam(0.1), 20)
state = fit.init(start)
for each in jax.random.split(key, 20):
    state, _ = jax.jit(fit.step)(each, state)
print("meanfield", state.mu, state.rho)
print("ess", blackjax.ess(jnp.sin(jnp.arange(200.0)).reshape(2, 100, 1)))
