"""Primitives for the order of elements in memory: layout_constraint."""

from typing import TYPE_CHECKING, Protocol

from hlofront.base.typing import Array, ArrayLike, ArrayLikes
from hlofront.core.aval import ShapedArray
from hlofront.core.primitive import Primitive
from hlofront.core.rules import BatchResult, batch, infer
from hlofront.core.symbolic_zeros import BatchAxes, Cotangent, Operand
from hlofront.core.trace import process
from hlofront.primitives.rules.derivatives import linear
from hlofront.primitives.sharding.families import split_as_first_operand

if TYPE_CHECKING:
    from typing import Self


class MemoryOrder(Protocol):
    """The protocol of layouts, whose class is in pjrt/layouts.py."""

    @property
    def major_to_minor(self) -> tuple[int, ...]: ...
    def mode(self, aval: ShapedArray, what: str) -> str:
        """Return the layout in XLA's notation; raise ValueError if it does not fit the aval."""
        ...

    def with_axis(self, axis: int) -> "Self":
        """Return the layout of arrays with a new axis, whose stride is the largest."""
        ...


layout_constraint_p = Primitive("layout_constraint")
split_as_first_operand(layout_constraint_p)


def layout_constraint(x: ArrayLike, layout: MemoryOrder) -> Array:
    """Return an array whose elements XLA lays out in memory by a layout at this point.

    Raises:
      ValueError: if the layout does not fit the array's axes.
    """
    return process(layout_constraint_p, (x,), {"layout": layout})


@infer(layout_constraint_p)
def _(x: ShapedArray, *, layout: MemoryOrder) -> ShapedArray:
    layout.mode(x, "the value of with_layout_constraint")
    return x


# Cotangents have the layout of the values.
def _transpose(cotangent: ArrayLike, x: Operand, *, layout: MemoryOrder) -> list[Cotangent]:
    return [layout_constraint(cotangent, layout)]


linear(layout_constraint_p, _transpose)


@batch(layout_constraint_p)
def _(values: ArrayLikes, axes: BatchAxes, *, layout: MemoryOrder) -> BatchResult:
    (x,), (axis,) = values, axes
    return layout_constraint(x, layout if axis is None else layout.with_axis(axis)), axis
