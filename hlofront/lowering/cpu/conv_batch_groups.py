"""A replacement of convolutions with batch groups on CPUs: one position at a time.

The derivative of a convolution with feature groups with respect to its kernel is a convolution with
batch groups, of two large arrays, with a small result. XLA's CPU code computes it as if all
features were in one group, or worse. Here a loop over the elements of the result, for all groups
together, multiplies a shifted slice of one array by the other array and sums the product.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import int32
from hlofront.base.typing import Array, Shape
from hlofront.higher_order.while_loop import fori_loop
from hlofront.lowering.min_sizes import MIN_SIZES
from hlofront.lowering.replacements import Candidate
from hlofront.primitives.arrays.creation import full
from hlofront.primitives.arrays.dynamic_slicing import dynamic_slice, dynamic_update_slice
from hlofront.primitives.arrays.reducing import reduce_sum
from hlofront.primitives.arrays.shaping import ascending, broadcast_in_dim, reshape, transpose
from hlofront.primitives.arrays.slicing import (
    pad,
    slice_along,
)
from hlofront.primitives.arrays.windowed import Pads
from hlofront.primitives.calls.barriers import optimization_barrier
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import div, mul, rem
from hlofront.primitives.linalg.conv_numbers import ConvDimensionNumbers

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
