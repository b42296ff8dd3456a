"""Shapes of arrays, and the order of their elements, as in NumPy."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp

A = np.arange(12, dtype=np.float32).reshape(3, 4)
B = np.arange(24, dtype=np.int32).reshape(2, 1, 3, 4)

CASES = {
    "reshape": (lambda m, a: m.reshape(a, (4, 3)), A),
    "reshape rest": (lambda m, a: m.reshape(a, (2, -1)), A),
    "reshape int": (lambda m, a: m.reshape(a, -1), A),
    "reshape F": (lambda m, a: m.reshape(a, (2, 6), order="F"), A),
    "reshape nothing": (lambda m, a: m.reshape(a[:0], (0, 7)), A),
    "ravel": (lambda m, a: m.ravel(a), B),
    "ravel F": (lambda m, a: m.ravel(a, order="F"), A),
    "transpose": (lambda m, a: m.transpose(a), B),
    "transpose axes": (lambda m, a: m.transpose(a, (1, -1, 0, 2)), B),
    "permute_dims": (lambda m, a: m.permute_dims(a, (1, 0)), A),
    "matrix_transpose": (lambda m, a: m.matrix_transpose(a), B),
    "swapaxes": (lambda m, a: m.swapaxes(a, 0, -1), B),
    "moveaxis": (lambda m, a: m.moveaxis(a, (0, 2), (-1, 0)), B),
    "rollaxis": (lambda m, a: m.rollaxis(a, 3, 1), B),
    "squeeze": (lambda m, a: m.squeeze(a), B),
    "squeeze axis": (lambda m, a: m.squeeze(a, 1), B),
    "expand_dims": (lambda m, a: m.expand_dims(a, (0, -1)), A),
    "broadcast_to": (lambda m, a: m.broadcast_to(a, (2, 3, 4)), A),
    "flip": (lambda m, a: m.flip(a), A),
    "flip axis": (lambda m, a: m.flip(a, (-1,)), A),
    "fliplr": (lambda m, a: m.fliplr(a), A),
    "flipud": (lambda m, a: m.flipud(a), A),
    "roll": (lambda m, a: m.roll(a, 5), A),
    "roll axes": (lambda m, a: m.roll(a, (1, -2), axis=(0, 1)), A),
    "rot90": (lambda m, a: m.rot90(a), A),
    "rot90 thrice": (lambda m, a: m.rot90(a, 3, (1, 0)), A),
    "tile": (lambda m, a: m.tile(a, (2, 1, 2)), A),
    "repeat": (lambda m, a: m.repeat(a, 2), A),
    "repeat axis": (lambda m, a: m.repeat(a, 3, axis=1), A),
    "repeat each": (lambda m, a: m.repeat(a, np.array([2, 0, 1]), axis=0), A),
    "resize": (lambda m, a: m.resize(a, (3, 5)), A),
    "atleast_3d": (lambda m, a: m.atleast_3d(a), A),
    "atleast_2d": (lambda m, a: m.atleast_2d(a[0]), A),
    "trim_zeros": (lambda m, a: m.trim_zeros(a[0]), A),
    "T": (lambda m, a: a.T, B),
    "mT": (lambda m, a: a.mT, B),
    "method reshape": (lambda m, a: a.reshape(2, -1), A),
    "method transpose": (lambda m, a: a.transpose(1, 0), A),
    "method flatten": (lambda m, a: a.flatten("F"), A),
    "method astype": (lambda m, a: a.astype("int8"), A),
    "method view": (lambda m, a: a.view("int32"), A),
    "view of another size": (lambda m, a: a.view("int16"), A),
    "method diagonal": (lambda m, a: a.diagonal(1), A),
}


@pytest.mark.parametrize("case", CASES)
def test_as_numpy(case):
    function, a = CASES[case]
    expected, found = function(np, a), function(jnp, jnp.asarray(a))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    assert found.shape == expected.shape


def test_several_arrays():
    found = jnp.broadcast_arrays(A, 1.0, A[:1])
    assert [x.shape for x in found] == [(3, 4)] * 3
    assert jnp.broadcast_shapes((3, 1), (4,), ()) == (3, 4)
    assert [x.shape for x in jnp.atleast_1d(1.0, A)] == [(1,), (3, 4)]
    assert (jnp.ndim(B), jnp.shape(B), jnp.size(B), jnp.size(A, 1)) == (4, B.shape, 24, 4)


def test_repeat_of_traced_numbers_has_the_given_length():
    @jax.jit
    def repeated(x, n):
        return jnp.repeat(x, n, axis=0, total_repeat_length=5)

    found = repeated(A, np.array([1, 2, 1]))
    np.testing.assert_array_equal(found, A[[0, 1, 1, 2, 2]])


def test_equations_are_the_plainest():
    x = jnp.asarray(A)

    def equations(function):
        return [str(e.primitive) for e in jax.make_jaxpr(function)(x).jaxpr.eqns]

    assert equations(lambda x: x.T) == ["transpose"]
    assert equations(lambda x: x.reshape(-1)) == ["reshape"]
    assert equations(lambda x: x.reshape(3, 4)) == []
    assert equations(lambda x: x.astype("int8")) == ["convert_element_type"]
    assert equations(lambda x: x.astype("float32")) == []
    assert equations(lambda x: jnp.expand_dims(x, 0)) == ["broadcast_in_dim"]
    assert equations(lambda x: jnp.moveaxis(x, 0, 0)) == []


class ReshapesItself:
    """An object that JAX takes for an array, with a method `reshape` of its own."""

    def __jax_array__(self):
        return jnp.asarray(A)

    def reshape(self, shape, order):
        return shape, order


def test_numpy_reshapes_its_own_arrays():
    wide = A.astype(np.float64)
    known = []

    @jax.jit
    def traced(x):
        known.append(jnp.reshape(wide, (4, 3), order="F"))
        return jnp.reshape(x, (4, 3), order="F") + known[0]

    np.testing.assert_array_equal(traced(A), 2 * A.reshape((4, 3), order="F"))
    assert type(known[0]) is np.ndarray and known[0].dtype == wide.dtype
    assert np.shares_memory(jnp.reshape(wide, -1, copy=True), wide)
    assert type(jnp.reshape(np.float32(1), ())) is np.float32
    assert jnp.reshape(ReshapesItself(), 12) == (12, "C")
    for value in (jnp.asarray(A), 1.0):
        assert isinstance(jnp.reshape(value, -1), jax.Array)
    with pytest.raises(ValueError, match="into shape"):
        jnp.reshape(A, 5)


@pytest.mark.parametrize(
    "wrong, error, text",
    [
        (lambda x: x.reshape(5), TypeError, "cannot reshape array of shape"),
        (lambda x: x.reshape(-1, -1), TypeError, "only specify one unknown"),
        (lambda x: x.reshape(2.0, 6), TypeError, "Shapes must be 1D"),
        (lambda x: x.reshape((3, 4), order="A"), NotImplementedError, "order"),
        (lambda x: x.transpose(0), TypeError, "permutation"),
        (lambda x: jnp.transpose([1]), TypeError, "requires ndarray or scalar"),
        (lambda x: x.squeeze(0), ValueError, "size not equal to one"),
        (lambda x: x.swapaxes(0, 3), IndexError, "out of bounds"),
        (lambda x: jnp.broadcast_to(x, (3,)), ValueError, "fewer dimensions"),
        (lambda x: jnp.broadcast_to(x, (3, 3)), ValueError, "Incompatible"),
        (lambda x: jnp.flip(x, 3), ValueError, "out of bounds"),
        (lambda x: jnp.rot90(x, 1, (0, 0)), ValueError, "must be different"),
        (lambda x: jnp.moveaxis(x, (0, 1), 0), ValueError, "number of elements"),
        (lambda x: x[0].mT, ValueError, "at least two-dimensional"),
        (lambda x: jnp.repeat(x, -1), TypeError, "negative"),
        (lambda x: jnp.resize(x, (2, -1)), ValueError, "non-negative"),
        (lambda x: jax.jit(lambda n: x.reshape(n, 4))(3), TypeError, "concrete values"),
    ],
)
def test_errors(wrong, error, text):
    with pytest.raises(error, match=text):
        wrong(jnp.asarray(A))
