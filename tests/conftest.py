"""What holds for every test: the real jax is never imported, not even where it is installed."""

import os
import sys

import pytest

# What one run compiled must not decide what the next one does, nor the user's folder for caches.
os.environ["HLOFRONT_CACHE"] = "off"


@pytest.fixture(scope="session", autouse=True)
def jax_stays_out():
    yield
    loaded = sorted(name for name in sys.modules if name == "jax" or name.startswith("jax."))
    assert not loaded, f"the real jax was imported: {loaded[:5]}"
