"""vjp and linearize with in_nzs and saveable_args, as jax 0.12 has them."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp

x, y = jnp.float32([1, 2]), jnp.float32([3, 4])


def test_arguments_without_tangents_have_zero_cotangents():
    result, backward = jax.vjp(lambda x, y: {"a": (x * y, y), "b": [y]}, x, y, in_nzs=(True, False))
    assert backward.out_nzs == {"a": (True, False), "b": [False]}
    x_bar, y_bar = backward(result)
    np.testing.assert_array_equal(x_bar, result["a"][0] * y)
    np.testing.assert_array_equal(y_bar, [0, 0])


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (((True,), False), x * y),
        (((False,), True), x * y),
        (False, 0 * x),
        ([[True], True], 2 * x * y),
    ],
)
def test_tangents_of_arguments_are_left_out(flags, expected):
    _, linear = jax.linearize(lambda d, y: d["a"] * y, {"a": x}, y, in_nzs=flags)
    np.testing.assert_array_equal(linear({"a": x}, y), expected)


def test_arguments_that_are_not_held_are_restored():
    _, backward = jax.vjp(
        lambda d, y: d["a"] * y * d["b"],
        {"a": x, "b": x + 1},
        y,
        saveable_args=((True, False), True),
    )
    assert "NotSaveable()" in repr(backward.args_res)
    np.testing.assert_array_equal(jax.tree.leaves(backward.args_res), [x, y])
    assert all(leaf.shape == (2,) for leaf in jax.tree.leaves(backward))
    with pytest.raises(ValueError, match="before restoring its not-saveable residuals"):
        backward(x)
    backward.args_res[0] = {"a": x, "b": x + 1}
    np.testing.assert_array_equal(backward(x)[1], x * x * (x + 1))


@pytest.mark.parametrize("name", ["in_nzs", "saveable_args"])
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((True,), "tree prefix"),
        ((True, (True, False)), "tree prefix"),
        ((True, 3), "tree of bools"),
    ],
)
def test_trees_that_are_not_prefixes_are_refused(name, flags, message):
    with pytest.raises(ValueError, match=f"{name} argument to jax.vjp.*{message}"):
        jax.vjp(lambda x, y: x * y, x, y, **{name: flags})
