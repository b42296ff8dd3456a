"""How a program is split over devices: the shardings of its values, and its collectives."""

from hlofront.runtime.debugging.value_shardings import end_shardings, table_of, value_shardings
from hlofront.runtime.dispatch.stages import Compiled, Lowered
from hlofront.runtime.sharding.device_assignment import DeviceAssignment
from hlotools.cost.collectives import Collectives
from hlotools.cost.collectives import collectives as text_collectives
from hlotools.cost.mesh_groups import MeshAxes


def collectives(program: object, mesh: MeshAxes | str | None = None) -> Collectives:
    """Return the operations of a compiled program by which its devices communicate.

    Each has the mesh axes that it is along, the bytes that each device sends, and the user's line
    that asked for it.

    Args:
      program: a result of `compile`, HLO text, the path of an HLO file, or a result of `parse`.
      mesh: the mesh as text, such as "data=4,model=2"; by default that of a compiled program's
        shardings.

    Raises:
      HloSyntaxError: if the text is not HLO.
      TypeError: if the program is of another type.
      ValueError: if the text of the mesh is wrong.
    """
    if isinstance(program, Compiled):
        mesh = mesh or mesh_of(program)
        program = program.as_text() or ""
    return text_collectives(program, mesh)


def mesh_of(stage: Compiled | Lowered) -> MeshAxes | None:
    """Return the mesh of a program's shardings, or None for one device or no mesh."""
    where = stage._where
    mesh = where.mesh if type(where) is DeviceAssignment else None
    if mesh is None or type(where) is not DeviceAssignment:
        return None
    position_of_device = {device: number for number, device in enumerate(where.devices)}
    axes = tuple((str(name), size) for name, size in mesh.shape_tuple)
    return MeshAxes(axes, tuple(position_of_device[device] for device in mesh.devices.flat))


def is_split(stage: Compiled | Lowered) -> bool:
    """Return whether a program is for several devices."""
    return type(stage._where) is DeviceAssignment


def sharding_text(lowered: Lowered, compiled: Compiled) -> str:
    """Return how a program is split over devices, as text: its mesh, values and collectives."""
    mesh = mesh_of(lowered)
    where = lowered._where
    if type(where) is not DeviceAssignment:
        return "one device: nothing is split"
    count = f"{where.device_count} devices"
    head = f"{count} without a mesh" if mesh is None else f"{count}, as a mesh of {mesh}"
    values = [*end_shardings(compiled), *value_shardings(lowered)]
    return f"{head}\n\n{table_of(values)}\n\n{collectives(compiled).text()}"
