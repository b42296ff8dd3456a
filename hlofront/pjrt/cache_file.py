"""The file format of a disk cache entry: named fields, and a checksum over all of them.

    8 bytes      MAGIC
    u32, u32     format version, number of fields          (integers are little-endian)
    per field    u16 length of its name, u64 length of its value, its name as UTF-8
    the values, concatenated in that order
    32 bytes     SHA-256 of everything before, in all future versions too

Unlike with a pickle, reading an entry runs no code.
"""

import hashlib
import struct
from collections.abc import Mapping

MAGIC = b"\x89HLOX\r\n\x1a"  # Transfers that change line ends or the eighth bit corrupt it.
VERSION = 1

_HEADER = struct.Struct("<8sII")
_FIELD = struct.Struct("<HQ")
_CHECKSUM = 32
_MAX_FIELDS = 2000
_LONGEST_NAME = 255
HEAD = 1 << 16
"""The number of bytes from the start of a file that are sure to hold its table of fields."""


class DamagedEntry(Exception):
    """The error for bytes that are not a complete cache entry; `reason` continues "it ..."."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


class NewerEntry(DamagedEntry):
    """The error for a complete entry in a newer hlofront's format, which must not be set aside."""


def pack(fields: Mapping[str, bytes]) -> bytes:
    """Serialize the fields of a cache entry. Fields that are read often should come first.

    Raises:
      ValueError: if there are over 2,000 fields, a name is longer than 255 bytes, or the table of
        fields is longer than HEAD.
    """
    if len(fields) > _MAX_FIELDS:
        raise ValueError(f"an entry has at most {_MAX_FIELDS} fields, and was given {len(fields)}")
    parts = [_HEADER.pack(MAGIC, VERSION, len(fields))]
    for name, value in fields.items():
        encoded = name.encode()
        if len(encoded) > _LONGEST_NAME:
            raise ValueError(
                f"a field's name has at most {_LONGEST_NAME} bytes, and {name[:40]!r}... has "
                f"{len(encoded)}"
            )
        parts += (_FIELD.pack(len(encoded), len(value)), encoded)
    table = sum(map(len, parts))
    if table > HEAD:
        raise ValueError(f"the table of {len(fields)} fields has {table} bytes, and at most {HEAD}")
    parts += fields.values()
    checksum = hashlib.sha256()
    for part in parts:
        checksum.update(part)
    return b"".join([*parts, checksum.digest()])


def unpack(data: bytes) -> dict[str, bytes]:
    """Parse a serialized cache entry into its fields.

    Raises:
      DamagedEntry: if the bytes are not exactly what `pack` returned.
      NewerEntry: if the bytes are in the format of a newer version.
    """
    return {name: data[start:stop] for name, (start, stop) in verified(data).items()}


def verified(data: bytes) -> dict[str, tuple[int, int]]:
    """Return the start and stop of each field of a complete serialized cache entry.

    Raises:
      DamagedEntry: if the bytes are not exactly what `pack` returned.
      NewerEntry: if the bytes are in the format of a newer version.
    """
    _check_start(data)
    view = memoryview(data)
    if hashlib.sha256(view[:-_CHECKSUM]).digest() != data[-_CHECKSUM:]:
        raise DamagedEntry(f"was cut off or changed: the checksum of its {len(data)} bytes differs")
    return locate(data, len(data))


def locate(head: bytes, size: int) -> dict[str, tuple[int, int]]:
    """Return the start and stop of each field of a cache entry, without verifying the checksum.

    Args:
      head: the entry's first bytes: all of them, or at least HEAD.
      size: the number of bytes of the whole entry.

    Raises:
      DamagedEntry: if no entry of this size begins with `head`.
    """
    _check_start(head)
    _, version, count = _HEADER.unpack_from(head)
    if version > VERSION:
        raise NewerEntry(
            f"has format version {version}, of a newer hlofront; this one reads up to {VERSION}"
        )
    if version < 1 or count > _MAX_FIELDS:
        raise DamagedEntry(f"claims format version {version} and {count} fields")
    lengths: dict[bytes, int] = {}
    offset = _HEADER.size
    for _ in range(count):
        if offset + _FIELD.size > len(head):
            raise DamagedEntry("was cut off within its table of fields")
        name_length, value_length = _FIELD.unpack_from(head, offset)
        offset += _FIELD.size + name_length
        name = head[offset - name_length : offset]
        if name_length > _LONGEST_NAME or len(name) < name_length:
            raise DamagedEntry("was cut off within its table of fields")
        if name in lengths:
            raise DamagedEntry(f"has two fields with the name {name.decode(errors='replace')!r}")
        lengths[name] = value_length
    spans: dict[str, tuple[int, int]] = {}
    for name, length in lengths.items():
        try:
            spans[name.decode()] = offset, offset + length
        except UnicodeDecodeError:
            raise DamagedEntry(f"has a field with the name {name!r}") from None
        offset += length
    if offset + _CHECKSUM != size:
        raise DamagedEntry(f"has {size} bytes, and its fields need {offset + _CHECKSUM}")
    return spans


def _check_start(data: bytes) -> None:
    if not data:
        raise DamagedEntry("is empty")
    if not data.startswith(MAGIC[: len(data)]):
        raise DamagedEntry("is not an entry of this cache: it starts otherwise")
    if len(data) < _HEADER.size + _CHECKSUM:
        raise DamagedEntry(f"was cut off after {len(data)} bytes")
