"""The mesh that a lowered or compiled program's shardings refer to.

It is separate from the description of shardings, which needs MLIR: pages of text need a mesh, too.
"""

from hlofront.runtime.dispatch.stages import Compiled, Lowered
from hlofront.runtime.sharding.device_assignment import DeviceAssignment
from hlotools.cost.mesh_groups import MeshAxes


def mesh_of(stage: Compiled | Lowered) -> MeshAxes | None:
    """Return the mesh of a program's shardings, or None for one device or no mesh."""
    where = stage._where
    return mesh_over(where) if type(where) is DeviceAssignment else None


def mesh_over(where: DeviceAssignment) -> MeshAxes | None:
    """Return the mesh of a program's devices, or None if its shardings have none."""
    mesh = where.mesh
    if mesh is None:
        return None
    position_of_device = {device: number for number, device in enumerate(where.devices)}
    axes = tuple((str(name), size) for name, size in mesh.shape_tuple)
    return MeshAxes(axes, tuple(position_of_device[device] for device in mesh.devices.flat))
