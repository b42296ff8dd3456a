"""Lowering of sharding constraints, including those on arguments of jit, and of reshard."""

from typing import Any

from hlofront.bridge.mlir import Value
from hlofront.core.aval import ShapedArray
from hlofront.core.rules import lower
from hlofront.core.sharding.partition import UNCONSTRAINED, axes_of
from hlofront.core.sharding.requested_shardings import spec_of_rank
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.mesh_attributes import (
    DescribedSharding,
    is_described,
    sharding_attribute,
)
from hlofront.primitives.sharding.placing import argument_sharding_p, sharding_constraint_p
from hlofront.primitives.sharding.resharding import reshard_p


def constrained(build: Builder, x: Value, sharding: DescribedSharding, aval: ShapedArray) -> Value:
    """Return a value of this aval with a sharding constraint."""
    attribute = sharding_attribute(build.module, sharding, aval)
    return build.op("sdy.sharding_constraint", (x,), aval, sharding=attribute)


@lower(sharding_constraint_p, argument_sharding_p)
def _(build: Builder, x: Value, *, sharding: object, **_: object) -> Value:
    # In a program for one device, every value is on that device.
    if not is_described(sharding):
        return x
    return constrained(build, x, _with_type(sharding, build.avals_in[0]), build.avals_in[0])


def _with_type(sharding: Any, aval: ShapedArray) -> Any:
    """Return the sharding of a constraint with the Explicit axes that split the array's type."""
    if aval.spec is None:
        return sharding
    spec = spec_of_rank(sharding.spec, aval.ndim)
    entries = [
        UNCONSTRAINED if entry is UNCONSTRAINED else (*axes_of(own), *axes_of(entry))
        for own, entry in zip(aval.spec.partitions, spec.partitions, strict=True)
    ]
    return sharding.update(spec=spec.update(partitions=entries))


@lower(reshard_p)
def _(build: Builder, x: Value, *, dst_sharding: object, **_: object) -> Value:
    # The builder constrains each result to its type.
    return x
