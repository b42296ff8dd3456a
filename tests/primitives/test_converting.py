"""Conversions: what they refuse, what they leave alone, and when they warn."""

import numpy as np
import pytest

import hlofront
import hlofront as jax
import hlofront.numpy as jnp
from hlofront import ShapeDtypeStruct, lax
from hlofront.primitives.elementwise.converting import convert, copy

X = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    ("error", "call", "message"),
    [
        (ValueError, lambda: lax.convert_element_type(X, None), "dtype must be specified"),
        (TypeError, lambda: lax.convert_element_type(X, str), "convert_element_type"),
        (TypeError, lambda: lax.convert_element_type([1.0], np.float32), "not a valid array"),
        (TypeError, lambda: lax.convert_element_type(None, np.float32), "not a valid array"),
        (ValueError, lambda: lax.bitcast_convert_type(X, None), "dtype must be specified"),
        (TypeError, lambda: lax.bitcast_convert_type(X, bool), "bool or complex"),
        (
            ValueError,
            lambda: lax.bitcast_convert_type(np.ones((2, 3), np.int8), np.int16),
            "3 * 8 != 16: expected a last axis of size 2",
        ),
        (
            ValueError,
            lambda: lax.bitcast_convert_type(np.int16(1), np.int32),
            "array of shape () from int16 of size 16 bits",
        ),
        (
            ValueError,
            lambda: lax.reduce_precision(X, 0, 3),
            "exponent_bits must be positive; got 0",
        ),
        (ValueError, lambda: lax.reduce_precision(X, 5, -1), "must be non-negative; got -1"),
        (TypeError, lambda: lax.reduce_precision(X, 5.0, 1), "integer"),
        (TypeError, lambda: lax.reduce_precision(1, 5, 1), "does not accept dtype int32"),
        (TypeError, lambda: lax.stop_gradient({"a": "text"}), "not a valid array"),
        (TypeError, lambda: lax.stage([1.0]), "not a valid array"),
    ],
)
def test_refuses(error, call, message):
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


def test_nothing_to_do():
    x = lax.convert_element_type(X, np.float32)
    assert isinstance(x, hlofront.Array)
    assert lax.convert_element_type(x, "float32") is x
    assert not hlofront.make_jaxpr(lambda x: lax.convert_element_type(x, float))(X).eqns


def test_weak_becomes_strong():
    (equation,) = hlofront.make_jaxpr(lambda x: lax.convert_element_type(x, float))(1.0).eqns
    assert equation.params == {"new_dtype": np.float32, "weak_type": False, "sharding": None}
    assert not lax.convert_element_type(1.0, float).weak_type


def test_scalars_stay_literals_while_tracing():
    def f(x):
        scalars = [lax.convert_element_type(2.5, "bfloat16"), lax.convert_element_type(3, int)]
        return [
            *scalars,
            convert(2, np.dtype(np.float32), True),
            lax.mul(x, convert(2, x.dtype, True)),
        ]

    jaxpr = hlofront.make_jaxpr(f)(X)
    assert [equation.primitive.name for equation in jaxpr.eqns] == ["mul"]
    assert [aval.weak_type for aval in jaxpr.out_avals] == [False, False, True, False]
    assert str(jaxpr.jaxpr.outvars[0].val) == "2.5"


def test_out_of_range_scalars_are_left_to_the_device():
    """NumPy's conversions out of bounds are whatever the processor does."""
    jaxpr = hlofront.make_jaxpr(lambda: lax.convert_element_type(3e9, np.int32))()
    assert [equation.primitive.name for equation in jaxpr.eqns] == ["convert_element_type"]
    assert int(lax.convert_element_type(3e9, np.int32)) == 2**31 - 1
    assert int(lax.convert_element_type(float("nan"), np.int32)) == 0


def test_dropping_imaginary_parts_warns():
    with pytest.warns(np.exceptions.ComplexWarning, match="discards the imaginary part"):
        real = lax.convert_element_type(np.complex64(3 + 4j), np.float32)
    assert float(real) == 3


def test_64_bits_are_narrowed_with_a_warning():
    with pytest.warns(UserWarning, match="float64"):
        assert lax.convert_element_type(X, np.float64).dtype == np.float32
    with hlofront.enable_x64(True):
        assert lax.convert_element_type(X, np.float64).dtype == np.float64


def test_copy_has_a_buffer_of_its_own():
    x = copy(X)
    y = copy(x)
    assert x.unsafe_buffer_pointer() != y.unsafe_buffer_pointer()


def test_stop_gradient_is_the_identity():
    x = copy(X)
    assert lax.stop_gradient({"a": [x]})["a"][0] is x
    text = str(hlofront.make_jaxpr(lambda t: lax.stop_gradient(t))({"a": X, "b": 1.0}))
    assert text.count("stop_gradient") == 2


def test_stage_writes_nothing_down():
    assert lax.stage(2.0).weak_type
    assert not hlofront.make_jaxpr(lambda x: lax.stage(x))(X).eqns


def test_bitcasts_infer_shapes():
    def shape_of(dtype, shape, new):
        result = hlofront.eval_shape(
            lambda x: lax.bitcast_convert_type(x, new), ShapeDtypeStruct(shape, dtype)
        )
        return result.shape

    assert shape_of("float32", (2, 3), "int8") == (2, 3, 4)
    assert shape_of("int8", (2, 0, 4), "float32") == (2, 0)
    assert shape_of("int4", (5, 2), "int8") == (5,)
    assert shape_of("bfloat16", (), "uint16") == ()


def test_the_dtype_of_values():
    named = ("float64", np.float64)
    for x, wanted in (
        (3, "int32"),
        (2**40, "int32"),
        (2.0, "float32"),
        (1j, "complex64"),
        (True, "bool"),
        (np.zeros(2), "float32"),
        (np.int64(3), "int32"),
        (jnp.ones(2, "bfloat16"), "bfloat16"),
        (float, "float32"),
        ("int8", "int8"),
        (np.dtype("uint16"), "uint16"),
        (jax.ShapeDtypeStruct((2,), np.float64), "float32"),
    ):
        assert lax.dtype(x) == wanted
    for x in named:
        with pytest.warns(UserWarning, match="float64"):
            assert lax.dtype(x) == "float32"
    with jax.enable_x64(True):
        assert [str(lax.dtype(x)) for x in (*named, 3, 2.0)] == [
            *["float64"] * 2,
            "int64",
            "float64",
        ]
    key = jax.random.key(0)
    assert lax.dtype(key) == key.dtype
    assert jax.jit(lambda x: jnp.ones(3, lax.dtype(x)))(jnp.int8(2)).dtype == np.int8
    for wrong in (
        [1],
        object(),
        np.array(["a"]),
        np.zeros(2, ">f4"),
        np.floating,
        "zzz",
        key.dtype,
    ):
        with pytest.raises(TypeError):
            lax.dtype(wrong)
    with pytest.raises(ValueError, match="None"):
        lax.dtype(None)


def test_the_name_of_the_primitive_of_linear_solves():
    jaxpr = jax.make_jaxpr(
        lambda b: lax.custom_linear_solve(lambda x: 2 * x, b, lambda _, b: b / 2)
    )(jnp.ones(3))
    assert [e.primitive for e in jaxpr.eqns] == [lax.linear_solve_p]
