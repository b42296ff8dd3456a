"""The wire format of protocol buffers: the fields of a message, without its schema."""

from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
# A varint of 64 bits has at most ten bytes.
_LONGEST_VARINT = 70


class WireError(ValueError):
    """The error of bytes that are not a message of protocol buffers."""


def fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield the fields of a message: their numbers, with an integer or the bytes of each.

    The integer is unsigned; `signed` converts it. Floating-point numbers are bytes.

    Raises:
      WireError: if the bytes end within a field, or are not fields.
    """
    position, end = 0, len(message)
    while position < end:
        key = message[position]
        position += 1
        if key >= 0x80:
            key, position = _varint(message, position - 1)
        number, kind = key >> 3, key & 7
        if not number:
            raise WireError("a field has the number 0")
        if kind == _VARINT:
            value, position = _varint(message, position)
            yield number, value
            continue
        if kind == _BYTES:
            size = message[position] if position < end else 0x80
            position += 1
            if size >= 0x80:
                size, position = _varint(message, position - 1)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise WireError(f"a field is of wire type {kind}")
        if position + size > end:
            raise WireError(f"a field of {size:,} bytes has {end - position:,}")
        yield number, message[position : position + size]
        position += size


def _varint(message: memoryview, position: int) -> tuple[int, int]:
    """Return the integer at a position, and the position after it."""
    value = shift = 0
    try:
        while True:
            byte = message[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFF_FFFF_FFFF_FFFF, position
            shift += 7
            if shift == _LONGEST_VARINT:
                raise WireError("an integer has more than ten bytes")
    except IndexError:
        raise WireError("the bytes end within an integer") from None


def signed(value: int) -> int:
    """Return an integer of 64 bits, which is read as unsigned, as a signed one."""
    return value - (1 << 64) if value >= 1 << 63 else value


def integer(value: int | memoryview) -> int:
    """Return the value of a field that is an integer.

    Raises:
      WireError: if it is of another wire type.
    """
    if isinstance(value, int):
        return value
    raise WireError("a field has bytes where an integer is expected")


def content(value: int | memoryview) -> memoryview:
    """Return the value of a field that is a text or a message.

    Raises:
      WireError: if it is of another wire type.
    """
    if isinstance(value, int):
        raise WireError("a field has an integer where bytes are expected")
    return value


def text(value: int | memoryview) -> str:
    """Return the value of a field that is a text; bytes that are not UTF-8 are replaced.

    Raises:
      WireError: if it is of another wire type.
    """
    return str(content(value), "utf-8", "replace")
