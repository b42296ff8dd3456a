"""Types of arrays: in which memory they are, and how they say that arrays are split."""

import pickle

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.core import ShapedArray
from hlofront.core.sharding.manual_axes import ManualAxisType
from hlofront.memory import Space
from hlofront.sharding import AbstractMesh, AxisType, NamedSharding
from hlofront.sharding import PartitionSpec as P


def test_memory_spaces():
    host = ShapedArray((8,), np.float32, memory_space=Space.Host)
    assert str(host) == "float32<host>[8]" and host.str_short(True) == "f32<host>[8]"
    assert ShapedArray((8,), np.float32, memory_space=Space.Any).str_short(True) == "f32<any>[8]"
    plain = ShapedArray((8,), np.float32)
    assert host != plain and plain.memory_space is Space.Device
    assert ShapedArray((8,), np.float32, memory_space=Space.Device) is plain
    assert str(host.update(shape=(3,))) == "float32<host>[3]"
    assert host.update(memory_space=Space.Device) is plain
    assert plain.update(memory_space=Space.Host) == host == host.to_tangent_aval()
    assert str(host.update(dtype=np.int32).to_tangent_aval()) == "float0<host>[8]"
    assert pickle.loads(pickle.dumps(host)) == host
    with pytest.raises(TypeError, match="memory_space is one of"):
        ShapedArray((8,), np.float32, memory_space="host")


def test_types_of_arrays_on_one_device_are_split_along_no_axis():
    sharding = jax.typeof(jnp.ones((2, 3))).sharding
    assert sharding.spec is P(None, None) and sharding.mesh.empty
    assert sharding == NamedSharding(AbstractMesh((), ()), P(None, None))
    assert sharding is jax.typeof(np.ones((4, 5))).sharding
    assert sharding.is_fully_replicated and sharding.num_devices == 0
    assert sharding.shard_shape((2, 3)) == (2, 3) and sharding.memory_kind is None
    with pytest.raises(ValueError, match="has no devices"):
        _ = sharding.device_set
    jax.jit(lambda x: x + len(jax.typeof(x).sharding.spec))(1.0)
    assert ShapedArray((2, 3), np.float32, sharding=sharding) is jax.typeof(jnp.ones((2, 3)))
    with pytest.raises(ValueError, match="at most an entry for each"):
        ShapedArray((2,), np.float32, sharding=sharding)


EXPLICIT = AbstractMesh((2, 4), ("x", "y"), (AxisType.Explicit, AxisType.Explicit))
MIXED = AbstractMesh((2, 4), ("x", "y"), (AxisType.Auto, AxisType.Explicit))


def split(shape, mesh, *entries, **sums):
    return ShapedArray(shape, np.float32, sharding=NamedSharding(mesh, P(*entries, **sums)))


def test_types_say_which_explicit_axes_split_an_array():
    assert str(split((8, 4), EXPLICIT, "x", "y")) == "float32[8@x,4@y]"
    assert str(split((8, 4), EXPLICIT, ("x", "y"))) == "float32[8@(x,y),4]"
    assert str(split((8, 4), EXPLICIT, "x", unreduced={"y"})) == "float32[8@x,4]{U:y}"
    assert str(split((8, 4), MIXED, "x", "y")) == "float32[8,4@y]"
    assert split((8,), MIXED, "x") is ShapedArray((8,), np.float32)
    aval = split((8, 4), EXPLICIT, "x")
    assert aval.sharding == NamedSharding(EXPLICIT, P("x", None))
    assert aval is split((8, 4), EXPLICIT, "x", None) and pickle.loads(pickle.dumps(aval)) is aval
    assert str(aval.update(dtype=np.int32)) == "int32[8@x,4]"
    assert str(aval.update(shape=(2,))) == "float32[2]"
    with pytest.raises(ValueError, match="evenly divide"):
        split((9,), EXPLICIT, "x")


def test_types_say_along_which_manual_axes_values_vary():
    aval = ShapedArray((8,), np.float32, manual_axis_type=ManualAxisType(varying={"x", "y"}))
    assert str(aval) == "float32[8]{V:(x,y)}"
    other = aval.update(manual_axis_type=ManualAxisType(varying={"x"}, unreduced={"y"}))
    assert str(other) == "float32[8]{V:x, U:y}"
    assert str(other.to_cotangent_aval()) == "float32[8]{V:x, R:y}"
    assert pickle.loads(pickle.dumps(other)) is other
    with pytest.raises(ValueError, match="exactly one of"):
        ManualAxisType(varying={"x"}, reduced={"x"})


@pytest.mark.parametrize(
    "made",
    [
        lambda s: jax.random.bernoulli(jax.random.key(0), 0.5, (2, 3), out_sharding=s),
        lambda s: jnp.zeros((2, 3), device=s),
        lambda s: jnp.ones((2, 3), out_sharding=s),
        lambda s: jnp.ones(6).reshape(2, 3, out_sharding=s),
        lambda s: jnp.einsum("i,j->ij", jnp.ones(2), jnp.ones(3), out_sharding=s),
        lambda s: lax.full((2, 3), 1.0, sharding=s),
        lambda s: lax.broadcast_in_dim(jnp.ones(3), (2, 3), (1,), out_sharding=s),
        lambda s: jax.jit(jnp.sin).eval_shape(jax.ShapeDtypeStruct((2, 3), "float32", sharding=s)),
    ],
)
def test_the_sharding_of_a_type_asks_nothing_of_an_operation(made):
    assert made(jax.typeof(jnp.ones((2, 3))).sharding).shape == (2, 3)


def test_constraints_are_over_devices():
    sharding = jax.typeof(jnp.ones(3)).sharding
    with pytest.raises(ValueError, match="over devices"):
        lax.with_sharding_constraint(jnp.ones(3), sharding)
    with pytest.raises(ValueError, match="over devices"):
        jax.jit(lambda x: x, out_shardings=sharding)
