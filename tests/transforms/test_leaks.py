"""checking_leaks: a traced value that outlives its function is found, and who keeps it."""

import pytest

import hlofront as jax
import hlofront.numpy as jnp

x = jnp.array([1.0, 2.0])
kept = []


def keeps(x):
    kept.append(x * 2)
    return jnp.sum(x * x)


@pytest.fixture(autouse=True)
def nothing_kept():
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


def test_nothing_is_looked_for_by_default():
    jax.grad(keeps)(x)
    assert len(kept) == 1


def test_a_function_that_let_go_of_its_values_passes_after_one_that_did_not():
    with jax.checking_leaks():
        with pytest.raises(jax.errors.TracerLeakError):
            jax.grad(keeps)(x)
        kept.clear()
        assert jax.grad(lambda x: jnp.sum(x * x))(x).tolist() == [2.0, 4.0]
