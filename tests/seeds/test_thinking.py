"""What "how to think" tutorials show: NumPy and lax, tracing and its limits."""

import functools

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax

MATRIX = np.random.default_rng(0).normal(size=(50, 4))


def test_numpy_code_carries_over():
    t = jnp.linspace(0, 10, 1000)
    wave = 2 * jnp.sin(t) * jnp.cos(t)
    expected = 2 * np.sin(np.linspace(0, 10, 1000)) * np.cos(np.linspace(0, 10, 1000))
    np.testing.assert_allclose(wave, expected, atol=1e-5)
    assert isinstance(wave, jax.Array) and wave.dtype == np.float32


def test_arrays_are_immutable_and_say_what_to_do():
    x = jnp.arange(10)
    with pytest.raises(TypeError, match=r"immutable.*x = x\.at\[idx\]\.set\(y\)"):
        x[0] = 10
    y = x.at[0].set(10)
    assert str(x) == "[0 1 2 3 4 5 6 7 8 9]"
    assert str(y) == "[10  1  2  3  4  5  6  7  8  9]"


def test_numpy_promotes_and_lax_does_not():
    assert repr(jnp.add(1, 1.0)) == "Array(2., dtype=float32, weak_type=True)"
    with pytest.raises(TypeError, match=r"int32, float32.*jnp\.add"):
        lax.add(1, 1.0)
    assert repr(lax.add(jnp.float32(1), 1.0)) == "Array(2., dtype=float32)"


def test_a_convolution_in_both_vocabularies():
    signal, kernel = jnp.ones(10), jnp.array([1, 2, 1])
    expected = [1, 3, 4, 4, 4, 4, 4, 4, 4, 4, 3, 1]
    np.testing.assert_array_equal(jnp.convolve(kernel, signal), expected)
    result = lax.conv_general_dilated(
        kernel.reshape(1, 1, 3).astype(float),
        signal.reshape(1, 1, 10),
        window_strides=(1,),
        padding=[(len(signal) - 1, len(signal) - 1)],
    )
    np.testing.assert_array_equal(result[0, 0], expected)


def normalized(x):
    x = x - x.mean(0)
    return x / x.std(0)


def test_a_jitted_function_gives_what_the_function_gives():
    x = jnp.array(MATRIX)
    jitted = jax.jit(normalized)
    np.testing.assert_allclose(jitted(x), normalized(x), atol=1e-5)
    np.testing.assert_allclose(
        jitted(x).block_until_ready(), (MATRIX - MATRIX.mean(0)) / MATRIX.std(0), atol=1e-4
    )


def negatives(x):
    return x[x < 0]


def test_a_mask_makes_a_shape_that_jit_cannot_know():
    x = jnp.array(MATRIX[:, 0])
    np.testing.assert_array_equal(negatives(x), np.asarray(x)[np.asarray(x) < 0])
    with pytest.raises(jax.errors.NonConcreteBooleanIndexError, match=r"bool\[50\]"):
        jax.jit(negatives)(x)


def test_tracing_runs_python_once_and_shows_shapes(capsys):
    @jax.jit
    def f(x, y):
        print(f"x = {x}, y = {y}")
        return jnp.dot(x + 1, y + 1)

    x, y = MATRIX[:3], MATRIX[0]
    np.testing.assert_allclose(f(x, y), (x + 1) @ (y + 1), rtol=1e-5)
    assert capsys.readouterr().out == "x = JitTracer(float32[3,4]), y = JitTracer(float32[4])\n"
    np.testing.assert_allclose(f(2 * x, y), (2 * x + 1) @ (y + 1), rtol=1e-5)
    assert capsys.readouterr().out == ""


def test_the_jaxpr_of_a_function():
    def f(x, y):
        return jnp.dot(x + 1, y + 1)

    assert str(jax.make_jaxpr(f)(MATRIX[:3], MATRIX[0])) == (
        "{ lambda ; a:f32[3,4] b:f32[4]. let\n"
        "    c:f32[3,4] = add a 1.0:f32[]\n"
        "    d:f32[4] = add b 1.0:f32[]\n"
        "    e:f32[3] = dot_general[\n"
        "      dimension_numbers=(([1], [0]), ([], []))\n"
        "      preferred_element_type=float32\n"
        "    ] c d\n"
        "  in (e,) }"
    )


def negated_if(x, neg):
    return -x if neg else x


def test_a_condition_on_a_traced_value_names_the_argument():
    with pytest.raises(
        jax.errors.TracerBoolConversionError,
        match=r"(?s)traced array with shape bool\[\].*negated_if at .*value of the argument neg",
    ):
        jax.jit(negated_if)(1, True)


def test_a_static_argument_may_steer_python():
    f = functools.partial(jax.jit, static_argnums=(1,))(negated_if)
    assert repr(f(1, True)) == "Array(-1, dtype=int32, weak_type=True)"
    assert repr(f(1, False)) == "Array(1, dtype=int32, weak_type=True)"
    assert f._cache_size() == 2


def test_shapes_are_static_and_what_is_computed_from_them_by_jnp_is_not():
    x = jnp.ones((2, 3))

    @jax.jit
    def by_jnp(x):
        return x.reshape(jnp.array(x.shape).prod())

    with pytest.raises(TypeError, match=r"Shapes must be 1D sequences of concrete values"):
        by_jnp(x)

    @jax.jit
    def by_numpy(x):
        return x.reshape((np.prod(x.shape),))

    np.testing.assert_array_equal(by_numpy(x), np.ones(6))
