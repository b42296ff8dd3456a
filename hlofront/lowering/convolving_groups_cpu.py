"""Convolutions with groups as CPUs compute them fast: one for each group, or sums of products.

The derivative of a convolution with groups of features by its kernel is a convolution with groups
of a batch, of arrays that are both large, and with a small result. XLA's CPU code computes it as if
all features were in one group, or worse. Here a loop over the elements of the result, for all
groups at once, multiplies a shifted slice of one array by the other one and sums the product.

The processor time of derivatives by the kernel in milliseconds, float32, as XLA's operation and so,
on a loaded Intel Xeon of 2 cores by AVX-512: depthwise, 8 x 56 x 56 x 64 and 3 x 3 61 and 18, with
strides of 2 10 and 4.4, with two features for each 17,300 and 37, 4 x 28 x 28 x 256 and 7 x 7 584
and 31, 1 x 14 x 14 x 96 0.54 and 0.09; 8 x 56 x 56 x 64 in 8 groups 2,350 and 77, 8 x 28 x 28 x 128
in 32 groups 4,800 and 24, 4 x 14 x 14 x 64 in 2 groups 18 and 6.6, in 8 groups 66 and 1.6. To
compile it takes 200 to 450 ms for 100 to 190.

Of many groups of two to four features a sum of products, with the groups along the last axis, is
made: 8 x 28 x 28 x 64 and 3 x 3 in 32 groups take 15 and 2 ms, in 16 groups 10.9 and 3.8, and 10
and 240 to compile.

XLA's CPU code for convolutions with groups of features takes longer than for one group of all of
them. So a few groups are convolutions of their own: 8 x 56 x 56 x 64 and 3 x 3 in 8 groups take 57
and 18 ms there, 8 x 28 x 28 x 128 in 2 groups 22 and 9, and 20 and 200 to 380 ms to compile.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.typing import Array, Shape
from hlofront.core.aval import ShapedArray
from hlofront.higher_order.while_loop import fori_loop
from hlofront.lowering.cpu_formulas import Candidate
from hlofront.primitives.barriers import optimization_barrier
from hlofront.primitives.converting import convert
from hlofront.primitives.convolution_numbers import ConvDimensionNumbers
from hlofront.primitives.convolving import conv_general_dilated
from hlofront.primitives.creating import full
from hlofront.primitives.dynamic_slicing import dynamic_slice, dynamic_update_slice
from hlofront.primitives.elementwise import add, div, mul, rem
from hlofront.primitives.reducing import reduce_sum
from hlofront.primitives.shaping import ascending, broadcast_in_dim, reshape, transpose
from hlofront.primitives.slicing import (
    concatenate,
    index_in_dim,
    pad,
    slice_along,
    slice_in_dim,
)
from hlofront.primitives.windowed import Pads

_int32 = np.dtype(np.int32)

# Groups of more elements keep XLA's operation, and so do fewer products for each element.
_MOST_IN_GROUP = 32
_FEWEST = 256


# More groups, and those of fewer features, are one operation, and so are fewer products.
_MOST_GROUPS = 8
_FEWEST_FEATURES = 8
_FEWEST_PRODUCTS = 1 << 25

# So are many groups of more input features, longer sums for an element, and fewer products.
_LEAST_GROUPS = 16
_MOST_FEATURES = 4
_MOST_TERMS = 64
_FEWEST_OF_SMALL = 1 << 20


def has_few_groups(equation: Candidate) -> bool:
    """Return whether there are few groups of features, and many products to be summed."""
    (_, rhs), (result,), params = equation
    numbers: ConvDimensionNumbers = params["dimension_numbers"]
    groups: int = params["feature_group_count"]
    if not 1 < groups <= _MOST_GROUPS or not issubdtype(result.dtype, np.floating):
        return False
    outputs, inputs = (rhs.shape[axis] for axis in numbers.rhs_spec[:2])
    if min(outputs // groups, inputs) < _FEWEST_FEATURES:
        return False
    return rhs.size // outputs * result.size >= _FEWEST_PRODUCTS


def of_each_group(lhs: Array, rhs: Array, *, result: ShapedArray, **params: Any) -> Array:
    """Return a convolution with groups of features as one convolution for each group."""
    del result
    numbers: ConvDimensionNumbers = params["dimension_numbers"]
    groups: int = params.pop("feature_group_count")
    parts = zip(
        _parts(lhs, numbers.lhs_spec[1], groups),
        _parts(rhs, numbers.rhs_spec[0], groups),
        strict=True,
    )
    results = [conv_general_dilated(x, kernel, **params) for x, kernel in parts]
    return concatenate(results, numbers.out_spec[1])


def _parts(x: Array, axis: int, count: int) -> list[Array]:
    """Return so many equal parts of an array along an axis."""
    size = x.shape[axis] // count
    return [slice_in_dim(x, i * size, (i + 1) * size, axis=axis) for i in range(count)]


def has_small_features(equation: Candidate) -> bool:
    """Return whether groups have a few features each, and many products are summed."""
    (_, rhs), (result,), params = equation
    numbers: ConvDimensionNumbers = params["dimension_numbers"]
    spec = numbers.rhs_spec
    terms = math.prod(rhs.shape[axis] for axis in spec[1:])
    groups: int = params["feature_group_count"]
    return (
        groups >= _LEAST_GROUPS
        and 1 < rhs.shape[spec[1]] <= _MOST_FEATURES
        and terms <= _MOST_TERMS
        and issubdtype(result.dtype, np.floating)
        and terms * result.size >= _FEWEST_OF_SMALL
    )


def feature_by_feature(
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
    """Return a convolution with groups of features as a sum over features and kernel positions."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    groups, spatial = feature_group_count, ascending(len(window_strides))
    # The axes are features of a group, the batch, positions, and groups;
    x = padded(lhs, lhs_spec[2:], padding, lhs_dilation)
    x = transpose(x, (lhs_spec[1], lhs_spec[0], *lhs_spec[2:]))
    inputs = x.shape[0] // groups
    x = reshape(x, (groups, inputs, *x.shape[1:]))
    x = transpose(x, (*range(1, x.ndim), 0))
    # those of the kernel are positions, features of a group, those of the result, and groups.
    kernel = transpose(rhs, (*rhs_spec[2:], rhs_spec[1], rhs_spec[0]))
    window, outputs = kernel.shape[:-2], kernel.shape[-1] // groups
    kernel = reshape(kernel, (math.prod(window), inputs, groups, outputs))
    kernel = transpose(kernel, (0, 1, 3, 2))
    x, kernel = optimization_barrier((x, kernel))
    sizes = [shape[axis] for axis in out_spec[2:]]
    wide = (x.shape[1], *sizes, outputs, groups)
    rank = len(wide)
    total: Array | None = None
    for feature in range(inputs):
        of_feature = index_in_dim(x, feature, keepdims=False)
        for number, position in enumerate(itertools.product(*map(range, window))):
            starts = [index * step for index, step in zip(position, rhs_dilation, strict=True)]
            axes = [axis + 1 for axis in spatial]
            part = slice_along(of_feature, axes, starts, sizes, window_strides)
            factors = index_in_dim(
                index_in_dim(kernel, number, keepdims=False), feature, keepdims=False
            )
            product = mul(
                broadcast_in_dim(part, wide, (*range(rank - 2), rank - 1)),
                broadcast_in_dim(factors, wide, (rank - 2, rank - 1)),
            )
            total = product if total is None else add(total, product)
    assert total is not None
    (total,) = optimization_barrier((total,))
    # The features of the result are those of a group, for one group after the other.
    total = transpose(total, (*range(rank - 2), rank - 1, rank - 2))
    total = reshape(total, (x.shape[1], *sizes, groups * outputs))
    order = {axis: i for i, axis in enumerate((out_spec[0], *out_spec[2:], out_spec[1]))}
    return transpose(total, [order[axis] for axis in range(total.ndim)])


def has_small_groups(equation: Candidate) -> bool:
    """Return whether few elements of a batch are in each group, and many products are summed."""
    (lhs, rhs), (result,), params = equation
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
    return in_group <= _MOST_IN_GROUP and rhs.size >= _FEWEST and window >= positions


def position_by_position(lhs: Array, rhs: Array, *, shape: Shape, **params: Any) -> Array:
    """Return a convolution of this shape, one position of it after the other, for all groups."""
    numbers: ConvDimensionNumbers = params["dimension_numbers"]
    groups: int = params["batch_group_count"]
    strides, steps = params["window_strides"], params["rhs_dilation"]
    lhs_spec, rhs_spec, out_spec = numbers
    rank = len(strides)
    # The axes are elements of a group, summed features, positions, and groups; and the second array
    # has features of a group in place of the first.
    spatial = ascending(rank)
    x = padded(lhs, lhs_spec[2:], params["padding"], params["lhs_dilation"])
    batch, feature = lhs_spec[:2]
    split = (groups, x.shape[batch] // groups)
    x = reshape(x, (*x.shape[:batch], *split, *x.shape[batch + 1 :]))
    others = (axis + (axis > batch) for axis in (feature, *lhs_spec[2:]))
    x = transpose(x, (batch + 1, *others, batch))
    y = transpose(rhs, (rhs_spec[1], *rhs_spec[2:], rhs_spec[0]))
    x, y = optimization_barrier((x, y))

    window = [shape[axis] for axis in out_spec[2:]]
    in_group, positions = x.shape[0], math.prod(window)
    spans = [(size - 1) * step + 1 for size, step in zip(y.shape[1:-1], steps, strict=True)]
    wide = (*y.shape[:-1], groups, y.shape[-1] // groups)

    def step(number: Array, results: Array) -> Array:
        number = rest = convert(number, _int32, False)
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
        # Sums of sums have smaller errors.
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
