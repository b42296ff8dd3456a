"""A plugin of pytest, `-p tests.support.running_test`, that writes the running test to a file.

A process that a signal ends reports nothing. The file, $RUNNING_TEST, names the test that ran, the
number of tests before it, and what the process held when that was last counted.
"""

import os
import pathlib
import time

import pytest

from tests.support import memory

SECONDS_BETWEEN_COUNTS = 1.0


class RunningTest:
    """Writes the name of each test to a file when the test begins."""

    def __init__(self, path: pathlib.Path) -> None:
        self.file = open(path, "wb", buffering=0)
        self.tests_begun = 0
        self.usage = memory.usage()
        self.counted_at = time.monotonic()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        now = time.monotonic()
        if now - self.counted_at > SECONDS_BETWEEN_COUNTS:
            self.usage, self.counted_at = memory.usage(), now
        text = f"{nodeid}\nafter {self.tests_begun} other tests; shortly before it: {self.usage}\n"
        os.pwrite(self.file.fileno(), text.encode(), 0)
        self.file.truncate(len(text.encode()))
        self.tests_begun += 1

    def pytest_unconfigure(self) -> None:
        self.file.close()


def pytest_configure(config: pytest.Config) -> None:
    # Sessions of pytest that a test starts have other tests.
    path = os.environ.pop("RUNNING_TEST", None)
    if path:
        config.pluginmanager.register(RunningTest(pathlib.Path(path)))
