"""The record of an equation that the host decides on, or looks at, while XLA compiles a module."""

from collections.abc import Sequence

from hlofront.base.typing import Params
from hlofront.bridge import state
from hlofront.core.aval import ShapedArray
from hlofront.core.primitive import Primitive


class PartitionedCall:
    """An equation of custom_partitioning or inspect_sharding, in a module for several devices.

    runtime/sharding/partitioning.py answers for it when XLA asks.
    """

    __slots__ = ("avals_in", "avals_out", "params", "primitive", "x64")

    def __init__(
        self,
        primitive: Primitive,
        params: Params,
        avals_in: Sequence[ShapedArray],
        avals_out: Sequence[ShapedArray],
    ):
        self.primitive = primitive
        self.params = params
        self.avals_in = tuple(avals_in)
        self.avals_out = tuple(avals_out)
        # Whether 64-bit types were on where the program was lowered.
        self.x64 = bool(state.enable_x64.value)
