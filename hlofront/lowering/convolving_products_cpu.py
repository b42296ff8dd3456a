"""Replacements of convolutions on CPUs by other operations: products, and kernels with zeros.

XLA's CPU code multiplies the zeros of a dilated input, and if the kernel is large, as in the
derivative of a transposed convolution by its kernel, computes each element by a loop. Exchanged
operands have the dilation in the kernel, which costs nothing. A window of the whole input, as in
the derivative of a kernel of 1 x 1, is a product of matrices.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.base.typing import Array
from hlofront.core.aval import ShapedArray
from hlofront.lowering.min_sizes import MIN_SIZES
from hlofront.lowering.replacements import Candidate
from hlofront.lowering.types import NumPyDType
from hlofront.primitives.contracting import dot_general
from hlofront.primitives.convolution_numbers import ConvDimensionNumbers
from hlofront.primitives.convolving import conv_general_dilated
from hlofront.primitives.shaping import reshape, rev, transpose
from hlofront.primitives.slicing import slice_along
from hlofront.primitives.windowed import Pads


def _products(equation: Candidate) -> int:
    """Return the number of products that are summed, those with zeros of dilations too."""
    (_, rhs), (result,), params = equation.avals_in, equation.avals_out, equation.params
    numbers: ConvDimensionNumbers = params["dimension_numbers"]
    spec = numbers.rhs_spec
    return result.size * math.prod(rhs.shape[axis] for axis in spec[1:])


def _has(equation: Candidate, name: str) -> bool:
    """Return whether a convolution has strides, or dilations of one kind, other than 1."""
    return any(step != 1 for step in equation.params[name])


def _has_dilated_input_alone(equation: Candidate) -> bool:
    strided, spaced = _has(equation, "window_strides"), _has(equation, "rhs_dilation")
    return _has(equation, "lhs_dilation") and not strided and not spaced


def _is_of_one_group(equation: Candidate) -> bool:
    (result,), params = equation.avals_out, equation.params
    return params["feature_group_count"] == params["batch_group_count"] == 1 and (
        result.dtype != np.bool_
    )


# ---- exchanged operands ----------------------------------------------------------------------


def is_of_dilated_input(equation: Candidate) -> bool:
    """Return whether an input with zeros in it meets a window of more positions than the result."""
    (lhs, rhs), (result,), params = equation.avals_in, equation.avals_out, equation.params
    numbers: ConvDimensionNumbers = params["dimension_numbers"]
    lhs_spec, rhs_spec, out_spec = numbers
    if not (_is_of_one_group(equation) and _has_dilated_input_alone(equation)):
        return False
    window, positions = (
        math.prod(aval.shape[axis] for axis in spec[2:])
        for aval, spec in ((rhs, rhs_spec), (result, out_spec))
    )
    # One input feature would be one output feature, whose products have one row.
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
    """Return a convolution with the input for the kernel, and in the other direction."""
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


# ---- products of matrices --------------------------------------------------------------------


def has_one_position(equation: Candidate) -> bool:
    """Return whether the window has one position in the input, and covers no padding."""
    (result,), params = equation.avals_out, equation.params
    numbers: ConvDimensionNumbers = params["dimension_numbers"]
    positions = math.prod(result.shape[axis] for axis in numbers.out_spec[2:])
    return (
        _is_of_one_group(equation)
        and positions == 1
        and not _has(equation, "lhs_dilation")
        and all(low <= 0 and high <= 0 for low, high in params["padding"])
        and _products(equation) >= MIN_SIZES["conv_general_dilated"]["whole windows"]
    )


def as_product(
    lhs: Array,
    rhs: Array,
    *,
    result: ShapedArray,
    padding: Pads,
    rhs_dilation: Sequence[int],
    dimension_numbers: ConvDimensionNumbers,
    precision: Any,
    preferred_element_type: NumPyDType | None,
    **_: object,
) -> Array:
    """Return a convolution whose window has one position as a product of matrices."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    starts = [-low for low, _ in padding]
    window = [rhs.shape[axis] for axis in rhs_spec[2:]]
    x = slice_along(lhs, lhs_spec[2:], starts, window, rhs_dilation)
    summed = sorted(zip(lhs_spec[1:], rhs_spec[1:], strict=True))
    axes = tuple(axis for axis, _ in summed), tuple(axis for _, axis in summed)
    product = dot_general(x, rhs, (axes, ((), ())), precision, preferred_element_type)
    if out_spec[0] > out_spec[1]:
        product = transpose(product, (1, 0))
    return reshape(product, result.shape)
