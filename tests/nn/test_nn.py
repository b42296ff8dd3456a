"""Functions of neural networks: values against formulas, derivatives, transformations."""

import math

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import nn
from hlofront.test_util import check_grads

X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)


def test_derivatives():
    smooth = (nn.gelu, nn.silu, nn.mish, nn.softplus, nn.squareplus, nn.soft_sign, nn.celu)

    def f(x):
        return sum(one(x) for one in smooth) + nn.softmax(x) * nn.log_softmax(x) + nn.standardize(x)

    check_grads(jax.jit(f), (X,), order=1, rtol=2e-2, atol=2e-2)


def test_the_shift_of_logsumexp_over_all_axes_is_chosen_as_one_number():
    # XLA for TPUs would write an array of one element to memory.
    jaxpr = jax.make_jaxpr(nn.logsumexp, static_argnums=1)
    for axis, shape in ((None, ()), (1, (3,))):
        equations = jaxpr(X, axis).eqns
        (shift,) = [each for each in equations if each.primitive.name == "select_n"]
        assert shift.outvars[0].aval.shape == shape


def test_derivatives_at_corners():
    corners = jax.vmap(jax.grad(nn.relu6))(jnp.array([0.0, 3.0, 6.0]))
    assert corners.tolist() == [0, 1, 0]
    assert jax.grad(nn.relu)(0.0) == 0
    assert np.isfinite(jax.grad(nn.elu)(200.0))


def test_custom_rule_of_softmax():
    expected = jax.grad(lambda x: (nn.softmax(x) ** 2).sum())(X)
    with jax.softmax_custom_jvp(True):
        found = jax.grad(lambda x: (nn.softmax(x) ** 2).sum())(X)
        text = str(jax.make_jaxpr(nn.softmax)(X))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert "custom_jvp_call" in text


def test_softmax_is_one_executable():
    x = jnp.asarray(X)
    nn.softmax(x)
    with jax.no_recompile():
        np.testing.assert_allclose(nn.softmax(x).sum(-1), 1, rtol=1e-6)


def _attention(q, k, v, seen):
    group = q.shape[2] // k.shape[2]
    k, v = (np.repeat(x, group, axis=2) for x in (k, v))
    scores = np.einsum("btnh,bsnh->bnts", q, k) / math.sqrt(q.shape[-1])
    scores = np.where(seen, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bnts,bsnh->btnh", weights / weights.sum(-1, keepdims=True), v)


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_attention(heads):
    generator = np.random.default_rng(1)
    q = generator.normal(size=(2, 5, 4, 8)).astype(np.float32)
    k, v = generator.normal(size=(2, 2, 6, heads, 8)).astype(np.float32)
    places, others = np.arange(5)[:, None], np.arange(6)[None]
    seen = (others <= places) & (others >= places - 2)
    found = nn.dot_product_attention(q, k, v, is_causal=True, local_window_size=2)
    np.testing.assert_allclose(found, _attention(q, k, v, seen), atol=1e-5)


def test_attention_transformed():
    generator = np.random.default_rng(2)
    q, k = generator.normal(size=(2, 3, 4, 2, 2)).astype(np.float32)
    mapped = jax.vmap(lambda q, k: nn.dot_product_attention(q, k, k))(q, k)
    np.testing.assert_allclose(mapped, nn.dot_product_attention(q, k, k), atol=1e-6)
    f = jax.jit(lambda q, k: nn.dot_product_attention(q, k, k, is_causal=True))
    check_grads(f, (q[:1], k[:1]), order=1, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize(("mode", "tolerance"), [("mxfp8", 0.06), ("nvfp4", 0.25)])
def test_quantized_products(mode, tolerance):
    a = np.random.default_rng(3).normal(size=(2, 8, 64)).astype(np.float32)
    b = np.random.default_rng(4).normal(size=(2, 6, 64)).astype(np.float32)
    numbers = (((2,), (2,)), ((0,), (0,)))
    configs = [nn.get_scaled_dot_general_config(mode)] * 3

    def f(a, b):
        return nn.scaled_dot_general(a, b, numbers, configs=configs)

    exact = np.einsum("bik,bjk->bij", a, b)
    size = np.abs(exact).max()
    assert np.abs(f(a, b) - exact).max() < tolerance * size
    of_a, of_b = jax.jit(jax.grad(lambda a, b: f(a, b).sum(), (0, 1)))(a, b)
    np.testing.assert_allclose(of_a, np.broadcast_to(b.sum(1, keepdims=True), a.shape), atol=4)
    assert of_b.shape == b.shape


def test_scaled_matmul_is_exact():
    generator = np.random.default_rng(5)
    a, b = (jnp.asarray(generator.normal(size=(1, n, 64)), jnp.float8_e4m3fn) for n in (3, 2))
    one, two = (
        jnp.asarray(2.0 ** generator.integers(-3, 4, (1, n, 2)), jnp.float8_e8m0fnu) for n in (3, 2)
    )

    def wide(x, scales):
        return np.asarray(x, np.float64) * np.repeat(np.asarray(scales, np.float64), 32, -1)

    expected = np.einsum("bik,bjk->bij", wide(a, one), wide(b, two))
    np.testing.assert_allclose(nn.scaled_matmul(a, b, one, two), expected, rtol=1e-5, atol=1e-4)
    with pytest.raises(ValueError, match="3-dimensional"):
        nn.scaled_matmul(a[0], b, one, two)


def test_initializers_have_the_variance_asked_for():
    key = jax.random.key(0)
    for init in (nn.initializers.lecun_normal(), nn.initializers.lecun_uniform()):
        assert abs(float(jnp.var(init(key, (100, 50)))) * 100 - 1) < 0.1
    columns = nn.initializers.orthogonal()(key, (6, 4))
    np.testing.assert_allclose(columns.T @ columns, np.eye(4), atol=1e-5)
    assert isinstance(nn.initializers.zeros, nn.initializers.Initializer)


def test_an_implementation_of_scaled_dot_general_that_there_is_not_is_refused():
    x = jnp.ones((1, 32, 32))
    numbers = (((2,), (2,)), ((0,), (0,)))
    for implementation in (None, "cudnn"):
        nn.scaled_dot_general(x, x, numbers, implementation=implementation)
    with pytest.raises(ValueError, match="None or 'cudnn': got 'triton'"):
        nn.scaled_dot_general(x, x, numbers, implementation="triton")


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("window", [None, 1, (2, 0), (0, 2), (3, -1), (-1, 2)])
def test_attention_sees_the_keys_of_its_window(window, is_causal):
    length = 5
    zeros, which = jnp.zeros((1, length, 1, length)), jnp.eye(length)[None, :, None]
    # Equal scores, and a value for each key that tells it from the others.
    found = nn.dot_product_attention(
        zeros, zeros, which, is_causal=is_causal, local_window_size=window
    )
    before, after = (window, window) if isinstance(window, int) else window or (length, length)
    query, key = np.arange(length)[:, None], np.arange(length)
    seen = (key >= query - before) & (key <= query + after)
    seen &= (key <= query) | (not is_causal)
    some = seen.any(axis=1)
    np.testing.assert_array_equal(np.asarray(found)[0, some, 0] > 0, seen[some])
