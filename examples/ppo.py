"""Learns to balance a pole on a cart by proximal policy optimization (Schulman et al., 2017).

The environment is written in `jnp`, so playing 64 games and learning from them is one compiled
program. You see how long the pole stays up, of at most 200 steps. At the end `profile` measures
where the time of that program goes, line by line: into playing or into learning.

Run it:   python examples/ppo.py [UPDATES]
See it:   python -m hlofront profile examples/ppo.py:update
"""

import sys

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.example_libraries.optimizers import adam

GAMES, LENGTH, EPOCHS, PARTS, MAX_STEPS = 64, 64, 4, 4, 200
DISCOUNT, TRACE, CLIP = 0.99, 0.95, 0.2
OPTIMIZER = adam(3e-3)


def reset(key):
    """The start of a game, f32[5]: position, speed, angle, angular speed, number of steps."""
    return jnp.append(jax.random.uniform(key, (4,), minval=-0.05, maxval=0.05), 0.0)


def play(game, key, push):
    """Push the cart left (0) or right (1) for 1/50 s: the game after it, and whether it is over."""
    _, speed, angle, turning, _ = game
    force = jnp.where(push == 1, 10.0, -10.0)
    sine, cosine = jnp.sin(angle), jnp.cos(angle)
    # A cart of 1 kg and a pole of 0.1 kg and 1 m: Barto, Sutton and Anderson (1983).
    pull = (force + 0.05 * turning**2 * sine) / 1.1
    turn = (9.8 * sine - cosine * pull) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
    rates = jnp.stack([speed, pull - 0.05 * turn * cosine / 1.1, turning, turn, 50.0])
    after = game + rates / 50
    over = (jnp.abs(after[0]) > 2.4) | (jnp.abs(after[2]) > 0.21) | (after[4] >= MAX_STEPS)
    return jnp.where(over, reset(key), after), over


def initial(seed=0):
    """The weights of two networks: the scores of both pushes, and the expected return."""
    keys = jax.random.split(jax.random.key(seed), 4)
    sizes = [(4, 64), (64, 2), (4, 64), (64, 1)]
    scales = [1.0, 0.01, 1.0, 1.0]
    return [
        (jax.random.normal(key, size) * scale / size[0] ** 0.5, jnp.zeros(size[1]))
        for key, size, scale in zip(keys, sizes, scales, strict=True)
    ]


def network(layers, game):
    (w1, b1), (w2, b2) = layers
    return jnp.tanh(game[..., :4] @ w1 + b1) @ w2 + b2


def log_policy(params, game):
    return jax.nn.log_softmax(network(params[:2], game))


def value(params, game):
    return network(params[2:], game)[..., 0]


def rollout(params, games, key):
    """Play LENGTH steps of all games: the games after them, and a record [LENGTH, GAMES, ...]."""

    def one(games, key):
        keys = jax.random.split(key, GAMES)
        logs = log_policy(params, games)
        push = jax.random.categorical(key, logs)
        log = jnp.take_along_axis(logs, push[:, None], axis=1)[:, 0]
        after, over = jax.vmap(play)(games, keys, push)
        return after, {"game": games, "push": push, "log": log, "over": over}

    return jax.lax.scan(one, games, jax.random.split(key, LENGTH))


def advantages(params, games, seen):
    """How much better each step was than expected (Schulman et al., 2016), f32[LENGTH, GAMES]."""
    values = value(params, jnp.concatenate([seen["game"], games[None]]))
    goes_on = 1.0 - seen["over"]
    surprise = 1.0 + DISCOUNT * goes_on * values[1:] - values[:-1]

    def back(later, now):
        later = now[0] + DISCOUNT * TRACE * now[1] * later
        return later, later

    better = jax.lax.scan(back, jnp.zeros(GAMES), (surprise, goes_on), reverse=True)[1]
    return better, better + values[:-1]


def loss(params, batch):
    logs = log_policy(params, batch["game"])
    log = jnp.take_along_axis(logs, batch["push"][:, None], axis=1)[:, 0]
    ratio = jnp.exp(log - batch["log"])
    better = (batch["better"] - batch["better"].mean()) / (batch["better"].std() + 1e-6)
    gain = jnp.minimum(ratio * better, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * better)
    error = (value(params, batch["game"]) - batch["return"]) ** 2
    entropy = -jnp.sum(jnp.exp(logs) * logs, axis=1)
    return jnp.mean(0.005 * error - gain - 0.01 * entropy)


@jax.jit
def update(state, games, key):
    """Play, and learn from it: the state, the games, and the mean length of those that ended."""
    params = OPTIMIZER.params_fn(state)
    games, seen = rollout(params, games, key)
    seen["better"], seen["return"] = advantages(params, games, seen)
    flat = jax.tree.map(lambda x: x.reshape(LENGTH * GAMES, *x.shape[2:]), seen)

    def learn(state, chosen):
        batch = jax.tree.map(lambda x: x[chosen], flat)
        gradient = jax.grad(loss)(OPTIMIZER.params_fn(state), batch)
        return OPTIMIZER.update_fn(0, gradient, state), None

    keys = jax.random.split(jax.random.fold_in(key, 1), EPOCHS)
    orders = jax.vmap(lambda k: jax.random.permutation(k, LENGTH * GAMES))(keys)
    state, _ = jax.lax.scan(learn, state, orders.reshape(EPOCHS * PARTS, -1))
    lengths = jnp.where(seen["over"], seen["game"][..., 4] + 1, 0)
    return state, games, lengths.sum() / jnp.maximum(seen["over"].sum(), 1)


def example_args():
    games = jax.vmap(reset)(jax.random.split(jax.random.key(1), GAMES))
    return OPTIMIZER.init_fn(initial()), games, jax.random.key(2)


def main(updates=60):
    """Learn, print how it goes, and return the mean length of the last games that ended."""
    state, games, key = example_args()
    for number in range(1, updates + 1):
        state, games, length = update(state, games, jax.random.fold_in(key, number))
        if number % max(updates // 6, 1) == 0:
            print(f"update {number}: the pole stays up for {length:.0f} steps of {MAX_STEPS}")
    print(jax.inspect.profile(update, runs=3)(state, games, key))
    return float(length)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
