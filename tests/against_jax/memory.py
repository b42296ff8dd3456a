"""Derivatives of loops, and how many bytes of temporaries XLA gives their compiled programs."""

import numpy as np

STEPS, WIDTH = 64, 32


def programs(jax):
    jnp, lax = jax.numpy, jax.lax
    xs = np.ones((STEPS, 8, WIDTH), np.float32)
    w = np.full((WIDTH, WIDTH), 0.01, np.float32)
    h = np.ones((8, WIDTH), np.float32)

    def scanned(step, **options):
        return lambda w, h, xs: lax.scan(lambda h, x: step(w, h, x), h, xs, **options)[0].sum()

    def plain(w, h, x):
        return jnp.tanh(h @ w + x), None

    def gated(w, h, x):
        gate = lax.logistic(x @ w)
        return gate * h + (1 - gate) * jnp.tanh(h @ w), None

    def of_constants(w, h, x):
        # sin(w) and w @ w are the same at each step.
        return jnp.tanh(h @ (jnp.sin(w) @ w)) + x, None

    def masked(w, h, x):
        return jnp.where(x > 0, jnp.tanh(h @ w), h), None

    def indexed(w, h, i):
        return jnp.tanh(h @ w) + w[i % WIDTH], None

    def with_inner_loop(w, h, x):
        return lax.fori_loop(0, 3, lambda i, h: jnp.sin(h @ w), h) + x, None

    def with_branch(w, h, x):
        return lax.cond(x.sum() > 0, lambda h: jnp.tanh(h @ w), lambda h: h * 2, h), None

    def with_rows(w, h, x):
        return jnp.tanh(h @ w) * x, jnp.exp(h)

    def of_jit(w, h, x):
        return jax.jit(lambda h: jnp.tanh(h @ w) * h)(h) + x, None

    def checkpointed(w, h, x):
        return jax.checkpoint(lambda w, h, x: jnp.sin(jnp.tanh(h @ w) * h) + x)(w, h, x), None

    def rows_used(w, h, xs):
        h, rows = lax.scan(lambda h, x: with_rows(w, h, x), h, xs)
        return h.sum() + rows.sum()

    everything = {
        "plain": (scanned(plain), xs),
        "gated": (scanned(gated), xs),
        "of constants": (scanned(of_constants), xs),
        "masked": (scanned(masked), xs),
        "indexed": (scanned(indexed), np.arange(STEPS, dtype=np.int32)),
        "inner loop": (scanned(with_inner_loop), xs),
        "branch": (scanned(with_branch), xs),
        "rows": (rows_used, xs),
        "jit": (scanned(of_jit), xs),
        "checkpoint": (scanned(checkpointed), xs),
        "reverse": (scanned(gated, reverse=True), xs),
        "unrolled by 4": (scanned(gated, unroll=4), xs),
    }
    for name, (loss, rows) in everything.items():
        yield name, jax.grad(loss, (0, 1)), (w, h, rows)
    yield "hessian", jax.hessian(lambda x: scanned(plain)(w, h * x, xs)), (np.float32(1),)
    batched = jax.vmap(jax.grad(scanned(gated)), (None, 0, None))
    yield "batched", batched, (w, np.ones((4, 8, WIDTH), np.float32), xs)


def temporaries(jax):
    """{program: bytes}."""
    return {
        name: jax.jit(step).lower(*args).compile().memory_analysis().temp_size_in_bytes
        for name, step, args in programs(jax)
    }
