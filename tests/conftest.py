"""What holds for every test: the real jax is never imported, not even where it is installed."""

import functools
import gc
import glob
import os
import sys
import zlib

import numpy as np
import pytest

from tests.support import memory, parts

# What one run compiled must not decide what the next one does, nor the user's folder for caches.
os.environ["HLOFRONT_CACHE"] = "off"
# Tests that start pytest do so without the options of this run.
os.environ.pop("PYTEST_ADDOPTS", None)


@pytest.fixture(scope="session", autouse=True)
def jax_stays_out():
    yield
    loaded = sorted(name for name in sys.modules if name == "jax" or name.startswith("jax."))
    assert not loaded, f"the real jax was imported: {loaded[:5]}"


# Linux lets a process map 65,530 regions of memory, and each compiled program has three; XLA ends
# the process when it gets no more. Tests compile some hundred programs a second at most, and the
# regions are counted each second, or each 7 seconds if there are many.
MAX_MAPPED = 40_000


def pytest_collection_modifyitems(config, items):
    """Keep the tests that $TEST_PART and $TEST_HALF select: see tests/support/parts.py."""
    if parts.PART != "all" or parts.HALF:
        chosen = parts.select_tests(items)
        config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
        items[:] = chosen


def pytest_collection_finish():
    """Keep the collector of garbage from walking the tests and modules, which stay, each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def programs_do_not_fill_the_memory_map():
    yield
    if memory.recently_mapped_regions() > MAX_MAPPED and "hlofront" in sys.modules:
        sys.modules["hlofront"].clear_caches()
        gc.collect()
        memory.count_anew()


@pytest.fixture(autouse=True)
def same_random_numbers(request):
    """Seed the generators of the test's module by the test's name.

    A test then draws the same numbers by itself, in any order, and in any part of the tests.
    """
    generators = _generators_of(request.module)
    if generators:
        state = np.random.default_rng(zlib.crc32(request.node.name.encode())).bit_generator.state
        for generator in generators:
            generator.bit_generator.state = state


@functools.cache
def _generators_of(module):
    return [value for value in vars(module).values() if isinstance(value, np.random.Generator)]


@pytest.fixture(scope="module")
def frozen_heap():
    """Collect garbage quickly in this module's tests: what was there before them is passed over."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def compilations():
    """The names of the functions that XLA compiles during the test."""
    from hlofront.base import events

    names = []

    def listen(event, duration, **metadata):
        if event == events.COMPILE:
            names.append(metadata["fun_name"])

    events.register_event_duration_secs_listener(listen)
    yield names
    events.unregister_event_duration_listener(listen)


@pytest.fixture(autouse=True)
def platform(request):
    """Where the test runs, if that is said. See tests/on_platforms.py."""
    name = getattr(request, "param", None)
    if name is None:
        yield
        return
    from tests import on_platforms

    on_platforms.skip_unsupported(name, request.node.originalname, request.node.callspec.params)
    with on_platforms.on(name):
        yield


def pytest_configure(config):
    # Where there is a GPU, tests still run on the CPU, unless `-m` selects the GPU.
    if "gpu" not in config.option.markexpr and glob.glob("/dev/nvidia[0-9]*"):
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
    # Processes that tests start use the same GPU, whose memory the first would reserve entirely.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def pytest_generate_tests(metafunc):
    from tests import on_platforms

    on_platforms.generate(metafunc)


def pytest_addoption(parser):
    parser.addoption(
        "--ask-jax",
        choices=("new", "some", "keep", "all"),
        default=os.environ.get("HLOFRONT_ASK_JAX", "new"),
        help="which results tests/against_jax computes with the real jax, in its own process: "
        "only missing ones (new); these and some of the stored ones, to compare (some); missing "
        "ones, to store them (keep); all, to store them (all)",
    )
