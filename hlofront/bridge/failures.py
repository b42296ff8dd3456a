"""Failures of host functions while a program runs, attached to jaxlib's errors as their causes.

A host function that a program calls may fail in any thread, long before the error is raised, which
happens when a result is awaited, read or used by another program. jaxlib passes on only text: the
traceback and the exception, as Python prints them. So the file name of one frame of that traceback
contains a number, by which jaxlib's errors look up the exception.
"""

import itertools
import re
from collections.abc import Callable
from typing import Any, NoReturn

from hlofront.bridge import state

JaxRuntimeError = state.JaxRuntimeError

# number -> (exception, its description). The oldest are dropped, because they hold their frames.
_failures: dict[int, tuple[BaseException, str]] = {}
_MAX_KEPT = 64
_numbers = itertools.count()
_REPORT = re.compile(
    r"(?:Traceback \(most recent call last\):.*?)?File \"<host failure (\d+)>\"", re.DOTALL
)


class HostFailure(Exception):
    """The stand-in exception that a host function raises to jaxlib for a recorded exception."""


# Matches jaxlib's errors about broken connections between processes.
_BROKEN_CONNECTION = re.compile(r"\bGloo\b|\bNCCL\b|\bRCCL\b")
# A function called with such an error and its text during construction, which returns the text and
# may change the error's class. A process of a group sets it, to name the process that failed.
on_broken_connection: Callable[[RuntimeError, str], str] | None = None


def raise_recorded(error: BaseException, origin: str, text: str) -> NoReturn:
    """Record a host function's exception, and raise a stand-in by which jaxlib's error finds it.

    The jaxlib error then shows `text` and has `error` as its cause. From its second call on, a
    jitted function instead raises a ValueError with jaxlib's printed text; so the stand-in has the
    class and message of `error`, and `origin`, which says where it was raised.
    """
    number = next(_numbers)
    _failures[number] = (error, text)
    while len(_failures) > _MAX_KEPT:
        _failures.pop(next(iter(_failures)), None)
    stand_in = type(type(error).__name__, (HostFailure,), {})(f"{_message(error)}\n{origin}")
    # jaxlib prints the innermost frame and its callers.
    exec(compile("raise failure", f"<host failure {number}>", "exec"), {"failure": stand_in})
    raise AssertionError("the line above has raised")


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        # Python's own tracebacks print these words.
        return "<exception str() failed>"


# Since 0.10 the constructor also takes a code, and derives the text from both arguments.
_construct = JaxRuntimeError.__init__


def _explained(self: RuntimeError, *args: Any, **kwargs: Any) -> None:
    """Construct jaxlib's error with the recorded exception as its cause."""
    text = args[0] if args and isinstance(args[0], str) else ""
    if on_broken_connection is not None and _BROKEN_CONNECTION.search(text):
        text = on_broken_connection(self, text)
        args = (text, *args[1:])
        self.args = args[:1]
    report = _REPORT.search(text)
    failure = _failures.get(int(report[1])) if report else None
    if report and failure:
        error, description = failure
        args = (args[0][: report.start()] + description, *args[1:])
        self.args = args[:1]
        self.__cause__ = error
    _construct(self, *args, **kwargs)


JaxRuntimeError.__init__ = _explained
