"""Derivatives and batches of contractions and convolutions: equations, dtypes, empty batches."""

import ml_dtypes
import numpy as np
import pytest

import hlofront
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.sharding import AxisType
from hlofront.sharding import PartitionSpec as P

X, Y = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
MATRICES = (((1,), (0,)), ((), ()))


def names(function, *args):
    return [equation.primitive.name for equation in hlofront.make_jaxpr(function)(*args).eqns]


def backwards(function, operand, result):
    """What the equations of the transpose of a linear function are."""
    return names(lambda cotangent: hlofront.linear_transpose(function, operand)(cotangent), result)


@pytest.mark.parametrize(
    ("shapes", "numbers"),
    [
        (((2, 3), (3, 4)), MATRICES),
        (((2, 3), (3,)), MATRICES),
        (((3,), (3, 4)), (((0,), (0,)), ((), ()))),
        (((5, 2, 3), (5, 3, 4)), (((2,), (1,)), ((0,), (0,)))),
        (((5, 2, 3), (5, 4, 3)), (((2,), (2,)), ((0,), (0,)))),
        (((5, 3, 2), (5, 3, 4)), (((1,), (1,)), ((0,), (0,)))),
    ],
)
def test_cotangents_of_products_need_no_transpose(shapes, numbers):
    lhs, rhs = (np.ones(shape, np.float32) for shape in shapes)
    dot = lambda x, y: lax.dot_general(x, y, numbers)
    result = np.ones(dot(lhs, rhs).shape, np.float32)
    assert backwards(lambda x: dot(x, rhs), lhs, result) == ["dot_general"]
    assert backwards(lambda y: dot(lhs, y), rhs, result) == ["dot_general"]


def test_a_precision_stays_with_its_operand():
    pair = (lax.Precision.HIGH, lax.Precision.DEFAULT)
    dot = lambda y: lax.dot_general(X, y, MATRICES, precision=pair)
    back = lambda c: hlofront.linear_transpose(dot, Y)(c)
    (equation,) = hlofront.make_jaxpr(back)(np.ones((2, 4), np.float32)).eqns
    # The other way round, as it is the cotangent that jax puts first.
    assert equation.params["precision"] == pair[::-1]


def test_cotangents_have_the_dtype_of_the_operand():
    narrow = X.astype(ml_dtypes.bfloat16)
    for lhs, rhs, preferred in (
        (narrow, Y, None),
        (narrow, Y.astype(ml_dtypes.bfloat16), np.float32),
        (X, Y.astype(np.complex64), None),
    ):
        dot = lambda x, y, to=preferred: lax.dot_general(x, y, MATRICES, preferred_element_type=to)
        result, pull = hlofront.vjp(dot, lhs, rhs)
        of_lhs, of_rhs = pull(np.ones(result.shape, result.dtype))
        assert (of_lhs.dtype, of_rhs.dtype) == (lhs.dtype, rhs.dtype)


def test_integer_results_have_no_tangents():
    dot = lambda x: lax.dot_general(x, Y, MATRICES, preferred_element_type=np.int32)
    _, tangent = hlofront.jvp(dot, (X,), (X,))
    assert tangent.dtype == hlofront.dtypes.float0


@pytest.mark.parametrize("axes", [(0, 0), (2, 1), (1, None), (None, 2), (0, None), (None, 0)])
def test_batches_of_products_are_one_equation(axes):
    operands = [
        x if axis is None else np.stack([x, x], axis) for x, axis in zip((X, Y), axes, strict=True)
    ]
    batched = names(hlofront.vmap(lambda x, y: lax.dot_general(x, y, MATRICES), axes), *operands)
    # And at most one that puts the new axis first.
    assert batched in (["dot_general"], ["dot_general", "transpose"])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    ("lhs_axes", "contracted", "dtype"),
    [("ab", "b", None), ("ba", "b", "float16"), ("abc", "b", None), ("cab", "ba", None)],
)
def test_products_with_batched_vectors_have_the_new_axis_first(lhs_axes, contracted, dtype, axis):
    sizes = {"a": 2, "b": 3, "c": 4}
    random = np.random.default_rng(0)
    lhs = random.normal(size=[sizes[name] for name in lhs_axes]).astype(np.float32)
    vectors = random.normal(size=(5, *(sizes[name] for name in contracted))).astype(np.float32)
    positions = tuple(lhs_axes.index(name) for name in contracted)
    numbers = (positions, tuple(range(len(contracted)))), ((), ())

    def product(x):
        precision = ("highest", "default")
        return lax.dot_general(lhs, x, numbers, precision, preferred_element_type=dtype)

    operands = np.moveaxis(vectors, 0, axis)
    mapped = hlofront.vmap(product, axis)
    (equation,) = hlofront.make_jaxpr(mapped)(operands).eqns
    assert equation.primitive.name == "dot_general"
    assert [str(precision) for precision in equation.params["precision"]] == ["DEFAULT", "HIGHEST"]
    wanted = np.stack([np.tensordot(lhs, x, numbers[0]) for x in vectors])
    result = mapped(operands)
    assert result.dtype == (dtype or np.float32)
    np.testing.assert_allclose(result, wanted, 5e-3 if dtype else 1e-5, 5e-3 if dtype else 1e-5)


IMAGES, KERNELS = np.ones((2, 4, 7), np.float32), np.ones((6, 2, 3), np.float32)


def grouped(lhs, rhs):
    return lax.conv_general_dilated(lhs, rhs, (1,), "SAME", feature_group_count=2)


def test_equations_of_convolutions():
    result = np.ones(grouped(IMAGES, KERNELS).shape, np.float32)
    of_lhs = backwards(lambda x: grouped(x, KERNELS), IMAGES, result)
    assert sorted(of_lhs) == ["conv_general_dilated", "reshape", "reshape", "rev"]
    of_rhs = backwards(lambda y: grouped(IMAGES, y), KERNELS, result)
    assert of_rhs == ["conv_general_dilated"]
    many = np.stack([IMAGES, IMAGES])
    call = hlofront.vmap(grouped, (0, None))
    assert names(call, many, KERNELS) == ["reshape", "conv_general_dilated", "reshape"]
    call = hlofront.vmap(grouped, (None, 0), out_axes=1)
    found = names(call, IMAGES, np.stack([KERNELS, KERNELS]))
    assert found == [*["reshape"] * 2, "conv_general_dilated", *["reshape"] * 2]


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)])
def test_batches_of_no_convolutions(axes):
    operands = [
        x if axis is None else np.ones((0, *x.shape), np.float32)
        for x, axis in zip((IMAGES, KERNELS), axes, strict=True)
    ]
    assert hlofront.vmap(grouped, axes)(*operands).shape == (0, 2, 6, 7)


def test_cotangent_of_a_kernel_that_fits_nowhere():
    none = np.ones((2, 4, 1), np.float32)
    conv = lambda y: lax.conv_general_dilated(none, y, (1,), "VALID", feature_group_count=2)
    result, pull = hlofront.vjp(conv, KERNELS)
    np.testing.assert_array_equal(pull(np.ones(result.shape, np.float32))[0], 0 * KERNELS)


def test_scaled_dot():
    generator = np.random.default_rng(0)
    f8, e8 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu
    x, y = (generator.choice([-1, 0.5, 1, 2], shape) for shape in ((3, 8), (8, 5)))
    s, t = (2.0 ** generator.integers(-2, 2, shape) for shape in ((3, 2), (2, 5)))
    operands = x.astype(f8), y.astype(f8), s.astype(e8), t.astype(e8)

    def dot(x, y, s, t):
        return lax.scaled_dot(x, y, lhs_scale=s, rhs_scale=t, preferred_element_type=np.float32)

    whole_x, whole_y = x * np.repeat(s, 4, 1), y * np.repeat(t, 4, 0)
    result, pull = hlofront.vjp(dot, *operands)
    np.testing.assert_allclose(result, whole_x @ whole_y, rtol=1e-2)
    cotangent = generator.choice([-1, 0.5, 1, 2], (3, 5)).astype(np.float32)
    of_x, of_y, of_s, _ = pull(cotangent)
    wanted = (cotangent @ whole_y.T) * np.repeat(s, 4, 1)
    np.testing.assert_array_equal(np.asarray(of_x, np.float32), wanted.astype(f8))
    wanted = (whole_x.T @ cotangent) * np.repeat(t, 4, 0)
    np.testing.assert_array_equal(np.asarray(of_y, np.float32), wanted.astype(f8))
    assert of_s.dtype == e8
    _, tangent = hlofront.jvp(lambda x: dot(x, *operands[1:]), operands[:1], operands[:1])
    np.testing.assert_array_equal(tangent, result)
    stack = np.stack([operands[0], operands[0]])
    mapped = hlofront.vmap(dot, (0, None, None, None))(stack, *operands[1:])
    np.testing.assert_array_equal(mapped, np.stack([result, result]))


def test_batches_of_vectors_keep_their_sharding():
    """The product of a matrix with one vector for each example is split as the examples are."""
    mesh = hlofront.make_mesh((1,), ("x",), axis_types=(AxisType.Explicit,))
    with hlofront.set_mesh(mesh):
        vectors = hlofront.device_put(np.ones((4, 3), np.float32), P("x", None))
        matrix = hlofront.device_put(np.ones((5, 3), np.float32), P(None, None))
        product = hlofront.vmap(lambda x: jnp.matmul(matrix, x, out_sharding=P(None)))
        for function in (product, hlofront.jit(product)):
            result = function(vectors)
            assert hlofront.typeof(result).sharding.spec == P("x", None)
            np.testing.assert_array_equal(result, np.full((4, 5), 3.0))
