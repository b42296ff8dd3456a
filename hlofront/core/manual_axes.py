"""ManualAxisType: along which manual axes of a mesh a value differs, and how."""

from collections.abc import Collection, Hashable, Sequence

MeshAxisNames = frozenset[Hashable]

_none: MeshAxisNames = frozenset()


class ManualAxisType:
    """The relation of a value inside shard_map to its copies along the manual axes of the mesh.

    Along an axis that is in none of the three sets, the value is the same on all devices. Equal
    ones are one object.

    Args:
      varying: the axes along which devices hold different values.
      unreduced: the axes along which devices hold summands of the value.
      reduced: the axes along which the value's cotangent consists of summands.

    Raises:
      ValueError: if an axis is in more than one of the sets.
    """

    __slots__ = ("__weakref__", "reduced", "unreduced", "varying")

    varying: MeshAxisNames
    unreduced: MeshAxisNames
    reduced: MeshAxisNames

    def __new__(
        cls,
        *,
        varying: Collection[Hashable] = _none,
        unreduced: Collection[Hashable] = _none,
        reduced: Collection[Hashable] = _none,
    ) -> "ManualAxisType":
        key = frozenset(varying), frozenset(unreduced), frozenset(reduced)
        made = _interned.get(key)
        if made is None:
            if sum(map(len, key)) != len(key[0] | key[1] | key[2]):
                raise ValueError(
                    "a manual axis is varying, unreduced or reduced, and one of these alone: got "
                    f"varying={set(key[0])}, unreduced={set(key[1])}, reduced={set(key[2])}"
                )
            made = object.__new__(cls)
            for name, axes in zip(_FIELDS, key, strict=True):
                object.__setattr__(made, name, axes)
            made = _interned.setdefault(key, made)
        return made

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a ManualAxisType does not change: make another with {name}=...")

    def __copy__(self) -> "ManualAxisType":
        return self

    def __deepcopy__(self, memo: object) -> "ManualAxisType":
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return _remade, (self.varying, self.unreduced, self.reduced)

    def __bool__(self) -> bool:
        return self is not SAME

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in _FIELDS)
        return f"ManualAxisType({fields})"

    def short_text(self) -> str:
        """Return the text of this type in that of an array: "{V:x}", or "" if it has no axes."""
        parts = [
            f"{letter}:{names_text(sorted(map(str, axes)))}"
            for letter, axes in (("V", self.varying), ("U", self.unreduced), ("R", self.reduced))
            if axes
        ]
        return "{" + ", ".join(parts) + "}" if parts else ""

    def with_varying(self, varying: Collection[Hashable]) -> "ManualAxisType":
        """Return the type of values that vary along these axes, otherwise as this one."""
        return ManualAxisType(varying=varying, unreduced=self.unreduced, reduced=self.reduced)


def names_text(names: Sequence[object]) -> str:
    """Return the names of mesh axes as text: x for one, (x,y) for several."""
    return str(names[0]) if len(names) == 1 else f"({','.join(map(str, names))})"


_FIELDS = ("varying", "unreduced", "reduced")
_interned: dict[tuple[MeshAxisNames, MeshAxisNames, MeshAxisNames], ManualAxisType] = {}

# The type of values that are the same on all devices, and of all values outside of shard_map.
SAME = ManualAxisType()


def _remade(
    varying: MeshAxisNames, unreduced: MeshAxisNames, reduced: MeshAxisNames
) -> ManualAxisType:
    return ManualAxisType(varying=varying, unreduced=unreduced, reduced=reduced)
