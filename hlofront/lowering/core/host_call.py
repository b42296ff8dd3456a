"""The record of a module's call to the host, from which the runtime builds a function."""

import dataclasses
from collections.abc import Callable, Sequence

from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge import state
from hlofront.core.aval import Avals, ShapedArray


class Channel(NamedTuple):
    """A channel between a device and the host: its number, and the aval of the array it carries."""

    number: int
    aval: ShapedArray


class Channels(NamedTuple):
    """The channels of a host call: those to the host, and those from it."""

    sent: list[Channel]
    received: list[Channel]


def _is_x64() -> bool:
    return bool(state.enable_x64.value)


@dataclasses.dataclass(slots=True, eq=False, repr=False)
class HostCall:
    """A call from a module to a function of flat arrays on the host.

    runtime/compilation/host_calls.py makes the function that the device's runtime calls.
    """

    # The name of the primitive.
    name: str
    function: Callable[..., Sequence[object] | None]
    avals_in: Avals
    avals_out: Avals
    # Whether it takes a token before the arrays, and returns one before the results.
    ordered: bool
    # The channels, if operands and results are transferred one by one.
    channels: Channels | None = None
    # Whether the function takes the execution context and the buffers of operands and of results,
    # which it writes.
    takes_buffers: bool = False
    # Whether the function takes NumPy arrays. Converting them to device arrays may need a thread
    # that the program's devices hold.
    takes_numpy: bool = False
    # Whether 64-bit types were enabled when the program was lowered.
    x64: bool = dataclasses.field(init=False, default_factory=_is_x64)
