"""Arguments and values that JAX deprecates: they work, and warn at the user's line."""

import warnings

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp

x = jnp.ones(2)
batch = jnp.stack([jnp.eye(3)] * 2)
vectors = jnp.ones((2, 3))

DEPRECATED = {
    "backend of jit": lambda: jax.jit(jnp.sin, backend="cpu")(x),
    "device of jit": lambda: jax.jit(jnp.sin, device=jax.devices()[0])(x),
    "an array as a dtype": lambda: x.__numpy_dtype__,
    "host_id of local_devices": lambda: jax.local_devices(host_id=jax.process_index()),
    "use_magma of eig": lambda: jax.lax.linalg.eig(jnp.eye(2), use_magma=False),
    "one_hot of floats": lambda: jax.nn.one_hot(x, 2),
    "complex to real": lambda: (x + 1j).astype(float),
}
IN_THE_FUTURE = {
    "cho_solve of vectors": lambda: jax.scipy.linalg.cho_solve((batch, True), vectors),
    "lu_solve of vectors": lambda: jax.scipy.linalg.lu_solve(
        (batch, jnp.zeros((2, 3), int)), vectors
    ),
    "solve_triangular of vectors": lambda: jax.scipy.linalg.solve_triangular(batch, vectors),
}


@pytest.mark.parametrize(
    ("deprecated", "category"),
    [(f, DeprecationWarning) for f in DEPRECATED.values()]
    + [(f, FutureWarning) for f in IN_THE_FUTURE.values()],
    ids=[*DEPRECATED, *IN_THE_FUTURE],
)
def test_what_is_deprecated_warns_where_it_is_used(deprecated, category):
    with pytest.warns(category) as caught:
        deprecated()
    assert [warning.filename for warning in caught] == [__file__]


def test_solves_of_one_vector_or_of_matrices_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for b, shape in ((vectors[0], (2, 3)), (vectors[..., None], (2, 3, 1))):
            assert jax.scipy.linalg.solve_triangular(batch, b).shape == shape
        assert jax.scipy.linalg.solve_triangular(np.eye(3), np.eye(3)).shape == (3, 3)
