"""The files of XLA's profiler, `HOST.xplane.pb`: planes of events, and the programs that ran."""

import os
import pathlib
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hlotools.wire import WireError, content, fields, integer, signed, text

_METADATA_PLANE = "/host:metadata"
_SUFFIX = ".xplane.pb"
# Longer stats, such as the HLO of a program, are not cached.
_LONGEST_SHARED = 64
StatValue = int | float | str | memoryview


class ProfileError(ValueError):
    """The error of a file that is not a profile, or lacks what was requested."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that took time: an operation of a program, or a call on the host.

    `start` and `end` are in picoseconds since the beginning of the recording.
    """

    name: str
    start: int
    end: int
    stats: Mapping[str, StatValue]


@dataclass(frozen=True, slots=True)
class EventLine:
    """A row of a timeline, such as a thread of the host or a stream of a GPU, with its events."""

    name: str
    events: list[Event]


@dataclass(frozen=True, slots=True)
class Plane:
    """The timeline of a host or of a device."""

    name: str
    lines: list[EventLine]


@dataclass(frozen=True, slots=True)
class ProgramRecord:
    """A program whose HLO is in a profile.

    `name` is that of the HLO module; `proto` is the module as bytes of an HloModuleProto.
    """

    number: int
    name: str
    proto: bytes


@dataclass(frozen=True, slots=True)
class XSpace:
    """The content of a file of XLA's profiler: planes of events, and programs by number."""

    path: str
    planes: list[Plane]
    programs: dict[int, ProgramRecord]

    def program(
        self, number: int | None, name: str, operations: Iterable[str]
    ) -> ProgramRecord | None:
        """Return the program of events; None if the profile does not have its HLO.

        Executables from caches on disk keep the numbers that they had in the process that compiled
        them: the name decides, then whether the program has the operations, then the number.
        """
        named = [record for record in self.programs.values() if record.name == name]
        names = [operation.encode() for operation in operations]
        whole = [record for record in named if all(key in record.proto for key in names)]
        for candidates in (whole, named):
            if candidates:
                return next((r for r in candidates if r.number == number), candidates[0])
        return None


def is_profile(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a file of XLA's profiler, or a folder that has one in it."""
    place = pathlib.Path(path)
    if place.is_dir():
        return any(place.rglob("*.xplane.pb"))
    return place.name.endswith(".xplane.pb")


def read_xplane(path: str | os.PathLike[str]) -> XSpace:
    """Read a file of XLA's profiler.

    Args:
      path: a file `HOST.xplane.pb`, or a folder that a profile was written to, such as that of
          `jax.profiler.trace(FOLDER)`, or a subfolder. The last recording in it is read.

    Raises:
      OSError: if the file cannot be read.
      ProfileError: if the file is not a profile or was cut off, or the folder lacks a single one.
    """
    file = _file_of(pathlib.Path(path))
    return parse_xplane(file.read_bytes(), str(file))


def parse_xplane(record: bytes, path: str = "the profile") -> XSpace:
    """Read the bytes of a file of XLA's profiler; `path` is its name in errors.

    Raises:
      ProfileError: if the bytes are not a profile, or were cut off.
    """
    space = XSpace(path, [], {})
    try:
        for number, value in fields(memoryview(record)):
            if number == 1:
                _read_plane(content(value), space)
    except (WireError, struct.error) as error:
        raise ProfileError(
            f"{path} is not a file of XLA's profiler, or was cut off or damaged: {error}"
        ) from error
    if not space.planes and not space.programs:
        raise ProfileError(f"{path} has no timeline: expected a file HOST{_SUFFIX}")
    return space


def _file_of(path: pathlib.Path) -> pathlib.Path:
    """Return the file that a path names, or the only one of the last recording in a folder."""
    if not path.is_dir():
        return path
    written = [
        file
        for pattern in (f"*{_SUFFIX}", f"plugins/profile/*/*{_SUFFIX}", f"*/*{_SUFFIX}")
        for file in path.glob(pattern)
    ]
    if not written:
        raise ProfileError(
            f"{path} has no file of XLA's profiler: expected plugins/profile/TIME/HOST{_SUFFIX} in "
            "it, which jax.profiler.trace(FOLDER) writes"
        )
    folder = max(file.parent for file in written)
    last = sorted(file for file in written if file.parent == folder)
    if len(last) > 1:
        names = ", ".join(file.name for file in last)
        raise ProfileError(f"{folder} has profiles of {len(last)} hosts: name one of {names}")
    return last[0]


# ---- messages -----------------------------------------------------------------------------------


@dataclass(slots=True)
class _EventKind:
    """The name and facts that all events of one kind share."""

    name: str = ""
    display_name: str = ""
    stats: list[memoryview] = field(default_factory=list[memoryview])


def _read_plane(message: memoryview, space: XSpace) -> None:
    name = ""
    lines: list[memoryview] = []
    kinds: dict[int, _EventKind] = {}
    stat_names: dict[int, str] = {}
    for number, value in fields(message):
        if number == 2:
            name = text(value)
        elif number == 3:
            lines.append(content(value))
        elif number == 4:
            key, entry = _map_entry(content(value))
            kinds[key] = _read_kind(entry)
        elif number == 5:
            key, entry = _map_entry(content(value))
            stat_names[key] = "".join(text(v) for n, v in fields(entry) if n == 2)
    reader = _StatReader(stat_names)
    shared = {key: reader.read(kind.stats) for key, kind in kinds.items()}
    if name == _METADATA_PLANE:
        for key, stats in shared.items():
            _add_program(space, key, stats)
        return
    space.planes.append(Plane(name, [_read_line(line, kinds, shared, reader) for line in lines]))


def _add_program(space: XSpace, number: int, stats: Mapping[str, StatValue]) -> None:
    proto = stats.get("Hlo Proto")
    if not isinstance(proto, memoryview):
        return
    program = stats.get("program_id", number)
    # An HloProto holds the module, whose first field is its name.
    for field_number, value in fields(proto):
        if field_number == 1:
            module = content(value)
            name = next((text(v) for n, v in fields(module) if n == 1), "")
            identity = signed(program) if isinstance(program, int) else number
            space.programs[identity] = ProgramRecord(identity, name, bytes(module))


def _map_entry(message: memoryview) -> tuple[int, memoryview]:
    key, entry = 0, memoryview(b"")
    for number, value in fields(message):
        if number == 1:
            key = integer(value)
        elif number == 2:
            entry = content(value)
    return key, entry


def _read_kind(message: memoryview) -> _EventKind:
    kind = _EventKind()
    for number, value in fields(message):
        if number == 2:
            kind.name = text(value)
        elif number == 4:
            kind.display_name = text(value)
        elif number == 5:
            kind.stats.append(content(value))
    return kind


def _read_line(
    message: memoryview,
    kinds: Mapping[int, _EventKind],
    shared: Mapping[int, Mapping[str, StatValue]],
    reader: "_StatReader",
) -> EventLine:
    name = display_name = ""
    begin = 0
    messages: list[memoryview] = []
    for number, value in fields(message):
        if number == 2:
            name = text(value)
        elif number == 11:
            display_name = text(value)
        elif number == 3:
            begin = signed(integer(value)) * 1000
        elif number == 4:
            messages.append(content(value))
    events: list[Event] = []
    for item in messages:
        key = offset = duration = 0
        stats: list[memoryview] = []
        for number, value in fields(item):
            if number == 1:
                key = integer(value)
            elif number == 2:
                offset = signed(integer(value))
            elif number == 3:
                duration = signed(integer(value))
            elif number == 4:
                stats.append(content(value))
        kind = kinds.get(key)
        start = begin + offset
        events.append(
            Event(
                (kind.display_name or kind.name) if kind is not None else "",
                start,
                start + max(duration, 0),
                {**shared.get(key, {}), **reader.read(stats)},
            )
        )
    events.sort(key=lambda event: event.start)
    return EventLine(display_name or name, events)


class _StatReader:
    """A reader of stats, most of which are the same for many events of a plane."""

    def __init__(self, names: Mapping[int, str]):
        self._names = names
        self._read: dict[bytes, tuple[str, StatValue]] = {}

    def read(self, messages: Iterable[memoryview]) -> dict[str, StatValue]:
        """Return the stats of one event or kind by their names."""
        stats: dict[str, StatValue] = {}
        for message in messages:
            key = bytes(message) if len(message) <= _LONGEST_SHARED else None
            pair = self._read.get(key) if key is not None else None
            if pair is None:
                pair = self._parsed(message)
                if key is not None:
                    self._read[key] = pair
            stats[pair[0]] = pair[1]
        return stats

    def _parsed(self, message: memoryview) -> tuple[str, StatValue]:
        name = ""
        held: StatValue = 0
        for number, value in fields(message):
            if number == 1:
                name = self._names.get(integer(value), "")
            elif number == 2:
                (held,) = struct.unpack("<d", content(value))
            elif number == 3:
                held = integer(value)
            elif number == 4:
                held = signed(integer(value))
            elif number == 5:
                held = text(value)
            elif number == 6:
                held = content(value)
            elif number == 7:
                # The text is the name of another stat, as many events share it.
                held = self._names.get(integer(value), "")
        return name, held
