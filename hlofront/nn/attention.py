"""Scaled dot product attention."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

import hlofront.numpy as jnp
from hlofront.base.dtypes import finfo, issubdtype
from hlofront.base.elements import bfloat16, bool_, float32, int32
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.nn import cudnn_attention
from hlofront.nn.normalizing import logsumexp, softmax
from hlofront.numpy.support.promotion import promote_own_dtypes
from hlofront.pjrt.devices import default_backend
from hlofront.primitives.arrays import creation
from hlofront.primitives.arrays.shaping import reshape, transpose
from hlofront.primitives.elementwise.converting import convert, stop_gradient
from hlofront.primitives.linalg.dot_general import dot_general
from hlofront.runtime.dispatch.operation import operation
from hlofront.transforms.vmap import vmap

# Masked scores are this fraction of the dtype's least number, so that sums with it stay finite.
_SHARE = 0.7


def _check(name: str, x: Array, shape: Sequence[int], dtypes: tuple[np.dtype, ...]) -> None:
    """Raise ValueError unless x has this shape, -1 for any size, and one of these dtypes."""
    aval = typeof(x)
    if aval.ndim != len(shape):
        raise ValueError(f"{name} ndim should be {len(shape)}, but got {aval.ndim}")
    if dtypes and aval.dtype not in dtypes:
        expected = " or ".join(map(str, dtypes))
        raise ValueError(f"{name} dtype should be {expected}, but got {aval.dtype}")
    for size, expected in zip(aval.shape, shape, strict=True):
        if expected not in (-1, size):
            raise ValueError(f"{name} shape should be {list(shape)}: but got {aval.shape}")


def _with_axes(x: Array, ndim: int) -> Array:
    """Return x with leading axes of size 1, for `ndim` axes in all."""
    missing = ndim - typeof(x).ndim
    return jnp.expand_dims(x, tuple(range(missing))) if missing > 0 else x


def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Array | tuple[Array, Array]:
    """Compute scaled dot product attention: Vaswani et al., Attention Is All You Need (2017).

    B is the batch size, T the number of queries, S that of keys, N that of query heads, K that of
    key and value heads, and H the head size; B may be omitted everywhere. If K is less than N, each
    group of N / K query heads shares a key and value head (Ainslie et al., GQA, 2023). Scores and
    weights are computed in float32 at least.

    Args:
      query: an array of shape (B, T, N, H).
      key: an array of shape (B, S, K, H).
      value: an array with the shape of `key`.
      bias: added to the scores: an array that broadcasts to (B, N, T, S).
      mask: a boolean array that broadcasts to (B, N, T, S), True for scores to use.
      scale: the factor of the scores, 1 / sqrt(H) by default.
      is_causal: whether a query attends only to keys up to its own position.
      query_seq_lengths: an array of shape (B,), the numbers of queries; results past them are 0.
      key_value_seq_lengths: an array of shape (B,), the numbers of keys; later ones are masked.
      local_window_size: the number of keys before and after its own position that a query attends
        to: a number or a pair of numbers.
      implementation: None and "xla" both compile operations of XLA. "cudnn" calls cuDNN's fused
        kernels on NVIDIA's GPUs, which do not store the array of scores: for float16 and bfloat16,
        heads of a multiple of 8 up to 128 elements (256 from Hopper on), and windows that end at
        the query. They have only first derivatives, in reverse mode.
      return_residual: whether to also return the logsumexp of the scores.

    Returns:
      An array with the shape of `query`; with `return_residual` also one of shape (B, T, N), which
      has no derivative.

    Raises:
      ValueError: if shapes or dtypes do not match, or the implementation is unknown.
      TypeError: if a bias or mask does not broadcast to the shape of the scores.
      RuntimeError: if the implementation is "cudnn" and programs are not for an NVIDIA GPU.
      NotImplementedError: if cuDNN has no kernel for the dtype, the head size or the lengths.

    Example:
      >>> q, k, v = jnp.ones((2, 8, 4, 16)), jnp.ones((2, 8, 4, 16)), jnp.ones((2, 8, 4, 16))
      >>> jax.nn.dot_product_attention(q, k, v, is_causal=True).shape
      (2, 8, 4, 16)
    """
    query, key, value = jnp.asarray(query), jnp.asarray(key), jnp.asarray(value)
    bias = None if bias is None else jnp.asarray(bias)
    mask = None if mask is None else jnp.asarray(mask)
    query_shape = typeof(query).shape
    query, key, value = [_with_axes(x, 4) for x in (query, key, value)]
    batch, length, heads, size = typeof(key).shape if typeof(key).ndim == 4 else (-1,) * 4
    dtype = typeof(key).dtype
    _check("key", key, (-1,) * 4, ())
    _check("value", value, (batch, length, heads, size), (dtype,))
    _check("query", query, (batch, -1, -1, size), (dtype,))
    if typeof(query).shape[2] % heads:
        raise ValueError(
            "The number of query heads must be a multiple of key/value heads, but got "
            f"{typeof(query).shape[2]} vs {heads}"
        )
    lengths = []
    for name, x in (
        ("query_seq_lengths", query_seq_lengths),
        ("key_value_seq_lengths", key_value_seq_lengths),
    ):
        if x is not None:
            x = jnp.asarray(x)
            _check(name, x, (batch,), (int32,))
        lengths.append(x)
    if bias is not None:
        bias = _with_axes(bias, 4)
        _check("bias", bias, (-1,) * 4, ())
    if mask is not None:
        mask = _with_axes(mask, 4)
        _check("mask", mask, (-1,) * 4, (bool_,))
    if isinstance(local_window_size, int):
        local_window_size = (local_window_size, local_window_size)
    if implementation not in (None, "xla", "cudnn"):
        raise ValueError(f"Unsupported implementation option: {implementation}")
    factor = 1 / math.sqrt(size) if scale is None and size else scale or 0.0
    attention = _attention if _is_einsum_replaced() else _eager_attention
    if implementation == "cudnn":
        if not cudnn_attention.runs_on_cuda():
            raise RuntimeError(
                f"cuDNN is not detected: the default backend is {default_backend()!r}. Leave "
                "`implementation` out, or give 'xla'."
            )
        attention = cudnn_attention.cudnn_attention
    result, residual = attention(
        query,
        key,
        value,
        bias,
        mask,
        *lengths,
        scale=factor,
        is_causal=is_causal,
        window=local_window_size,
        residual=return_residual,
    )
    result = jnp.reshape(result, query_shape)
    return (result, jnp.reshape(residual, query_shape[:-1])) if return_residual else result


def _attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None,
    mask: Array | None,
    queries: Array | None,
    keys: Array | None,
    *,
    scale: float,
    is_causal: bool,
    window: tuple[int, int] | None,
    residual: bool,
) -> tuple[Array, Array | None]:
    batch, length, heads, size = typeof(query).shape
    count, shared = typeof(key).shape[1:3]
    dtype = typeof(query).dtype
    working = _wide(dtype)
    whole = (batch, heads, length, count)
    if bias is not None:
        bias = _in_groups("bias", bias, whole, shared)
    seen = _seen(mask, whole, shared, queries, keys, is_causal, window)

    def of_group(
        query: Array, bias: Array | None, seen: Array | None
    ) -> tuple[Array, Array | None]:
        """Return the results of one head of each group, without the axis of heads in a group."""
        scores = _scores(query, key, dtype) * convert(jnp.asarray(scale), working, False)
        if bias is not None:
            first, second = promote_own_dtypes(scores, bias)
            scores = convert(jnp.add(first, second), working, False)
        if seen is not None:
            least = np.asarray(_SHARE * float(finfo(working).min), working)
            scores = jnp.where(seen, scores, least[()])
        scores = convert(scores, float32, False)
        weights = convert(softmax(scores), dtype, False)
        result = _weighted(weights, value)
        if not residual:
            return result, None
        sums = transpose(stop_gradient(logsumexp(scores, axis=-1)), (0, 2, 1))
        return result, convert(sums, dtype, False)

    # Heads that share a key head are a batch, so that replacements of einsum see four axes.
    result, sums = vmap(of_group, (3, *map(_group_axis, (bias, seen))), 3)(
        reshape(query, (batch, length, shared, heads // shared, size)),
        *map(_without_group_of_one, (bias, seen)),
    )
    if queries is not None:
        there = convert(_before(queries, length), dtype, False)
        result = result * jnp.expand_dims(there, (2, 3, 4))
    return result, sums


_eager_attention = operation(static_argnames=("is_causal", "window", "residual"))(_attention)
# Libraries that quantize replace this function, or its code, for some calls and not for others.
_own_einsum = jnp.einsum, jnp.einsum.__code__


def _is_einsum_replaced() -> bool:
    return (jnp.einsum, getattr(jnp.einsum, "__code__", None)) != _own_einsum


def _group_axis(x: Array | None) -> int | None:
    """Return the axis of groups of a bias or mask, to map over; None if it has size 1."""
    return None if x is None or typeof(x).shape[2] == 1 else 2


def _without_group_of_one(x: Array | None) -> Array | None:
    return x if x is None or typeof(x).shape[2] != 1 else jnp.squeeze(x, 2)


def _wide(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which scores are computed for queries of this dtype: at least float32."""
    wide = issubdtype(dtype, np.floating) and finfo(dtype).bits >= 32
    return dtype if wide else float32


def _scores(query: Array, key: Array, dtype: np.dtype) -> Array:
    """Compute the product of each query with each key: (batch, heads, queries, keys)."""
    return jnp.einsum(
        "BTNH,BSNH->BNTS",
        query,
        key,
        precision="BF16_BF16_F32" if dtype == bfloat16 else None,
        preferred_element_type=_wide(dtype),
    )


def _weighted(weights: Array, value: Array) -> Array:
    """Return the sums of values with weights: (batch, queries, heads, size)."""
    if _is_einsum_replaced():
        return jnp.einsum("BNTS,BSNH->BTNH", weights, value)
    # Einsum computes the same, but takes the values first, which is slower on CPUs.
    dtype = typeof(weights).dtype
    sums = dot_general(
        weights, value, (((3,), (1,)), ((0, 1), (0, 2))), preferred_element_type=dtype
    )
    return transpose(sums, (0, 2, 1, 3))


def _in_groups(name: str, x: ArrayLike, whole: tuple[int, ...], shared: int) -> Array:
    """Split the head axis of x, which broadcasts to the scores, into shared heads and groups."""
    shape = typeof(x).shape
    for own, size in zip(shape, whole, strict=True):
        if own not in (1, size):
            raise TypeError(
                f"{name} got incompatible shapes for broadcasting: {shape}, the scores have "
                f"{whole}. From the last axis on, sizes must be equal or 1."
            )
    groups = (1, 1) if shape[1] == 1 else (shared, shape[1] // shared)
    return reshape(x, (shape[0], *groups, *shape[2:]))


def _before(lengths: Array, count: int) -> Array:
    """Return the boolean mask (batch, count) of the positions less than each length (batch,)."""
    return jnp.less(creation.broadcasted_iota(np.int32, (1, count), 1), lengths[:, None])


def _seen(
    mask: Array | None,
    whole: tuple[int, ...],
    shared: int,
    queries: Array | None,
    keys: Array | None,
    is_causal: bool,
    window: tuple[int, int] | None,
) -> Array | None:
    """Return a mask that broadcasts to the scores, True for those to use, or None to use all."""
    conditions = [] if mask is None else [_in_groups("mask", mask, whole, shared)]
    length, count = whole[2:]
    if is_causal or window is not None:
        rows = creation.broadcasted_iota(np.int32, (length, 1), 0)
        columns = creation.broadcasted_iota(np.int32, (1, count), 1)
        if is_causal:
            conditions.append(jnp.less_equal(columns, rows))
        if window is not None:
            before, after = window
            conditions.append(jnp.greater_equal(columns, rows - before))
            if not is_causal or after < 0:
                conditions.append(jnp.less_equal(columns, rows + after))
    conditions = [
        one if typeof(one).ndim == 5 else jnp.expand_dims(one, (0, 1, 2)) for one in conditions
    ]
    if queries is not None:
        conditions.append(jnp.expand_dims(_before(queries, length), (1, 2, 4)))
    if keys is not None:
        conditions.append(jnp.expand_dims(_before(keys, count), (1, 2, 3)))
    result = None
    for one in conditions:
        result = one if result is None else jnp.logical_and(result, one)
    return result
