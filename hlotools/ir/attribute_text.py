"""The text of MLIR's attributes and types: brackets, lists between commas, dictionaries."""

import re

_STRING = r'"(?:[^"\\]++|\\.)*+"'
_BRACKET = re.compile(_STRING + r"|->|[\[\](){}<>]|,| : |=")
# Attributes with names of results or numbers of channels, which are arbitrary.
_LEFT_OUT = frozenset({"jax.result_info", "channel_handle.handle"})


def closing(text: str, at: int) -> int:
    """Return the position of the bracket that closes the one at `at`."""
    depth = 0
    for bracket in _BRACKET.finditer(text, at):
        token = bracket[0]
        if token in ("(", "[", "{", "<"):
            depth += 1
        elif token in (")", "]", "}", ">"):
            depth -= 1
            if depth == 0:
                return bracket.start()
    return len(text)


def parts_of(text: str) -> list[str]:
    """Return the parts of a text between the commas outside brackets."""
    parts: list[str] = []
    start = depth = 0
    for token in _BRACKET.finditer(text):
        if token[0] in ("(", "[", "{", "<"):
            depth += 1
        elif token[0] in (")", "]", "}", ">"):
            depth -= 1
        elif token[0] == "," and depth == 0:
            parts.append(text[start : token.start()])
            start = token.end()
    parts.append(text[start:])
    return parts


def split_type(text: str) -> tuple[str, str]:
    """Return an operation's text without its types, and the types after its last colon."""
    head = text[:200]
    if "stablehlo.constant" in head:
        body, _, types = text.rpartition(" : ")
        return body, types
    depth, last = 0, -1
    for token in _BRACKET.finditer(text):
        if token[0] in ("(", "[", "{", "<"):
            depth += 1
        elif token[0] in (")", "]", "}", ">"):
            depth -= 1
        elif token[0] == " : " and depth == 0:
            last = token.start()
    return (text, "") if last < 0 else (text[:last], text[last + 3 :])


def dictionary(text: str) -> dict[str, str]:
    """Return the attributes between braces, with dialect attributes split into their parts."""
    attributes: dict[str, str] = {}
    for part in parts_of(text):
        key, equals, value = part.strip().partition(" = ")
        if not key:
            continue
        value = value.strip() if equals else "true"
        attributes.update(opened_attribute(key, value))
    return {key: value for key, value in attributes.items() if key not in _LEFT_OUT}


def opened_attribute(key: str, value: str) -> dict[str, str]:
    """Return an attribute as a dictionary of the parts of a map or dialect attribute."""
    if " = " in value and value.startswith("#") and value.endswith(">"):
        inner = dictionary(value[value.find("<") + 1 : -1])
    elif " = " in value and value.startswith("{") and value.endswith("}"):
        inner = dictionary(value[1:-1])
    else:
        return {key: _plain(value)}
    return {f"{key}.{part}": text for part, text in inner.items()}


_NUMBER = re.compile(r"(-?[\d.e+\-]+) : \w+")
_ARRAY = re.compile(r"array<\w+(?:: (.*))?>")
_DENSE = re.compile(r"dense<(.*)> : tensor<[^<>]*>")


def _plain(value: str) -> str:
    """Return an attribute's value without its type."""
    for pattern, form in ((_NUMBER, "{}"), (_ARRAY, "[{}]"), (_DENSE, "{}")):
        written = pattern.fullmatch(value)
        if written is not None:
            return form.format(written[1] or "")
    return value
