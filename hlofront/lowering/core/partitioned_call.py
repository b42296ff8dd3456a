"""The record of an equation that the host partitions or inspects while XLA compiles a module."""

from hlofront.base.typing import Params
from hlofront.bridge import state
from hlofront.core.aval import Avals


class PartitionedCall:
    """An equation of custom_partitioning or inspect_sharding, in a module for several devices.

    When XLA partitions it, it calls runtime/sharding/partitioning.py.
    """

    __slots__ = ("avals_in", "avals_out", "is_manual", "params", "x64")

    def __init__(self, params: Params, avals_in: Avals, avals_out: Avals, is_manual: bool):
        self.params = params
        self.avals_in = tuple(avals_in)
        self.avals_out = tuple(avals_out)
        # Whether it is in the body of a shard_map, where values are whole on each device.
        self.is_manual = is_manual
        # Whether 64-bit types were enabled when the program was lowered.
        self.x64 = bool(state.enable_x64.value)
