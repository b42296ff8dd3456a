"""The option hlofront_cpu_formulas, which switches off the formulas for CPUs."""

import subprocess
import sys

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base.config import options
from hlofront.core.rules import LoweringTable, lower
from hlofront.lowering import rules
from hlofront.lowering.replacements import REPLACEMENTS

with_formulas = options["hlofront_cpu_formulas"]
x = np.random.default_rng(0).normal(size=(16, 4096)).astype(np.float32)

FUNCTIONS = {
    "sin": jnp.sin,
    "exp2": jnp.exp2,
    "sort": jnp.sort,
    "an unstable sort": lambda x: lax.sort(x, is_stable=False),
    "top_k": lambda x: lax.top_k(x, 1000)[0],
    "a convolution": lambda x: jnp.convolve(x[0], x[1, :9]),
}


def lowered(f, platform):
    return jax.jit(f).trace(x).lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.cpu
@pytest.mark.parametrize("name", FUNCTIONS)
def test_without_formulas_cpus_get_the_operations_that_others_get(name):
    f = FUNCTIONS[name]
    usual = lowered(f, "cpu")
    values = jax.jit(f)(x)
    with with_formulas(False):
        assert lowered(f, "cpu") == lowered(f, "tpu") != usual
        np.testing.assert_allclose(jax.jit(f)(x), values, rtol=1e-5, atol=1e-5)


@pytest.mark.cpu
def test_fences_and_barriers_of_the_user_stay_without_formulas():
    def deep(x):
        for _ in range(40):
            x = x + jnp.tanh(x @ x.T) @ (x * 0.5)
        return lax.optimization_barrier(x)

    with with_formulas(False):
        assert jax.jit(deep).lower(x[:, :8]).fences
        assert "opt-barrier" in jax.jit(deep).lower(x[:, :8]).compile().as_text()


@pytest.mark.cpu
def test_a_program_keeps_the_formulas_that_it_was_lowered_with():
    program = jax.jit(jnp.sin).lower(x)
    with with_formulas(False):
        assert "bitcast-convert" in program.compile().as_text()
        assert "bitcast-convert" not in jax.jit(jnp.sin).lower(x).compile().as_text()


@pytest.mark.cpu
def test_exports_follow_the_option():
    export = jax.export.export(jax.jit(jnp.sin), platforms=["cpu"])
    assert "bitcast_convert" in export(x).mlir_module()
    with with_formulas(False):
        assert "bitcast_convert" not in export(x).mlir_module()


def test_modules_have_rules_for_the_dtypes_that_they_are_listed_with():
    rules.import_all()
    for row in REPLACEMENTS:
        listed = lower.dtypes.get(row.home)
        assert listed is None or row.form in listed, (row.primitive, row.form, row.home)


@pytest.mark.cpu
def test_rules_of_other_dtypes_and_platforms_are_not_imported():
    code = """
import sys
import numpy as np
import hlofront as jax
from hlofront import lax

OTHERS = "cpu.hyperbolic_f64", "cpu.trig_f64", "tpu."

def imported(function, dtype):
    text = jax.jit(function).lower(np.ones(2**20, dtype)).as_text()
    names = [name.removeprefix("hlofront.lowering.") for name in sys.modules]
    modules = [name for name in names if name.startswith(OTHERS)]
    return ",".join(sorted(modules)) or "none", "chlo.sinh" in text

jax.config.update("jax_enable_x64", True)
print(*imported(lambda x: lax.sinh(x).sum(), np.float32))
print(*imported(lambda x: lax.sinh(x).sum(), np.float64))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    narrow, wide = done.stdout.splitlines()
    assert narrow == "none True"
    assert "cpu.hyperbolic_f64" in wide and wide.endswith(" False")


def test_rules_that_another_thread_imports_meanwhile_are_no_error(monkeypatch):
    table = LoweringTable("lower", "here", "for what?")
    table.modules[lax.exp_p.name] = ["a_module"]
    imported = []

    def another_thread_is_first(name):
        imported.append(name)
        table.modules.clear()

    monkeypatch.setattr("hlofront.core.rules.importlib.import_module", another_thread_is_first)
    table.load_for(lax.exp_p, ("cpu",), None)
    table.load_for(lax.exp_p, ("cpu",), None)
    assert imported == ["a_module"]
