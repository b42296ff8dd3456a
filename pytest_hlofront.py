"""What hlofront gives to pytest: goldens of programs, and limits on what a test may compile.

It stands beside the package so that pytest, which loads it at every start, does not load jaxlib.
"""

import pathlib
import re

import pytest

_unchanged = pytest.StashKey[dict]()


def pytest_addoption(parser):
    group = parser.getgroup("hlofront")
    group.addoption(
        "--hlo-update",
        action="store_true",
        help="write the goldens of hlo_golden anew, in place of comparing with them",
    )


def pytest_configure(config):
    config.stash[_unchanged] = {}
    config.addinivalue_line(
        "markers", "max_compiles(n): fails the test if jitted functions compile more programs"
    )


@pytest.fixture
def no_recompile():
    """No jitted function may be compiled again during the test: hlofront.no_recompile()."""
    import hlofront

    with hlofront.no_recompile():
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    marker = item.get_closest_marker("max_compiles")
    if marker is None:
        yield
        return
    import hlofront

    with hlofront.max_compiles(*marker.args, **marker.kwargs):
        yield


class Goldens:
    """`hlo_golden.check(jit(f).lower(x))`: each check of a test has a file of its own."""

    def __init__(self, request):
        self._request = request
        self._count = 0

    def check(self, program, name=None):
        """Compare a program with its golden; the first time, write it.

        Args:
          program: `jit(f).lower(x)`, for its StableHLO, or that `.compile()`, for its HLO.
          name: what to call the file; by default the test's name and, from the second check in
            one test on, a number.

        Raises:
          GoldenMismatch: an AssertionError whose message shows what differs.
        """
        from hlofront.inspect import golden

        __tracebackhide__ = True
        request = self._request
        self._count += 1
        if name is None:
            name = request.node.name + (f"-{self._count}" if self._count > 1 else "")
        file = re.sub(r"[^\w.=-]+", "_", name).strip("_") + ".txt"
        source = pathlib.Path(request.node.path)
        path = source.parent / "goldens" / source.stem / file
        update = request.config.getoption("--hlo-update")
        found = golden.check(program, path, update)
        if found.other_versions:
            by_versions = request.config.stash[_unchanged]
            by_versions.setdefault(found.other_versions, []).append(request.node.nodeid)


@pytest.fixture
def hlo_golden(request):
    """Keeps programs in files beside the test, and fails when they change (see --hlo-update)."""
    return Goldens(request)


def pytest_terminal_summary(terminalreporter, config):
    for versions, tests in config.stash[_unchanged].items():
        terminalreporter.write_line(
            f"hlo_golden: {len(tests)} program(s) are as their goldens say, although the versions "
            f"changed: {versions}"
        )
