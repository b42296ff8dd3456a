"""The functions that the command `diff` compares, compiled as its options request."""

import argparse
import contextlib
import pathlib

from hlofront.cli.loading import load_call
from hlofront.cli.progress import announce
from hlofront.inspect.comparison.columns import (
    Artifact,
    Column,
    at_revision,
    side_of_column,
    under_jaxlib,
)
from hlofront.inspect.difference import side_of_traced
from hlofront.inspect.jitted import jitted
from hlofront.inspect.target import UsageError
from hlofront.pjrt.targets import target as find_target
from hlotools.matching.difference import Side


def function_side(text: str, setting: str, name: str, options: argparse.Namespace) -> Side:
    """Return FILE:FUNCTION's program at the stage and for the arguments of `options`.

    Args:
      text: FILE:FUNCTION.
      setting: the option that determines how it is compiled, "" for none.
      name: the option's value.
      options: the options of the command.

    Raises:
      UsageError: if `text` is neither a file nor FILE:FUNCTION, or it cannot be compiled there.
    """
    if ":" not in text and not text.endswith(".py"):
        raise UsageError(f"there is no file {text}, and it is no FILE:FUNCTION")
    if setting == "--at":
        path, _, function_name = text.rpartition(":")
        target = options.target[0] if options.target else None
        column = at_revision(
            pathlib.Path(path), function_name, options.args, name, announce, target
        )
        return _compiled_side(text, column)
    function, args = load_call(text, options.args)
    staged = jitted(function)
    if setting == "--jaxlib":
        artifact = Artifact(staged.lower(*args))
        return _compiled_side(text, under_jaxlib(artifact, name, run=False, tell=announce))
    label = f"{text}, {name}" if name else text
    with find_target(name) if name else contextlib.nullcontext():
        traced = staged.trace(*args)
        if options.stage == "hlo":
            announce(f"compiling {text}")
        return side_of_traced(traced, options.stage, label)


def _compiled_side(text: str, column: Column) -> Side:
    if column.error is not None:
        raise UsageError(f"{text}, {column.label}: {column.error}")
    return side_of_column(column, f"{text}, {column.label}")
