"""Reductions by a user's function: which are known ones, and what is refused."""

import numpy as np
import pytest

import hlofront
from hlofront import lax

X = np.arange(6, dtype=np.float32).reshape(2, 3)
N = X.astype(np.int32)
add = lax.add


@pytest.mark.parametrize(
    ("operand", "start", "function", "primitive"),
    [
        (X, 0.0, lax.add, "reduce_sum"),
        (X, 0, lax.add, "reduce_sum"),
        (X, np.float32(0), lax.add, "reduce_sum"),
        (X, 1.0, lax.mul, "reduce_prod"),
        (X, -np.inf, lax.max, "reduce_max"),
        (X, np.inf, lax.min, "reduce_min"),
        (N, np.iinfo(np.int32).min, lax.max, "reduce_max"),
        (N, -1, lax.bitwise_and, "reduce_and"),
        (N > 2, True, lax.bitwise_and, "reduce_and"),
        (N > 2, False, lax.bitwise_or, "reduce_or"),
        (N, 0, lax.bitwise_xor, "reduce_xor"),
        (X, 1.0, lax.add, "reduce"),
        (N, 0, lax.max, "reduce"),
        (X, 0.0, lax.sub, "reduce"),
        (X, 0.0, lambda a, b: add(a, b), "reduce"),
    ],
)
def test_known_reductions(operand, start, function, primitive):
    jaxpr = hlofront.make_jaxpr(lambda x: lax.reduce(x, start, function, (0,)))(operand)
    assert [equation.primitive.name for equation in jaxpr.eqns] == [primitive]


def test_a_traced_start_is_not_known():
    jaxpr = hlofront.make_jaxpr(lambda x, s: lax.reduce(x, s, lax.add, (0,)))(X, np.float32(0))
    assert jaxpr.eqns[0].primitive.name == "reduce"


@pytest.mark.parametrize(
    ("call", "class_", "says"),
    [
        (lambda: lax.reduce(X, 0.5, 3, (0,)), TypeError, "must be a function, got 3"),
        (lambda: lax.reduce(X, "a", add, (0,)), TypeError, "'a'"),
        (lambda: lax.reduce([], [], add, (0,)), ValueError, "at least one operand"),
        (lambda: lax.reduce(X, (0.0,), add, (0,)), ValueError, "same tree structure"),
        (lambda: lax.reduce(X, np.zeros(2, np.float32), add, (0,)), ValueError, "non-scalar"),
        (lambda: lax.reduce(X, 1, add, (0,)), TypeError, "dtypes should match"),
        (lambda: lax.reduce(X, 1.0, add, (2,)), IndexError, "axis 2"),
        (lambda: lax.reduce(X, 1.0, add, (0, 0)), ValueError, "duplicate"),
        (lambda: lax.reduce(X, 1.0, add, 0), TypeError, "sequence of integers"),
        (lambda: lax.reduce(X, 0.0, lax.gt, (0,)), ValueError, r"float32.*returned \['bool"),
        (lambda: lax.reduce(X, 0.0, lambda a, b: (a, b), (0,)), ValueError, "tree structure"),
        (
            lambda: lax.reduce((X, X[0]), (0.0, 0.0), lambda a, b: a, (0,)),
            ValueError,
            "operands of equal shape",
        ),
        (lambda: lax.reduce_window(X, 1, add, (1, 2)), TypeError, "inconsistent dtypes"),
        (lambda: lax.reduce_window(X, (0.0,), add, (1, 2)), ValueError, "same tree structure"),
        (lambda: lax.reduce_window(X, 0.0, lax.gt, (1, 2)), ValueError, "returned"),
        (
            lambda: lax.reduce_window(X, 0.0, lambda a, b: (a,), (1, 2)),
            ValueError,
            "tree structure",
        ),
        (lambda: lax.reduce_window(X, X, add, (1, 2)), TypeError, "to be scalars"),
    ],
)
def test_refused(call, class_, says):
    with pytest.raises(class_, match=says):
        call()


@pytest.mark.parametrize("over", ["reduce", "reduce_window"])
def test_functions_may_not_use_traced_values(over):
    @hlofront.jit
    def scaled(x, factor):
        weigh = lambda a, b: lax.add(a, lax.mul(b, factor))
        return getattr(lax, over)(x, 0.0, weigh, (0, 1))

    with pytest.raises(NotImplementedError, match=r"can't close over Tracers.*another operand"):
        scaled(X, np.float32(2))


def test_a_function_is_written_down_and_compiled_once():
    calls = []

    def weigh(a, b):
        calls.append(1)
        return lax.add(a, lax.mul(b, b))

    for _ in range(3):
        np.testing.assert_allclose(lax.reduce(X[:, :1], 0.0, weigh, (0,)), [9.0])
    assert len(calls) == 1
    lax.reduce(X.astype(np.float16), np.float16(0), weigh, (0,))
    assert len(calls) == 2


def test_functions_that_cannot_be_keys():
    class Weigh:
        __slots__ = ()

        def __call__(self, a, b):
            return lax.add(a, b)

    assert float(lax.reduce(X, 2.0, Weigh(), (0, 1))) == 17.0
    Weigh.__hash__ = None
    with pytest.raises(TypeError, match="hash"):
        lax.reduce(X, 2.0, Weigh(), (0, 1))


def test_large_constants_are_made_inside_the_region():
    weights = np.arange(1000, dtype=np.float32)

    def bounded(a, b):
        return lax.max(a, lax.min(b, lax.reduce_max(weights, (0,))))

    text = hlofront.jit(lambda x: lax.reduce(x, 0.0, bounded, (0, 1))).lower(X).as_text()
    region = text[text.index("reducer(") :]
    assert "tensor<1000xf32>" in region
    assert float(lax.reduce(X, 0.0, bounded, (0, 1))) == 5.0
