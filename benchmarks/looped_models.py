"""Models that are loops of small steps, and a U-Net with attention, for both libraries.

Every function takes `jax`, the library itself or hlofront in its place, and returns a function that
can be jitted, and the arguments to call it with, as in `accelerator_models.py`, which lists them.
"""

import numpy as np
from models import convolution, normal


def transducer(jax, *, batch=4, frames=40, words=12, vocabulary=64, width=64):
    """The loss of an RNN transducer: all alignments of words to frames, by two nested scans."""
    jnp, lax = jax.numpy, jax.lax
    random = np.random.default_rng(30)

    def log_likelihood(blank, word):
        """Of log probabilities of blanks (T, U + 1) and of the words (T, U) of one utterance."""

        def next_frame(alphas, probabilities):
            blanks, next_words = probabilities

            def next_word(before, each):
                stay, emitted = each
                alpha = jnp.logaddexp(stay, before + emitted)
                return alpha, alpha

            _, later = lax.scan(next_word, alphas[0], (alphas[1:], next_words))
            alphas = jnp.concatenate([alphas[:1], later])
            return alphas + blanks, None

        first = jnp.where(jnp.arange(words + 1) == 0, 0.0, -1e9)
        return lax.scan(next_frame, first, (blank, word))[0][-1]

    def loss(weights, sounds, labels):
        heard = sounds @ weights["heard"]
        read = weights["words"][jnp.pad(labels, ((0, 0), (1, 0)))] @ weights["read"]
        scores = jnp.tanh(heard[:, :, None] + read[:, None]) @ weights["out"]
        scores = jax.nn.log_softmax(scores)
        word = jnp.take_along_axis(scores[:, :, :-1], labels[:, None, :, None], -1)[..., 0]
        return -jax.vmap(log_likelihood)(scores[..., 0], word).mean()

    shapes = {"heard": (40, width), "words": (vocabulary, width), "read": (width, width)}
    weights = {name: normal(random, *shape) for name, shape in shapes.items()}
    weights["out"] = normal(random, width, vocabulary)
    labels = random.integers(1, vocabulary, (batch, words)).astype(np.int32)
    return jax.value_and_grad(loss), (weights, normal(random, batch, frames, 40, scale=1), labels)


def hamiltonian_monte_carlo(jax, *, chains=8, samples=40, leaps=10):
    """Samples of a logistic regression's weights, of several chains, by Hamiltonian dynamics."""
    jnp, lax = jax.numpy, jax.lax
    random = np.random.default_rng(31)

    def energy(weights, x, labels):
        return jax.nn.softplus(-labels * (x @ weights)).sum() + 0.5 * (weights**2).sum()

    def sampled(weights, key, x, labels):
        force = jax.grad(energy)

        def leap(state, _):
            weights, momentum = state
            momentum = momentum - 0.01 * force(weights, x, labels)
            weights = weights + 0.02 * momentum
            return (weights, momentum - 0.01 * force(weights, x, labels)), None

        def sample(weights, key):
            thrown, accepting = jax.random.split(key)
            momentum = jax.random.normal(thrown, weights.shape)
            (proposed, after), _ = lax.scan(leap, (weights, momentum), None, leaps)
            change = energy(proposed, x, labels) - energy(weights, x, labels)
            change = change + 0.5 * (after @ after - momentum @ momentum)
            accepted = jnp.log(jax.random.uniform(accepting)) < -change
            weights = jnp.where(accepted, proposed, weights)
            return weights, (weights, accepted)

        return lax.scan(sample, weights, jax.random.split(key, samples))[1]

    def step(weights, key, x, labels):
        keys = jax.random.split(key, chains)
        return jax.vmap(sampled, (0, 0, None, None))(weights, keys, x, labels)

    x, labels = normal(random, 128, 16, scale=1), np.sign(normal(random, 128, scale=1))
    return step, (normal(random, chains, 16, scale=1), np.array([0, 7], np.uint32), x, labels)


def ray_marching(jax, *, size=48, marches=24):
    """An image of joined spheres, whose surface rays march to, and the spheres' gradients."""
    jnp, lax = jax.numpy, jax.lax
    random = np.random.default_rng(32)

    def distance(spheres, point):
        """The signed distance to the smooth union of spheres (x, y, z, radius)."""
        lengths = jnp.sqrt(((point - spheres[:, :3]) ** 2).sum(-1) + 1e-6)
        return -jax.nn.logsumexp(-8.0 * (lengths - spheres[:, 3])) / 8.0

    def shade(spheres, ray):
        origin = jnp.array([0.0, 0.0, -3.0])

        def march(far, _):
            return far + jnp.clip(distance(spheres, origin + far * ray), 0.0, 1.0), None

        far, _ = lax.scan(march, jnp.float32(0), None, marches)
        point = origin + far * ray
        slope = jax.grad(distance, 1)(spheres, point)
        light = jnp.maximum(slope @ jnp.array([0.6, 0.6, -0.5]), 0.0)
        return jnp.where(distance(spheres, point) < 0.05, light, 0.0)

    def loss(spheres, rays, image):
        shades = jax.vmap(jax.vmap(shade, (None, 0)), (None, 0))(spheres, rays)
        return ((shades - image) ** 2).mean()

    places = np.linspace(-0.6, 0.6, size, dtype=np.float32)
    rays = np.stack([*np.meshgrid(places, places), np.ones((size, size), np.float32)], -1)
    rays = rays / np.linalg.norm(rays, axis=-1, keepdims=True)
    spheres = np.concatenate([normal(random, 6, 3, scale=0.5), np.full((6, 1), 0.5)], -1)
    image = np.abs(normal(random, size, size, scale=0.3))
    return jax.value_and_grad(loss), (spheres.astype(np.float32), rays, image)


def unet_with_attention(jax, *, depth=2, width=16, batch=2, size=16):
    """A step of diffusion: a U-Net with group norms, and attention in its lowest level."""
    jnp = jax.numpy
    random = np.random.default_rng(33)

    def normalized(x):
        groups = x.reshape(*x.shape[:-1], 4, -1)
        mean, variance = (f(groups, (1, 2, 4), keepdims=True) for f in (jnp.mean, jnp.var))
        return ((groups - mean) * jax.lax.rsqrt(variance + 1e-5)).reshape(x.shape)

    def residual(x, w, time):
        y = convolution(jax, jax.nn.silu(normalized(x)), w["first"])
        y = y + (time @ w["time"])[:, None, None]
        y = convolution(jax, jax.nn.silu(normalized(y)), w["second"])
        return x @ w["skip"] + y

    def attended(x, w):
        qkv = (normalized(x) @ w["qkv"]).reshape(x.shape[0], x.shape[1] * x.shape[2], 4, -1)
        q, k, y = jnp.split(qkv, 3, -1)
        return x + jax.nn.dot_product_attention(q, k, y).reshape(x.shape) @ w["out"]

    def predicted(weights, x, times):
        angles = times[:, None] * jnp.exp(-jnp.arange(16) / 16 * 9.2)
        time = jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1)
        x, skips = convolution(jax, x, weights["stem"]), []
        for w in weights["down"]:
            x = residual(x, w, time)
            skips.append(x)
            x = x.reshape(x.shape[0], x.shape[1] // 2, 2, -1, 2, x.shape[3]).mean((2, 4))
        x = residual(x, weights["bottom"][0], time)
        x = residual(attended(x, weights["attention"]), weights["bottom"][1], time)
        for w in weights["up"]:
            x = jax.image.resize(x, (*skips[-1].shape[:3], x.shape[3]), "nearest")
            x = residual(jnp.concatenate([x, skips.pop()], -1), w, time)
        return convolution(jax, jax.nn.silu(normalized(x)), weights["head"])

    def loss(weights, images, noise, times):
        noisy = images * jnp.cos(times)[:, None, None, None] + noise
        return ((predicted(weights, noisy, times) - noise) ** 2).mean()

    def block(before, after):
        return {
            "first": normal(random, 3, 3, before, after),
            "second": normal(random, 3, 3, after, after),
            "skip": normal(random, before, after),
            "time": normal(random, 32, after),
        }

    sizes = [width * 2**i for i in range(depth)]
    most = sizes[-1]
    weights = {
        "stem": normal(random, 3, 3, 3, width),
        "down": [block(a, b) for a, b in zip([width, *sizes], sizes, strict=False)],
        "bottom": [block(most, most), block(most, most)],
        "attention": {"qkv": normal(random, most, 3 * most), "out": normal(random, most, most)},
        "up": [block(a + b, b) for a, b in zip([most, *sizes[::-1]], sizes[::-1], strict=False)],
        "head": normal(random, 3, 3, width, 3),
    }
    images, noise = (normal(random, batch, size, size, 3, scale=1) for _ in range(2))
    return jax.value_and_grad(loss), (weights, images, noise, np.linspace(0, 1, batch, dtype="f"))
