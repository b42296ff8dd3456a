"""What slices and joins refuse, and derivatives of rolled arrays."""

import numpy as np
import pytest

import hlofront
import hlofront.numpy as jnp
from hlofront import lax

X = np.arange(6, dtype=np.float32).reshape(2, 3)
N = np.arange(300)
ints = X.astype(np.int32)


@pytest.mark.parametrize(
    ("call", "class_", "says"),
    [
        (lambda: lax.slice(X, (-1, 0), (2, 3)), TypeError, "start_indices must have every element"),
        (lambda: lax.slice(X, (0, 2), (2, 1)), TypeError, "greater than or equal to start"),
        (lambda: lax.slice(X, (0, 0), (2, 4)), TypeError, "less than or equal to operand shape"),
        (lambda: lax.slice(X, (0,), (2,)), TypeError, "length equal to the number of dimensions"),
        (lambda: lax.slice(X, (0, 0), (2, 3), (1,)), TypeError, "strides must have length"),
        (lambda: lax.slice(X, (0, 0), (2, 3), (1, 0)), TypeError, "positive"),
        (lambda: lax.slice(X, (0, 0), (2, 3), (1, -1)), TypeError, "nonnegative"),
        (lambda: lax.slice(X, (0.0, 0), (2, 3)), TypeError, "sequence of integers"),
        (lambda: lax.slice(X, 0, 2), TypeError, "sequence of integers"),
        (lambda: lax.slice_in_dim(X, 0, 1, axis=2), IndexError, "out of bounds"),
        (lambda: lax.slice_in_dim(X, 0, 9), TypeError, "limit_indices"),
        (lambda: lax.slice_in_dim(X, -9, None), TypeError, "start_indices"),
        (lambda: lax.index_in_dim(X, 2), IndexError, "index 2 is out of bounds for axis 0"),
        (lambda: lax.concatenate([], 0), ValueError, "non-empty"),
        (lambda: lax.concatenate([X, X], -1), TypeError, "out of bounds: dimension -1"),
        (lambda: lax.concatenate([X, X[0]], 0), TypeError, "different numbers of dimensions"),
        (lambda: lax.concatenate([X, X[:1]], 1), TypeError, "other than the one being"),
        (lambda: lax.concatenate([X, ints], 0), TypeError, "float32, int32.*jnp.concatenate"),
        (lambda: lax.concatenate([1.0, 2.0], 0), TypeError, "out of bounds"),
        (lambda: lax.stack([]), ValueError, "non-empty"),
        (lambda: lax.stack([X, X[:1]]), ValueError, "different shapes"),
        (lambda: lax.stack([X, X[0]]), ValueError, "different numbers of dimensions"),
        (lambda: lax.stack([X, ints]), TypeError, "same dtypes"),
        (lambda: lax.stack([X], 3), ValueError, "axis 3"),
        (lambda: lax.unstack(1.0), ValueError, "axis 0"),
        (lambda: lax.split(X, (1, 1), 1), ValueError, "Sum of sizes 2"),
        (lambda: lax.split(X, (-1, 4), 1), ValueError, "nonnegative"),
        (lambda: lax.pad(X, 0, ((0, 0, 0),) * 2), TypeError, "float32 and int32"),
        (lambda: lax.pad(X, X[0], ((0, 0, 0),) * 2), ValueError, "must be a scalar"),
        (lambda: lax.pad(X, 0.0, ((0, 0, 0),)), ValueError, "number of axes"),
        (lambda: lax.pad(X, 0.0, ((0, 0, 0), (0, 0, 0), 7)), ValueError, "number of axes"),
        (lambda: lax.pad(X, 0.0, ((0, 0, -1),) * 2), ValueError, "must be nonnegative"),
        (lambda: lax.pad(X, 0.0, ((-3, 0, 0),) * 2), ValueError, r"result shape \(-1, 0\)"),
        (lambda: lax.pad(X, 0.0, ((1, 0),) * 2), ValueError, "three numbers"),
        (lambda: lax.pad(X, 0.0, ((1.0, 0, 0),) * 2), TypeError, "sequence of integers"),
    ],
)
def test_refused(call, class_, says):
    with pytest.raises(class_, match=says):
        call()
    with pytest.raises(class_, match=says):
        hlofront.make_jaxpr(call)()


def test_traced_bounds_are_refused():
    with pytest.raises(TypeError, match="static_argnums"):
        hlofront.jit(lambda i: lax.slice(X, (i, 0), (2, 3)))(1)
    with pytest.raises(hlofront.errors.TracerIntegerConversionError):
        hlofront.jit(lambda i: lax.slice_in_dim(X, i, 2))(1)


@pytest.mark.parametrize(
    ("call", "class_", "says"),
    [
        (lambda: lax.dynamic_slice(X, (0,), (1, 1)), ValueError, r"1 vs \(2, 3\)"),
        (lambda: lax.dynamic_slice(X, 0, (1, 1)), TypeError, "1D sequence, got 0"),
        (lambda: lax.dynamic_slice(X, ints, (1, 1)), ValueError, "1D sequence"),
        (lambda: lax.dynamic_slice(X, (0, 0), (1,)), ValueError, "slice_sizes"),
        (lambda: lax.dynamic_slice(X, (0, 0), (1, 4)), TypeError, "less than or equal to operand"),
        (lambda: lax.dynamic_slice(X, (0, 0), (1, -1)), TypeError, "greater than or equal to zero"),
        (
            lambda: lax.dynamic_slice(X, (0, 1.0), (1, 1)),
            TypeError,
            "same type, got: int32, float32",
        ),
        (lambda: lax.dynamic_slice(X, (0, np.int8(1)), (1, 1)), TypeError, "int32, int8"),
        (lambda: lax.dynamic_slice(X, (True, False), (1, 1)), TypeError, "bool, bool"),
        (lambda: lax.dynamic_slice(X, (0, ints[0]), (1, 1)), TypeError, "must be scalars"),
        (lambda: lax.dynamic_slice(X, (0, "a"), (1, 1)), TypeError, "str"),
        (
            lambda: lax.dynamic_slice(X, (0, -1), (1, 1), allow_negative_indices=False),
            ValueError,
            "Index -1 is out of bounds",
        ),
        (lambda: lax.dynamic_update_slice(X, X[0], (0, 0)), TypeError, "same rank"),
        (lambda: lax.dynamic_update_slice(X, ints, (0, 0)), TypeError, "same dtypes"),
        (lambda: lax.dynamic_update_slice(X[:1], X, (0, 0)), TypeError, "smaller than operand"),
        (lambda: lax.dynamic_update_slice(X, X, (0.0, 0.0)), TypeError, "float32, float32"),
        (lambda: lax.dynamic_update_index_in_dim(X, 1.0, 0, 0), TypeError, "same rank"),
        (lambda: lax.dynamic_index_in_dim(X, 0, 2), IndexError, "axis 2"),
    ],
)
def test_dynamic_ones_refuse(call, class_, says):
    with pytest.raises(class_, match=says):
        call()
    with pytest.raises(class_, match=says):
        hlofront.make_jaxpr(call)()


def test_huge_indices_are_the_furthest():
    assert lax.dynamic_slice(N, (2**40,), (2,)).tolist() == [298, 299]
    assert lax.dynamic_slice(N, (-(2**70),), (2,)).tolist() == [0, 1]


def test_sizes_beyond_a_narrow_index_wrap():
    # As JAX has it: 300 is 44 in int8.
    index = lax.full((), -1, np.int8)
    assert lax.dynamic_slice(N, (index,), (1,)).tolist() == [43]


def test_indices_known_while_tracing_are_literals():
    program = hlofront.make_jaxpr(lambda x: lax.dynamic_slice(x, (-1, np.int32(-2)), (1, 1)))(X)
    assert "dynamic_slice[slice_sizes=(1, 1)] a 1:i32[] 1:i32[]" in str(program)
    with hlofront.enable_x64(True):
        program = hlofront.make_jaxpr(lambda x: lax.dynamic_slice(x, (-1, 0), (1, 1)))(X)
    assert "a 1:i64[] 0:i64[]" in str(program)


def test_cotangents_of_rolls_are_rolls():
    def rolled_back(shift):
        return hlofront.make_jaxpr(hlofront.grad(lambda x: (jnp.roll(x, shift, 1) * X).sum()))

    names = {each.primitive.name for each in rolled_back(2)(X).eqns}
    assert "concatenate" in names
    assert names.isdisjoint({"pad", "add_any"})


@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
def test_derivatives_of_rolled_matrices(axis):
    back = hlofront.jit(hlofront.grad(lambda x: (jnp.roll(x, 1, axis) * X**2).sum()))(X)
    np.testing.assert_array_equal(back, np.roll(X**2, -1, axis))
    batch = np.stack([X, -X])
    rolled = hlofront.jit(hlofront.vmap(lambda x: jnp.roll(x, 1, 1)))(batch)
    np.testing.assert_array_equal(rolled, np.roll(batch, 1, 2))
