"""Models that libtpu compiled to worse code than jax's keep to jax's figures.

The figures are those of jax 0.10.2 with libtpu 0.0.52, by `benchmarks/accelerators.py`. Skipped
where another libtpu is installed, or none.
"""

import importlib
import importlib.metadata
import pathlib
import re

import pytest

import hlofront as jax
from tests.pjrt.needed import need

BENCHMARKS = pathlib.Path(__file__).parents[2] / "benchmarks"
LIBTPU = "0.0.52"
# Per model: jax's estimated cycles and bytes of temporaries.
JAX = {
    "steps_hessian": (108_539, 540_672),
    "narrow_resnet": (1_264_109, 2_375_680),
}


@pytest.fixture
def v5e():
    need("tpu")
    if importlib.metadata.version("libtpu") != LIBTPU:
        pytest.skip(f"the figures are those of libtpu {LIBTPU}")
    return jax.target("tpu:v5e:1x1")


@pytest.mark.long
@pytest.mark.parametrize("name", JAX)
def test_cycles_and_temporaries_are_at_most_those_of_jax(v5e, name, monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    models = importlib.import_module("accelerator_models")
    function, arguments = models.MODELS[name](jax)
    with v5e:
        compiled = jax.jit(function).lower(*arguments).compile()
    cycles = sum(map(int, re.findall(r'"estimated_cycles":"(\d+)"', compiled.as_text())))
    jax_cycles, jax_temporaries = JAX[name]
    assert 0 < cycles <= 1.0005 * jax_cycles
    assert 0 < compiled.memory_analysis().temp_size_in_bytes <= 1.02 * jax_temporaries
