"""The boundary of the public API, which filters hlofront's frames from tracebacks."""

import functools
import sys
import traceback
import types
from collections.abc import Callable
from typing import Any, TypeVar, cast

from hlofront.base import source
from hlofront.base.code_constants import with_constants
from hlofront.base.config import options
from hlofront.bridge.jax_shims import shims_installed

Function = TypeVar("Function", bound=Callable[..., object])

_filtering = options["jax_traceback_filtering"]
_REPLAYED = "While transforming the operation at"


def boundary(function: Function) -> Function:
    """Return a public function wrapped to filter tracebacks, as a decorator.

    It is for functions that call users' functions or fail on users' arguments. When an exception
    leaves the function, the frames of hlofront and jaxlib are removed from its traceback, and from
    those of the exceptions it was raised from. The option jax_traceback_filtering selects how:
    "quiet_remove_frames" removes them; "remove_frames" also attaches the whole traceback as the
    exception's cause; "tracebackhide" marks the frames for IPython and pytest to hide; "off"
    changes nothing; "auto" is "tracebackhide" in IPython and "quiet_remove_frames" elsewhere.

    Boundaries may nest. Each costs a Python call. A generator function returns before its body
    runs, so decorate the code that iterates over it instead.
    """

    if "<locals>" not in getattr(function, "__qualname__", "<locals>"):
        wrapper = with_constants(at_boundary, function=function)
    else:
        # The function may close over a user's function, which code objects, held by tracebacks,
        # must not hold.
        wrapper = _closing_over(function)
    return cast(Function, functools.update_wrapper(wrapper, function))


def at_boundary(*args: object, **kwargs: object) -> object:
    function: Any = "$function"
    try:
        return function(*args, **kwargs)
    except Exception as error:
        filter_traceback(error)
        raise  # Raises with the filtered traceback, without an entry for this frame.


def _closing_over(function: Callable[..., object]) -> Callable[..., object]:
    def at_boundary(*args: object, **kwargs: object) -> object:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            filter_traceback(error)
            raise

    return at_boundary


def named_as(wrapper: Any, fun: object) -> Any:
    """Copy the name, docstring and annotations of `fun` to a wrapper, and return the wrapper.

    Unlike `functools.update_wrapper`, this works for any callable, whose names may be missing or
    not strings, and does not copy the attribute that marks jitted functions.
    """
    wrapper.__dict__.update(getattr(fun, "__dict__", {}))
    wrapper.__dict__.pop(JITTED, None)
    wrapper.__name__ = source.callable_name(fun)
    qualified = getattr(fun, "__qualname__", None)
    wrapper.__qualname__ = qualified if isinstance(qualified, str) else wrapper.__name__
    for name in ("__module__", "__doc__"):
        if hasattr(fun, name):
            setattr(wrapper, name, getattr(fun, name))
    annotations = getattr(fun, "__annotations__", None)
    if isinstance(annotations, dict):
        wrapper.__annotations__ = annotations
    wrapper.__wrapped__ = fun
    return wrapper


# The attribute of a jitted function that holds its jit state.
JITTED = "_jitted"


class UnfilteredTraceback(Exception):
    """The cause of an exception under "remove_frames", which has the whole traceback."""


def note_of_removal() -> str:
    """Return the note for exceptions that lost frames, with the name that the program imports.

    Except for the name, the words are JAX's, because programs search for them.
    """
    name = "hlofront" if shims_installed.needed else "JAX"
    return (
        "--------------------\n"
        f"For simplicity, {name} has removed its internal frames from the traceback of the "
        "following exception. Set JAX_TRACEBACK_FILTERING=off to include these."
    )


def filter_traceback(error: BaseException) -> None:
    """Remove or hide hlofront's frames in a caught exception's tracebacks, in place.

    The option jax_traceback_filtering selects whether to remove or hide. Call it only in an
    `except` block.
    """
    mode = _filtering.value
    if mode == "auto":
        mode = "tracebackhide" if _in_ipython() else "quiet_remove_frames"
    if mode == "tracebackhide":
        for exception in _chain(error):
            _hide(exception.__traceback__)
    elif mode == "quiet_remove_frames":
        # Frames are removed at every boundary, not only at the outermost one: the user's code may
        # catch the exception in between.
        if _remove_frames(error):
            _add_note(error, note_of_removal())
    elif mode == "remove_frames" and _is_outermost():
        _remove_frames_keeping_all(error)


def _in_ipython() -> bool:
    ipython = sys.modules.get("IPython")
    return ipython is not None and ipython.get_ipython() is not None


# Assigns attributes even if an exception class defines its own __setattr__.
_assign = BaseException.__setattr__


def _chain(error: BaseException) -> list[BaseException]:
    """Return an exception, its causes and contexts, and the members of exception groups."""
    exceptions: dict[int, BaseException] = {}
    ahead: list[BaseException | None] = [error]
    while ahead:
        each = ahead.pop()
        if each is not None and id(each) not in exceptions:
            exceptions[id(each)] = each
            ahead += [each.__cause__, each.__context__]
            if isinstance(each, BaseExceptionGroup):
                ahead += cast(BaseExceptionGroup[BaseException], each).exceptions
    return list(exceptions.values())


def _is_ours(traceback: types.TracebackType) -> bool:
    return not source.is_user_file(traceback.tb_frame.f_code.co_filename)


def _filtered(traceback: types.TracebackType | None) -> types.TracebackType | None:
    user_entries: list[types.TracebackType] = []
    removed = False
    while traceback is not None:
        if _is_ours(traceback):
            removed = True
        else:
            user_entries.append(traceback)
        traceback = traceback.tb_next
    if not removed:
        return user_entries[0] if user_entries else None
    head = None
    for entry in reversed(user_entries):
        head = types.TracebackType(head, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return head


def _remove_frames(error: BaseException) -> bool:
    removed = False
    for exception in _chain(error):
        before = exception.__traceback__
        after = _filtered(before)
        removed |= after is not before
        context = exception.__context__
        if (
            context is not None
            and exception.__cause__ is None
            and _is_all_ours(context.__traceback__)
        ):
            # Raised and handled inside hlofront, so it does not concern the user.
            _assign(exception, "__suppress_context__", True)
        if after is not before:
            _assign(exception, "__traceback__", after)
    return removed


def _is_all_ours(traceback: types.TracebackType | None) -> bool:
    if traceback is None:
        return False
    while traceback is not None:
        if not _is_ours(traceback):
            return False
        traceback = traceback.tb_next
    return True


def _remove_frames_keeping_all(error: BaseException) -> None:
    whole = UnfilteredTraceback(
        f"{type(error).__name__}, with all of its traceback. Below, only the user's frames."
    )
    for name in ("__traceback__", "__cause__", "__context__", "__suppress_context__"):
        _assign(whole, name, getattr(error, name))
    _assign(error, "__traceback__", _filtered(error.__traceback__))
    _assign(error, "__cause__", whole)


def _is_outermost() -> bool:
    frame = source.frame_at(2)  # The boundary that called filter_traceback.
    while (frame := frame.f_back) is not None:
        if frame.f_globals is globals() and frame.f_code.co_name == at_boundary.__name__:
            return False
    return True


def _hide(traceback: types.TracebackType | None) -> None:
    while traceback is not None:
        if _is_ours(traceback):
            traceback.tb_frame.f_locals["__tracebackhide__"] = True
        traceback = traceback.tb_next


def _notes(error: BaseException) -> list[str]:
    notes: object = getattr(error, "__notes__", None)
    return cast(list[str], notes) if type(notes) is list else []


def _add_note(error: BaseException, note: str) -> None:
    notes = _notes(error)
    if note not in notes:
        _assign(error, "__notes__", [*notes, note])


class JaxStackTraceBeforeTransformation(Exception):
    """The cause of an exception of a transformed operation, with the traceback of its tracing.

    The exception's own traceback ends at the transformed operation, this one's at the user's line.
    """


class user_context:
    """A context manager for replaying an equation, so that errors name the line that traced it.

    For transformations, which evaluate a jaxpr's equations after the user's function has returned.
    """

    __slots__ = ("traceback",)

    def __init__(self, traceback: source.Traceback | None):
        self.traceback = traceback

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if not isinstance(error, Exception):
            return
        # Only the innermost operation adds a note; enclosing ones would repeat it.
        if any(str(note).startswith(_REPLAYED) for note in _notes(error)):
            return
        frame = source.user_frame(self.traceback)
        if frame is None or self.traceback is None:
            return
        # This does not use str(error), which may raise an error.
        text = "".join(traceback.format_exception_only(error))
        _add_note(error, f"{_REPLAYED} {source.describe_frame_with_line(frame)}")
        before = JaxStackTraceBeforeTransformation(
            f"{text}\nThe traceback above is that of the operation that "
            "the user's function calls. Transformed, it raised the following exception."
        )
        for name in ("__cause__", "__context__", "__suppress_context__"):
            _assign(before, name, getattr(error, name))
        _assign(before, "__traceback__", _filtered(self.traceback.as_python_traceback()))
        _assign(error, "__cause__", before)
