"""Placement inside a program: values are on its devices already, and may be split otherwise."""

from hlofront.core.rules import lower
from hlofront.lowering.sharding import constrained
from hlofront.primitives.placing import device_put_p


@lower(device_put_p)
def _(build, *values, devices, srcs, copy_semantics):
    """A sharding of several devices splits a value; a device or a memory is no operation."""
    return [
        constrained(build, value, device, aval) if hasattr(device, "described") else value
        for value, device, aval in zip(values, devices, build.avals_in, strict=True)
    ]
