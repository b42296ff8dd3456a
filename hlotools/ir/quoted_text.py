"""The content of quoted strings, as HLO and MLIR write them."""

import re


def unquoted(text: str) -> str:
    """Return the content of a quoted HLO string without escapes, or other text unchanged."""
    if len(text) < 2 or text[0] != '"':
        return text
    inner = text[1:-1]
    return _ESCAPE.sub(_escaped, inner) if "\\" in inner else inner


# Non-ASCII bytes are written as three octal digits each.
_ESCAPE = re.compile(r"((?:\\[0-3][0-7]{2})+)|\\(.)", re.DOTALL)


def _escaped(escape: re.Match[str]) -> str:
    if escape[1]:
        return bytes(int(part, 8) for part in escape[1].split("\\")[1:]).decode(errors="replace")
    return {"n": "\n", "t": "\t", "r": "\r"}.get(escape[2], escape[2])


# Bytes that are not printable are written as two hexadecimal digits each.
_MLIR_ESCAPE = re.compile(rb"\\(?:([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_MLIR_LETTERS = {b"n": b"\n", b"t": b"\t"}


def mlir_bytes(quoted: str) -> bytes:
    """Return the content of a quoted MLIR string, which may be any bytes."""
    return _MLIR_ESCAPE.sub(_mlir_byte, quoted[1:-1].encode("utf-8", "replace"))


def _mlir_byte(escape: re.Match[bytes]) -> bytes:
    if escape[1]:
        return bytes([int(escape[1], 16)])
    return _MLIR_LETTERS.get(escape[2], escape[2])
