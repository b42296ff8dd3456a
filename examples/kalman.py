"""Tracks moving objects in a plane from noisy positions, with a Kalman filter and a smoother.

You see how much closer both come to the truth than the measurements, whether the filter estimates
its own error correctly, and the noise levels recovered by gradient ascent on the likelihood. At the
end, with a sensor that is a thousand times better, `find_error` names the line of the textbook
update that loses the digits of float32, and confirms that Joseph's form keeps them.

Run it:   python examples/kalman.py [STEPS]
"""

import functools
import sys

import numpy as np

import hlofront as jax
import hlofront.numpy as jnp

TRACKS, TIMES, RATE = 64, 100, 0.3
TRUTH = {"push": 0.3, "blur": 2.0}  # standard deviations of acceleration and of measurements

# The state is the position and the velocity, f32[4]; one step takes a unit of time.
MOVE = np.block([[np.eye(2), np.eye(2)], [np.zeros((2, 2)), np.eye(2)]]).astype(np.float32)
PUSHED = np.concatenate([np.eye(2) / 2, np.eye(2)]).astype(np.float32)
SEEN = np.eye(2, 4, dtype=np.float32)
START = 10 * np.eye(4, dtype=np.float32)


def simulate(key):
    """A track from a random start: its states f32[TIMES, 4], and measurements f32[TIMES, 2]."""
    keys = jax.random.split(key, 3)
    pushes = TRUTH["push"] * jax.random.normal(keys[0], (TIMES, 2))
    start = jnp.sqrt(10.0) * jax.random.normal(keys[1], (4,))

    def move(state, push):
        return MOVE @ state + PUSHED @ push, state

    states = jax.lax.scan(move, start, pushes)[1]
    return states, states[:, :2] + TRUTH["blur"] * jax.random.normal(keys[2], (TIMES, 2))


def textbook(gain, covariance, noise):
    return covariance - gain @ (SEEN @ covariance)


def joseph(gain, covariance, noise):
    rest = np.eye(4, dtype=np.float32) - gain @ SEEN
    return rest @ covariance @ rest.T + gain @ noise @ gain.T


@functools.partial(jax.jit, static_argnames="update")
def run(noise, measurements, update=joseph):
    """Filter measurements f32[TIMES, 2]: the estimate at each time, and the log-likelihood."""
    process = noise["push"] ** 2 * PUSHED @ PUSHED.T
    blur = noise["blur"] ** 2 * jnp.eye(2)

    def one(predicted, measured):
        mean, covariance = predicted
        surprise = measured - SEEN @ mean
        spread = SEEN @ covariance @ SEEN.T + blur
        gain = jnp.linalg.solve(spread, SEEN @ covariance).T
        log = jax.scipy.stats.multivariate_normal.logpdf(surprise, jnp.zeros(2), spread)
        mean, covariance = mean + gain @ surprise, update(gain, covariance, blur)
        after = MOVE @ mean, MOVE @ covariance @ MOVE.T + process
        return after, (mean, covariance, *after, log)

    *known, logs = jax.lax.scan(one, (jnp.zeros(4), jnp.asarray(START)), measurements)[1]
    return known, logs.sum()


@jax.jit
def smooth(known):
    """Go backwards over the filtered states, so that each mean uses later measurements too."""

    def back(later, now):
        mean, covariance, predicted, spread = now
        gain = jnp.linalg.solve(spread, MOVE @ covariance).T
        mean = mean + gain @ (later - predicted)
        return mean, mean

    last = known[0][-1]
    before = jax.tree.map(lambda x: x[:-1], known)
    return jnp.append(jax.lax.scan(back, last, before, reverse=True)[1], last[None], axis=0)


@jax.jit
def ascend(logs, measurements):
    """One step of gradient ascent on the mean log-likelihood, for the logarithms of the noise."""

    def objective(logs):
        noise = jax.tree.map(jnp.exp, logs)
        return jax.vmap(lambda m: run(noise, m)[1])(measurements).mean() / TIMES

    return jax.tree.map(lambda x, g: x + RATE * g, logs, jax.grad(objective)(logs))


def main(steps=40):
    """Filter and fit; return position errors, the consistency, and the recovered noise."""
    states, measurements = jax.vmap(simulate)(jax.random.split(jax.random.key(0), TRACKS))
    known, _ = jax.vmap(functools.partial(run, TRUTH))(measurements)
    smoothed = jax.vmap(smooth)(known)
    errors = {
        name: float(jnp.sqrt(jnp.mean((guess[..., :2] - states[..., :2]) ** 2)))
        for name, guess in [("measured", measurements), ("filter", known[0]), ("smooth", smoothed)]
    }
    print("root mean square errors:", ", ".join(f"{n} {e:.3f}" for n, e in errors.items()))
    off = known[0] - states
    whitened = jnp.sum(off * jnp.linalg.solve(known[1], off[..., None])[..., 0], axis=-1)
    consistency = float(whitened.mean())
    print(f"squared error over the filter's own estimate: {consistency:.2f}, ideally 4")
    logs = jax.tree.map(jnp.log, {"push": 1.0, "blur": 1.0})
    for _ in range(steps):
        logs = ascend(logs, measurements)
    found = {name: float(jnp.exp(value)) for name, value in logs.items()}
    print("noise:", ", ".join(f"{n} {found[n]:.3f} for {TRUTH[n]}" for n in TRUTH))

    sharp = {"push": 0.3, "blur": 2e-3}
    for update in (textbook, joseph):
        covariances = functools.partial(lambda u, m: run(sharp, m, update=u)[0][1], update)
        print(f"--- {update.__name__}:")
        print(jax.inspect.find_error(covariances)(measurements[0, :5]))
    return errors, consistency, found


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
