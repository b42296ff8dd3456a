"""Matrix products in microscaling formats: narrow floats with a scale factor per block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

import hlofront.numpy as jnp
from hlofront.base.dtypes import finfo
from hlofront.base.elements import float32, uint8, uint32
from hlofront.base.typing import Array, ArrayLike, DTypeLike
from hlofront.core.aval import typeof
from hlofront.higher_order.custom_rules.custom_vjp import custom_vjp
from hlofront.primitives.arrays.shaping import broadcast_in_dim, reshape, transpose
from hlofront.primitives.calls.barriers import optimization_barrier
from hlofront.primitives.elementwise import elementwise
from hlofront.primitives.elementwise.converting import bitcast_convert_type, convert
from hlofront.primitives.linalg.dot_general import dot_general
from hlofront.runtime.dispatch.operation import operation

if TYPE_CHECKING:
    from hlofront.primitives.linalg.contraction_numbers import DotDimensionNumbers

_scale_of_powers = np.dtype(ml_dtypes.float8_e8m0fnu)


@dataclass
class BlockScaleConfig:
    """The quantization settings for one operand of `scaled_dot_general`.

    Attributes:
      mode: the name of the format, "nvfp4" or "mxfp8".
      block_size: the number of elements that share a scale factor.
      data_type: the dtype of elements.
      scale_type: the dtype of scale factors.
      global_scale: a scale factor for all elements, or None.
      infer_only: whether derivatives are not needed.
    """

    mode: str
    block_size: int
    data_type: DTypeLike
    scale_type: DTypeLike
    global_scale: ArrayLike | None
    infer_only: bool


def get_scaled_dot_general_config(
    mode: str, global_scale: ArrayLike | None = None
) -> BlockScaleConfig:
    """Return the quantization settings of a format, for `scaled_dot_general`.

    Args:
      mode: "mxfp8", of the OCP Microscaling Formats specification (2023): float8_e4m3fn in blocks
        of 32 with powers of two as scale factors; or "nvfp4", float4_e2m1fn in blocks of 16 with
        scale factors of float8_e4m3fn.
      global_scale: a floating-point array of shape (1,) that scales all elements, with "nvfp4".

    Raises:
      ValueError: if the mode is unknown, or the global scale has another shape or dtype.

    Example:
      >>> jax.nn.get_scaled_dot_general_config("mxfp8").block_size
      32
    """
    if mode == "nvfp4":
        if global_scale is None:
            global_scale = jnp.ones((1,), float32)
        elif typeof(global_scale).dtype != float32:
            raise ValueError(
                f"global_scale of nvfp4 must be float32, got {typeof(global_scale).dtype}"
            )
        types = (ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn)
        return BlockScaleConfig(mode, 16, *types, global_scale, infer_only=False)
    if mode == "mxfp8":
        types = (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu)
        return BlockScaleConfig(mode, 32, *types, None, infer_only=False)
    raise ValueError(f"Unsupported mode: {mode}. Give 'nvfp4' or 'mxfp8'.")


# ---- the product ---------------------------------------------------------------------------------


@operation(static_argnames=("preferred_element_type",))
def _scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: ArrayLike,
    rhs_scales: ArrayLike,
    preferred_element_type: np.dtype,
) -> Array:
    numbers = (((2,), (2,)), ((0,), (0,)))
    # Products of 4-bit or 8-bit elements and 8-bit scale factors are exact in float32.
    operands = _widened(lhs, lhs_scales), _widened(rhs, rhs_scales)
    result = dot_general(*operands, numbers, preferred_element_type=float32)
    return convert(result, preferred_element_type, False)


def _widened(x: Array, scales: Array) -> Array:
    """Dequantize x (B, rows, count) to float32 with one scale per block, (B, rows, blocks)."""
    batch, rows, count = typeof(x).shape
    blocks = typeof(scales).shape[2]
    factors = convert(scales, float32, False)
    factors = broadcast_in_dim(factors, (batch, rows, blocks, count // blocks), (0, 1, 2))
    return elementwise.mul(convert(x, float32, False), reshape(factors, (batch, rows, count)))


def scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: ArrayLike,
    rhs_scales: ArrayLike,
    preferred_element_type: DTypeLike = np.float32,
) -> Array:
    """Multiply batches of matrices with scale factors per block of elements.

    Elements are dequantized to float32 and multiplied there, on every platform.

    Args:
      lhs: an array of shape (B, M, K).
      rhs: an array of shape (B, N, K).
      lhs_scales: the scale factors of `lhs`, of shape (B, M, K / block size).
      rhs_scales: the scale factors of `rhs`, of shape (B, N, K / block size).
      preferred_element_type: the dtype of the result.

    Returns:
      An array of shape (B, M, N).

    Raises:
      ValueError: if an operand does not have three axes, or the shapes do not match.
    """
    avals = [typeof(x) for x in (lhs, rhs, lhs_scales, rhs_scales)]
    shapes = [aval.shape for aval in avals]
    if any(len(shape) != 3 for shape in shapes):
        raise ValueError(f"scaled_matmul requires all inputs to be 3-dimensional arrays: {shapes}")
    (batch, _, size), other = shapes[0], shapes[1]
    if other[0] != batch or other[2] != size:
        raise ValueError(f"scaled_matmul requires inputs a and b to fit, got {shapes[:2]}")
    for shape, factors in zip(shapes[:2], shapes[2:], strict=True):
        if factors[:2] != shape[:2] or not factors[2] or shape[2] % factors[2]:
            raise ValueError(
                f"scaled_matmul requires a factor for each block of each row: got factors of "
                f"shape {factors} for an operand of shape {shape}"
            )
    if shapes[2][2] != shapes[3][2]:
        raise ValueError(f"scaled_matmul requires blocks of equal size, got factors {shapes[2:]}")
    result_dtype = np.dtype(preferred_element_type)
    return _scaled_matmul(lhs, rhs, lhs_scales, rhs_scales, result_dtype)


# ---- quantizing ----------------------------------------------------------------------------------


def _quantized(
    x: Array, config: BlockScaleConfig, global_scale: Array | None
) -> tuple[Array, Array]:
    """Quantize x of shape (batch, rows, size), and return its elements and scale factors."""
    batch, rows, size = typeof(x).shape
    blocks = reshape(x, (batch, rows, size // config.block_size, config.block_size))
    elements = np.dtype(config.data_type)
    greatest = float(finfo(elements).max)
    if global_scale is not None:
        blocks = blocks / convert(global_scale, typeof(x).dtype, False)
    exact_scales = jnp.max(jnp.abs(blocks), axis=-1, keepdims=True) / greatest
    if np.dtype(config.scale_type) == _scale_of_powers:
        scales, factors = _powers_above(convert(exact_scales, float32, False))
    else:
        most = float(finfo(config.scale_type).max)
        scales = convert(jnp.clip(exact_scales, 0, most), np.dtype(config.scale_type), False)
        # Compilers may remove a conversion followed by its reverse, and so the rounding.
        scales = optimization_barrier(scales)
        factors = scales
    factors = convert(factors, typeof(x).dtype, False)
    narrow = jnp.clip(blocks / factors, -greatest, greatest)
    narrow = reshape(convert(narrow, elements, False), (batch, rows, size))
    return narrow, reshape(scales, typeof(scales).shape[:3])


def _powers_above(x: Array) -> tuple[Array, Array]:
    """Return the least powers of two that are not less than x, as float8_e8m0fnu and as float32."""
    bits = bitcast_convert_type(x, uint32)
    exponent, fraction = bits >> np.uint32(23), bits & np.uint32(0x7FFFFF)
    # The least power is 2 ** -127, a subnormal number of float32.
    tiny = jnp.logical_and(exponent == 0, fraction <= np.uint32(0x400000))
    upward = jnp.logical_and(fraction > 0, exponent != np.uint32(254))
    upward = jnp.logical_and(upward, jnp.logical_not(tiny))
    exponent = jnp.where(upward, exponent + np.uint32(1), exponent)
    power = bitcast_convert_type(exponent << np.uint32(23), float32)
    power = jnp.where(power == 0, np.float32(2.0**-127), power)
    scales = bitcast_convert_type(convert(exponent, uint8, False), _scale_of_powers)
    return scales, power


# ---- general contractions ------------------------------------------------------------------------


def _as_matrices(x: Array, contracting: Sequence[int], batch: Sequence[int]) -> Array:
    """Reshape x to (batch, rows, contracted), each the product of the sizes of its axes."""
    shape = typeof(x).shape
    rows = [i for i in range(len(shape)) if i not in (*contracting, *batch)]
    sizes = [int(np.prod([shape[i] for i in axes])) for axes in (batch, rows, contracting)]
    return reshape(transpose(x, (*batch, *rows, *contracting)), sizes)


def _product(
    lhs: Array, rhs: Array, configs: Sequence[BlockScaleConfig], result_dtype: np.dtype
) -> Array:
    """Compute the quantized product of (B, M, K) and (B, N, K), with the global scale factors."""
    scales = [config.global_scale for config in configs]
    operands = [
        _quantized(_padded(x, config.block_size), config, scale)
        for x, config, scale in zip((lhs, rhs), configs, scales, strict=True)
    ]
    (lhs, lhs_scales), (rhs, rhs_scales) = operands
    result = scaled_matmul(lhs, rhs, lhs_scales, rhs_scales, result_dtype)
    for scale in scales:
        if scale is not None:
            result = result * convert(scale, typeof(result).dtype, False)
    return result


def _padded(x: Array, block: int) -> Array:
    """Pad x with zeros along its last axis to a multiple of the block size."""
    missing = -typeof(x).shape[2] % block
    return jnp.pad(x, ((0, 0), (0, 0), (0, missing))) if missing else x


@partial(custom_vjp, nondiff_argnums=(2, 3))
def _quantized_product(lhs: Array, rhs: Array, configs: _Configs, result_dtype: np.dtype) -> Array:
    return _product(lhs, rhs, configs.all[:2], result_dtype)


def _forward(
    lhs: Array, rhs: Array, configs: _Configs, result_dtype: np.dtype
) -> tuple[Array, tuple[Array, Array]]:
    return _product(lhs, rhs, configs.all[:2], result_dtype), (lhs, rhs)


def _backward(
    configs: _Configs, result_dtype: np.dtype, saved: tuple[Array, ...], cotangent: Array
) -> tuple[Array, Array]:
    lhs, rhs = saved
    gradient = configs.all[2]

    def flipped(x: Array) -> Array:
        return transpose(x, (0, 2, 1))

    def product(one: Array, other: Array, config: BlockScaleConfig) -> Array:
        return _product(one, flipped(other), (gradient, config), typeof(other).dtype)

    cotangent = convert(cotangent, typeof(lhs).dtype, False)
    of_lhs = product(cotangent, rhs, configs.all[1])
    of_rhs = product(flipped(cotangent), lhs, configs.all[0])
    return of_lhs, of_rhs


_quantized_product.defvjp(_forward, _backward)


class _Configs:
    """Three quantization settings compared by identity, a static argument of custom_vjp."""

    __slots__ = ("all",)

    def __init__(self, configs: Sequence[BlockScaleConfig]):
        self.all = tuple(configs)


def scaled_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    preferred_element_type: DTypeLike = np.float32,
    configs: Sequence[BlockScaleConfig] | None = None,
    implementation: str | None = None,
) -> Array:
    """Compute `lax.dot_general` of operands that are first quantized in blocks.

    The derivative quantizes the cotangent with the third of the settings.

    Args:
      lhs: a floating-point array.
      rhs: a floating-point array.
      dimension_numbers: those of `lax.dot_general`: ((contracting axes), (batch axes)), each for
        both operands.
      preferred_element_type: the dtype of the result.
      configs: the quantization settings of `lhs`, `rhs` and the result's cotangent, three results
        of `get_scaled_dot_general_config`. None turns quantization off.
      implementation: None or "cudnn"; XLA compiles both.

    Returns:
      An array with the shape of the result of `lax.dot_general`.

    Raises:
      TypeError: if the shapes do not match.
      ValueError: if there are not three settings, or the implementation is unknown.
    """
    if implementation not in (None, "cudnn"):
        raise ValueError(
            f"implementation of scaled_dot_general is None or 'cudnn': got {implementation!r}"
        )
    if configs is None:
        return dot_general(
            lhs, rhs, dimension_numbers, preferred_element_type=preferred_element_type
        )
    if len(configs) != 3:
        raise ValueError(f"scaled_dot_general needs three configs, got {len(configs)}")
    (lhs_summed, rhs_summed), (lhs_batch, rhs_batch) = dimension_numbers
    lhs, rhs = jnp.asarray(lhs), jnp.asarray(rhs)
    operands = _as_matrices(lhs, lhs_summed, lhs_batch), _as_matrices(rhs, rhs_summed, rhs_batch)
    result = _quantized_product(*operands, _Configs(configs), np.dtype(preferred_element_type))
    left, right = typeof(lhs).shape, typeof(rhs).shape
    shape = (
        *(left[i] for i in lhs_batch),
        *(size for i, size in enumerate(left) if i not in (*lhs_summed, *lhs_batch)),
        *(size for i, size in enumerate(right) if i not in (*rhs_summed, *rhs_batch)),
    )
    return reshape(result, shape)
