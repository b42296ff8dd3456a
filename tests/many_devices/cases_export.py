"""Exported programs for several devices: their shardings, other meshes, and numbers of devices."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import export
from hlofront.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

X = np.arange(8, dtype=np.float32)


@pytest.fixture(params=[AxisType.Auto, AxisType.Explicit], ids=str)
def mesh(request):
    return jax.make_mesh((8,), ("x",), (request.param,))


def exported_sine(mesh):
    split = NamedSharding(mesh, PartitionSpec("x"))
    sine = jax.jit(lambda x: jnp.sin(x) + 1, in_shardings=split, out_shardings=split)
    return export.export(sine)(X)


def test_another_mesh_and_derivatives(mesh):
    made = exported_sine(mesh)
    loaded = export.deserialize(made.serialize(vjp_order=1))
    assert made.nr_devices == loaded.nr_devices == 8
    assert loaded.in_splits == made.in_splits
    assert loaded.out_splits == made.out_splits
    assert loaded.in_avals == made.in_avals
    reversed_mesh = Mesh(np.array(jax.devices())[::-1], ("x",), mesh.axis_types)
    (sharding,) = loaded.in_shardings_jax(reversed_mesh)
    x = jax.device_put(X, sharding)
    result = loaded.call(x)
    np.testing.assert_allclose(result, np.sin(X) + 1, rtol=1e-6)
    assert result.sharding == loaded.out_shardings_jax(reversed_mesh)[0]
    gradient = jax.grad(lambda x: loaded.call(x).sum())(x)
    np.testing.assert_allclose(gradient, np.cos(X), rtol=1e-6)
    assert gradient.sharding.is_equivalent_to(sharding, 1)


def test_other_meshes_and_counts_are_refused(mesh):
    exported = exported_sine(mesh)
    with pytest.raises(ValueError, match="exported for 8 devices and is called in a context with"):
        exported.call(X)
    with pytest.raises(ValueError, match="does not match the mesh used for export"):
        exported.in_shardings_jax(jax.make_mesh((4, 2), ("x", "y")))


def test_shard_map_inside_and_around(mesh):
    split = NamedSharding(mesh, PartitionSpec("x"))
    x = jax.device_put(X, split)
    total = jax.shard_map(
        lambda x: jax.lax.psum(x * x, "x"),
        mesh=mesh,
        in_specs=PartitionSpec("x"),
        out_specs=PartitionSpec(),
    )
    inside = export.export(jax.jit(total))(x)
    np.testing.assert_array_equal(inside.call(x), [140])
    twice = export.export(jax.jit(lambda x: x * 2))(X[:1])
    around = jax.shard_map(
        twice.call, mesh=mesh, in_specs=PartitionSpec("x"), out_specs=PartitionSpec("x")
    )
    np.testing.assert_array_equal(jax.jit(around)(x), 2 * X)
