"""hlotools reads, compares and prices what jax compiled, in jax's own process."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = """
import sys

import jax
import jax.numpy as jnp

import hlotools

lowered = jax.jit(lambda x: jnp.tanh(x @ x).sum()).lower(jnp.ones((8, 8)))
other = jax.jit(lambda x: jnp.sin(x @ x).sum()).lower(jnp.ones((8, 8)))
compiled = lowered.compile()
assert hlotools.diff(compiled, compiled.as_text()).equal
assert "tanh" in hlotools.diff(compiled, other.compile()).text()
assert "tanh" in hlotools.diff(lowered, other).text()
assert hlotools.costs(compiled).total["flops"] >= 2 * 8**3
assert "<html" in hlotools.page(compiled) and "<html" in hlotools.page(lowered)
assert hlotools.write(hlotools.parse(compiled.as_text())).startswith("HloModule")
assert "hlofront" not in sys.modules
print("all of it")
"""


@pytest.mark.skipif("HLOFRONT_ORACLE_PYTHON" not in os.environ, reason="no Python that has jax")
def test_programs_of_jax_in_its_own_process():
    process = subprocess.run(
        [os.environ["HLOFRONT_ORACLE_PYTHON"], "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.strip() == "all of it"
