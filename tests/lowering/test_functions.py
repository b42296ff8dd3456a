"""What replaces an operation is a private function, called where the operation is."""

import re

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
import hlotools
from hlofront import lax
from hlofront.base.config import options
from hlofront.experimental.xla_metadata import set_xla_metadata
from hlotools.ir.stablehlo_parser import read_stablehlo
from tests.support.readable_programs import programs

pytestmark = pytest.mark.cpu

without_formulas = options["hlofront_cpu_formulas"](False)
MANY = 20_000
X = np.linspace(0.5, 1.5, MANY, dtype=np.float32)


def lines(text):
    return [line.strip() for line in text.splitlines()]


def main_of(text):
    return [line for line in lines(text.split("func.func private")[0]) if line]


def calls_in(text):
    return re.findall(r"call @(\w+)", text)


def test_a_sine_is_a_call():
    text = jax.jit(jnp.sin).lower(X).as_text()
    assert "%0 = call @sin_f32(%arg0) : (tensor<20000xf32>) -> tensor<20000xf32>" in lines(text)
    assert len(main_of(text)) == 5
    assert "func.func private @sin_f32" in text and 'hlofront.primitive = "sin"' in text


def test_equations_of_equal_types_share_a_function():
    def f(x, y):
        return jnp.sin(jnp.sin(x)) + jnp.sin(y) + jnp.sin(x.astype(jnp.float16))

    text = jax.jit(f).lower(X, X.reshape(-1, 2).repeat(2, 0).reshape(-1)[:MANY]).as_text()
    assert calls_in(text) == ["sin_f32"] * 3 + ["sin_f16"]
    assert text.count("func.func private @sin") == 2
    text = jax.jit(lambda x, y: jnp.sin(x).sum() + jnp.sin(y).sum()).lower(X, X[1:]).as_text()
    assert calls_in(text)[:2] == ["sin_f32", "sin_f32_0"]


def test_parameters_are_part_of_a_function():
    x = X.reshape(100, 200)
    text = jax.jit(lambda x: jnp.cumsum(x, 0) + jnp.cumsum(x, 1)).lower(x).as_text()
    assert calls_in(text) == ["cumsum_f32", "cumsum_f32_0"]


PROGRAMS = {
    "argsort": (jnp.argsort, X),
    "top_k": (lambda x: lax.top_k(x, 5000), X),
    "argmax": (jnp.argmax, np.resize(X, 100_000)),
    "max": (jnp.max, X),
    "median": (jnp.median, np.resize(X, 100_000)),
    "pool": (
        lambda x: lax.reduce_window(x, 0.0, lax.add, (3,), (1,), "SAME"),
        np.resize(X, 100_000),
    ),
    "small products": (lambda x: x @ x, np.resize(X, (5000, 3, 3))),
    "softmax": (jax.nn.softmax, X.reshape(100, 200)),
}
PROGRAMS = {name: (function, (x,)) for name, (function, x) in PROGRAMS.items()}
PROGRAMS |= {name: (function, operands) for name, function, operands in programs(jax)}


@pytest.mark.parametrize("name", PROGRAMS)
def test_main_is_no_longer_than_without_replacements(name):
    function, operands = PROGRAMS[name]
    text = jax.jit(function).lower(*operands).as_text()
    with without_formulas:
        plain = jax.jit(function).lower(*operands).as_text()
    assert len(main_of(text)) <= len(main_of(plain))


def test_formulas_inside_a_formula_are_functions_too():
    text = jax.jit(lambda a, x: lax.igamma(a, x) + lax.lgamma(x)).lower(X, X).as_text()
    assert calls_in("\n".join(main_of(text))) == ["igamma_f32", "lgamma_f32"]
    assert calls_in(text).count("lgamma_f32") > 1 == text.count("func.func private @lgamma_f32(")


def test_calls_are_in_loops_and_branches_and_regions_have_none():
    def f(x):
        def body(i, x):
            return lax.cond(i < 1, jnp.sin, jnp.cos, x)

        return lax.fori_loop(0, 3, body, x)

    assert calls_in(jax.jit(f).lower(X).as_text()) == ["sin_f32", "cos_f32"][::-1]
    cosines = jax.jit(lambda x: lax.reduce(x, 0.0, lambda a, b: lax.bessel_i0e(a + b), (0,)))
    assert calls_in(cosines.lower(X[:10]).as_text()) == []


def test_frontend_attributes_are_at_each_operation():
    def f(x):
        with set_xla_metadata(a="b"):
            return jnp.sin(x)

    text = jax.jit(f).lower(X).as_text()
    assert "call @" not in text and text.count('a = "b"') > 50


def test_the_cost_of_each_operation_is_at_its_line():
    def f(x):
        y = jnp.sin(x)
        z = jnp.cumsum(x)
        return y + z

    text = jax.jit(f).lower(X).compile().as_text()
    first = f.__code__.co_firstlineno
    flops = {line.line - first: line.flops for line in hlotools.costs(text).lines if line.flops}
    assert set(flops) == {1, 2, 3}
    assert flops[1] > 20 * MANY and flops[2] > 5 * MANY and flops[3] == MANY
    names = re.findall(r'op_name="([^"]*)"', text)
    assert {name.rpartition("/")[2] for name in names} <= {"sin", "cumsum", "add", "x"}


def test_a_diff_names_the_primitive():
    programs = [jax.jit(g).lower(X).as_text() for g in (jnp.tanh, jnp.sin, jnp.cos)]
    for before, after, change in (
        (programs[0], programs[1], "opcode of %0: tanh -> sin"),
        (programs[1], programs[2], "opcode of %0: sin -> cos"),
    ):
        difference = hlotools.diff(before, after)
        assert len(difference.changes) == 1
        assert change in str(difference)
    opcodes = [each.opcode for each in read_stablehlo(programs[1]).entry]
    assert opcodes == ["parameter", "sin"]


def test_zeros_of_both_signs_are_different_parameters():
    numbers = lax.GatherDimensionNumbers((), (1,), (1,), (0,), (0,))

    def f(x, i):
        return [
            lax.gather(x, i, numbers, (1, 1), mode="fill", fill_value=zero)
            for zero in (0.0, -0.0, 0.0)
        ]

    operands = X.reshape(-1, 8), np.zeros((MANY // 8, 1, 1), np.int32)
    text = jax.jit(f).trace(*operands).lower(lowering_platforms=("tpu",)).as_text()
    assert calls_in(text) == ["gather_f32", "gather_f32_0", "gather_f32"]


@pytest.mark.parametrize("function", [jnp.var, jnp.std, jnp.linalg.norm])
def test_variances_and_norms_are_functions_with_functions_as_derivatives(function):
    """libtpu simplifies functions before it inlines them, and keeps vectors apart from matrices."""
    x = X[:12].reshape(3, 4)
    for platform in ("cpu", "tpu"):
        for program, count in ((function, 1), (jax.grad(function), 2)):
            traced = jax.jit(lambda x, program=program: program(x)).trace(x)
            text = traced.lower(lowering_platforms=(platform,)).as_text()
            assert len(calls_in("\n".join(main_of(text)))) == count
            # The degrees of freedom are a number.
            assert "stablehlo.select" not in text
