"""Primitives that assemble an array over all processes from their parts, and extract a part.

Both concern values outside programs: in a program of one process they do nothing, and with several
processes no value inside a program is the part of only one process.
"""

from hlofront.base.typing import Array, ArrayLike, ArrayLikes
from hlofront.core.aval import ShapedArray
from hlofront.core.axes import AxisData
from hlofront.core.primitive import Primitive
from hlofront.core.rules import BatchResult, batch_with_axis, infer
from hlofront.core.sharding.mesh import Mesh
from hlofront.core.sharding.partition import PartitionSpec, axes_of
from hlofront.core.symbolic_zeros import BatchAxes, BatchAxis, Cotangent, Operand
from hlofront.core.trace import process
from hlofront.primitives.rules.derivatives import linear
from hlofront.primitives.sharding.families import split_as_first_operand

host_local_array_to_global_array_p = Primitive("host_local_array_to_global_array")
global_array_to_host_local_array_p = Primitive("global_array_to_host_local_array")
split_as_first_operand(host_local_array_to_global_array_p)
split_as_first_operand(global_array_to_host_local_array_p)


def host_local_array_to_global_array(
    x: ArrayLike, *, global_mesh: Mesh, pspec: PartitionSpec
) -> Array:
    """Bind host_local_array_to_global_array, which assembles an array from the processes' parts.

    Args:
      x: the part of this process.
      global_mesh: the mesh over all processes.
      pspec: how the mesh's axes split the array.
    """
    params = {"global_mesh": global_mesh, "pspec": pspec}
    return process(host_local_array_to_global_array_p, (x,), params)


def global_array_to_host_local_array(
    x: ArrayLike, *, global_mesh: Mesh, pspec: PartitionSpec
) -> Array:
    """Bind global_array_to_host_local_array, which extracts this process's part of an array.

    Args:
      x: the array over all processes.
      global_mesh: the mesh over all processes.
      pspec: how the mesh's axes split the array.
    """
    params = {"global_mesh": global_mesh, "pspec": pspec}
    return process(global_array_to_host_local_array_p, (x,), params)


def processes_along(global_mesh: Mesh, pspec: PartitionSpec, rank: int) -> list[int]:
    """Return, per axis of an array, the number of parts into which the processes split it."""
    whole, local = global_mesh.shape, global_mesh.local_mesh.shape
    counts = [1] * rank
    for axis, entry in enumerate(pspec):
        for name in axes_of(entry):
            counts[axis] *= whole[name] // local[name]
    return counts


@infer(host_local_array_to_global_array_p)
def ltg_abstract_eval(arr: ShapedArray, *, global_mesh: Mesh, pspec: PartitionSpec) -> ShapedArray:
    """Return the aval of the array over all processes from the aval of one process's part.

    Args:
      arr: the aval of the part of one process.
      global_mesh: the mesh over the devices of all processes.
      pspec: the PartitionSpec that splits the whole array over the mesh.
    """
    counts = processes_along(global_mesh, pspec, arr.ndim)
    shape = tuple(size * count for size, count in zip(arr.shape, counts, strict=True))
    return arr.update(shape=shape, weak_type=False)


@infer(global_array_to_host_local_array_p)
def gtl_abstract_eval(arr: ShapedArray, *, global_mesh: Mesh, pspec: PartitionSpec) -> ShapedArray:
    """Return the aval of the part that one process has of an array.

    Args:
      arr: the aval of the whole array.
      global_mesh: the mesh over the devices of all processes.
      pspec: the PartitionSpec that splits the whole array over the mesh.
    """
    counts = processes_along(global_mesh, pspec, arr.ndim)
    shape = tuple(size // count for size, count in zip(arr.shape, counts, strict=True))
    return arr.update(shape=shape, weak_type=False)


def _to_local(
    cotangent: ArrayLike, x: Operand, *, global_mesh: Mesh, pspec: PartitionSpec
) -> list[Cotangent]:
    return [global_array_to_host_local_array(cotangent, global_mesh=global_mesh, pspec=pspec)]


def _to_global(
    cotangent: ArrayLike, x: Operand, *, global_mesh: Mesh, pspec: PartitionSpec
) -> list[Cotangent]:
    return [host_local_array_to_global_array(cotangent, global_mesh=global_mesh, pspec=pspec)]


linear(host_local_array_to_global_array_p, _to_local)
linear(global_array_to_host_local_array_p, _to_global)


def _spec_with_axis(
    pspec: PartitionSpec, axis: BatchAxis, axis_data: AxisData
) -> tuple[PartitionSpec, int]:
    """Return a spec with an entry for a new axis, and the position of that axis."""
    number = axis if isinstance(axis, int) else 0
    entries = list(pspec)
    # Entries after the last are not split.
    entries += [None] * (number - len(entries))
    entries.insert(number, axis_data.spmd_name or None)
    return PartitionSpec(*entries), number


def ltg_batcher(
    insert_axis: bool,
    axis_data: AxisData,
    vals_in: ArrayLikes,
    dims_in: BatchAxes,
    global_mesh: Mesh,
    pspec: PartitionSpec,
) -> BatchResult:
    """Assemble an array from the processes' parts, which have a batch axis.

    Args:
      insert_axis: ignored, as in JAX: the part has the batch axis already.
      axis_data: the batch axis, which mesh axes may split.
      vals_in: the part of this process.
      dims_in: the position of the part's batch axis.
      global_mesh: the mesh over all processes.
      pspec: how the mesh's axes split the array without the batch axis.

    Returns:
      The array over all processes, and the position of its batch axis.
    """
    spec, axis = _spec_with_axis(pspec, dims_in[0], axis_data)
    return host_local_array_to_global_array(vals_in[0], global_mesh=global_mesh, pspec=spec), axis


@batch_with_axis(host_local_array_to_global_array_p)
def _(
    axis_data: AxisData,
    values: ArrayLikes,
    axes: BatchAxes,
    *,
    global_mesh: Mesh,
    pspec: PartitionSpec,
) -> BatchResult:
    return ltg_batcher(False, axis_data, values, axes, global_mesh, pspec)


@batch_with_axis(global_array_to_host_local_array_p)
def _(
    axis_data: AxisData,
    values: ArrayLikes,
    axes: BatchAxes,
    *,
    global_mesh: Mesh,
    pspec: PartitionSpec,
) -> BatchResult:
    spec, axis = _spec_with_axis(pspec, axes[0], axis_data)
    return global_array_to_host_local_array(values[0], global_mesh=global_mesh, pspec=spec), axis
