"""Modes of gather and scatter, what they refuse, and what eager calls compile."""

import numpy as np
import pytest

import hlofront
from hlofront import lax

G, S, M = lax.GatherDimensionNumbers, lax.ScatterDimensionNumbers, lax.GatherScatterMode
X = np.arange(15, dtype=np.float32).reshape(3, 5)
I = np.array([[0], [2]], np.int32)
U = np.ones((2, 5), np.float32)
ROWS, INTO_ROWS = G((1,), (0,), (0,)), S((1,), (0,), (0,))
PAIRS, INTO_PAIRS = np.zeros((3, 1), np.int32), np.ones((3, 2), np.float32)


def gather(numbers=ROWS, sizes=(1, 5), indices=I, **options):
    return lambda: lax.gather(X, indices, numbers, sizes, **options)


def scatter(numbers=INTO_ROWS, indices=I, updates=U, operand=X, **options):
    return lambda: lax.scatter_add(operand, indices, updates, numbers, **options)


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("clip", M.CLIP),
        ("fill", M.FILL_OR_DROP),
        ("drop", M.FILL_OR_DROP),
        ("promise_in_bounds", M.PROMISE_IN_BOUNDS),
        ("one_hot", M.ONE_HOT),
        (None, M.FILL_OR_DROP),
        (M.CLIP, M.CLIP),
    ],
)
def test_modes(name, mode):
    assert M.from_any(name) is mode


@pytest.mark.parametrize("name", ["CLIP", "wrap", 2, []])
def test_unknown_modes(name):
    with pytest.raises(ValueError, match="Unknown gather mode"):
        M.from_any(name)


def test_one_hot_is_zero_beyond():
    result = lax.gather(X, np.int32([[1], [7]]), ROWS, (1, 5), mode="one_hot")
    np.testing.assert_array_equal(result, [X[1], np.zeros(5)])


def test_lists_and_numpy_integers_are_dimension_numbers_too():
    numbers = G(offset_dims=[1], collapsed_slice_dims=np.array([0]), start_index_map=[0])
    np.testing.assert_array_equal(lax.gather(X, I, numbers, [1, 5]), X[[0, 2]])


@pytest.mark.parametrize(
    ("call", "class_", "says"),
    [
        (gather(indices=I.astype(float)), ValueError, "integer type, got float32"),
        (gather(indices=1), TypeError, "rank.indices. is 0"),
        (gather(indices=I[:, [0, 0]]), TypeError, "1 elements in start_index_map"),
        (gather(sizes=(1, 6)), TypeError, r"Slice size at index 1 .* must be within \[0, 5 \+ 1\)"),
        (gather(sizes=(1, -1)), TypeError, "Slice size at index 1"),
        (gather(sizes=(2, 5)), TypeError, "collapse slice dims with bound 1"),
        (gather(sizes=(1,)), TypeError, "one slice size for every input dimension"),
        (gather(G((1, 0), (), (0,))), TypeError, "must be sorted"),
        (gather(G((1, 1), (), (0,))), TypeError, "must not repeat"),
        (gather(G((0, 5), (), (0,))), TypeError, "offset_dims"),
        (gather(G((1,), (), (0,))), TypeError, "offset dimension or explicitly collapsed"),
        (gather(G((1,), (2,), (0,))), TypeError, "Invalid collapsed_slice_dims"),
        (gather(G((1,), (0,), (2,))), TypeError, "Invalid start_index_map"),
        (gather(G((1,), (), (1,), (0,), ()), (1, 2), PAIRS), TypeError, "equal numbers of operand"),
        (gather(G((1,), (), (0,), (0,), (0,)), (1, 2), PAIRS), TypeError, "disjoint"),
        (gather(G((1,), (0,), (1,), (0,), (0,)), (1, 2), PAIRS), TypeError, "disjoint"),
        (gather(G((1,), (), (1,), (0,), (0,)), (1, 2), PAIRS[:2]), TypeError, "same shape"),
        (gather(G((1,), (), (1,), (0,), (0,)), (2, 2), PAIRS), TypeError, "bound 0/1"),
        (gather(G((1,), (), (1,), (0,), (1,)), (1, 2), PAIRS), TypeError, "index vector"),
        (gather(((1,), (0,), (0,))), TypeError, "must be a GatherDimensionNumbers"),
        (gather(mode="foo"), ValueError, "Unknown gather mode"),
        (gather(mode="fill", fill_value=np.ones(2)), TypeError, "must be a scalar"),
        (gather(mode="fill", fill_value="a"), TypeError, "str"),
        (scatter(indices=I.astype(float)), ValueError, "integer type"),
        (scatter(updates=U.astype(np.int32)), TypeError, "same dtypes, got float32, int32"),
        (scatter(indices=1), TypeError, "rank.indices. is 0"),
        (scatter(indices=I[:, [0, 0]]), TypeError, "scatter_dims_to_operand_dims"),
        (scatter(operand=1.0), TypeError, "Invalid inserted_window_dims"),
        (scatter(updates=U[0]), TypeError, "must be of rank 2; got 1"),
        (scatter(updates=np.ones((2, 6), np.float32)), TypeError, "updates bound is 6, operand"),
        (scatter(updates=np.ones((3, 5), np.float32)), TypeError, "bound is 3, indices bound is 2"),
        (
            scatter(S((1,), (), (0,))),
            TypeError,
            "window of size 1; doesn't match operand of rank 2",
        ),
        (scatter(S((1,), (0,), (2,))), TypeError, "scatter_dims_to_operand_dims"),
        (scatter(S((2,), (0,), (0,))), TypeError, "update_window_dims"),
        (scatter(S((1,), (2,), (0,))), TypeError, "inserted_window_dims"),
        (scatter(S((1,), (), (1,), (0,), ()), PAIRS, INTO_PAIRS), TypeError, "equal numbers"),
        (scatter(S((1,), (), (0,), (0,), (0,)), PAIRS, INTO_PAIRS), TypeError, "disjoint"),
        (scatter(S((1,), (), (1,), (0,), (1,)), PAIRS, INTO_PAIRS), TypeError, "index vector"),
        (scatter(mode="foo"), ValueError, "Unknown gather mode"),
        (scatter(operand=X > 0, updates=U > 0), TypeError, "add does not accept dtype bool"),
        (lambda: lax.scatter_apply(X, I, 3, INTO_ROWS), TypeError, "callable"),
        (
            lambda: lax.scatter_apply(X, I, lambda y: (y, y), INTO_ROWS, update_shape=(2, 5)),
            ValueError,
            "Invalid return type from reduction function",
        ),
        (
            lambda: lax.scatter_apply(
                X, I, lambda y: lax.gt(y, 0.0), INTO_ROWS, update_shape=(2, 5)
            ),
            TypeError,
            "must return a scalar of dtype float32",
        ),
    ],
)
def test_refused(call, class_, says):
    with pytest.raises(class_, match=says):
        call()
    with pytest.raises(class_, match=says):
        hlofront.make_jaxpr(call)()


def test_scatter_apply_uses_no_traced_values():
    def f(x):
        return lax.scatter_apply(X, I, lambda y: lax.add(y, x), INTO_ROWS, update_shape=(2, 5))

    with pytest.raises(TypeError, match="a value of an enclosing traced function"):
        hlofront.jit(f)(np.float32(1))
    # Outside of one, it is a constant.
    np.testing.assert_array_equal(np.asarray(f(lax.full((), 1, np.float32)))[0], X[0] + 1)


def test_combining_programs_are_shared():
    """So that equal scatters are one compiled program, and print as one."""
    call = lambda x: lax.scatter_add(x, I, U, INTO_ROWS)
    first, second = (hlofront.make_jaxpr(call)(X).eqns[0].params for _ in range(2))
    assert first["update_jaxpr"] is second["update_jaxpr"]
    kept = len(lax.scatter_add_p.eager)
    call(X)
    call(X)
    assert len(lax.scatter_add_p.eager) <= kept + 1
    double = lambda y: lax.add(y, y)
    for _ in range(2):
        lax.scatter_apply(X, I, double, INTO_ROWS, update_shape=(2, 5))
        kept, before = len(lax.scatter_p.eager), kept
    assert kept == before


def test_nan_fill_values_are_one():
    for _ in range(2):
        lax.gather(X, I, ROWS, (1, 5), mode="fill", fill_value=np.float32("nan"))
        kept = len(lax.gather_p.eager)
    lax.gather(X, I, ROWS, (1, 5), mode="fill")
    assert len(lax.gather_p.eager) == kept


def test_64_bit_indices():
    with hlofront.enable_x64(True):
        indices = np.int64([[0], [2**32], [-(2**32) + 1]])
        filled = lax.gather(X, indices, ROWS, (1, 5), mode="fill", fill_value=-1)
        clipped = lax.gather(X, indices, ROWS, (1, 5), mode="clip")
        added = lax.scatter_add(np.zeros_like(X), indices, np.ones((3, 5), np.float32), INTO_ROWS)
    np.testing.assert_array_equal(filled, [X[0], np.full(5, -1), np.full(5, -1)])
    np.testing.assert_array_equal(clipped, [X[0], X[2], X[0]])
    np.testing.assert_array_equal(added, [np.ones(5), np.zeros(5), np.zeros(5)])
