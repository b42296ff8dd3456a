"""Partial evaluation: a program in two, the part that known inputs decide, and the rest.

`partial_eval_program(program, unknown)` returns a known part, from the known inputs to the known
outputs and the residuals; and an unknown part, from the residuals and the unknown inputs to the
unknown outputs.
"""

import numpy as np

import hlofront as jax
from hlofront import lax
from hlofront.core import jaxpr_as_fun
from hlofront.transforms.partial_eval import partial_eval_program
from tests.support.jaxprs import SCALAR, VECTOR, assert_prints

make_jaxpr = jax.make_jaxpr


def test_equations_of_known_values_are_in_the_known_part():
    program = make_jaxpr(lambda x, y: lax.mul(lax.sin(x), y))(SCALAR, SCALAR)
    split = partial_eval_program(program, unknown=[False, True])
    assert_prints(split.known, "{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }")
    assert_prints(split.unknown, "{ lambda ; a:f32[] b:f32[]. let c:f32[] = mul a b in (c,) }")
    assert split.unknown_out == (True,)


def test_a_residual_that_is_an_output_is_said_by_its_index():
    program = make_jaxpr(lambda x, y: (lax.sin(x), lax.mul(lax.sin(x), y)))(SCALAR, SCALAR)
    split = partial_eval_program(program, unknown=[False, True])
    assert split.unknown_out == (False, True)
    # The known part has two sines, as the program had: one for the output, one as a residual.
    assert split.residuals == (1,)


def test_an_output_that_the_unknown_part_reads_is_no_second_residual():
    def function(x, y):
        sine = lax.sin(x)
        return sine, lax.mul(sine, y)

    split = partial_eval_program(make_jaxpr(function)(SCALAR, SCALAR), unknown=[False, True])
    assert_prints(split.known, "{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }")
    assert split.residuals == (0,)


def test_an_input_that_the_unknown_part_reads_is_said_by_its_complement():
    program = make_jaxpr(lambda x, y: lax.mul(x, y))(SCALAR, SCALAR)
    split = partial_eval_program(program, unknown=[False, True])
    assert_prints(split.known, "{ lambda ; a:f32[]. let  in () }")
    assert split.residuals == (~0,)


def test_all_known_leaves_nothing_to_do():
    program = make_jaxpr(lax.sin)(SCALAR)
    split = partial_eval_program(program, unknown=[False])
    assert split.unknown_out == (False,)
    assert split.unknown.eqns == ()


def test_all_unknown_leaves_the_program_as_it_was():
    program = make_jaxpr(lambda x: lax.sin(lax.exp(x)))(SCALAR)
    split = partial_eval_program(program, unknown=[True])
    assert split.known.eqns == ()
    assert_prints(split.unknown, str(program))


def test_an_output_can_be_demanded_of_the_unknown_part():
    program = make_jaxpr(lax.sin)(SCALAR)
    split = partial_eval_program(program, unknown=[False], instantiate=True)
    assert split.unknown_out == (True,)
    assert_prints(split.known, "{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }")
    assert_prints(split.unknown, "{ lambda ; a:f32[]. let  in (a,) }")


def test_what_no_output_needs_is_in_neither_part():
    def function(x, y):
        lax.sin(x)
        lax.cos(y)
        return lax.mul(x, y)

    split = partial_eval_program(make_jaxpr(function)(SCALAR, SCALAR), unknown=[False, True])
    assert split.known.eqns == ()
    assert [e.primitive.name for e in split.unknown.eqns] == ["mul"]


def test_constants_are_with_the_part_that_reads_them():
    constant = jax.numpy.asarray(VECTOR)
    program = make_jaxpr(lambda x, y: (x + constant, y * constant))(VECTOR, VECTOR)
    split = partial_eval_program(program, unknown=[False, True])
    assert len(split.known.consts) == len(split.unknown.consts) == 1


def test_a_call_of_jit_is_split_inside():
    inner = jax.jit(lambda x, y: lax.mul(lax.sin(x), y))
    split = partial_eval_program(make_jaxpr(inner)(SCALAR, SCALAR), unknown=[False, True])
    (known_call,), (unknown_call,) = split.known.eqns, split.unknown.eqns
    assert [e.primitive.name for e in known_call.params["jaxpr"].eqns] == ["sin"]
    assert [e.primitive.name for e in unknown_call.params["jaxpr"].eqns] == ["mul"]


def test_the_two_parts_together_compute_what_the_program_does():
    def function(x, y):
        return lax.exp(x), lax.mul(lax.sin(x), lax.cos(y))

    program = make_jaxpr(function)(VECTOR, VECTOR)
    split = partial_eval_program(program, unknown=[False, True])
    exponential, sine = jaxpr_as_fun(split.known)(VECTOR)
    (product,) = jaxpr_as_fun(split.unknown)(sine, VECTOR)
    np.testing.assert_allclose(exponential, np.exp(VECTOR), rtol=1e-5)
    np.testing.assert_allclose(product, np.sin(VECTOR) * np.cos(VECTOR), rtol=1e-5)
