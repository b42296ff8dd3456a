"""What reductions refuse, and where they are particular."""

import numpy as np
import pytest

import hlofront
from hlofront import lax

X = np.arange(6, dtype=np.float32).reshape(2, 3)
N = X.astype(np.int32)


@pytest.mark.parametrize(
    ("call", "class_", "says"),
    [
        (lambda: lax.reduce_sum(X, (2,)), ValueError, r"\(2,\) contains out-of-bounds"),
        (lambda: lax.reduce_max(X, (-1,)), ValueError, "out-of-bounds"),
        (lambda: lax.reduce_prod(X, (1, 1)), ValueError, "duplicate value"),
        (lambda: lax.reduce_sum(X, 0), TypeError, "not iterable"),
        (lambda: lax.reduce_sum(X, (0.5,)), TypeError, "integer"),
        (lambda: lax.reduce_sum(X > 1, (0,)), TypeError, "reduce_sum does not accept dtype bool"),
        (lambda: lax.reduce_prod(X > 1, (0,)), TypeError, "reduce_prod does not accept"),
        (lambda: lax.reduce_and(X, (0,)), TypeError, "bool or int, got float32"),
        (lambda: lax.reduce_xor(N, (2,)), IndexError, "out-of-bounds"),
        (lambda: lax.reduce_xor(N, (2,)), ValueError, "out-of-bounds"),
        (lambda: lax.argmax(X, 2, np.int32), ValueError, r"Invalid axis 2 .*\(2, 3\)"),
        (lambda: lax.argmin(X, -1, np.int32), ValueError, "Invalid axis -1"),
        (lambda: lax.argmin(X, None, np.int32), TypeError, "integer"),
        (lambda: lax.argmax(X, 1, np.float32), TypeError, "index_dtype must be an integer type"),
        (lambda: lax.argmax(X[:, :0], 1, np.int32), ValueError, "non-empty reduced dimension"),
        (
            lambda: lax.argmax(X + 1j, 1, np.int32),
            TypeError,
            "argmax does not accept dtype",
        ),
    ],
)
def test_refused(call, class_, says):
    with pytest.raises(class_, match=says):
        call()


def test_equal_axes_are_one_program():
    lax.reduce_sum(X, (1,))
    kept = len(lax.reduce_sum_p.eager)
    lax.reduce_sum(X, [np.int64(1)])
    assert len(lax.reduce_sum_p.eager) == kept


def test_weak_types():
    avals = hlofront.make_jaxpr(lambda x, n: (lax.reduce_sum(x, ()), lax.reduce_or(n, ())))(
        1.0, 2
    ).out_avals
    assert [aval.weak_type for aval in avals] == [True, False]


def test_index_of_the_first_nan_in_any_order():
    """The combining function is symmetric: the order of combining does not matter."""
    text = hlofront.jit(lambda x: lax.argmax(x, 0, np.int32)).lower(X[0]).as_text()
    assert text.count("stablehlo.compare NE") == 2
    nans = np.float32([1, np.nan, 2, np.nan])
    assert int(lax.argmax(nans, 0, np.int32)) == 1
    assert int(lax.argmin(nans[::-1], 0, np.int32)) == 0


def test_index_dtype_is_narrowed_with_a_warning():
    with pytest.warns(UserWarning, match="int64"):
        assert lax.argmax(X, 1, np.int64).dtype == np.int32
