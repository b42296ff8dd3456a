"""Derivatives and batches of scan: each is again a scan, of a larger step.

A scan's step takes (constants, carry, a slice of the inputs) to (carry, a slice of the outputs).
"""

import numpy as np

import hlofront as jax
from hlofront import lax
from hlofront.transforms.simplify import dead_code
from tests.support.jaxprs import SCALAR, assert_prints, equations_of

INPUTS = np.array([1.0, 2.0, 3.0, 4.0], np.float32)


def products(carry, inputs):
    """Scan that multiplies, and collects the sine of each carry."""
    return lax.scan(lambda c, x: (lax.mul(c, x), lax.sin(c)), carry, inputs)


def sum_of(inputs):
    total, _ = lax.scan(lambda c, x: (lax.add(c, x), None), np.float32(0), inputs)
    return total


def the_scan(function, *args):
    """Return the parameters of the only scan of a function's program."""
    (equation,) = equations_of(jax.make_jaxpr(function)(*args), "scan")
    return equation.params


def the_step(function, *args):
    return the_scan(function, *args)["jaxpr"]


def test_the_step_is_a_program_of_its_own():
    assert_prints(
        the_step(products, SCALAR, INPUTS),
        "{ lambda ; a:f32[] b:f32[]. let c:f32[] = mul a b; d:f32[] = sin a in (c, d) }",
    )


# ---- jvp -----------------------------------------------------------------------------------------


def along_carry(carry, tangent):
    return jax.jvp(lambda c: products(c, INPUTS), (carry,), (tangent,))


def test_jvp_is_one_scan_that_carries_the_tangent_along():
    parameters = the_scan(along_carry, SCALAR, SCALAR)
    assert parameters["num_carry"] == 2
    assert_prints(
        parameters["jaxpr"],
        """
        { lambda ; a:f32[] b:f32[] c:f32[]. let
            d:f32[] = mul a c
            e:f32[] = mul b c
            f:f32[] = sin a
            g:f32[] = cos a
            h:f32[] = mul b g
          in (d, e, f, h) }
        """,
    )


def test_a_carry_that_no_tangent_reaches_carries_none():
    def counted(inputs, tangents):
        def count(inputs):
            return lax.scan(lambda c, x: (c + 1.0, lax.sin(x)), 0.0, inputs)

        return jax.jvp(count, (inputs,), (tangents,))

    assert the_scan(counted, INPUTS, INPUTS)["num_carry"] == 1


def test_a_carry_becomes_moving_where_inputs_move_it():
    """The first carry is a constant: its tangent is zero before the first step only."""
    _, tangent = jax.jvp(sum_of, (INPUTS,), (10 * INPUTS,))
    assert float(tangent) == 100.0


# ---- linearize and transpose ---------------------------------------------------------------------


def repeated_sine(x):
    return lax.scan(lambda c, _: (lax.sin(c), None), x, None, length=4)[0]


def test_reverse_mode_is_a_scan_forwards_and_one_backwards():
    program = jax.make_jaxpr(jax.grad(repeated_sine))(SCALAR)
    forwards, backwards = equations_of(program, "scan")
    assert (forwards.params["reverse"], backwards.params["reverse"]) == (False, True)
    assert_prints(
        forwards.params["jaxpr"],
        "{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = cos a in (b, c) }",
    )
    assert_prints(
        backwards.params["jaxpr"],
        "{ lambda ; a:f32[] b:f32[]. let c:f32[] = mul a b in (c,) }",
    )


def test_the_scan_forwards_collects_the_residuals_of_each_step():
    program = jax.make_jaxpr(jax.grad(repeated_sine))(SCALAR)
    forwards, backwards = equations_of(program, "scan")
    residuals = forwards.outvars[1]
    assert residuals.aval.shape == (4,)
    assert residuals in backwards.invars


def test_the_transpose_of_a_sum_gives_each_input_the_cotangent():
    parameters = the_scan(lambda ct: jax.linear_transpose(sum_of, INPUTS)(ct), SCALAR)
    assert parameters["reverse"]
    assert_prints(parameters["jaxpr"], "{ lambda ; a:f32[]. let  in (a, a) }")


def test_the_transpose_of_a_reversed_scan_goes_forwards():
    def reversed_sum(inputs):
        return lax.scan(lambda c, x: (lax.add(c, x), None), np.float32(0), inputs, reverse=True)[0]

    assert not the_scan(lambda ct: jax.linear_transpose(reversed_sum, INPUTS)(ct), SCALAR)[
        "reverse"
    ]


def test_a_constant_of_the_step_gets_the_sum_over_the_steps():
    def weighted(weight):
        return lax.scan(lambda c, x: (c + weight * x, None), np.float32(0), INPUTS)[0]

    assert float(jax.grad(weighted)(SCALAR)) == INPUTS.sum()


def test_the_gradient_is_that_of_the_unrolled_loop():
    def unrolled(x):
        for _ in range(4):
            x = lax.sin(x)
        return x

    np.testing.assert_allclose(
        jax.grad(repeated_sine)(SCALAR), jax.grad(unrolled)(SCALAR), rtol=1e-6
    )


# ---- vmap ----------------------------------------------------------------------------------------


def test_a_batch_of_carries_is_one_scan_of_larger_carries():
    step = the_step(jax.vmap(products, (0, None)), np.ones(2, np.float32), INPUTS)
    assert_prints(
        step,
        """
        { lambda ; a:f32[2] b:f32[]. let
            c:f32[2] = mul a b
            d:f32[2] = sin a
          in (c, d) }
        """,
    )


def test_a_batch_of_inputs_is_scanned_along_the_second_axis():
    program = jax.make_jaxpr(jax.vmap(products, (None, 0)))(SCALAR, np.ones((2, 4), np.float32))
    (scan,) = equations_of(program, "scan")
    assert [x.aval.shape for x in scan.invars] == [(2,), (4, 2)]


def test_a_carry_that_is_mapped_after_the_first_step_is_broadcast():
    batch = np.stack([INPUTS, 2 * INPUTS])
    totals = jax.vmap(sum_of)(batch)
    np.testing.assert_array_equal(totals, batch.sum(axis=1))


def test_the_length_of_the_loop_does_not_grow_with_the_batch():
    parameters = the_scan(jax.vmap(sum_of), np.ones((100, 4), np.float32))
    assert parameters["length"] == 4


# ---- dead code -----------------------------------------------------------------------------------


def test_outputs_that_nobody_reads_are_not_collected():
    program = jax.make_jaxpr(products)(SCALAR, INPUTS)
    smaller, is_used = dead_code(program.jaxpr, [True, False])
    assert is_used == [True, True]
    (scan,) = smaller.eqns
    assert_prints(
        scan.params["jaxpr"], "{ lambda ; a:f32[] b:f32[]. let c:f32[] = mul a b in (c,) }"
    )
