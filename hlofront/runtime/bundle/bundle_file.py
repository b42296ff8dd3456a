"""The file format of bundles: programs of one function, traced, lowered and compiled.

The container is that of `pjrt/cache_file.py`: a magic number, a version, a table of fields, their
values, and a SHA-256 over all of it. Its fields are

    header          a JSON object, described below
    export N        program N, an exported program of `runtime/export/format.py`
    executable N M  executable M of program N, as `serialize` of `experimental.serialize_executable`
                    returns it

The header has "kind": "bundle", "version", the function's "name", and

    function        what the programs were traced from, field by field: a digest of the source, the
                    options of jit, and the versions of hlofront, Python and NumPy
    static          [argnums, argnames] of the static arguments
    donated         [argnums, argnames] of the donated arguments
    parameters      [[name, kind]] of the function, or null
    compiler_options, keep_unused
                    of jit
    programs        per program: "signature", a text; "context", the options that it was traced
                    under; "static", [[position or name, Python literal]]; "donated", a boolean per
                    flat argument; and "executables"
    executables     per executable: its "target", and "fields", all that must be unchanged for
                    machine code to run: versions, device, processor, compiler options

Reading runs no code: a header is JSON, static arguments are literals, and machine code is loaded
when a program is called, if the reader trusts the file. Versions that only add keys keep their
number.
"""

import ast
import dataclasses
import json
from collections.abc import Mapping, Sequence

from hlofront.pjrt import cache_file
from hlofront.runtime.export import header_checks
from hlofront.runtime.export.header_checks import HeaderError, reading_of
from hlofront.runtime.export.records import JSONObject

VERSION = 1


class BundleError(ValueError):
    """The error for a file that is not a bundle, or is damaged, or has a newer version."""


@dataclasses.dataclass(frozen=True, slots=True)
class ExecutableEntry:
    """An executable in a bundle.

    Attributes:
      target: the target that it was compiled for, by name.
      fields: what must be unchanged for the executable to run, by name.
      size: the number of bytes.
      field: the name of the field in the file.
    """

    target: str
    fields: Mapping[str, str]
    size: int
    field: str


@dataclasses.dataclass(frozen=True, slots=True)
class ProgramEntry:
    """A program in a bundle.

    Attributes:
      signature: the types of its arguments, as text.
      context: the options that it was traced under.
      static: the static arguments, each with its position or name.
      donated: per flat argument, whether its buffer is donated; empty if none is.
      executables: its executables.
      size: the number of bytes of its exported program.
      field: the name of the field in the file.
    """

    signature: str
    context: str
    static: Sequence[tuple[int | str, object]]
    donated: tuple[bool, ...]
    executables: Sequence[ExecutableEntry]
    size: int
    field: str


@dataclasses.dataclass(frozen=True, slots=True)
class BundleFile:
    """The contents of a bundle, whose programs are read on demand.

    Attributes:
      path: the file's path, for messages.
      header: the header.
      programs: its programs.
    """

    path: str
    header: JSONObject
    programs: Sequence[ProgramEntry]
    _data: bytes
    _spans: Mapping[str, tuple[int, int]]

    def value(self, field: str) -> bytes:
        """Return the value of a field."""
        start, stop = self._spans[field]
        return self._data[start:stop]


def packed(header: JSONObject, values: Mapping[str, bytes]) -> bytes:
    """Return a bundle as bytes.

    Args:
      header: the header, without "kind" and "version".
      values: the exported programs and the executables, by the names of their fields.
    """
    whole = {"kind": "bundle", "version": VERSION, **header}
    return cache_file.pack({"header": json.dumps(whole).encode(), **values})


def parsed(data: bytes, path: str) -> BundleFile:
    """Parse a bundle.

    Raises:
      BundleError: if the bytes are damaged, not a bundle, or of a newer version, with the reason.
    """
    try:
        spans = cache_file.verified(data)
    except cache_file.DamagedEntry as error:
        reason = error.reason.replace("an entry of this cache", "a bundle")
        raise BundleError(f"the bundle {path} {reason}") from None
    with reading_of(f"the header of the bundle {path}", BundleError):
        if "header" not in spans:
            raise HeaderError("the file has no field header")
        start, stop = spans["header"]
        header = header_checks.json_of(data[start:stop])
        if header.get("kind") != "bundle":
            raise BundleError(
                f"{path} is not a bundle: its bytes are an exported program, or an executable. "
                "Read these with hlofront.export.deserialize or deserialize_and_load"
            )
        header_checks.VERSIONED_BUNDLE(header, "it")
        if header["version"] > VERSION:
            raise BundleError(
                f"the bundle {path} was written by hlofront {header['function']['hlofront']} in "
                f"version {header['version']} of the format, and this one reads up to {VERSION}: "
                "take a newer hlofront"
            )
        header_checks.BUNDLE(header, "it")
        programs = [_program(n, record, spans) for n, record in enumerate(header["programs"])]
        if not programs:
            raise HeaderError("it has no programs")
        return BundleFile(path, header, programs, data, spans)


def read(path: str) -> BundleFile:
    """Read the bundle in a file.

    Raises:
      BundleError: if the file is damaged, not a bundle, or of a newer version, with the reason.
      OSError: if it cannot be read.
    """
    with open(path, "rb") as file:
        return parsed(file.read(), path)


def export_field(number: int) -> str:
    return f"export {number}"


def executable_field(number: int, executable: int) -> str:
    return f"executable {number} {executable}"


def _program(number: int, record: JSONObject, spans: Mapping[str, tuple[int, int]]) -> ProgramEntry:
    field = export_field(number)
    executables: list[ExecutableEntry] = []
    for index, each in enumerate(record["executables"]):
        name = executable_field(number, index)
        fields: dict[str, str] = each["fields"]
        executables.append(ExecutableEntry(each["target"], fields, _size(spans, name), name))
    return ProgramEntry(
        record["signature"],
        record["context"],
        [(where, _value_of(text)) for where, text in record["static"]],
        tuple(record["donated"]),
        executables,
        _size(spans, field),
        field,
    )


def _value_of(text: str) -> object:
    """Return the value of a Python literal, which runs no code.

    Raises:
      HeaderError: if the text is not a literal, or its value has no hash, as static arguments do.
        Sets and dictionaries have none, and take hours if the hashes of their members are equal.
    """
    try:
        tree = ast.parse(text.lstrip(" \t"), mode="eval")
        if any(isinstance(node, ast.Set | ast.Dict) for node in ast.walk(tree)):
            raise HeaderError("it has a static argument that is a set or a dictionary")
        return ast.literal_eval(tree)
    # Python's parser raises them for literals that are nested too deeply.
    except (SyntaxError, TypeError, MemoryError, RecursionError, SystemError) as error:
        raise HeaderError(f"it has a static argument that is not a literal: {error}") from None


def _size(spans: Mapping[str, tuple[int, int]], field: str) -> int:
    if field not in spans:
        raise HeaderError(f"the file has no field {field}")
    start, stop = spans[field]
    return stop - start


def literal(value: object) -> str | None:
    """Return a static argument as a Python literal; None if no literal is equal to it."""
    text = repr(value)
    try:
        read_back = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return text if _same(read_back, value) else None


def _same(one: object, other: object) -> bool:
    """Return whether two values are equal and of the same types, to any depth."""
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)
