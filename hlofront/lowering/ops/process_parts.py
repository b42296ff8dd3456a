"""Lowering rules of the primitives between one process's part of an array and the whole array."""

from hlofront.bridge.mlir import Value
from hlofront.core.rules import lower
from hlofront.core.sharding.mesh import Mesh
from hlofront.core.sharding.partition import PartitionSpec
from hlofront.lowering.core.builder import Builder
from hlofront.primitives.collectives.process_parts import (
    global_array_to_host_local_array_p,
    host_local_array_to_global_array_p,
)


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
