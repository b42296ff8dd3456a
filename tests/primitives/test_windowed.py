"""What sliding windows refuse, and their shapes."""

import numpy as np
import pytest

from hlofront import grad, lax, make_jaxpr

X = np.zeros((4, 6), np.float32)


def windows(*args, **params):
    return lambda: lax.reduce_window(X, 0.0, lax.add, *args, **params)


@pytest.mark.parametrize(
    ("call", "class_", "says"),
    [
        (windows((2,)), TypeError, r"wrong number of window_dimensions .*\(4, 6\)"),
        (windows((2, 3), (1,)), TypeError, "inconsistent window_strides"),
        (windows((2, 3), (1,), "SAME"), TypeError, "inconsistent window_strides"),
        (windows((2, 3), (1, 1), "FOO"), RuntimeError, "Unrecognized padding type.*FOO"),
        (windows((2, 3), (1, 1), ((0, 0),)), ValueError, "one pair of padding"),
        (windows((2, 3), (1, 1), ((0,), (0,))), ValueError, "pairs"),
        (windows((2, 3), (1, 0)), TypeError, "strictly positive"),
        (windows((0, 3)), TypeError, "window_dimensions must have every element"),
        (windows((2, 3), base_dilation=(0, 1)), TypeError, "dilations must be positive"),
        (windows((2, 3), window_dilation=(1,)), TypeError, "inconsistent window_dilation"),
        (windows(2), TypeError, "sequence of integers"),
        (
            lambda: lax.reduce_window(X > 1, False, lax.add, (2, 2)),
            TypeError, "must have a number dtype, got bool",
        ),
        (lambda: lax.padtype_to_pads((4,), (2,), (1,), "CIRCULAR"), RuntimeError, "CIRCULAR"),
        (lambda: lax.padtype_to_pads((4,), (2,), (1,), None), TypeError, "Unknown padding type"),
        (
            lambda: lax.select_and_scatter_add_p.bind(
                X, X, select_prim=lax.ge_p, window_dimensions=(2, 2), window_strides=(1, 1),
                padding=((0, 0), (0, 0)),
            ),
            TypeError, r"windows of shape \(3, 5\)",
        ),
    ],
)  # fmt: skip
def test_refused(call, class_, says):
    with pytest.raises(class_, match=says):
        call()


def test_pads():
    pads = lax.padtype_to_pads
    assert pads((4, 6), (2, 3), (1, 2), "SAME") == [(0, 1), (0, 1)]
    assert pads((4, 6), (2, 4), (1, 1), "same_lower") == [(1, 0), (2, 1)]
    assert pads((4, 6), (2, 3), (1, 2), "VALID") == [(0, 0), (0, 0)]
    assert pads((0, 6), (2, 3), (1, 9), "SAME") == [(0, 1), (0, 0)]


def test_shapes():
    shape = lax.reduce_window_shape_tuple
    assert shape((4, 6), (2, 3), (1, 2), ((0, 1), (1, 1)), (1, 2), (2, 1)) == (3, 6)
    assert shape((4, 6), (5, 3), (1, 2), ((0, 0), (1, 1))) == (0, 3)
    assert shape((4, 6), (2, 3), (1, 2), "SAME") == (4, 3)


def names_in_gradient_of_maxima(**params):
    def sum_of_maxima(x):
        windows_of_x = lax.reduce_window(x, -np.inf, lax.max, (2, 2), (2, 2), "VALID", **params)
        return windows_of_x.sum()

    return [equation.primitive.name for equation in make_jaxpr(grad(sum_of_maxima))(X).eqns]


def test_a_gradient_of_maxima_takes_out_gaps_only_where_there_are_some():
    assert names_in_gradient_of_maxima()[-1] == "select_and_scatter_add"
    assert names_in_gradient_of_maxima(base_dilation=(1, 2))[-1] == "slice"
