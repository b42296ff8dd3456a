"""debug.print, debug.log and debug.callback: inspection of programs while they run."""

import logging
import string
from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial

from hlofront.base import source
from hlofront.base.boundary import boundary
from hlofront.base.errors import without_operands
from hlofront.core.rules import run
from hlofront.core.trace import Tracer, leaked
from hlofront.pjrt import clients
from hlofront.primitives.calls import callbacks
from hlofront.primitives.calls.callbacks import FlatDebugCallback, debug_callback_p, debug_print_p
from hlofront.runtime.array.transfer import device_put
from hlofront.runtime.compilation.host_calls import call_on_the_host

_logger = logging.getLogger(__name__)


@boundary
def debug_callback(
    callback: Callable[..., None] | None = None,
    *args: object,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: object,
) -> Callable[..., None] | None:
    """Call a Python function with values of a program, for its side effects.

    It does not affect derivatives, and under vmap it is called for each example. It may be called
    more or less often where transformations repeat or drop parts of the program.

    Options may be passed with the callback, or in a separate call, in case arguments of the
    callback have the same names: `debug.callback(ordered=True)(callback, *args, **kwargs)`.

    Args:
      callback: a function of pytrees of arrays and of other values. Its result is ignored.
      *args: its arguments.
      ordered: whether it is called in order with other ordered callbacks, of this program and of
        those called before and after it.
      partitioned: whether each device of an array that is split over several calls it with its
        own shard.
      **kwargs: its keyword arguments.

    Raises:
      TypeError: if `callback` is not callable, or arguments are passed with options but without it.
      JaxRuntimeError: if the callback raises an exception inside of a program; it is the error's
        cause. A program that is running already may raise it in effects_barrier.
    """

    def call(callback: Callable[..., None], /, *args: object, **kwargs: object) -> None:
        if not callable(callback):
            raise TypeError(
                "first argument to debug.callback must be callable, but got an object of type "
                f"{type(callback)}"
            )
        callbacks.debug_callback(callback, args, kwargs, ordered, partitioned)

    if callback is None:
        _check_options_alone("debug.callback", args, kwargs)
        return boundary(call)
    return call(callback, *args, **kwargs)


@boundary
def debug_print(
    fmt: str | None = None,
    *args: object,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = False,
    **kwargs: object,
) -> Callable[..., None] | None:
    """Print values of a program while it runs.

    The text is formatted when the values are computed: write `debug.print("loss {}", x)`, not an
    f-string.

    Options may be passed with the format, or in a separate call, in case arguments have the same
    names: `debug.print(ordered=True)(fmt, *args, **kwargs)`.

    Args:
      fmt: a format string as in `str.format`.
      *args: the values that it formats by position: arrays, pytrees of them, or any other value.
      ordered: whether it is printed in order with other ordered callbacks, of this program and of
        those called before and after it.
      partitioned: whether each device of an array that is split over several prints its own shard.
      skip_format_check: whether the format may omit arguments; if it has no placeholders at all,
        they are printed after it.
      **kwargs: the values that it formats by name.

    Raises:
      TypeError: if `fmt` is not a string, or arguments are passed with options but without it.
      ValueError: if the format does not mention an argument, or is malformed.
      IndexError, KeyError: if it mentions an argument that is not passed.
    """

    def show(fmt: str, /, *args: object, **kwargs: object) -> None:
        if not isinstance(fmt, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"debug.print: expected str, got {type(fmt).__name__}")
        used = _Fields()
        if skip_format_check:
            has_placeholders = any(field is not None for _, field, _, _ in used.parse(fmt))
        else:
            has_placeholders = used.check(fmt, args, kwargs)
        record = _log_record() if _use_logging else None
        callbacks.debug_print(fmt, args, kwargs, has_placeholders, ordered, partitioned, record)

    if fmt is None:
        _check_options_alone("debug.print", args, kwargs)
        return boundary(show)
    return show(fmt, *args, **kwargs)


@boundary
def debug_log(
    fmt: str | None = None,
    *args: object,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    _use_logging: bool = True,
    **kwargs: object,
) -> Callable[..., None] | None:
    """Log values of a program while it runs, at level INFO with the line of this call.

    Args:
      fmt: a format string as in `str.format`.
      *args, **kwargs: the values to format; arrays may be traced.
      ordered: whether texts appear in the order of the calls.
      partitioned: whether each device logs its own part of an array that is split over devices.
      skip_format_check: whether to skip checking the format against the values immediately.

    Raises:
      IndexError, KeyError: if the format mentions a value that is not passed.
    """
    return debug_print(
        fmt,
        *args,
        ordered=ordered,
        partitioned=partitioned,
        skip_format_check=skip_format_check,
        _use_logging=_use_logging,
        **kwargs,
    )


def _check_options_alone(name: str, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
    """Raise a TypeError if arguments are passed with options, before their callback or format."""
    if args or kwargs:
        raise TypeError(
            f"{name} was given arguments and nothing to use them, args={args} kwargs={kwargs}: in "
            "the form of two calls, the first takes only options"
        )


def _log_record() -> logging.LogRecord:
    """Return a log record without a message, with the line of the user's call."""
    site = source.call_site()
    file, line, function = "unknown", 0, None
    if site is not None:
        file, line, function = site.frame.file, site.frame.line, site.frame.function
    return _logger.makeRecord(_logger.name, logging.INFO, file, line, "", (), None, func=function)


class _Fields(string.Formatter):
    """A string formatter that records which arguments a format mentions."""

    def check(self, fmt: str, args: tuple[object, ...], kwargs: dict[str, object]) -> bool:
        """Return whether the format has placeholders; raise if they do not match the arguments."""
        self._mentioned: set[int | str] = set()
        self.vformat(fmt, args, kwargs)
        unused = [x for i, x in enumerate(args) if i not in self._mentioned]
        if unused:
            raise ValueError(
                f"Unused positional arguments to `debug.print`: {unused}. The format is {fmt!r}: "
                "give it a {} for each."
            )
        names = [name for name in kwargs if name not in self._mentioned]
        if names:
            raise ValueError(
                f"Unused keyword arguments to `debug.print`: {names}. The format is {fmt!r}. If it "
                'was an f-string, as in f"{x}", take away the f: values are there when the '
                "program runs."
            )
        return bool(self._mentioned)

    def get_field(
        self, field_name: str, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[str, int | str]:
        name = field_name.partition(".")[0].partition("[")[0]
        key = int(name) if name.isdigit() else name
        if isinstance(key, int) and key >= len(args):
            raise IndexError(
                f"debug.print: tuple index out of range: the format mentions positional argument "
                f"{key}, and {len(args)} were given"
            )
        if isinstance(key, str) and key not in kwargs:
            raise KeyError(key)
        self._mentioned.add(key)
        return "", key

    def format_field(self, value: object, format_spec: str) -> str:
        return ""

    def check_unused_args(
        self, used_args: Set[int | str], args: Sequence[object], kwargs: Mapping[str, object]
    ) -> None:
        pass


# ---- eager calls ---------------------------------------------------------------------------------


def _run_now(name: str, function: Callable[..., object], args: tuple[object, ...]) -> list[object]:
    """Call a debug callback eagerly; return an empty list, as there are no results."""
    for x in args:
        if isinstance(x, Tracer):
            raise leaked(x)
    arrays = device_put(args, clients.local_devices("cpu")[0])
    try:
        call_on_the_host(name, function, arrays)
    except Exception as error:
        without_operands(error)
        raise
    return []


@run(debug_callback_p)
def _(*args: object, callback: FlatDebugCallback, **_: object) -> list[object]:
    return _run_now("debug_callback", callback, args)


@run(debug_print_p)
def _(*args: object, ordered: bool, partitioned: bool, **params: object) -> list[object]:
    return _run_now("debug_print", partial(callbacks.print_now, **params), args)
