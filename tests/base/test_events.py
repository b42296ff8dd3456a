"""Events reach their listeners, and the log is written where the options say."""

import contextlib
import logging

import pytest

from hlofront.base import events
from hlofront.base.config import config


@pytest.fixture
def heard():
    """What listeners of all kinds were told, in order."""
    found = []

    def listener(*args, **metadata):
        found.append((*args, metadata))

    events.register_event_listener(listener)
    events.register_event_duration_secs_listener(listener)
    events.register_event_time_span_listener(listener)
    events.register_scalar_listener(listener)
    yield found
    events.clear_event_listeners()


def test_each_kind_reaches_its_listeners(heard):
    events.record_event("/a", x=1)
    events.record_event_duration_secs("/b", 1.5, y="2")
    events.record_event_time_span("/c", 1.0, 2.0)
    events.record_scalar("/d", 3, z=4)
    assert heard == [
        ("/a", {"x": 1}),
        ("/b", 1.5, {"y": "2"}),
        ("/c", 1.0, 2.0, {}),
        ("/d", 3, {"z": 4}),
    ]
    events.clear_event_listeners()
    events.record_event("/a")
    assert len(heard) == 4


@pytest.mark.parametrize(
    "register, unregister, record",
    [
        (
            events.register_event_listener,
            events.unregister_event_listener,
            lambda: events.record_event("/a"),
        ),
        (
            events.register_event_duration_secs_listener,
            events.unregister_event_duration_listener,
            lambda: events.record_event_duration_secs("/a", 1.0),
        ),
        (
            events.register_event_time_span_listener,
            events.unregister_event_time_span_listener,
            lambda: events.record_event_time_span("/a", 1.0, 2.0),
        ),
        (
            events.register_scalar_listener,
            events.unregister_scalar_listener,
            lambda: events.record_scalar("/a", 1),
        ),
    ],
)
def test_registered_twice_and_unregistered_once_each(register, unregister, record):
    found = []

    def listener(*args):
        found.append(args)

    register(listener)
    register(listener)
    record()
    assert len(found) == 2
    unregister(listener)
    record()
    assert len(found) == 3
    unregister(listener)
    record()
    assert len(found) == 3
    with pytest.raises(ValueError, match=r"listener.* does not listen to .* cannot be unreg"):
        unregister(listener)


def test_a_listener_may_unregister_itself():
    found = []

    def once(event):
        found.append(event)
        events.unregister_event_listener(once)

    events.register_event_listener(once)
    events.record_event("/a")
    events.record_event("/b")
    assert found == ["/a"]


def test_timed(heard):
    with events.timed("/compile", fun_name="f") as timer:
        pass
    (start, duration, span) = heard
    assert start == ("/compile", timer.started_at, {"fun_name": "f"})
    assert duration == ("/compile", timer.seconds, {"fun_name": "f"})
    assert span == ("/compile", start[1], start[1] + timer.seconds, {"fun_name": "f"})
    assert 0 <= timer.seconds < 60
    with pytest.raises(KeyError), events.timed("/compile"):
        raise KeyError
    assert len(heard) == 4


@contextlib.contextmanager
def no_handlers():
    """Without pytest's own, which count as the program's say on where logs go."""
    before = events.logger.propagate
    events.logger.propagate = False
    try:
        assert events.logger.handlers == []
        yield
    finally:
        config.update("jax_logging_level", "NOTSET")
        config.update("jax_debug_log_modules", "")
        events.logger.propagate = before
    assert events.logger.handlers == []


def written(capsys, name, level):
    logging.getLogger(name).log(level, "a message")
    return capsys.readouterr().err


def test_logging_level(capsys):
    with no_handlers():
        config.update("jax_logging_level", "INFO")
        text = written(capsys, "hlofront.runtime.dispatch.jit", logging.INFO)
        assert (
            text.startswith("INFO:")
            and "hlofront.runtime.dispatch.jit" in text
            and "a message" in text
        )
        assert written(capsys, "hlofront.runtime.dispatch.jit", logging.DEBUG) == ""
        config.update("jax_logging_level", None)
        assert events.logger.handlers == []


def test_debug_log_modules(capsys):
    with no_handlers():
        config.update("jax_debug_log_modules", "hlofront.runtime.dispatch.jit, hlofront.core")
        assert "a message" in written(capsys, "hlofront.core.trace", logging.DEBUG)
        text = written(capsys, "hlofront.runtime.dispatch.jit", logging.DEBUG)
        assert text.count("a message") == 1
        assert written(capsys, "hlofront.pjrt.compile", logging.DEBUG) == ""
        config.update("jax_debug_log_modules", "hlofront.core")
        assert written(capsys, "hlofront.runtime.dispatch.jit", logging.DEBUG) == ""
        config.update("jax_logging_level", "ERROR")
        config.update("jax_debug_log_modules", "")
        assert len(events.logger.handlers) == 1
        assert written(capsys, "hlofront.core.trace", logging.DEBUG) == ""


def test_a_program_with_its_own_handlers_gets_no_second():
    theirs = logging.NullHandler()
    with no_handlers():
        events.logger.addHandler(theirs)
        try:
            config.update("jax_logging_level", "DEBUG")
            assert events.logger.handlers == [theirs]
        finally:
            events.logger.removeHandler(theirs)
