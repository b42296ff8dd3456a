"""What the tests of programs in programs share."""

import pytest

from hlofront.base import events


@pytest.fixture
def compilations():
    """The names of what is compiled."""
    names = []

    def listen(event, duration, **metadata):
        if event == events.COMPILE:
            names.append(metadata["fun_name"])

    events.register_event_duration_secs_listener(listen)
    yield names
    events.unregister_event_duration_listener(listen)
