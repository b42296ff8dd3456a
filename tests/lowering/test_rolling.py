"""Rolled arrays: on CPUs large vectors are the middle of two copies, others selected elements."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base.config import options
from hlofront.lowering import rolling_cpu

X = np.arange(7, dtype=np.float32)


@pytest.fixture(autouse=True)
def arrays_of_any_size_are_large(monkeypatch):
    for name in ("_FEWEST_BYTES_OF_VECTORS", "_SHORTEST", "_FEWEST", "_FEWEST_BY_MORE"):
        monkeypatch.setattr(rolling_cpu, name, 0)
    hlofront.clear_caches()
    yield
    hlofront.clear_caches()


def text(function, *args, platforms=("cpu",)):
    return str(hlofront.jit(function).trace(*args).lower(lowering_platforms=platforms).as_text())


def is_doubled(function, *args, **options):
    return "tensor<14x" in text(function, *args, **options)


@pytest.mark.parametrize("shift", [-8, -1, 0, 3, 7, 20])
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex64"])
def test_vectors_are_rolled_as_by_numpy(shift, dtype):
    x = X.astype(dtype)
    rolled = hlofront.jit(lambda x: jnp.roll(x, shift))(x)
    assert rolled.dtype == x.dtype
    np.testing.assert_array_equal(rolled, np.roll(x, shift))


def test_derivatives_roll_back():
    weights = np.arange(7.0, dtype=np.float32) ** 2
    back = hlofront.jit(hlofront.grad(lambda x: (jnp.roll(x, 2) * weights).sum()))(X)
    np.testing.assert_array_equal(back, np.roll(weights, -2))
    np.testing.assert_array_equal(
        hlofront.vmap(lambda x: jnp.roll(x, 1))(X.reshape(1, 7)), [np.roll(X, 1)]
    )


def test_only_cpus_double_a_vector():
    assert is_doubled(lambda x: jnp.roll(x, 2), X)
    assert is_doubled(lambda x: lax.concatenate([x[4:], x[:4]], 0), X)
    for platforms in (("tpu",), ("cuda",), ("tpu", "cuda")):
        assert not is_doubled(lambda x: jnp.roll(x, 2), X, platforms=platforms)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: [x[4:], y[:4]],
        lambda x, y: [x[:4], x[4:]],
        lambda x, y: [x[3:], x[:4]],
        lambda x, y: [x[5:], x[:4]],
        lambda x, y: [x[4:6], x[:5]],
        lambda x, y: [x[4:], x[:3], x[3:4]],
        lambda x, y: [x[4:], x[:7:2]],
        lambda x, y: [x[4:], x],
    ],
)
def test_other_slices_are_concatenated_as_they_are(function):
    def joined(x, y):
        return lax.concatenate(function(x, y), 0)

    y = X + 10
    assert not is_doubled(joined, X, y)
    np.testing.assert_array_equal(hlofront.jit(joined)(X, y), np.concatenate(function(X, y)))


@settings(max_examples=50, deadline=None)
@given(
    st.sampled_from([(3, 5), (4, 1), (2, 3, 4), (5, 0)]),
    st.integers(-6, 6),
    st.integers(0, 2),
    st.sampled_from(["float32", "int32", "uint32", "int8", "bfloat16", "complex64"]),
)
def test_arrays_are_rolled_as_by_numpy(shape, shift, axis, dtype):
    x = jnp.asarray(np.arange(np.prod(shape)).reshape(shape) - 3).astype(dtype)
    axis %= x.ndim
    rolled = hlofront.jit(lambda x: jnp.roll(x, shift, axis))(x)
    assert rolled.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(rolled), np.roll(np.asarray(x), shift, axis))


def test_rolled_zeros_and_nans_keep_their_bits():
    x = np.array([[-0.0, 0.0, np.nan, -np.nan, np.inf, -1e-45]], np.float32)
    rolled = hlofront.jit(lambda x: jnp.roll(x, 2, 1))(x)
    np.testing.assert_array_equal(np.asarray(rolled).view("i4"), np.roll(x, 2, 1).view("i4"))


MATRIX = np.arange(12, dtype=np.float32).reshape(3, 4)


def is_selected(function, *args, **options):
    return "stablehlo.select" in text(function, *args, **options)


def test_only_cpus_select_the_elements_of_a_rolled_matrix():
    def rolled(x):
        return jnp.roll(x, 1, 1)

    assert is_selected(rolled, MATRIX)
    assert is_selected(lambda x: lax.concatenate([x[:, 3:], x[:, :3]], 1), MATRIX)
    for platforms in (("tpu",), ("cuda",), ("tpu", "cuda")):
        assert not is_selected(rolled, MATRIX, platforms=platforms)
    with options["hlofront_cpu_formulas"](False):
        assert not is_selected(rolled, MATRIX)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: lax.concatenate([x[:, 3:], x[:, :2]], 1),
        lambda x: lax.concatenate([x[:, 2:], x[1:, :2]][:1] * 2, 1),
        lambda x: lax.concatenate([x[:2, 3:], x[:2, :3]], 1),
        lambda x: lax.concatenate([x[:, :3], x[:, 3:]], 1),
        lambda x: jnp.roll(x, 1, 0),
        lambda x: jnp.roll(x.astype(np.int16), 1, 1),
        lambda x: jnp.roll(x + 1j, 1, 1),
    ],
)
def test_other_matrices_are_concatenated(function):
    assert not is_selected(function, MATRIX)


def test_large_matrices_with_long_lines_are_selected(monkeypatch):
    monkeypatch.undo()
    for shape, shift, selects in (
        ((256, 128), 1, True),
        ((256, 128), -1, True),
        ((256, 128), 2, False),
        ((4096, 128), 2, True),
        ((255, 128), 1, False),
        ((4096, 127), 1, False),
    ):
        x = hlofront.ShapeDtypeStruct(shape, np.float32)
        assert is_selected(lambda x, shift=shift: jnp.roll(x, shift, 1), x) == selects


def test_cotangents_of_rolls_are_rolls():
    def rolled_back(shift):
        return hlofront.make_jaxpr(hlofront.grad(lambda x: (jnp.roll(x, shift, 1) * MATRIX).sum()))

    names = {each.primitive.name for each in rolled_back(3)(MATRIX).eqns}
    assert "concatenate" in names
    assert names.isdisjoint({"pad", "add_any"})


@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
def test_derivatives_of_rolled_matrices(axis):
    back = hlofront.jit(hlofront.grad(lambda x: (jnp.roll(x, 1, axis) * MATRIX**2).sum()))(MATRIX)
    np.testing.assert_array_equal(back, np.roll(MATRIX**2, -1, axis))
    batch = np.stack([MATRIX, -MATRIX])
    rolled = hlofront.jit(hlofront.vmap(lambda x: jnp.roll(x, 1, 1)))(batch)
    np.testing.assert_array_equal(rolled, np.roll(batch, 1, 2))


def test_smaller_vectors_are_concatenated(monkeypatch):
    monkeypatch.undo()
    for size, doubles in ((2**22, True), (2**22 - 1, False)):
        program = text(lambda x: jnp.roll(x, 5), np.zeros(size, np.float32))
        assert (f"tensor<{2 * size}x" in program) == doubles
