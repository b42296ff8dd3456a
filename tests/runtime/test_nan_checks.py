"""debug_nans: the operation that made a NaN is named."""

import traceback

import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax


def test_a_nan_is_named_eagerly_and_under_jit():
    with jax.debug_nans(True):
        for function in (jnp.log, jax.jit(lambda x: jnp.log(x) + 1)):
            with pytest.raises(FloatingPointError, match="nan"):
                function(-1.0)
    assert jnp.isnan(jnp.log(-1.0))


def test_an_infinity():
    with jax.debug_infs(True), pytest.raises(FloatingPointError, match="inf"):
        jnp.log(0.0)


def test_steps_of_a_function_may_be_infinite_where_its_result_is_not():
    zeros = jnp.zeros((2, 3, 3))
    with jax.debug_infs(True), jax.debug_nans(True):
        assert jnp.sum(jax.vmap(jax.scipy.linalg.expm)(zeros)) == 6
        assert jnp.sum(jax.grad(lambda x: jnp.sum(jax.scipy.linalg.expm(x)))(zeros)) == 18


def root_of_zero(x):
    zero = x * 0
    return jnp.sqrt(zero) * 0


@pytest.mark.parametrize(
    "backwards", [jax.grad(root_of_zero), lambda x: jax.vjp(root_of_zero, x)[1](1.0)]
)
def test_the_cause_of_a_nan_of_the_backward_pass_shows_the_forward_line(backwards):
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="nan") as caught:
        backwards(0.0)
    cause = caught.value.__cause__
    assert type(cause).__name__ == "JaxStackTraceBeforeTransformation"
    assert str(cause).startswith("FloatingPointError: invalid value (nan)")
    last = traceback.extract_tb(cause.__traceback__)[-1]
    assert last.name == "root_of_zero" and "jnp.sqrt(zero)" in last.line


def no_number(x):
    return jnp.log(x - 1) * 0 + x


@pytest.mark.parametrize(
    "loop",
    [
        lambda x: lax.scan(lambda c, _: (c, no_number(c)), x, None, length=2),
        lambda x: lax.map(lambda row: (row, no_number(row)), jnp.stack([x, x])),
        lambda x: lax.fori_loop(0, 2, lambda _, c: (c[0], no_number(c[0])), (x, x)),
        jax.jit(lambda x: lax.scan(lambda c, _: (c, no_number(c)), x, None, length=2)),
    ],
    ids=["scan", "map", "fori_loop", "jit"],
)
def test_a_nan_in_a_loop_that_returns_some_values_unchanged(loop):
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match=r"nan.* in log"):
        loop(0.5)


@pytest.mark.parametrize(("option", "bad"), [(jax.debug_nans, -1.0), (jax.debug_infs, 0.0)])
def test_each_call_of_a_jitted_function_is_checked(option, bad):
    f = jax.jit(lambda x: jnp.log(x) + 1)
    good, bad = jnp.asarray(2.0), jnp.asarray(bad)
    with option(True):
        for _ in range(2):
            f(good)
            f(good)
            with pytest.raises(FloatingPointError):
                f(bad)
