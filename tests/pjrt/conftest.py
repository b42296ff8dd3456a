"""Fixtures of the tests of the cache on disk, and of targets."""

import pytest

import hlofront as jax
from hlofront.base import events
from hlofront.pjrt import cache_store
from hlofront.pjrt.cache_store import Store
from tests.pjrt.needed import need


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


@pytest.fixture(params=["tpu:v5e:1x1", "cuda:h100"])
def absent(request):
    need(request.param.partition(":")[0])
    return jax.target(request.param)


@pytest.fixture
def tpu():
    need("tpu")
    return jax.target("tpu:v5e:2x2")
