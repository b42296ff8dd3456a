"""What cumulative operations refuse, and how they are lowered."""

import numpy as np
import pytest

import hlofront
from hlofront import lax

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    ("call", "class_", "says"),
    [
        (lambda: lax.cumsum(X, 2), ValueError, r"axis 2 is out of bounds .*\(2, 3\)"),
        (lambda: lax.cumsum(X, -1), ValueError, "negative axes"),
        (lambda: lax.cumsum(1.0), ValueError, "axis 0 is out of bounds"),
        (lambda: lax.cumsum(X, None), TypeError, "integer"),
        (lambda: lax.cumsum(X > 1), TypeError, "cumsum does not accept dtype bool"),
        (lambda: lax.cumlogsumexp(X.astype(np.int32)), TypeError, "does not accept dtype int32"),
        (lambda: lax.cumsum([1, 2]), TypeError, "list"),
        (lambda: lax.associative_scan(3, X), TypeError, "should be callable"),
        (lambda: lax.associative_scan(lax.add, ()), ValueError, "at least one array"),
        (lambda: lax.associative_scan(lax.add, X, axis=2), ValueError, "axis 2"),
        (
            lambda: lax.associative_scan(lambda a, b: a, (X, X[:1])),
            ValueError,
            "same first dimension",
        ),
        (
            lambda: lax.associative_scan(lambda a, b: a, (X, X[0]), axis=-1),
            ValueError,
            "in one place",
        ),
        (lambda: lax.associative_scan(lambda a, b: (a,), X), ValueError, "tree like"),
    ],
)
def test_refused(call, class_, says):
    with pytest.raises(class_, match=says):
        call()


def test_a_window_as_long_as_the_axis():
    """The form that XLA turns into blocks: its work is linear, not quadratic."""
    text = hlofront.jit(lambda x: lax.cumsum(x, 1, True)).lower(X).as_text()
    assert "window_dimensions = array<i64: 1, 3>" in text
    assert "padding = dense<[[0, 0], [0, 2]]>" in text


def test_scan_has_logarithmic_depth():
    jaxpr = hlofront.make_jaxpr(lambda x: lax.associative_scan(lax.mul, x))(np.ones(64))
    assert sum(equation.primitive.name == "mul" for equation in jaxpr.eqns) == 12
