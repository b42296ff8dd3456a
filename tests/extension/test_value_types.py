"""Value types of packages: core.pytype_aval_mappings, xla.canonicalize_dtype_handlers."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.core import ShapedArray, pytype_aval_mappings
from hlofront.interpreters import xla

SCALAR = ShapedArray((), np.dtype(np.float32))


class Variable:
    """A value that NumPy converts, as tensorflow_probability has one."""

    def __init__(self, value):
        self.value = np.asarray(value, np.float32)
        self.shape, self.dtype = self.value.shape, self.value.dtype

    def __array__(self, dtype=None, copy=None):
        return self.value if dtype is None else self.value.astype(dtype)


class Opaque:
    """A value that NumPy cannot convert."""

    def __init__(self, value):
        self.value = value


class Derived(Opaque):
    pass


@pytest.fixture
def registered():
    pytype_aval_mappings[Variable] = pytype_aval_mappings[np.ndarray]
    xla.canonicalize_dtype_handlers[Variable] = xla.canonicalize_dtype_handlers[np.ndarray]
    pytype_aval_mappings[Opaque] = lambda x: SCALAR
    xla.canonicalize_dtype_handlers[Opaque] = lambda x: np.float32(x.value)
    yield
    for type_ in (Variable, Opaque):
        del pytype_aval_mappings[type_], xla.canonicalize_dtype_handlers[type_]


@pytest.mark.parametrize("make", [Variable, Opaque, Derived])
def test_values_of_registered_types_are_operands(registered, make):
    sine = np.sin(np.float32(0.5))
    assert jax.typeof(make(0.5)) == SCALAR
    for run in (jnp.sin, lax.sin, jax.jit(jnp.sin), lambda x: jax.jit(lambda: lax.sin(x))()):
        assert np.allclose(run(make(0.5)), sine)
    assert np.allclose(jax.grad(jnp.sin)(make(0.5)), np.cos(0.5))
    assert jax.device_put(make(0.5)).dtype == np.float32
    assert str(jax.make_jaxpr(lambda x: x)(make(0.5))).startswith("{ lambda ; a:f32[].")


def test_values_of_types_that_nobody_registered_are_refused():
    with pytest.raises(TypeError, match="Opaque"):
        lax.sin(Opaque(0.5))


def test_handlers_give_values_the_dtypes_of_operands():
    handlers = xla.canonicalize_dtype_handlers
    assert handlers[np.ndarray](np.ones(3)).dtype == np.float32
    assert handlers[float](1.5).dtype == np.float32 and handlers[int](3).dtype == np.int32
    array = jnp.ones(2)
    assert handlers[type(array)](array) is array
