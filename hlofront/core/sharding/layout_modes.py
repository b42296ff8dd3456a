"""Layout modes: the memory layouts that a program's inputs and outputs are compiled with."""

from hlofront.base.named_tuple import NamedTuple


class LayoutModes(NamedTuple):
    """The layout modes of a program's inputs and outputs, in XLA's notation.

    A mode lists the axes of the array, the one with the smallest stride first, as "{0,1}", and
    tiles if there are any; "auto" lets XLA choose; None is the default of the device.
    """

    inputs: tuple[str | None, ...]
    outputs: tuple[str | None, ...]
