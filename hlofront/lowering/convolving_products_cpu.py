"""Convolutions that are other operations on CPUs: products, and convolutions with fewer zeros.

XLA's CPU code multiplies the zeros of a dilated input, and if the kernel is large, as in the
derivative of a transposed convolution by its kernel, computes each element by a loop. Exchanged
operands have the dilation in the kernel, which costs nothing. A kernel that is at most as large as
the dilation meets one element of the input at each position: a product of matrices makes all of
them. So does one for a window of the whole input, as in the derivative of a kernel of 1 x 1.

The time in milliseconds, float32, as XLA's operation and so, on a loaded Intel Xeon of 2 cores by
AVX-512: the derivative by a kernel of 4 x 4 of a convolution that is transposed from 2 x 14 x 14 x
32 by strides of 2 8.7 and 0.28, of 2 x 2 2.3 and 0.25; by a kernel of 1 x 1 of 8 x 56 x 56 x 64 44
and 9; 64 x 7 x 7 x 256 and a window of all 8.9 and 1.1; transposed 2 x 2, 8 x 28 x 28 x 64, by
2, 2.6 and 1.6, 16 x 16 to 4 x 128 x 128 x 3, 4.3 and 0.4; 4 x 14 x 14 x 64 and 3 x 3 of int8 3.2
and 0.06. To compile it takes 35 to 100 for 85 to 150, of transposed ones 60 to 90 for 12 to 115.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.typing import Array
from hlofront.core.aval import ShapedArray
from hlofront.lowering.cpu_formulas import Candidate
from hlofront.lowering.types import NumPyDType
from hlofront.primitives.contracting import dot_general
from hlofront.primitives.converting import convert
from hlofront.primitives.convolution_numbers import ConvDimensionNumbers
from hlofront.primitives.convolving import conv_general_dilated
from hlofront.primitives.shaping import reshape, rev, transpose
from hlofront.primitives.slicing import pad, slice_along
from hlofront.primitives.windowed import Pads

_int8, _int32 = np.dtype(np.int8), np.dtype(np.int32)

# Fewer products of numbers are XLA's operation, as others take longer to compile.
_FEWEST = 1 << 18
_FEWEST_OF_BYTES = 1 << 22
_FEWEST_OF_PARTS = 1 << 27


def _products(equation: Candidate) -> int:
    """Return the number of products that are summed, those with zeros of dilations too."""
    (_, rhs), (result,), params = equation
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
    (lhs, rhs), (result,), params = equation
    numbers: ConvDimensionNumbers = params["dimension_numbers"]
    lhs_spec, rhs_spec, out_spec = numbers
    if not (_is_of_one_group(equation) and _has_dilated_input_alone(equation)):
        return False
    window, positions = (
        math.prod(aval.shape[axis] for axis in spec[2:])
        for aval, spec in ((rhs, rhs_spec), (result, out_spec))
    )
    # One input feature would be one output feature, whose products have one row.
    return window > positions and lhs.shape[lhs_spec[0]] > 1 and _products(equation) >= _FEWEST


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
        and _products(equation) >= _FEWEST
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


def has_kernel_in_dilation(equation: Candidate) -> bool:
    """Return whether one element of the input at most meets the kernel at each position."""
    (_, rhs), _, params = equation
    numbers: ConvDimensionNumbers = params["dimension_numbers"]
    steps: Sequence[int] = params["lhs_dilation"]
    window = [rhs.shape[axis] for axis in numbers.rhs_spec[2:]]
    return (
        _is_of_one_group(equation)
        and _has_dilated_input_alone(equation)
        and all(size <= step for size, step in zip(window, steps, strict=True))
        and _products(equation) >= _FEWEST_OF_PARTS
    )


def kernel_by_element(
    lhs: Array,
    rhs: Array,
    *,
    result: ShapedArray,
    padding: Pads,
    lhs_dilation: Sequence[int],
    dimension_numbers: ConvDimensionNumbers,
    precision: Any,
    preferred_element_type: NumPyDType | None,
    **_: object,
) -> Array:
    """Return a convolution in which each element of the input has its part of the result."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    kernel = rev(rhs, rhs_spec[2:])
    numbers = ((lhs_spec[1],), (rhs_spec[1],)), ((), ())
    parts = dot_general(lhs, kernel, numbers, precision, preferred_element_type)
    # The axes of the parts are those of the operands, without the summed ones.
    of_lhs = {axis: axis - (axis > lhs_spec[1]) for axis in lhs_spec}
    of_rhs = {axis: lhs.ndim - 1 + axis - (axis > rhs_spec[1]) for axis in rhs_spec}
    zero = np.zeros((), parts.dtype)
    config = [(0, 0, 0)] * parts.ndim
    edges = [(0, 0, 0)] * lhs.ndim
    order: dict[int, tuple[int, ...]] = {
        out_spec[0]: (of_lhs[lhs_spec[0]],),
        out_spec[1]: (of_rhs[rhs_spec[0]],),
    }
    rows = zip(lhs_spec[2:], rhs_spec[2:], out_spec[2:], padding, lhs_dilation, strict=True)
    for x_axis, kernel_axis, axis, (low, high), step in rows:
        config[of_rhs[kernel_axis]] = (step - rhs.shape[kernel_axis], 0, 0)
        edges[axis] = (low + 1 - step, high + 1 - rhs.shape[kernel_axis], 0)
        order[axis] = of_lhs[x_axis], of_rhs[kernel_axis]
    parts = pad(parts, zero, config)
    parts = transpose(parts, [axis for _, axes in sorted(order.items()) for axis in axes])
    sizes = [size - low - high for size, (low, high, _) in zip(result.shape, edges, strict=True)]
    return pad(reshape(parts, sizes), zero, edges)


# ---- bytes -----------------------------------------------------------------------------------


def is_of_bytes(equation: Candidate) -> bool:
    """Return whether a convolution of integers is large, and its result has one byte for each."""
    dtypes = [aval.dtype for aval in (*equation.avals_in, *equation.avals_out)]
    return (
        _is_of_one_group(equation)
        and all(issubdtype(dtype, np.integer) for dtype in dtypes)
        and dtypes[-1] in (_int8, np.dtype(np.uint8))
        and not _has(equation, "lhs_dilation")
        and _products(equation) >= _FEWEST_OF_BYTES
    )


def of_bytes(lhs: Array, rhs: Array, *, result: ShapedArray, **params: Any) -> Array:
    """Return a convolution of integers with the sums in int32: their last byte is the result."""
    params["preferred_element_type"] = _int32
    lhs, rhs = (convert(x, _int8, False) for x in (lhs, rhs))
    return convert(conv_general_dilated(lhs, rhs, **params), result.dtype, False)
