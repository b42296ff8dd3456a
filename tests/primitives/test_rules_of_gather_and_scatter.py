"""Derivatives and batches of gather and scatter: promises, modes, ties, refusals, equations."""

import numpy as np
import pytest

import hlofront
from hlofront import lax

G, S, M = lax.GatherDimensionNumbers, lax.ScatterDimensionNumbers, lax.GatherScatterMode
X = np.arange(15, dtype=np.float32).reshape(3, 5)
ROWS, INTO_ROWS = G((1,), (0,), (0,)), S((1,), (0,), (0,))
I = np.array([[0], [2]], np.int32)
BEYOND = np.array([[0], [7]], np.int32)
U = np.ones((2, 5), np.float32)


def gather(x, indices=I, **options):
    return lax.gather(x, indices, ROWS, (1, 5), **options)


def into(function, **options):
    return lambda x, indices, updates: function(x, indices, updates, INTO_ROWS, **options)


def names(function, *args):
    return [equation.primitive.name for equation in hlofront.make_jaxpr(function)(*args).eqns]


def equation_of(name, function, *args):
    equations = hlofront.make_jaxpr(function)(*args).eqns
    (found,) = [equation for equation in equations if equation.primitive.name == name]
    return found


def backwards(function, *args):
    """The function of a cotangent that the transpose is, traced without the function's values."""
    return lambda cotangent: hlofront.linear_transpose(function, *args)(cotangent)


def test_what_is_filled_in_has_no_tangent():
    fill = lambda x: gather(x, BEYOND, mode="fill", fill_value=3)
    result, tangent = hlofront.jvp(fill, (X,), (np.ones_like(X),))
    np.testing.assert_array_equal(result[1], np.full(5, 3))
    np.testing.assert_array_equal(tangent, [np.ones(5), np.zeros(5)])


@pytest.mark.parametrize("mode", [M.CLIP, M.FILL_OR_DROP, M.PROMISE_IN_BOUNDS])
def test_promises_go_both_ways(mode):
    promises = {"indices_are_sorted": True, "unique_indices": True, "mode": mode}
    add = equation_of("scatter-add", backwards(lambda x: gather(x, **promises), X), U).params
    assert {key: add[key] for key in promises} == promises
    to_updates = backwards(lambda u: into(lax.scatter_add, **promises)(X * 0, I, u), U)
    read = equation_of("gather", to_updates, X).params
    assert {key: read[key] for key in promises} == promises
    assert read["fill_value"] == (0 if mode is M.FILL_OR_DROP else None)


def test_promises_of_batches():
    promises = {"indices_are_sorted": True, "unique_indices": True}
    stack, indices = np.stack([X, X]), np.stack([I, I])
    for axes, kept in (((0, 0), True), ((0, None), True), ((None, 0), False)):
        operands = (stack if axes[0] == 0 else X, indices if axes[1] == 0 else I)
        call = hlofront.vmap(lambda x, i: gather(x, i, **promises), axes)
        params = equation_of("gather", call, *operands).params
        assert {key: params[key] for key in promises} == dict.fromkeys(promises, kept), axes


@pytest.mark.parametrize("axes", [(0, 0), (1, 1), (2, 0), (1, None), (None, 1), (2, None)])
def test_batches_need_no_transpose_before(axes):
    stack, indices = np.stack([X, X], axes[0] or 0), np.stack([I, I], axes[1] or 0)
    operands = (X if axes[0] is None else stack, I if axes[1] is None else indices)
    # Where the result has its new axis is left open: only that may be moved.
    call = hlofront.vmap(gather, axes)
    assert names(call, *operands)[:1] == ["gather"]


@pytest.mark.parametrize("function", [lax.scatter, lax.scatter_add, lax.scatter_max])
def test_batches_of_scatter_are_one_equation(function):
    call = hlofront.vmap(into(function))
    (found,) = names(call, *(np.stack([x, x]) for x in (X, I, U)))
    assert found.startswith("scatter")


def test_scatter_of_one_place_needs_no_numbers():
    call = lambda x, u: lax.scatter(x, I[:1], u, INTO_ROWS)
    both = lambda x, u: hlofront.jvp(call, (x, u), (x, u))
    assert names(both, X, U[:1]) == ["scatter", "scatter"]


def test_derivatives_agree_on_which_update_is_kept():
    often = np.zeros((50, 1), np.int32)
    updates = np.arange(250, dtype=np.float32).reshape(50, 5)
    call = lambda u: lax.scatter(X, often, u, INTO_ROWS)
    result, pull = hlofront.vjp(call, updates)
    (cotangent,) = pull(np.ones_like(X))
    kept = np.asarray(cotangent) == 1
    assert kept.sum() == 5
    np.testing.assert_array_equal(np.sort(updates[kept]), np.sort(np.asarray(result)[0]))


def test_values_keep_their_sign_of_zero_under_derivatives():
    negative = np.full((2, 5), -0.0, np.float32)
    result, _ = hlofront.jvp(
        lambda x, u: lax.scatter(x, I, u, INTO_ROWS), (-X * 0, negative), (X, negative)
    )
    assert np.signbit(result).all()


@pytest.mark.parametrize("function", [lax.scatter_min, lax.scatter_max])
@pytest.mark.parametrize("mode", ["clip", "drop"])
def test_ties_share_a_tangent(function, mode):
    places = np.array([[0], [0], [9]], np.int32)
    call = lambda x, u: function(x, places, u, INTO_ROWS, mode=mode)
    x, updates = np.ones((3, 5), np.float32), np.ones((3, 5), np.float32)
    of_x, of_updates = hlofront.vjp(call, x, updates)[1](np.ones_like(x))
    rows = [1 / 3, 1, 0.5 if mode == "clip" else 1]
    np.testing.assert_allclose(of_x, np.repeat(rows, 5).reshape(3, 5), rtol=1e-6)
    rows = [1 / 3, 1 / 3, 0.5 if mode == "clip" else 0]
    np.testing.assert_allclose(of_updates, np.repeat(rows, 5).reshape(3, 5), rtol=1e-6)


def test_nan_elsewhere_does_not_spread_to_tangents():
    x = X.copy()
    x[1] = np.nan
    _, tangent = hlofront.jvp(lambda x: lax.scatter_max(x, I, U, INTO_ROWS), (x,), (X + 1,))
    np.testing.assert_array_equal(tangent[1], X[1] + 1)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda u: hlofront.jvp(lambda u: lax.scatter_mul(X, I, u, INTO_ROWS), (u,), (u,)),
         "scatter_mul .*unique_indices=True"),
        (lambda u: backwards(lambda u: lax.scatter(X * 0, I, u, INTO_ROWS), u)(X),
         "transpose of scatter .*unique_indices=True"),
        (lambda u: hlofront.jvp(
            lambda u: lax.scatter_apply(u, I[:1], lax.sin, INTO_ROWS, update_shape=(1, 5)),
            (u,), (u,)), "scatter_apply has no derivative"),
    ],
)  # fmt: skip
def test_refusals(call, says):
    with pytest.raises(NotImplementedError, match=says):
        call(U)


def test_empty_operands():
    empty = np.zeros((0, 5), np.float32)
    pull = hlofront.vjp(lambda u: lax.scatter_add(empty, I, u, INTO_ROWS), U)[1]
    np.testing.assert_array_equal(pull(empty)[0], np.zeros_like(U))
    mapped = hlofront.vmap(gather)(np.zeros((0, 3, 5), np.float32), np.zeros((0, 2, 1), np.int32))
    assert mapped.shape == (0, 2, 5)
