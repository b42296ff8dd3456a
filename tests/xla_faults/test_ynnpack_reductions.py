"""The fault "reductions by YNNPACK": sums of products with wrong elements, and SIGSEGV."""

import os
import subprocess
import sys

import pytest

from hlofront.bridge import state
from hlofront.bridge.xla_faults import FAULTS

FAULT = next(each for each in FAULTS if each.name == "reductions by YNNPACK")
IS_PRESENT = FAULT.is_in(state.jaxlib_version)

SUMS_OF_PRODUCTS = """
import numpy as np
import hlofront as jax

jax.config.update("jax_enable_x64", True)
numbers = np.random.default_rng(0)
m, x = (numbers.integers(-4, 5, shape).astype(np.float64) for shape in ((3, 3), (20_001, 3)))
sums = jax.jit(lambda m, x: abs(m @ x.T).sum(0))(m, x)
assert (np.asarray(sums) == abs(m @ x.T).sum(0)).all(), "wrong elements"
"""

SEVEN_AXES = """
import numpy as np
import hlofront as jax

a = np.ones((3, 1, 2, 2, 8, 8, 8), np.float32)
assert (np.asarray(jax.jit(lambda a, b: (a * b).sum(3))(a, a)) == 2).all()
"""


def ends_well(code, guards):
    """Return whether a process that runs the code ends without error."""
    environment = {**os.environ, "HLOFRONT_XLA_GUARDS": str(int(guards))}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
    return done.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("code", [SUMS_OF_PRODUCTS, SEVEN_AXES], ids=["wrong", "ends"])
def test_programs_are_right_with_the_guard_and_not_without(code):
    assert ends_well(code, guards=True)
    assert ends_well(code, guards=False) == (not IS_PRESENT)
