"""Lowering of sharding constraints."""

from hlofront.bridge.mlir import Value
from hlofront.core.aval import ShapedArray
from hlofront.core.rules import lower
from hlofront.lowering.builder import Builder
from hlofront.lowering.mesh_attributes import DescribedSharding, is_described, sharding_attribute
from hlofront.primitives.placing import sharding_constraint_p


def constrained(build: Builder, x: Value, sharding: DescribedSharding, aval: ShapedArray) -> Value:
    """Return a value of this aval with a sharding constraint."""
    attribute = sharding_attribute(build.module, sharding, aval)
    return build.op("sdy.sharding_constraint", (x,), aval, sharding=attribute)


@lower(sharding_constraint_p)
def _(
    build: Builder,
    x: Value,
    *,
    sharding: object,
    layout: object,
    context_mesh: object,
    unconstrained_dims: object,
) -> Value:
    # In a program for one device every value is on it.
    if not is_described(sharding):
        return x
    return constrained(build, x, sharding, build.avals_in[0])
