"""Linearization: values are computed now, and a linear program of the tangents is recorded.

`linearize_flat(fun, primals)` returns the values, and the program that takes tangents of the inputs
to tangents of the outputs; its constants are the residuals, the values that the tangents need.
"""

import numpy as np

import hlofront as jax
from hlofront import lax
from hlofront.transforms.linearize import linearize_flat
from tests.support.jaxprs import SCALAR, VECTOR, assert_prints


def linearize(function, *primals):
    return linearize_flat(lambda *args: [function(*args)], primals)


def test_the_program_of_tangents_holds_what_is_linear():
    linearized = linearize(lax.sin, SCALAR)
    np.testing.assert_allclose(linearized.outputs[0], np.sin(2.0), rtol=1e-6)
    assert_prints(linearized.program, "{ lambda a:f32[]; b:f32[]. let c:f32[] = mul b a in (c,) }")


def test_what_the_tangents_need_of_the_values_is_a_constant():
    linearized = linearize(lax.sin, SCALAR)
    (residual,) = linearized.program.consts
    np.testing.assert_allclose(residual, np.cos(2.0), rtol=1e-6)


def test_scalars_of_numpy_are_written_as_literals():
    linearized = linearize(lambda x: lax.mul(x, np.float32(3.0)), SCALAR)
    assert_prints(linearized.program, "{ lambda ; a:f32[]. let b:f32[] = mul a 3.0:f32[] in (b,) }")


def test_a_chain_is_a_chain_of_multiplications():
    linearized = linearize(lambda x: lax.sin(lax.exp(x)), VECTOR)
    assert_prints(
        linearized.program,
        """
        { lambda a:f32[3] b:f32[3]; c:f32[3]. let
            d:f32[3] = mul c a
            e:f32[3] = mul d b
          in (e,) }
        """,
    )
    np.testing.assert_allclose(linearized.program.consts[0], np.exp(VECTOR), rtol=1e-6)
    np.testing.assert_allclose(linearized.program.consts[1], np.cos(np.exp(VECTOR)), rtol=1e-4)


def test_linear_operations_need_no_residuals():
    linearized = linearize(lambda x: lax.reduce_sum(lax.neg(x), (0,)), VECTOR)
    assert linearized.program.consts == []
    assert [e.primitive.name for e in linearized.program.eqns] == ["neg", "reduce_sum"]


def test_an_integer_has_no_tangent():
    linearized = linearize_flat(lambda x, n: [lax.neg(x), n], [SCALAR, np.int32(3)])
    assert linearized.has_tangent == [True, False]
    assert linearized.present == [True, False]
    assert_prints(linearized.program, "{ lambda ; a:f32[]. let b:f32[] = neg a in (b,) }")


def test_a_result_that_does_not_move_has_no_tangent():
    linearized = linearize_flat(lambda x: [lax.neg(x), VECTOR], [SCALAR])
    assert linearized.present == [True, False]


def test_a_call_of_jit_is_split_into_values_and_tangents():
    linearized = linearize(jax.jit(lambda x: lax.sin(x)), SCALAR)
    (call,) = linearized.program.eqns
    assert call.primitive.name == "jit"
    assert [e.primitive.name for e in call.params["jaxpr"].eqns] == ["mul"]


# ---- linearize and grad, of functions ------------------------------------------------------------


def test_the_tangent_map_is_used_again_without_running_the_function():
    calls = []

    def cube(x):
        calls.append(x)
        return x**3

    value, tangent_map = jax.linearize(cube, 2.0)
    assert float(value) == 8.0
    assert [float(tangent_map(t)) for t in (1.0, 2.0, -1.0)] == [12.0, 24.0, -12.0]
    assert len(calls) == 1


def test_the_tangent_map_agrees_with_jvp():
    def function(x):
        return x * lax.sin(x)

    _, tangent_map = jax.linearize(function, VECTOR)
    _, tangent = jax.jvp(function, (VECTOR,), (VECTOR,))
    np.testing.assert_allclose(tangent_map(VECTOR), tangent, rtol=1e-6)


def test_the_tangent_map_is_linear():
    _, tangent_map = jax.linearize(lambda x: lax.exp(lax.sin(x)), VECTOR)
    first, second = VECTOR, VECTOR[::-1]
    np.testing.assert_allclose(
        tangent_map(2 * first + second), 2 * tangent_map(first) + tangent_map(second), rtol=1e-5
    )


def test_a_tangent_that_a_rule_gives_as_a_python_float_is_an_array():
    rule = jax.custom_jvp(lambda x: x * 2)
    rule.defjvp(lambda primals, tangents: (3.0, 4.0))
    value, tangent = jax.linearize(rule, 2.0)
    assert isinstance(tangent(1.0), jax.Array)
    assert value == 3.0


def test_the_tangent_map_can_be_jitted():
    tangent = jax.linearize(lax.sin, 1.0)[1]
    np.testing.assert_allclose(jax.jit(tangent)(2.0), 2 * np.cos(1.0), rtol=1e-6)


def test_a_backward_rule_gets_the_cotangent_of_a_python_scalar_as_an_array():
    seen = []
    product = jax.custom_vjp(lambda x, y: x * y)

    def backward(operands, cotangent):
        seen.append((cotangent.shape, cotangent.dtype))
        return cotangent * operands[1], cotangent * operands[0]

    product.defvjp(lambda x, y: (product(x, y), (x, y)), backward)
    assert jax.grad(product)(1.5, 2.5) == 2.5
    assert seen == [((), np.float32)]
