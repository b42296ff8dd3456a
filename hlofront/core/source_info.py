"""Source info of operations for interpreters in other packages, under JAX's names."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from hlofront.base import boundary, source
from hlofront.bridge.fast_parts import get_traceback
from hlofront.core import names
from hlofront.core.names import (
    UNKNOWN_SOURCE,
    NameStack,
    PrintedNameStack,
    SourceInfo,
    Transformation,
)


def current_name_stack() -> PrintedNameStack:
    """Return the current named scopes and transformations, which print as a path."""
    return PrintedNameStack(names.current_name_stack())


def new_name_stack(name: str = "") -> PrintedNameStack:
    """Return a name stack of one scope, or an empty one."""
    return PrintedNameStack((name,) if name else ())


def current() -> SourceInfo:
    """Return the `source_info` of an equation that the caller would make now."""
    return SourceInfo(get_traceback(), names.current_name_stack())


def new_source_info() -> SourceInfo:
    """Return a source info without traceback and scopes."""
    return UNKNOWN_SOURCE


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """Return the user's lines that an equation comes from, as in "model.py:12:4 (loss)", or "".

    Args:
      source_info: the source info of the equation.
      num_frames: the number of frames of user code to include, innermost first.
    """
    if not source.user_frames(source_info.traceback, num_frames):
        return ""
    return source.summarize(source_info.traceback, num_frames)


@contextmanager
def set_name_stack(name_stack: NameStack) -> Generator[None, None, None]:
    """Replace the name stack of operations traced inside the block."""
    with names.scopes_replaced(tuple(name_stack)):
        yield


@contextmanager
def reset_name_stack() -> Generator[None, None, None]:
    """Clear the name stack of operations traced inside the block."""
    with names.scopes_replaced(()):
        yield


@contextmanager
def extend_name_stack(name: str) -> Generator[PrintedNameStack, None, None]:
    """Add a named scope to the name stack inside the block, and yield the new name stack."""
    with names.scopes_replaced((*names.current_name_stack(), name)):
        yield current_name_stack()


@contextmanager
def transform_name_stack(name: str) -> Generator[PrintedNameStack, None, None]:
    """Add a transformation to the name stack inside the block, and yield the new name stack.

    It prints around the scope that comes after it.
    """
    with names.scopes_replaced((*names.current_name_stack(), Transformation(name))):
        yield current_name_stack()


@contextmanager
def user_context(
    traceback: Any, *, name_stack: NameStack | None = None
) -> Generator[None, None, None]:
    """Set the traceback of operations and errors inside the block.

    Args:
      traceback: the traceback of the call that made an equation; None if it is not known.
      name_stack: the name stack of the equation; None leaves the current one unchanged.
    """
    stack = names.current_name_stack() if name_stack is None else tuple(name_stack)
    with names.scopes_replaced(()), names.coming_from(stack, traceback):
        with boundary.user_context(traceback):
            yield
