"""Layout and Format: the order of an array's elements in memory."""

from typing import Any

from hlofront.base.elements import ExtendedDType
from hlofront.bridge.client import Sharding
from hlofront.bridge.members import xla_layout_of
from hlofront.core.aval import ShapedArray


class Layout:
    """The order of an array's elements in memory.

    Args:
      major_to_minor: the axes, from the one with the largest stride to the one with the smallest.
      tiling: the tiles that the elements are grouped in, a tuple of sizes each; None: unspecified.
      sub_byte_element_size_in_bits: the size of packed elements; 0 if they are not packed.
    """

    __slots__ = ("major_to_minor", "sub_byte_element_size_in_bits", "tiling")

    AUTO: Any

    def __init__(
        self,
        major_to_minor: tuple[int, ...],
        tiling: tuple[tuple[int, ...], ...] | None = None,
        sub_byte_element_size_in_bits: int = 0,
    ):
        self.major_to_minor = tuple(major_to_minor)
        self.tiling = None if tiling is None else tuple(map(tuple, tiling))
        self.sub_byte_element_size_in_bits = sub_byte_element_size_in_bits

    @staticmethod
    def of_buffer(pjrt_layout: Any) -> "Layout":
        """Convert the PJRT layout of a buffer to a Layout."""
        layout = xla_layout_of(pjrt_layout)
        return Layout(
            layout.minor_to_major()[::-1], tuple(layout.tiling()), layout.element_size_in_bits()
        )

    def mode(self, aval: ShapedArray, what: str) -> str:
        """Return the layout in XLA's notation, as a layout mode of an array.

        Args:
          aval: the aval of the array.
          what: the array's role, for errors.

        Raises:
          ValueError: if the layout does not order the array's axes.
        """
        shape = aval.shape
        dtype = aval.dtype
        if sorted(self.major_to_minor) != list(range(len(shape))):
            raise ValueError(
                f"{what} is incompatible with its layout annotation {self}: the length of "
                f"major_to_minor and the rank of the value should match, with each axis once. Got "
                f"major_to_minor={self.major_to_minor} and shape={shape}"
            )
        order = self.major_to_minor
        if isinstance(dtype, ExtendedDType):
            # The axes of the elements' storage come last, in the default order.
            order += tuple(range(len(shape), len(dtype.physical(shape)[0])))
        axes = ",".join(map(str, order[::-1]))
        tiles = "".join(f"({','.join(map(str, tile))})" for tile in self.tiling or ())
        return f"{{{axes}:T{tiles}}}" if tiles else f"{{{axes}}}"

    def with_axis(self, axis: int) -> "Layout":
        """Return the layout of arrays with a new axis, whose stride is the largest."""
        rest = (old + (old >= axis) for old in self.major_to_minor)
        return Layout((axis, *rest), self.tiling, self.sub_byte_element_size_in_bits)

    def _fields(self) -> tuple[Any, ...]:
        return (self.major_to_minor, self.tiling, self.sub_byte_element_size_in_bits)

    def __eq__(self, other: object) -> bool:
        return type(other) is Layout and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        return (
            f"Layout(major_to_minor={self.major_to_minor}, tiling={self.tiling}, "
            f"sub_byte_element_size_in_bits={self.sub_byte_element_size_in_bits})"
        )


class _Automatic:
    """The layout that XLA chooses."""

    __slots__ = ()

    def mode(self, aval: ShapedArray, what: str) -> str:
        """Return the layout mode of XLA's choice."""
        return "auto"

    def __repr__(self) -> str:
        return "AUTO"

    def __reduce__(self) -> str:
        return "_automatic"


_automatic = Layout.AUTO = _Automatic()
# A layout, XLA's choice of one, or None for the default of the device.
LayoutChoice = Layout | _Automatic | None


class Format:
    """A layout and a sharding, which together describe how an array is stored.

    Raises:
      TypeError: if the layout or the sharding has another type.
      ValueError: if there is a Layout and no sharding.
    """

    __slots__ = ("layout", "sharding")

    def __init__(self, layout: Any = None, sharding: Any = None):
        if not (layout is None or layout is _automatic or isinstance(layout, Layout)):
            raise TypeError(
                "the layout of a Format is None, Layout.AUTO or a Layout: got "
                f"{layout!r} of type {type(layout).__name__}"
            )
        if not (sharding is None or isinstance(sharding, Sharding)):
            raise TypeError(
                "the sharding of a Format is None or a Sharding: got "
                f"{sharding!r} of type {type(sharding).__name__}"
            )
        if isinstance(layout, Layout) and sharding is None:
            raise ValueError(
                f"Sharding has to be concrete when layout is a Layout: got {layout} and no "
                "sharding. Pass a NamedSharding or SingleDeviceSharding with it."
            )
        self.layout: LayoutChoice = layout
        self.sharding: Sharding | None = sharding

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is Format
            and self.layout == other.layout
            and self.sharding == other.sharding
        )

    def __hash__(self) -> int:
        return hash((self.layout, self.sharding))

    def __repr__(self) -> str:
        return f"Format(layout={self.layout}, sharding={self.sharding})"
