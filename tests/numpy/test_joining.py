"""Joining arrays and splitting them, as in NumPy."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp

A = np.arange(12, dtype=np.float32).reshape(3, 4)
I = np.arange(8, dtype=np.int32).reshape(2, 4)

CASES = {
    "concatenate": lambda m, a, i: m.concatenate([a, a]),
    "concatenate dtypes": lambda m, a, i: m.concatenate([i, i.astype("int8")]),
    "concatenate axis": lambda m, a, i: m.concatenate((a, a[:, :1]), axis=-1),
    "concatenate flat": lambda m, a, i: m.concatenate([a, i[0].astype("float32")], axis=None),
    "concatenate one": lambda m, a, i: m.concatenate([a]),
    "concatenate rows": lambda m, a, i: m.concatenate(a),
    "concatenate dtype": lambda m, a, i: m.concatenate([i, i], dtype="float32"),
    "concat": lambda m, a, i: m.concat([a, a], axis=1),
    "stack": lambda m, a, i: m.stack([a, a], axis=1),
    "stack last": lambda m, a, i: m.stack([a, a, a], -1),
    "vstack": lambda m, a, i: m.vstack([a, a[0]]),
    "hstack": lambda m, a, i: m.hstack([a, a]),
    "hstack vectors": lambda m, a, i: m.hstack([a[0], a[1]]),
    "dstack": lambda m, a, i: m.dstack([a, a]),
    "column_stack": lambda m, a, i: m.column_stack([a, a[:, 0]]),
    "block": lambda m, a, i: m.block([[a, a], [a[:1], a[:1] * 2]]),
    "block of vectors": lambda m, a, i: m.block([a[0], a[1]]),
    "append": lambda m, a, i: m.append(a, a[0]),
    "append axis": lambda m, a, i: m.append(a, a[:1], axis=0),
}


@pytest.mark.parametrize("case", CASES)
def test_as_numpy(case):
    expected = CASES[case](np, A, I)
    found = CASES[case](jnp, jnp.asarray(A), jnp.asarray(I))
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


def test_dtypes_meet_by_promotion():
    assert jnp.concatenate([A, I]).dtype == np.float32
    assert jnp.stack([A[0], 1 + A[0].astype(np.int8)]).dtype == np.float32


SPLITS = {
    "split": lambda m, a: m.split(a, 2, axis=1),
    "split at": lambda m, a: m.split(a, [1, 3], axis=1),
    "array_split": lambda m, a: m.array_split(a, 2),
    "hsplit": lambda m, a: m.hsplit(a, 4),
    "vsplit": lambda m, a: m.vsplit(a, 3),
    "dsplit": lambda m, a: m.dsplit(a[None], 2),
    "unstack": lambda m, a: m.unstack(a, axis=1),
}


@pytest.mark.parametrize("case", SPLITS)
def test_splits_as_numpy(case):
    expected, found = SPLITS[case](np, A), SPLITS[case](jnp, jnp.asarray(A))
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.shape == other.shape


def test_jaxpr_of_concatenate_converts_what_is_not_of_the_common_dtype():
    text = str(jax.make_jaxpr(lambda x, i: jnp.concatenate([x, i]))(A, I))
    assert text.count("convert_element_type") == 1
    assert "concatenate[dimension=0]" in text


@pytest.mark.parametrize(
    "wrong, error, text",
    [
        (lambda x: jnp.concatenate([]), ValueError, "Need at least one"),
        (lambda x: jnp.concatenate([x, x[0]]), TypeError, "different numbers of dimensions"),
        (lambda x: jnp.concatenate([[1, 2], [3]]), TypeError, "requires ndarray or scalar"),
        (lambda x: jnp.concatenate([1.0, 2.0]), ValueError, "Zero-dimensional"),
        (lambda x: jnp.concatenate(1.0), TypeError, "sequence|iterable"),
        (lambda x: jnp.stack([]), ValueError, "Need at least one"),
        (lambda x: jnp.stack([x, x[0]]), ValueError, "shape|dimensions"),
        (lambda x: jnp.split(x, 2), ValueError, "equal division"),
        (lambda x: jnp.block(((x,),)), ValueError, "tuples"),
        (lambda x: jnp.block([x, [x]]), ValueError, "list depths"),
    ],
)
def test_errors(wrong, error, text):
    with pytest.raises(error, match=text):
        wrong(jnp.asarray(A))
