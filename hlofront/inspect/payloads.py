"""What backends keep in strings: configurations, kernels as base64; without places and paths."""

import base64
import binascii
import hashlib
import json
import re
import zlib
from typing import Any

from hlofront.inspect.hlo_graph import unquoted

# A file's absolute path, or anything in a folder of installed packages: its last part is kept.
_SUFFIX = r"(?:py|pyc|so|mlir|cc|cpp|cu|ptx|cubin|bc|h|c|json|textproto|ipynb|hlo|txt)"
_PATH = re.compile(
    r"(?<![\w.>])(?:[A-Za-z]:)?(?:[\\/]+[\w.@+~<>\-]+)*[\\/]+"
    rf"(?:(?:site|dist)-packages[\\/]+(?:[\w.@+~\-]+[\\/]+)*([\w.@+~\-]+)|([\w.@+~<>\-]+\.{_SUFFIX})\b)"
)
_BASE64 = re.compile(r"[A-Za-z0-9+/]{24,}={0,2}")
_BYTES_PATH = re.compile(_PATH.pattern.encode())
_MLIR_MAGIC = b"ML\xefR"
_LARGEST = 64 << 20
_PRINTABLE = re.compile(rb"[\x20-\x7e]{6,}")


def without_paths(text: str) -> str:
    """Text whose absolute paths are their last parts, also inside base64."""
    if "/" in text or "\\" in text:
        text = _PATH.sub(lambda found: "<path>/" + (found[1] or found[2]), text)
    if len(text) >= 24:
        text = _BASE64.sub(lambda found: _payload(found[0]), text)
    return text


def _payload(text: str) -> str:
    """A digest of what base64 holds, if it is MLIR's bytecode or has paths; else the text."""
    if len(text) % 4:
        return text
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return text
    unpacked = _unpacked(data)
    clean = _without_places(unpacked)
    if clean == data:
        return text
    return f"<payload {hashlib.blake2b(clean, digest_size=12).hexdigest()}>"


def _unpacked(data: bytes) -> bytes:
    """Decompressed, where it is zlib's or gzip's."""
    if data[:1] == b"\x78" or data[:2] == b"\x1f\x8b":
        try:
            return zlib.decompressobj(47).decompress(data, _LARGEST)
        except zlib.error:
            return data
    return data


def _without_places(data: bytes) -> bytes:
    if data.startswith(_MLIR_MAGIC):
        parts = _bytecode(data)
        if parts is not None:
            return b"\0".join(parts)
    if not _PRINTABLE.search(data):
        return data
    return _BYTES_PATH.sub(lambda found: b"<path>/" + (found[1] or found[2]), data)


# MLIR's bytecode, as its format's public documentation has it: the magic, a version, the producer
# and then sections, each with its length. The section of strings has their lengths, the last
# first, ahead of the strings, so that a longer path changes more bytes than its own.
_STRINGS_SECTION = 0


def _bytecode(data: bytes) -> list[bytes] | None:
    """The sections' bytes, with strings that are paths cut down; None if they cannot be read."""
    found: list[bytes] = []
    try:
        version, at = _varint(data, 4)
        end = data.index(b"\0", at)
        found.append(b"%d" % version)  # the producer is the version of the compiler: left out
        at = end + 1
        while at < len(data):
            kind = data[at]
            length, at = _varint(data, at + 1)
            if kind & 0x80:
                alignment, at = _varint(data, at)
                while alignment > 1 and at % alignment:
                    at += 1
            section = data[at : at + length]
            if len(section) < length:
                return None
            at += length
            if kind & 0x7F == _STRINGS_SECTION:
                found += _strings(section)
            else:
                found += [b"%d" % (kind & 0x7F), section]
    except (IndexError, ValueError):
        return None
    return found


def _strings(section: bytes) -> list[bytes]:
    count, at = _varint(section, 0)
    if count > len(section):
        raise ValueError("more strings than bytes")
    lengths: list[int] = []
    for _ in range(count):
        length, at = _varint(section, at)
        lengths.append(length)
    found: list[bytes] = []
    for length in reversed(lengths):
        text = section[at : at + length]
        at += length
        found.append(_BYTES_PATH.sub(lambda path: b"<path>/" + (path[1] or path[2]), text))
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number whose first byte's trailing zeros say how many bytes follow it."""
    first = data[at]
    if first == 0:
        return int.from_bytes(data[at + 1 : at + 9], "little"), at + 9
    more = (first & -first).bit_length() - 1
    value = int.from_bytes(data[at : at + more + 1], "little")
    return value >> (more + 1), at + more + 1


# ---- attributes ---------------------------------------------------------------------------------


def clean_config(text: str) -> str:
    """A backend's configuration with its keys in order and without paths."""
    inner = unquoted(text) if text.startswith('"') else text
    try:
        value = json.loads(inner)
    except (ValueError, RecursionError):
        return without_paths(sorted_map(inner) if inner.startswith("{") else inner)
    return json.dumps(_clean(value), sort_keys=True, separators=(",", ":"))


def _clean(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _clean(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_clean(inner) for inner in value]
    return without_paths(value) if isinstance(value, str) else value


_SEPARATOR = re.compile(r'"(?:[^"\\]++|\\.)*+"|[()\[\]{}<>,]', re.DOTALL)


def sorted_map(text: str) -> str:
    """`{b=1,a=2}` with its entries in order; only the outermost map is sorted."""
    parts: list[str] = []
    depth, start = 0, 1
    for found in _SEPARATOR.finditer(text, 1, len(text) - 1):
        sign = found[0]
        if sign in "([{<":
            depth += 1
        elif sign in ")]}>":
            depth -= 1
        elif sign == "," and depth <= 0:
            parts.append(text[start : found.start()].strip())
            start = found.end()
    parts.append(text[start:-1].strip())
    return "{" + ", ".join(sorted(parts)) + "}"
