"""Argument specs as users write them: `f32[32,64], i32[32]`."""

import ast
import re

from hlofront.base.dtypes import short_name
from hlofront.base.elements import all_dtypes
from hlofront.transforms.flatten import ShapeDtypeStruct

_dtypes = {name: d for d in all_dtypes for name in (short_name(d), d.name)}
_ARRAY = re.compile(r"([A-Za-z]\w*)\[([\d,\s]*)\]")


def parse_specs(text: str) -> list[object]:
    """Parse comma-separated argument specs into arguments of a function.

    `f32[32,64]` becomes an array, `f32[]` or `i32` a scalar; numbers, strings, booleans and None
    become Python values.

    Raises:
      ValueError: if an argument is none of these; the message names it.
    """
    return [_parse(part) for part in _split(text)]


def _split(text: str) -> list[str]:
    """Split a text at the commas that are outside of brackets and quotes."""
    parts: list[str] = []
    depth, quote, start = 0, "", 0
    for i, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "[({":
            depth += 1
        elif character in "])}":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    parts = [part.strip() for part in parts]
    return [] if parts == [""] else parts


def _parse(part: str) -> object:
    array = _ARRAY.fullmatch(part)
    name, sizes = (array[1], array[2]) if array else (part, "")
    dtype = _dtypes.get(name)
    if dtype is not None:
        shape = [size.strip() for size in sizes.split(",")] if sizes.strip() else []
        if all(size.isdigit() for size in shape):
            return ShapeDtypeStruct(tuple(map(int, shape)), dtype)
    if array is None:
        try:
            return ast.literal_eval(part)
        except (ValueError, SyntaxError):
            pass
    raise ValueError(
        f"cannot read the argument {part!r}: expected a dtype with a shape, such as f32[32,64], "
        "bf16[8] or i32[], or a Python number, string, boolean or None"
    )
