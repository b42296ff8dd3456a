"""find_miscompile names XLA's known faults where their guards are off, and what cures them."""

import os
import subprocess
import sys

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.base.config import options
from hlofront.bridge import state, xla_faults
from hlofront.inspect import find_miscompile

pytestmark = pytest.mark.skipif(
    not xla_faults.is_present("reductions by YNNPACK"),
    reason=f"jaxlib {state.jaxlib_version} does not have these faults",
)
YNNPACK = "xla_cpu_experimental_ynn_fusion_type"


@pytest.fixture
def no_guards():
    with options["hlofront_cpu_formulas"](False), options["hlofront_xla_guards"](False):
        yield


def named(report):
    return [step.primitive for step in report.operations]


@pytest.mark.long
def test_wrong_sums_of_products(no_guards, tmp_path):
    numbers = np.random.default_rng(0)
    m, x = (numbers.integers(-4, 5, n).astype(np.float64) for n in ((3, 3), (20_001, 3)))

    def sums(m, x):
        return jnp.cos(abs(m @ x.T).sum(0))  # here

    with jax.enable_x64(True):
        report = find_miscompile(sums, isolated=False, jaxlibs=(), folder=tmp_path)(m, x)
    assert report.kind == "values" and not report.is_alone
    assert {"dot_general", "reduce_sum"} <= set(named(report)) and "cos" not in named(report)
    assert "# here" in report.source_line.text
    assert "ynn" in report.fusions[0]
    assert "dot-library-rewriter" in report.passes
    assert report.cures[0][0] == YNNPACK
    assert f"compiler_options={{'{YNNPACK}'" in str(report)
    wrong, expected = report.part[0].found, report.part[0].stepwise
    assert wrong != expected

    # The files reproduce it without hlofront's tracing, and the option cures it there.
    with np.load(tmp_path / "part.npz") as saved:
        assert "types" in saved
    text = (tmp_path / "part.mlir").read_text()
    assert len(text.splitlines()) <= 14 and wrong in text
    run = [sys.executable, "run_mlir.py", "--run", "part.mlir", "part.npz"]
    outputs = [
        subprocess.run([*run, *more], cwd=tmp_path, capture_output=True, text=True).stdout
        for more in ((), (f"{YNNPACK}=",))
    ]
    assert all(outputs) and outputs[0] != outputs[1]
    script = (tmp_path / "part.py").read_text()
    assert "p.dot_general_p.bind(" in script
    as_jax = [sys.executable, "-m", "hlofront", "as-jax", "part.py"]
    done = subprocess.run(
        as_jax, cwd=tmp_path, capture_output=True, text=True, env=without_guards()
    )
    whole, stepwise = done.stdout.splitlines()[:2]
    assert whole.split("[")[1] != stepwise.split("[")[1], done.stderr


def without_guards():
    return {**os.environ, "HLOFRONT_XLA_GUARDS": "0", "HLOFRONT_CPU_FORMULAS": "0"}


@pytest.mark.long
def test_maxima_that_are_wrong_even_by_themselves(no_guards):
    x = np.ones((300, 1000), np.float32)
    x[:, 33] = np.nan
    report = find_miscompile(lambda x: x.max(1) * 2, isolated=False, jaxlibs=())(x)
    assert report.is_alone and named(report) == ["reduce_max"]
    assert report.part[0].stepwise == "nan" and report.cures
    assert "This operation is wrong even when it is compiled by itself" in str(report)


@pytest.mark.long
def test_a_process_that_ends(no_guards):
    a = np.ones((3, 1, 2, 2, 8, 8, 8), np.float32)
    report = find_miscompile(lambda a, b: (a * b).sum(3) + 1, jaxlibs=())(a, a)
    assert report.kind == "crash" and named(report) == ["mul", "reduce_sum"]
    assert "-11" in report.failure and "ends the process on" in str(report)
    assert report.passes == ("dot-library-rewriter",) and report.cures[0][0] == YNNPACK
