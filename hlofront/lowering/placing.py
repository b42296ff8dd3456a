"""The lowering rule of device_put inside a program: values can only be resharded there."""

from collections.abc import Sequence

from hlofront.bridge.mlir import Value
from hlofront.core.rules import lower
from hlofront.lowering.builder import Builder
from hlofront.lowering.mesh_attributes import is_described
from hlofront.lowering.sharding import constrained
from hlofront.primitives.placing import device_put_p


@lower(device_put_p)
def _(
    build: Builder, *values: Value, devices: Sequence[object], srcs: object, copy_semantics: object
) -> list[Value]:
    """Constrain the values with shardings over several devices, and return the others unchanged."""
    return [
        constrained(build, value, device, aval) if is_described(device) else value
        for value, device, aval in zip(values, devices, build.avals_in, strict=True)
    ]
