"""The devices of a stage, as descriptions of its arguments or a target name them."""

from collections.abc import Sequence

from hlofront.bridge.client import SingleDeviceSharding
from hlofront.bridge.members import device_of
from hlofront.pjrt.clients import compiling_for
from hlofront.runtime.sharding.device_assignment import DeviceAssignment, ProgramDevices
from hlofront.transforms.flatten import ShapeDtypeStruct


def described_devices(
    leaves: Sequence[object], device_assignment: DeviceAssignment | None
) -> tuple[ProgramDevices, bool] | None:
    """Return the devices that descriptions of arguments or a target name, or None.

    Args:
      leaves: the flat arguments of the stage.
      device_assignment: the devices of the program, if there are several.

    Returns:
      The devices, and whether results are committed to them.
    """
    target = compiling_for.get()
    if device_assignment is not None:
        if target is not None:
            target.check(device_assignment.devices)
        return device_assignment, True
    for leaf in leaves:
        sharding = leaf.sharding if type(leaf) is ShapeDtypeStruct else None
        if isinstance(sharding, SingleDeviceSharding):
            if target is not None:
                target.check([device_of(sharding)])
            return device_of(sharding), True
    if target is None:
        return None
    if len(target.devices) == 1:
        return target.devices[0], True
    return DeviceAssignment(target.devices, (None,) * len(leaves), ()), True
