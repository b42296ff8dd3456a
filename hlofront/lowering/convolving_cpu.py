"""The lowering rule of convolutions without sums over features for CPUs: shifted products.

XLA's CPU code for a convolution multiplies matrices. If each output feature has one input feature,
as in depthwise convolutions and in those of one signal, image or volume, these have one row. A sum
of products of shifted slices of the input and single elements of the kernel is one loop of vector
instructions.

The processor time of float32 in milliseconds, as XLA's operation and so, on an AMD EPYC of 2 cores
by AVX-512: 10^6 numbers and 33 18 and 1.5, an image of 1,000 x 1,000 and 5 x 5 38 and 1.1, a volume
of 64 x 64 x 64 and 3 x 3 x 3 97 and 0.4; depthwise, 8 x 56 x 56 x 64 and 3 x 3 31 and 0.7, with
strides of 2 8.8 and 0.8 and its derivative by the input 105 and 1.6, 4 x 28 x 28 x 256 and 7 x 7 47
and 2.6, 4 x 512 x 256 and 4 20 and 0.3. To compile it takes 45 to 170 ms for 7 to 30. Derivatives
by the kernel are other convolutions, in convolving_groups_cpu.py.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.typing import Array, Shape
from hlofront.bridge.mlir import Value
from hlofront.lowering.builder import Builder
from hlofront.lowering.convolving_groups_cpu import (
    feature_by_feature,
    has_few_groups,
    has_small_features,
    has_small_groups,
    of_each_group,
    padded,
    position_by_position,
)
from hlofront.lowering.convolving_products_cpu import (
    as_product,
    exchanged,
    has_kernel_in_dilation,
    has_one_position,
    is_of_bytes,
    is_of_dilated_input,
    kernel_by_element,
    of_bytes,
)
from hlofront.lowering.cpu_formulas import Candidate, candidate, formula_on_cpu
from hlofront.primitives import convolving as c
from hlofront.primitives.converting import convert
from hlofront.primitives.convolution_numbers import ConvDimensionNumbers
from hlofront.primitives.elementwise import add, mul
from hlofront.primitives.shaping import broadcast_in_dim, reshape, transpose
from hlofront.primitives.slicing import index_in_dim, slice_along
from hlofront.primitives.windowed import Pads

# Kernels with more positions keep one operation: each takes about 2 ms to compile.
_MOST_POSITIONS = 64
# So do convolutions with fewer products of numbers,
_FEWEST_PRODUCTS = 32_768
# and those of one input feature and more output features, which XLA's code multiplies fast.
_MOST_FEATURES = 8


def _pays(equation: Candidate) -> bool:
    """Return whether each output feature has one input feature, and sizes are those that pay."""
    (lhs, rhs), (result,), params = equation
    numbers: ConvDimensionNumbers = params["dimension_numbers"]
    lhs_spec, rhs_spec, out_spec = numbers
    if params["batch_group_count"] > 1 or rhs.shape[rhs_spec[1]] != 1:
        return False
    if result.dtype == np.bool_:
        return False
    if lhs.shape[lhs_spec[1]] == 1 and result.shape[out_spec[1]] > _MOST_FEATURES:
        return False
    positions = math.prod(rhs.shape[axis] for axis in rhs_spec[2:])
    return positions <= _MOST_POSITIONS and positions * result.size >= _FEWEST_PRODUCTS


# The conditions of other operations in place of a convolution, and what returns their result.
_OPERATIONS = (
    (has_few_groups, of_each_group),
    (is_of_dilated_input, exchanged),
    (has_one_position, as_product),
    (has_kernel_in_dilation, kernel_by_element),
    (is_of_bytes, of_bytes),
)


def _is_formula(equation: Candidate) -> bool:
    """Return whether a convolution is not one operation."""
    if _pays(equation) or has_small_groups(equation) or has_small_features(equation):
        return True
    return any(holds(equation) for holds, _ in _OPERATIONS)


@formula_on_cpu(c.conv_general_dilated_p, when=_is_formula, stored=True)
def _(
    build: Builder,
    *operands: Value,
    out_sharding: object,
    **params: Any,
) -> Value:
    (result,) = build.avals_out
    equation = candidate(build)
    if _pays(equation):
        form = _sum_of_products
    elif has_small_groups(equation):
        form = position_by_position
    elif has_small_features(equation):
        form = feature_by_feature
    else:
        form = next(form for holds, form in _OPERATIONS if holds(equation))
        return build.by_tracing(form, operands, result=result, **params)[0]
    del params["precision"], params["preferred_element_type"]
    is_narrow = issubdtype(result.dtype, np.floating) and result.dtype.itemsize < 4
    dtype = np.dtype(np.float32) if is_narrow else result.dtype

    def of_arrays(*arrays: Array) -> Array:
        lhs, rhs = (convert(x, dtype, False) for x in arrays)
        return convert(form(lhs, rhs, shape=result.shape, **params), result.dtype, False)

    # XLA stores convolutions, and would compute sums again for each of their users.
    return build.barrier(build.by_tracing(of_arrays, operands), (result,))[0]


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
    """Return a convolution of this shape as a sum with one term for each position in the kernel."""
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
    """Return x times each of the factors of a feature, which are along a new axis after `axis`.

    Args:
      x: an array with the features along `axis`.
      factors: an array of shape (features, factors for each of them).
    """
    shape = (*x.shape[: axis + 1], factors.shape[1], *x.shape[axis + 1 :])
    others = [i for i in range(len(shape)) if i != axis + 1]
    wide = broadcast_in_dim(x, shape, others)
    return mul(wide, broadcast_in_dim(factors, shape, (axis, axis + 1)))
