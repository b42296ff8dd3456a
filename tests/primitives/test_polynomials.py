"""lax.polynomial: its program, its derivatives, its loops, and what it refuses."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax


def test_the_derivative_by_x_is_a_polynomial_of_one_degree_less():
    program = jax.make_jaxpr(
        lambda x, t: jax.jvp(lambda x: lax.polynomial(x, [1.0, 2.0, 3.0]), (x,), (t,))
    )(jnp.ones(2), jnp.ones(2))
    names = [equation.primitive.name for equation in program.eqns]
    assert names == ["polynomial", "mul", "mul", "polynomial", "mul"]


def test_derivatives_past_the_degree_are_zero():
    f = lambda x: lax.polynomial(x, [1, 2, 3])
    slope = jax.grad(f)
    curvature = jax.grad(slope)
    assert (slope(2.0), curvature(2.0), jax.grad(curvature)(2.0)) == (14, 6, 0)


def test_the_derivative_has_the_shape_of_the_result_though_only_one_coefficient_has_it():
    f = lambda x: lax.polynomial(x, [jnp.ones(3), 2.0, 0.5])
    _, tangent = jax.jvp(f, (4.0,), (1.0,))
    np.testing.assert_array_equal(tangent, [6, 6, 6])


def test_the_transpose_gives_each_coefficient_the_cotangent_times_its_power():
    x = jnp.array([2.0, 3.0])
    f = lambda a, c: lax.polynomial(x, [a, 0.0, c])
    a, c = jax.linear_transpose(f, 1.0, x)(jnp.array([1.0, 10.0]))
    assert a == 11
    np.testing.assert_array_equal(c, [4, 90])


def test_the_transpose_by_x_is_refused():
    with pytest.raises(TypeError, match="linear in its coefficients, not in x"):
        jax.linear_transpose(lambda x: lax.polynomial(x, [0.0, 2.0]), 1.0)(1.0)


@pytest.mark.parametrize(("unroll", "loops"), [(None, 1), (4, 1), (20, 0), (True, 0), (False, 1)])
def test_more_coefficients_than_unroll_are_a_loop(unroll, loops):
    f = jax.jit(lambda x: lax.polynomial(x, [1.0] * 20, unroll=unroll))
    assert f.lower(2.0).as_text().count("stablehlo.while") == loops
    assert f(2.0) == 2**20 - 1


def test_a_loop_begins_with_the_highest_coefficient():
    assert lax.polynomial(jnp.inf, [1.0] * 9, unroll=1) == jnp.inf


def test_scalar_coefficients_are_not_broadcast_for_a_loop():
    f = jax.jit(lambda x: lax.polynomial(x, [1.0] * 20, unroll=1))
    assert "tensor<19xf32>" in f.lower(jnp.ones(1000)).as_text()


def test_scalars_take_the_type_of_x_and_arrays_make_the_result_strong():
    assert lax.polynomial(2, [1.5, 2]).dtype == np.int32
    assert lax.polynomial(2.0, [jnp.float16(3), 1]).weak_type
    assert not lax.polynomial(2.0, [jnp.ones(2), 1]).weak_type


def test_no_coefficient_gives_zeros_and_one_is_broadcast():
    np.testing.assert_array_equal(lax.polynomial(jnp.ones(2), []), [0, 0])
    np.testing.assert_array_equal(lax.polynomial(jnp.ones(2), [3]), [3, 3])
    assert lax.polynomial(jnp.ones((2, 1)), [jnp.ones((1, 3))]).shape == (2, 3)


def test_an_array_of_coefficients_is_their_sequence():
    assert lax.polynomial(2.0, jnp.array([1.0, 5.0, 2.0])) == 19


@pytest.mark.parametrize(
    ("x", "coeffs", "unroll", "error", "text"),
    [
        (True, [1, 2], None, TypeError, "polynomial does not accept dtype bool at position 0"),
        (1.0, [1j, 2], None, TypeError, "convert x to a complex dtype first"),
        (np.ones(3), [np.ones(2), 1], None, TypeError, r"incompatible shapes .*\(3,\), \(2,\)"),
        (np.ones(3), [np.ones((1, 3)), 1], None, TypeError, "same number of dimensions"),
        (np.ones(3), [np.ones(2)], None, TypeError, "incompatible shapes"),
        (1.0, ["a"], None, TypeError, "not a valid array operand"),
        (1.0, [1, 2], -1, ValueError, "non-negative"),
        (1.0, [1, 2], 1.5, TypeError, "integer"),
    ],
)
def test_refused(x, coeffs, unroll, error, text):
    with pytest.raises(error, match=text):
        lax.polynomial(x, coeffs, unroll=unroll)


def test_log2_is_the_logarithm_over_that_of_2_and_keeps_the_accuracy():
    text = jax.jit(lambda x: lax.log2(x, accuracy=lax.AccuracyMode.HIGHEST)).lower(2.0).as_text()
    assert "HIGHEST" in text
    assert lax.log2(8.0) == 3
    assert jax.grad(lax.log2)(1.0) == np.float32(1 / np.log(2))


def test_one_minus_square_is_accurate_next_to_one():
    x = np.float32(1 - 2**-24)
    assert lax.one_minus_square(x) == np.float32((1 + np.float64(x)) * (1 - np.float64(x)))
    assert jax.grad(lax.one_minus_square)(3.0) == -6
