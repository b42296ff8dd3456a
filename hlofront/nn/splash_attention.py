"""Masked attention of heads, by the interface of JAX's splash attention kernels for TPUs.

The results are those of the kernels, but are computed by plain operations, which XLA compiles on
every platform. So the scores of all queries and keys are in memory; the kernels avoid that.
"""

# pyright: strict

import dataclasses
import enum
from collections.abc import Callable
from functools import partial

import numpy as np

import hlofront.numpy as jnp
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.tree_nodes import register_pytree_node_class
from hlofront.base.typing import Array, NumPyArray
from hlofront.core.aval import typeof
from hlofront.core.sharding.partition import PartitionSpec
from hlofront.higher_order.checkpoint.checkpoint_policies import checkpoint_name
from hlofront.nn.attention_masks import Mask, MultiHeadMask
from hlofront.pjrt.named_shardings import NamedSharding
from hlofront.transforms.vmap import vmap

# Scores of masked pairs: far below all others, and finite.
DEFAULT_MASK_VALUE = -0.7 * float(np.finfo(np.float32).max)


class SegmentIds(NamedTuple):
    """Integers per query, of shape (queries,), and per key, of shape (keys,).

    A query attends only to keys of its own segment.
    """

    q: Array
    kv: Array


class QKVLayout(enum.IntEnum):
    """The axis of queries, keys or values that a kernel for TPUs has last in memory."""

    HEAD_DIM_MINOR = 1
    SEQ_MINOR = 2


@dataclasses.dataclass(frozen=True, slots=True)
class BlockSizes:
    """The sizes of the tiles of JAX's kernels for TPUs, which change no result.

    XLA chooses tiles itself; sizes are checked as in JAX, but not used.

    Raises:
      ValueError: if there are sizes for a dq kernel that a fused kernel replaces.
    """

    block_q: int
    block_kv: int
    block_kv_compute: int | None = None
    block_q_dkv: int | None = None
    block_kv_dkv: int | None = None
    block_kv_dkv_compute: int | None = None
    block_q_dq: int | None = None
    block_kv_dq: int | None = None
    use_fused_bwd_kernel: bool = False
    q_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR
    k_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR
    v_layout: QKVLayout = QKVLayout.HEAD_DIM_MINOR

    def __post_init__(self) -> None:
        if self.block_kv_compute is None:
            object.__setattr__(self, "block_kv_compute", self.block_kv)
        if self.block_kv_dkv_compute is None:
            object.__setattr__(self, "block_kv_dkv_compute", self.block_kv_dkv)
        if self.use_fused_bwd_kernel and (self.block_q_dq, self.block_kv_dq) != (None, None):
            raise ValueError(
                "Block sizes for dq kernel are not needed with a fused kernel: leave out "
                "block_q_dq and block_kv_dq, or use_fused_bwd_kernel."
            )

    @property
    def has_backward_blocks(self) -> bool:
        """True if all block sizes that the kernels of derivatives need are set."""
        sizes = [self.block_q_dkv, self.block_kv_dkv, self.block_kv_dkv_compute]
        if not self.use_fused_bwd_kernel:
            sizes += [self.block_q_dq, self.block_kv_dq]
        return None not in sizes

    @classmethod
    def get_default(cls) -> "BlockSizes":
        """Return the default block sizes: tiles of 128 queries by 128 keys."""
        return cls(128, 128, 128, 128, 128, 128, 128, 128)


Residuals = tuple[Array, tuple[Array]]


def attention_reference(
    mask: Array,
    q: Array,
    k: Array,
    v: Array,
    segment_ids: SegmentIds | None = None,
    sinks: Array | None = None,
    *,
    mask_value: float = DEFAULT_MASK_VALUE,
    save_residuals: bool = False,
    attn_logits_soft_cap: float | None = None,
) -> Array | Residuals:
    """Return the attention of one head, computed in float32. Queries are not scaled.

    Args:
      mask: booleans of shape (queries, keys).
      q: an array of shape (queries, size).
      k: an array of shape (keys, size).
      v: an array of shape (keys, size of values).
      segment_ids: the segments of queries and keys, or None for one segment.
      sinks: a scalar, the score of an additional key that has no value, or None.
      mask_value: the score of masked pairs.
      save_residuals: whether to return the logarithms of the softmax's denominators as well.
      attn_logits_soft_cap: a bound to which tanh limits scores, or None.

    Returns:
      A float32 array of shape (queries, size of values); with save_residuals, a tuple of it and a
      tuple of an array of shape (queries,).
    """
    queries, keys, values = (jnp.asarray(x, np.float32) for x in (q, k, v))
    scores = queries @ keys.T
    if segment_ids is not None:
        mask = mask & (segment_ids.q[:, None] == segment_ids.kv)
    if attn_logits_soft_cap is not None:
        scores = attn_logits_soft_cap * jnp.tanh(scores / attn_logits_soft_cap)
    scores = jnp.where(mask, scores, mask_value)
    greatest = scores.max(-1)
    sink = None if sinks is None else jnp.asarray(sinks, np.float32)
    if sink is not None:
        greatest = jnp.maximum(greatest, sink)
    weights = jnp.exp(scores - greatest[:, None])
    total = weights.sum(-1)
    if sink is not None:
        total = total + jnp.exp(sink - greatest)
    result = (weights / total[:, None]) @ values
    if save_residuals:
        return result, (greatest + jnp.log(total),)
    return result


def attention_of_heads(
    mask: Array,
    q: Array,
    k: Array,
    v: Array,
    segment_ids: SegmentIds | None = None,
    sinks: Array | None = None,
    *,
    is_mqa: bool,
    mask_value: float = DEFAULT_MASK_VALUE,
    save_residuals: bool = False,
    attn_logits_soft_cap: float | None = None,
) -> Array | Residuals:
    """Return the attention of several heads: for each query a mean of values, weighted by the keys.

    Queries have shape (heads, queries, size), masks (heads, queries, keys) and sinks (heads,); a
    mask of one head is used for all. Keys and values also have an axis of heads, whose number
    divides that of the queries, unless `is_mqa`: then all heads share them.

    Raises:
      ValueError: if the heads of keys, values and masks do not fit those of the queries.
    """
    heads = q.shape[0]
    groups = 1 if is_mqa else k.shape[0]
    if mask.shape[0] not in (1, heads):
        raise ValueError(
            f"the mask has {mask.shape[0]} heads, and the queries of shape {q.shape} have {heads}: "
            "give a mask for each head"
        )
    if not is_mqa and (k.shape[0] != v.shape[0] or heads % groups):
        raise ValueError(
            f"heads of keys and values must be as many, and divide those of queries: got {heads} "
            f"of queries, {k.shape[0]} of keys, {v.shape[0]} of values"
        )
    one = partial(
        attention_reference,
        mask_value=mask_value,
        save_residuals=save_residuals,
        attn_logits_soft_cap=attn_logits_soft_cap,
    )
    mask = jnp.broadcast_to(mask, (heads, *mask.shape[1:]))
    if not is_mqa:
        # Neighboring heads of queries share a head of keys and values.
        k, v = (jnp.repeat(x, heads // groups, axis=0) for x in (k, v))
    axis = None if is_mqa else 0
    return vmap(one, (0, 0, axis, axis, None, None if sinks is None else 0))(
        mask, q, k, v, segment_ids, sinks
    )


_Options = tuple[bool, bool, float, float | None, str | None]


@register_pytree_node_class
@dataclasses.dataclass(eq=False, repr=False)
class SplashAttentionKernel:
    """The attention of several heads by one mask, a callable that is a pytree of its mask.

    Call it with queries, keys and values, each of shape (heads, positions, size), and optionally
    with `segment_ids` and `sinks`; under `vmap` for batches. The result has the shape of queries
    with the size of values, and the dtype of queries. With `save_residuals` it is a tuple with
    the logarithms of the softmax's denominators.
    """

    mask: Array | PartitionSpec
    _: dataclasses.KW_ONLY
    is_mqa: bool
    save_residuals: bool = False
    mask_value: float = DEFAULT_MASK_VALUE
    attn_logits_soft_cap: float | None = None
    residual_checkpoint_name: str | None = None

    def __call__(
        self,
        q: Array,
        k: Array,
        v: Array,
        segment_ids: SegmentIds | None = None,
        sinks: Array | None = None,
    ) -> Array | Residuals:
        assert not isinstance(self.mask, PartitionSpec), "a kernel of specs cannot be called"
        results = attention_of_heads(
            self.mask,
            q,
            k,
            v,
            segment_ids,
            sinks,
            is_mqa=self.is_mqa,
            mask_value=self.mask_value,
            save_residuals=self.save_residuals,
            attn_logits_soft_cap=self.attn_logits_soft_cap,
        )
        if self.residual_checkpoint_name is not None:
            results = checkpoint_name(results, self.residual_checkpoint_name)
        dtype = typeof(q).dtype
        if isinstance(results, tuple):
            return results[0].astype(dtype), results[1]
        return results.astype(dtype)

    def manual_sharding_spec(self, sharding: NamedSharding) -> "SplashAttentionKernel":
        """Return the kernel's specs for `shard_map`: a kernel with a PartitionSpec for its mask.

        Args:
          sharding: how heads and queries are split, by a spec of these two axes.

        Raises:
          ValueError: if the spec is not of two axes.
        """
        spec = sharding.spec
        if len(spec) != 2:
            raise ValueError(f"a kernel's sharding has a spec of heads and queries: got {spec}")
        heads = None if getattr(self.mask, "shape", (0,))[0] == 1 else spec[0]
        _, options = self.tree_flatten()
        return self.tree_unflatten(options, (PartitionSpec(heads, spec[1]),))

    def tree_flatten(self) -> tuple[tuple[Array | PartitionSpec], _Options]:
        return (self.mask,), (
            self.is_mqa,
            self.save_residuals,
            self.mask_value,
            self.attn_logits_soft_cap,
            self.residual_checkpoint_name,
        )

    @classmethod
    def tree_unflatten(
        cls, options: _Options, leaves: tuple[Array | PartitionSpec]
    ) -> "SplashAttentionKernel":
        kernel = object.__new__(cls)
        (kernel.mask,) = leaves
        (
            kernel.is_mqa,
            kernel.save_residuals,
            kernel.mask_value,
            kernel.attn_logits_soft_cap,
            kernel.residual_checkpoint_name,
        ) = options
        return kernel


def _make_splash_attention(
    mask: NumPyArray | Array | MultiHeadMask,
    *,
    block_sizes: BlockSizes | None = None,
    is_mqa: bool,
    save_residuals: bool = False,
    mask_value: float = DEFAULT_MASK_VALUE,
    attn_logits_soft_cap: float | None = None,
    downcast_smem_data: bool = True,
    head_shards: int,
    q_seq_shards: int,
    residual_checkpoint_name: str | None = None,
    interpret: bool = False,
) -> SplashAttentionKernel:
    """Return the attention of several heads by a mask.

    Args:
      mask: booleans of shape (heads, queries, keys): a MultiHeadMask, or an array.
      block_sizes: the tiles of JAX's kernels, which XLA chooses itself.
      is_mqa: whether all heads share keys and values, which then have no axis of heads.
      save_residuals: whether results come with the logarithms of the softmax's denominators.
      mask_value: the score of masked pairs.
      attn_logits_soft_cap: a bound to which tanh limits scores, or None.
      downcast_smem_data: an option of JAX's kernels, which has no effect.
      head_shards: the number of parts that heads are split into.
      q_seq_shards: the number of parts that queries are split into.
      residual_checkpoint_name: the name of the results for policies of `jax.checkpoint`, or None.
      interpret: an option of JAX's kernels for machines without a TPU, which has no effect.

    Raises:
      ValueError: if the mask does not have three axes, or shards do not divide them.
    """
    del block_sizes, downcast_smem_data, interpret
    if len(mask.shape) != 3:
        raise ValueError(
            f"Unexpected mask shape: {mask.shape}: give a mask of heads, queries and keys, such as "
            "a MultiHeadMask"
        )
    heads, queries, _ = mask.shape
    if heads % head_shards or queries % q_seq_shards:
        raise ValueError(
            f"{head_shards} shards of heads and {q_seq_shards} of queries do not divide a mask of "
            f"shape {mask.shape}"
        )
    return SplashAttentionKernel(
        _array_of(mask),
        is_mqa=is_mqa,
        save_residuals=save_residuals,
        mask_value=mask_value,
        attn_logits_soft_cap=attn_logits_soft_cap,
        residual_checkpoint_name=residual_checkpoint_name,
    )


def _array_of(mask: NumPyArray | Array | Mask) -> Array:
    """Return a mask as an array, of one head if all heads have one mask."""
    if isinstance(mask, MultiHeadMask) and all(one is mask.masks[0] for one in mask.masks):
        return jnp.asarray(mask[:1, :, :])
    return jnp.asarray(mask[:, :, :])


make_splash_mha = partial(_make_splash_attention, is_mqa=False)
make_splash_mqa = partial(_make_splash_attention, is_mqa=True)
make_splash_mha_single_device = partial(make_splash_mha, head_shards=1, q_seq_shards=1)
make_splash_mqa_single_device = partial(make_splash_mqa, head_shards=1, q_seq_shards=1)


def make_masked_mha_reference(
    mask: NumPyArray | Array | MultiHeadMask,
) -> Callable[..., Array | Residuals]:
    """Return a function of (q, k, v, segment_ids, sinks) that computes attention under a mask.

    Queries, keys and values have shape (heads, positions, size); the number of heads of keys and
    values divides that of the queries. The function is `attention_of_heads` with the mask.
    """
    return partial(attention_of_heads, _array_of(mask), is_mqa=False)


def make_masked_mqa_reference(
    mask: NumPyArray | Array | MultiHeadMask,
) -> Callable[..., Array | Residuals]:
    """Return a function of (q, k, v, segment_ids, sinks) that computes attention under a mask.

    Queries have shape (heads, positions, size), keys and values (positions, size): all heads share
    them. The function is `attention_of_heads` with the mask.
    """
    return partial(attention_of_heads, _array_of(mask), is_mqa=True)
