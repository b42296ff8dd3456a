"""A plugin of pytest that begins no test after $TEST_SECONDS: `pytest -p tests.check.time_limit`.

What has run by then decides whether the session failed.
"""

import os
import time

import pytest

DEADLINE = time.monotonic() + float(os.environ.get("TEST_SECONDS", "inf"))
MESSAGE = "the time was over before all of these tests had run"


def pytest_runtest_teardown(item):
    if time.monotonic() > DEADLINE:
        item.session.shouldstop = MESSAGE


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if session.shouldstop == MESSAGE:
        session.exitstatus = 1 if session.testsfailed else 0
