"""The lowering rule of device_put inside a program: values can only be resharded there."""

from collections.abc import Sequence

from hlofront.bridge.mlir import Value
from hlofront.core.rules import lower
from hlofront.lowering.core import types
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.mesh_attributes import is_described
from hlofront.lowering.ops.sharding import constrained
from hlofront.primitives.sharding.placing import device_put_p


@lower(device_put_p)
def _(
    build: Builder, *values: Value, devices: Sequence[object], srcs: object, copy_semantics: object
) -> list[Value]:
    """Constrain values to shardings over several devices, and move values to other memories.

    On CPUs all memories are the host's, and XLA does not move values between them.
    """
    results: list[Value] = []
    for value, device, aval, out in zip(
        values, devices, build.avals_in, build.avals_out, strict=True
    ):
        if is_described(device):
            value = constrained(build, value, device, aval)
        if aval.memory_space is not out.memory_space and build.module.platforms != ("cpu",):
            kind = types.attribute(f'{{_xla_buffer_placement = "{out.memory_space.value}"}}')
            value = build.op(
                "stablehlo.custom_call",
                (value,),
                out,
                call_target_name=types.string("annotate_device_placement"),
                has_side_effect=types.boolean(True),
                backend_config=types.string(""),
                **{"mhlo.frontend_attributes": kind},
            )
        results.append(value)
    return results
