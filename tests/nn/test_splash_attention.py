"""Masks of attention, and attention of heads by them, against the formula in NumPy."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.experimental.pallas.ops.tpu import splash_attention as splash
from hlofront.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks

HEADS, QUERIES, KEYS, SIZE = 4, 6, 8, 5
MASK = masks.MultiHeadMask(
    [
        masks.CausalMask((QUERIES, KEYS), 1),
        masks.LocalMask((QUERIES, KEYS), (2, None), 1),
        masks.FullMask((QUERIES, KEYS)) & masks.CausalMask((QUERIES, KEYS)),
        masks.ChunkedCausalMask((QUERIES, KEYS), 3),
    ]
)
SEGMENTS = splash.SegmentIds(np.arange(QUERIES) // 4, np.arange(KEYS) // 4)


def arrays(*heads):
    numbers = np.random.default_rng(0)
    sizes = (QUERIES, KEYS, KEYS)
    return [
        numbers.normal(size=(*(() if h is None else (h,)), n, SIZE)).astype(np.float32)
        for h, n in zip(heads, sizes, strict=True)
    ]


def expected(mask, q, k, v, segments=None, sinks=None, cap=None):
    """Return the attention and the logarithms of denominators, in float64."""
    scores = np.einsum("hqd,hkd->hqk", q, k, dtype=np.float64)
    if cap is not None:
        scores = cap * np.tanh(scores / cap)
    if segments is not None:
        mask = mask & (segments.q[:, None] == segments.kv)
    weights = np.where(mask, np.exp(scores), 0)
    total = weights.sum(-1) + (0 if sinks is None else np.exp(sinks)[:, None])
    return np.einsum("hqk,hkd->hqd", weights / total[..., None], v), np.log(total)


def test_masks_by_position():
    query, key = np.indices((4, 5))
    assert (masks.CausalMask((4, 5), 2)[:, :] == (key <= query + 2)).all()
    near = (key >= query - 1) & (key <= query + 2)
    assert (masks.LocalMask((4, 5), (1, 2), 0)[:, :] == near).all()
    assert (masks.make_local_attention_mask((4, 5), (1, None)) == (key >= query - 1)).all()
    chunks = (key <= query) & (key // 2 == query // 2)
    assert (masks.make_chunk_attention_mask((4, 5), 2) == chunks).all()
    either = masks.CausalMask((4, 5)) | masks.NumpyMask(key == 4)
    assert (either[1:3, 2:] == ((key <= query) | (key == 4))[1:3, 2:]).all()
    assert MASK[1:3, 2:4, :].shape == (2, 2, KEYS)


def test_equal_masks_are_equal():
    assert masks.CausalMask((4, 4)) == masks.CausalMask((4, 4)) != masks.CausalMask((4, 4), 1)
    assert hash(masks.NumpyMask(np.eye(2) > 0)) == hash(masks.NumpyMask(np.eye(2) > 0))


@pytest.mark.parametrize("segments", [None, SEGMENTS])
@pytest.mark.parametrize("sinks", [None, np.arange(4, dtype=np.float32)])
@pytest.mark.parametrize("cap", [None, 1.5])
def test_attention_is_the_masked_softmax_of_scores(segments, sinks, cap):
    q, k, v = arrays(HEADS, HEADS, HEADS)
    kernel = splash.make_splash_mha_single_device(
        MASK, save_residuals=True, attn_logits_soft_cap=cap
    )
    mask = MASK[:, :, :]
    if segments is not None:
        mask = mask | (segments.q[:, None] == segments.kv)  # Each query has a key to look at.
        kernel = splash.make_splash_mha_single_device(
            mask, save_residuals=True, attn_logits_soft_cap=cap
        )
    result, (denominators,) = jax.jit(kernel)(q, k, v, segments, sinks)
    wanted, wanted_denominators = expected(mask, q, k, v, segments, sinks, cap)
    np.testing.assert_allclose(result, wanted, atol=1e-5)
    np.testing.assert_allclose(denominators, wanted_denominators, atol=1e-5)


def test_heads_of_queries_share_keys_and_values():
    q, k, v = arrays(HEADS, 2, 2)
    wanted, _ = expected(MASK[:, :, :], q, k.repeat(2, 0), v.repeat(2, 0))
    result = splash.make_splash_mha(MASK, head_shards=1, q_seq_shards=1)(q, k, v)
    np.testing.assert_allclose(result, wanted, atol=1e-5)
    q, k, v = arrays(HEADS, None, None)
    wanted, _ = expected(MASK[:, :, :], q, np.stack([k] * HEADS), np.stack([v] * HEADS))
    result = splash.make_splash_mqa(MASK, head_shards=1, q_seq_shards=1)(q, k, v)
    np.testing.assert_allclose(result, wanted, atol=1e-5)


def test_a_kernel_is_a_pytree_under_jit_grad_and_vmap():
    q, k, v = arrays(HEADS, HEADS, HEADS)
    one = masks.MultiHeadMask([MASK.masks[0]] * HEADS)
    kernel = splash.make_splash_mha_single_device(one)
    assert [leaf.shape for leaf in jax.tree.leaves(kernel)] == [(1, QUERIES, KEYS)]
    loss = lambda q, kernel: (kernel(q, k, v) ** 2).sum()
    jax.test_util.check_grads(lambda q: loss(q, kernel), (q,), 1, atol=1e-2, rtol=1e-2)
    rows = jax.vmap(kernel)(np.stack([q, 2 * q]), np.stack([k, k]), np.stack([v, v]))
    np.testing.assert_allclose(rows[1], jax.jit(lambda f, q: f(q, k, v))(kernel, 2 * q), atol=1e-6)
    assert kernel(*(jnp.asarray(x, jnp.bfloat16) for x in (q, k, v))).dtype == jnp.bfloat16


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: bool(masks.FullMask((2, 2))), NotImplementedError, "combine masks by & and"),
        (lambda: masks.MultiHeadMask([]), ValueError, "one mask per head"),
        (lambda: masks.FullMask((2, 2)) | masks.FullMask((2, 3)), ValueError, "Invalid shape"),
        (lambda: masks.CausalMask((4, 4), shard_count=3), ValueError, "must divide Q seq_len"),
        (lambda: masks.NumpyMask(np.ones((2, 2))), ValueError, "must be a boolean array"),
        (
            lambda: splash.make_splash_mha_single_device(np.ones((2, 2), bool)),
            ValueError,
            "Unexpected mask shape",
        ),
        (
            lambda: splash.make_splash_mha(MASK, head_shards=3, q_seq_shards=1),
            ValueError,
            "do not divide",
        ),
        (
            lambda: splash.make_splash_mha_single_device(MASK)(*arrays(HEADS, 3, 3)),
            ValueError,
            "divide those of queries",
        ),
        (
            lambda: splash.BlockSizes(8, 8, use_fused_bwd_kernel=True, block_q_dq=8),
            ValueError,
            "not needed with a fused kernel",
        ),
    ],
)
def test_errors_say_what_is_wanted(call, error, text):
    with pytest.raises(error, match=text):
        call()
