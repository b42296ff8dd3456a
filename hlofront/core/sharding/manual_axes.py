"""ManualAxisType: the manual axes of a mesh along which a value varies, and how."""

from collections.abc import Collection, Hashable, Sequence
from typing import Any

from hlofront.core.sharding.mesh import AbstractMesh
from hlofront.core.sharding.partition import UnreducedKind, check_kind, cotangent_kind

MeshAxisNames = frozenset[Hashable]

_none: MeshAxisNames = frozenset()


class ManualAxisType:
    """The relation of a value inside shard_map to its copies along the manual axes of the mesh.

    Along an axis that is in none of the three sets, the value is the same on all devices. Equal
    ManualAxisTypes are the same object.

    Args:
      varying: the axes along which devices hold different values.
      unreduced: the axes along which devices hold summands of the value.
      reduced: the axes along which the value's cotangent consists of summands.
      unreduced_kind: whether devices hold summands along the unreduced axes, as by default, or
          values whose maximum or minimum is the result.

    Raises:
      TypeError: if `unreduced_kind` is not an UnreducedKind, or a set is a string.
      ValueError: if an axis is in more than one of the sets, or there is a kind without unreduced
        axes.
    """

    __slots__ = ("__weakref__", "reduced", "unreduced", "unreduced_kind", "varying")

    varying: MeshAxisNames
    unreduced: MeshAxisNames
    reduced: MeshAxisNames
    unreduced_kind: UnreducedKind | None

    def __new__(
        cls,
        *,
        varying: Collection[Hashable] = _none,
        unreduced: Collection[Hashable] = _none,
        reduced: Collection[Hashable] = _none,
        unreduced_kind: UnreducedKind | None = None,
    ) -> "ManualAxisType":
        for name, axes in zip(SETS, (varying, unreduced, reduced), strict=True):
            if isinstance(axes, str):
                raise TypeError(
                    f"{name} of a ManualAxisType is a set of mesh axes: got the text {axes!r}"
                )
        sets = frozenset(varying), frozenset(unreduced), frozenset(reduced)
        key = *sets, check_kind(sets[1], unreduced_kind)
        made = _interned.get(key)
        if made is None:
            if sum(map(len, sets)) != len(sets[0] | sets[1] | sets[2]):
                raise ValueError(
                    "a manual axis is exactly one of varying, unreduced and reduced: got "
                    f"varying={set(sets[0])}, unreduced={set(sets[1])}, reduced={set(sets[2])}"
                )
            made = object.__new__(cls)
            for name, value in zip(_FIELDS, key, strict=True):
                object.__setattr__(made, name, value)
            made = _interned.setdefault(key, made)
        return made

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a ManualAxisType does not change: make another with {name}=...")

    def __copy__(self) -> "ManualAxisType":
        return self

    def __deepcopy__(self, memo: object) -> "ManualAxisType":
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return _remade, (self.varying, self.unreduced, self.reduced, self.unreduced_kind)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in SETS)
        kind = f", unreduced_kind={self.unreduced_kind}" if self.has_extremes else ""
        return f"ManualAxisType({fields}{kind})"

    @property
    def vur(self) -> MeshAxisNames:
        """The axes that are in one of the three sets."""
        return self.varying | self.unreduced | self.reduced

    @property
    def empty(self) -> bool:
        """True if the value varies along no manual axis, as is the case outside shard_map."""
        return self is SAME

    def invarying(self, mesh: AbstractMesh) -> MeshAxisNames:
        """Return the manual axes of a mesh along which the value is the same on all devices."""
        return frozenset(mesh.manual_axes) - self.vur

    @property
    def has_extremes(self) -> bool:
        """True if the unreduced kind is a maximum or minimum, not a sum."""
        return self.unreduced_kind not in (None, UnreducedKind.sum)

    def short_text(self) -> str:
        """Return this type as it prints after an array's type: "{V:x}", or "" if it has no axes."""
        unreduced = "U" if self.unreduced_kind is None else _LETTERS[self.unreduced_kind]
        parts = [
            f"{letter}:{names_text(sorted(map(str, axes)))}"
            for letter, axes in (
                ("V", self.varying),
                (unreduced, self.unreduced),
                ("R", self.reduced),
            )
            if axes
        ]
        return "{" + ", ".join(parts) + "}" if parts else ""

    def with_varying(self, varying: Collection[Hashable]) -> "ManualAxisType":
        """Return this type with other varying axes."""
        return self.update(varying=varying)

    def update(self, **changes: Any) -> "ManualAxisType":
        """Return a type with some fields replaced; without unreduced axes, it has no kind."""
        fields = {name: getattr(self, name) for name in _FIELDS} | changes
        if not fields["unreduced"] and "unreduced_kind" not in changes:
            fields["unreduced_kind"] = None
        return ManualAxisType(**fields)

    def to_ct_mat(self) -> "ManualAxisType":
        """Return the type of cotangents of values of this type.

        Cotangents are unreduced along the axes along which values are reduced, and conversely.

        Raises:
          ValueError: if the unreduced values are maxima or minima, which have no cotangents.
        """
        return ManualAxisType(
            varying=self.varying,
            unreduced=self.reduced,
            reduced=self.unreduced,
            unreduced_kind=cotangent_kind(self.unreduced_kind, self.reduced),
        )


def names_text(names: Sequence[object]) -> str:
    """Return the names of mesh axes as text: x for one name, (x,y) for several."""
    return str(names[0]) if len(names) == 1 else f"({','.join(map(str, names))})"


SETS = ("varying", "unreduced", "reduced")
_FIELDS = (*SETS, "unreduced_kind")
_LETTERS = {UnreducedKind.sum: "U", UnreducedKind.max: "U_max", UnreducedKind.min: "U_min"}
_interned: dict[Hashable, ManualAxisType] = {}

# The type of values that are the same on all devices, and of all values outside of shard_map.
SAME = ManualAxisType()


def _remade(
    varying: MeshAxisNames,
    unreduced: MeshAxisNames,
    reduced: MeshAxisNames,
    unreduced_kind: UnreducedKind | None = None,
) -> ManualAxisType:
    return ManualAxisType(
        varying=varying, unreduced=unreduced, reduced=reduced, unreduced_kind=unreduced_kind
    )
