"""The edge of the public API: exceptions leave it with tracebacks of the user's frames alone."""

import functools
import sys
import traceback
import types
from collections.abc import Callable
from typing import Any, TypeVar, cast

from hlofront.base import source
from hlofront.base.config import options

Function = TypeVar("Function", bound=Callable[..., object])

# The words are JAX's, as programs look for them.
_NOTE = (
    "--------------------\n"
    "For simplicity, JAX has removed its internal frames from the traceback of the following "
    "exception. Set JAX_TRACEBACK_FILTERING=off to include these."
)
_filtering = options["jax_traceback_filtering"]
_REPLAYED = "While transforming the operation at"


def boundary(function: Function) -> Function:
    """Put on each function that users call and that calls the user's functions, or ours, in turn.

    An exception on its way out loses the frames of hlofront and jaxlib from its traceback, and so
    do those that it was raised from. What happens is the option jax_traceback_filtering:
    "quiet_remove_frames" as said; "remove_frames" keeps the whole traceback as well, as the
    exception's cause; "tracebackhide" marks the frames for IPython and pytest to hide; "off" leaves
    all as it is; "auto" is "tracebackhide" in IPython and "quiet_remove_frames" elsewhere.

    It costs a call; boundaries may nest. A generator function is left at its first `next`, so put
    it on what iterates instead.
    """

    @functools.wraps(function)
    def at_boundary(*args: object, **kwargs: object) -> object:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            filter_traceback(error)
            raise  # With the new traceback, and without an entry for this frame.

    return cast(Function, at_boundary)


def named_as(wrapper: Any, fun: object) -> Any:
    """Give a wrapper the name, documentation and annotations of `fun`, and return the wrapper.

    This is `functools.update_wrapper` for any callable, whose names may be no strings, or missing.

    What jit keeps in its functions is left out: `grad(f)` is no jitted function.
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


# The attribute in which jit keeps what stands behind a function.
JITTED = "_jitted"


class UnfilteredTraceback(Exception):
    """The cause of an exception under "remove_frames", which carries the whole traceback."""


def filter_traceback(error: BaseException) -> None:
    """Remove or hide hlofront's frames in a caught exception's tracebacks, in place.

    The option jax_traceback_filtering decides which. Call it in the `except` block only.
    """
    mode = _filtering.value
    if mode == "auto":
        mode = "tracebackhide" if _in_ipython() else "quiet_remove_frames"
    if mode == "tracebackhide":
        for each in _chain(error):
            _hide(each.__traceback__)
    elif mode == "quiet_remove_frames":
        # At every boundary, as the user's function may catch it before it gets to the last one.
        if _remove_frames(error):
            _add_note(error, _NOTE)
    elif mode == "remove_frames" and _is_outermost():
        _remove_frames_keeping_all(error)


def _in_ipython() -> bool:
    ipython = sys.modules.get("IPython")
    return ipython is not None and ipython.get_ipython() is not None


# What this assigns is not stopped by an exception class with a __setattr__ of its own.
_assign = BaseException.__setattr__


def _chain(error: BaseException) -> list[BaseException]:
    """Return an exception, those that it was raised from, and the members of groups."""
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
    for each in _chain(error):
        before = each.__traceback__
        after = _filtered(before)
        removed |= after is not before
        context = each.__context__
        if context is not None and each.__cause__ is None and _is_all_ours(context.__traceback__):
            # Raised and handled inside of hlofront: to the user it did not happen.
            _assign(each, "__suppress_context__", True)
        if after is not before:
            _assign(each, "__traceback__", after)
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
        f"{type(error).__name__}, with all of its traceback. Below, the user's frames alone."
    )
    for name in ("__traceback__", "__cause__", "__context__", "__suppress_context__"):
        _assign(whole, name, getattr(error, name))
    _assign(error, "__traceback__", _filtered(error.__traceback__))
    _assign(error, "__cause__", whole)


def _is_outermost() -> bool:
    frame = source.frame_at(2)  # The boundary that called filter_traceback.
    while (frame := frame.f_back) is not None:
        if frame.f_code is _boundary_code:
            return False
    return True


_boundary_code = boundary(lambda: None).__code__


def _hide(traceback: types.TracebackType | None) -> None:
    while traceback is not None:
        if _is_ours(traceback):
            traceback.tb_frame.f_locals["__tracebackhide__"] = True
        traceback = traceback.tb_next


def _notes(error: BaseException) -> list[str]:
    notes: Any = getattr(error, "__notes__", None)
    return cast(list[str], notes) if type(notes) is list else []


def _add_note(error: BaseException, note: str) -> None:
    notes = _notes(error)
    if note not in notes:
        _assign(error, "__notes__", [*notes, note])


class JaxStackTraceBeforeTransformation(Exception):
    """The cause of an exception of a transformed operation: its traceback ends at the user's line.

    The exception's own traceback ends where the transformed operation ran.
    """


class user_context:
    """A context manager for replaying an operation: errors name the line it was traced at.

    For transformations, which run a program's equations long after the user's lines did.
    """

    __slots__ = ("traceback",)

    def __init__(self, traceback: source.Traceback):
        self.traceback = traceback

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if not isinstance(error, Exception):
            return
        # The innermost operation says it; those around it would only repeat it.
        if any(str(note).startswith(_REPLAYED) for note in _notes(error)):
            return
        frame = source.user_frame(self.traceback)
        if frame is None:
            return
        # Not by str(error), which may raise itself.
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
