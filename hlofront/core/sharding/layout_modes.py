"""Layout modes: the orders in memory that a program's inputs and outputs are compiled with."""

from hlofront.base.named_tuple import NamedTuple


class LayoutModes(NamedTuple):
    """The layout modes of a program's inputs and outputs, in XLA's notation.

    A mode is the axes of the array from the one with the smallest stride on, as "{0,1}", with
    tiles if there are any; "auto" for XLA's choice; None for the default of the device.
    """

    inputs: tuple[str | None, ...]
    outputs: tuple[str | None, ...]
