"""PartitionSpec: along which axes of a mesh each axis of an array is split."""

from collections.abc import Collection, Iterator
from typing import Any, cast


class _Unconstrained:
    """The type of UNCONSTRAINED."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "UNCONSTRAINED"


UNCONSTRAINED = _Unconstrained()


def _axes(name: str, given: Any) -> frozenset[Any]:
    if type(given) not in (set, frozenset):
        raise TypeError(
            f"{name} argument of PartitionSpec should be a set or frozenset of names of mesh axes, "
            f"got {given!r} of type {type(given).__name__}"
        )
    return frozenset(given)


def _entry(given: Any) -> Any:
    """An axis's part of a specification: one name stands for itself, no names are None."""
    if type(given) not in (list, tuple):
        return given
    names = tuple(given)
    if len(names) > 1:
        return names
    return names[0] if names else None


class PartitionSpec:
    """Along which axes of a mesh each axis of an array is split.

    Args:
      partitions: per axis of the array None, where it is not split; the name of a mesh axis; a
        tuple of names, of which the first is the outermost; or `PartitionSpec.UNCONSTRAINED`,
        where XLA decides. Axes of the array that are left out are not split.
      unreduced: names of mesh axes along which the array is a sum that is still to be done.
      reduced: names of mesh axes along which its derivative is one.

    Raises:
      TypeError: if `unreduced` or `reduced` is no set.
      ValueError: if a name is in more than one of the three.
    """

    __slots__ = ("partitions", "reduced", "unreduced")

    UNCONSTRAINED = UNCONSTRAINED

    partitions: tuple[Any, ...]
    unreduced: frozenset[Any]
    reduced: frozenset[Any]

    def __init__(
        self,
        *partitions: Any,
        unreduced: Collection[Any] = frozenset(),
        reduced: Collection[Any] = frozenset(),
    ):
        self.partitions = tuple(map(_entry, partitions))
        self.unreduced = _axes("unreduced", unreduced)
        self.reduced = _axes("reduced", reduced)
        used = set(self.names())
        for kind in ("unreduced", "reduced"):
            axes = getattr(self, kind)
            if not used.isdisjoint(axes):
                raise ValueError(
                    f"partitions cannot overlap with {kind} axes passed to PartitionSpec. Got "
                    f"partitions: {self.partitions} and {kind} axes: {sorted(axes, key=str)}"
                )
        if not self.unreduced.isdisjoint(self.reduced):
            raise ValueError(
                f"an axis of PartitionSpec is unreduced or reduced, and not both: got "
                f"unreduced={set(self.unreduced)} and reduced={set(self.reduced)}"
            )

    def names(self) -> list[Any]:
        """All names of mesh axes that it splits along, in order."""
        found: list[Any] = []
        for entry in self.partitions:
            found += axes_of(entry)
        return found

    def update(self, **changes: Any) -> "PartitionSpec":
        """The same but for what is given: `partitions`, `unreduced`, `reduced`."""
        fields = {name: getattr(self, name) for name in self.__slots__} | changes
        return PartitionSpec(*fields.pop("partitions"), **fields)

    def __iter__(self) -> Iterator[Any]:
        if self.unreduced or self.reduced:
            raise ValueError(
                "a PartitionSpec with unreduced or reduced axes is more than its partitions: "
                "iterate over spec.partitions instead"
            )
        return iter(self.partitions)

    def __len__(self) -> int:
        return len(self.partitions)

    def __getitem__(self, place: Any) -> Any:
        return self.partitions[place]

    def index(self, entry: Any) -> int:
        """The first axis that is split along `entry`; ValueError if there is none."""
        return self.partitions.index(_entry(entry))

    def count(self, entry: Any) -> int:
        """How many axes are split along `entry`."""
        return self.partitions.count(_entry(entry))

    def __add__(self, other: Any) -> "PartitionSpec":
        if isinstance(other, PartitionSpec):
            return PartitionSpec(
                *self.partitions,
                *other.partitions,
                unreduced=self.unreduced | other.unreduced,
                reduced=self.reduced | other.reduced,
            )
        if isinstance(other, tuple):
            return self.update(partitions=(*self.partitions, *other))
        return NotImplemented

    def __radd__(self, other: Any) -> "PartitionSpec":
        if isinstance(other, tuple):
            return self.update(partitions=(*other, *self.partitions))
        return NotImplemented

    def __eq__(self, other: Any) -> bool:
        return type(other) is PartitionSpec and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[Any, ...]:
        return self.partitions, self.unreduced, self.reduced

    def __reduce__(self) -> Any:
        return _remade, self._key

    def __repr__(self) -> str:
        entries = ", ".join(map(repr, self.partitions))
        comma = "," if len(self.partitions) == 1 else ""
        for name in ("unreduced", "reduced"):
            axes = getattr(self, name)
            if axes:
                listed = ", ".join(map(repr, sorted(axes, key=str)))
                entries += f"{', ' if entries else ''}{name}={{{listed}}}"
                comma = ""
        return f"P({entries}{comma})"


# What programs call it.
P = PartitionSpec


def _remade(partitions: Any, unreduced: Any, reduced: Any) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)


def axes_of(entry: Any) -> tuple[Any, ...]:
    """The names of mesh axes in one axis's part of a specification, outermost first."""
    if entry is None or entry is UNCONSTRAINED:
        return ()
    return cast("tuple[Any, ...]", entry) if type(entry) is tuple else (entry,)
