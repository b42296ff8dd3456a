"""FlatBuffers: the part of that format that JAX's exported programs use, written and read.

A buffer starts with the position of its root table. A table is a signed offset back to its vtable,
then its fields; the vtable has its own size, the table's size, and per field its position in the
table, or 0. Fields that are texts, vectors or tables hold the distance to these, which follow. All
numbers are little-endian and aligned. Numbers here have at most 4 bytes.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Literal

from hlofront.base.named_tuple import NamedTuple

# The types of numbers, as the module struct spells them: 1, 1, 1, 2, 2 and 4 bytes.
NumberType = Literal["?", "b", "B", "H", "h", "I"]


class Number(NamedTuple):
    """A field that is a number."""

    kind: NumberType
    value: int


class Numbers(NamedTuple):
    """A field that is a vector of numbers."""

    kind: NumberType
    values: Sequence[int]


# A table by the numbers of its fields. A list is a vector of texts or tables.
Field = "Number | Numbers | str | bytes | Table | Sequence[str | Table]"
Table = Mapping[int, "Number | Numbers | str | bytes | Table | Sequence[str | Table]"]


# ---- writing -------------------------------------------------------------------------------------


def written(root: Table) -> bytes:
    """Return a buffer with this table as its root."""
    buffer = bytearray(4)
    struct.pack_into("<I", buffer, 0, _write_table(buffer, root))
    return bytes(buffer)


def _align(buffer: bytearray) -> None:
    buffer += bytes(-len(buffer) % 4)


def _write_table(buffer: bytearray, table: Table) -> int:
    """Append a table with all that it holds, and return its position."""
    _align(buffer)
    count = max(table, default=-1) + 1
    vtable = len(buffer)
    buffer += bytes(4 + 2 * count)
    _align(buffer)
    start = len(buffer)
    # Each field has 4 bytes, which every type is aligned in.
    buffer += bytes(4 + 4 * len(table))
    struct.pack_into("<HH", buffer, vtable, 4 + 2 * count, 4 + 4 * len(table))
    struct.pack_into("<i", buffer, start, start - vtable)
    positions = {number: start + 4 + 4 * i for i, number in enumerate(table)}
    for number, position in positions.items():
        struct.pack_into("<H", buffer, vtable + 4 + 2 * number, position - start)
    for number, field in table.items():
        position = positions[number]
        if isinstance(field, Number):
            struct.pack_into(f"<{field.kind}", buffer, position, field.value)
        else:
            struct.pack_into("<I", buffer, position, _write(buffer, field) - position)
    return start


def _write(
    buffer: bytearray, value: "Numbers | str | bytes | Table | Sequence[str | Table]"
) -> int:
    """Append a value that fields point to, and return its position."""
    if isinstance(value, Mapping):
        return _write_table(buffer, value)
    _align(buffer)
    start = len(buffer)
    if isinstance(value, str):
        encoded = value.encode()
        buffer += struct.pack("<I", len(encoded)) + encoded + b"\0"
    elif isinstance(value, bytes):
        buffer += struct.pack("<I", len(value)) + value
    elif isinstance(value, Numbers):
        count = len(value.values)
        buffer += struct.pack(f"<I{count}{value.kind}", count, *value.values)
    else:
        buffer += struct.pack("<I", len(value)) + bytes(4 * len(value))
        for i, member in enumerate(value):
            position = start + 4 + 4 * i
            struct.pack_into("<I", buffer, position, _write(buffer, member) - position)
    return start


# ---- reading -------------------------------------------------------------------------------------

# Programs of JAX refer to some tables often: to the mesh of all shardings, and to equal types.
_MAX_READS_PER_BYTE = 64
_MIN_READ = 1 << 16
_MIN_TABLE_BYTES = 4


class TableView:
    """A table in a buffer, whose fields are read by number.

    Methods raise DamagedBuffer if the field does not have the requested type, as far as that can be
    seen.
    """

    __slots__ = ("_data", "_left", "_start", "_vtable")

    def __init__(self, data: bytes, start: int, left: list[int]):
        """Read the start of a table.

        Args:
          data: the buffer.
          start: the position of the table.
          left: how many bytes may still be read of all tables of the buffer. Fields that refer to
            the same bytes are read as often, so that without a limit few bytes are endlessly many.
        """
        self._data = data
        self._start = start
        self._left = left
        self._spend(_MIN_TABLE_BYTES)
        self._vtable = start - self._number("i", start)

    @classmethod
    def root(cls, data: bytes) -> "TableView":
        """Return the root table of a buffer."""
        if len(data) < 8:
            raise DamagedBuffer(f"has {len(data)} bytes")
        (start,) = struct.unpack_from("<I", data)
        return cls(data, start, [_MIN_READ + _MAX_READS_PER_BYTE * len(data)])

    def number(self, field: int, kind: NumberType, default: int = 0) -> int:
        """Return a field that is a number; `default` if it is absent."""
        position = self._position(field)
        return default if position is None else self._number(kind, position)

    def text(self, field: int, default: str = "") -> str:
        """Return a field that is a text; `default` if it is absent."""
        position = self._position(field)
        return default if position is None else self._text(self._target(position))

    def data(self, field: int) -> bytes:
        """Return a field that is a vector of bytes; none if it is absent."""
        position = self._position(field)
        return b"" if position is None else self._bytes(self._target(position), 1)

    def numbers(self, field: int, kind: NumberType) -> tuple[int, ...]:
        """Return a field that is a vector of numbers; none if it is absent."""
        position = self._position(field)
        if position is None:
            return ()
        size = struct.calcsize(kind)
        content = self._bytes(self._target(position), size)
        return struct.unpack(f"<{len(content) // size}{kind}", content)

    def table(self, field: int) -> "TableView | None":
        """Return a field that is a table; None if it is absent."""
        position = self._position(field)
        return (
            None if position is None else TableView(self._data, self._target(position), self._left)
        )

    def tables(self, field: int) -> "list[TableView]":
        """Return a field that is a vector of tables; none if it is absent."""
        return [TableView(self._data, target, self._left) for target in self._targets(field)]

    def texts(self, field: int) -> list[str]:
        """Return a field that is a vector of texts; none if it is absent."""
        return [self._text(target) for target in self._targets(field)]

    def _targets(self, field: int) -> list[int]:
        position = self._position(field)
        if position is None:
            return []
        start = self._target(position)
        count = len(self._bytes(start, 4)) // 4
        return [self._target(start + 4 + 4 * i) for i in range(count)]

    def _position(self, field: int) -> int | None:
        """Return the position of a field, or None if the table does not have it."""
        entry = 4 + 2 * field
        if entry + 2 > self._number("H", self._vtable):
            return None
        offset = self._number("H", self._vtable + entry)
        return self._start + offset if offset else None

    def _target(self, position: int) -> int:
        """Return the position that a field points to, which is behind it."""
        offset = self._number("I", position)
        if offset == 0:
            raise DamagedBuffer(f"has a field at byte {position} that points to itself")
        return position + offset

    def _bytes(self, start: int, size: int) -> bytes:
        """Return the content of a vector whose members have `size` bytes."""
        stop = start + 4 + self._number("I", start) * size
        if stop > len(self._data):
            raise DamagedBuffer(f"has a vector at byte {start} that ends behind its end")
        self._spend(stop - start)
        return self._data[start + 4 : stop]

    def _spend(self, size: int) -> None:
        self._left[0] -= size
        if self._left[0] < 0:
            raise DamagedBuffer("refers to the same bytes again and again")

    def _text(self, start: int) -> str:
        try:
            return self._bytes(start, 1).decode()
        except UnicodeDecodeError:
            raise DamagedBuffer(f"has a text at byte {start} that is no UTF-8") from None

    def _number(self, kind: str, position: int) -> int:
        if not 0 <= position <= len(self._data) - struct.calcsize(kind):
            raise DamagedBuffer(f"points to byte {position} of {len(self._data)}")
        return struct.unpack_from(f"<{kind}", self._data, position)[0]


class DamagedBuffer(ValueError):
    """The error of bytes that are no FlatBuffer of the expected tables."""
