"""Einstein's notation, against NumPy and JAX's programs."""

import ml_dtypes
import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp


def array(*shape):
    return (np.arange(np.prod(shape)) % 7).reshape(shape).astype(np.float32)


X, Y, Z, Q = array(3, 4), array(4, 5), array(5, 2), array(3, 3)
STACK, CUBE = array(2, 3, 4), array(3, 3, 3)


def check(found, wanted):
    assert found.shape == np.shape(wanted)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5)


def text(function, *args):
    """The equations of a program, white space squeezed."""
    body = str(jax.make_jaxpr(function)(*args)).split(" let\n")[1].rsplit("\n  in", 1)[0]
    return " ".join(body.split()).replace(" preferred_element_type=float32", "")


@pytest.mark.parametrize(
    ("subscripts", "operands"),
    [
        ("ij->ji", (X,)),
        ("ji", (X,)),
        ("ij->", (X,)),
        ("ii", (Q,)),
        ("ii->i", (Q,)),
        ("iii->i", (CUBE,)),
        ("jij->i", (CUBE,)),
        ("...ii->...i", (CUBE,)),
        ("i...->...", (STACK,)),
        ("i,j", (X[0], Y[0])),
        ("i,i->i", (X[0], X[1])),
        (",ij->ij", (np.float32(2), X)),
        ("ij,jk", (X, Y)),
        ("ij,jk->ki", (X, Y)),
        ("ij , jk -> k", (X, Y)),
        ("ij,kl->jl", (X, Y)),
        ("ii,ij->j", (Q, X)),
        ("ijj,jk->ik", (CUBE, Q)),
        ("bij,jk->bik", (STACK, Y)),
        ("...ij,jk->...ik", (STACK, Y)),
        ("...ij,jk", (STACK, Y)),
        ("i...j,j...k->i...k", (CUBE, CUBE)),
        ("...,...", (X, X[0])),
        ("ij,ij->i", (X, X[:1])),
        ("ik,ijk->ij", (X[:1], STACK)),
        ("AbC,Cd->Abd", (STACK, Y)),
        ("ij,jk,kl->il", (X, Y, Z)),
        ("ij,jk,kl->li", (X, Y, Z)),
        ("i,i,i", (X[0], X[1], X[2])),
        ("bij,bjk,bkl->bil", (CUBE, CUBE, CUBE)),
        ("ij,ik,il->jkl", (Q, Q, Q)),
        ("ij,jk->ik", (X[:0], Y)),
    ],
)
def test_values(subscripts, operands):
    check(jnp.einsum(subscripts, *operands), np.einsum(subscripts, *operands))


def test_sums_over_an_ellipsis():
    check(jnp.einsum("...ij,jk->ik", STACK, Y), STACK.sum(0) @ Y)
    check(jnp.einsum("...j->j", STACK), STACK.sum((0, 1)))


def test_lists_of_labels():
    check(jnp.einsum(X, [0, 1], Y, [1, 2], [0, 2]), X @ Y)
    check(jnp.einsum(X, [0, 1], Y, [1, 2]), X @ Y)
    check(jnp.einsum(X, [5, 2]), X.T)
    check(jnp.einsum(STACK, [..., 0, 1], Y, [1, 2], [..., 0, 2]), STACK @ Y)
    check(jnp.einsum(CUBE, ["a", "b", "a"], ["b"]), np.einsum("aba->b", CUBE))
    with pytest.raises(TypeError, match="list"):
        jnp.einsum(X)
    with pytest.raises(TypeError, match="list"):
        jnp.einsum(X, Y)


@pytest.mark.parametrize(
    "optimize", ["auto", "optimal", "greedy", True, False, [(0, 1), (0, 1)], ((1, 2), (0, 1))]
)
def test_orders(optimize):
    check(jnp.einsum("ij,jk,kl->il", X, Y, Z, optimize=optimize), X @ Y @ Z)


def test_paths():
    path, report = jnp.einsum_path("ij,jk,kl->il", X, Y, Z)
    assert path == [(1, 2), (0, 1)]
    assert "Optimized FLOP" in str(report)
    assert jnp.einsum_path(X, [0, 1], Y, [1, 2])[0] == [(0, 1)]
    check(jnp.einsum("ij,jk,kl->il", X, Y, Z, optimize=path), X @ Y @ Z)
    with pytest.raises(NotImplementedError, match="3 or more"):
        jnp.einsum("ij,jk,kl->il", X, Y, Z, optimize=[(0, 1, 2)])


def test_programs():
    one = "dot_general[ dimension_numbers=(([1], [0]), ([], [])) ]"
    assert text(lambda x, y: jnp.einsum("ij,jk->ik", x, y), X, Y) == f"c:f32[3,5] = {one} a b"
    assert text(lambda x, y: jnp.einsum("ij,jk->ki", x, y), X, Y) == (
        "c:f32[5,3] = dot_general[ dimension_numbers=(([0], [1]), ([], [])) ] b a"
    )
    assert text(lambda x, y: jnp.einsum("bij,jk->bki", x, y), STACK, Y) == (
        "c:f32[5,2,3] = dot_general[ dimension_numbers=(([0], [2]), ([], [])) ] b a "
        "d:f32[2,5,3] = transpose[permutation=(1, 0, 2)] c"
    )
    assert text(lambda x, y: jnp.einsum("abc,cab->a", x, y), CUBE, CUBE) == (
        "c:f32[3] = dot_general[ dimension_numbers=(([1, 2], [2, 0]), ([0], [1])) ] a b"
    )
    assert text(lambda x, y, z: jnp.einsum("ij,jk,kl->il", x, y, z), X, Y, Z) == (
        "d:f32[2,4] = dot_general[ dimension_numbers=(([0], [1]), ([], [])) ] c b "
        "e:f32[3,2] = dot_general[ dimension_numbers=(([1], [1]), ([], [])) ] a d"
    )
    assert text(lambda x, y: jnp.einsum("ij,jk->k", x, y), X, Y) == (
        "c:f32[4] = reduce_sum[axes=(0,) out_sharding=None] a "
        "d:f32[5] = dot_general[ dimension_numbers=(([0], [0]), ([], [])) ] c b"
    )
    assert not jax.make_jaxpr(lambda x: jnp.einsum("...", x))(X).eqns


def test_dtypes():
    half, i = X.astype(ml_dtypes.bfloat16), X.astype(np.int8)
    assert jnp.einsum("ij,jk", half, Y).dtype == np.float32
    assert jnp.einsum("ij->i", half).dtype == ml_dtypes.bfloat16
    assert jnp.einsum("ij,kj", i, i).dtype == np.int8
    check(jnp.einsum("ij,kj->ik", i, i, preferred_element_type="int32"), X @ X.T)
    assert jnp.einsum("ij->", X, preferred_element_type="bfloat16").dtype == ml_dtypes.bfloat16
    check(jnp.einsum("ij->i", X > 5), (X > 5).any(1))
    check(jnp.einsum("i,i", 1j * X[0], X[0]), 1j * X[0] @ X[0])


def test_another_dot():
    seen = []

    def dot(lhs, rhs, numbers, precision, preferred_element_type):
        seen.append(numbers)
        return jax.lax.dot_general(
            lhs, rhs, numbers, precision, preferred_element_type=preferred_element_type
        )

    check(jnp.einsum("ij,jk", X, Y, _dot_general=dot), X @ Y)
    assert seen == [(((1,), (0,)), ((), ()))]


@pytest.mark.parametrize(
    ("subscripts", "operands", "message"),
    [
        ("ij,jk->iz", (X, Y), "'z' did not appear in the input"),
        ("ij,jk->iik", (X, Y), "more than once in the output"),
        ("ij,jk->ik", (X,), "must be equal to the number of operands"),
        ("ij,jk->ik", (X, X), "Size of label 'j' for operand 1"),
        ("ii->i", (X,), "Size of label 'i' for operand 0"),
        ("ijk->i", (X,), "correct number of indices for operand 0"),
        ("i->i", (X,), "correct number of indices for operand 0"),
        ("ij->i->j", (X,), "one '->'"),
        ("ij..->i", (X,), "Invalid Ellipses"),
        ("......->", (X,), "Invalid Ellipses"),
    ],
)
def test_malformed(subscripts, operands, message):
    with pytest.raises(ValueError, match=message):
        jnp.einsum(subscripts, *operands)


def test_refusals():
    with pytest.raises(NotImplementedError, match="'out' argument"):
        jnp.einsum("ij", X, out=X)
    with pytest.raises(TypeError, match="position 0"):
        jnp.einsum("ij,jk", [[1.0]], X)
