"""The command-line argument `FILE:FUNCTION`: loading of the function and of its arguments."""

import ast
import importlib.util
import inspect
import pathlib
import re
import sys
from collections.abc import Callable
from types import ModuleType

from hlofront.base.dtypes import short_name
from hlofront.base.elements import all_dtypes
from hlofront.transforms.flatten import ShapeDtypeStruct
from hlotools.terminal_text import counted


class UsageError(Exception):
    """The error of an invalid command line; its message says how to correct it."""


def load_function(target: str) -> tuple[Callable[..., object], ModuleType]:
    """Return the function that `path/to/file.py:name` names, and its module.

    Raises:
      UsageError: if there is no such file or function.
    """
    path_text, colon, name = target.rpartition(":")
    if not colon and target.endswith(".py") and pathlib.Path(target).is_file():
        raise UsageError(f"expected FILE:FUNCTION: name a function of {target}, as {target}:step")
    if not colon or not name:
        raise UsageError(f"expected FILE:FUNCTION, such as examples/kmeans.py:step, got {target!r}")
    path = pathlib.Path(path_text)
    if not path.is_file():
        folder = ", but a folder of this name" if path.is_dir() else ""
        raise UsageError(f"there is no file {path_text}{folder}")
    module = _load(path.resolve())
    value: object = module
    for part in name.split("."):
        if not hasattr(value, part):
            raise UsageError(f"{path_text} has no function {name!r}. {_functions_of(module)}")
        value = getattr(value, part)
    if not callable(value):
        raise UsageError(f"{name} in {path_text} is {value!r}, which cannot be called")
    return value, module


def _functions_of(module: ModuleType) -> str:
    names = [
        name
        for name, value in vars(module).items()
        if callable(value) and not name.startswith("_") and not isinstance(value, type)
    ]
    return f"It has: {', '.join(names)}." if names else "It has none."


def _load(path: pathlib.Path) -> ModuleType:
    name = f"_shown_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    # The file may import its neighbors, as when run as a script.
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


def other_jaxlibs_are_for_cpus(target: str) -> str:
    """Return the error that other jaxlibs cannot compile for a target, with what to do instead."""
    return (
        f"other versions of jaxlib compile for CPUs only, and {target} has a compiler of its own, "
        "in another package. Write the program to a file in an environment with each version, "
        f"`python -m hlofront show FILE:FUNCTION --target {target} --stage hlo > VERSION.hlo`, and "
        "compare the files with `python -m hlofront diff`"
    )


def arguments_for(
    function: Callable[..., object], module: ModuleType, target: str, specs: str | None
) -> tuple[object, ...]:
    """Return the arguments from `--args`, or from `example_args` of the function's file.

    `example_args` is a tuple or list of the arguments, a function that returns one, or a single
    argument.

    Raises:
      UsageError: if there are neither, the specs cannot be parsed, or the function takes another
        number of arguments.
    """
    if specs is None:
        args, origin = _example_args(module, target), "example_args"
    else:
        try:
            args, origin = tuple(parse_specs(specs)), "--args"
        except ValueError as error:
            raise UsageError(f"--args: {error}") from error
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # Some callables implemented in C have no signature.
        return args
    try:
        signature.bind(*args)
    except TypeError as error:
        count = counted(len(args), "argument")
        names = ", ".join(map(str, signature.parameters.values()))
        raise UsageError(
            f"{target} takes ({names}), and {origin} has {count}: {error}. Give all of them in "
            "--args, or in example_args of the file"
        ) from None
    return args


def _example_args(module: ModuleType, target: str) -> tuple[object, ...]:
    make = getattr(module, "example_args", None)
    if make is None:
        raise UsageError(
            f"the shapes of {target}'s arguments are not known: give --args 'f32[32,64], i32[32]', "
            "or '{w: f32[64,10], b: f32[10]}, f32[32,64]' where one is a dict; or define "
            "example_args in the file: a tuple of the arguments, or a function that returns it"
        )
    args = make() if callable(make) else make
    return tuple(args) if isinstance(args, tuple | list) else (args,)


# ---- types of arguments --------------------------------------------------------------------------


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
