"""The transformation jet: conventions, functions with rules of their own, branches and loops."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.experimental.jet import jet
from tests.support.jaxprs import equations_of

X = jnp.array([0.3, 0.7])


def along_a_line(function, x=X, order=3):
    """Return the derivatives of a function of orders 1 to 3, along the line of slope 1."""
    ones, zeros = jnp.ones_like(x), jnp.zeros_like(x)
    return jet(function, (x,), ([ones] + [zeros] * (order - 1),))[1]


def nested(function, x=X, order=3):
    derivatives = []
    for _ in range(order):
        function = slope(function)
        derivatives.append(function(x))
    return derivatives


def slope(function):
    return lambda x: jax.jvp(function, (x,), (jnp.ones_like(x),))[1]


def test_terms_are_derivatives():
    np.testing.assert_allclose(along_a_line(lambda x: x**3, 2.0), [12.0, 12.0, 6.0])


def test_coefficients_are_derivatives_over_factorials():
    terms = jet(lambda x: x**3, (2.0,), ((1.0, 0.0, 0.0),), factorial_scaled=False)[1]
    np.testing.assert_allclose(terms, [12.0, 6.0, 1.0])


def body_of_two(carry, x):
    return (carry[1], carry[0] * x), jnp.sin(carry[0])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: lax.scan(body_of_two, (x, jnp.ones(2)), jnp.stack([x, x * x, x])),
        lambda x: lax.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, c[2], c[1] * x), (0, x, jnp.ones(2))
        )[1:],
        lambda x: lax.cond(x[0] < 1, lambda y: (y * y, y[0]), lambda y: (jnp.ones(2), 1.0), x),
        jax.checkpoint(lambda x: jnp.sin(x) * x),
        lambda x: jnp.linalg.solve(jnp.outer(x, x) + jnp.eye(2), x),
        lambda x: jnp.where(x == 0, 1.0, x) ** x,
    ],
    ids=["scan", "while", "cond", "checkpoint", "solve", "power"],
)
def test_programs_within_a_function_are_expanded(function):
    terms = jax.tree.leaves(along_a_line(function), is_leaf=lambda x: isinstance(x, list))
    wanted = [jax.tree.leaves(one) for one in nested(function)]
    for own, orders in zip(terms, zip(*wanted, strict=True), strict=True):
        np.testing.assert_allclose(own, orders, rtol=1e-4, atol=1e-4)


def test_a_scan_stays_one_scan():
    function = lambda x: lax.scan(lambda c, _: (c * x, None), x, None, length=9)[0]
    program = jax.make_jaxpr(lambda x: along_a_line(function, x))(1.5)
    assert len(equations_of(program, "scan")) == 1


def test_a_custom_jvp_rule_is_followed_as_in_jvp():
    @jax.custom_jvp
    def square(x):
        return x * x

    square.defjvp(lambda primals, tangents: (square(*primals), 10 * primals[0] * tangents[0]))
    np.testing.assert_allclose(along_a_line(square, 2.0), [20.0, 10.0, 0.0])
    np.testing.assert_allclose(along_a_line(jax.jit(square), 2.0), [20.0, 10.0, 0.0])


def test_a_function_with_a_custom_vjp_rule_is_expanded_itself():
    square = jax.custom_vjp(lambda x: x * x)
    square.defvjp(lambda x: (x * x, x), lambda x, ct: (100 * x * ct,))
    np.testing.assert_allclose(along_a_line(square, 2.0), [4.0, 2.0, 0.0])
    np.testing.assert_allclose(along_a_line(jax.jit(square), 2.0), [4.0, 2.0, 0.0])


def test_a_power_is_expanded_at_zero():
    np.testing.assert_allclose(along_a_line(lambda x: x**3.0, 0.0), [0.0, 0.0, 6.0])


def test_python_may_branch_on_what_does_not_move():
    np.testing.assert_allclose(along_a_line(lambda x: x * x if x > 0 else x, 2.0), [4.0, 2.0, 0.0])


def test_integers_are_converted_and_numbers_broadcast():
    value, terms = jet(lambda x: x * x, (jnp.array([1, 2]),), ((1, 0),))
    np.testing.assert_array_equal(value, [1.0, 4.0])
    np.testing.assert_array_equal(terms, [[2.0, 4.0], [2.0, 2.0]])


@pytest.mark.parametrize(
    ("series", "class_", "words"),
    [
        ((), ValueError, "0 series for 1 arguments"),
        (((np.float64(1),), (1.0,)), ValueError, "2 series for 1 arguments"),
        (((1j,),), TypeError, "dtype complex64, which does not promote to the argument's, float32"),
        (((jnp.ones(3),),), TypeError, r"shape \(3,\), expected the argument's shape \(2,\)"),
        (((None,),), ValueError, "term 0 for argument 0 is not an array"),
    ],
    ids=["none", "too many", "dtype", "shape", "no array"],
)
def test_what_is_no_series_is_refused(series, class_, words):
    with pytest.raises(class_, match=words):
        jet(jnp.sin, (X,), series)


def test_a_tracer_that_leaks_is_named():
    kept = []
    jet(lambda x: kept.append(x) or x, (1.0,), ((1.0,),))
    with pytest.raises(jax.errors.UnexpectedTracerError, match="for jet"):
        kept[0] + 1
