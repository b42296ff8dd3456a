"""What elementwise operations refuse, and say; signatures of accuracy; programs they write."""

import ml_dtypes
import numpy as np
import pytest

import hlofront
from hlofront import ShapeDtypeStruct, lax


def struct(text):
    """ "f4[2,3]" as the description of an array."""
    dtype, _, shape = text.rstrip("]").partition("[")
    return ShapeDtypeStruct(tuple(int(n) for n in shape.split(",") if n), dtype)


def infer(function, *operands):
    operands = [struct(x) if isinstance(x, str) else x for x in operands]
    return hlofront.eval_shape(function, *operands)


@pytest.mark.parametrize(
    ("function", "operands", "message"),
    [
        (lax.add, ("float32[2]", "int32[2]"), "float32, int32. (Tip: jnp.add "),
        (lax.mul, ("bfloat16[]", 1.0), "lax.mul requires arguments to have the same dtypes"),
        (lax.add, (1, 1.0), "got int32, float32. (Tip: jnp.add "),
        (lax.max, ("float32[2]", "int32[2]"), "jnp.maximum is a similar function"),
        (lax.shift_right_logical, ("uint8[2]", 1), "(Tip: jnp.right_shift "),
        (lax.clamp, (0, "float32[2]", 1), "lax.clamp requires arguments to have the same dtypes"),
        (lax.pow, ("complex64[2]", 2.0), "complex64 to the power of float32"),
        (lax.add, ("bool[2]", "bool[2]"), "add does not accept dtype bool at position 0"),
        (
            lax.sin,
            (1,),
            "sin does not accept dtype int32. Accepted dtypes are subtypes of floating",
        ),
        (lax.abs, ("uint8[2]",), "abs does not accept dtype uint8"),
        (lax.abs, ("int4[2]",), "Convert it to int8 first"),
        (lax.rem, ("complex64[2]", "complex64[2]"), "rem does not accept dtype complex64"),
        (
            lax.complex,
            ("float32[2]", "int32[2]"),
            "complex does not accept dtype int32 at position 1",
        ),
        (lax.bitwise_and, ("float32[2]", "float32[2]"), "and does not accept dtype float32"),
        (lax.real, ("float32[2]",), "real does not accept dtype float32"),
        (lax.reciprocal, ("int32[2]",), "Integers cannot be raised to negative powers"),
        (lax.add, ("float32[2,3]", "float32[3]"), "got shapes (2, 3), (3,)"),
        (lax.add, ("float32[2,3]", "float32[2,2]"), "incompatible shapes for broadcasting"),
        (lax.clamp, ("float32[1]", "float32[3]", 1.0), "min.shape=(1,), operand.shape=(3,)"),
    ],
)
def test_refuses(function, operands, message):
    with pytest.raises(TypeError) as caught:
        infer(function, *operands)
    assert message in str(caught.value)


@pytest.mark.parametrize("dtype", [np.int32, np.uint8])
@pytest.mark.parametrize("base", [0.0, 2.0])
def test_a_power_of_the_integer_zero_has_no_slope(base, dtype):
    assert hlofront.grad(lambda x: lax.pow(x, dtype(0)))(base) == 0
    assert hlofront.grad(lambda x: lax.pow(x, dtype(2)))(base) == 2 * base


def test_refuses_strings():
    with pytest.raises(TypeError, match="not a valid array"):
        lax.add(np.ones(2, np.float32), "a")


def test_refuses_parameters():
    with pytest.raises(TypeError, match="float"):
        lax.integer_pow(np.ones(2, np.float32), 2.5)
    with pytest.raises(ValueError, match="RoundingMethod"):
        lax.round(np.ones(2, np.float32), 5)
    with pytest.raises(TypeError, match="accuracy must be"):
        lax.exp(np.ones(2, np.float32), accuracy=3)


def test_weak_only_if_all_are():
    assert infer(lax.add, "float32[2]", 1.0).weak_type is False
    assert infer(lax.add, 1.0, 2.0).weak_type is True
    assert infer(lax.eq, 1.0, 2.0).weak_type is True
    assert infer(lax.pow, 2.0, 3).weak_type is True
    assert infer(lax.pow, 2.0, "int32[2]").weak_type is False
    assert infer(lax.is_finite, 2.0).weak_type is True


def test_tolerance():
    with pytest.raises(ValueError, match="non-negative"):
        lax.Tolerance(-1.0)
    with pytest.raises(ValueError, match="At least one"):
        lax.Tolerance()
    assert lax.Tolerance(rtol=1e-3) == lax.Tolerance(0.0, 1e-3) != lax.Tolerance(1e-3)
    assert repr(lax.Tolerance(ulps=2)) == "Tolerance(atol=0.0, rtol=0.0, ulps=2)"


@pytest.mark.parametrize(
    ("accuracy", "text"),
    [
        (None, None),
        (lax.AccuracyMode.DEFAULT, None),
        (lax.AccuracyMode.HIGHEST, "result_accuracy_mode<HIGHEST>"),
        (lax.Tolerance(0.5, 0.25, 3), "atol = 5.000000e-01, rtol = 2.500000e-01, ulps = 3"),
    ],
)
@pytest.mark.parametrize("function", [lax.exp, lax.sin, lax.logistic, lax.exp2])
def test_accuracy_reaches_the_module(function, accuracy, text):
    x = ShapeDtypeStruct((2,), np.float32)
    module = hlofront.jit(lambda x: function(x, accuracy=accuracy)).lower(x).as_text()
    assert "result_accuracy" not in module if text is None else text in module


def test_one_operation_each():
    """Nothing around what StableHLO has: no conversion, and scalars broadcast once."""
    x = ShapeDtypeStruct((2,), np.float32)
    text = hlofront.jit(lambda x: lax.clamp(0.0, lax.mul(lax.tanh(x), x), 1.0)).lower(x).as_text()
    operations = [line.split()[2] for line in text.splitlines() if " = stablehlo." in line]
    assert sorted(operations) == [
        "stablehlo.clamp",
        "stablehlo.constant",
        "stablehlo.constant",
        "stablehlo.multiply",
        "stablehlo.tanh",
    ]


def test_the_cotangent_of_a_small_denominator_is_summed_before_it_is_divided():
    jaxpr = hlofront.make_jaxpr(hlofront.grad(lambda x, y: (x / y).sum(), argnums=1))(
        np.ones((4, 8), np.float32), np.ones((4, 1), np.float32)
    )
    # The sum is of products with the numerator, so that no element of the quotient is needed.
    names = [equation.primitive.name for equation in jaxpr.eqns]
    (product,) = (equation for equation in jaxpr.eqns if equation.primitive.name == "mul")
    assert jaxpr.jaxpr.invars[0] in product.invars
    after = jaxpr.eqns[names.index("mul") + 2 :]
    assert {equation.outvars[0].aval.shape for equation in after} <= {(4, 1), (4,)}
    assert [equation.primitive.name for equation in after].count("div") == 2


@pytest.mark.parametrize("shape", [(4, 1), (1, 8), (1, 1), (8,), ()])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_slopes_of_quotients_by_small_denominators(shape, dtype):
    random = np.random.default_rng(0)
    x, dx = random.normal(size=(2, 4, 8))
    y, dy = 2 + random.random((2, *shape))
    if dtype is np.complex64:
        x, y, dx, dy = x * (1 - 2j), y + 0.5j, dx * (1 + 1j), dy * 1j
    expected = dx / y - x * dy / y**2
    arguments = [np.asarray(each, dtype) for each in (x, y)]
    tangents = [np.asarray(each, dtype) for each in (dx, dy)]
    _, tangent = hlofront.jvp(lambda x, y: x / y, arguments, tangents)
    np.testing.assert_allclose(tangent, expected, rtol=1e-5, atol=1e-5)
    _, pullback = hlofront.vjp(lambda x, y: x / y, *arguments)
    cotangent = random.normal(size=(4, 8))
    of_x, of_y = pullback(hlofront.numpy.asarray(cotangent, dtype))
    # Cotangents are paired with tangents without conjugates.
    paired = (np.asarray(of_x) * dx).sum() + (np.asarray(of_y) * dy).sum()
    np.testing.assert_allclose(paired, (cotangent * expected).sum(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("dtype", "numerator", "tolerance"),
    [
        (np.float16, 1000, 2e-3),
        (ml_dtypes.float8_e5m2, 1024, 0.3),
        (ml_dtypes.float8_e4m3fn, 16, 0.2),
    ],
)
def test_quotients_of_narrow_floats_by_smaller_arrays_have_finite_slopes(
    dtype, numerator, tolerance
):
    # The product of the numerator and the cotangent is above the greatest number of the dtype.
    x, y = np.full((2, 3), numerator, dtype), np.full((2, 1), numerator, dtype)
    _, pullback = hlofront.vjp(lambda y: x / y, y)
    (of_y,) = pullback(np.full((2, 3), 96, dtype))
    expected = np.full((2, 1), -3 * 96 / numerator)
    np.testing.assert_allclose(np.asarray(of_y, np.float32), expected, rtol=tolerance)


def test_a_small_quotient_by_a_small_denominator_has_finite_slopes():
    # The square of the denominator is below the least float32.
    x, y = np.full((2, 3), 1e-30, np.float32), np.full((2, 1), 1e-30, np.float32)
    of_x, of_y = hlofront.grad(lambda x, y: (x / y).sum(), argnums=(0, 1))(x, y)
    np.testing.assert_allclose(of_x, np.full((2, 3), 1e30), rtol=1e-6)
    np.testing.assert_allclose(of_y, np.full((2, 1), -3e30), rtol=1e-6)
