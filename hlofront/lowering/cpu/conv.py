"""Replacements of convolutions on CPUs: sums of products, or other operations.

XLA's CPU code for a convolution with one input feature for each output feature computes elements
sequentially. A sum with one term for each position of the kernel is a loop of vector instructions.
"""

import itertools
import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from hlofront.base.typing import Array, Shape
from hlofront.lowering.cpu.conv_batch_groups import (
    has_small_groups,
    padded,
    position_by_position,
)
from hlofront.lowering.cpu.conv_dilated import exchanged, is_of_dilated_input
from hlofront.lowering.min_sizes import MIN_SIZES
from hlofront.lowering.replacements import Candidate, Emit, computed_in, replaces, traced
from hlofront.primitives.arrays.shaping import broadcast_in_dim, reshape, transpose
from hlofront.primitives.arrays.slicing import index_in_dim, slice_along
from hlofront.primitives.arrays.windowed import Pads
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import add, mul
from hlofront.primitives.linalg import conv as c
from hlofront.primitives.linalg.conv_numbers import ConvDimensionNumbers

# Kernels with more positions keep XLA's operation, because each takes time to compile.
_MAX_POSITIONS = 64
# So do convolutions of one input feature to several output features, which XLA computes fast.
_MAX_FEATURES = 8


def _is_depthwise(equation: Candidate) -> bool:
    """Return whether each output feature has one input feature, and there are enough products."""
    (lhs, rhs), (result,), params = equation.avals_in, equation.avals_out, equation.params
    numbers: ConvDimensionNumbers = params["dimension_numbers"]
    lhs_spec, rhs_spec, out_spec = numbers
    if params["batch_group_count"] > 1 or rhs.shape[rhs_spec[1]] != 1:
        return False
    if result.dtype == np.bool_:
        return False
    if lhs.shape[lhs_spec[1]] == 1 and result.shape[out_spec[1]] > _MAX_FEATURES:
        return False
    positions = math.prod(rhs.shape[axis] for axis in rhs_spec[2:])
    return (
        positions <= _MAX_POSITIONS
        and positions * result.size >= MIN_SIZES["conv_general_dilated"]["depthwise"]
    )


@replaces(c.conv_general_dilated_p, needs_barriers=True)
def _(equation: Candidate) -> Emit | None:
    """Depthwise ones as sums of products; those of dilated inputs with exchanged operands."""
    (result,), params = equation.avals_out, dict(equation.params)
    del params["out_sharding"]
    if _is_depthwise(equation):
        form = _sum_of_products
    elif has_small_groups(equation):
        form = position_by_position
    elif is_of_dilated_input(equation):
        return traced(partial(exchanged, result=result, **params))
    else:
        return None
    del params["precision"], params["preferred_element_type"]
    dtype = computed_in(result.dtype)

    def of_arrays(*arrays: Array) -> Array:
        lhs, rhs = (convert(x, dtype, False) for x in arrays)
        return convert(form(lhs, rhs, shape=result.shape, **params), result.dtype, False)

    return traced(of_arrays, is_stored=True)


def _sum_of_products(
    lhs: Array,
    rhs: Array,
    *,
    shape: Shape,
    feature_group_count: int,
    batch_group_count: int,
    window_strides: Sequence[int],
    padding: Pads,
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    dimension_numbers: ConvDimensionNumbers,
) -> Array:
    """Return a convolution of this shape as a sum with a term for each position in the kernel."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    spatial_axes, feature_axis = out_spec[2:], out_spec[1]
    source_axis = dict(zip(out_spec, lhs_spec, strict=True))
    x = transpose(lhs, [source_axis[axis] for axis in range(lhs.ndim)])
    x = padded(x, spatial_axes, padding, lhs_dilation)
    kernel = transpose(rhs, (*rhs_spec[2:], *rhs_spec[:2]))
    window = kernel.shape[:-2]
    features = x.shape[feature_axis]
    kernel = reshape(kernel, (math.prod(window), features, kernel.shape[-2] // features))
    total: Array | None = None
    for number, position in enumerate(itertools.product(*map(range, window))):
        starts = [index * step for index, step in zip(position, rhs_dilation, strict=True)]
        sizes = [shape[axis] for axis in spatial_axes]
        shifted = slice_along(x, spatial_axes, starts, sizes, window_strides)
        factors = index_in_dim(kernel, number, keepdims=False)
        product = _product_by_feature(shifted, factors, feature_axis)
        total = product if total is None else add(total, product)
    assert total is not None
    return reshape(total, shape)


def _product_by_feature(x: Array, factors: Array, axis: int) -> Array:
    """Return x times each factor of a feature; the factors are along a new axis after `axis`.

    Args:
      x: an array with the features along `axis`.
      factors: an array of shape (features, factors per feature).
    """
    shape = (*x.shape[: axis + 1], factors.shape[1], *x.shape[axis + 1 :])
    other_axes = [i for i in range(len(shape)) if i != axis + 1]
    wide = broadcast_in_dim(x, shape, other_axes)
    return mul(wide, broadcast_in_dim(factors, shape, (axis, axis + 1)))
