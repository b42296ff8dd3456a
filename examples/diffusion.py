"""Trains a diffusion model on handwritten digits, and draws requested digits.

A network learns to predict the noise in a noisy digit; sampling starts from pure noise and removes
a little in each of a hundred steps (Ho et al., 2020). You see the drawings as text, and how many of
them are closest to a real digit of the right class. All of them come from one compiled program, or
`no_recompile` would raise; at the end `cache_report` says why one more call was recompiled.

Run it:   python examples/diffusion.py [STEPS]
"""

import sys

import numpy as np
from sklearn.datasets import load_digits

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.example_libraries.optimizers import adam, inverse_time_decay

TIMES, WIDTH, BATCH, PER_CALL = 100, 256, 128, 100
OPTIMIZER = adam(inverse_time_decay(2e-3, 1000, 1.0))

# The share of a digit's variance that is left at each time, f32[TIMES], from almost 1 to almost 0.
LEFT = np.cos(np.linspace(0.02, 0.99, TIMES, dtype=np.float32) * np.pi / 2) ** 2


def initial(seed=0):
    """The weights of four layers, each of which also sees the time and the class."""
    sizes = [(64, WIDTH), (WIDTH, WIDTH), (WIDTH, WIDTH), (WIDTH, 64)]
    keys = jax.random.split(jax.random.key(seed), 2 * len(sizes))
    return [
        {
            "w": jax.random.normal(keys[2 * i], size) / size[0] ** 0.5,
            "told": jax.random.normal(keys[2 * i + 1], (10 + 16, size[1])) / 5,
        }
        for i, size in enumerate(sizes)
    ]


def noise_in(params, x, time, digit):
    """Predict the noise in an image f32[64] of a digit i32[], at a time i32[]."""
    angles = time / TIMES * np.pi * 2.0 ** np.arange(-1, 7)
    told = jnp.concatenate([jax.nn.one_hot(digit, 10), jnp.sin(angles), jnp.cos(angles)])
    for i, layer in enumerate(params):
        change = x @ layer["w"] + told @ layer["told"]
        x = change if i in (0, len(params) - 1) else x + change
        x = jax.nn.silu(x) if i < len(params) - 1 else x
    return x


def loss(params, key, images, digits):
    """The mean squared error of the noise predicted in images f32[n, 64], at random times."""
    times = jax.random.randint(key, (len(images),), 0, TIMES)
    noise = jax.random.normal(jax.random.fold_in(key, 1), images.shape)
    left = jnp.asarray(LEFT)[times, None]
    noisy = jnp.sqrt(left) * images + jnp.sqrt(1 - left) * noise
    seen = jax.vmap(noise_in, (None, 0, 0, 0))(params, noisy, times, digits)
    return jnp.mean((seen - noise) ** 2)


@jax.jit
def train(state, first, images, digits):
    """PER_CALL steps of Adam, counted from `first`: the state after them, and the mean loss."""

    def step(state, number):
        key = jax.random.fold_in(jax.random.key(1), number)
        chosen = jax.random.randint(key, (BATCH,), 0, len(images))
        value, gradient = jax.value_and_grad(loss)(
            OPTIMIZER.params_fn(state), jax.random.fold_in(key, 1), images[chosen], digits[chosen]
        )
        return OPTIMIZER.update_fn(number, gradient, state), value

    state, losses = jax.lax.scan(step, state, first + jnp.arange(PER_CALL))
    return state, losses.mean()


@jax.jit
def draw(params, key, digit):
    """Draw a digit i32[] from noise: f32[64]."""

    def less_noisy(x, step):
        time, key = step
        left, before = jnp.asarray(LEFT)[time], jnp.asarray(LEFT)[jnp.maximum(time - 1, 0)]
        kept = left / before
        seen = noise_in(params, x, time, digit)
        x = (x - (1 - kept) / jnp.sqrt(1 - left) * seen) / jnp.sqrt(kept)
        spread = jnp.sqrt((1 - kept) * (1 - before) / (1 - left))
        return x + jnp.where(time > 0, spread, 0) * jax.random.normal(key, x.shape), None

    steps = jnp.arange(TIMES)[::-1], jax.random.split(key, TIMES)
    return jax.lax.scan(less_noisy, jax.random.normal(key, (64,)), steps)[0]


def as_text(images):
    """Images f32[n, 64] in [-1, 1] next to each other, as lines of characters."""
    shades = np.array(list(" .:-=+*#%@"))
    levels = np.clip((np.asarray(images).reshape(-1, 8, 8) + 1) * 5, 0, 9).astype(int)
    return "\n".join(
        "  ".join("".join(shades[row]) for row in rows) for rows in levels.swapaxes(0, 1)
    )


def main(steps=4000):
    """Train and draw; return the share of drawings that look like the requested digit."""
    data = load_digits()
    images, digits = (data.data / 8 - 1).astype(np.float32), data.target.astype(np.int32)
    on_device = jnp.asarray(images), jnp.asarray(digits)
    state = OPTIMIZER.init_fn(initial())
    for first in range(0, steps, PER_CALL):
        state, value = train(state, first, *on_device)
        if (first + PER_CALL) % max(steps // 4, PER_CALL) == 0:
            print(f"step {first + PER_CALL}: loss {float(value):.3f}")
    params = OPTIMIZER.params_fn(state)
    asked = np.arange(100, dtype=np.int32) % 10
    drawn = [draw(params, jax.random.key(0), asked[0])]  # compiles
    with jax.no_recompile():
        drawn += [draw(params, jax.random.key(i), asked[i]) for i in range(1, len(asked))]
    drawn = np.array(drawn)
    distances = ((drawn[:, None] - images) ** 2).sum(-1)
    right = np.mean(digits[distances.argmin(axis=1)] == asked)
    print(as_text(drawn[:10]))
    print(f"{right:.0%} of {len(asked)} drawings are closest to a real digit of their class")
    draw(params, jax.random.key(0), 7)  # a Python int, unlike the NumPy int32 before
    print(draw.cache_report())
    return right


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
