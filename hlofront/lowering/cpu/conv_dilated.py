"""A replacement of convolutions with dilated inputs on CPUs, which exchanges the operands.

XLA's CPU code multiplies the zeros of a dilated input, and if the kernel is large, as in the
derivative of a transposed convolution with respect to its kernel, it computes each element by a
loop. If operands are exchanged, the kernel is dilated instead, which is free.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.base.typing import Array
from hlofront.core.aval import ShapedArray
from hlofront.lowering.min_sizes import MIN_SIZES
from hlofront.lowering.replacements import Candidate
from hlofront.primitives.arrays.shaping import rev
from hlofront.primitives.arrays.windowed import Pads
from hlofront.primitives.linalg.conv import conv_general_dilated
from hlofront.primitives.linalg.conv_numbers import ConvDimensionNumbers


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
