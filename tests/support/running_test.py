"""A plugin of pytest, `-p tests.support.running_test`, that writes the running test to a file.

A process that a signal ends reports nothing. The file, $RUNNING_TEST, names the test that ran, the
number of tests before it, and what memory the process had. The end of the output tells that too,
and the processor time.
"""

import os
import pathlib

import pytest

from tests.support import memory


class RunningTest:
    """Writes the name of each test to a file when the test begins."""

    def __init__(self, path: pathlib.Path) -> None:
        self.file = open(path, "wb", buffering=0)
        self.tests_begun = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        usage = memory.usage()
        text = f"{nodeid}\nafter {self.tests_begun} other tests; shortly before it: {usage}\n"
        os.pwrite(self.file.fileno(), text.encode(), 0)
        self.file.truncate(len(text.encode()))
        self.tests_begun += 1

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
    path = os.environ.pop("RUNNING_TEST", None)
    if path:
        config.pluginmanager.register(RunningTest(pathlib.Path(path)))
