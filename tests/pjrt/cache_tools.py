"""What the tests of the cache on disk share: entries, folders, and what was said."""

import hashlib
import json
import logging
import os
import pathlib

import pytest

posix = pytest.mark.skipif(os.name != "posix", reason="modes, owners and signals are POSIX's")


def digest_of(i):
    return hashlib.sha256(str(i).encode()).hexdigest()


ONE = digest_of(1)
KEY = b'{"name":"f","x":"f32[2]"}'


def fields_for(key=KEY, size=100, **about):
    about = {"name": "f", **about}
    return {"key": key, "about": json.dumps(about).encode(), "executable": bytes(size)}


def file_of(store, digest=ONE):
    return pathlib.Path(store.folder, f"{digest}.xla")


def names_in(store):
    return sorted(os.listdir(store.folder))


def warnings_in(caplog):
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
