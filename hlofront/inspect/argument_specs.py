"""Argument specs as users write them: `f32[32,64], i32[32]`, `{w: f32[2,3], b: [f32[3]]}`."""

import ast
import re

from hlofront.base.dtypes import short_name
from hlofront.base.elements import all_dtypes
from hlofront.transforms.flatten import ShapeDtypeStruct

_dtypes = {name: d for d in all_dtypes for name in (short_name(d), d.name)}
_ARRAY = re.compile(r"([A-Za-z]\w*)\[([\d,\s]*)\]")
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def parse_specs(text: str) -> list[object]:
    """Parse comma-separated argument specs into arguments of a function.

    `f32[32,64]` becomes an array, `f32[]` or `i32` a scalar; numbers, strings, booleans and None
    become Python values. Dicts, lists and tuples hold such arguments, as in
    `{w: f32[2,3], b: [f32[3], 0.5]}, (f32[8], i32[])`; keys of dicts need no quotes.

    Raises:
      ValueError: if an argument is none of these; the message names it.
    """
    return [_parse(part) for part in _split(text, ",")]


def _split(text: str, separator: str) -> list[str]:
    """Split a text at the separators that are outside of brackets and quotes."""
    parts: list[str] = []
    depth, quote, start = 0, "", 0
    for i, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in _CLOSING:
            depth += 1
        elif character in _CLOSING.values():
            depth -= 1
        elif character == separator and depth == 0:
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
    elif part[:1] in _CLOSING and part[-1:] == _CLOSING[part[0]]:
        return _parse_tree(part)
    elif array is None:
        try:
            return ast.literal_eval(part)
        except (ValueError, SyntaxError):
            pass
    raise ValueError(
        f"cannot read the argument {part!r}: expected a dtype with a shape, such as f32[32,64], "
        "bf16[8] or i32[]; a Python number, string, boolean or None; or a dict, list or tuple of "
        "these, such as {w: f32[2,3], b: [f32[3]]}. For arguments of other types define "
        "example_args in the file"
    )


def _parse_tree(part: str) -> object:
    parts = _split(part[1:-1], ",")
    # As in Python, a comma may end a list, and makes a tuple of one element.
    ends_in_comma = parts[-1:] == [""]
    parts = parts[:-1] if ends_in_comma else parts
    if part[0] == "{":
        return dict(map(_parse_item, parts))
    elements = [_parse(element) for element in parts]
    if part[0] == "[":
        return elements
    return elements[0] if len(elements) == 1 and not ends_in_comma else tuple(elements)


def _parse_item(item: str) -> tuple[object, object]:
    key, *rest = _split(item, ":")
    if len(rest) != 1:
        raise ValueError(f"cannot read {item!r} in a dict: expected a key, a colon and a value")
    return key if key.isidentifier() else _parse(key), _parse(rest[0])
