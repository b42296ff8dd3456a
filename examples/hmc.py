"""Samples a posterior whose exact form is known, by Hamiltonian Monte Carlo.

A linear model predicts a pixel of a handwritten digit from the eight around it. You see the means
and standard deviations of the weights from 16 chains next to the exact ones, how well the chains
agree, and their effective sample size. At the end the log of the run says what was traced and
compiled, and how long it took.

Run it:   python examples/hmc.py [DRAWS]
"""

import functools
import subprocess
import sys
import tempfile

import numpy as np
from sklearn.datasets import load_digits

import hlofront as jax
import hlofront.numpy as jnp

CHAINS, WARM_UP, LEAPS, NOISE, ROWS = 16, 300, 16, 4.0, 400
NAMES = "above left, above, above right, left, right, below left, below, below right, bias"


def load():
    """Eight neighbors and a constant 1, f32[ROWS, 9], and the pixel in the middle, [ROWS]."""
    images = load_digits().images[:ROWS]
    patches = images[:, 3:6, 3:6].reshape(ROWS, 9)
    inputs = np.delete(patches, 4, axis=1) - 8
    return np.append(inputs, np.ones((ROWS, 1)), axis=1).astype(np.float32), patches[:, 4]


def exact(inputs, targets):
    """The posterior for weights whose prior is the standard normal: its mean and covariance."""
    inputs = inputs.astype(np.float64)
    covariance = np.linalg.inv(inputs.T @ inputs / NOISE**2 + np.eye(inputs.shape[1]))
    return covariance @ inputs.T @ targets / NOISE**2, covariance


def log_posterior(inputs, targets, weights):
    errors = (targets - inputs @ weights) / NOISE
    return -(errors @ errors + weights @ weights) / 2


def propose(log_density, key, weights, size):
    """Propose by LEAPS leapfrog steps: the next draw, and the probability of acceptance."""
    slope = jax.grad(log_density)
    momentum = jax.random.normal(key, weights.shape)

    def leap(_, moving):
        place, momentum = moving
        place = place + size * momentum
        return place, momentum + size * slope(place)

    begun = momentum + size / 2 * slope(weights)
    place, ended = jax.lax.fori_loop(0, LEAPS, leap, (weights, begun))
    ended = ended - size / 2 * slope(place)

    gained = log_density(place) - log_density(weights)
    chance = jnp.exp(jnp.minimum(gained + (momentum @ momentum - ended @ ended) / 2, 0.0))
    chance = jnp.nan_to_num(chance)
    accepted = jax.random.uniform(jax.random.fold_in(key, 1)) < chance
    return jnp.where(accepted, place, weights), chance


@functools.partial(jax.jit, static_argnames="count")
def sample(key, inputs, targets, count):
    """One chain: `count` draws after the warm-up, f32[count, 9], and the acceptance rate."""
    log_density = functools.partial(log_posterior, inputs, targets)

    def warm_up(carry, number):
        weights, log_size = carry
        key_now = jax.random.fold_in(key, number)
        weights, chance = propose(log_density, key_now, weights, jnp.exp(log_size))
        # Ever smaller corrections of the step size, until 80 % of proposals are accepted.
        return (weights, log_size + (chance - 0.8) / jnp.sqrt(number + 1.0)), None

    def draw(weights, number):
        key_now = jax.random.fold_in(key, number)
        size = jnp.exp(log_size) * jax.random.uniform(jax.random.fold_in(key_now, 2), minval=0.7)
        weights, chance = propose(log_density, key_now, weights, size)
        return weights, (weights, chance)

    start = jax.random.normal(key, (inputs.shape[1],)), jnp.log(0.01)
    (weights, log_size), _ = jax.lax.scan(warm_up, start, jnp.arange(WARM_UP))
    _, (draws, chances) = jax.lax.scan(draw, weights, WARM_UP + jnp.arange(count))
    return draws, chances.mean()


def agreement(draws):
    """The statistic of Gelman and Rubin (1992) per weight: near 1 if the chains agree."""
    within = draws.var(axis=1, ddof=1).mean(axis=0)
    return np.sqrt(1 + draws.mean(axis=1).var(axis=0, ddof=1) / within)


def effective_size(draws):
    """The effective sample size per weight, from autocorrelations within the chains."""
    off = draws - draws.mean(axis=(0, 1))
    lags = [(off[:, k:] * off[:, : draws.shape[1] - k]).mean((0, 1)) for k in range(20)]
    return draws.shape[0] * draws.shape[1] / (2 * np.sum(lags, axis=0) / lags[0] - 1)


def main(count=500):
    """Sample; return the largest errors of means and deviations, and of the chains' agreement."""
    inputs, targets = load()
    mean, covariance = exact(inputs, targets)
    deviations = np.sqrt(np.diag(covariance))
    folder = tempfile.mkdtemp(prefix="hmc_")
    jax.config.update("hlofront_log", folder)
    keys = jax.random.split(jax.random.key(0), CHAINS)
    chains = jax.vmap(functools.partial(sample, count=count), in_axes=(0, None, None))
    draws, moved = map(np.asarray, chains(keys, inputs, targets.astype(np.float32)))
    jax.config.update("hlofront_log", None)
    print(f"{CHAINS} chains of {count} draws, {moved.mean():.0%} of the proposals accepted")
    found, spread = draws.mean(axis=(0, 1)), draws.std(axis=(0, 1))
    print("weight          sampled          exact")
    for name, *row in zip(NAMES.split(", "), found, spread, mean, deviations, strict=True):
        print("{:12} {:6.3f} ± {:.3f}   {:6.3f} ± {:.3f}".format(name, *row))
    agreed, size = agreement(draws).max(), effective_size(draws).min()
    print(f"the chains agree to {agreed:.3f}, ideally 1; effective sample size {size:.0f}")
    print(f"--- python -m hlofront log {folder}")
    log = [sys.executable, "-m", "hlofront", "log", folder]
    print(subprocess.run(log, capture_output=True, text=True, check=True).stdout)
    print(f"the log as a page: {folder}/log.html")
    off = (np.abs(found - mean) / deviations).max(), np.abs(spread / deviations - 1).max()
    return *off, agreed


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
