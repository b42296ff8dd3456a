"""Events for listeners, as in jax.monitoring, and the log."""

import logging
import threading
import time
from collections.abc import Callable

from hlofront.base.config import options

# ---- events ----------------------------------------------------------------------------------
#
# An event has a name such as "/jax/core/compile/jaxpr_trace_duration" and metadata, passed to
# listeners as keyword arguments. Each kind's listeners are a tuple that is replaced as a whole, so
# that recording takes no lock.

Listener = Callable[..., None]


class _Kind:
    """A kind of event and its listeners."""

    __slots__ = ("listeners", "name")

    def __init__(self, name: str):
        self.name = name
        self.listeners: tuple[Listener, ...] = ()

    def register(self, callback: Listener) -> None:
        with _lock:
            self.listeners = (*self.listeners, callback)

    def unregister(self, callback: Listener) -> None:
        with _lock:
            if callback not in self.listeners:
                raise ValueError(
                    f"{callback!r} does not listen to {self.name}, so it cannot be unregistered: "
                    "give the same function that was registered, and once for each time"
                )
            remaining = list(self.listeners)
            remaining.remove(callback)
            self.listeners = tuple(remaining)


_lock = threading.Lock()
_events = _Kind("events")
_durations = _Kind("durations")
_time_spans = _Kind("time spans")
_scalars = _Kind("scalars")


def record_event(event: str, **kwargs: str | int) -> None:
    """Call the event listeners with the name of an event and its metadata.

    Args:
      event: the name of the event, by convention a path such as "/jax/compile".
      **kwargs: metadata of the event, which the listeners get as keyword arguments.
    """
    for listener in _events.listeners:
        listener(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Call the duration listeners with the name of an event, its duration and metadata.

    Args:
      event: the name of the event, by convention a path such as "/jax/compile".
      duration: the time that the event took, in seconds.
      **kwargs: metadata of the event, which the listeners get as keyword arguments.
    """
    for listener in _durations.listeners:
        listener(event, duration, **kwargs)


def record_event_time_span(
    event: str, start_time: float, end_time: float, **kwargs: str | int
) -> None:
    """Call the time span listeners with an event's name, and start and end in epoch seconds.

    Args:
      event: the name of the event, by convention a path such as "/jax/compile".
      start_time, end_time: when the event began and ended, in seconds since the epoch.
      **kwargs: metadata of the event, which the listeners get as keyword arguments.
    """
    for listener in _time_spans.listeners:
        listener(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Call the scalar listeners with the name of an event, a number and metadata.

    Args:
      event: the name of the event, by convention a path such as "/jax/compile".
      value: the number to report.
      **kwargs: metadata of the event, which the listeners get as keyword arguments.
    """
    for listener in _scalars.listeners:
        listener(event, value, **kwargs)


def register_event_listener(callback: Listener) -> None:
    """Register a function that is called at each event.

    Args:
      callback: `callback(event, **metadata)` is called in the thread of the event.
    """
    _events.register(callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """Register a function that is called at each duration, with the name of its event.

    Args:
      callback: `callback(event, seconds, **metadata)` is called in the thread of the event.
    """
    _durations.register(callback)


def register_event_time_span_listener(callback: Listener) -> None:
    """Register a function that is called at each time span, with the name of its event.

    Args:
      callback: `callback(event, start, end, **metadata)` is called in the thread of the event.
    """
    _time_spans.register(callback)


def register_scalar_listener(callback: Listener) -> None:
    """Register a function that is called at each scalar, with the name of its event.

    Args:
      callback: `callback(event, value, **metadata)` is called in the thread of the event.
    """
    _scalars.register(callback)


def unregister_event_listener(callback: Listener) -> None:
    """Unregister an event listener once.

    Args:
      callback: a function that was registered; if it was registered twice, it is called once after.

    Raises:
      ValueError: if the function is not registered.
    """
    _events.unregister(callback)


def unregister_event_duration_listener(callback: Listener) -> None:
    """Unregister a duration listener once.

    Args:
      callback: a function that was registered; if it was registered twice, it is called once after.

    Raises:
      ValueError: if the function is not registered.
    """
    _durations.unregister(callback)


def unregister_event_time_span_listener(callback: Listener) -> None:
    """Unregister a time span listener once.

    Args:
      callback: a function that was registered; if it was registered twice, it is called once after.

    Raises:
      ValueError: if the function is not registered.
    """
    _time_spans.unregister(callback)


def unregister_scalar_listener(callback: Listener) -> None:
    """Unregister a scalar listener once.

    Args:
      callback: a function that was registered; if it was registered twice, it is called once after.

    Raises:
      ValueError: if the function is not registered.
    """
    _scalars.unregister(callback)


def clear_event_listeners() -> None:
    """Unregister all listeners of all kinds."""
    with _lock:
        for kind in (_events, _durations, _time_spans, _scalars):
            kind.listeners = ()


class timed:
    """A context manager that records the duration and time span of a block, unless it raises.

    The events of compilation stages are "/jax/core/compile/" followed by "jaxpr_trace_duration",
    "jaxpr_to_mlir_module_duration" or "backend_compile_duration", each with `fun_name`.
    """

    __slots__ = ("event", "metadata", "seconds", "started", "started_at")

    def __init__(self, event: str, **metadata: str | int):
        self.event = event
        self.metadata = metadata
        self.seconds = 0.0

    def __enter__(self) -> "timed":
        self.started_at = time.time()
        record_scalar(self.event, self.started_at, **self.metadata)
        self.started = time.perf_counter()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.seconds = time.perf_counter() - self.started
        if kind is None:
            record_event_duration_secs(self.event, self.seconds, **self.metadata)
            end = self.started_at + self.seconds
            record_event_time_span(self.event, self.started_at, end, **self.metadata)


# ---- the log ---------------------------------------------------------------------------------
#
# Modules log to logging.getLogger(__name__), a child of this logger.

logger = logging.getLogger("hlofront")

_FORMAT = logging.Formatter("{levelname}:{asctime}:{name}:{lineno}: {message}", style="{")
_handlers: list[logging.Handler] = []
_level = options["jax_logging_level"]
_debug_modules = options["jax_debug_log_modules"]
_debugged: list[logging.Logger] = []


def _set_level(level: str | None, local: bool) -> None:
    if not local:
        logger.setLevel(level or logging.NOTSET)
        _write_log(level not in (None, "NOTSET") or bool(_debugged))


def _set_debug_modules(modules: str, local: bool) -> None:
    if local:
        return
    for log in _debugged:
        log.setLevel(logging.NOTSET)
    _debugged[:] = [logging.getLogger(name.strip()) for name in modules.split(",") if name.strip()]
    for log in _debugged:
        log.setLevel(logging.DEBUG)
    _write_log(bool(_debugged) or _level.value not in (None, "NOTSET"))


def _write_log(enabled: bool) -> None:
    """Write hlofront's log to stderr if requested, unless the program has set handlers."""
    while _handlers:
        logger.removeHandler(_handlers.pop())
    if enabled and not logger.hasHandlers():
        _handlers.append(logging.StreamHandler())
        _handlers[0].setFormatter(_FORMAT)
        logger.addHandler(_handlers[0])


_level.watch(_set_level)
_debug_modules.watch(_set_debug_modules)


# ---- the stages of a compilation -------------------------------------------------------------

TRACE = "/jax/core/compile/jaxpr_trace_duration"
LOWER = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILE = "/jax/core/compile/backend_compile_duration"
_log_compiles = options["jax_log_compiles"]


def log_stage(message: str, *args: object) -> None:
    """Log the end of a compilation stage, as a warning under jax_log_compiles."""
    logger.log(logging.WARNING if _log_compiles.value else logging.DEBUG, message, *args)
