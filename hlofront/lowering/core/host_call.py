"""The record of a call from a module to the host, from which the runtime builds a function."""

from collections.abc import Callable, Sequence

from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge import state
from hlofront.core.aval import ShapedArray


class Channel(NamedTuple):
    """A channel between a device and the host: its number, and the aval of the array it carries."""

    number: int
    aval: ShapedArray


class Channels(NamedTuple):
    """The channels of a host call: those to the host, and those from it."""

    sent: list[Channel]
    received: list[Channel]


class HostCall:
    """A call from a module to the host, of a function of flat arrays.

    runtime/compilation/host_calls.py makes the function that the device's runtime calls.
    """

    __slots__ = (
        "avals_in",
        "avals_out",
        "channels",
        "function",
        "name",
        "ordered",
        "takes_buffers",
        "x64",
    )

    def __init__(
        self,
        name: str,
        function: Callable[..., Sequence[object] | None],
        avals_in: Sequence[ShapedArray],
        avals_out: Sequence[ShapedArray],
        ordered: bool,
        channels: Channels | None = None,
        takes_buffers: bool = False,
    ):
        # The name of the primitive.
        self.name = name
        self.function = function
        self.avals_in = avals_in
        self.avals_out = avals_out
        # Whether it takes a token before the arrays, and returns one before the results.
        self.ordered = ordered
        # The channels, if operands and results are transferred one by one.
        self.channels = channels
        # Whether the function takes the context of the execution and the buffers of operands and
        # results, which it writes.
        self.takes_buffers = takes_buffers
        # Whether 64-bit types were on where the program was lowered.
        self.x64 = bool(state.enable_x64.value)
