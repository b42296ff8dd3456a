"""Failures of host functions while a program runs, each brought together with jaxlib's error.

A host function that a program calls may fail in any thread, long before the error is seen: when a
result is waited for or read, or the next program uses it. jaxlib carries nothing but text from one
place to the other: the traceback and the exception, as Python prints them. So one frame of that
traceback has a number for its file, and jaxlib's errors look the exception up by it.
"""

import itertools
import re
from typing import Any

from hlofront.bridge import state

JaxRuntimeError = state.JaxRuntimeError

# number -> (the exception, what to say of it). The oldest go, as they hold on to their frames.
_failures: dict[int, tuple[BaseException, str]] = {}
_MOST_KEPT = 64
_numbers = itertools.count()
_REPORT = re.compile(
    r"(?:Traceback \(most recent call last\):.*?)?File \"<host failure (\d+)>\"", re.DOTALL
)


class HostFailure(Exception):
    """The exception that a host function raises to jaxlib in place of one that is recorded here."""


def raise_recorded(error: BaseException, origin: str, text: str) -> None:
    """Raise to jaxlib, whose error is then to say `text`, and to have `error` as its cause.

    A jitted function that is called for a second time never makes jaxlib's error class: its C++
    raises a ValueError of what jaxlib printed. So that is the class and message of `error`, and
    `origin`, which says what raised it.
    """
    number = next(_numbers)
    _failures[number] = (error, text)
    while len(_failures) > _MOST_KEPT:
        _failures.pop(next(iter(_failures)), None)
    stand_in = type(type(error).__name__, (HostFailure,), {})(f"{_message(error)}\n{origin}")
    # jaxlib prints the innermost frame, and those that it was called from.
    exec(compile("raise failure", f"<host failure {number}>", "exec"), {"failure": stand_in})


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        # Python's own tracebacks have these words.
        return "<exception str() failed>"


# The constructor takes a code as well since 0.10, and works the text out from both.
_construct = JaxRuntimeError.__init__


def _explained(self: RuntimeError, *args: Any, **kwargs: Any) -> None:
    """Construct jaxlib's error, which gets the recorded failure that it reports as its cause."""
    report = _REPORT.search(args[0]) if args and isinstance(args[0], str) else None
    failure = _failures.get(int(report[1])) if report else None
    if report and failure:
        error, text = failure
        args = (args[0][: report.start()] + text, *args[1:])
        self.args = args[:1]
        self.__cause__ = error
    _construct(self, *args, **kwargs)


JaxRuntimeError.__init__ = _explained
