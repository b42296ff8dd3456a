# pyright: strict
"""The check whether a callback failed in any of the processes that run a program."""

from collections.abc import Collection

import numpy as np

from hlofront.base.caches import memoize
from hlofront.base.elements import int32
from hlofront.base.typing import Array
from hlofront.bridge.arrays import batched_device_put
from hlofront.bridge.client import Device, result_handler
from hlofront.core.aval import ShapedArray
from hlofront.core.sharding.mesh import Mesh
from hlofront.core.sharding.partition import PartitionSpec
from hlofront.pjrt.host_value import host_value
from hlofront.pjrt.shardings import over_mesh
from hlofront.primitives.arrays.reducing import reduce_sum
from hlofront.runtime.sharding.compiled_programs import compiled_for
from hlofront.runtime.sharding.device_assignment import DeviceAssignment
from hlofront.runtime.sharding.first_run import note_launch
from hlofront.transforms.stage import stage


class FailureFlags:
    """A program that sums a number from each process: 1 where a callback failed, 0 elsewhere.

    Processes that run the same programs run this one together, after each run of a program with
    callbacks. It is much faster than messages to the coordination service.

    Args:
      devices: a CPU device of each process.
    """

    def __init__(self, devices: tuple[Device, ...]):
        count = len(devices)
        mesh = Mesh(np.array(devices), ("process",))
        split = over_mesh(mesh, PartitionSpec("process"))
        replicated = over_mesh(mesh, PartitionSpec())
        flags, total = ShapedArray((count,), int32), ShapedArray((), int32)

        def added_up(flags: Array) -> list[Array]:
            return [reduce_sum(flags, (0,))]

        assignment = DeviceAssignment(devices, [split], [replicated])
        program = stage(added_up, [flags])
        self._loaded = compiled_for(assignment, program, "failure_flags", (False,))
        self._handlers = [result_handler(total, replicated, True)]
        here = list(split.addressable_devices)
        self._operands = [
            batched_device_put(flags, split, [np.array([flag], int32)], here, True)
            for flag in (0, 1)
        ]
        # The processes that connect in the first run.
        self._connecting: Collection[int] = tuple(device.process_index for device in devices)

    def any_failed(self, failed: bool) -> bool:
        """Return whether a callback failed in any process; all processes must call this.

        No other program in which CPU devices exchange values may run at the same time.

        Args:
          failed: whether a callback failed in this process.

        Raises:
          ProcessFailureError: if a process has failed.
        """
        note_launch(self._connecting)
        self._connecting = ()
        executed = self._loaded.execute_sharded([self._operands[failed]], with_tokens=True)
        executed.consume_token().block_until_ready()
        (total,) = executed.consume_with_handlers(self._handlers)
        return bool(host_value(total))


@memoize
def failure_flags(devices: tuple[Device, ...]) -> FailureFlags:
    """Return the FailureFlags of the processes whose devices a program spans.

    Args:
      devices: the devices of the program.
    """
    first = {device.process_index: device for device in reversed(devices)}
    return FailureFlags(tuple(first[number] for number in sorted(first)))
