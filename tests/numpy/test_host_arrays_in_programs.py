"""Functions that leave a NumPy array unchanged return a constant of the program, with methods."""

import numpy as np
import pytest

import hlofront as jax
from hlofront import lax
from hlofront import numpy as jnp

X = np.array([1.0, -2.0], np.float32)


@pytest.mark.parametrize(
    "function",
    [
        lambda: jnp.real(X),
        lambda: jnp.conj(X),
        lambda: jnp.positive(X),
        lambda: jnp.clip(X),
        lambda: jnp.diff(X, n=0),
        lambda: jnp.polyder(X, 0),
        lambda: jnp.polyint(X, 0),
        lambda: jnp.histogram_bin_edges(X, X),
        lambda: jnp.asarray(X),
        lambda: jnp.astype(X, np.float32),
        lambda: jax.nn.identity(X),
        lambda: lax.stage(X),
        lambda: lax.convert_element_type(X, np.float32),
    ],
    ids=lambda function: function.__code__.co_names[-1],
)
def test_the_result_has_the_methods_of_arrays(function):
    program = jax.make_jaxpr(lambda: function().at[0].set(3))
    assert str(program()).startswith("{ lambda a:f32[2]")
    assert jax.jit(lambda: function().at[0].set(3))().tolist() == [3, -2]
    assert jax.vmap(lambda y: function().at[0].set(y))(X).tolist() == [[1, -2], [-2, -2]]


@pytest.mark.parametrize(
    "call",
    [
        lambda: jax.nn.identity(2.0),
        lambda: jnp.abs(True),
        lambda: jnp.positive(np.float32(2)),
        lambda: jnp.real(2.0),
        lambda: jnp.clip(2.0),
        lambda: jnp.linalg.matrix_power(np.eye(2, dtype=np.float32), 1),
        lambda: jnp.polyfit(np.arange(3.0), np.ones(3), 1, full=True)[4],
    ],
)
def test_functions_that_return_an_argument_return_an_array_of_the_program(call):
    def look(x):
        result = call()
        assert isinstance(result, jax.Array), type(result)
        return result.astype(x.dtype) * x

    eager = call()
    assert jax.eval_shape(look, 1.0).shape == eager.shape
    jax.vmap(look)(jnp.ones(3))
    jax.jvp(look, (1.0,), (1.0,))
