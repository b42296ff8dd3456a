"""Shardings by type: of arrays over meshes with explicit axes, and of programs on such arrays."""

from collections.abc import Callable, Sequence

from hlofront.base.caches import memoize
from hlofront.base.config import remove_size_one_mesh_axis_from_type
from hlofront.bridge.client import NamedSharding, Sharding
from hlofront.bridge.members import device_list_of, memory_kind_of
from hlofront.core.aval import AbstractValue, MemorySpace, ShapedArray, Split
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.programs.program_cache import once_per_program
from hlofront.core.sharding.mesh import AbstractMesh, Mesh
from hlofront.core.sharding.mesh_context import context_mesh
from hlofront.core.sharding.partition import PartitionSpec
from hlofront.pjrt.shardings import over_mesh
from hlofront.primitives.sharding.placing import memory_space_of
from hlofront.runtime.sharding.device_assignment import (
    DeviceAssignment,
    assignment_of_shardings,
    device_assignment_of,
    shardings_inside,
)


def in_memory_of(aval: object, sharding: Sharding) -> Sharding:
    """Return a sharding in the memory space of an aval.

    Args:
      aval: the type of a value of a program.
      sharding: how the value is split, in the memory of the host or of the devices.
    """
    space = getattr(aval, "memory_space", MemorySpace.Device)
    if space is memory_space_of(memory_kind_of(sharding)):
        return sharding
    on_host = space is MemorySpace.Host
    default = device_list_of(sharding).default_memory_kind
    return sharding.with_memory_kind(space.value if on_host else default)


def without_kernel_memory(aval: AbstractValue) -> AbstractValue:
    """Return the type of a result outside of its program, which is in no memory of a kernel."""
    if not isinstance(aval, ShapedArray) or isinstance(aval.memory_space, MemorySpace):
        return aval
    return aval.update(memory_space=MemorySpace.Device)


@memoize
def aval_split_by(sharding: Sharding | None, aval: ShapedArray) -> ShapedArray:
    """Return the aval of an array with a sharding: in its memory, and split along explicit axes.

    Types record how arrays are split along the explicit axes of a mesh.
    """
    space = memory_space_of(None if sharding is None else memory_kind_of(sharding))
    if aval.memory_space is not space:
        aval = aval.update(memory_space=space)
    if type(sharding) is not NamedSharding or not sharding.mesh.explicit_axes:
        if aval.spec is None:
            return aval
        return ShapedArray(aval.shape, aval.dtype, aval.weak_type, memory_space=aval.memory_space)
    return aval.update(sharding=Split(sharding.mesh.abstract_mesh, sharding.spec))


# Types depend on this option, which is not in the key, as arrays are put on devices often.
remove_size_one_mesh_axis_from_type.watch(lambda *_: aval_split_by.cache_clear())


def replicated_over(mesh: Mesh, ndim: int) -> NamedSharding:
    """Return the sharding that replicates arrays with `ndim` axes over a mesh."""
    return over_mesh(mesh, PartitionSpec(*[None] * ndim))


def program_devices(
    program: ClosedJaxpr,
    leaves: Sequence[object],
    inputs: Sequence[Sharding | None] = (),
    outputs: Sequence[Sharding | None] = (),
    describe: Callable[[int], str] | None = None,
) -> DeviceAssignment | None:
    """Return the DeviceAssignment of a program for its arguments; None if it runs on one device.

    It is that of the arguments, of the shardings requested of jit (`inputs` and `outputs`) and in
    the program, of the mesh in context, and of types; see `device_assignment_of`.
    """
    inside = shardings_inside(program)
    devices = device_assignment_of(leaves, inputs, outputs, inside, describe, context_mesh())
    return None if devices is None else with_typed_shardings(devices, program, inside)


@once_per_program
def devices_of_arguments(
    program: ClosedJaxpr, shardings: tuple[Sharding | None, ...]
) -> DeviceAssignment:
    """Return the DeviceAssignment of a program without shardings, by those of its arguments.

    Args:
      program: the program.
      shardings: the sharding that each argument must keep, or None; one is over several devices.

    Raises:
      ValueError: if the shardings have different devices.
    """
    nothing = (None,) * len(shardings)
    devices = assignment_of_shardings(nothing, shardings, (), (), lambda i: f"argument {i}", None)
    assert devices is not None, "one of the shardings is over several devices"
    return with_typed_shardings(devices, program)


def with_typed_shardings(
    devices: DeviceAssignment, program: ClosedJaxpr, inside: Sequence[Sharding] = ()
) -> DeviceAssignment:
    """Return a DeviceAssignment with the shardings of the types of a program.

    If a mesh has explicit axes, types determine how inputs and outputs are split along them; if all
    of its axes are explicit, XLA chooses nothing.

    Raises:
      ValueError: if a type is over a mesh that neither the arguments nor the context have.
    """
    meshes = _explicit_meshes(devices, inside)
    if not meshes:
        return devices
    # Values that are not split are replicated over the first.
    first = next(iter(meshes.values()))

    def of_type(sharding: Sharding | None, aval: object) -> Sharding | None:
        if sharding is not None or not isinstance(aval, ShapedArray):
            return sharding
        mesh = first
        if aval.mesh is not None:
            mesh = meshes.get(aval.mesh) or _with_types_of(first, aval.mesh)
        if mesh is None:
            raise ValueError(
                f"a value of type {aval.str_short()} is split over {aval.mesh}, and the devices "
                f"of the program are those of {first}: put the mesh of the type in context, with "
                "set_mesh(mesh)"
            )
        if mesh.auto_axes:
            return None
        if aval.spec is None:
            return replicated_over(mesh, aval.ndim)
        return over_mesh(mesh, aval.spec)

    outputs = devices.outputs or (None,) * len(program.out_avals)
    return DeviceAssignment(
        devices.devices,
        [*map(of_type, devices.inputs, program.in_avals)],
        [*map(of_type, outputs, program.out_avals)],
        over_mesh(first, PartitionSpec()),
    )


def _with_types_of(mesh: Mesh, other: AbstractMesh) -> Mesh | None:
    """Return a mesh with the axis types of another, as inside of auto_axes; None for other axes."""
    if mesh.shape_tuple != other.shape_tuple:
        return None
    return mesh.update(axis_types=other.axis_types)


def _explicit_meshes(
    devices: DeviceAssignment, inside: Sequence[Sharding]
) -> dict[AbstractMesh, Mesh]:
    """Return the meshes with explicit axes that are in context or that shardings are over."""
    shardings = (devices.like, *devices.inputs, *devices.outputs, *inside)
    meshes = [context_mesh(), *[getattr(sharding, "mesh", None) for sharding in shardings]]
    return {
        mesh.abstract_mesh: mesh for mesh in meshes if isinstance(mesh, Mesh) and mesh.explicit_axes
    }
