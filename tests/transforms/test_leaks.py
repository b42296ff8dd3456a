"""checking_leaks: a traced value that outlives its function is found, and who keeps it."""

import gc
import weakref

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.custom_batching import sequential_vmap
from hlofront.experimental import checkify

pytestmark = pytest.mark.usefixtures("frozen_heap")
x = jnp.array([1.0, 2.0])
kept = []


def keeps(x):
    kept.append(x * 2)
    return jnp.sum(x * x)


@pytest.fixture(autouse=True)
def empty_leak_list():
    kept.clear()
    yield
    kept.clear()


@pytest.mark.parametrize(
    "transformed",
    [
        jax.grad(keeps),
        jax.value_and_grad(keeps),
        jax.jacrev(keeps),
        lambda x: jax.jvp(keeps, (x,), (x,)),
        lambda x: jax.vjp(keeps, x),
        lambda x: jax.linearize(keeps, x),
        jax.jit(jax.grad(keeps)),
        jax.vmap(jax.grad(lambda x: keeps(x))),
    ],
)
def test_values_of_derivatives_that_are_kept_are_found(transformed):
    with jax.checking_leaks(), pytest.raises(jax.errors.TracerLeakError, match="a list of 1"):
        transformed(x)


def test_the_error_names_the_function_and_the_keeper():
    with jax.checking_leaks(), pytest.raises(jax.errors.TracerLeakError) as caught:
        jax.jit(keeps)(x)
    assert "keeps at" in str(caught.value) and "test_leaks" in str(caught.value)
    assert "'kept' of module" in str(caught.value)


def test_the_keeper_is_named_where_the_collector_does_not_look():
    gc.freeze()
    with jax.checking_leaks(), pytest.raises(jax.errors.TracerLeakError) as caught:
        jax.jit(keeps)(x)
    assert "'kept' of module" in str(caught.value)


def test_nothing_is_looked_for_by_default():
    jax.grad(keeps)(x)
    assert len(kept) == 1


def test_a_function_that_let_go_of_its_values_passes_after_one_that_did_not():
    with jax.checking_leaks():
        with pytest.raises(jax.errors.TracerLeakError):
            jax.grad(keeps)(x)
        kept.clear()
        assert jax.grad(lambda x: jnp.sum(x * x))(x).tolist() == [2.0, 4.0]


# ---- what is no leak -----------------------------------------------------------------------------


def positive(x):
    checkify.check(jnp.all(x > 0), "not positive")
    return x * 2


def with_jvp(function):
    wrapped = jax.custom_jvp(function)
    wrapped.defjvp(lambda primals, tangents: (function(*primals), tangents[0]))
    return wrapped


def with_vjp(function):
    wrapped = jax.custom_vjp(function)
    wrapped.defvjp(lambda x: (function(x), None), lambda _, cotangent: (cotangent,))
    return wrapped


CHECKED = {
    "jit": jax.jit(positive),
    "cond": lambda x: lax.cond(x > 0, positive, lambda x: x, x),
    "scan": lambda x: lax.scan(lambda c, _: (positive(c), c), x, None, length=2),
    "while": lambda x: lax.while_loop(lambda c: c < 5, positive, x),
    "custom_jvp": with_jvp(positive),
    "custom_vjp": with_vjp(positive),
    "checkpoint": jax.checkpoint(positive),
    "grad_of_checkpoint": jax.grad(jax.checkpoint(positive)),
    "indexing": jax.jit(lambda x: jnp.stack([x, x])[jnp.array(1) + x.astype(int) * 0]),
    "division": jax.jit(lambda x: x / (x + 1)),
    "vmap": jax.jit(lambda x: jax.vmap(positive)(jnp.stack([x, x]))),
}


@pytest.mark.parametrize("errors", [checkify.user_checks, checkify.all_checks])
@pytest.mark.parametrize("name", CHECKED)
def test_checkify_keeps_no_traced_values(name, errors):
    with jax.checking_leaks():
        error, _ = checkify.checkify(CHECKED[name], errors=errors)(jnp.float32(1.0))
    assert error.get() is None


RETURNED = {
    "vjp": lambda x: jax.vjp(jnp.sin, x),
    "vjp_of_custom_jvp": lambda x: jax.vjp(jax.nn.relu, x),
    "vjp_of_checkpoint": lambda x: jax.vjp(jax.checkpoint(lambda y: jax.nn.relu(1.0 * y)), x),
    "linearize": lambda x: jax.linearize(jnp.sin, x),
    "custom_vmap": sequential_vmap(lambda x: x * 2),
}


@pytest.mark.parametrize("name", RETURNED)
def test_what_a_function_returns_keeps_no_traced_values(name):
    with jax.checking_leaks():
        jax.jit(RETURNED[name])(1.0)


DERIVED_WITH_AUX = {
    "grad": lambda f: jax.grad(f, has_aux=True)(1.0),
    "value_and_grad": lambda f: jax.value_and_grad(f, has_aux=True)(1.0),
    "vjp": lambda f: jax.vjp(f, 1.0, has_aux=True)[1](1.0),
    "jvp": lambda f: jax.jvp(f, (1.0,), (1.0,), has_aux=True),
    "linearize": lambda f: jax.linearize(f, 1.0, has_aux=True)[1](1.0),
    "jacfwd": lambda f: jax.jacfwd(f, has_aux=True)(1.0),
    "jacrev": lambda f: jax.jacrev(f, has_aux=True)(1.0),
    "hessian": lambda f: jax.hessian(f, has_aux=True)(1.0),
}


@pytest.mark.parametrize("name", DERIVED_WITH_AUX)
def test_an_auxiliary_value_is_no_leak(name):
    with jax.checking_leaks():
        DERIVED_WITH_AUX[name](lambda x: (jnp.sin(x), [x, x * 2]))


def doubled_by_jvp(function):
    custom = jax.custom_jvp(function)
    custom.defjvp(lambda primals, tangents: (primals[0] * 2, tangents[0] * 2))
    return custom


def doubled_by_vjp(function):
    custom = jax.custom_vjp(function)
    custom.defvjp(lambda x: (x * 2, None), lambda _, cotangent: (cotangent * 2,))
    return custom


@pytest.mark.parametrize("with_rule", [doubled_by_jvp, doubled_by_vjp])
def test_a_program_keeps_a_rule_and_not_the_function_over_a_mapped_value(with_rule):
    double = lambda factor: with_rule(lambda x: x * factor)(jnp.float32(1.0))
    with jax.checking_leaks():
        assert jax.jit(jax.vmap(double))(jnp.array([2.0, 2.0])).tolist() == [2.0, 2.0]


def test_vjp_lets_go_of_primals_that_it_does_not_need():
    class Held(np.ndarray):
        """An array that can be referred to weakly."""

    primal = np.ones(3, np.float32).view(Held)
    reference = weakref.ref(primal)
    _, pullback = jax.vjp(lambda x: x * 2, primal)
    del primal
    gc.collect()
    assert reference() is None
    assert pullback(jnp.ones(3))[0].tolist() == [2.0, 2.0, 2.0]


def test_a_program_without_a_leak_costs_no_garbage_collection(monkeypatch):
    """A collection walks over all objects of a process, and each trace would pay for one."""
    collections = []
    monkeypatch.setattr(gc, "collect", lambda: collections.append("collected"))
    with jax.checking_leaks():
        jax.jit(jax.grad(lambda x: jnp.sum(jnp.sin(x))))(x)
        jax.vmap(lambda x: lax.scan(lambda c, _: (c * 2, c), x, length=3))(x)
    assert not collections
