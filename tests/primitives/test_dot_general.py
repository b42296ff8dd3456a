"""What contractions refuse; precisions; and how those are lowered on each platform."""

import ml_dtypes
import numpy as np
import pytest

import hlofront
import hlofront.lowering.rules
from hlofront import lax
from hlofront.core.lowering_request import LoweringRequest
from hlofront.lowering.module import lower_program

X, Y = np.zeros((2, 3), np.float32), np.zeros((3, 4), np.float32)
MATRICES = (((1,), (0,)), ((), ()))
F8 = ml_dtypes.float8_e4m3fn


def dot(lhs, rhs, *numbers, **params):
    return lambda: lax.dot_general(lhs, rhs, numbers or MATRICES, **params)


@pytest.mark.parametrize(
    ("call", "class_", "says"),
    [
        (dot(X, X), TypeError, r"contracting dimensions .* same shape, got \(3,\) and \(2,\)"),
        (dot(X, Y, ((2,), (0,)), ((), ())), TypeError, "lhs dimension numbers.*rank 2"),
        (dot(X, Y, ((-1,), (0,)), ((), ())), TypeError, "nonnegative"),
        (dot(X, Y, ((1, 1), (0, 0)), ((), ())), TypeError, "distinct"),
        (dot(X, Y, ((1,), (0,)), ((1,), (1,))), TypeError, "lhs batch .* disjoint"),
        (dot(X, Y, ((1,), (0,)), ((0,), ())), TypeError, "equal numbers of lhs_batch"),
        (dot(X, Y, ((), ()), ((0,), (0,))), TypeError, "rhs batch dimensions .* same shape"),
        (dot(X, Y, ((1.5,), (0,)), ((), ())), TypeError, "integer"),
        (dot(X.astype(np.int32), Y.astype(np.int32), preferred_element_type=np.int8), TypeError,
         "narrower .* int8 for result type of int32"),
        (dot(X.astype(ml_dtypes.float8_e5m2), Y.astype(ml_dtypes.float8_e5m2fnuz)), TypeError,
         "argument type error: float8_e5m2, float8_e5m2fnuz"),
        (lambda: lax.dot(X, X), ValueError, r"lhs_shape=\(2, 3\) rhs_shape=\(2, 3\)"),
        (lambda: lax.dot(1.0, 2.0), ValueError, "dimension_numbers must be specified"),
        (lambda: lax.batch_matmul(X[0], Y), ValueError, "at least 2D, got 1, 2"),
        (lambda: lax.batch_matmul(X[None], Y), ValueError, "same number of axes, got 3, 2"),
        (lambda: lax.dot("a", X), TypeError, "'a'"),
    ],
)  # fmt: skip
def test_refused(call, class_, says):
    with pytest.raises(class_, match=says):
        call()


def precision_of(precision):
    jaxpr = hlofront.make_jaxpr(lambda x, y: lax.dot(x, y, precision=precision))(X, Y)
    return jaxpr.eqns[0].params["precision"]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (None, None),
        ("fastest", (lax.Precision.DEFAULT,) * 2),
        ("bfloat16_3x", (lax.Precision.HIGH,) * 2),
        (lax.Precision.HIGHEST, (lax.Precision.HIGHEST,) * 2),
        (["float32", lax.Precision.DEFAULT], (lax.Precision.HIGHEST, lax.Precision.DEFAULT)),
        ("BF16_BF16_F32", lax.DotAlgorithmPreset.BF16_BF16_F32),
    ],
)
def test_precisions(given, meant):
    assert precision_of(given) == meant


@pytest.mark.parametrize("wrong", ["exact", 3, ("high",), (None, "high"), ("a", "b"), np.float32])
def test_wrong_precisions(wrong):
    with pytest.raises(ValueError, match="Precision argument must be"):
        precision_of(wrong)


def test_precision_by_default():
    with hlofront.default_matmul_precision("highest"):
        assert precision_of(None) == (lax.Precision.HIGHEST,) * 2
        assert precision_of("default") == (lax.Precision.DEFAULT,) * 2
    with hlofront.default_matmul_precision("F32_F32_F32"):
        assert precision_of(None) is lax.DotAlgorithmPreset.F32_F32_F32


def module(platform, precision, x=X, y=Y, dtype=None):
    function = lambda x, y: lax.dot(x, y, precision=precision, preferred_element_type=dtype)
    return lower_program(hlofront.make_jaxpr(function)(x, y), LoweringRequest("f", platform)).text()


def test_algorithms():
    text = module("cuda", "TF32_TF32_F32_X3")
    assert "lhs_precision_type = tf32" in text and "num_primitive_operations = 3" in text
    text = module("cuda", "ANY_F8_ANY_F8_F32_FAST_ACCUM", X.astype(F8), Y.astype(F8), "float16")
    assert "lhs_precision_type = f8E4M3FN" in text
    assert "allow_imprecise_accumulation = true" in text and "-> tensor<2x4xf16>" in text
    own = lax.DotAlgorithm("bfloat16", "bfloat16", np.float32, num_primitive_operations=3)
    assert "rhs_precision_type = bf16, accumulation_type = f32" in module("tpu", own)
    assert "algorithm" not in module("cuda", lax.DotAlgorithmPreset.DEFAULT)
    # What the algorithm does not take is converted, and so is its result.
    assert module("cpu", "F16_F16_F16").count("stablehlo.convert") == 3


@pytest.mark.parametrize("precision", ["TF32_TF32_F32", lax.DotAlgorithm("f4", "f4", "f4")])
def test_algorithms_that_a_cpu_lacks(precision):
    with pytest.raises(ValueError, match=r"not supported by dot_general on CPU.*F32_F32_F32"):
        lax.dot(X, Y, precision=precision)


def test_float8_algorithms_want_float8():
    with pytest.raises(ValueError, match="requires both inputs to have float8"):
        module("cuda", "ANY_F8_ANY_F8_F32")


# ---- in blocks -----------------------------------------------------------------------------------

R = lax.RaggedDotDimensionNumbers
L, B = np.zeros((3, 4), np.float32), np.zeros((2, 4, 5), np.float32)
G = np.array([1, 2], np.int32)


def ragged(group_sizes, numbers, rhs=B, **params):
    return lambda: lax.ragged_dot_general(L, rhs, group_sizes, numbers, **params)


ROWS = (((1,), (1,)), ((), ()))
SUMMED = (((0,), (0,)), ((), ()))
S8, S32 = np.zeros((2, 4), F8), np.zeros((4, 2), F8)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (ragged(G.astype(np.float32), R(ROWS, [0], [0])), "subtype of np.integer"),
        (ragged(np.int32(3), R(ROWS, [0], [0])), "rank of group_sizes"),
        (ragged(np.ones(3, np.int32), R(ROWS, [0], [0])), "group dimension size to be 3, got 2"),
        (ragged(np.ones((2, 2), np.int32), R(ROWS, [0], [0])), r"shape \(2,\), got \(2, 2\)"),
        (ragged(G, R(ROWS, [0, 1], [0])), "exactly one lhs ragged"),
        (ragged(G, R(ROWS, [2], [0])), "less than the number of axes"),
        (ragged(G, R(ROWS, [0], [])), "exactly one rhs group"),
        (ragged(G, R(ROWS, [0], [1])), "distinct from contracting"),
        (ragged(G, R(SUMMED, [0], [0]), np.zeros((3, 5), np.float32)), "zero group dimensions"),
        (ragged(G, ROWS), "must be a lax.RaggedDotDimensionNumbers"),
        (lambda: lax.ragged_dot(L, B, G, group_offset=G), "group_offset"),
        (lambda: lax.scaled_dot(S8, S32, lhs_scale=np.zeros((2, 3), F8)), "divisible"),
        (lambda: lax.scaled_dot(S8, S32, lhs_scale=np.zeros((1, 2), F8)), "LHS dim 0 of size 2"),
        (lambda: lax.scaled_dot(S8, S32, lhs_scale=S8), "must be at least 2"),
        (lambda: lax.scaled_dot(S8, S32, lhs_scale=S8[0]), "same number of axes"),
        (
            lambda: lax.scaled_dot(S8, S8, dimension_numbers=(((0, 1), (0, 1)), ((), ()))),
            "sums over one axis",
        ),
    ],
)
def test_refused_in_blocks(call, says):
    with pytest.raises(TypeError, match=says):
        call()


def test_ragged_numbers_are_values():
    one, other = R(ROWS, [0], [0]), R((([1], np.int64(1)), ([], [])), 0, (0,))
    assert one == other and hash(one) == hash(other)
    assert one != R(ROWS, [1], [0])
    assert repr(one) == (
        "RaggedDotDimensionNumbers(dot_dimension_numbers=(((1,), (1,)), ((), ())), "
        "lhs_ragged_dimensions=(0,), rhs_group_dimensions=(0,))"
    )


def test_scaled_dot_is_a_composite():
    text = hlofront.jit(lax.scaled_dot).lower(S8, S32).as_text()
    assert 'stablehlo.composite "xla.scaled_dot"' in text
