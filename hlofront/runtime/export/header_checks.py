"""Checks of the headers of files: what their JSON must be before it is read.

A header comes with a checksum, which anybody can compute. So each value is checked before it is
used: whatever is wrong in a header raises the one error that reading a file is documented with.
"""

import contextlib
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hlofront.core.aval import MemorySpace
from hlofront.core.sharding.mesh import AxisType
from hlofront.core.sharding.partition import UnreducedKind

# Raise a HeaderError unless a value, which is at `where` in a header, is valid.
Check = Callable[[Any, str], None]

_MAX_DEPTH = 400
_MAX_RANK = 64
_LONGEST_SIZE = 500
_MAX_CONSTRAINTS = 100
_INT64 = 2**63 - 1


class HeaderError(ValueError):
    """The error of a header that is not as hlofront writes it, with what is wrong."""


@contextlib.contextmanager
def reading_of(what: str, kind: type[ValueError] = ValueError) -> Iterator[None]:
    """Raise whatever reading a part of a file raises as its documented error.

    Args:
      what: what is read, such as "the header of f.hlob".
      kind: the class of the error. Its own errors pass as they are, unless it is ValueError.
    """
    try:
        yield
    except HeaderError as error:
        raise kind(f"{what} is not as hlofront writes it: {error}") from None
    except ValueError as error:
        if kind is not ValueError and isinstance(error, kind):
            raise
        raise kind(f"{what} cannot be read: {error}") from error
    # The header's values reach constructors of many classes, and functions of the user's own.
    except Exception as error:
        said = f"{type(error).__name__}: {error}"[:500]
        raise kind(f"{what} is not as hlofront writes it: {said}") from error


def json_of(data: bytes) -> dict[str, Any]:
    """Return the JSON object in these bytes.

    Raises:
      HeaderError: if there is none.
    """
    try:
        value = json.loads(data, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise HeaderError(f"it is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise HeaderError("it is no JSON object")
    return value


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is not a number")


# ---- checks --------------------------------------------------------------------------------------


def _short(value: object) -> str:
    text = repr(value) if not isinstance(value, list | dict) else f"a {type(value).__name__}"
    return text if len(text) < 80 else f"{text[:77]}..."


def anything(value: Any, where: str) -> None:
    """Accept any value: another function checks it."""


def text(value: Any, where: str) -> None:
    """Check a text that can be encoded."""
    if not isinstance(value, str):
        raise HeaderError(f"{where} is {_short(value)} instead of a text")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise HeaderError(f"{where} is a text that is no Unicode")


def line(value: Any, where: str) -> None:
    """Check a text that a terminal prints as it is: versions and types, not names of the user's."""
    text(value, where)
    if not value.isprintable():
        raise HeaderError(f"{where} has characters that cannot be printed: {_short(value)}")


def flag(value: Any, where: str) -> None:
    """Check a boolean."""
    if type(value) is not bool:
        raise HeaderError(f"{where} is {_short(value)} instead of true or false")


def count(value: Any, where: str) -> None:
    """Check an integer from 0."""
    if type(value) is not int or not 0 <= value <= _INT64:
        raise HeaderError(f"{where} is {_short(value)} instead of a nonnegative number")


def integer(value: Any, where: str) -> None:
    """Check an integer of 64 bits."""
    if type(value) is not int or not -_INT64 <= value <= _INT64:
        raise HeaderError(f"{where} is {_short(value)} instead of an integer")


def one_of(*choices: Any) -> Check:
    """Return the check of a value that is one of some, and of the same type."""

    def check(value: Any, where: str) -> None:
        if not any(type(value) is type(choice) and value == choice for choice in choices):
            raise HeaderError(f"{where} is {_short(value)} instead of one of {choices}")

    return check


def nullable(of: Check) -> Check:
    """Return the check of a value that may also be null."""

    def check(value: Any, where: str) -> None:
        if value is not None:
            of(value, where)

    return check


def either(*checks: Check) -> Check:
    """Return the check of a value that passes one of some checks."""

    def check(value: Any, where: str) -> None:
        reasons: list[HeaderError] = []
        for check in checks:
            try:
                return check(value, where)
            except HeaderError as error:
                reasons.append(error)
        raise reasons[-1]

    return check


def many(of: Check, length: int | None = None) -> Check:
    """Return the check of a list, of this length if one is given, whose values are of one kind."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, list) or length not in (None, len(value)):
            size = "" if length is None else f" of {length}"
            raise HeaderError(f"{where} is {_short(value)} instead of a list{size}")
        for index, each in enumerate(value):
            of(each, f"{where}[{index}]")

    return check


def row(*checks: Check) -> Check:
    """Return the check of a list with one value for each check."""

    def check(value: Any, where: str) -> None:
        many(anything, len(checks))(value, where)
        for index, (each, of) in enumerate(zip(value, checks, strict=True)):
            of(each, f"{where}[{index}]")

    return check


def mapping(of: Check) -> Check:
    """Return the check of an object whose values are of one kind."""

    def check(value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise HeaderError(f"{where} is {_short(value)} instead of an object")
        for key, each in value.items():
            text(key, f"a key of {where}")
            of(each, f"{where}[{key!r}]")

    return check


def record(required: Mapping[str, Check], optional: Mapping[str, Check] = {}) -> Check:
    """Return the check of an object with these keys; keys of later versions are allowed."""

    def check(value: Any, where: str) -> None:
        mapping(anything)(value, where)
        missing = [name for name in required if name not in value]
        if missing:
            raise HeaderError(f"{where} lacks {', '.join(missing)}")
        for name, of in (*required.items(), *optional.items()):
            if name in value:
                of(value[name], name if where == "it" else f"{where}[{name!r}]")

    return check


def ascending(value: Any, where: str) -> None:
    """Check a list of numbers from 0, each greater than the one before."""
    many(count)(value, where)
    if any(one >= other for one, other in itertools.pairwise(value)):
        raise HeaderError(f"{where} is not in ascending order")


# Untrusted files must not set compiler options that name files, which contain one of these words.
_OF_FILES = re.compile("dump|path|file|dir|_to$|_from|load|save|cache|plugin|command|extra")
_PLAIN = re.compile(r"[\w+,-]*")


def harmless_options(options: Sequence[tuple[str, object]]) -> None:
    """Raise a HeaderError if compiler options of a file that is not trusted may name files."""
    for name, value in options:
        is_plain = not isinstance(value, str) or _PLAIN.fullmatch(value)
        if _OF_FILES.search(name) or not is_plain:
            raise HeaderError(
                f"its compiler option {name} = {_short(value)} may write or read files: load it "
                "with trust=True if it is your own"
            )


# ---- structures, types and shardings, as records.py describes them -------------------------------

_EXPRESSION = re.compile(r"[\w+\-*^(), ]+")


def _size(value: Any, where: str) -> None:
    if not isinstance(value, str):
        return count(value, where)
    if len(value) > _LONGEST_SIZE or not _EXPRESSION.fullmatch(value):
        raise HeaderError(f"{where} is {_short(value)} instead of a size")


def constraints(value: Any, where: str) -> None:
    """Check the constraints of symbolic sizes."""
    many(text)(value, where)
    if len(value) > _MAX_CONSTRAINTS or any(
        len(constraint) > _LONGEST_SIZE for constraint in value
    ):
        raise HeaderError(f"{where} has constraints that are too many or too long")


def _shape(value: Any, where: str) -> None:
    many(_size)(value, where)
    if len(value) > _MAX_RANK:
        raise HeaderError(f"{where} has {len(value)} axes")


def structure(value: Any, where: str) -> None:
    """Check a structure: its kinds of nodes, and how deep it is."""
    waiting: list[tuple[Any, int]] = [(value, 0)]
    while waiting:
        node, depth = waiting.pop()
        if not isinstance(node, list) or not node or depth > _MAX_DEPTH:
            raise HeaderError(f"{where} has a node that is {_short(node)}, at depth {depth}")
        kind, *rest = node
        children: Sequence[Any] = ()
        if kind in ("tuple", "list"):
            row(anything, many(anything))(node, where)
            (children,) = rest
        elif kind == "dict":
            row(anything, many(text), many(anything))(node, where)
            keys, children = rest
            if len(keys) != len(children) or len(set(keys)) != len(keys):
                raise HeaderError(f"{where} has a dictionary with other keys than values")
        elif kind == "custom":
            row(anything, text, text, many(anything))(node, where)
            *_, children = rest
        else:
            one_of("leaf", "none")(kind, where)
            row(anything)(node, where)
        waiting += [(child, depth + 1) for child in children]


_NAMES = many(text)
_DTYPES = (
    "float0 bool int1 int2 int4 int8 int16 int32 int64 uint1 uint2 uint4 uint8 uint16 uint32 "
    "uint64 bfloat16 float16 float32 float64 complex64 complex128 float4_e2m1fn float6_e2m3fn "
    "float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz "
    "float8_e5m2 float8_e5m2fnuz float8_e8m0fnu"
).split()
_MEMORY = one_of(*MemorySpace.__members__)


def _unreduced(value: Any, where: str) -> None:
    if isinstance(value, dict) and len(value) == 1:
        mapping(_NAMES)(value, where)
        one_of(*UnreducedKind.__members__)(next(iter(value)), where)
    else:
        _NAMES(value, where)


_SHARDING: dict[str, Check] = {
    "axes": many(row(text, count, one_of(*AxisType.__members__))),
    "device": nullable(row(line, nullable(count), line)),
    "spec": many(nullable(_NAMES)),
    "reduced": _NAMES,
    "unreduced": _unreduced,
    "memory": nullable(line),
}
sharding = record(_SHARDING)
placed_sharding = record({**_SHARDING, "devices": many(count)})


def aval(value: Any, where: str) -> None:
    """Check the record of a type."""
    record(
        {"shape": _shape, "weak_type": flag, "memory": _MEMORY},
        {"keys": line, "dtype": one_of(*_DTYPES), "split": nullable(sharding)},
    )(value, where)
    if "keys" not in value and "dtype" not in value:
        raise HeaderError(f"{where} has no dtype")


# The fields that the error for a file of a newer version needs.
VERSIONED = record({"version": count, "hlofront": line, "name": text})
EXPORT = record(
    {
        "version": count,
        "hlofront": line,
        "name": text,
        "in_tree": structure,
        "out_tree": structure,
        "inputs": many(aval),
        "outputs": many(aval),
        "input_shardings": many(nullable(sharding)),
        "output_shardings": many(nullable(sharding)),
        "devices": count,
        "platforms": many(line),
        "ordered_effects": many(line),
        "unordered_effects": many(line),
        "disabled_checks": many(line),
        "calling_convention": count,
        "taken": ascending,
        "global_constants": flag,
    },
    {"constraints": constraints},
)

_LITERAL = either(count, line)
_ARGUMENTS = row(many(integer), many(line))
_OPTION = row(line, either(flag, integer, line, nullable(_LITERAL)))

VERSIONED_BUNDLE = record(
    {"version": count, "function": record({"hlofront": line, "python": line})}
)
BUNDLE = record(
    {
        "version": count,
        "name": text,
        "function": mapping(text),
        "static": _ARGUMENTS,
        "donated": _ARGUMENTS,
        "parameters": nullable(many(row(line, one_of(0, 1, 2, 3, 4)))),
        "compiler_options": many(_OPTION),
        "keep_unused": flag,
        "programs": many(
            record(
                {
                    "signature": text,
                    "context": text,
                    "static": many(row(either(integer, line), text)),
                    "donated": many(flag),
                    "executables": many(record({"target": line, "fields": mapping(text)})),
                }
            )
        ),
    }
)

VERSIONED_EXECUTABLE = record({"format": count, "jaxlib": line, "name": text})
_MODES = many(nullable(line))
EXECUTABLE = record(
    {
        "format": count,
        "jaxlib": line,
        "platform": line,
        "device_kind": line,
        "device_ids": many(count),
        "name": text,
        "inputs": many(aval),
        "outputs": many(aval),
        "constants": many(aval),
        "donated": many(flag),
        "kept": ascending,
        "has_barriers": flag,
        "committed": flag,
        "layouts": nullable(row(_MODES, _MODES)),
        "shardings": nullable(row(many(placed_sharding), many(placed_sharding))),
    }
)
