"""PartitionSpec, NamedSharding, GSPMDSharding: what they say, and how arrays are split."""

import copy
import itertools
import pickle

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.bridge.client import GSPMDSharding
from hlofront.errors import DuplicateSpecError, IndivisibleError
from hlofront.pjrt.hlo_shardings import spec_of
from hlofront.pjrt.named_shardings import from_hlo, hlo_sharding
from hlofront.sharding import AxisType, Mesh, NamedSharding, SingleDeviceSharding
from hlofront.sharding import PartitionSpec as P
from tests.many_devices.meshes import devices, matrix, mesh, split

ENTRIES = (None, "x", "y", ("x", "y"), ("y", "x"))
SPECS = [
    P(*entries)
    for entries in itertools.product(ENTRIES, repeat=2)
    if len(set(P(*entries).names())) == len(P(*entries).names())
]


def test_spec_as_text():
    assert repr(P()) == "P()"
    assert repr(P("x")) == "P('x',)"
    assert repr(P(None, ("x", "y"))) == "P(None, ('x', 'y'))"
    assert repr(P(P.UNCONSTRAINED, "x")) == "P(UNCONSTRAINED, 'x')"
    assert repr(P("x", unreduced={"y"})) == "P('x', unreduced={'y'})"


def test_spec_as_a_sequence():
    assert P("x") != P("x", None)
    assert P(("x",)) == P("x") == P(["x"])
    assert P(()) == P(None)
    assert P("x") + ("y",) == P("x") + P("y") == P("x", "y")
    assert ("y",) + P("x") == P("y", "x")
    assert P("x", "y")[0] == "x"
    assert P("x", "y")[0:1] == ("x",)
    assert tuple(P("x", None)) == ("x", None)
    assert P("x", "y").index("y") == 1
    assert P("x", "x").count("x") == 2
    assert P("x").update(partitions=("y",)) == P("y")
    assert P("x") != ("x",)
    assert pickle.loads(pickle.dumps(P(P.UNCONSTRAINED, ("x", "y")))) == P(
        P.UNCONSTRAINED, ("x", "y")
    )


def test_wrong_specs():
    with pytest.raises(ValueError, match="overlap"):
        P("x", unreduced={"x"})
    with pytest.raises(TypeError, match="set"):
        P("x", unreduced="x")
    with pytest.raises(ValueError, match=r"dangerous|more than"):
        tuple(P("x", unreduced={"y"}))


def test_wrong_shardings():
    with pytest.raises(ValueError, match=r"Resource axis: z .* is not found in mesh"):
        split("z")
    with pytest.raises(DuplicateSpecError, match="duplicate entries for `x`"):
        split("x", "x")
    with pytest.raises(DuplicateSpecError):
        split(("x", "y"), "y")
    with pytest.raises(TypeError, match="takes a Mesh and a PartitionSpec"):
        NamedSharding(mesh, ("x",))
    with pytest.raises(ValueError, match="memory"):
        split("x", memory_kind="nope")
    with pytest.raises(ValueError, match="type Explicit"):
        NamedSharding(mesh, P(unreduced={"x"}))
    with pytest.raises(ValueError, match="UNCONSTRAINED is for with_sharding_constraint"):
        jax.device_put(np.ones(8), split(P.UNCONSTRAINED))
    for place in ("in_shardings", "out_shardings"):
        with pytest.raises(ValueError, match="UNCONSTRAINED is for with_sharding_constraint"):
            jax.jit(jnp.sin, **{place: split(P.UNCONSTRAINED)})


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_each_device_has_its_part(spec):
    sharding = NamedSharding(mesh, spec)
    values = np.arange(8 * 16, dtype=np.int32).reshape(8, 16)
    array = jax.device_put(values, sharding)
    assert array.sharding == sharding
    assert array.committed
    np.testing.assert_array_equal(array, values)
    shape = sharding.shard_shape(values.shape)
    copies = {}
    for shard in array.addressable_shards:
        assert shard.data.shape == shape
        np.testing.assert_array_equal(shard.data, values[shard.index])
        assert shard.replica_id == copies.get(str(shard.index), 0)
        copies[str(shard.index)] = shard.replica_id + 1
    assert len(copies) * next(iter(copies.values())) == 8


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_hlo_and_back(spec):
    sharding = NamedSharding(mesh, spec)
    described = hlo_sharding(sharding, 2)
    found = spec_of(described, mesh, 2)
    assert NamedSharding(mesh, found).is_equivalent_to(sharding, 2)
    # On another mesh it may have no specification: then it is as XLA has it.
    other = Mesh(mesh.devices.reshape(8), ("a",))
    kept = from_hlo(described, NamedSharding(other, P()), 2)
    assert kept.is_equivalent_to(sharding, 2)
    assert kept.devices_indices_map((8, 16)) == sharding.devices_indices_map((8, 16))


def test_what_xla_says():
    assert str(hlo_sharding(split("x"), 2)) == "{devices=[4,1,2]<=[8] last_tile_dim_replicate}"
    assert str(hlo_sharding(split(("y", "x")), 2)) == "{devices=[8,1]<=[4,2]T(1,0)}"
    assert str(hlo_sharding(split("y", "x"), 2)) == "{devices=[2,4]<=[4,2]T(1,0)}"
    assert str(hlo_sharding(split(), 2)) == "{replicated}"


def test_members():
    sharding = split("x")
    assert sharding.num_devices == 8
    assert sharding.device_set == set(devices) == sharding.addressable_devices
    assert sharding.is_fully_addressable and sharding.has_addressable_devices
    assert not sharding.is_fully_replicated
    assert split(None).is_fully_replicated
    assert sharding.memory_kind == "device"
    assert sharding.with_memory_kind("pinned_host").memory_kind == "pinned_host"
    assert sharding.update(spec=P("y")) == split("y")
    assert split("x", memory_kind="device") == sharding
    assert hash(split("x")) == hash(sharding)
    assert copy.deepcopy(sharding) is sharding
    assert repr(sharding) == (
        "NamedSharding(mesh=Mesh('x': 4, 'y': 2, axis_types=(Auto, Auto)), spec=P('x',), "
        "memory_kind=device)"
    )


def test_equivalence():
    assert split("x") != split("x", None)
    assert split("x").is_equivalent_to(split("x", None), 2)
    assert not split("x").is_equivalent_to(split("y"), 1)
    assert not split().is_equivalent_to(SingleDeviceSharding(devices[0]), 1)
    other = Mesh(mesh.devices.reshape(8)[::-1].reshape(4, 2), ("x", "y"))
    assert not split("x").is_equivalent_to(NamedSharding(other, P("x")), 1)
    turned = Mesh(mesh.devices.T, ("y", "x"))
    assert split("x", "y").is_equivalent_to(NamedSharding(turned, P("x", "y")), 2)


def test_sizes_that_do_not_divide():
    with pytest.raises(IndivisibleError, match=r"axis 0 is partitioned 4 times.* size is 7"):
        split("x").shard_shape((7, 4))
    with pytest.raises(ValueError, match="rank at least 2"):
        split("x", "y").shard_shape((8,))
    with pytest.raises(IndivisibleError):
        jax.device_put(np.ones(7), split("x"))
    with pytest.raises(ValueError, match="rank at least"):
        jax.device_put(np.ones(8), split("x", None))


def test_moving_between_shardings():
    array = matrix("x", "y")
    values = np.asarray(array)
    for target in (split("y", "x"), split(), split(("x", "y")), devices[3]):
        moved = jax.device_put(array, target)
        np.testing.assert_array_equal(moved, values)
        wanted = SingleDeviceSharding(target) if target is devices[3] else target
        assert moved.sharding == wanted
    assert jax.device_put(array, split("x", "y")) is array
    one = jax.device_put(values, devices[1])
    assert jax.device_put(one, split("x")).sharding == split("x")


def test_arrays_made_of_parts():
    values = np.arange(8, dtype=np.float32)
    made = jax.make_array_from_callback((8,), split("x"), lambda index: values[index])
    np.testing.assert_array_equal(made, values)
    parts = [jax.device_put(values[i : i + 1], device) for i, device in enumerate(devices)]
    made = jax.make_array_from_single_device_arrays((8,), split(("x", "y")), parts)
    np.testing.assert_array_equal(made, values)
    assert made.sharding == split(("x", "y"))


def test_like_another_array():
    """Where that is committed, as in jax; a shape of its own need not fit its parts."""
    for array in (matrix("x"), jax.device_put(np.ones((8, 4)), devices[2])):
        likes = (jnp.zeros_like, jnp.ones_like, jnp.empty_like, lambda a: jnp.full_like(a, 2))
        for make in (*likes, lambda a: jax.lax.full_like(a, 1)):
            found = make(array)
            assert found.sharding == array.sharding and found.committed
    assert jnp.zeros_like(matrix("x"), shape=(3,)).sharding == SingleDeviceSharding(devices[0])
    on_one = jax.device_put(np.ones((8, 4)), devices[2])
    for make in (jnp.full_like, jax.lax.full_like):
        for shape in ((3,), (8, 4)):
            assert make(on_one, 1, shape=shape).sharding == on_one.sharding
    assert jax.lax.full_like(matrix("x"), 1, shape=(8, 4)).sharding == matrix("x").sharding
    assert jax.lax.full_like(matrix("x"), 1, shape=(5, 5)).devices() == {devices[0]}


def test_made_with_a_specification_of_too_many_axes():
    """Those that are not split may be left over; jax calls this an error for values that exist."""
    wanted = split("x")
    for make in (
        lambda s: jax.lax.full((8,), 1.0, sharding=s),
        lambda s: jax.lax.full_like(np.ones(8), 1.0, sharding=s),
        lambda s: jnp.ones((8,), device=s),
        lambda s: jnp.zeros((8,), device=s),
        lambda s: jnp.full((8,), 2.0, device=s),
        lambda s: jnp.ones_like(np.ones(8), device=s),
        jax.jit(lambda s: jax.lax.full((8,), 1.0, sharding=s), static_argnums=0),
    ):
        assert make(split("x", None)).sharding.is_equivalent_to(wanted, 1)
    for make in (
        lambda s: jax.device_put(np.ones(8), s),
        lambda s: jax.lax.full((8,), 1.0, sharding=s),
    ):
        with pytest.raises(ValueError, match="rank at least 2"):
            make(split("x", "y"))
    with pytest.raises(ValueError, match="rank at least 2"):
        jax.device_put(np.ones(8), split("x", None))


def test_made_with_a_sharding():
    assert jax.lax.full((8,), 1.0, sharding=split("x")).sharding == split("x")
    assert jnp.zeros((8, 4), device=split("x")).sharding == split("x")


def test_no_elements_and_no_axes():
    empty = jax.device_put(np.zeros((0, 4), np.float32), split("x"))
    assert (empty + 1).shape == (0, 4)
    scalar = jax.device_put(np.float32(3), split())
    assert float(scalar + 1) == 4
    assert (scalar + 1).sharding == split()


def test_gspmd():
    described = hlo_sharding(split("x"), 1)
    one, other = (GSPMDSharding(mesh._internal_device_list, described) for _ in range(2))
    assert one == other and hash(one) == hash(other)
    array = jax.device_put(np.arange(8.0), one)
    np.testing.assert_array_equal(array * 2, np.arange(8.0) * 2)
    assert one.is_equivalent_to(split("x"), 1)


def test_make_mesh():
    made = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    assert made is mesh
    assert jax.make_mesh((8,), ("x",)).axis_types == (AxisType.Explicit,)
    part = jax.make_mesh((2,), ("x",), devices=devices[4:])
    assert list(part.devices) == devices[4:6]
    with pytest.raises(ValueError, match=r"Number of devices 8 must be >= .* \(16,\)"):
        jax.make_mesh((16,), ("x",))
    with pytest.raises(ValueError, match="names"):
        jax.make_mesh((4, 2), ("x",))
    with pytest.raises(ValueError, match="AxisType"):
        jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,))


def test_mesh_of_one_device():
    alone = NamedSharding(Mesh(np.array(devices[:1]), ("x",)), P("x"))
    array = jax.device_put(np.ones(4, np.float32), alone)
    assert (array + 1).sharding == alone
    assert (array + jax.device_put(np.ones(4, np.float32), devices[0])).sharding == alone


def test_a_mesh_that_is_entered_is_that_of_specs():
    x = np.ones((8, 4), np.float32)

    @jax.jit
    def rows(x):
        return jax.lax.with_sharding_constraint(x * 2, P("x"))

    with pytest.warns(DeprecationWarning, match="with mesh"), mesh:
        assert rows(x).sharding == split("x")
        assert jax.lax.with_sharding_constraint(x, P(None, "y")).sharding == split(None, "y")
        # Another mesh inside, and the program is traced for it.
        with Mesh(np.array(devices[:2]), "x") as pair:
            assert rows(x).sharding == NamedSharding(pair, P("x"))
        assert rows(x).sharding == split("x")
    with pytest.raises(RuntimeError, match="non-empty mesh"):
        jax.jit(lambda x: rows(x) + 1)(x)


def test_the_equation_of_a_constraint_says_what_is_left_to_xla():
    def constrained(x):
        return jax.lax.with_sharding_constraint(x, split(P.UNCONSTRAINED, "y"))

    x = np.ones((8, 4), np.float32)
    (equation,) = jax.make_jaxpr(constrained)(x).eqns
    assert equation.params == {
        "sharding": split(P.UNCONSTRAINED, "y"),
        "unconstrained_dims": {0},
        "layout": None,
        "context_mesh": Mesh([], "x"),
    }
    (batched,) = jax.make_jaxpr(jax.vmap(constrained))(x[None]).eqns
    assert batched.params["unconstrained_dims"] == {0, 1}


def test_devices_in_another_order_exchange_what_they_lack():
    backwards = Mesh(np.array(devices[::-1]).reshape(4, 2), ("x", "y"))
    x = matrix("x", "y")
    for spec in (P("x", "y"), P(("y", "x")), P(None, "x"), P()):
        with jax.transfer_guard("disallow_explicit"):
            moved = jax.device_put(x, NamedSharding(backwards, spec))
        assert moved.sharding == NamedSharding(backwards, spec)
        np.testing.assert_array_equal(moved, np.asarray(x))


def test_memory_of_one_cpu_device_is_not_given_to_another():
    x = jax.device_put(np.ones(3, np.float32), devices[0])
    moved = jax.device_put(x, devices[1], donate=True)
    assert moved.devices() == {devices[1]} and not x.is_deleted()
    np.testing.assert_array_equal(moved, np.asarray(x))


def test_cotangents_go_back_to_where_values_were():
    x = jax.device_put(np.ones(3, np.float32), devices[2])
    cotangent = jax.grad(lambda x: (jax.device_put(x, devices[3]) ** 2).sum())(x)
    assert cotangent.devices() == {devices[2]} and cotangent.committed
    loose = jnp.ones(3)
    cotangent = jax.grad(lambda x: jax.device_put(x, devices[3]).sum())(loose)
    assert cotangent.devices() == loose.devices() and cotangent.committed
