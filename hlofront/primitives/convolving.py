"""Convolutions: conv_general_dilated."""

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import bit_width, issubdtype
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.dimensions import integers
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer
from hlofront.core.trace import process
from hlofront.primitives.contracting import canonical_element_type, canonical_precision
from hlofront.primitives.families import check_same_dtypes
from hlofront.primitives.shaping import refuse_sharding
from hlofront.primitives.windowed import dilated, padtype_to_pads


class ConvDimensionNumbers(NamedTuple):
    """Which axes of a convolution's arrays mean what.

    Args:
      lhs_spec: of the input: its batch axis, its feature axis, its spatial axes.
      rhs_spec: of the kernel: its output features, its input features, its spatial axes.
      out_spec: of the output, as for the input.
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


ConvGeneralDilatedDimensionNumbers = None | ConvDimensionNumbers | tuple[str, str, str]

conv_general_dilated_p = Primitive("conv_general_dilated")


# ---- dimension numbers ---------------------------------------------------------------------------


@boundary
def conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers):
    """Which axes mean what, from three strings such as ("NHWC", "HWIO", "NHWC").

    Args:
      lhs_shape: of the input.
      rhs_shape: of the kernel.
      dimension_numbers: None for batch and features first, ("NCHW", "OIHW", "NCHW") for two spatial
        axes; a ConvDimensionNumbers; or a letter per axis of input, kernel and output: N batch, C
        features, O output features, I input features, any others for the spatial axes.

    Returns:
      A ConvDimensionNumbers.

    Raises:
      TypeError: if ranks differ, or letters are missing, doubled or not the same.
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        numbers = ConvDimensionNumbers(
            *(integers(spec, "dimension_numbers") for spec in dimension_numbers)
        )
        ranks = (len(lhs_shape), len(rhs_shape), len(lhs_shape))
        for spec, rank in zip(numbers, ranks, strict=True):
            if sorted(spec) != list(range(rank)):
                raise TypeError(
                    f"convolution dimension_numbers must name each of the axes 0 to {rank - 1} "
                    f"once, got {numbers}."
                )
        return numbers
    rank = len(lhs_shape)
    if rank != len(rhs_shape):
        raise TypeError(
            "convolution requires lhs and rhs ndim to be equal, got "
            f"{len(lhs_shape)} and {len(rhs_shape)}."
        )
    if dimension_numbers is None:
        axes = tuple(range(rank))
        return ConvDimensionNumbers(axes, axes, axes)
    if not isinstance(dimension_numbers, tuple | list):
        raise TypeError(
            "convolution dimension_numbers must be tuple/list or None, got "
            f"{type(dimension_numbers)}."
        )
    if len(dimension_numbers) != 3:
        raise TypeError(
            "convolution dimension_numbers list/tuple must be length 3, got "
            f"{len(dimension_numbers)}."
        )
    if not all(isinstance(spec, str) for spec in dimension_numbers):
        raise TypeError(
            "convolution dimension_numbers elements must be strings, got "
            f"{tuple(map(type, dimension_numbers))}."
        )
    for i, spec in enumerate(dimension_numbers):
        if len(spec) != rank:
            raise TypeError(
                f"convolution dimension_numbers[{i}] must have len equal to the ndim of lhs and "
                f"rhs, got {len(spec)} for lhs and rhs shapes {tuple(lhs_shape)} and "
                f"{tuple(rhs_shape)}."
            )
    return ConvDimensionNumbers(*conv_general_permutations(dimension_numbers))


@boundary
def conv_general_permutations(dimension_numbers):
    """The axes of input, kernel and output that strings such as ("NHWC", "HWIO", "NHWC") name.

    Raises TypeError if letters are missing, doubled or not the same.
    """
    lhs, rhs, out = dimension_numbers
    for i, (spec, (first, second)) in enumerate(
        zip((lhs, rhs, out), ("NC", "OI", "NC"), strict=True)
    ):
        if spec.count(first) != 1 or spec.count(second) != 1:
            raise TypeError(
                f"convolution dimension_numbers[{i}] must contain the characters '{first}' and "
                f"'{second}' exactly once, got {spec}."
            )
        if len(set(spec)) != len(spec):
            raise TypeError(
                f"convolution dimension_numbers[{i}] cannot have duplicate characters, got {spec}."
            )
    spatial = [letter for letter in rhs if letter not in "OI"]
    if not set(lhs) - set("NC") == set(spatial) == set(out) - set("NC"):
        raise TypeError(
            "convolution dimension_numbers elements must each have the same set of spatial "
            f"characters, got {(lhs, rhs, out)}."
        )
    # The kernel's order of the spatial axes is that of strides and padding.
    return tuple(
        tuple(spec.index(letter) for letter in (*kinds, *spatial))
        for spec, kinds in ((lhs, "NC"), (rhs, "OI"), (out, "NC"))
    )


# ---- the convolution -----------------------------------------------------------------------------


@boundary
def conv_general_dilated(
    lhs,
    rhs,
    window_strides,
    padding,
    lhs_dilation=None,
    rhs_dilation=None,
    dimension_numbers=None,
    feature_group_count=1,
    batch_group_count=1,
    precision=None,
    preferred_element_type=None,
    out_sharding=None,
):
    """A convolution of any rank, in the sense of neural networks: the kernel is not reversed.

    Args:
      lhs: the input, of batch, features and spatial axes.
      rhs: the kernel, of output features, input features and as many spatial axes.
      window_strides: steps of the kernel along each spatial axis.
      padding: pairs of how much to pad before and after, one per spatial axis; or "SAME",
        "SAME_LOWER", "VALID".
      lhs_dilation: distances at which elements of the input are put; above 1 for a transposed
        convolution.
      rhs_dilation: distances at which elements of the kernel are put.
      dimension_numbers: which axes mean what; see `conv_dimension_numbers`.
      feature_group_count: into how many groups the features fall, each with kernels of its own.
      batch_group_count: into how many groups the batch falls, each with kernels of its own.
      precision: see `dot_general`.
      preferred_element_type: the dtype of the sums and of the result.
      out_sharding: None.

    Raises:
      TypeError: if dtypes differ, or ranks and dimension numbers do not fit.
      ValueError: if sizes do not fit, or `padding` is no padding.
      RuntimeError: if `padding` is no known name.
    """
    if out_sharding is not None:
        raise refuse_sharding("conv_general_dilated", "out_sharding", out_sharding)
    lhs_shape, rhs_shape = typeof(lhs).shape, typeof(rhs).shape
    numbers = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    strides = integers(window_strides, "window_strides")
    ones = (1,) * (len(lhs_shape) - 2)
    base = ones if lhs_dilation is None else integers(lhs_dilation, "lhs_dilation")
    holes = ones if rhs_dilation is None else integers(rhs_dilation, "rhs_dilation")
    if isinstance(padding, str):
        if any(dilation != 1 for dilation in base):
            raise ValueError(
                "String padding is not implemented for transposed convolution using this op. "
                "Please either exactly specify the required padding or use conv_transpose."
            )
        window = [rhs_shape[axis] for axis in numbers.rhs_spec[2:]]
        _check_ranks(window, strides, base, holes)
        pads = padtype_to_pads(
            [lhs_shape[axis] for axis in numbers.lhs_spec[2:]],
            list(map(dilated, window, holes)),
            strides,
            padding,
        )
    else:
        try:
            pads = [(operator.index(low), operator.index(high)) for low, high in padding]
        except (TypeError, ValueError):
            raise ValueError(
                "padding argument to conv_general_dilated should be a string or a sequence of "
                f"(low, high) pairs, got {padding}"
            ) from None
    return process(
        conv_general_dilated_p,
        (lhs, rhs),
        {
            "window_strides": strides,
            "padding": tuple(pads),
            "lhs_dilation": base,
            "rhs_dilation": holes,
            "dimension_numbers": numbers,
            "feature_group_count": operator.index(feature_group_count),
            "batch_group_count": operator.index(batch_group_count),
            "precision": canonical_precision(precision),
            "preferred_element_type": canonical_element_type(
                preferred_element_type, "conv_general_dilated"
            ),
            "out_sharding": None,
        },
    )


def _check_ranks(window: Any, strides: Any, lhs_dilation: Any, rhs_dilation: Any) -> None:
    for name, values in (
        ("window_strides", strides),
        ("lhs_dilation", lhs_dilation),
        ("rhs_dilation", rhs_dilation),
    ):
        if len(values) != len(window):
            raise ValueError(
                f"conv_general_dilated window and {name} must have the same number of dimensions, "
                f"but got {len(window)} and {len(values)}"
            )


@infer(conv_general_dilated_p)
def _(
    lhs,
    rhs,
    *,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    dimension_numbers,
    feature_group_count,
    batch_group_count,
    precision,
    preferred_element_type,
    out_sharding,
):
    if lhs.ndim < 2:
        raise TypeError(
            "convolution wants a batch axis and a feature axis, so at least 2 axes; got lhs of "
            f"shape {lhs.shape}."
        )
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    window = [rhs.shape[axis] for axis in rhs_spec[2:]]
    _check_ranks(window, window_strides, lhs_dilation, rhs_dilation)
    if any(stride < 1 for stride in window_strides) or any(size < 1 for size in window):
        raise ValueError(
            "conv_general_dilated wants positive window_strides, and a kernel of positive spatial "
            f"sizes; got window_strides {window_strides} and a kernel of {tuple(window)}."
        )
    for dilations in (lhs_dilation, rhs_dilation):
        if any(dilation < 1 for dilation in dilations):
            raise TypeError(f"All dilations must be positive, got {dilations}.")
    _check_groups(lhs, rhs, lhs_spec, rhs_spec, feature_group_count, batch_group_count)
    sizes = [
        dilated(lhs.shape[axis], dilation)
        for axis, dilation in zip(lhs_spec[2:], lhs_dilation, strict=True)
    ]
    spatial = output_sizes(sizes, map(dilated, window, rhs_dilation), window_strides, padding)
    shape = [0] * lhs.ndim
    batch = lhs.shape[lhs_spec[0]] // batch_group_count
    for axis, size in zip(out_spec, (batch, rhs.shape[rhs_spec[0]], *spatial), strict=True):
        shape[axis] = size
    check_same_dtypes("conv_general_dilated", (lhs, rhs))
    dtype = _element_type(lhs.dtype, preferred_element_type)
    return ShapedArray(tuple(shape), dtype, lhs.weak_type and rhs.weak_type)


def _check_groups(lhs, rhs, lhs_spec, rhs_spec, feature_groups, batch_groups) -> None:
    name = "conv_general_dilated"
    for what, groups in (
        ("feature_group_count", feature_groups),
        ("batch_group_count", batch_groups),
    ):
        if groups <= 0:
            raise ValueError(f"{name} {what} must be a positive integer, got {groups}.")
    if feature_groups > 1 and batch_groups > 1:
        raise ValueError(
            "At most one of batch_group_count and feature_group_count may be > 1, got "
            f"batch_group_count={batch_groups} and feature_group_count={feature_groups}"
        )
    features, batch = lhs.shape[lhs_spec[1]], lhs.shape[lhs_spec[0]]
    if features % feature_groups:
        raise ValueError(
            f"{name} feature_group_count must divide lhs feature dimension size, but "
            f"{feature_groups} does not divide {features}."
        )
    if features // feature_groups != rhs.shape[rhs_spec[1]]:
        raise ValueError(
            f"{name} lhs feature dimension size divided by feature_group_count must equal the rhs "
            f"input feature dimension size, but {features} // {feature_groups} != "
            f"{rhs.shape[rhs_spec[1]]}."
        )
    if batch % batch_groups:
        raise ValueError(
            f"{name} batch_group_count must divide lhs batch dimension size, but {batch_groups} "
            f"does not divide {batch}."
        )
    for what, groups in (
        ("feature_group_count", feature_groups),
        ("batch_group_count", batch_groups),
    ):
        if rhs.shape[rhs_spec[0]] % groups:
            raise ValueError(
                f"{name} rhs output feature dimension size must be a multiple of {what}, but "
                f"{rhs.shape[rhs_spec[0]]} is not a multiple of {groups}."
            )


def output_sizes(sizes: Any, window: Any, strides: Any, padding: Any) -> tuple[int, ...]:
    """Sizes of the output's spatial axes, from sizes with dilation."""
    if len(padding) != len(sizes):
        raise TypeError(
            f"Wrong number of explicit pads for convolution: expected {len(sizes)}, got "
            f"{len(padding)}."
        )
    return tuple(
        max((max(0, size + low + high) - extent) // stride + 1, 0)
        for size, extent, stride, (low, high) in zip(sizes, window, strides, padding, strict=True)
    )


def _element_type(dtype: Any, preferred: Any) -> Any:
    if preferred is None:
        return dtype
    kind, wanted = _kind(dtype), _kind(preferred)
    if (kind, wanted) not in _KINDS_FIT:
        raise TypeError(
            "Input type is incompatible with `preferred_element_type`. The compatible combinations "
            "of (input_type, preferred_element_type) are (integral, integral), (integral, "
            f"floating), (floating, floating), (complex, complex); got {dtype} and {preferred}."
        )
    if dtype != np.bool_ and bit_width(preferred) < bit_width(dtype):
        raise TypeError(
            "`preferred_element_type` must not be narrower than the original type, got "
            f"{preferred} for {dtype}."
        )
    return preferred


def _kind(dtype: Any) -> str:
    if dtype == np.bool_ or issubdtype(dtype, np.integer):
        return "integral"
    return "complex" if issubdtype(dtype, np.complexfloating) else "floating"


_KINDS_FIT = (
    ("integral", "integral"),
    ("integral", "floating"),
    ("floating", "floating"),
    ("complex", "complex"),
)


# ---- shorter spellings ---------------------------------------------------------------------------


@boundary
def conv(lhs, rhs, window_strides, padding, precision=None, preferred_element_type=None):
    """A convolution of an input NC.. with a kernel OI... See `conv_general_dilated`."""
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


@boundary
def conv_with_general_padding(
    lhs,
    rhs,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    precision=None,
    preferred_element_type=None,
):
    """As `conv`, with dilations. See `conv_general_dilated`."""
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


# ---- shapes --------------------------------------------------------------------------------------


@boundary
def conv_shape_tuple(lhs_shape, rhs_shape, strides, pads, batch_group_count=1):
    """The shape of a convolution of NC.. with OI.., from their shapes with dilation.

    Args:
      lhs_shape: of the input.
      rhs_shape: of the kernel.
      strides: steps of the kernel.
      pads: pairs, or "SAME", "SAME_LOWER", "VALID".
      batch_group_count: see `conv_general_dilated`.

    Raises TypeError if numbers of axes differ.
    """
    if isinstance(pads, str):
        pads = padtype_to_pads(lhs_shape[2:], rhs_shape[2:], strides, pads)
    if len(pads) != len(lhs_shape) - 2:
        raise TypeError(
            f"Wrong number of explicit pads for convolution: expected {len(lhs_shape) - 2}, got "
            f"{len(pads)}."
        )
    spatial = output_sizes(lhs_shape[2:], rhs_shape[2:], strides, pads)
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *spatial)


@boundary
def conv_general_shape_tuple(lhs_shape, rhs_shape, window_strides, padding, dimension_numbers):
    """The shape of a convolution with axes as three strings say. See `conv_shape_tuple`."""
    lhs_spec, rhs_spec, out_spec = conv_general_permutations(dimension_numbers)
    shape = conv_shape_tuple(
        tuple(lhs_shape[axis] for axis in lhs_spec),
        tuple(rhs_shape[axis] for axis in rhs_spec),
        window_strides,
        padding,
    )
    return tuple(shape[out_spec.index(axis)] for axis in range(len(out_spec)))
