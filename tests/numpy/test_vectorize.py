"""vectorize, apply_along_axis, apply_over_axes: against NumPy's, and under transformations."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("signature", "function", "shapes"),
    [
        ("(n,m),(m)->(n)", lambda a, b: a @ b, [(5, 1, 2, 3), (4, 3)]),
        ("(n),(n)->()", lambda a, b: (a * b).sum(), [(3,), (2, 1, 3)]),
        ("(n)->(n,n)", lambda a: a[:, None] * a, [(2, 3)]),
        ("(),(n)->(n)", lambda a, b: a * b, [(2, 1), (3,)]),
        ("(n),()->(n),()", lambda a, b: (a * b, a.max() + b), [(1, 2), (3, 1)]),
    ],
)
def test_signatures_are_numpys(signature, function, shapes):
    args = [np.linspace(0, 1, int(np.prod(shape))).reshape(shape) for shape in shapes]
    args = [arg.astype(np.float32) for arg in args]
    found = jnp.vectorize(function, signature=signature)(*args)
    wanted = np.vectorize(function, signature=signature)(*args)
    for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_arguments_by_name_and_those_left_out():
    def power(a, n=2):
        return a**n

    x = X[0]
    np.testing.assert_allclose(jnp.vectorize(power)(x, n=jnp.arange(4.0)), x ** np.arange(4.0))
    np.testing.assert_allclose(jnp.vectorize(power, excluded={"n"})(x, n=3), x**3)
    np.testing.assert_allclose(jnp.vectorize(power, excluded={1})(x, 3), x**3)
    chosen = jnp.vectorize(lambda a, how: a if how == "same" else -a, excluded=[1])
    np.testing.assert_array_equal(chosen(x, "other"), -x)


def test_one_call_for_all_elements_under_any_transformation():
    calls = []

    def function(a, b):
        calls.append((a.shape, b.shape))
        return a * b

    product = jnp.vectorize(function)
    assert product(X, X[0, :, :1]).shape == X.shape
    assert calls == [((), ())]
    gradient = jax.grad(lambda a: product(a, a).sum())(X[0])
    np.testing.assert_array_equal(gradient, 2 * X[0])
    np.testing.assert_array_equal(jax.jit(jax.vmap(product))(X, X), X * X)
    assert function.__name__ == product.__name__


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_apply_along_axis_is_numpys(axis):
    for function in (lambda v: v.sum(), lambda v: v[:2], lambda v: v[:2, None] * v[:3]):
        found = jnp.apply_along_axis(function, axis, X)
        np.testing.assert_allclose(found, np.apply_along_axis(function, axis, X))


def test_apply_along_axis_under_transformations():
    def sorted_sums(x):
        return jnp.apply_along_axis(lambda v: jnp.sort(v).cumsum(), 1, x)

    wanted = np.cumsum(np.sort(X, 1), 1)
    np.testing.assert_allclose(jax.jit(sorted_sums)(X), wanted)
    np.testing.assert_allclose(jax.grad(lambda x: sorted_sums(x)[:, -1].sum())(X), np.ones_like(X))


def test_apply_over_axes_is_numpys():
    for axes in ([0], (0, 2), (-1, 1), []):
        np.testing.assert_allclose(
            jnp.apply_over_axes(jnp.sum, X, axes), np.apply_over_axes(np.sum, X, axes)
        )


def test_refusals():
    with pytest.raises(ValueError, match=r"not a valid gufunc signature: '\(n\)'"):
        jnp.vectorize(lambda a: a, signature="(n)")(X)
    with pytest.raises(ValueError, match="inconsistent size for core dimension 'n': 2 vs 4"):
        jnp.vectorize(lambda a: a[:2], signature="(n)->(n)")(X)
    with pytest.raises(ValueError, match="incompatible shapes"):
        jnp.vectorize(lambda a, b: a)(X, np.ones(3))
    with pytest.raises(TypeError, match="expected 2, got 1"):
        jnp.vectorize(lambda a, b: a, signature="(n),(n)->()")(X)
