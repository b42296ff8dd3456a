"""Functions that are a custom_jvp in JAX are one here, whose rule libraries may replace."""

import pickle

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.higher_order.custom_rules.custom_jvp import as_custom_jvp
from hlofront.scipy import special

FUNCTIONS = {
    jax.nn: "log1mexp relu relu6",
    special: "expi expn fresnel hyp1f1 hyp2f1 log_ndtr logit poch sici xlog1py xlogy zeta",
}


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, n in FUNCTIONS.items() for name in n.split()]
)
def test_they_are_functions_with_a_rule_that_can_be_replaced(module, name):
    function = getattr(module, name)
    assert type(function) is jax.custom_jvp
    assert callable(function.__wrapped__) and function.__name__ == name and function.__doc__
    assert pickle.loads(pickle.dumps(function)) is function


def test_their_values_and_derivatives_are_those_of_what_they_wrap():
    x = np.array([-1.0, 2.0, 7.0], np.float32)
    assert jax.nn.relu(x).tolist() == [0, 2, 7] and jax.nn.relu6(x).tolist() == [0, 2, 6]
    assert jax.vmap(jax.grad(jax.nn.relu6))(x).tolist() == [0, 1, 0]
    assert jax.jit(jax.nn.relu)(x).tolist() == [0, 2, 7]
    assert special.xlogy(x=0.0, y=0.0) == 0
    assert special.log_ndtr(0.0, series_order=5) == np.log(np.float32(0.5))
    with pytest.raises(TypeError, match="relu"):
        jax.nn.relu("a")


def test_a_rule_replaces_the_derivative_and_not_the_value():
    double = as_custom_jvp(jax.jit(lambda x: 2 * x))
    assert double(3.0) == 6 and jax.grad(double)(3.0) == 2
    double.defjvp(lambda primals, tangents: (double(*primals), 100 * tangents[0]))
    assert double(3.0) == 6 and jax.grad(double)(3.0) == 100
    assert jax.jit(jax.grad(lambda x: double(x).sum()))(jnp.ones(2)).tolist() == [100, 100]
