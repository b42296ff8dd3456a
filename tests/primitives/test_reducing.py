"""What reductions refuse, and where they are particular."""

import numpy as np
import pytest

import hlofront
import hlofront as jax
import hlofront.numpy as jnp
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


def test_sums_of_narrow_floats_are_forbidden_by_an_option():
    narrow = jnp.ones((3, 1), "float16")
    sums = jax.jit(lambda x: lax.reduce_sum(x, (0,)))
    assert sums(narrow).tolist() == lax.reduce_sum(narrow, (0,)).tolist() == [3]
    with jax.allow_f16_reductions(False):
        for forbidden in (
            lambda: lax.reduce_sum(narrow, (0,)),
            lambda: sums(narrow),
            lambda: lax.reduce_sum(narrow.astype("bfloat16"), (0, 1)),
            lambda: jax.vmap(lambda x: lax.reduce_sum(x, (0,)))(narrow.T),
            lambda: jax.grad(lambda x: (x * narrow).sum())(jnp.float16(2)),
            lambda: jax.grad(lambda x: jnp.broadcast_to(x, (3,)).sum())(jnp.float16(2)),
            lambda: jnp.einsum("ij->", narrow),
        ):
            with pytest.raises(ValueError, match="jax_allow_f16_reductions"):
                forbidden()
        assert lax.reduce_sum(narrow, (1,)).tolist() == [1, 1, 1]
        assert lax.reduce_sum(narrow.astype("float32"), (0,)).tolist() == [3]
        # Sums of jax.numpy are in float32.
        assert jnp.sum(narrow) == 3 and jnp.mean(narrow) == 1 and jnp.max(narrow) == 1
    assert sums(narrow).tolist() == [3]
