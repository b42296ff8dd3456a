"""Taylor mode: a program becomes one that also computes the terms of its results' series.

`jet_program(program, moving, order)` takes the primal inputs and then the terms of those that have
a series, and returns the primal results and then the terms of those that have one.
"""

import hlofront as jax
from hlofront import lax
from hlofront.core import rules
from hlofront.core.symbolic_zeros import zero_series
from hlofront.transforms.taylor import jet_program
from tests.support.jaxprs import SCALAR, assert_prints, equations_of

make_jaxpr = jax.make_jaxpr


def test_an_exponential_solves_its_differential_equation_term_by_term():
    with_terms, has_terms = jet_program(make_jaxpr(lax.exp)(SCALAR), [True], 2)
    assert_prints(
        with_terms,
        """
        { lambda ; a:f32[] b:f32[] c:f32[]. let
            d:f32[] = exp a
            e:f32[] = mul 2.0:f32[] c
            f:f32[] = mul b d
            g:f32[] = mul b f
            h:f32[] = mul e d
            i:f32[] = add_any g h
            j:f32[] = mul 0.5:f32[] i
          in (d, f, j) }
        """,
    )
    assert has_terms == (True,)


def test_terms_of_a_product_are_cauchys():
    with_terms, _ = jet_program(make_jaxpr(lax.mul)(SCALAR, SCALAR), [True, True], 1)
    assert_prints(
        with_terms,
        """
        { lambda ; a:f32[] b:f32[] c:f32[] d:f32[]. let
            e:f32[] = mul a b
            f:f32[] = mul a d
            g:f32[] = mul c b
            h:f32[] = add_any f g
          in (e, h) }
        """,
    )


def test_a_linear_primitive_is_applied_to_each_term():
    with_terms, _ = jet_program(make_jaxpr(lax.neg)(SCALAR), [True], 2)
    assert_prints(
        with_terms,
        """
        { lambda ; a:f32[] b:f32[] c:f32[]. let
            d:f32[] = neg a
            e:f32[] = neg b
            f:f32[] = neg c
          in (d, e, f) }
        """,
    )


def test_a_primitive_without_taylor_rule_expands_its_jvp_rule_to_one_order_less():
    assert lax.log_p not in rules.taylor
    with_terms, _ = jet_program(make_jaxpr(lax.log)(SCALAR), [True], 2)
    assert_prints(
        with_terms,
        """
        { lambda ; a:f32[] b:f32[] c:f32[]. let
            d:f32[] = mul 2.0:f32[] c
            e:f32[] = div b a
            f:f32[] = mul b e
            g:f32[] = sub d f
            h:f32[] = div g a
            i:f32[] = mul 0.5:f32[] h
            j:f32[] = log a
          in (j, e, i) }
        """,
    )


def test_the_general_rule_does_not_grow_exponentially():
    """Each order of asin is one more of the slope's series, not two more of asin."""
    counts = [
        len(jet_program(make_jaxpr(lax.asin)(SCALAR), [True], order)[0].eqns) for order in (4, 8)
    ]
    assert counts[1] < 5 * counts[0]


def test_what_is_compared_or_rounded_is_not_expanded():
    program = make_jaxpr(lambda x: lax.select(lax.floor(lax.exp(x)) > 2, x, -x))(SCALAR)
    with_terms, _ = jet_program(program, [True], 3)
    assert len(equations_of(with_terms, "exp")) == 1
    assert not equations_of(with_terms, "add_any")


def test_a_constant_has_no_terms():
    _, has_terms = jet_program(make_jaxpr(lambda x: (x, lax.floor(x)))(SCALAR), [True], 3)
    assert has_terms == (True, False)


def test_a_rule_of_another_package_is_handed_zeros_as_arrays():
    handed = []
    primitive = jax.extend.core.Primitive("handed")
    primitive.def_abstract_eval(lambda x, y: x)

    def rule(primals, series):
        handed.extend(series)
        return primals[0], zero_series

    rules.taylor[primitive] = rule
    jet_program(make_jaxpr(primitive.bind)(SCALAR, SCALAR), [True, False], 2)
    assert [len(terms) for terms in handed] == [2, 2]
    del rules.taylor[primitive]
