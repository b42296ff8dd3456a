"""Fixtures of the tests of the cache on disk."""

import pytest

from hlofront.base import events
from hlofront.pjrt import cache_store
from hlofront.pjrt.cache_store import Store


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "cache")


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "cache"
    path.mkdir(0o700)
    return path


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    monkeypatch.setattr(cache_store, "_said", set())


@pytest.fixture
def heard():
    found = []

    def listener(event, **metadata):
        found.append(event)

    events.register_event_listener(listener)
    yield found
    events.unregister_event_listener(listener)
