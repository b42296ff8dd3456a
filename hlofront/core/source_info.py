"""Where operations come from, for interpreters of other packages: read, set, and told in errors."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from hlofront.base import boundary, source
from hlofront.bridge.fast_parts import get_traceback
from hlofront.core import names
from hlofront.core.names import NameStack, PrintedNameStack, SourceInfo, Transformation


def current_name_stack() -> PrintedNameStack:
    """Return the named scopes and transformations that are open, which print as a path."""
    return PrintedNameStack(names.current_name_stack())


def new_name_stack(name: str = "") -> PrintedNameStack:
    """Return a stack of one scope, or an empty one."""
    return PrintedNameStack((name,) if name else ())


def current() -> SourceInfo:
    """Return what an equation made by the caller would have as its `source_info`."""
    return SourceInfo(get_traceback(), names.current_name_stack())


def new_source_info() -> SourceInfo:
    """Return the source info of what comes from nowhere that is known."""
    return SourceInfo(None, ())


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """Return the user's lines that an equation comes from, as in "model.py:12:4 (loss)".

    Args:
      source_info: of the equation.
      num_frames: how many frames of the user's code to tell, the innermost first.
    """
    return source.summarize(source_info.traceback, num_frames)


@contextmanager
def set_name_stack(name_stack: NameStack) -> Generator[None, None, None]:
    """Have what is traced inside come from these scopes alone."""
    with names.scopes_replaced(tuple(name_stack)):
        yield


@contextmanager
def reset_name_stack() -> Generator[None, None, None]:
    """Have what is traced inside come from no scope."""
    with names.scopes_replaced(()):
        yield


@contextmanager
def extend_name_stack(name: str) -> Generator[PrintedNameStack, None, None]:
    """Open a named scope, and yield the stack with it."""
    with names.scopes_replaced((*names.current_name_stack(), name)):
        yield current_name_stack()


@contextmanager
def transform_name_stack(name: str) -> Generator[PrintedNameStack, None, None]:
    """Open a transformation, shown around the scope that comes next, and yield the stack."""
    with names.scopes_replaced((*names.current_name_stack(), Transformation(name))):
        yield current_name_stack()


@contextmanager
def user_context(
    traceback: Any, *, name_stack: NameStack | None = None
) -> Generator[None, None, None]:
    """Have what is run inside come from a traceback, in errors and in what is traced.

    Args:
      traceback: of the call that an equation was made by; None where it is not known.
      name_stack: the scopes of the equation; None leaves those that are open.
    """
    stack = names.current_name_stack() if name_stack is None else tuple(name_stack)
    with names.scopes_replaced(()), names.coming_from(stack, traceback):
        with boundary.user_context(traceback):
            yield
