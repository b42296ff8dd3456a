"""Replacements of convolutions on CPUs: sums of products, or other operations.

XLA's CPU code for a convolution with one input feature for each output feature computes elements
sequentially. A sum with one term for each position of the kernel is a loop of vector instructions.
"""

import itertools
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import int32
from hlofront.base.typing import Array, Shape
from hlofront.core.aval import ShapedArray
from hlofront.higher_order.control_flow.while_loop import fori_loop
from hlofront.lowering.min_sizes import MIN_SIZES
from hlofront.lowering.replacements import Candidate, Emit, computed_in, replaces, traced
from hlofront.primitives.arrays.creation import full
from hlofront.primitives.arrays.dynamic_slicing import dynamic_slice, dynamic_update_slice
from hlofront.primitives.arrays.reducing import reduce_sum
from hlofront.primitives.arrays.shaping import ascending, broadcast_in_dim, reshape, rev, transpose
from hlofront.primitives.arrays.slicing import (
    index_in_dim,
    pad,
    slice_along,
)
from hlofront.primitives.arrays.windowed import Pads
from hlofront.primitives.calls.barriers import optimization_barrier
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import add, div, mul, rem
from hlofront.primitives.linalg import conv as c
from hlofront.primitives.linalg.conv import conv_general_dilated
from hlofront.primitives.linalg.conv_numbers import ConvDimensionNumbers

# ---- batch groups --------------------------------------------------------------------------------
#
# The derivative of a convolution with feature groups with respect to its kernel is a convolution
# with batch groups, of two large arrays, with a small result. XLA's CPU code computes it as if all
# features were in one group, or worse. Here a loop over the elements of the result, for all groups
# together, multiplies a shifted slice of one array by the other array and sums the product.


# Groups of more elements keep XLA's operation.
_MAX_IN_GROUP = 32


def has_small_groups(equation: Candidate) -> bool:
    """Return whether batch groups are small, and many products are summed."""
    (lhs, rhs), (result,), params = equation.avals_in, equation.avals_out, equation.params
    numbers: ConvDimensionNumbers = params["dimension_numbers"]
    groups: int = params["batch_group_count"]
    if groups == 1 or not issubdtype(result.dtype, np.floating) or not lhs.size * result.size:
        return False
    # Other convolutions have small kernels, and results of many positions.
    window, positions = (
        math.prod(aval.shape[axis] for axis in spec[2:])
        for aval, spec in ((rhs, numbers.rhs_spec), (result, numbers.out_spec))
    )
    in_group = lhs.shape[numbers.lhs_spec[0]] // groups
    return (
        in_group <= _MAX_IN_GROUP
        and rhs.size >= MIN_SIZES["conv_general_dilated"]["groups of a batch"]
        and window >= positions
    )


def position_by_position(lhs: Array, rhs: Array, *, shape: Shape, **params: Any) -> Array:
    """Return a convolution of this shape, one position at a time, for all groups."""
    numbers: ConvDimensionNumbers = params["dimension_numbers"]
    groups: int = params["batch_group_count"]
    strides, steps = params["window_strides"], params["rhs_dilation"]
    lhs_spec, rhs_spec, out_spec = numbers
    rank = len(strides)
    # The axes are elements of a group, summed features, positions, and groups; in the second array
    # the first axis is features of a group.
    spatial = ascending(rank)
    x = padded(lhs, lhs_spec[2:], params["padding"], params["lhs_dilation"])
    batch, feature = lhs_spec[:2]
    split = (groups, x.shape[batch] // groups)
    x = reshape(x, (*x.shape[:batch], *split, *x.shape[batch + 1 :]))
    other_axes = (axis + (axis > batch) for axis in (feature, *lhs_spec[2:]))
    x = transpose(x, (batch + 1, *other_axes, batch))
    y = transpose(rhs, (rhs_spec[1], *rhs_spec[2:], rhs_spec[0]))
    x, y = optimization_barrier((x, y))

    window = [shape[axis] for axis in out_spec[2:]]
    in_group, positions = x.shape[0], math.prod(window)
    spans = [(size - 1) * step + 1 for size, step in zip(y.shape[1:-1], steps, strict=True)]
    wide = (*y.shape[:-1], groups, y.shape[-1] // groups)

    def step(number: Array, results: Array) -> Array:
        number = rest = convert(number, int32, False)
        starts: list[Array] = []
        for size, stride in zip(reversed(window), reversed(strides), strict=True):
            starts.insert(0, mul(rem(rest, np.int32(size)), np.int32(stride)))
            rest = div(rest, np.int32(size))
        zero = np.int32(0)
        at = (rest, zero, *starts, zero)
        part = dynamic_slice(x, at, (1, x.shape[1], *spans, groups))
        part = reshape(part, part.shape[1:])
        part = slice_along(part, [axis + 1 for axis in spatial], [0] * rank, y.shape[1:-1], steps)
        factors = reshape(broadcast_in_dim(part, wide, ascending(y.ndim)), y.shape)
        (product,) = optimization_barrier((mul(factors, y),))
        # Sums of partial sums have smaller errors.
        for rows in (y.shape[0] * y.shape[1], math.prod(y.shape[2:-1])):
            product = reshape(product, (rows, product.size // rows))
            (product,) = optimization_barrier((reduce_sum(product, (0,)),))
        total = reshape(product, (1, y.shape[-1]))
        return dynamic_update_slice(results, total, (number, zero))

    results = full((in_group * positions, y.shape[-1]), 0, y.dtype)
    results = fori_loop(np.int32(0), np.int32(in_group * positions), step, results)
    results = reshape(results, (in_group, *window, y.shape[-1]))
    # The axes are elements of a group, positions, features.
    order = {axis: i for i, axis in enumerate((out_spec[0], *out_spec[2:], out_spec[1]))}
    return transpose(results, [order[axis] for axis in ascending(rank + 2)])


def padded(x: Array, axes: Sequence[int], padding: Pads, dilation: Sequence[int]) -> Array:
    """Return x with zeros around it, and between elements of these axes for a dilation."""
    config = [(0, 0, 0)] * x.ndim
    for axis, (low, high), step in zip(axes, padding, dilation, strict=True):
        config[axis] = (low, high, step - 1)
    return pad(x, np.zeros((), x.dtype), config)


# ---- dilated inputs ------------------------------------------------------------------------------
#
# XLA's CPU code multiplies the zeros of a dilated input, and if the kernel is large, as in the
# derivative of a transposed convolution with respect to its kernel, it computes each element by a
# loop. If operands are exchanged, the kernel is dilated instead, which is free.


def _products(equation: Candidate) -> int:
    """Return the number of summed products, including those with zeros of dilations."""
    (_, rhs), (result,), params = equation.avals_in, equation.avals_out, equation.params
    numbers: ConvDimensionNumbers = params["dimension_numbers"]
    spec = numbers.rhs_spec
    return result.size * math.prod(rhs.shape[axis] for axis in spec[1:])


def _has(equation: Candidate, name: str) -> bool:
    """Return whether a convolution has strides, or dilations of either operand, other than 1."""
    return any(step != 1 for step in equation.params[name])


def _has_dilated_input_alone(equation: Candidate) -> bool:
    strided, spaced = _has(equation, "window_strides"), _has(equation, "rhs_dilation")
    return _has(equation, "lhs_dilation") and not strided and not spaced


def _is_of_one_group(equation: Candidate) -> bool:
    (result,), params = equation.avals_out, equation.params
    return params["feature_group_count"] == params["batch_group_count"] == 1 and (
        result.dtype != np.bool_
    )


def is_of_dilated_input(equation: Candidate) -> bool:
    """Return whether the input is dilated, and the window has more positions than the result."""
    (lhs, rhs), (result,), params = equation.avals_in, equation.avals_out, equation.params
    numbers: ConvDimensionNumbers = params["dimension_numbers"]
    lhs_spec, rhs_spec, out_spec = numbers
    if not (_is_of_one_group(equation) and _has_dilated_input_alone(equation)):
        return False
    window, positions = (
        math.prod(aval.shape[axis] for axis in spec[2:])
        for aval, spec in ((rhs, rhs_spec), (result, out_spec))
    )
    # One input feature would become one output feature, whose products have one row.
    return (
        window > positions
        and lhs.shape[lhs_spec[0]] > 1
        and _products(equation) >= MIN_SIZES["conv_general_dilated"]["dilated inputs"]
    )


def exchanged(
    lhs: Array,
    rhs: Array,
    *,
    result: ShapedArray,
    padding: Pads,
    lhs_dilation: Sequence[int],
    dimension_numbers: ConvDimensionNumbers,
    **params: Any,
) -> Array:
    """Return a convolution with the input as the kernel and vice versa."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    pads: list[tuple[int, int]] = []
    for axis, (low, _), step in zip(range(2, lhs.ndim), padding, lhs_dilation, strict=True):
        size, before = result.shape[out_spec[axis]], result.shape[out_spec[axis]] - 1 - low
        span = (lhs.shape[lhs_spec[axis]] - 1) * step + 1
        pads.append((before, size - 1 + span - rhs.shape[rhs_spec[axis]] - before))
    batch, feature, *spatial = out_spec
    numbers = ConvDimensionNumbers(rhs_spec, lhs_spec, (feature, batch, *spatial))
    params |= {
        "padding": pads,
        "lhs_dilation": params["rhs_dilation"],
        "rhs_dilation": lhs_dilation,
        "dimension_numbers": numbers,
    }
    return rev(conv_general_dilated(rhs, lhs, **params), spatial)


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
