"""Conversion between arrays over all processes and the parts that each process has."""

from collections.abc import Callable

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.tree import PyTree, tree_flatten
from hlofront.base.tree_prefixes import broadcast_prefix
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.core.rules import run
from hlofront.core.sharding.mesh import Mesh
from hlofront.core.sharding.partition import PartitionSpec
from hlofront.core.trace import Tracer, as_array
from hlofront.pjrt.named_shardings import NamedSharding
from hlofront.primitives.collectives import process_parts
from hlofront.primitives.collectives.process_parts import (
    global_array_to_host_local_array_p,
    host_local_array_to_global_array_p,
    processes_along,
)
from hlofront.primitives.sharding.placing import CopySemantics
from hlofront.runtime.array.assembling import make_array_from_single_device_arrays
from hlofront.runtime.array.transfer import put_leaf


def _reassembled(array: Array, shape: tuple[int, ...], sharding: NamedSharding) -> Array:
    """Return an array in a new sharding, made of the shards of another array in this process."""
    parts = [shard.data for shard in array.addressable_shards]
    return make_array_from_single_device_arrays(shape, sharding, parts, dtype=array.dtype)


@run(host_local_array_to_global_array_p)
def host_local_array_to_global_array_impl(
    arr: ArrayLike, *, global_mesh: Mesh, pspec: PartitionSpec
) -> Array:
    """Return the array over all processes, given this process's part.

    Args:
      arr: the part of this process; an array over several processes is returned unchanged.
      global_mesh: the mesh over all processes.
      pspec: how the mesh's axes split the array.
    """
    part = arr if isinstance(arr, np.ndarray) else as_array(arr)
    if not isinstance(part, np.ndarray) and not part.is_fully_addressable:
        return part
    counts = processes_along(global_mesh, pspec, np.ndim(part))
    local = NamedSharding(global_mesh.local_mesh, pspec)
    array = put_leaf(part, local, CopySemantics.REUSE_INPUT)
    shape = tuple(size * count for size, count in zip(array.shape, counts, strict=True))
    return _reassembled(array, shape, NamedSharding(global_mesh, pspec))


@run(global_array_to_host_local_array_p)
def global_array_to_host_local_array_impl(
    arr: ArrayLike, *, global_mesh: Mesh, pspec: PartitionSpec
) -> Array:
    """Return the part that this process has of an array over all processes.

    Args:
      arr: the array; if its sharding is not that of the spec, it is resharded.
      global_mesh: the mesh over all processes.
      pspec: how the mesh's axes split the array.
    """
    array = as_array(arr)
    sharding = NamedSharding(global_mesh, pspec)
    local = NamedSharding(global_mesh.local_mesh, pspec)
    if array.is_fully_addressable and global_mesh.is_multi_process:
        # It is already this process's part.
        return put_leaf(array, local, CopySemantics.REUSE_INPUT)
    if not array.sharding.is_equivalent_to(sharding, array.ndim):
        array = put_leaf(array, sharding, CopySemantics.REUSE_INPUT)
    counts = processes_along(global_mesh, pspec, array.ndim)
    shape = tuple(size // count for size, count in zip(array.shape, counts, strict=True))
    return _reassembled(array, shape, local)


def _converted(
    function: str, inputs: PyTree, global_mesh: Mesh, pspecs: PyTree, convert: Callable[..., Array]
) -> PyTree:
    """Convert the leaves of a pytree, each by the spec that a prefix of the pytree has for it."""
    leaves, structure = tree_flatten(inputs)

    def is_spec(node: PyTree) -> bool:
        return node is None or isinstance(node, PartitionSpec)

    try:
        specs = broadcast_prefix(pspecs, inputs, is_spec)
    except ValueError as error:
        raise ValueError(
            f"{function}: input pspecs specification must be a tree prefix of the arrays' pytree. "
            f"{error}"
        ) from None
    results: list[Array] = []
    for leaf, spec in zip(leaves, specs, strict=True):
        if not isinstance(spec, PartitionSpec):
            raise ValueError(
                f"{function}: `{spec}` is not a valid input to the pspecs argument. Use "
                "jax.sharding.PartitionSpec() for an array that is not split."
            )
        NamedSharding(global_mesh, spec)  # This checks the names of the spec.
        rank = len(getattr(typeof(leaf), "shape", ()))
        if len(spec) > rank:
            raise ValueError(
                f"{function}: {spec} has {len(spec)} entries, and the array has {rank} axes. A "
                "spec has at most one entry per axis."
            )
        results.append(convert(leaf, global_mesh=global_mesh, pspec=spec))
    return structure.unflatten(results)


@boundary
def host_local_array_to_global_array(
    local_inputs: PyTree, global_mesh: Mesh, pspecs: PyTree
) -> PyTree:
    """Convert the parts that each process has to arrays over all processes.

    Along an axis that `pspecs` splits over several processes, the arrays are concatenated in the
    order of the mesh; along others, all processes pass the same values, which is not checked.

    Args:
      local_inputs: a pytree of arrays, each the data of all of this process's devices.
      global_mesh: the mesh over all processes, in which this process's devices form a block.
      pspecs: a PartitionSpec for all arrays, or a pytree of them that is a prefix of the inputs.

    Returns:
      A pytree like `local_inputs` of arrays with `NamedSharding(global_mesh, pspec)`, of the
      inputs' dtypes. Arrays that are already over several processes are returned unchanged.

    Raises:
      ValueError: if a spec is None, does not fit the mesh or its array, or the specs are not a
          prefix.

    Example:
      Two processes of four devices pass 8 rows each; the result has 16::

        mesh = jax.make_mesh((8,), ("x",))
        batch = host_local_array_to_global_array(rows, mesh, jax.P("x"))
    """
    return _converted(
        "host_local_array_to_global_array",
        local_inputs,
        global_mesh,
        pspecs,
        process_parts.host_local_array_to_global_array,
    )


@boundary
def global_array_to_host_local_array(
    global_inputs: PyTree, global_mesh: Mesh, pspecs: PyTree
) -> PyTree:
    """Convert arrays over all processes to the parts that this process has.

    Args:
      global_inputs: a pytree of arrays over all processes.
      global_mesh: the mesh over all processes, in which this process's devices form a block.
      pspecs: a PartitionSpec for all arrays, or a pytree of them that is a prefix of the inputs; an
        array that is split differently is resharded first, by all processes together.

    Returns:
      A pytree like `global_inputs` of arrays on this process's devices.

    Raises:
      ValueError: if a spec is None, does not fit the mesh or its array, or the specs are not a
          prefix.

    Example:
      What this process computed of a result, as a NumPy array::

        mine = np.asarray(global_array_to_host_local_array(result, mesh, jax.P("x")))
    """
    if global_mesh is None:  # The arrays' own mesh.
        first = tree_flatten(global_inputs)[0][0]
        if not isinstance(first, Tracer):
            global_mesh = first.sharding.mesh
    return _converted(
        "global_array_to_host_local_array",
        global_inputs,
        global_mesh,
        pspecs,
        process_parts.global_array_to_host_local_array,
    )
