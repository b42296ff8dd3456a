"""Backward rules that log or take accumulators; the expected values are those of jax 0.12.0.1."""

import math

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.experimental.hijax import HiPrim, NullAccum, RefAccum, ValAccum


@jax.custom_vjp
def sine(x):
    return jnp.sin(x)


sine.defvjp_with_logs(
    lambda x: (sine(x), x), lambda x, g: ((g * jnp.cos(x),), {"gradient": g, "at": [x, 1]})
)


def logs_of(f, *args, cotangent=1.0):
    return jax.vjp(f, *args)[1].with_logs(cotangent)


class Sine(HiPrim):
    def __init__(self, aval):
        self.in_avals, self.out_aval, self.params = (aval,), aval, {}
        super().__init__()

    def expand(self, x):
        return jnp.sin(x)

    def vjp_fwd(self, nzs_in, x):
        return jnp.sin(x), x

    def vjp_bwd(self, x, g, total):
        total.accum(g * jnp.cos(x))
        return {"gradient": g, "at": [x, 1]}


WAYS = {
    "plain": sine,
    "jit": jax.jit(sine),
    "nested jit": jax.jit(lambda x: jax.jit(sine)(x) * 1.0),
    "checkpoint": jax.checkpoint(sine),
    "checkpoint of jit": jax.checkpoint(lambda x: jax.jit(sine)(x) * 1.0),
    "custom_gradient": jax.custom_gradient(
        lambda x: (jnp.sin(x), lambda g: (g * jnp.cos(x), {"gradient": g, "at": [x, 1]})),
        with_logs=True,
    ),
    "HiPrim": lambda x: Sine(jax.typeof(x))(x),
    "HiPrim in jit": jax.jit(lambda x: Sine(jax.typeof(x))(x)),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_a_backward_rule_logs_is_returned(way):
    f = WAYS[way]
    (gradient,), logs = logs_of(f, 2.0, cotangent=3.0)
    assert gradient == pytest.approx(3 * math.cos(2.0))
    assert jax.tree.map(float, logs) == {"gradient": 3.0, "at": [2.0, 1.0]}
    # Also of a pullback that was made or is called in a jitted function.
    (gradient,), logs = jax.jit(lambda x: logs_of(f, x, cotangent=3.0))(2.0)
    assert jax.tree.map(float, logs) == {"gradient": 3.0, "at": [2.0, 1.0]}
    # A call drops it.
    assert jax.vjp(f, 2.0)[1](3.0) == (gradient,) and jax.grad(f)(2.0) * 3 == gradient


def test_batches_of_logs_have_the_batch_axis_in_front():
    x = jnp.arange(3.0)
    for (gradient,), logs in (
        logs_of(lambda x: jax.vmap(sine)(x).sum(), x),
        jax.vmap(lambda x: logs_of(sine, x))(x),
        logs_of(lambda x: jax.vmap(jax.vmap(sine))(x[None]).sum(), x),
    ):
        np.testing.assert_allclose(gradient, np.cos(x), rtol=1e-6)
        np.testing.assert_array_equal(np.ravel(logs["gradient"]), [1, 1, 1])
        np.testing.assert_array_equal(np.ravel(logs["at"][0]), x)
    assert logs["at"][0].shape == (1, 3)


def test_nothing_is_logged_where_nothing_runs():
    assert logs_of(jnp.sin, 2.0)[1] == {}
    assert logs_of(lambda x: (sine(x), x)[1], 2.0) == ((1.0,), {})
    quiet = jax.custom_vjp(jnp.sin)
    quiet.defvjp_with_logs(lambda x: (quiet(x), x), lambda x, g: ((g,), None))
    assert logs_of(quiet, 2.0) == ((1.0,), {})


def test_logs_of_several_rules_have_several_names():
    @jax.custom_vjp
    def scaled(x, y):
        return x * y

    scaled.defvjp_with_logs(
        lambda x, y: (x * y, (x, y)), lambda xy, g: ((g * xy[1], g * xy[0]), {"scale": xy[1]})
    )
    _, logs = logs_of(lambda x: scaled(sine(x), x), 2.0)
    assert sorted(logs) == ["at", "gradient", "scale"] and logs["scale"] == 2
    # A rule's own backward pass has its own logs.
    outer = jax.custom_vjp(sine)
    outer.defvjp(lambda x: (sine(x), x), lambda x, g: (g * jax.grad(sine)(x),))
    assert logs_of(outer, 2.0)[1] == {}
    with pytest.raises(ValueError, match="Duplicate backward-pass log key 'gradient'"):
        logs_of(lambda x: sine(sine(x)), 2.0)


def test_logs_can_be_differentiated():
    slope = jax.grad(lambda x: logs_of(lambda x: sine(x) * x, x)[1]["gradient"])
    assert slope(2.0) == 1.0


@pytest.mark.parametrize(
    "f",
    [
        lambda x: lax.scan(lambda c, _: (sine(c), None), x, None, length=3)[0],
        lambda x: lax.cond(x > 0, sine, lambda x: x, x),
        jax.jit(lambda x: lax.cond(x > 0, sine, lambda x: x, x)),
    ],
)
def test_logs_in_loops_and_branches_are_refused_also_after_a_gradient(f):
    gradient = jax.grad(f)(2.0)
    assert np.isfinite(gradient)
    with pytest.raises(ValueError, match=r"inside of (scan|cond)"):
        logs_of(f, 2.0)


def test_wrong_results_of_rules_that_log():
    for output, text in [
        (lambda x, g: (g,), "must produce a pair"),
        (lambda x, g: ((g,), [g]), "None or a dict of backward-pass log entries, but got list"),
    ]:
        f = jax.custom_vjp(jnp.sin)
        f.defvjp_with_logs(lambda x: (jnp.sin(x), x), output)
        with pytest.raises(TypeError, match=text):
            jax.grad(f)(1.0)
    f = jax.custom_gradient(lambda x: (x, lambda g: g), with_logs=True)
    with pytest.raises(TypeError, match="producing a pair"):
        jax.grad(f)(1.0)


# ---- accumulators --------------------------------------------------------------------------------


def test_a_backward_rule_adds_to_accumulators():
    seen = []

    def backward(residuals, g, totals, count_total):
        seen.append(type(totals["y"]))
        assert type(count_total) is NullAccum
        x, y = residuals
        totals["x"].accum(g * y)
        totals["y"].accum(g * x)
        return {"gradient": g}

    f = jax.custom_vjp(lambda xy, count: xy["x"] * xy["y"])
    f.defvjp_with_accums(lambda xy, count: (f(xy, count), (xy["x"], xy["y"])), backward)
    xy = {"x": 2.0, "y": 3.0}
    assert jax.grad(f)(xy, 1) == {"x": 3.0, "y": 2.0}
    assert jax.grad(lambda x: jax.jit(f)({"x": x, "y": 3.0}, 1))(2.0) == 3.0
    assert seen[0] is ValAccum and NullAccum in seen
    assert jax.vjp(lambda xy: f(xy, 1), xy)[1].with_logs(1.0)[1] == {"gradient": 1.0}
    batch = jax.tree.map(lambda x: jnp.full(2, x), xy)
    assert jax.vmap(jax.grad(f), (0, None))(batch, 1)["x"].tolist() == [3, 3]


def test_references_get_what_accumulators_get():
    f = jax.custom_vjp(lambda x: x**2)
    f.defvjp_with_accums(lambda x: (x**2, x), lambda x, g, total: total.accum(2 * x * g))
    ref = jax.new_ref(jnp.float32(1.0))
    jax.vjp(f, 3.0)[1].with_refs(ref)(1.0)
    assert ref[...] == 7


def test_custom_gradient_with_accumulators():
    @jax.custom_gradient(with_accums=ValAccum)
    def product(x, y, n):
        def backward(g, x_total, y_total, n_total):
            x_total.accum(g * y)
            x_total.accum(g)
            assert type(n_total) is NullAccum
            return {"gradient": g}

        return x * y, backward

    assert jax.grad(product, (0, 1))(2.0, 3.0, 4) == (4.0, 0.0)
    assert logs_of(lambda x: product(x, 3.0, 4), 2.0)[1] == {"gradient": 1.0}
    with pytest.raises(ValueError, match=r"only hijax\.ValAccum"):
        jax.custom_gradient(jnp.sin, with_accums=(ValAccum, RefAccum))


def test_rules_for_checkpoint_are_refused():
    for define in (sine.defremat, sine.defremat_with_logs):
        with pytest.raises(NotImplementedError, match="chosen by its policy"):
            define(None, None, None)
    with pytest.raises(NotImplementedError, match="chosen by its policy"):
        jax.custom_gradient(remat=True)(jnp.sin)
