"""A plugin of pytest that lets XLA write code quickly: `pytest -p tests.support.quick_code`.

The corpora and the catalogue of NumPy's functions compile thousands of programs of a few
operations, each run once. What they test is what hlofront says to XLA. The emitter of fusions and
LLVM's expensive passes take two thirds of the time of such a compilation. All other tests run the
code that users get; so do the systematic ones, as XLA's older emitters write out of bounds for one
of their samples of scatter_add.
"""

import os

import pytest

from tests.support import fusion_emitters

FLAGS = (
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
    "--xla_cpu_use_fusion_emitters=false",
)

# XLA reads the variable once, when the first client starts.
os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), *FLAGS]).strip()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests whose programs XLA compiles rightly with its fusion emitters alone."""
    left_out = [item for item in items if fusion_emitters.are_needed_by(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not fusion_emitters.are_needed_by(item)]
