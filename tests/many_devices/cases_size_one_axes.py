"""The option jax_remove_size_one_mesh_axis_from_type: the types are those that jax 0.10.2 gives."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.sharding import AxisType, NamedSharding
from hlofront.sharding import PartitionSpec as P

EXPLICIT = jax.make_mesh((4, 1), ("x", "y"))
MIXED = jax.make_mesh((4, 1), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Explicit))
AUTO = jax.make_mesh((4, 1), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
ONES = np.ones((4, 4), np.float32)

without_axes_of_one = jax.remove_size_one_mesh_axis_from_type(True)


def types(values):
    return jax.tree.map(lambda x: str(jax.typeof(x)), values)


@pytest.mark.parametrize(
    ("spec", "wanted", "result"),
    [
        (P("x", "y"), "float32[4@x,4]", P("x", None)),
        (P(("x", "y")), "float32[4@x,4]", P("x", None)),
        (P(None, ("y", "x")), "float32[4,4@x]", P(None, "x")),
        (P("y"), "float32[4,4]", P(None, None)),
    ],
)
def test_explicit_axes_of_one_device_are_in_no_type(spec, wanted, result):
    with jax.set_mesh(EXPLICIT), without_axes_of_one:
        x = jax.device_put(ONES, spec)
        seen = []
        y = jax.jit(lambda x: seen.append(str(jax.typeof(x + 1))) or x + 1)(x)
        z = jax.reshard(ONES, spec)
        assert [*seen, *types([x, y, z, jnp.zeros((4, 4), out_sharding=spec)])] == [wanted] * 5
        assert x.sharding.spec == spec
        assert y.sharding.spec == z.sharding.spec == result
        assert jax.typeof(lax.with_sharding_constraint(x, NamedSharding(EXPLICIT, spec))) is (
            jax.typeof(x)
        )
        abstract = jax.ShapeDtypeStruct((4, 4), np.float32, sharding=NamedSharding(EXPLICIT, spec))
        assert str(jax.jit(lambda x: x).trace(abstract).jaxpr.in_avals[0]).endswith(wanted[7:])


def test_only_explicit_axes_are_in_types_of_a_mixed_mesh():
    with jax.set_mesh(MIXED), without_axes_of_one:
        assert types(jax.device_put(ONES, P("x", "y"))) == "float32[4,4]"


def test_the_option_may_change_between_calls():
    double = jax.jit(lambda x: x * 2)
    with jax.set_mesh(EXPLICIT):
        for wanted in ("float32[4@x,4@y]", "float32[4@x,4]", "float32[4@x,4@y]"):
            with jax.remove_size_one_mesh_axis_from_type(wanted == "float32[4@x,4]"):
                x = jax.device_put(ONES, P("x", "y"))
                assert types([x, double(x)]) == [wanted] * 2


@pytest.mark.parametrize("mesh", [EXPLICIT, AUTO], ids=["explicit", "auto"])
def test_values_vary_along_no_axis_of_one_device(mesh):
    seen = []

    def body(x):
        one = lax.pcast(np.float32(1), ("x", "y"), to="varying")
        indices = lax.axis_index("x"), lax.axis_index("y")
        sums = lax.psum(x, "y"), lax.psum(x, ("x", "y")), lax.pmax(x, "y")
        gathered = lax.all_gather(x, "y", tiled=True)
        seen.extend(types([x, one, *indices, *sums, gathered]))
        np.testing.assert_array_equal(jax.typeof(sums[0]).manual_axis_type.varying, {"x"})
        return sums[0] + gathered

    varying = "float32[1,4]{V:x}"
    with jax.set_mesh(mesh), without_axes_of_one:
        x = jax.device_put(ONES, P("x", "y"))
        mapped = jax.shard_map(body, in_specs=P("x", "y"), out_specs=P("x"))
        np.testing.assert_array_equal(mapped(x), 2 * ONES)
        assert seen == [
            varying,
            "float32[]{V:x}",
            "int32[]{V:x}",
            "int32[]",
            varying,
            "float32[1,4]",
            varying,
            varying,
        ]
        # Without varying values a result may be the same on all devices.
        along_y = jax.shard_map(lambda x: x, mesh=AUTO, in_specs=P("y"), out_specs=P())
    with without_axes_of_one:
        np.testing.assert_array_equal(along_y(ONES), ONES)
    gradient = jax.grad(lambda x: mapped(x).sum())
    with jax.set_mesh(mesh), without_axes_of_one:
        np.testing.assert_array_equal(gradient(x), 2 * ONES)
