"""Products of matrices and vectors, against NumPy and JAX's programs."""

import ml_dtypes
import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp

X = np.arange(9, dtype=np.float32).reshape(3, 3)
Y = np.arange(12, dtype=np.float32).reshape(3, 4)
V = np.array([1, 2, 4], np.float32)
STACK = np.arange(18, dtype=np.float32).reshape(2, 3, 3)
Z = (X + 1j * X[::-1]).astype(np.complex64)


def check(found, wanted):
    wanted = np.asarray(wanted)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5)


def text(function, *args):
    """The equations of a program, white space squeezed."""
    body = str(jax.make_jaxpr(function)(*args)).split(" let\n")[1].rsplit("\n  in", 1)[0]
    return " ".join(body.split())


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 3), (3, 4)),
        ((3,), (3,)),
        ((3,), (3, 3)),
        ((2, 3, 3), (3,)),
        ((3,), (2, 3, 3)),
        ((2, 3, 3), (2, 3, 3)),
        ((1, 3, 3), (2, 3, 3)),
        ((2, 1, 3, 3), (5, 3, 2)),
        ((1, 1, 2, 3), (1, 3, 2)),
        ((4, 1, 2, 3), (1, 5, 3, 2)),
        ((0, 3), (3, 3)),
        ((2, 0), (0, 3)),
    ],
)
def test_matmul(a, b):
    a = np.arange(np.prod(a), dtype=np.float32).reshape(a)
    b = np.arange(np.prod(b), dtype=np.float32).reshape(b) - 3
    check(jnp.matmul(a, b), a @ b)


def test_operators():
    x = jnp.asarray(X)
    check(x @ Y, X @ Y)
    check(X @ jnp.asarray(Y), X @ Y)
    check(x.dot(V), X @ V)
    check(jax.jit(lambda x: V @ x + x @ V)(X), V @ X + X @ V)
    for wrong in (lambda x: x @ [1, 2, 3], lambda x: "a" @ x):
        with pytest.raises(TypeError, match="unsupported operand"):
            wrong(x)
        with pytest.raises(TypeError, match="unsupported operand"):
            jax.jit(wrong)(x)


def test_programs():
    one = "dot_general[ dimension_numbers=(([1], [0]), ([], [])) preferred_element_type=float32 ]"
    assert text(lambda x: x @ x, X) == f"b:f32[3,3] = {one} a a"
    assert text(lambda x, y: jnp.dot(x, y), X, Y) == f"c:f32[3,4] = {one} a b"
    assert text(lambda x: x @ x, STACK) == (
        "b:f32[2,3,3] = dot_general[ dimension_numbers=(([2], [1]), ([0], [0])) "
        "preferred_element_type=float32 ] a a"
    )
    assert text(lambda x, s: x @ s, X, STACK) == (
        "c:f32[3,2,3] = dot_general[ dimension_numbers=(([1], [1]), ([], [])) "
        "preferred_element_type=float32 ] a b d:f32[2,3,3] = transpose[permutation=(1, 0, 2)] c"
    )
    assert text(lambda x, i: x @ i, X, X.astype(np.int8)) == f"c:f32[3,3] = {one} a b"
    assert "precision=(Precision.HIGH, Precision.HIGH)" in text(
        lambda x: jnp.matmul(x, x, precision="high"), X
    )


def test_dtypes():
    i, half = X.astype(np.int8), X.astype(ml_dtypes.bfloat16)
    assert jnp.matmul(i, i).dtype == np.int8
    assert jnp.matmul(half, half).dtype == ml_dtypes.bfloat16
    assert jnp.matmul(half, X).dtype == np.float32
    assert jnp.dot(half, half, preferred_element_type="float32").dtype == np.float32
    assert jnp.dot(X > 1, X > 1).dtype == np.bool_
    assert jnp.dot(Z, X).dtype == np.complex64
    assert jnp.dot(2.0, 3).weak_type


def test_dot_vdot_inner_outer():
    for a, b in ((X, Y), (STACK, X), (X, STACK), (V, V), (2.0, X), (X, 3)):
        check(jnp.dot(a, b), np.dot(a, b))
    for a, b in ((X, X), (STACK, X), (V, X), (2.0, X)):
        check(jnp.inner(a, b), np.inner(a, b))
    check(jnp.vdot(Z, Z[::-1]), np.vdot(Z, Z[::-1]))
    check(jnp.outer(X, V), np.outer(X, V))
    check(jnp.outer(2, V), np.outer(2, V))


def test_rows_and_columns():
    check(jnp.matvec(STACK, V), STACK @ V)
    check(jnp.matvec(STACK, X[:2]), np.einsum("bij,bj->bi", STACK, X[:2]))
    check(jnp.vecmat(Z[0], X), Z[0].conj() @ X)
    check(jnp.vecdot(Z, X), np.sum(Z.conj() * X, -1))
    check(jnp.vecdot(STACK, STACK[:1], axis=1), np.sum(STACK * STACK[:1], 1))
    check(jnp.vecdot(X, STACK), np.einsum("ij,bij->bi", X, STACK))


def test_tensordot():
    for axes in (0, 1, ((1, 2), (0, 1)), (-1, 1), [[2], [0]], (np.int64(1), 0)):
        check(jnp.tensordot(STACK, X, axes), np.tensordot(STACK, X, axes))
    check(jnp.tensordot(X, X), np.tensordot(X, X))
    for axes, message in (
        (3, "exceeds input ranks"),
        (((0, 1), (0,)), "equal length"),
        ("a", "must be an int"),
        ((1, 0, 0), "must be an int"),
    ):
        with pytest.raises(TypeError, match=message):
            jnp.tensordot(X, X, axes)


def test_kron_and_cross():
    for a, b in ((X, Y), (V, X), (2, X), (2, 3)):
        check(jnp.kron(a, b), np.kron(a, b))
    check(jnp.cross(V, X), np.cross(V, X))
    check(jnp.cross(X, Y[:, :3], 0, 1, 0), np.cross(X, Y[:, :3], 0, 1, 0))
    check(jnp.cross(Y, Y[::-1], axis=0), np.cross(Y, Y[::-1], axis=0))
    check(jnp.cross(np.float32([1, 2]), np.float32([3, 5])), -1)
    check(jnp.cross(X[:, :2], V), np.cross(np.pad(X[:, :2], ((0, 0), (0, 1))), V))
    with pytest.raises(ValueError, match="either 2 or 3"):
        jnp.cross(Y, Y)


def test_trace():
    check(jnp.trace(X), np.trace(X))
    check(jnp.trace(STACK, 1, 2, 0), np.trace(STACK, 1, 2, 0))
    check(jnp.trace(Y, -1), np.trace(Y, -1))
    check(jnp.asarray(Y).trace(9), 0)
    check(jax.jit(lambda k: jnp.trace(X, k))(1), np.trace(X, 1))
    assert jnp.trace(X.astype(np.int8)).dtype == np.int32
    assert jnp.trace(X, dtype="bfloat16").dtype == ml_dtypes.bfloat16
    with pytest.raises(ValueError, match="out of bounds"):
        jnp.trace(V)
    with pytest.raises(ValueError, match="different axes"):
        jnp.trace(X, axis2=0)


def test_what_does_not_fit():
    with pytest.raises(ValueError, match="operand 1 must have ndim at least 1"):
        jnp.matmul(X, 2.0)
    with pytest.raises(ValueError, match="Incompatible types for matmul"):
        jnp.matmul(STACK, np.ones((5, 3, 3), np.float32))
    for function in (jnp.matmul, jnp.dot, jnp.vdot):
        with pytest.raises(TypeError, match="same shape"):
            function(Y, Y[:2])
    with pytest.raises(ValueError, match="ndim at least 2"):
        jnp.matvec(V, V)
    with pytest.raises(ValueError, match="equal sizes"):
        jnp.vecdot(X, Y)
    with pytest.raises(TypeError, match="position 0"):
        jnp.dot([1.0], X)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolution(mode):
    sequences = np.float32([1, 0, 3, 2]), np.float32([2, 5]), V
    for a in sequences:
        for b in sequences:
            check(jnp.convolve(a, b, mode), np.convolve(a, b, mode))
            check(jnp.correlate(a, b, mode), np.correlate(a, b, mode))


def test_convolution_of_other_dtypes():
    check(jnp.correlate(Z[0], Z[1], "full"), np.correlate(Z[0], Z[1], "full"))
    assert jnp.convolve(np.int8([1, 2]), np.int8([3])).dtype == np.float32
    with pytest.raises(ValueError, match="mode must be one of"):
        jnp.convolve(V, V, "some")
    with pytest.raises(ValueError, match="1-dimensional"):
        jnp.convolve(X, V)
    with pytest.raises(ValueError, match="cannot be empty"):
        jnp.convolve(V[:0], V)
