"""hlotools reads, compares and prices what jax compiled, in jax's own process."""

import os
import pathlib
import subprocess
import sys

import pytest

import hlotools

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


NESTED = """
import {package} as jax
import {package}.numpy as jnp


def masked(x):
    return jnp.where(x > 0, jnp.clip(x, -1, 1), 0.0).sum()


def looped(x, w):
    def step(carry, _):
        return jax.nn.relu(carry @ w), carry.sum()

    return jax.lax.scan(step, x, None, length=5)


def counted(x):
    return jax.nn.one_hot(x[0].astype(jnp.int32), 5) * jnp.tril(x)


x = jax.ShapeDtypeStruct((5, 5), jnp.float32)
for function, *arguments in ((masked, x), (looped, x, x), (counted, x)):
    traced = jax.jit(function).trace(*arguments)
    with open(f"{folder}/{package}.{{function.__name__}}.jaxpr", "w") as file:
        file.write(traced.jaxpr.pretty_print(source_info=True, use_color=False))
    with open(f"{folder}/{package}.{{function.__name__}}.mlir", "w") as file:
        file.write(traced.lower().as_text(debug_info=True))
"""


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """A folder with the programs of `NESTED` by jax and by hlofront."""
    folder = tmp_path_factory.mktemp("both")
    for package, python in (
        ("jax", os.environ["HLOFRONT_ORACLE_PYTHON"]),
        ("hlofront", sys.executable),
    ):
        path = folder / "program.py"
        path.write_text(NESTED.format(package=package, folder=folder))
        subprocess.run([python, str(path)], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
    return folder


@pytest.mark.skipif("HLOFRONT_ORACLE_PYTHON" not in os.environ, reason="no Python that has jax")
@pytest.mark.parametrize("stage", ["jaxpr", "mlir"])
@pytest.mark.parametrize("name", ["masked", "looped", "counted"])
def test_programs_of_jax_line_up_with_ours_through_nested_jits(both, name, stage):
    texts = [(both / f"{package}.{name}.{stage}").read_text() for package in ("jax", "hlofront")]
    difference = hlotools.diff(*texts)
    assert difference.equal, difference.text()


@pytest.mark.skipif("HLOFRONT_ORACLE_PYTHON" not in os.environ, reason="no Python that has jax")
@pytest.mark.parametrize(
    ("name", "before", "after"), [("masked.jaxpr", " gt ", " lt "), ("looped.mlir", "LT", "LE")]
)
def test_what_differs_from_jax_is_all_that_is_told(both, name, before, after):
    first, second = ((both / f"{package}.{name}").read_text() for package in ("jax", "hlofront"))
    changed = second.replace(before, after, 1)
    assert changed != second
    for pair in ((first, changed), (changed, first)):
        said = [change.sentence for change in hlotools.diff(*pair).changes]
        assert len(said) == 1, said
        assert after.strip() in said[0]
