"""What hlofront gives to pytest: fixtures and a marker that hold a test to what it may compile.

It stands beside the package so that pytest, which loads it at every start, does not load jaxlib.
"""

import pytest


def pytest_configure(config):
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
