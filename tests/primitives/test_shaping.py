"""What rearrangements refuse, and when they do nothing."""

import numpy as np
import pytest

import hlofront
from hlofront import lax

X = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    ("call", "class_", "says"),
    [
        (lambda: lax.broadcast_in_dim(X, (2, 3), (0, -1)), TypeError, "nonnegative, got .0, -1"),
        (lambda: lax.broadcast_in_dim(X, (2, 4), (0, 1)), TypeError, r"shape \(2, 3\), target"),
        (lambda: lax.broadcast_in_dim(X, (2, 3), (0,)), TypeError, "length equal to operand ndim"),
        (lambda: lax.broadcast_in_dim(X, (2, 3), (0, 5)), TypeError, "subset of output dimensions"),
        (lambda: lax.broadcast_in_dim(X, (2,), (0, 1)), TypeError, "equal or higher rank"),
        (lambda: lax.broadcast_in_dim(X[:, :2], (2, 2), (1, 1)), TypeError, "different axes"),
        (lambda: lax.broadcast_in_dim(1.0, (-3,), ()), TypeError, "shape must have every element"),
        (lambda: lax.broadcast_in_dim("a", (3,), ()), TypeError, "str"),
        (
            lambda: lax.broadcast(X, (2,), out_sharding="x"),
            TypeError,
            "is a PartitionSpec, a Named",
        ),
        (lambda: lax.reshape(X, (-1,)), TypeError, "must all be positive, got"),
        (lambda: lax.reshape(X, (7,)), ValueError, r"\(7,\) of 7 elements for shape \(2, 3\) of 6"),
        (lambda: lax.reshape(X, (6,), (1,)), TypeError, "permutation of operand dimensions"),
        (lambda: lax.reshape([1, 2], (2,)), TypeError, "list"),
        (lambda: lax.collapse(X, 2, 1), ValueError, r"\(2, 3\)\[2:1\]"),
        (lambda: lax.squeeze(X, (0,)), ValueError, "size not equal to one"),
        (lambda: lax.squeeze(X[:1], (0, -2)), ValueError, "not unique"),
        (lambda: lax.squeeze(X, (2,)), ValueError, "out of bounds"),
        (lambda: lax.expand_dims(X, (0, 0)), ValueError, "repeated axis"),
        (lambda: lax.expand_dims(X, (5,)), ValueError, "out of bounds"),
        (lambda: lax.transpose(X, (1,)), TypeError, "isn't a permutation"),
        (lambda: lax.transpose(X, (-1, 0)), TypeError, "isn't a permutation"),
        (lambda: lax.rev(X, (2,)), TypeError, "less than operand ndim"),
        (lambda: lax.rev(X, (0, 0)), TypeError, "unique"),
        (lambda: lax.tile(X, (2,)), TypeError, "length must be equal"),
        (lambda: lax.tile(X, (2, -1)), TypeError, "nonnegative"),
    ],
)
def test_refused(call, class_, says):
    with pytest.raises(class_, match=says):
        call()
    with pytest.raises(class_, match=says):
        hlofront.make_jaxpr(call)()


@pytest.mark.parametrize(
    ("shapes", "wanted"),
    [
        ((), ()),
        (((),), ()),
        (((2, 3), (2, 3)), (2, 3)),
        (((2, 3), (3,), ()), (2, 3)),
        (((2, 1), [1, 4]), (2, 4)),
        (((0,), (1,)), (0,)),
        ((np.array([2, 3]), (3,)), (2, 3)),
    ],
)
def test_broadcast_shapes(shapes, wanted):
    assert lax.broadcast_shapes(*shapes) == wanted


@pytest.mark.parametrize(
    ("shapes", "class_"),
    [
        (((2,), (3,)), ValueError),
        (((2, 3), (2,)), ValueError),
        (((-1,),), TypeError),
        ((2, 3), TypeError),
    ],
)
def test_broadcast_shapes_refuses(shapes, class_):
    with pytest.raises(class_):
        lax.broadcast_shapes(*shapes)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: lax.broadcast(x, ()),
        lambda x: lax.broadcast_in_dim(x, (2, 3), (0, 1)),
        lambda x: lax.broadcast_to_rank(x, 1),
        lambda x: lax.reshape(x, (2, 3)),
        lambda x: lax.reshape(x, (2, 3), (0, 1)),
        lambda x: lax.transpose(x, (0, 1)),
        lambda x: lax.squeeze(x, ()),
        lambda x: lax.expand_dims(x, ()),
        lambda x: lax.collapse(x, 0, 1),
        lambda x: lax.concatenate([x], 0),
    ],
)
def test_nothing_is_done_where_nothing_changes(function):
    assert not hlofront.make_jaxpr(function)(X).eqns
    result = function(X)
    assert isinstance(result, hlofront.Array), "but NumPy arrays become arrays"
    assert function(result) is result
