"""Forward mode: a program becomes one that also computes the tangents of its results.

`jvp_program(program, nonzero)` takes the primal inputs and then the tangents of those inputs for
which `nonzero` says that they have one; it returns the primal results and then the tangents of
those that have one, and per result whether it has one.
"""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base.source import user_frame
from hlofront.transforms.jvp import jvp_program
from tests.support.jaxprs import MATRIX, SCALAR, assert_prints

make_jaxpr = jax.make_jaxpr


def test_a_primitive_is_followed_by_the_equations_of_its_rule():
    program = make_jaxpr(lax.sin)(SCALAR)
    with_tangents, has_tangent = jvp_program(program, [True])
    assert_prints(
        with_tangents,
        """
        { lambda ; a:f32[] b:f32[]. let
            c:f32[] = sin a
            d:f32[] = cos a
            e:f32[] = mul b d
          in (c, e) }
        """,
    )
    assert has_tangent == (True,)


def test_tangents_of_several_operands_are_added():
    program = make_jaxpr(lax.mul)(SCALAR, SCALAR)
    with_tangents, _ = jvp_program(program, [True, True])
    assert_prints(
        with_tangents,
        """
        { lambda ; a:f32[] b:f32[] c:f32[] d:f32[]. let
            e:f32[] = mul a b
            f:f32[] = mul c b
            g:f32[] = mul a d
            h:f32[] = add_any f g
          in (e, h) }
        """,
    )


def test_an_operand_without_tangent_adds_nothing():
    program = make_jaxpr(lax.mul)(SCALAR, SCALAR)
    with_tangents, _ = jvp_program(program, [True, False])
    assert_prints(
        with_tangents,
        """
        { lambda ; a:f32[] b:f32[] c:f32[]. let
            d:f32[] = mul a b
            e:f32[] = mul c b
          in (d, e) }
        """,
    )


def test_tangents_go_through_one_equation_after_the_other():
    program = make_jaxpr(lambda x: lax.neg(lax.exp(x)))(SCALAR)
    with_tangents, _ = jvp_program(program, [True])
    assert_prints(
        with_tangents,
        """
        { lambda ; a:f32[] b:f32[]. let
            c:f32[] = exp a
            d:f32[] = mul b c
            e:f32[] = neg c
            f:f32[] = neg d
          in (e, f) }
        """,
    )


def test_a_result_that_depends_on_no_tangent_has_none():
    program = make_jaxpr(lambda x, y: (lax.neg(x), lax.sin(y)))(SCALAR, SCALAR)
    with_tangents, has_tangent = jvp_program(program, [True, False])
    assert has_tangent == (True, False)
    assert len(with_tangents.out_avals) == 3


def test_a_zero_tangent_becomes_an_array_where_it_must():
    program = make_jaxpr(lambda x, y: lax.neg(y))(SCALAR, SCALAR)
    with_tangents, has_tangent = jvp_program(program, [True, False], instantiate=True)
    assert has_tangent == (True,)
    assert_prints(
        with_tangents,
        "{ lambda ; a:f32[] b:f32[] c:f32[]. let d:f32[] = neg b in (d, 0.0:f32[]) }",
    )


def test_linear_operations_do_the_same_to_tangents():
    program = make_jaxpr(lambda x: lax.transpose(x, (1, 0)))(MATRIX)
    with_tangents, _ = jvp_program(program, [True])
    assert_prints(
        with_tangents,
        """
        { lambda ; a:f32[2,3] b:f32[2,3]. let
            c:f32[3,2] = transpose[permutation=(1, 0)] a
            d:f32[3,2] = transpose[permutation=(1, 0)] b
          in (c, d) }
        """,
    )


def test_the_program_of_tangents_is_made_once():
    program = make_jaxpr(lax.sin)(SCALAR)
    assert jvp_program(program, [True])[0] is jvp_program(program, [True])[0]


# ---- jvp, of functions ---------------------------------------------------------------------------


def test_the_value_and_the_derivative_along_the_tangent():
    value, tangent = jax.jvp(lambda x: x**3, (2.0,), (10.0,))
    assert (float(value), float(tangent)) == (8.0, 120.0)


def test_tangents_have_the_structure_of_the_results():
    values, tangents = jax.jvp(lambda x: {"twice": 2 * x, "pair": (x, x * x)}, (3.0,), (1.0,))
    assert jax.tree.map(float, values) == {"twice": 6.0, "pair": (3.0, 9.0)}
    assert jax.tree.map(float, tangents) == {"twice": 2.0, "pair": (1.0, 6.0)}


def test_jvp_of_jvp_is_the_second_derivative():
    def slope(x):
        return jax.jvp(lambda x: x**3, (x,), (1.0,))[1]

    value, tangent = jax.jvp(slope, (2.0,), (1.0,))
    assert (float(value), float(tangent)) == (12.0, 12.0)


def test_inner_and_outer_tangents_are_not_confused():
    def product(x):
        _, inner = jax.jvp(lambda y: x * y, (5.0,), (1.0,))
        return x * inner

    _, tangent = jax.jvp(product, (3.0,), (1.0,))
    assert float(tangent) == 6.0


def test_stop_gradient_leaves_no_tangent():
    _, tangent = jax.jvp(lambda x: x * lax.stop_gradient(x), (3.0,), (1.0,))
    assert float(tangent) == 3.0


def test_integers_have_tangents_of_dtype_float0():
    zero = np.zeros((), jax.dtypes.float0)
    value, tangent = jax.jvp(lambda n: n + 1, (3,), (zero,))
    assert int(value) == 4
    assert tangent.dtype == jax.dtypes.float0


def test_a_branch_of_python_is_that_of_the_value():
    def absolute(x):
        return x if x > 0 else -x

    _, tangent = jax.jvp(absolute, (-2.0,), (1.0,))
    assert float(tangent) == -1.0


def test_a_tangent_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"shape"):
        jax.jvp(jnp.sin, (np.ones(3, np.float32),), (np.ones(2, np.float32),))


def test_the_operations_of_a_rule_have_one_traceback_and_those_of_a_users_rule_their_own():
    def tracebacks(function):
        program = make_jaxpr(lambda x: jax.jvp(function, (x,), (x,)))(1.0)
        return [equation.source_info.traceback for equation in program.eqns]

    assert len(set(map(id, tracebacks(lax.tanh)))) == 1

    @jax.custom_jvp
    def double(x):
        return x * 2.0

    @double.defjvp
    def _(primals, tangents):
        result = lax.add(*primals, *primals)
        return result, lax.add(*tangents, *tangents)

    assert len({str(user_frame(traceback)) for traceback in tracebacks(double)}) == 2
