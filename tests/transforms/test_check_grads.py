"""check_grads and similar functions distinguish right derivatives from wrong ones, and explain."""

import re

import ml_dtypes
import numpy as np
import pytest

import hlofront
from hlofront import jvp, lax, vjp
from hlofront import numpy as hnp
from hlofront.test_util import check_grads, check_jvp, check_vjp

X = np.float32([0.5, 1.5, 2.5])


def wrong_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return lax.sin(x), 2 * t * lax.cos(x)


def wrong_vjp(x):
    return lax.sin(x), lambda cotangent: (2 * cotangent * lax.cos(x),)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (lax.sin, (X,)),
        (lambda x: x * x * x, (3.0,)),
        (lambda x, i: x * i, (X, np.int32(3))),
        (lambda x, flag: hnp.where(flag, x, 2 * x), (X, True)),
        (lambda x, nothing: lax.exp(x), (X, None)),
        (lambda x: (x * x, hnp.argmax(x)), (X,)),
        (lambda x: lax.sin(x) * lax.exp(x), (X + 1j * X,)),
        (lambda x: hnp.abs(x), (X + 1j * X,)),
        (lambda x: lax.real(x) * 1j + lax.conj(x), (X + 1j * X,)),
        (lambda x: hnp.asarray(x).at[1].multiply(x[0]), (X,)),
        (lambda tree: {"z": tree["a"] * lax.sin(tree["b"][0])}, ({"a": X, "b": [X]},)),
        (lambda x: lax.sin(50.0 * x), (X,)),
        (lambda x: hnp.sum(lax.exp(x)), (5 * X[:2],)),
        (lambda: 1.5, ()),
        (lambda i: i, (np.arange(3),)),
    ],
)
def test_right_derivatives_pass(function, args):
    check_grads(function, args, order=2)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_dtypes(dtype):
    check_grads(lax.sin, (X.astype(dtype),), order=1)
    with pytest.raises(AssertionError):
        check_jvp(lax.sin, wrong_jvp, (X.astype(dtype),))


def test_differences_of_large_numbers_are_rounded():
    """The differences of results near 1e6 have errors of some hundred at a step of 1e-3."""
    x = np.linspace(0.1, 1.0, 8, dtype=np.float32)
    check_grads(lambda x: 1e6 + lax.sin(x), (x,), 1, atol=1e-3, rtol=1e-3)


def test_doubles_are_held_to_more():
    def slightly_wrong(primals, tangents):
        primal, tangent = jvp(lax.sin, primals, tangents)
        return primal, tangent * (1 + 1e-4)

    with hlofront.enable_x64(True):
        x = X.astype(np.float64)
        check_grads(lax.sin, (x,), order=3)
        with pytest.raises(AssertionError):
            check_jvp(lax.sin, slightly_wrong, (x,))
        check_jvp(lax.sin, slightly_wrong, (x,), rtol=1e-3)
        check_jvp(lax.sin, slightly_wrong, (x,), atol={np.float64: 1e-3})
        with pytest.raises(AssertionError):
            check_jvp(lax.sin, slightly_wrong, (x,), atol={np.float32: 1e-3})


def test_a_wrong_tangent_is_described():
    with pytest.raises(AssertionError) as error:
        check_jvp(lax.sin, wrong_jvp, (X,))
    message = str(error.value)
    assert message.startswith("jvp of sin: tangents differ from numerical differences")
    assert "3 of 3 elements are off" in message
    assert re.search(r"args\[0\]: off by [\d.]+", message)


def test_a_wrong_cotangent_is_described():
    with pytest.raises(AssertionError, match="hello") as error:
        check_vjp(lax.sin, wrong_vjp, (X,), err_msg="hello")
    assert re.search(r"args\[0\]: off by [\d.]+", str(error.value))


def test_the_wrong_argument_is_found():
    def function(tree, y):
        return {"z": tree["a"] * lax.sin(tree["b"][0]) + y}

    def f_jvp(primals, tangents):
        (tree, y), (tree_dot, y_dot) = primals, tangents
        wrong = {"a": tree_dot["a"], "b": [2 * tree_dot["b"][0]]}
        return jvp(function, (tree, y), (wrong, y_dot))

    def f_vjp(*args):
        results, pull_back = vjp(function, *args)

        def wrong(cotangent):
            tree, y = pull_back(cotangent)
            return {"a": tree["a"], "b": [2 * tree["b"][0]]}, y

        return results, wrong

    for check, derivative in ((check_jvp, f_jvp), (check_vjp, f_vjp)):
        with pytest.raises(AssertionError) as error:
            check(function, derivative, ({"a": X, "b": [X]}, X))
        message = str(error.value)
        assert re.search(r"args\[0\]\['b'\]\[0\]: off by [\d.]+", message)
        assert "not off: args[0]['a'], args[1]" in message


def test_orders_and_modes():
    with pytest.raises(ValueError, match="'fwd' and 'rev', not 'bwd'"):
        check_grads(lax.sin, (X,), 1, modes=["bwd"])
    check_grads(lax.sin, (X,), 2, modes="fwd")
    check_grads(lax.sin, (X,), 2, modes=["rev"])

    with pytest.raises(AssertionError, match="jvp of"):
        # It has a kink at zero, which large steps see.
        check_grads(lambda x: x * abs(x) + x, (np.float32([0.0, 0.5]),), 2, eps=0.1)


def test_results_and_types_are_checked():
    with pytest.raises(AssertionError, match="not that of the function"):
        check_jvp(lax.sin, lambda p, t: (p[0], t[0]), (X,))
    with pytest.raises(AssertionError, match=r"must have shape \(3,\) and dtype float32"):
        check_jvp(lax.sin, lambda p, t: (lax.sin(p[0]), t[0][:1]), (X,))
    with pytest.raises(AssertionError, match=r"the cotangent of args\[0\] must have shape \(3,\)"):
        check_vjp(lax.sin, lambda x: (lax.sin(x), lambda c: (c[:1],)), (X,))
    with pytest.raises(ValueError, match="one entry per argument"):
        check_vjp(lax.sin, lambda x: (lax.sin(x), lambda c: (c, c)), (X,))
    with pytest.raises(AssertionError, match="dtype float0"):
        check_vjp(lambda i: i, lambda i: (i, lambda c: (np.float32(0),)), (np.int32(1),))
    with pytest.raises(TypeError):
        check_grads(lax.sin, ("text",), 1)


def test_nan_where_the_derivative_has_none():
    with pytest.raises(AssertionError, match="nan"):
        check_grads(lax.log, (-X,), 1)
