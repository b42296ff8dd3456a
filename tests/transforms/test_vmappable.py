"""vmap of values of registered types, as jax.interpreters.batching has it."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.interpreters import batching
from hlofront.transforms import vmappable


class Named:
    """An array whose axes have names."""

    def __init__(self, names, data):
        self.names = list(names)
        self.data = data


class Axis:
    """Says of Named which axis is mapped: its name, and where it is."""

    def __init__(self, name, place):
        self.name = name
        self.place = place


indices = []


def to_element(inner, index, value, spec):
    indices.append(index)
    names = [name for name in value.names if name != spec.name]
    return Named(names, inner(value.data, spec.place))


def from_element(inner, axis_size, element, spec):
    names = list(element.names)
    names.insert(spec.place, spec.name)
    return Named(names, inner(axis_size, element.data, spec.place))


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    # Unregistering does nothing, as in jax; other tests are to find vmap as it was.
    monkeypatch.setattr(vmappable, "_rules", dict(vmappable._rules))
    monkeypatch.setattr(vmappable, "_spec_types", set(vmappable._spec_types))
    batching.register_vmappable(Named, Axis, int, to_element, from_element, None)
    yield
    batching.unregister_vmappable(Named)


x = Named("ij", jnp.arange(12.0).reshape(3, 4))


def test_values_are_mapped_by_their_rules():
    def doubled(v):
        assert v.names == ["j"] and v.data.shape == (4,)
        return Named(v.names, v.data * 2)

    found = jax.vmap(doubled, in_axes=Axis("i", 0), out_axes=Axis("k", 1), axis_size=3)(x)
    assert found.names == ["j", "k"]
    np.testing.assert_array_equal(found.data, x.data.T * 2)


def test_beside_arrays_and_inside_of_trees():
    def function(v, w):
        return {"named": Named(v.names, v.data * w), "sum": v.data.sum() * w}

    mapped = jax.vmap(function, (Axis("i", 0), 0), {"named": Axis("i", 0), "sum": 0})
    found = mapped(x, jnp.arange(3.0))
    np.testing.assert_array_equal(found["named"].data, x.data * np.arange(3.0)[:, None])
    np.testing.assert_array_equal(found["sum"], [0, 22, 76])


def test_results_that_do_not_depend_on_the_example():
    constant = jax.vmap(lambda v: Named("j", jnp.ones(4)), Axis("i", 0), Axis("i", 0), axis_size=3)
    np.testing.assert_array_equal(constant(x).data, np.ones((3, 4)))


def test_the_number_of_the_example():
    numbers = jax.vmap(lambda v: indices[-1](), in_axes=Axis("i", 0), axis_size=3)(x)
    np.testing.assert_array_equal(numbers, [0, 1, 2])


def test_inside_of_other_transformations():
    def squares(data):
        mapped = jax.vmap(lambda v: (v.data**2).sum(), in_axes=Axis("i", 0), axis_size=3)
        return mapped(Named("ij", data)).sum()

    np.testing.assert_array_equal(jax.jit(jax.grad(squares))(x.data), 2 * x.data)
    stacked = jnp.stack([x.data, x.data + 1])
    np.testing.assert_allclose(jax.vmap(squares)(stacked), [506, 650])


def test_what_is_missing_or_differs():
    with pytest.raises(ValueError, match="axis_size must be specified"):
        jax.vmap(lambda v: v, in_axes=Axis("i", 0), out_axes=Axis("i", 0))(x)
    with pytest.raises(ValueError, match="inconsistent sizes"):
        jax.vmap(lambda v, w: w, in_axes=(Axis("i", 0), 0), axis_size=2)(x, jnp.arange(3.0))
    with pytest.raises(TypeError, match="in_axes must be an int"):
        jax.vmap(lambda v: v, in_axes="i")
