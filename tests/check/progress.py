"""A plugin of pytest, `-p tests.check.progress`, that writes how far a session is to a file.

The first line of the file, $TEST_PROGRESS, counts the tests: begun, all, failed. Then comes the
running test with the memory that the process had before it, as a process that a signal ends reports
nothing. The end of the output also shows the memory and the processor time.
"""

import os
import pathlib
from typing import NamedTuple

import pytest

from tests.support import memory


class Progress(NamedTuple):
    """How far a session of pytest is."""

    begun: int = 0
    count: int = 0
    failed: int = 0
    test: str = ""

    @staticmethod
    def read(path: pathlib.Path) -> "Progress":
        """Read what `ProgressWriter` wrote last; nothing has begun if there is no file."""
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        counts, _, test = text.partition("\n")
        numbers = counts.split()
        return Progress(*map(int, numbers), test) if len(numbers) == 3 else Progress()


class ProgressWriter:
    """Writes to a file when a test begins."""

    def __init__(self, path: pathlib.Path) -> None:
        self.file = open(path, "wb", buffering=0)
        self.begun = self.count = self.failed = 0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.count = len(session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self.count = len(ids)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed += report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.begun += 1
        text = f"{self.begun} {self.count} {self.failed}\n{nodeid}\n"
        text += f"after {self.begun - 1} other tests; shortly before it: {memory.usage()}\n"
        os.pwrite(self.file.fileno(), text.encode(), 0)
        self.file.truncate(len(text.encode()))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        spent = os.times()
        terminalreporter.write_line(
            f"processor time: {spent.user + spent.system:.0f} s, and of processes that tests "
            f"started {spent.children_user + spent.children_system:.0f} s; {memory.usage()}"
        )

    def pytest_unconfigure(self) -> None:
        self.file.close()


def pytest_configure(config: pytest.Config) -> None:
    # Sessions of pytest that a test starts have other tests.
    path = os.environ.pop("TEST_PROGRESS", None)
    if path:
        config.pluginmanager.register(ProgressWriter(pathlib.Path(path)))
