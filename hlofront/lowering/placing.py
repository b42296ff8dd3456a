"""Placement inside a program: values are on its devices already, and may be split otherwise."""

from collections.abc import Sequence

from hlofront.bridge.mlir import Value
from hlofront.core.rules import lower
from hlofront.lowering.builder import Builder
from hlofront.lowering.sharding import constrained, is_described
from hlofront.primitives.placing import device_put_p


@lower(device_put_p)
def _(
    build: Builder, *values: Value, devices: Sequence[object], srcs: object, copy_semantics: object
) -> list[Value]:
    """A sharding of several devices splits a value; a device or a memory is no operation."""
    return [
        constrained(build, value, device, aval) if is_described(device) else value
        for value, device, aval in zip(values, devices, build.avals_in, strict=True)
    ]
