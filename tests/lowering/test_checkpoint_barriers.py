"""The barriers of checkpoint: none in a loop whose body has not computed the original values."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax

X = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
ROWS = np.stack([X, X + 1, X - 1, X / 2])


def step(carry, row):
    for _ in range(4):
        carry = jnp.sin(carry @ row)
    return carry, None


def scanned(step, **options):
    def loss(carry, rows):
        return (lax.scan(step, carry, rows, **options)[0] ** 2).sum()

    return jax.value_and_grad(loss, (0, 1))


def barriers(function, *args, platform="cpu"):
    lowered = jax.jit(function).trace(*args).lower(lowering_platforms=(platform,))
    return lowered.as_text().count("stablehlo.optimization_barrier")


@pytest.mark.parametrize("platform", ["cpu", "tpu", "cuda"])
def test_a_checkpointed_scan_has_none(platform):
    assert barriers(scanned(jax.checkpoint(step)), X, ROWS, platform=platform) == 0


@pytest.mark.parametrize("around", [lambda f: f, jax.vmap])
def test_the_scan_still_computes_again(around):
    def function(step):
        return around(scanned(step))

    args = (X, ROWS) if around is not jax.vmap else (X[None], ROWS[None])
    kept, again = (
        jax.jit(function(each)).lower(*args).compile() for each in (step, jax.checkpoint(step))
    )
    for a, b in zip(*(jax.tree.leaves(each(*args)) for each in (kept, again)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    few, many = (each.memory_analysis().temp_size_in_bytes for each in (again, kept))
    # Without checkpoint the loop stacks eight values of each step, and so one.
    assert few < 0.5 * many


def with_gradient_inside(carry, row):
    slope = jax.grad(lambda carry: jax.checkpoint(step)(carry, row)[0].sum())(carry)
    return carry - 0.1 * slope, None


def two_layers(carry, row):
    layer = jax.checkpoint(step)
    return layer(layer(carry, row)[0], row)


def in_a_branch(carry, row):
    changed = lax.cond(
        carry[0, 0] > 0, jax.checkpoint(step), lambda c, r: (c + r, None), carry, row
    )
    return changed[0], None


def without_loop(x, rows):
    return jax.grad(lambda x: jax.checkpoint(step)(x, rows[0])[0].sum())(x)


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (without_loop, 1),
        (scanned(jax.checkpoint(step), unroll=4), 4),
        (lambda x, rows: lax.scan(with_gradient_inside, x, rows)[0], 1),
        # The later layer is the first one of the body; the other waits for its cotangents.
        (scanned(two_layers), 1),
        (scanned(in_a_branch), 1),
    ],
)
def test_others_have_one(function, count):
    assert barriers(function, X, ROWS) == count
