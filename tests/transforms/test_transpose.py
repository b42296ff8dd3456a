"""Transposition: a linear program is run backwards, from cotangents of results to those of inputs.

`transpose_program(program, linear, nonzero)` takes the inputs that the program is not linear in,
and then the cotangents of the results for which `nonzero` says that they have one.
"""

import numpy as np

import hlofront as jax
from hlofront import lax
from hlofront.transforms.transpose import transpose_program
from tests.support.jaxprs import MATRIX, SCALAR, VECTOR, assert_prints

make_jaxpr = jax.make_jaxpr


def test_a_product_with_a_constant_is_a_product_with_it():
    program = make_jaxpr(lambda x: lax.mul(x, np.float32(3)))(SCALAR)
    backwards, has_cotangent = transpose_program(program, linear=[True], nonzero=[True])
    assert_prints(backwards, "{ lambda ; a:f32[]. let b:f32[] = mul a 3.0:f32[] in (b,) }")
    assert has_cotangent == (True,)


def test_equations_come_in_reverse_order():
    program = make_jaxpr(lambda x: lax.neg(lax.transpose(x, (1, 0))))(MATRIX)
    backwards, _ = transpose_program(program, linear=[True], nonzero=[True])
    assert_prints(
        backwards,
        """
        { lambda ; a:f32[3,2]. let
            b:f32[3,2] = neg a
            c:f32[2,3] = transpose[permutation=(1, 0)] b
          in (c,) }
        """,
    )


def test_a_value_that_is_used_twice_gets_the_sum_of_its_cotangents():
    program = make_jaxpr(lambda x: lax.add(x, x))(SCALAR)
    backwards, _ = transpose_program(program, linear=[True], nonzero=[True])
    assert_prints(backwards, "{ lambda ; a:f32[]. let b:f32[] = add_any a a in (b,) }")


def test_a_sum_becomes_a_broadcast():
    program = make_jaxpr(lambda x: lax.reduce_sum(x, (0,)))(VECTOR)
    backwards, _ = transpose_program(program, linear=[True], nonzero=[True])
    assert_prints(backwards, "{ lambda ; a:f32[]. let b:f32[3] = broadcast_in_dim a in (b,) }")


def test_a_broadcast_becomes_a_sum():
    program = make_jaxpr(lambda x: lax.broadcast(x, (3,)))(SCALAR)
    backwards, _ = transpose_program(program, linear=[True], nonzero=[True])
    (equation,) = backwards.eqns
    assert equation.primitive.name == "reduce_sum"
    assert equation.params["axes"] == (0,)


def test_a_matrix_product_contracts_the_other_axis():
    program = make_jaxpr(lax.dot)(MATRIX, VECTOR)
    backwards, _ = transpose_program(program, linear=[False, True], nonzero=[True])
    assert_prints(
        backwards,
        """
        { lambda ; a:f32[2,3] b:f32[2]. let
            c:f32[3] = dot_general[dimension_numbers=(([0], [0]), ([], []))] b a
          in (c,) }
        """,
    )


def test_what_is_not_linear_is_computed_forwards():
    program = make_jaxpr(lambda a, x: lax.mul(lax.sin(a), x))(SCALAR, SCALAR)
    backwards, _ = transpose_program(program, linear=[False, True], nonzero=[True])
    assert_prints(
        backwards,
        "{ lambda ; a:f32[] b:f32[]. let c:f32[] = sin a; d:f32[] = mul b c in (d,) }",
    )


def test_an_input_that_no_cotangent_reaches_has_none():
    program = make_jaxpr(lambda x, y: (lax.neg(x), lax.neg(y)))(SCALAR, SCALAR)
    backwards, has_cotangent = transpose_program(program, [True, True], nonzero=[True, False])
    assert has_cotangent == (True, False)
    assert_prints(backwards, "{ lambda ; a:f32[]. let b:f32[] = neg a in (b,) }")


def test_a_zero_cotangent_becomes_an_array_where_it_must():
    program = make_jaxpr(lambda x, y: (lax.neg(x), lax.neg(y)))(SCALAR, SCALAR)
    backwards, has_cotangent = transpose_program(
        program, [True, True], nonzero=[True, False], instantiate=True
    )
    assert has_cotangent == (True, True)
    assert_prints(backwards, "{ lambda ; a:f32[]. let b:f32[] = neg a in (b, 0.0:f32[]) }")


def test_the_transposed_program_is_made_once():
    program = make_jaxpr(lax.neg)(SCALAR)
    first, _ = transpose_program(program, [True], [True])
    again, _ = transpose_program(program, [True], [True])
    assert first is again


# ---- linear_transpose and vjp, of functions ------------------------------------------------------


def test_transposing_twice_is_the_function_itself():
    def function(x):
        return 2.0 * x[::-1]

    backwards = jax.linear_transpose(function, VECTOR)
    forwards = jax.linear_transpose(lambda ct: backwards(ct)[0], VECTOR)
    np.testing.assert_array_equal(forwards(VECTOR)[0], function(VECTOR))


def test_inner_products_are_kept():
    """<A x, y> = <x, A' y>."""
    backwards = jax.linear_transpose(lambda x: lax.dot(MATRIX, x), VECTOR)
    cotangent = np.array([2.0, -1.0], np.float32)
    (transposed,) = backwards(cotangent)
    assert np.vdot(MATRIX @ VECTOR, cotangent) == np.vdot(VECTOR, transposed)


def test_a_gradient_is_a_linearization_transposed():
    def function(x):
        return lax.reduce_sum(lax.sin(x), (0,))

    _, tangent_map = jax.linearize(function, VECTOR)
    (gradient,) = jax.linear_transpose(tangent_map, VECTOR)(np.float32(1.0))
    np.testing.assert_allclose(gradient, jax.grad(function)(VECTOR), rtol=1e-6)
