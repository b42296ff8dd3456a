"""The cleaning of backend configurations and base64 kernels: source lines and paths are removed."""

import base64
import binascii
import hashlib
import json
import re
import zlib
from typing import Any

from hlotools.ir.quoted_text import mlir_bytes, unquoted

# An absolute path, or a file in a folder of installed packages: only its last part remains.
_SUFFIX = r"(?:py|pyc|so|mlir|cc|cpp|cu|ptx|cubin|bc|h|c|json|textproto|ipynb|hlo|txt)"
_PATH = re.compile(
    r"(?<![\w.>])(?:[A-Za-z]:)?(?:[\\/]+[\w.@+~<>\-]+)*[\\/]+"
    rf"(?:(?:site|dist)-packages[\\/]+(?:[\w.@+~\-]+[\\/]+)*([\w.@+~\-]+)|([\w.@+~<>\-]+\.{_SUFFIX})\b)"
)
# In StableHLO's text the quote before it is an escape, whose digits are also base64 digits.
_BASE64 = re.compile(r"(\\22)?([A-Za-z0-9+/]{24,}={0,2})")
_ESCAPED_BYTECODE = re.compile(r'"ML\\EFR(?:[^"\\]++|\\.)*+"', re.DOTALL)
# A digest of the code with its locations, which is redundant.
_KERNEL_HASH = re.compile(r'\bkernel_hash = "(?:[^"\\]++|\\.)*+"(?:, )?', re.DOTALL)
_BYTES_PATH = re.compile(_PATH.pattern.encode())
_MLIR_MAGIC = b"ML\xefR"
_LARGEST = 64 << 20
_PRINTABLE = re.compile(rb"[\x20-\x7e]{6,}")


def without_paths(text: str) -> str:
    """Return text with absolute paths cut to their last parts, also inside kernels' payloads."""
    if '"ML\\EFR' in text:
        text = _ESCAPED_BYTECODE.sub(
            lambda string: f'"<payload {payload_digest(mlir_bytes(string[0]))}>"',
            _KERNEL_HASH.sub("", text),
        )
    if "/" in text or "\\" in text:
        text = _PATH.sub(lambda matched: "<path>/" + (matched[1] or matched[2]), text)
    if len(text) >= 24:
        text = _BASE64.sub(lambda matched: (matched[1] or "") + _payload(matched[2]), text)
    return text


def payload_digest(data: bytes) -> str:
    """Return the digest of bytecode or other data, without locations and full paths."""
    clean = _without_locations(_unpacked(data))
    return hashlib.blake2b(clean, digest_size=12).hexdigest()


def _payload(text: str) -> str:
    """Return the digest of base64 content that is MLIR bytecode or has paths, else the text."""
    if len(text) % 4:
        return text
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return text
    clean = _without_locations(_unpacked(data))
    return text if clean == data else f"<payload {payload_digest(data)}>"


def _unpacked(data: bytes) -> bytes:
    """Return data decompressed if it is in zlib or gzip format, else unchanged."""
    if data[:1] == b"\x78" or data[:2] == b"\x1f\x8b":
        try:
            return zlib.decompressobj(47).decompress(data, _LARGEST)
        except zlib.error:
            return data
    return data


def _without_locations(data: bytes) -> bytes:
    if data.startswith(_MLIR_MAGIC):
        parts = _bytecode(data)
        if parts is not None:
            return b"\0".join(parts)
    if not _PRINTABLE.search(data):
        return data
    return _cut_paths(data)


# MLIR's bytecode, by the public documentation of its format: the magic, a version, the producer
# and then sections, each with its length. The section of strings has their lengths, the last
# first, before the strings, so that a longer path changes more bytes than its own. Attributes
# are in one section; their lengths and dialects are in another.
_STRINGS, _DIALECTS, _ATTRIBUTES, _OFFSETS = 0, 1, 2, 3
# The builtin dialect's codes of locations: call sites, lines, fused, names, unknown, ranges.
_LOCATIONS = frozenset({10, 11, 12, 13, 14, 15, 22})


def _bytecode(data: bytes) -> list[bytes] | None:
    """Return the sections of MLIR bytecode without locations and full paths; None for others."""
    sections: dict[int, bytes] = {}
    try:
        version, at = _varint(data, 4)
        # The producer, up to the zero byte, is the compiler's version, which is omitted.
        at = data.index(b"\0", at) + 1
        while at < len(data):
            kind = data[at]
            length, at = _varint(data, at + 1)
            if kind & 0x80:
                alignment, at = _varint(data, at)
                at += -at % max(alignment, 1)
            sections[kind & 0x7F] = data[at : at + length]
            if len(sections[kind & 0x7F]) < length:
                return None
            at += length
        strings = _strings(sections.pop(_STRINGS, b"\x01"))
        parts = [b"%d" % version, *map(_cut_paths, strings)]
        if {_DIALECTS, _ATTRIBUTES, _OFFSETS} <= sections.keys():
            dialects = _dialects(sections[_DIALECTS], strings)
            parts += _attributes(
                sections.pop(_ATTRIBUTES), sections.pop(_OFFSETS), dialects.index(b"builtin")
            )
    except (IndexError, ValueError):
        return None
    for kind, section in sections.items():
        parts += [b"%d" % kind, section]
    return parts


def _strings(section: bytes) -> list[bytes]:
    count, at = _varint(section, 0)
    if count > len(section):
        raise ValueError("more strings than bytes")
    lengths: list[int] = []
    for _ in range(count):
        length, at = _varint(section, at)
        lengths.append(length)
    strings: list[bytes] = []
    for length in reversed(lengths):
        strings.append(section[at : at + length].removesuffix(b"\0"))
        at += length
    return strings


def _cut_paths(text: bytes) -> bytes:
    return _BYTES_PATH.sub(lambda path: b"<path>/" + (path[1] or path[2]), text)


def _dialects(section: bytes, strings: list[bytes]) -> list[bytes]:
    """Return the names of the dialects of bytecode, in order."""
    count, at = _varint(section, 0)
    names: list[bytes] = []
    for _ in range(min(count, len(section))):
        name, at = _varint(section, at)
        names.append(strings[name >> 1])
        if name & 1:
            # The version of a dialect is a section.
            length, at = _varint(section, at + 1)
            at += length
    return names


def _attributes(section: bytes, offsets: bytes, builtin: int) -> list[bytes]:
    """Return the bytes of each attribute and type, with b"location" for locations."""
    attributes, at = _varint(offsets, 0)
    types, at = _varint(offsets, at)
    entries: list[bytes] = []
    start = done = 0
    while at < len(offsets) and done < attributes + types:
        dialect, at = _varint(offsets, at)
        count, at = _varint(offsets, at)
        for _ in range(min(count, len(offsets))):
            size, at = _varint(offsets, at)
            entry = section[start : start + (size >> 1)]
            start += size >> 1
            is_location = (
                dialect == builtin
                and done < attributes
                and bool(size & 1)
                and bool(entry)
                and _varint(entry, 0)[0] in _LOCATIONS
            )
            entries.append(b"location" if is_location else entry)
            done += 1
    if start != len(section):
        raise ValueError("entries of other lengths")
    return entries


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a variable-length integer at a position, and the position after it."""
    first = data[at]
    if first == 0:
        return int.from_bytes(data[at + 1 : at + 9], "little"), at + 9
    more = (first & -first).bit_length() - 1
    value = int.from_bytes(data[at : at + more + 1], "little")
    return value >> (more + 1), at + more + 1


# ---- attributes ---------------------------------------------------------------------------------


def clean_config(text: str) -> str:
    """Return a backend configuration with sorted keys and without paths."""
    if text.startswith('"{\\22'):  # JSON in a string of StableHLO's text
        inner = mlir_bytes(text).decode(errors="replace")
    else:
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
    """Return `{b=1,a=2}` with its entries sorted; only the outermost map is sorted."""
    parts: list[str] = []
    depth, start = 0, 1
    for separator in _SEPARATOR.finditer(text, 1, len(text) - 1):
        sign = separator[0]
        if sign in "([{<":
            depth += 1
        elif sign in ")]}>":
            depth -= 1
        elif sign == "," and depth <= 0:
            parts.append(text[start : separator.start()].strip())
            start = separator.end()
    parts.append(text[start:-1].strip())
    return "{" + ", ".join(sorted(parts)) + "}"
