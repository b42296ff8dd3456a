"""Named axes: those in scope, whose names `psum(x, "i")` may use, and their sizes."""

from collections.abc import Sequence
from typing import Any

from hlofront.bridge import state

_cell = state.named_axes
_swap = _cell.swap_local
_set = _cell.set_local


class AxisData:
    """The axis that vmap adds: its name, or None; its size; the mesh axes it is spread over."""

    __slots__ = ("name", "size", "spmd_name")

    def __init__(self, name: Any, size: Any, spmd_name: tuple[Any, ...] = ()):
        self.name = name
        self.size = size
        self.spmd_name = spmd_name

    def _key(self):
        return self.name, self.size, self.spmd_name

    def __eq__(self, other: Any) -> bool:
        return type(other) is AxisData and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        return f"AxisData(name={self.name!r}, size={self.size}, spmd_name={self.spmd_name!r})"


class axes_in_scope:
    """Inside the block these axes, (name, size) pairs, are in scope too."""

    __slots__ = ("axes", "before")

    def __init__(self, axes: Sequence[tuple[Any, Any]]):
        self.axes = tuple(axes)

    def __enter__(self) -> None:
        self.before: Any = _swap(current_axes() + self.axes)

    def __exit__(self, *_: Any) -> None:
        _set(self.before)


def current_axes() -> tuple[tuple[Any, Any], ...]:
    """The axes in scope, outermost first: (name, size)."""
    return _cell.value


def axis_size(name: Any) -> Any:
    """The size of the innermost axis of this name.

    Raises NameError if there is none.
    """
    for known, size in reversed(current_axes()):
        if known == name:
            return size
    known = ", ".join(repr(known) for known, _ in current_axes()) or "none"
    raise NameError(
        f"Found an unbound axis name: {name}. Axes in scope: {known}. "
        "Give the axis its name where it is made, as in vmap(f, axis_name=...)."
    )
