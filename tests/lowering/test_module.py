"""Modules: names, dead code, kept arguments, shared programs, verification."""

import concurrent.futures
import os
import subprocess
import sys

import numpy as np
import pytest

import hlofront
from hlofront import lax
from hlofront.base.errors import VerificationError
from hlofront.bridge import mlir
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer, lower
from hlofront.lowering.core.types import dense
from hlofront.transforms.stage import stage

x = np.ones((2, 3), np.float32)


def text_of(fun, *args, **options):
    return hlofront.jit(fun, **options).lower(*args).as_text()


def test_the_module_and_its_main_function_are_named():
    def train_step(x):
        return {"loss": lax.reduce_sum(x, (0, 1)), "x": x}

    text = text_of(train_step, x)
    assert text.startswith("module @jit_train_step attributes {mhlo.num_partitions = 1 : i32")
    assert "func.func public @main(%arg0: tensor<2x3xf32>)" in text
    assert "jax.result_info = \"result['loss']\"" in text


def test_dead_equations_and_unused_arguments_do_not_reach_the_module():
    def f(a, b):
        lax.sin(b)
        return lax.add(a, 1.0)

    text = text_of(f, x, x)
    assert "sine" not in text and "%arg1" not in text
    assert "%arg1" in text_of(f, x, x, keep_unused=True)
    lowered = hlofront.jit(f).lower(x, x)
    assert lowered.compile().input_shardings[0][1] is None
    np.testing.assert_array_equal(lowered.compile()(x, x), x + 1)


@pytest.mark.parametrize(
    "transform", [hlofront.jit, hlofront.checkpoint, lambda f: hlofront.vmap(hlofront.jit(f))]
)
def test_unused_results_of_nested_programs_do_not_reach_the_module(transform):
    g = transform(lambda a, b: (lax.neg(a), lax.sin(b)))
    text = text_of(lambda a, b: g(a, b)[0], x, x)
    assert "sine" not in text and "%arg1" not in text
    np.testing.assert_array_equal(hlofront.jit(lambda a, b: g(a, b)[0])(x, 2 * x), -x)


def test_calls_whose_same_results_are_used_are_one_function():
    g = hlofront.jit(lambda a, b: (lax.neg(a), lax.sin(b)))
    text = text_of(lambda a, b: (g(a, b)[1], g(b, a)[1], g(a, a)[0]), x, x)
    assert text.count("func.func private") == 2
    assert text.count("stablehlo.sine") == text.count("stablehlo.negate") == 1


def test_equal_programs_are_one_function_and_others_get_names_of_their_own():
    def make(c):
        def g(y):
            return lax.mul(y, c)

        return hlofront.jit(g)

    g, h = make(2.0), make(3.0)
    text = text_of(lambda x: lax.add(g(g(x)), h(x)), x)
    assert text.count("func.func private") == 2
    assert "@g(" in text and "@g_0(" in text
    # Another shape is another program.
    assert text_of(lambda x: (g(x), g(2.0)), x).count("func.func private") == 2


def test_equal_scalars_of_a_function_are_one_constant():
    def f(x):
        for _ in range(5):
            x = lax.add(lax.mul(x, x), 1.5)
        return x

    text = text_of(f, x)
    assert text.count("stablehlo.constant") == 1
    assert text.count("stablehlo.broadcast_in_dim") == 1


@pytest.mark.parametrize(
    "name",
    "bool int4 uint4 int8 uint8 int16 uint16 int32 uint32 bfloat16 float16 float32 complex64 "
    "float8_e4m3fn float8_e5m2".split(),
)
def test_constants_of_every_dtype_keep_their_values(name):
    dtype = np.dtype(name)
    values = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    out = hlofront.jit(lambda: values)()
    assert out.dtype == dtype
    np.testing.assert_array_equal(np.asarray(out), values)
    equal = np.full((2, 2), 1).astype(dtype)
    np.testing.assert_array_equal(np.asarray(hlofront.jit(lambda: equal)()), equal)


def test_constants_keep_nan_signed_zero_and_infinity():
    values = np.array([np.nan, -0.0, np.inf, -np.inf, 0.0], np.float32)
    out = np.asarray(hlofront.jit(lambda: values)())
    assert out.tobytes() == values.tobytes()
    zeros = np.array([0.0, -0.0], np.float32)
    assert np.asarray(hlofront.jit(lambda: zeros)()).tobytes() == zeros.tobytes()


def test_empty_constants():
    assert str(dense(np.zeros((0, 3), np.float32))) == "dense<> : tensor<0x3xf32>"
    assert hlofront.jit(lambda: np.zeros((0, 3), np.float32))().shape == (0, 3)


def test_a_wrong_lowering_rule_is_caught_before_xla():
    wrong_p = Primitive("wrong_for_test")

    @infer(wrong_p)
    def _(x):
        return x

    @lower(wrong_p)
    def _(build, x):
        return build.op("stablehlo.add", (x, build.constant(np.float64(1.0))))

    with pytest.raises(VerificationError, match="a lowering rule is wrong"):
        hlofront.jit(lambda x: wrong_p.bind(x)).lower(x)


def test_a_primitive_without_a_lowering_rule_says_where_to_add_it():
    bare_p = Primitive("bare_for_test")

    @infer(bare_p)
    def _(x):
        return x

    with pytest.raises(NotImplementedError, match="rule for 'bare_for_test' not implemented"):
        hlofront.jit(lambda x: bare_p.bind(x))(x)


def test_staging_needs_no_lowering():
    program = stage(lambda a: [lax.sin(a)], [hlofront.typeof(x)])
    assert [e.primitive.name for e in program.eqns] == ["sin"]


def test_arrays_that_no_device_can_hold_are_refused_and_the_process_lives():
    with pytest.raises(ValueError, match="more than any device can address"):
        lax.full((2**40, 2**40), 1.0)
    with pytest.raises(hlofront.errors.JaxRuntimeError, match="memory"):
        lax.full((2**40, 2**18), 1.0).block_until_ready()
    assert hlofront.eval_shape(lambda: lax.full((2**40, 2**40), 1.0)).shape == (2**40, 2**40)


IMPORTED = """
import sys
import hlofront, hlofront.numpy as jnp, numpy as np
x = np.ones((3, 3), np.float32)
step = hlofront.jit(lambda x, i: jnp.where(x > 0, x @ x, x.at[i].add(x[i])))
step.lower(x, 1).compile()
classes = "jaxlib.mlir.dialects.stablehlo"
assert classes not in sys.modules
from hlofront.bridge.mlir import ir
module = step.lower(x, 1).compiler_ir("stablehlo")
(main,) = (op for op in module.body.operations if op.attributes["sym_name"].value == "main")
named = [op for op in main.body.blocks[0].operations if op.name == "stablehlo.dot_general"]
assert type(named[0]) is sys.modules[classes].DotGeneralOp
"""


def test_classes_of_operations_are_imported_by_who_reads_a_module_alone():
    environment = {**os.environ, "HLOFRONT_CACHE": "off"}
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_threads_that_parse_attributes_leave_mlirs_search_path_as_it_was():
    before = list(mlir._globals.dialect_search_modules)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            parsed = list(threads.map(mlir.parsed_attribute, (f"{i} : i32" for i in range(4000))))
    finally:
        sys.setswitchinterval(interval)
    assert [str(each) for each in parsed[:2]] == ["0 : i32", "1 : i32"]
    assert list(mlir._globals.dialect_search_modules) == before
