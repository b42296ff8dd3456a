"""The fault "maxima by YNNPACK": they ignore NaNs, and elements beside them."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base.config import options
from hlofront.bridge import state
from hlofront.bridge.xla_faults import FAULTS

FAULT = next(each for each in FAULTS if each.name == "maxima by YNNPACK")
PROGRAMS = {
    "max": lambda x: x.max(1),
    "min": lambda x: x.min(1),
    "windows": lambda x: lax.reduce_window(
        x, jnp.array(-np.inf, x.dtype), lax.max, (1, 1000), (1, 1), "VALID"
    ),
}


@pytest.fixture
def x():
    x = np.ones((300, 1000), np.float32)
    x[:, 33] = np.nan
    return x


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_maxima_of_nans_are_nan(name, dtype, x):
    assert np.isnan(jax.jit(PROGRAMS[name])(jnp.asarray(x, dtype))).all()


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_fault_is_there_without_the_guards(name, x):
    # The first guard is lowering's; under jaxlib 0.10.2 that for reductions by YNNPACK is another.
    with options["hlofront_cpu_formulas"](False), options["hlofront_xla_guards"](False):
        result = jax.jit(PROGRAMS[name])(x)
    assert np.isnan(result).any() == (not FAULT.is_in(state.jaxlib_version))
