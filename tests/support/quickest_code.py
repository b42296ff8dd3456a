"""A plugin of pytest that lets XLA write code as quickly as it can, for the systematic tests.

Besides what quick_code.py leaves out, the emitter of fusions takes a third of the time of
compiling a small program. XLA's older emitter writes outside of arrays where indices are far out of
bounds, so it is for tests whose programs are known: it does not compile the corpora.
"""

import os

import pytest

from tests.support import fusion_emitters, quick_code

assert quick_code.FLAGS
os.environ["XLA_FLAGS"] += " --xla_cpu_use_fusion_emitters=false"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests whose programs XLA compiles rightly with its fusion emitters alone."""
    left_out = [item for item in items if fusion_emitters.are_needed_by(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not fusion_emitters.are_needed_by(item)]
