"""ShapeDtypeStruct: what it keeps of a type, and what tracing makes of it."""

import numpy as np

import hlofront as jax
from hlofront.sharding import AxisType, ManualAxisType
from hlofront.sharding import PartitionSpec as P

VARYING = ManualAxisType(varying=frozenset({"i"}))


def test_the_axes_that_an_array_varies_along_are_kept():
    struct = jax.ShapeDtypeStruct((4,), np.float32, manual_axis_type=VARYING)
    assert repr(struct) == (
        "ShapeDtypeStruct(shape=(4,), dtype=float32, manual_axis_type=ManualAxisType("
        "varying=frozenset({'i'}), unreduced=frozenset(), reduced=frozenset()))"
    )
    assert struct.update(shape=(3,)).manual_axis_type is VARYING
    plain = jax.ShapeDtypeStruct((4,), np.float32)
    assert struct != plain and plain.manual_axis_type is None
    assert struct == jax.ShapeDtypeStruct((4,), np.float32, manual_axis_type=VARYING)
    assert hash(struct) == hash(struct.update())


def test_shapes_that_are_evaluated_in_shard_map_vary():
    found = []

    def per_device(x):
        struct = jax.eval_shape(lambda y: y.sum(), x)
        found.append(struct)
        traced = jax.make_jaxpr(lambda y: y * 2)(struct)
        found.append(traced.in_avals[0])
        return x

    mesh = jax.make_mesh((1,), ("i",), axis_types=(AxisType.Auto,))
    mapped = jax.shard_map(per_device, mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    jax.eval_shape(mapped, jax.ShapeDtypeStruct((4,), np.float32))
    struct, aval = found
    assert struct.manual_axis_type.varying == aval.manual_axis_type.varying == {"i"}
