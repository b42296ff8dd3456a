"""The engine of engine_in_100_lines.md computes what hlofront does, and XLA runs its text."""

import doctest
import pathlib
import re

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.bridge import mlir
from hlofront.pjrt.clients import local_devices
from hlofront.pjrt.compile import compile_module, compile_options

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "explanation" / "engine_in_100_lines.md"
TEXT = PAGE.read_text(encoding="utf-8")
CODE = "\n".join(re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL))
X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
Y = np.float32([0.5, 1, 2])


@pytest.fixture(scope="module")
def engine():
    names = {"__name__": "engine"}
    exec(compile(CODE, str(PAGE), "exec"), names)
    return names


def test_it_has_a_hundred_lines_or_so():
    assert sum(bool(line.strip()) for line in CODE.splitlines()) < 130


def test_its_examples(engine):
    text = "\n".join(re.findall(r"^```pycon\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL))
    example = doctest.DocTestParser().get_doctest(text, engine, PAGE.name, str(PAGE), 0)
    failures = []
    doctest.DocTestRunner(verbose=False).run(example, clear_globs=False, out=failures.append)
    assert example.examples and not failures, "".join(failures)


def programs(add, mul, sin, jvp, vmap):
    """Return functions of X and Y that an engine's operations and transformations are made into."""

    def f(x, y):
        return add(mul(sin(x), y), mul(x, 3.0))

    def derivative(function, x):
        one = add(mul(x, 0.0), 1.0)
        return jvp(function, (x,), (one,))[1]

    def slope(x, y):
        return derivative(lambda x: f(x, y), x)

    def of_rows(function):
        return lambda x, y: vmap(lambda row: function(row, y))(x)

    return {
        "batch": of_rows(f),
        "batch of all operands": lambda x, y: vmap(f)(x, sin(x)),
        "batch of batches": lambda x, y: vmap(lambda a: vmap(lambda b: add(mul(a, b), a))(y))(y),
        "direction": lambda x, y: jvp(f, (x, x), (x, mul(x, x)))[1],
        "second derivative": lambda x, y: derivative(lambda x: slope(x, x), x),
        "batch of derivatives": of_rows(slope),
        "batches of derivatives": lambda x, y: vmap(vmap(slope))(x, x),
        "derivative of a batch": lambda x, y: derivative(lambda x: of_rows(f)(x, y), x),
        "derivative of what a batch shares": lambda x, y: derivative(
            lambda y: vmap(lambda row: mul(slope(row, y), y))(x), y
        ),
    }


OF_HLOFRONT = programs(jnp.add, jnp.multiply, jnp.sin, jax.jvp, jax.vmap)


def run_by_xla(text, *args):
    """Return the result of a module's text on the first CPU."""
    device = local_devices("cpu")[0]
    module = mlir.ir.Module.parse(text, mlir.context)
    loaded = compile_module(device.client, module, [device], compile_options([device]))
    results = loaded.execute_sharded(list(map(jnp.asarray, args)))
    ((result,),) = results.disassemble_into_single_device_arrays()
    return result


@pytest.mark.parametrize("name", OF_HLOFRONT)
def test_it_computes_what_hlofront_computes(engine, name):
    program = programs(*(engine[name] for name in ("add", "mul", "sin", "jvp", "vmap")))[name]
    expected = OF_HLOFRONT[name](X, Y)
    np.testing.assert_allclose(program(X, Y), expected, rtol=1e-5, atol=1e-6)
    text = engine["lower"](*engine["trace"](program, X.shape, Y.shape))
    np.testing.assert_allclose(run_by_xla(text, X, Y), expected, rtol=1e-5, atol=1e-6)


def test_a_constant_result_is_lowered(engine):
    text = engine["lower"](*engine["trace"](lambda x: 2.5, (3,)))
    assert run_by_xla(text, Y) == 2.5
