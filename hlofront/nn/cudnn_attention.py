"""Attention by cuDNN's fused kernels, which XLA's compiler for CUDA calls by their names.

The kernels never store the scores in memory (Dao et al., FlashAttention, 2022). Their options are
JSON: CudnnfMHABackendConfig of XLA's xla/service/gpu/backend_configs.proto.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import hlofront.numpy as jnp
from hlofront.base.elements import bfloat16
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, Shape
from hlofront.bridge.client import Device, NamedSharding
from hlofront.core.aval import typeof
from hlofront.core.sharding.partition import PartitionSpec
from hlofront.higher_order.custom_rules.custom_vjp import custom_vjp
from hlofront.higher_order.custom_rules.custom_vmap import custom_vmap
from hlofront.higher_order.shard_map.custom_partitioning import custom_partitioning
from hlofront.higher_order.shard_map.sharding_rule import (
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
)
from hlofront.pjrt import clients
from hlofront.primitives.calls.ffi import ffi_call
from hlofront.primitives.collectives.collectives import psum
from hlofront.transforms.flatten import ShapeDtypeStruct

_ELEMENTS = {np.dtype(np.float16): "F16", np.dtype(bfloat16): "BF16"}
# Scores of masked keys, which stay finite in sums: larger ones defeat cuDNN's subtraction.
_MASKED = {np.dtype(np.float16): -(2.0**15), np.dtype(bfloat16): -(2.0**41)}
# Untyped custom calls whose status is returned, the version of cuDNN's.
_CALL_VERSION = 2
# The greatest sizes of heads, before and from this compute capability of GPUs on.
_HEAD_SIZES = (128, 256)
_LARGE_HEADS_FROM = (9, 0)
_HEAD_SIZE_MULTIPLE = 8
# The axes (batch, heads, length, size) of cuDNN's results from the slowest in memory: that of the
# arguments (batch, length, heads, size).
_LENGTH_BEFORE_HEADS = (0, 2, 1, 3)
_LENGTHS = ("query_lengths", "key_lengths")
# The axes of arrays. A bias may have size 1 along axes of the scores; its derivative is then summed
# along them.
_OF_QUERY = ("batch", "queries", "heads", "size")
_OF_KEY = ("batch", "keys", "shared", "size")
_AXES = {
    "query": _OF_QUERY,
    "key": _OF_KEY,
    "value": _OF_KEY,
    "result": _OF_QUERY,
    "cotangent": _OF_QUERY,
    "sums": ("batch", "heads", "queries"),
    "bias": ("batch", "heads", "queries", "keys"),
    "query_lengths": ("batch",),
    "key_lengths": ("batch",),
}
# The operands of the custom calls in order; a call omits the ones it does not have.
_FORWARD_OPERANDS = ("query", "key", "value", "bias", *_LENGTHS)
_BACKWARD_OPERANDS = ("query", "key", "value", "sums", "cotangent", "bias", "result", *_LENGTHS)
_GRADIENTS = ("query", "key", "value", "bias")
# The axes of products of matrices in the kernels, by the names that XLA knows them by: contracted
# and batch axes of both operands.
_Product = tuple[tuple[int, int], tuple[tuple[int, int], tuple[int, int]]]
_FORWARD_PRODUCTS: dict[str, _Product] = {
    "bmm1_dot_dimension_numbers": ((3, 3), ((0, 2), (0, 2))),
    "bmm2_dot_dimension_numbers": ((3, 1), ((0, 1), (0, 2))),
}
_BACKWARD_PRODUCTS: dict[str, _Product] = {
    "bmm1_grad_gemm1_dot_dimension_numbers": ((2, 1), ((0, 1), (0, 2))),
    "bmm1_grad_gemm2_dot_dimension_numbers": ((3, 1), ((0, 1), (0, 2))),
    "bmm2_grad_gemm1_dot_dimension_numbers": ((2, 1), ((0, 1), (0, 2))),
    "bmm2_grad_gemm2_dot_dimension_numbers": ((3, 3), ((0, 2), (0, 2))),
}


def cudnn_attention(
    query: Array,
    key: Array,
    value: Array,
    bias: Array | None,
    mask: Array | None,
    query_lengths: Array | None,
    key_lengths: Array | None,
    *,
    scale: float,
    is_causal: bool,
    window: tuple[int, int] | None,
    residual: bool,
) -> tuple[Array, Array | None]:
    """Compute attention by cuDNN; the arguments are those of `dot_product_attention`, checked.

    Args:
      query: an array of shape (batch, queries, heads, size).
      key: an array of shape (batch, keys, shared heads, size).
      value: an array with the shape of `key`.
      bias: an array that broadcasts to (batch, heads, queries, keys), or None.
      mask: a boolean array that broadcasts to the same, or None.
      query_lengths: an int32 array of shape (batch,), or None.
      key_lengths: an int32 array of shape (batch,), or None.
      scale: the factor of the scores.
      is_causal: whether a query attends only to keys up to its own position.
      window: the numbers of keys before and after its own position that a query attends to.
      residual: whether to also return the logsumexp of the scores.

    Returns:
      The results, an array with the shape of `query`, and the logsumexps, of shape (batch,
      queries, heads) and without derivative, or None.

    Raises:
      NotImplementedError: if cuDNN has no kernel for the dtype, the head size or the lengths.
      ValueError: if a window reaches past the query, which no cuDNN kernel supports.
    """
    dtype, (batch, count, heads, size) = typeof(query).dtype, typeof(query).shape
    _check_kernel(dtype, size)
    reach = 0
    if window is not None:
        before, after = window
        if after and not is_causal:
            raise ValueError(
                "cuDNN's attention has no window to the right of a query: got "
                f"local_window_size={window}. Give (number, 0), or implementation='xla'."
            )
        is_causal, reach = True, before + 1
    whole = (batch, heads, count, typeof(key).shape[1])
    arrays = {"query": query, "key": key, "value": value}
    combined = _combined(bias, mask, dtype, whole)
    if combined is not None:
        arrays["bias"] = combined
    if query_lengths is not None or key_lengths is not None:
        for name, lengths, most in zip(
            _LENGTHS, (query_lengths, key_lengths), whole[2:], strict=True
        ):
            arrays[name] = jnp.full((batch,), most, np.int32) if lengths is None else lengths
    options = _Options(float(scale), is_causal, reach, residual)
    results = _attention(options, arrays)
    sums = jnp.transpose(results["sums"], (0, 2, 1)).astype(dtype) if residual else None
    return results["result"], sums


def runs_on_cuda() -> bool:
    """Return whether programs are compiled for CUDA GPUs, attached ones or those of a target."""
    return clients.lowering_platform(_device()) == "cuda"


def _device() -> Device:
    """Return the first device that programs are compiled for."""
    target = clients.compiling_for.get()
    return (clients.devices() if target is None else target.devices)[0]


def _check_kernel(dtype: np.dtype, size: int) -> None:
    if dtype not in _ELEMENTS:
        raise NotImplementedError(  # JAX raises this class.
            f"cuDNN's attention is of float16 and bfloat16, and query is {dtype}: convert query, "
            "key and value, or give implementation='xla'"
        )
    device = _device()
    capability = getattr(device, "compute_capability", None)
    is_large = capability is None or tuple(map(int, capability.split("."))) >= _LARGE_HEADS_FROM
    most = _HEAD_SIZES[is_large]
    if size > most or size % _HEAD_SIZE_MULTIPLE:
        raise NotImplementedError(  # JAX raises this class.
            f"cuDNN's attention on {device.device_kind} has heads of a multiple of "
            f"{_HEAD_SIZE_MULTIPLE} up to {most} elements, and query has {size}: give "
            "implementation='xla'"
        )


def _combined(
    bias: Array | None, mask: Array | None, dtype: np.dtype, whole: Shape
) -> Array | None:
    """Return the sum of the bias and the mask as scores, or None if there is neither."""
    for name, x in (("bias", bias), ("mask", mask)):
        if x is None:
            continue
        if any(own not in (1, most) for own, most in zip(typeof(x).shape, whole, strict=True)):
            raise TypeError(
                f"{name} got incompatible shapes for broadcasting: {typeof(x).shape}, the scores "
                f"have {whole}. From the last axis on, sizes must be equal or 1."
            )
    if bias is not None:
        bias = bias.astype(dtype)
    if mask is not None:
        hidden = jnp.where(mask, np.zeros((), dtype), np.asarray(_MASKED[dtype], dtype))
        bias = hidden if bias is None else bias + hidden
    if bias is None:
        return None
    return jnp.broadcast_to(bias, (*typeof(bias).shape[:2], *whole[2:]))


# ---- the derivative ------------------------------------------------------------------------------


class _Options(NamedTuple):
    """The options of attention that are part of the program."""

    scale: float
    is_causal: bool
    window: int
    """The number of keys, up to its own position, that a query attends to; 0 for all."""
    with_sums: bool
    """Whether the logsumexps of the scores are results too."""


# Arrays by their names in _AXES.
_Arrays = dict[str, Any]


@functools.partial(custom_vjp, nondiff_argnums=(0,))
def _attention(options: _Options, arrays: _Arrays) -> _Arrays:
    return _call(options, arrays)


def _attention_forward(options: _Options, arrays: _Arrays) -> tuple[_Arrays, _Arrays]:
    if "bias" in arrays and any(n % 2 for n in typeof(arrays["bias"]).shape[2:]):
        raise NotImplementedError(  # JAX raises this class.
            "cuDNN's attention with a bias or mask has derivatives only for even numbers of "
            f"queries and keys: got {typeof(arrays['bias']).shape[2:]}. Use implementation='xla'."
        )
    results = _call(options._replace(with_sums=True), arrays)
    returned = results if options.with_sums else {"result": results["result"]}
    return returned, {**arrays, **results}


def _attention_backward(
    options: _Options, residuals: _Arrays, cotangents: _Arrays
) -> tuple[_Arrays]:
    arrays = {**residuals, "cotangent": cotangents["result"]}
    gradients = _call(options._replace(with_sums=False), arrays)
    return ({**gradients, **{name: None for name in _LENGTHS if name in residuals}},)


_attention.defvjp(_attention_forward, _attention_backward)


def _call(options: _Options, arrays: _Arrays) -> _Arrays:
    """Call the forward kernel, or the backward one if there is a cotangent; return its results."""
    is_backward = "cotangent" in arrays
    order = _BACKWARD_OPERANDS if is_backward else _FORWARD_OPERANDS
    names = tuple(name for name in order if name in arrays)
    kernel = _Kernel(options, names)
    results = _batched(kernel)(*(arrays[name] for name in names))
    return dict(zip(kernel.results, results, strict=True))


# ---- the custom calls ----------------------------------------------------------------------------


class _Kernel(NamedTuple):
    """A kernel of cuDNN: its options, and the names of its operands."""

    options: _Options
    operands: tuple[str, ...]

    @property
    def is_backward(self) -> bool:
        """The kind of kernel: true if it computes gradients."""
        return "cotangent" in self.operands

    @property
    def results(self) -> tuple[str, ...]:
        """The names of the results."""
        if self.is_backward:
            return tuple(name for name in _GRADIENTS if name in self.operands)
        return ("result", "sums") if self.options.with_sums else ("result",)

    @property
    def target(self) -> str:
        """The name of the custom call."""
        bias = "ScaleBias" if "bias" in self.operands else ""
        return f"__cudnn$fmha{bias}Softmax{'Backward' if self.is_backward else ''}"

    @property
    def mask(self) -> str:
        """The name of the mask that the kernel computes itself."""
        padding = "PADDING" if "query_lengths" in self.operands else ""
        causal = "CAUSAL" if self.options.is_causal else ""
        return "_".join(filter(None, (padding, causal))) or "NO_MASK"

    def config(self, shape: Shape, dtype: np.dtype) -> str:
        """Return the options of the custom call for scores of a shape, as JSON."""
        axes = [str(axis) for axis in reversed(range(len(shape)))]
        products = _BACKWARD_PRODUCTS if self.is_backward else _FORWARD_PRODUCTS
        settings = {
            "algorithm": {
                "algo_id": "0",
                "math_type": "TENSOR_OP_MATH",
                "tuning_knobs": {"17": "1", "24": "0"},
                "is_cudnn_frontend": True,
                "workspace_size": "0",
            },
            "fmha_scale": self.options.scale,
            "intermediate_tensor_shape": {
                "element_type": _ELEMENTS[dtype],
                "dimensions": [str(size) for size in shape],
                "layout": {"minor_to_major": axes},
                "is_dynamic_dimension": [False] * len(shape),
            },
            "is_flash_attention": True,
            "mask_type": self.mask,
            "dropout_rate": 0.0,
            "seed": 42,
            "sliding_window_length": self.options.window,
            "max_seg_per_batch": 1,
            "is_paged_attention": False,
        }
        for name, (contracted, batches) in products.items():
            settings[name] = {
                f"{side}_{kind}_dimensions": [str(axis) for axis in axes]
                for n, side in enumerate(("lhs", "rhs"))
                for kind, axes in (("contracting", contracted[n : n + 1]), ("batch", batches[n]))
            }
        return json.dumps({"operation_queue_id": "0", "cudnn_fmha_backend_config": settings})

    def call(self, *operands: Array) -> tuple[Array, ...]:
        """Call the kernel with operands in the order of their names; return the results."""
        shapes = {n: typeof(x).shape for n, x in zip(self.operands, operands, strict=True)}
        (batch, queries, heads, _), keys = shapes["query"], shapes["key"][1]
        dtype = typeof(operands[0]).dtype
        result_types, layouts = [], []
        for name in self.results:
            shape = shapes["query"] if name == "result" else shapes.get(name, ())
            if name == "sums":
                result_types.append(ShapeDtypeStruct((batch, heads, queries), np.float32))
                layouts.append(None)
            elif name == "bias":
                result_types.append(ShapeDtypeStruct(shape, dtype))
                layouts.append(None)
            else:
                heads_first = (shape[0], shape[2], shape[1], shape[3])
                result_types.append(ShapeDtypeStruct(heads_first, dtype))
                layouts.append(_LENGTH_BEFORE_HEADS)
        # The last result is memory for the kernel, whose size XLA's compiler chooses.
        call = ffi_call(
            self.target,
            [*result_types, ShapeDtypeStruct((0,), np.uint8)],
            output_layouts=[*layouts, None],
            custom_call_api_version=_CALL_VERSION,
            legacy_backend_config=self.config((batch, heads, queries, keys), dtype),
        )
        *results, _ = call(*operands)
        return tuple(
            x if layout is None else jnp.transpose(x, _LENGTH_BEFORE_HEADS)
            for x, layout in zip(results, layouts, strict=True)
        )


@functools.cache
def _batched(kernel: _Kernel) -> Callable[..., tuple[Array, ...]]:
    """Return the function that calls a kernel, with its rules for devices and for vmap."""
    whole = custom_partitioning(kernel.call)
    whole.def_partition(
        functools.partial(_partition, kernel), sharding_rule=functools.partial(_rule, kernel)
    )
    batched = custom_vmap(whole)

    def rule(axis_size: int, in_batched: list[bool], *operands: Array) -> tuple[Any, Any]:
        merged = []
        batch = typeof(operands[0]).shape[1 if in_batched[0] else 0]
        for name, x, has_axis in zip(kernel.operands, operands, in_batched, strict=True):
            if name == "bias" and not (has_axis or kernel.is_backward or typeof(x).shape[0] > 1):
                merged.append(x)
                continue
            if not has_axis:
                x = jnp.broadcast_to(x, (axis_size, *typeof(x).shape))
            shape = typeof(x).shape
            if name == "bias":
                x = jnp.broadcast_to(x, (axis_size, batch, *shape[2:]))
            merged.append(jnp.reshape(x, (axis_size * batch, *shape[2:])))
        results = []
        for name, x in zip(kernel.results, batched(*merged), strict=True):
            x = jnp.reshape(x, (axis_size, batch, *typeof(x).shape[1:]))
            if name == "bias":
                bias = kernel.operands.index("bias")
                if typeof(operands[bias]).shape[1 if in_batched[bias] else 0] == 1:
                    x = x.sum(1, keepdims=True)
            results.append(x)
        return tuple(results), (True,) * len(results)

    batched.def_vmap(rule)
    return batched


# ---- over several devices ------------------------------------------------------------------------


def _rule(kernel: _Kernel, mesh: object, operands: object, results: object) -> SdyShardingRule:
    """Return Shardy's rule: batches and heads are split the same way in all operands and results.

    Args:
      kernel: the kernel.
      mesh: the mesh of the program.
      operands: MLIR's types of the operands.
      results: MLIR's types of the results.
    """
    heads, shared = operands[0].shape[2], operands[1].shape[2]
    sizes = dict(zip((*_OF_QUERY, *_OF_KEY), (*operands[0].shape, *operands[1].shape)))
    whole = "shared" if heads == shared else CompoundFactor("shared", "group")

    def mapping(name: str, shape: Shape, side: str) -> ArrayMapping:
        return ArrayMapping(
            *(
                f"{side}_{name}_{axis}"
                if size != sizes[axis]
                else whole
                if axis == "heads"
                else axis
                for axis, size in zip(_AXES[name], shape, strict=True)
            )
        )

    return SdyShardingRule(
        tuple(mapping(n, t.shape, "in") for n, t in zip(kernel.operands, operands, strict=True)),
        tuple(mapping(n, t.shape, "out") for n, t in zip(kernel.results, results, strict=True)),
        **({} if heads == shared else {"group": heads // shared}),
    )


def _partition(kernel: _Kernel, mesh: object, operands: object, results: object) -> tuple[Any, ...]:
    """Return the function of a device's shards, with the shardings of results and operands.

    Batches and heads are split like those of the query; the other axes are not split.
    """
    spec = operands[0].sharding.spec
    query, key = operands[0].shape, operands[1].shape
    batch, heads = (spec[n] if n < len(spec) else None for n in (0, 2))
    names = () if heads is None else heads if isinstance(heads, tuple) else (heads,)
    if key[2] % math.prod(mesh.shape[name] for name in names):
        heads = None
    split = {"batch": batch, "heads": heads, "shared": heads}
    sizes = {"batch": query[0], "heads": query[2], "shared": key[2]}

    def sharding(name: str, x: object) -> NamedSharding:
        entries = (
            split[axis] if axis in split and size == sizes[axis] else None
            for axis, size in zip(_AXES[name], x.shape, strict=True)
        )
        return NamedSharding(mesh, PartitionSpec(*entries))

    def on_shards(*shards: Array) -> tuple[Array, ...]:
        parts = dict(zip(kernel.results, kernel.call(*shards), strict=True))
        if "bias" in parts:
            # Each device has the sum over its own batches and heads.
            summed = [
                split[axis]
                for axis, size in zip(("batch", "heads"), typeof(parts["bias"]).shape, strict=False)
                if size == 1 and split[axis] is not None and sizes[axis] > 1
            ]
            for axes in summed:
                parts["bias"] = psum(parts["bias"], axes)
        return tuple(parts.values())

    return (
        mesh,
        on_shards,
        tuple(sharding(n, x) for n, x in zip(kernel.results, results, strict=True)),
        tuple(sharding(n, x) for n, x in zip(kernel.operands, operands, strict=True)),
    )
