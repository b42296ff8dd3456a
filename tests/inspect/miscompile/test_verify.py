"""jit(f, verify=True): the first calls are checked, and a fault of XLA is an error with a line."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.inspect import MiscompileError
from tests.inspect.miscompile.planted import FAULTS, planted

FAULT = next(each for each in FAULTS if each.name == "changed comparison")
x = np.arange(3, dtype=np.float32)


@pytest.mark.slow
def test_a_fault_is_an_error_that_names_the_operation_and_its_line():
    with planted(FAULT), pytest.raises(MiscompileError, match=r"small = lax\.lt") as raised:
        jax.jit(FAULT.function, verify=True)(*FAULT.arguments)
    operations = [step.primitive for step in raised.value.report.operations]
    assert "lt" in operations
    assert "find_miscompile says which options cure it" in str(raised.value)


def test_as_many_calls_are_checked_as_are_wanted():
    traced = []

    @jax.jit(verify=1)
    def doubled(x, by=2):
        traced.append(1)
        return {"a": x * by}

    np.testing.assert_array_equal(doubled(x)["a"], x * 2)
    assert doubled._left == 0
    np.testing.assert_array_equal(doubled(x, by=3)["a"], x * 3)
    assert doubled.__name__ == "doubled"
    # It can be traced, lowered, differentiated and mapped like any jitted function.
    assert "multiply" in doubled.lower(x).as_text()
    np.testing.assert_array_equal(jax.vmap(lambda x: doubled(x)["a"])(x), x * 2)
    assert jax.grad(lambda x: doubled(x)["a"].sum())(x).tolist() == [2, 2, 2]


def test_donated_and_static_arguments():
    step = jax.jit(lambda x, n: x * n, static_argnums=1, donate_argnums=0, verify=True)
    first = jnp.asarray(x)
    np.testing.assert_array_equal(step(first, 3), x * 3)
    assert first.is_deleted()


def test_what_cannot_be_verified_is_refused():
    def printing(x):
        jax.debug.print("{}", x)
        return x

    with pytest.raises(TypeError, match="jit with verify runs the program many times"):
        jax.jit(printing, verify=True)(x)
    with pytest.raises(TypeError, match="how many calls"):
        jax.jit(jnp.sin, verify="yes")
    with pytest.raises(ValueError, match="at least 0"):
        jax.jit(jnp.sin, verify=-1)
