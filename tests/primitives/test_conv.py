"""What convolutions refuse, dimension numbers, shapes."""

import numpy as np
import pytest

import hlofront
import hlofront.lowering.rules
from hlofront import lax
from hlofront.core.lowering_request import LoweringRequest
from hlofront.lowering.module import lower_program

X, K = np.zeros((2, 3, 8, 9), np.float32), np.zeros((4, 3, 2, 3), np.float32)


def conv(*args, lhs=X, rhs=K, **params):
    return lambda: lax.conv_general_dilated(lhs, rhs, *(args or ((1, 1), "VALID")), **params)


def with_numbers(*numbers):
    return conv(dimension_numbers=numbers)


@pytest.mark.parametrize(
    ("call", "class_", "says"),
    [
        (conv(rhs=K[:, :2]), ValueError, "3 // 1 != 2"),
        (conv((1,), "VALID"), ValueError, "window and window_strides .* 2 and 1"),
        (conv((1,), "SAME"), ValueError, "window and window_strides .* 2 and 1"),
        (conv((0, 1), "VALID"), ValueError, "positive window_strides"),
        (conv((1, 1), "FOO"), RuntimeError, "Unrecognized padding type"),
        (conv((1, 1), ((0, 0),)), TypeError, "expected 2, got 1"),
        (conv((1, 1), 3), ValueError, "string or a sequence of .* pairs, got 3"),
        (conv((1, 1), ((0,), (0,))), ValueError, "pairs"),
        (conv((1, 1), "SAME", (2, 1)), ValueError, "use conv_transpose"),
        (conv((1, 1), ((0, 0), (0, 0)), (0, 1)), TypeError, "dilations must be positive"),
        (conv(rhs_dilation=(1,)), ValueError, "rhs_dilation"),
        (conv(feature_group_count=2), ValueError, "2 does not divide 3"),
        (conv(rhs=K[:, :1], feature_group_count=3), ValueError, "4 is not a multiple of 3"),
        (conv(feature_group_count=0), ValueError, "positive integer, got 0"),
        (conv(batch_group_count=3), ValueError, "3 does not divide 2"),
        (conv(rhs=K[:3], batch_group_count=2), ValueError, "3 is not a multiple of 2"),
        (conv(feature_group_count=3, batch_group_count=2), ValueError, "At most one of"),
        (conv(rhs=K[..., :0]), ValueError, "positive spatial sizes"),
        (conv(rhs=K[0]), TypeError, "ndim to be equal, got 4 and 3"),
        (conv((), "VALID", lhs=X[0, 0, 0], rhs=K[0, 0, 0]), TypeError, "at least 2 axes"),
        (conv(rhs=K.astype(np.float16)), TypeError, "same dtypes, got float32, float16"),
        (conv(preferred_element_type=np.float16), TypeError, "must not be narrower"),
        (conv(preferred_element_type=np.int32), TypeError, "Input type is incompatible"),
        (conv(precision="exact"), ValueError, "Precision"),
        (with_numbers("NCHW", "OIHW"), TypeError, "length 3, got 2"),
        (with_numbers("NCHW", "OIHW", "NCHX"), TypeError, "same set of spatial"),
        (with_numbers("NCH", "OIHW", "NCHW"), TypeError, "len equal to the ndim"),
        (with_numbers("NCHH", "OIHW", "NCHW"), TypeError, "duplicate characters"),
        (with_numbers("NXHW", "OIHW", "NCHW"), TypeError, "'N' and 'C' exactly once"),
        (with_numbers(0, 1, 2), TypeError, "must be strings"),
        (conv(dimension_numbers=3), TypeError, "tuple/list or None"),
        (
            conv(dimension_numbers=lax.ConvDimensionNumbers((0, 1, 2), (0, 1, 2, 3), (0, 1, 2, 3))),
            TypeError,
            "0 to 3",
        ),
        (lambda: lax.conv_transpose(X, K, (2, 1), "FOO"), ValueError, "conv_transpose"),
        (lambda: lax.conv_transpose(X, K[0], (1, 1), "SAME"), TypeError, "same number of axes"),
        (
            lambda: lax.conv_transpose(X[..., None, None], K[..., None, None], (1,) * 4, "SAME"),
            ValueError,
            r"No 4\+ dimensional",
        ),
    ],
)
def test_refused(call, class_, says):
    with pytest.raises(class_, match=says):
        call()


def test_dimension_numbers():
    numbers = lax.conv_dimension_numbers(X.shape, K.shape, ("NHWC", "HWIO", "NWHC"))
    assert numbers == ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 2, 1))
    assert numbers.out_spec == (0, 3, 2, 1)
    assert lax.conv_dimension_numbers(X.shape, K.shape, None) == ((0, 1, 2, 3),) * 3
    assert lax.conv_general_permutations(("NHWC", "HWIO", "NWHC")) == tuple(numbers)


def test_shapes():
    last = ("NHWC", "HWIO", "NHWC")
    assert lax.conv_shape_tuple(X.shape, K.shape, (1, 2), ((0, 1), (1, 1)), 2) == (1, 4, 8, 5)
    assert lax.conv_shape_tuple(X.shape, K.shape, (1, 2), "SAME") == (2, 4, 8, 5)
    sizes = ((2, 8, 9, 3), (2, 3, 3, 4))
    assert lax.conv_general_shape_tuple(*sizes, (1, 2), "SAME", last) == (2, 8, 5, 4)
    # As conv_transpose has it, unlike jax, which swaps the spatial axes here.
    for padding in ("SAME", "VALID", ((0, 1), (1, 1))):
        result = hlofront.eval_shape(
            lambda x, k, padding=padding: lax.conv_transpose(x, k, (1, 2), padding),
            *(np.zeros(size, np.float32) for size in sizes),
        )
        assert lax.conv_transpose_shape_tuple(*sizes, (1, 2), padding, last) == result.shape


def test_complex_ones_are_one_operation_on_tpus_alone():
    program = hlofront.make_jaxpr(lambda x, k: lax.conv(x, k, (1, 1), "SAME"))(
        X.astype(np.complex64), K.astype(np.complex64)
    )
    for platform, count in (("tpu", 1), ("cuda", 3)):
        text = lower_program(program, LoweringRequest("f", platform)).text()
        assert text.count("convolution(") == count


def test_precision_by_default():
    with hlofront.default_matmul_precision("highest"):
        jaxpr = hlofront.make_jaxpr(conv())()
    assert jaxpr.eqns[0].params["precision"] == (lax.Precision.HIGHEST,) * 2
