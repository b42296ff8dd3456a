"""What introductions show: arrays, pure functions, jit, indices out of bounds, trees."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp


def test_linspace_and_rounding():
    x = jnp.linspace(0, 5, 11)
    assert repr(x) == (
        "Array([0. , 0.5, 1. , 1.5, 2. , 2.5, 3. , 3.5, 4. , 4.5, 5. ], dtype=float32)"
    )
    circle = jnp.sin(x) ** 2 + jnp.cos(x) ** 2
    assert str(jnp.round(jnp.mean(circle), 7)) == "1.0"


def test_sorting_returns_a_copy():
    x = jnp.array([2, 1, 0])
    assert (str(x.sort()), str(x)) == ("[0 1 2]", "[2 1 0]")


def test_updating_returns_a_copy():
    old = jnp.zeros(1)
    new = old.at[0].set(1)
    assert f"new = {new}, old = {old}" == "new = [1.], old = [0.]"


def test_reads_out_of_bounds_are_clamped_or_filled():
    assert int(jnp.arange(10)[11]) == 9
    assert np.isnan(jnp.arange(10.0).at[11].get(mode="fill", fill_value=jnp.nan))
    np.testing.assert_array_equal(jnp.arange(3).at[7].set(5), [0, 1, 2])


def test_a_function_is_traced_again_for_another_shape(capsys):
    @jax.jit
    def add_one(x):
        print("traced")
        return x + 1

    assert str(add_one(jnp.array([0.0]))) == "[1.]"
    assert str(add_one(jnp.array([0.0]))) == "[1.]"
    assert str(add_one(jnp.array([1.0, 2.0, 3.0]))) == "[2. 3. 4.]"
    assert capsys.readouterr().out == "traced\ntraced\n"


def selu(x, alpha=1.1, scale=1.05):
    return scale * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)


def test_where_in_the_place_of_if():
    x = jnp.arange(-3.0, 3.0)
    host = np.asarray(x)
    expected = 1.05 * np.where(host > 0, host, 1.1 * np.exp(host) - 1.1)
    np.testing.assert_allclose(jax.jit(selu)(x), expected, rtol=1e-5)
    np.testing.assert_allclose(selu(x), expected, rtol=1e-5)

    def relu(x):
        return x if x > 0 else 0

    with pytest.raises(jax.errors.ConcretizationTypeError, match=r"jnp\.where"):
        jax.jit(relu)(5.0)


def test_a_window_that_slides_in_python():
    x = jnp.array([-1.0, 0.0, 1.0, 0, -1.0])
    weights = jnp.array([1.0, 1.0, 1.0]) / 3
    means = jnp.array([jnp.dot(x[i - 1 : i + 2], weights) for i in range(1, len(x) - 1)])
    assert repr(means) == "Array([0.        , 0.33333334, 0.        ], dtype=float32)"
    columns = jnp.stack([jnp.zeros_like(x), x, jnp.ones_like(x)]).T
    assert columns.shape == (5, 3) and str(columns[1]) == "[0. 0. 1.]"


def test_trees_have_leaves():
    example = {"a": 0, "b": (1, 2)}
    assert jax.tree_util.tree_leaves(example) == [0, 1, 2]
    assert repr(jax.tree_util.tree_leaves(jnp.array([3, 4, 5]))) == (
        "[Array([3, 4, 5], dtype=int32)]"
    )
    leaves = jax.tree_util.tree_leaves(["a", object()])
    assert leaves[0] == "a" and len(leaves) == 2


def test_a_linear_model_on_a_tree_of_parameters():
    params = {"slope": jnp.array([2.0]), "offset": jnp.array([10.0])}

    @jax.jit
    def loss(params, data):
        prediction = params["slope"] * data["x"] + params["offset"]
        return jnp.mean((data["y"] - prediction) ** 2)

    x = jnp.linspace(-1, 1, 50)
    np.testing.assert_allclose(loss(params, {"x": x, "y": 2 * x + 10.5}), 0.25, rtol=1e-4)


# ---- an overview for numerical work


def test_arithmetic_products_and_slices():
    x, y = jnp.array([1, 2, 0, 5]), jnp.array([5, 2, 3, 1])
    assert (str(x * 2), str(x @ y), str(y[:2])) == ("[ 2  4  0 10]", "14", "[5 2]")
    z = jnp.array([[1.0, 2.0, 3.5], [4.0, 5.0, 6.1]])
    assert z.shape == (2, 3) and str(z.dtype) == "float32"


def test_large_integer_products_and_their_mean():
    x = jnp.arange(1024)[:, None]
    y = x @ x.T
    np.testing.assert_allclose(float(y.mean()), 261632.25, rtol=1e-6)
    np.testing.assert_allclose(float((y + 1).mean()), 261633.25, rtol=1e-6)


def test_a_chain_of_operations_jitted():
    def chain(x, y):
        x = x * y
        x = jnp.minimum(x, 0)
        return x + y

    x, y = jnp.arange(1024), jnp.arange(1024) - 512
    np.testing.assert_array_equal(jax.jit(chain)(x, y), chain(x, y))
    np.testing.assert_array_equal(
        chain(x, y), np.minimum(np.asarray(x) * np.asarray(y), 0) + np.asarray(y)
    )


def test_assignment_inside_jit_is_refused_too():
    @jax.jit
    def f(x):
        x[2] = 1
        return x

    with pytest.raises(TypeError, match=r"\.at\[idx\]\.set"):
        f(jnp.arange(3))


def test_updates_and_choices_inside_jit():
    set_third = jax.jit(lambda x: x.at[2].set(1))
    assert repr(set_third(jnp.array([0, 0, 0]))) == "Array([0, 0, 1], dtype=int32)"
    chosen = jax.jit(lambda x, y: jnp.where(y == 1, x, 10))
    assert repr(chosen(jnp.array([1, 2, 3]), jnp.array([1, 0, 0]))) == (
        "Array([ 1, 10, 10], dtype=int32)"
    )
