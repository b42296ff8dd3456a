"""Lowering rules of shardings, memory layouts and memory spaces, mostly as annotations."""

from collections.abc import Sequence
from typing import Any

from hlofront.bridge.mlir import Value
from hlofront.core.aval import ShapedArray
from hlofront.core.rules import lower
from hlofront.core.sharding.mesh import Mesh
from hlofront.core.sharding.partition import UNCONSTRAINED, PartitionSpec, axes_of
from hlofront.core.sharding.requested_shardings import spec_of_rank
from hlofront.lowering.core import types
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.extended import physical
from hlofront.lowering.core.mesh_attributes import (
    DescribedSharding,
    is_described,
    sharding_attribute,
)
from hlofront.primitives.collectives.process_parts import (
    global_array_to_host_local_array_p,
    host_local_array_to_global_array_p,
)
from hlofront.primitives.sharding.placing import (
    MemoryOrder,
    argument_sharding_p,
    device_put_p,
    layout_constraint_p,
    sharding_constraint_p,
)
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


@lower(host_local_array_to_global_array_p, global_array_to_host_local_array_p)
def _(build: Builder, x: Value, *, global_mesh: Mesh, pspec: PartitionSpec) -> Value:
    if build.avals_in[0].shape != build.avals_out[0].shape:
        raise ValueError(
            "host_local_array_to_global_array and global_array_to_host_local_array convert arrays "
            f"outside of programs: {build.avals_in[0].str_short()} is the part of one of several "
            f"processes, or becomes one, over {global_mesh} with {pspec}. Call them before and "
            "after the jitted function; within it, use jax.shard_map."
        )
    return x


# ---- layouts -------------------------------------------------------------------------------------


@lower(layout_constraint_p)
def _(build: Builder, x: Value, *, layout: MemoryOrder) -> Value:
    rank, stored_rank = build.avals_in[0].ndim, physical(build.avals_in[0]).ndim
    # The axes of the elements' storage, such as those of random keys, come last in the default
    # order.
    order = (*layout.major_to_minor, *range(rank, stored_rank))
    body = f"[{', '.join(map(str, order[::-1]))}]" if order else ""
    layouts = types.attribute(f"[dense<{body}> : tensor<{stored_rank}xindex>]")
    return build.op(
        "stablehlo.custom_call",
        (x,),
        call_target_name=types.string("LayoutConstraint"),
        operand_layouts=layouts,
        result_layouts=layouts,
    )
