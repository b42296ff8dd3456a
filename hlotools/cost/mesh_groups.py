"""Groups of devices that communicate, as HLO writes them, and their mesh axes."""

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

# Groups, or pairs, of positions of devices in a program.
Groups = tuple[tuple[int, ...], ...]

# [4,2]<=[2,4]T(1,0): the numbers 0 to 7 of shape [2,4], transposed, of shape [4,2].
_IOTA = re.compile(r"\[([\d,]*)\]<=\[([\d,]*)\](?:T\(([\d,]*)\))?")
# mesh['a'=4,'b'=2], device_ids=([2,2,2]T(0,2,1)) {'a','b':(1)2}: groups along axes of XLA's mesh.
_MESH = re.compile(r"mesh\[(.*?)\](?:, device_ids=\((.*?\)?)\))?\s*\{(.*)\}", re.DOTALL)
_AXIS = re.compile(r"'((?:[^'\\]|\\.)*)'(?:=(\d+))?(?::\((\d+)\)(\d+))?")
_ORDER = re.compile(r"\[([\d,]*)\](?:T\(([\d,]*)\))?")
_GROUP = re.compile(r"\{([\d,\s]*)\}")
# The maximum number of devices.
_MAX_DEVICES = 1 << 16


class MeshAxes(NamedTuple):
    """A mesh without devices: the names and sizes of its axes.

    Attributes:
      axes: a name and a size for each axis, the outermost first.
      positions: per device of the mesh, in row-major order, its position among the program's
        devices; None if the orders are equal.
    """

    axes: tuple[tuple[str, int], ...]
    positions: tuple[int, ...] | None = None

    @property
    def size(self) -> int:
        """The number of devices."""
        return math.prod(size for _, size in self.axes)

    def __str__(self) -> str:
        return ", ".join(f"{name}={size}" for name, size in self.axes)


def mesh_of_text(text: str) -> MeshAxes:
    """Parse a mesh such as "data=4, model=2".

    Raises:
      ValueError: if the text is not that of a mesh.
    """
    axes: list[tuple[str, int]] = []
    for part in text.split(","):
        name, equals, size = (piece.strip() for piece in part.partition("="))
        if not name or not equals or not size.isdecimal() or int(size) < 1:
            raise ValueError(f"a mesh is written as in 'data=4,model=2': got {text!r}")
        axes.append((name, int(size)))
    if len({name for name, _ in axes}) < len(axes):
        raise ValueError(f"the axes of a mesh have different names: got {text!r}")
    return MeshAxes(tuple(axes))


def numbers_of(text: str) -> tuple[int, ...]:
    """Return the numbers in a text such as "4,2"; none for an empty text."""
    return tuple(int(part) for part in text.split(",") if part.strip())


def groups_of_text(text: str, device_count: int) -> Groups:
    """Return the groups of `replica_groups={{0,1},{2,3}}`, in any of the forms that XLA writes.

    The others are an iota, `[2,2]<=[4]`, and axes of a mesh, `mesh['a'=2,'b'=2] {'b'}`.

    Args:
      text: the value of the attribute. `{}` is one group of all devices.
      device_count: the number of devices.

    Raises:
      ValueError: if the text is not that of groups, or has too many devices.
    """
    mesh = _MESH.fullmatch(text.strip())
    if mesh is not None:
        return _groups_of_mesh(*mesh.groups())
    iota = _IOTA.fullmatch(text.strip())
    if iota is None:
        groups = tuple(numbers_of(group[1]) for group in _GROUP.finditer(text))
        if not any(groups):
            return (tuple(range(device_count)),)
        return groups
    shape, dimensions, order = (numbers_of(part or "") for part in iota.groups())
    numbers = _transposed(dimensions, order)
    if not shape or math.prod(shape) != len(numbers):
        raise ValueError(f"no groups of devices: {text!r}")
    length = shape[-1]
    return tuple(tuple(numbers[i : i + length]) for i in range(0, len(numbers), length))


def _transposed(dimensions: Sequence[int], order: Sequence[int]) -> list[int]:
    """Return the numbers 0, 1, ... of these dimensions after a transposition, in row-major order.

    Raises:
      ValueError: if the order is not a permutation of the dimensions, or there are too many
        numbers.
    """
    order = order or range(len(dimensions))
    if sorted(order) != list(range(len(dimensions))) or math.prod(dimensions) > _MAX_DEVICES:
        raise ValueError(f"no order of devices: {dimensions} transposed by {tuple(order)}")
    strides = [math.prod(dimensions[axis + 1 :]) for axis in range(len(dimensions))]
    coordinates = itertools.product(*(range(dimensions[axis]) for axis in order))
    return [
        sum(index * strides[axis] for index, axis in zip(indices, order, strict=True))
        for indices in coordinates
    ]


def _groups_of_mesh(axes: str, devices: str | None, chosen: str) -> Groups:
    """Return the groups of devices along axes, or parts of axes, of a mesh in XLA's notation.

    Args:
      axes: the names and sizes of the mesh's axes, such as "'a'=4,'b'=2".
      devices: the order of its devices, such as "[2,2,2]T(0,2,1)" or "0,2,1,3"; None is 0, 1, ...
      chosen: the axes, such as "'b'", or parts of them, such as "'a':(2)2".
    """
    mesh = MeshAxes(tuple((axis[1], int(axis[2])) for axis in _AXIS.finditer(axes)))
    order = _ORDER.fullmatch(devices or "")
    if order is not None:
        numbers = _transposed(numbers_of(order[1]), numbers_of(order[2] or ""))
    else:
        numbers = list(numbers_of(devices or "")) or list(range(mesh.size))
    if mesh.size > _MAX_DEVICES or len(numbers) != mesh.size:
        raise ValueError(f"a mesh of {mesh} has no devices {devices!r}")
    parts = list(_parts(mesh))
    wanted = [
        part
        for name, _, before, size in (axis.groups() for axis in _AXIS.finditer(chosen))
        for part in parts
        if part.name == name
        and (before is None or int(before) <= part.before < int(before) * int(size))
    ]
    return tuple(tuple(numbers[i] for i in group) for group in _along(parts, wanted))


def axes_of_groups(groups: Groups, mesh: MeshAxes) -> tuple[str, ...] | None:
    """Return the names of the mesh axes along which groups of devices communicate.

    An axis that is only partly in a group is named with the part, as in Shardy: for `x` of size 8,
    `x:(2)4` are the four parts of each of its two halves.

    Args:
      groups: positions of devices; each device is in one group.
      mesh: the mesh.

    Returns:
      The names, the outermost axis first; () for groups of one device; None if the groups are not
      along axes.
    """
    positions = mesh.positions or tuple(range(mesh.size))
    wanted = {frozenset(group) for group in groups}
    length = max(map(len, groups), default=1)
    if length == 1:
        return ()
    parts = list(_parts(mesh))
    for chosen in _subsets_of_size(parts, length):
        if {frozenset(positions[i] for i in group) for group in _along(parts, chosen)} == wanted:
            return tuple(_merged(chosen))
    return None


def axes_of_pairs(pairs: Groups, mesh: MeshAxes) -> tuple[str, ...]:
    """Return the names of the mesh axes along which pairs of devices send and receive.

    Args:
      pairs: (source, target) positions of devices.
      mesh: the mesh.
    """
    positions = mesh.positions or tuple(range(mesh.size))
    number_of = {position: number for number, position in enumerate(positions)}
    moved: set[str] = set()
    for source, target in pairs:
        stride = mesh.size
        for name, size in mesh.axes:
            stride //= size
            if number_of[source] // stride % size != number_of[target] // stride % size:
                moved.add(name)
    return tuple(name for name, _ in mesh.axes if name in moved)


class _Part(NamedTuple):
    """A prime factor of a mesh axis: the factors before it, its size, its stride in devices."""

    name: str
    axis_size: int
    before: int
    size: int
    stride: int


def _parts(mesh: MeshAxes) -> Iterator[_Part]:
    stride = mesh.size
    for name, axis_size in mesh.axes:
        before = 1
        for size in _prime_factors(axis_size):
            stride //= size
            yield _Part(name, axis_size, before, size, stride)
            before *= size


def _prime_factors(number: int) -> Iterator[int]:
    factor = 2
    while number > 1:
        if factor * factor > number:
            factor = number
        if number % factor == 0:
            number //= factor
            yield factor
        else:
            factor += 1


def _subsets_of_size(parts: Sequence[_Part], size: int) -> Iterator[list[_Part]]:
    """Yield the choices of parts with a product of sizes, those of whole axes first."""
    names = list(dict.fromkeys(part.name for part in parts))
    for count in range(1, len(names) + 1):
        for chosen in itertools.combinations(names, count):
            whole = [part for part in parts if part.name in chosen]
            if math.prod(part.size for part in whole) == size:
                yield whole
    for count in range(1, len(parts) + 1):
        for subset in itertools.combinations(parts, count):
            if math.prod(part.size for part in subset) == size:
                yield list(subset)


def _along(parts: Sequence[_Part], chosen: Sequence[_Part]) -> Iterator[list[int]]:
    """Yield the groups of devices that differ only in the chosen parts."""
    other_parts = [part for part in parts if part not in chosen]
    offsets = _sums(chosen)
    for start in _sums(other_parts):
        yield [start + offset for offset in offsets]


def _sums(parts: Sequence[_Part]) -> list[int]:
    """Return the numbers of the devices whose index is 0 along all other parts."""
    ranges = (range(0, part.size * part.stride, part.stride) for part in parts)
    return [sum(steps) for steps in itertools.product(*ranges)]


def _merged(chosen: Iterable[_Part]) -> Iterator[str]:
    """Yield the names of axes, or of parts of them where not all parts are chosen."""
    run: list[_Part] = []
    for part in [*chosen, None]:
        last = run[-1] if run else None
        follows = (
            part is not None
            and last is not None
            and part.name == last.name
            and part.before == last.before * last.size
        )
        if run and not follows:
            size = math.prod(member.size for member in run)
            first = run[0]
            whole = size == first.axis_size
            yield first.name if whole else f"{first.name}:({first.before}){size}"
            run = []
        if part is not None:
            run.append(part)
