"""The pytest plugin of hlofront: goldens of programs, and limits on compilations in tests.

The file is outside of the package so that pytest, which always loads it, does not load jaxlib.
"""

import hashlib
import os
import pathlib
import re
import sys

import pytest

# By versions of goldens that are not today's: the tests whose programs are as those goldens say.
_unchanged = pytest.StashKey[dict]()
# By the path of each golden that a test asked for: the test.
_asked_for = pytest.StashKey[dict]()
# The goldens that this run wrote.
_written = pytest.StashKey[list]()
# The goldens that the summary lists by name.
_MAX_LISTED = 10
# The files of the tests of this run.
_sources = pytest.StashKey[set]()


def pytest_addoption(parser):
    group = parser.getgroup("hlofront")
    group.addoption(
        "--hlo-update",
        action="store_true",
        help="write the goldens of hlo_golden anew, in place of comparing with them",
    )
    group.addoption(
        "--hlo-unused",
        action="store_true",
        help="list the goldens that no test of this run asked for, of the test files that ran",
    )


def pytest_configure(config):
    config.stash[_unchanged] = {}
    config.stash[_written] = []
    config.stash[_asked_for] = {}
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
    """The value of the fixture `hlo_golden`, whose `check(program)` compares it with a file."""

    def __init__(self, request):
        self._request = request
        self._count = 0

    def check(self, program, name=None):
        """Compare a program with its golden; the first time, write it, except in CI.

        Where the environment variable CI is set, a missing golden is an error: what CI writes is
        lost, and a test that only writes cannot fail.

        Args:
          program: `jit(f).lower(x)`, for its StableHLO, or that `.compile()`, for its HLO; a jaxpr;
            or the text of one. It may be of jax, in a process that imports jax.
          name: what to call the file; by default the test's class and name and, from the second
            check in one test on, a number.

        Raises:
          GoldenMismatch: an AssertionError whose message shows what differs, with pytest's
            --verbose in full, or says that there is no golden, or that two tests ask for one file.
        """
        from hlotools import golden

        if "hlofront" in sys.modules:
            import hlofront.inspect.kernel_decoding  # noqa: F401  # For custom calls.

        __tracebackhide__ = True
        config = self._request.config
        self._count += 1
        path = self._path(name)
        update = config.getoption("--hlo-update")
        try:
            if name is None:
                self._claim(path)
            else:
                config.stash[_asked_for].setdefault(_key(path), self._request.node.nodeid)
            if not (update or path.exists()) and _is_ci():
                raise golden.GoldenMismatch(
                    f"there is no golden {path}, and CI writes none. Run the test once where the "
                    "environment variable CI is not set, and commit the file."
                )
            verbose = config.getoption("verbose") > 0
            checked = golden.check(program, path, update, verbose)
        except golden.GoldenMismatch as mismatch:
            # The test's own lines are what the reader needs, and not those of the comparison.
            raise mismatch.with_traceback(None) from None
        if checked.written:
            config.stash[_written].append(path)
        if checked.other_versions:
            by_versions = config.stash[_unchanged]
            by_versions.setdefault(checked.other_versions, []).append(self._request.node.nodeid)

    def _path(self, name):
        """Return the path of the golden of this check."""
        node = self._request.node
        if name is None:
            classes = [each.name for each in node.listchain() if isinstance(each, pytest.Class)]
            name = ".".join([*classes, node.name]) + (f"-{self._count}" if self._count > 1 else "")
        source = pathlib.Path(node.path)
        return source.parent / "goldens" / source.stem / file_name(name)

    def _claim(self, path):
        """Raise GoldenMismatch if another test has asked for this file."""
        from hlotools import golden

        __tracebackhide__ = True
        test = self._request.node.nodeid
        other = self._request.config.stash[_asked_for].setdefault(_key(path), test)
        if other != test:
            raise golden.GoldenMismatch(
                f"{other} and {test} ask for one golden, {path}: pass different names, as in "
                "hlo_golden.check(program, 'name')"
            )


def file_name(name):
    """Return the name of a golden's file; a digest follows where characters had to be replaced.

    `test_step[a-4]` is `test_step-a-4.txt`, and `test_step[a b]` is `test_step-a_b-` with 8
    hexadecimal digits, so that it is not the file of `test_step[a_b]`.
    """
    test, bracket, parameters = name.partition("[")
    if bracket and "]" in parameters:
        values, _, number = parameters.rpartition("]")
        name = f"{test}-{values}{number}"
    safe = re.sub(r"[^\w.=+-]+", "_", name).strip("._") or "golden"
    if safe != name or len(safe) > 150:
        digest = hashlib.sha256(name.encode()).hexdigest()[:8]
        safe = f"{safe[:150]}-{digest}"
    return f"{safe}.txt"


def _key(path):
    """Return a key that is equal for paths of one file on file systems that ignore case."""
    return str(path).casefold()


def _is_ci():
    """Return whether the tests run in continuous integration, as its services say by CI=true."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false", "no")


def _unused(config):
    """Yield the goldens of this run's test files that no test has asked for."""
    for source in sorted(config.stash[_sources]):
        for path in sorted((source.parent / "goldens" / source.stem).glob("*.txt")):
            if _key(path) not in config.stash[_asked_for]:
                yield path


def pytest_collection_finish(session):
    session.config.stash[_sources] = {pathlib.Path(item.path) for item in session.items}


@pytest.fixture
def hlo_golden(request):
    """Return Goldens, which keeps programs in files beside the test and fails when they change."""
    return Goldens(request)


def pytest_terminal_summary(terminalreporter, config):
    written = config.stash[_written]
    for path in written[:_MAX_LISTED]:
        terminalreporter.write_line(f"hlo_golden: wrote {path}")
    if len(written) > _MAX_LISTED:
        terminalreporter.write_line(f"hlo_golden: wrote {len(written) - _MAX_LISTED} more")
    for versions, tests in config.stash[_unchanged].items():
        terminalreporter.write_line(
            f"hlo_golden: {len(tests)} program(s) are as their goldens say, although the versions "
            f"changed: {versions}"
        )
    if config.getoption("--hlo-unused"):
        for path in _unused(config):
            terminalreporter.write_line(f"hlo_golden: no test of this run asked for {path}")
