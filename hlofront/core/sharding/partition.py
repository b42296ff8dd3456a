"""PartitionSpec: the mesh axes along which each axis of an array is split."""

import enum
from collections.abc import Collection, Hashable, Iterator
from typing import Any, SupportsIndex, cast
from weakref import WeakValueDictionary

from hlofront.base.typing import is_tuple_or_list

# The entry for one array axis: None, a mesh axis's name, a tuple of names, or UNCONSTRAINED.
PartitionEntry = Hashable


class _Unconstrained:
    """The type of UNCONSTRAINED."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "UNCONSTRAINED"


UNCONSTRAINED = _Unconstrained()


class InferFromArgs:
    """The type of INFER."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "jax.sharding.Infer"


# Stands for specs of shard_map's arguments that are read from the types of the arguments.
INFER = InferFromArgs()


class UnreducedKind(enum.Enum):
    """The reduction that combines the values of devices along unreduced axes into one."""

    sum = enum.auto()
    max = enum.auto()
    min = enum.auto()


def check_kind(unreduced: Collection[Hashable], kind: object) -> UnreducedKind | None:
    """Return the kind of a type with these unreduced axes: `sum` by default.

    Raises:
      TypeError: if `kind` is neither an UnreducedKind nor None.
      ValueError: if there is a kind but no unreduced axis.
    """
    if kind is None:
        return UnreducedKind.sum if unreduced else None
    if not isinstance(kind, UnreducedKind):
        raise TypeError(
            "unreduced_kind is a jax.sharding.UnreducedKind or None: got "
            f"{kind!r} of type {type(kind).__name__}"
        )
    if not unreduced:
        raise ValueError(
            f"unreduced_kind says how values along unreduced axes are combined: got {kind}, and no "
            "unreduced axes"
        )
    return kind


def cotangent_kind(
    kind: UnreducedKind | None, reduced: Collection[Hashable]
) -> UnreducedKind | None:
    """Return the unreduced kind of cotangents of values that are reduced along these axes.

    Raises:
      ValueError: if devices have maxima or minima of parts: no device knows which part is the
          extremum, so the derivative is undefined.
    """
    if kind not in (None, UnreducedKind.sum):
        raise ValueError(
            f"values with unreduced_kind={kind.name} have no cotangents: a device does not know "
            f"whether the {kind.name} of all is its own. Make one value of them before what is "
            "differentiated"
        )
    return UnreducedKind.sum if reduced else None


def _axes(name: str, names: Collection[Hashable]) -> frozenset[Hashable]:
    if type(names) not in (set, frozenset):
        raise TypeError(
            f"{name} argument of PartitionSpec should be a set or frozenset of names of mesh axes, "
            f"got {names!r} of type {type(names).__name__}"
        )
    if None in names:
        raise ValueError(
            f"{name} of PartitionSpec cannot contain None, only names of mesh axes: got {names!r}"
        )
    return frozenset(names)


def _entry(entry: PartitionEntry | list[Hashable]) -> PartitionEntry:
    """Return a canonical entry: None for no names, the name for one, a tuple for several.

    Raises:
      ValueError: if the entry is a tuple that contains a tuple.
    """
    if not is_tuple_or_list(entry):
        return entry
    names: tuple[Hashable, ...] = tuple(entry)
    if any(isinstance(name, tuple) for name in names):
        raise ValueError(
            "a tuple inside PartitionSpec is of names of mesh axes, and cannot contain a tuple: "
            f"got {entry!r}"
        )
    if len(names) > 1:
        return names
    return names[0] if names else None


class PartitionSpec:
    """The mesh axes along which each axis of an array is split. Equal specs are one object.

    Args:
      partitions: per axis of the array None, if it is not split; the name of a mesh axis; a tuple
        of names, outermost first; or `PartitionSpec.UNCONSTRAINED`, if XLA decides. Axes of the
        array without an entry are not split.
      unreduced: names of mesh axes along which the array consists of summands to be added.
      reduced: names of mesh axes along which its cotangent consists of summands.
      unreduced_kind: whether devices have summands along the unreduced axes, as by default, or
          values whose maximum or minimum is the array.

    Raises:
      TypeError: if `unreduced` or `reduced` is not a set, `unreduced_kind` is not an UnreducedKind,
          or a name cannot be hashed.
      ValueError: if a name is in more than one of the three, a tuple of names holds a tuple, or
        there is a kind without unreduced axes.
    """

    __slots__ = ("__weakref__", "_hash", "partitions", "reduced", "unreduced", "unreduced_kind")

    UNCONSTRAINED = UNCONSTRAINED

    partitions: tuple[PartitionEntry, ...]
    unreduced: frozenset[Hashable]
    reduced: frozenset[Hashable]
    unreduced_kind: UnreducedKind | None
    _hash: int

    def __new__(
        cls,
        *partitions: PartitionEntry | list[Hashable],
        unreduced: Collection[Hashable] = frozenset(),
        reduced: Collection[Hashable] = frozenset(),
        unreduced_kind: UnreducedKind | None = None,
    ) -> "PartitionSpec":
        entries = tuple(map(_entry, partitions))
        sums, derivatives = _axes("unreduced", unreduced), _axes("reduced", reduced)
        kind = check_kind(sums, unreduced_kind)
        # 1 and True are equal, but different names.
        key = entries, sums, derivatives, kind, tuple(map(type, entries))
        spec = _specs.get(key)
        if spec is not None:
            return spec
        self = object.__new__(cls)
        for name, value in zip(_FIELDS, (entries, sums, derivatives, kind), strict=True):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_hash", hash(key))
        self._check()
        return _specs.setdefault(key, self)

    def __hash__(self) -> int:
        # A spec that was freed may be made again, and its hash must be the same.
        return self._hash

    def __init_subclass__(cls) -> None:
        raise TypeError("PartitionSpec cannot be subclassed: equal ones are one object")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"a PartitionSpec does not change: to have another {name}, make one by "
            f"update({name}=...)"
        )

    def _check(self) -> None:
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

    def names(self) -> list[Hashable]:
        """Return the names of all mesh axes along which the array is split, in order."""
        names: list[Hashable] = []
        for entry in self.partitions:
            names += axes_of(entry)
        return names

    def update(self, **changes: Any) -> "PartitionSpec":
        """Return a spec with other `partitions`, `unreduced`, `reduced` or `unreduced_kind`.

        A spec without unreduced axes has no kind.
        """
        fields = {name: getattr(self, name) for name in _FIELDS} | changes
        if not fields["unreduced"] and "unreduced_kind" not in changes:
            fields["unreduced_kind"] = None
        return PartitionSpec(*fields.pop("partitions"), **fields)

    def of_cotangent(self) -> "PartitionSpec":
        """Return the spec of cotangents: unreduced where this one is reduced, and conversely.

        Raises:
          ValueError: if the unreduced values are maxima or minima, which have no cotangents.
        """
        kind = cotangent_kind(self.unreduced_kind, self.reduced)
        return PartitionSpec(
            *self.partitions,
            unreduced=self.reduced,
            reduced=self.unreduced,
            unreduced_kind=kind,
        )

    def __iter__(self) -> Iterator[PartitionEntry]:
        if self.unreduced or self.reduced:
            raise ValueError(
                "a PartitionSpec with unreduced or reduced axes is more than its partitions: "
                "iterate over spec.partitions instead"
            )
        return iter(self.partitions)

    def __len__(self) -> int:
        return len(self.partitions)

    def __getitem__(self, index: SupportsIndex) -> PartitionEntry:
        return self.partitions[index]

    def index(self, entry: PartitionEntry | list[Hashable]) -> int:
        """Return the first axis of the array that is split along `entry`.

        Raises:
          ValueError: if there is none.
        """
        return self.partitions.index(_entry(entry))

    def count(self, entry: PartitionEntry | list[Hashable]) -> int:
        """Return the number of axes that are split along `entry`."""
        return self.partitions.count(_entry(entry))

    def __add__(self, other: object) -> "PartitionSpec":
        if isinstance(other, PartitionSpec):
            kinds = {self.unreduced_kind, other.unreduced_kind} - {None}
            if len(kinds) > 1:
                raise TypeError(
                    "PartitionSpecs that are joined have one unreduced_kind: got "
                    f"{self} and {other}"
                )
            return PartitionSpec(
                *self.partitions,
                *other.partitions,
                unreduced=self.unreduced | other.unreduced,
                reduced=self.reduced | other.reduced,
                unreduced_kind=kinds.pop() if kinds else None,
            )
        if isinstance(other, tuple):
            entries = cast("tuple[PartitionEntry, ...]", other)
            self._need_partitions_alone(entries)
            return PartitionSpec(*self.partitions, *entries)
        return NotImplemented

    def __radd__(self, other: object) -> "PartitionSpec":
        if isinstance(other, tuple):
            entries = cast("tuple[PartitionEntry, ...]", other)
            self._need_partitions_alone(entries)
            return PartitionSpec(*entries, *self.partitions)
        return NotImplemented

    def _need_partitions_alone(self, other: object) -> None:
        if self.unreduced or self.reduced:
            raise TypeError(
                f"a tuple has neither unreduced nor reduced axes, so that {other} cannot be joined "
                f"to {self}: make a PartitionSpec of it first"
            )

    def __copy__(self) -> "PartitionSpec":
        return self

    def __deepcopy__(self, memo: object) -> "PartitionSpec":
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return _remade, (self.partitions, self.unreduced, self.reduced, self.unreduced_kind)

    def __repr__(self) -> str:
        entries = ", ".join(map(repr, self.partitions))
        comma = "," if len(self.partitions) == 1 else ""
        for name in ("unreduced", "reduced"):
            axes = getattr(self, name)
            if axes:
                listed = ", ".join(map(repr, sorted(axes, key=str)))
                entries += f"{', ' if entries else ''}{name}={{{listed}}}"
                comma = ""
        if self.unreduced_kind not in (None, UnreducedKind.sum):
            entries += f", unreduced_kind={self.unreduced_kind.name}"
        return f"P({entries}{comma})"


_FIELDS = ("partitions", "unreduced", "reduced", "unreduced_kind")
_specs: WeakValueDictionary[Hashable, PartitionSpec] = WeakValueDictionary()

# User programs use this short name.
P = PartitionSpec


def _remade(
    partitions: tuple[PartitionEntry, ...],
    unreduced: frozenset[Hashable],
    reduced: frozenset[Hashable],
    unreduced_kind: UnreducedKind | None = None,
) -> PartitionSpec:
    return PartitionSpec(
        *partitions, unreduced=unreduced, reduced=reduced, unreduced_kind=unreduced_kind
    )


def axes_of(entry: PartitionEntry) -> tuple[Hashable, ...]:
    """Return the names of mesh axes in one entry of a PartitionSpec, outermost first."""
    if entry is None or entry is UNCONSTRAINED:
        return ()
    return cast("tuple[Hashable, ...]", entry) if type(entry) is tuple else (entry,)


def check_rank(sharding: object, least: int, rank: int) -> None:
    """Raise ValueError if an array has fewer axes than a sharding needs: `least`."""
    if rank < least:
        raise ValueError(
            f"Sharding {sharding} is only valid for values of rank at least {least}, but was "
            f"applied to a value of rank {rank}: leave out the entries of axes that it does not "
            "have"
        )
