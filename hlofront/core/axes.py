"""Named axes in scope, whose names `psum(x, "i")` may use, and their sizes."""

from collections.abc import Sequence
from typing import Any

from hlofront.bridge import state
from hlofront.core.aval import AbstractValue, ShapedArray

_cell = state.named_axes
_swap = _cell.swap_local
_set = _cell.set_local


class AxisData:
    """The axis that vmap maps: its name or None, its size, the mesh axes that it is split over."""

    __slots__ = ("name", "size", "spmd_name")

    def __init__(self, name: Any, size: int, spmd_name: tuple[Any, ...] = ()):
        self.name = name
        self.size = size
        self.spmd_name = spmd_name

    def _key(self):
        return self.name, self.size, self.spmd_name

    def __eq__(self, other: object) -> bool:
        return type(other) is AxisData and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        return f"AxisData(name={self.name!r}, size={self.size}, spmd_name={self.spmd_name!r})"


class axes_in_scope:
    """A context manager that adds named axes, as (name, size) pairs, to those in scope."""

    __slots__ = ("axes", "before")

    def __init__(self, axes: Sequence[tuple[Any, Any]]):
        self.axes = tuple(axes)

    def __enter__(self) -> None:
        self.before: Any = _swap(current_axes() + self.axes)

    def __exit__(self, *_: object) -> None:
        _set(self.before)


def current_axes() -> tuple[tuple[Any, Any], ...]:
    """Return the named axes in scope as (name, size) pairs, outermost first."""
    return _cell.value


def axis_size(name: Any) -> Any:
    """Return the size of the innermost named axis of a name.

    Raises:
      NameError: if no axis of that name is in scope.
    """
    for known, size in reversed(current_axes()):
        if known == name:
            return size
    known = ", ".join(repr(known) for known, _ in current_axes()) or "none"
    raise NameError(
        f"Found an unbound axis name: {name}. Axes in scope: {known}. "
        "Give the axis its name where it is made, as in vmap(f, axis_name=...)."
    )


def mapped_aval(size: int, axis: int | None, aval: AbstractValue) -> AbstractValue:
    """Return the aval of one element along an axis of an array.

    Args:
      size: the size of the axis.
      axis: its position; None leaves the aval unchanged.
      aval: the aval of the whole array, or of a token, which has no axes.

    Raises:
      ValueError: if the axis has another size.
    """
    if axis is None or not isinstance(aval, ShapedArray):
        return aval
    if aval.shape[axis] != size:
        raise ValueError(f"axis {axis} of {aval.str_short()} is not of size {size}")
    return aval.update(shape=(*aval.shape[:axis], *aval.shape[axis + 1 :]))


def unmapped_aval(
    size: int, axis: int | None, aval: AbstractValue, explicit_mesh_axis: object = None
) -> AbstractValue:
    """Return the aval of an array with one more axis.

    Args:
      size: the size of the new axis.
      axis: its position in the result; None leaves the aval unchanged.
      aval: the aval of one element along the axis, or of a token, which gets no axis.
      explicit_mesh_axis: accepted for JAX's sake; avals here have no sharding.
    """
    if axis is None or not isinstance(aval, ShapedArray):
        return aval
    return aval.update(shape=(*aval.shape[:axis], size, *aval.shape[axis:]))
