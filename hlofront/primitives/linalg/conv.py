"""The convolution primitive conv_general_dilated, and its rules."""

import math
import operator
from collections.abc import Iterable, Sequence, Sized
from typing import TypedDict, Unpack

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import bit_width, issubdtype
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, DType, DTypeLike, Params
from hlofront.bridge.jaxlib_types import NamedSharding
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer
from hlofront.core.sharding.requested_shardings import (
    cotangent_sharding,
    permuted,
    requested,
    with_batch_axis_of,
)
from hlofront.core.sizes.dimensions import as_size, integers
from hlofront.core.symbolic_zeros import BatchAxes, Batched, Cotangent, Cotangents, Operand, Zero
from hlofront.core.trace import process
from hlofront.primitives.arrays.reducing import without_axes
from hlofront.primitives.arrays.shaping import reshape, rev
from hlofront.primitives.arrays.windowed import Pads, dilated, padtype_to_pads
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.families import check_same_dtypes
from hlofront.primitives.linalg.conv_numbers import ConvDimensionNumbers, conv_dimension_numbers
from hlofront.primitives.linalg.dot_general import (
    PrecisionLike,
    as_cotangent,
    bilinear,
    canonical_element_type,
    canonical_precision,
)
from hlofront.primitives.rules.batching import batch_size
from hlofront.primitives.rules.derivatives import is_linear, zeros_of
from hlofront.primitives.sharding.resharding import split_as

conv_general_dilated_p = Primitive("conv_general_dilated")


# ---- the convolution -----------------------------------------------------------------------------


@boundary
def conv_general_dilated(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: object = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: object = None,
) -> Array:
    """Compute a convolution of any rank, as in neural networks: the kernel is not reversed.

    Args:
      lhs: the input, with batch, feature and spatial axes.
      rhs: the kernel, with output feature, input feature and as many spatial axes.
      window_strides: steps of the kernel along each spatial axis.
      padding: a pair (before, after) per spatial axis; or "SAME", "SAME_LOWER", "VALID".
      lhs_dilation: the distances between elements of the input, as in transposed convolutions.
      rhs_dilation: the distances between elements of the kernel.
      dimension_numbers: the roles of the axes; see `conv_dimension_numbers`.
      feature_group_count: the number of groups of features, each with its own kernels.
      batch_group_count: the number of groups of examples, each with its own kernels.
      precision: see `dot_general`.
      preferred_element_type: the dtype of the sums and of the result.
      out_sharding: the sharding of the result over axes of type Explicit.

    Raises:
      TypeError: if dtypes differ, or ranks and dimension numbers do not fit.
      ValueError: if sizes do not fit, or `padding` is invalid.
      RuntimeError: if `padding` is an unknown name.

    Example:
      >>> lax.conv_general_dilated(jnp.ones((1, 1, 4)), jnp.ones((1, 1, 2)), (1,), [(1, 1)])
      Array([[[1., 2., 2., 2., 1.]]], dtype=float32)
    """
    if out_sharding is not None:
        out_sharding = requested("conv_general_dilated", out_sharding)
    lhs_shape, rhs_shape = typeof(lhs).shape, typeof(rhs).shape
    numbers = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    _check_rank(max(len(lhs_shape) - 2, 0), "window_strides", window_strides)
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
            pads = [(as_size(low), as_size(high)) for low, high in padding]
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
            "out_sharding": out_sharding,
        },
    )


def _check_ranks(
    window: Sequence[int],
    strides: tuple[int, ...],
    lhs_dilation: tuple[int, ...],
    rhs_dilation: tuple[int, ...],
) -> None:
    for name, values in (
        ("window_strides", strides),
        ("lhs_dilation", lhs_dilation),
        ("rhs_dilation", rhs_dilation),
    ):
        _check_rank(len(window), name, values)


def _check_rank(rank: int, name: str, values: object) -> None:
    """Raise ValueError if `values` has a length other than the number of spatial axes."""
    if isinstance(values, Sized) and len(values) != rank:
        raise ValueError(
            f"conv_general_dilated window and {name} must have the same number of dimensions, "
            f"but got {rank} and {len(values)}"
        )


def _infer(
    lhs: ShapedArray,
    rhs: ShapedArray,
    *,
    window_strides: tuple[int, ...],
    padding: Pads,
    lhs_dilation: tuple[int, ...],
    rhs_dilation: tuple[int, ...],
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    precision: object,
    preferred_element_type: DType | None,
    out_sharding: NamedSharding | None,
) -> ShapedArray:
    if lhs.ndim < 2:
        raise TypeError(
            "convolution requires a batch axis and a feature axis, so at least 2 axes; got lhs of "
            f"shape {lhs.shape}."
        )
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    window = [rhs.shape[axis] for axis in rhs_spec[2:]]
    _check_ranks(window, window_strides, lhs_dilation, rhs_dilation)
    if any(stride < 1 for stride in window_strides) or any(size < 1 for size in window):
        raise ValueError(
            "conv_general_dilated requires positive window_strides, and a kernel of positive "
            f"spatial sizes; got window_strides {window_strides} and a kernel of {tuple(window)}."
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


infer(conv_general_dilated_p)(_infer)


def _check_groups(
    lhs: ShapedArray,
    rhs: ShapedArray,
    lhs_spec: Sequence[int],
    rhs_spec: Sequence[int],
    feature_groups: int,
    batch_groups: int,
) -> None:
    name = "conv_general_dilated"
    for what, groups in (
        ("feature_group_count", feature_groups),
        ("batch_group_count", batch_groups),
    ):
        if groups <= 0:
            raise ValueError(f"{name} {what} must be a positive integer, got {groups}.")
    if feature_groups != 1 and batch_groups != 1:
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


def output_sizes(
    sizes: Sequence[int],
    window: Iterable[int],
    strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
) -> tuple[int, ...]:
    """Return the sizes of the output's spatial axes, from dilated sizes of input and kernel.

    Raises:
      TypeError: if `padding` does not have one pair per spatial axis.
    """
    if len(padding) != len(sizes):
        raise TypeError(
            f"Wrong number of explicit pads for convolution: expected {len(sizes)}, got "
            f"{len(padding)}."
        )
    return tuple(
        max((max(0, size + low + high) - extent) // stride + 1, 0)
        for size, extent, stride, (low, high) in zip(sizes, window, strides, padding, strict=True)
    )


def _element_type(dtype: DType, preferred: DType | None) -> DType:
    if preferred is None:
        return dtype
    if dtype == np.bool_:
        return preferred
    kind, expected = _kind(dtype), _kind(preferred)
    if (kind, expected) not in _KINDS_FIT or preferred == np.bool_:
        raise TypeError(
            "Input type is incompatible with `preferred_element_type`. The compatible combinations "
            "of (input_type, preferred_element_type) are (integral, integral), (integral, "
            f"floating), (floating, floating), (complex, complex); got {dtype} and {preferred}."
        )
    if issubdtype(dtype, np.signedinteger) and issubdtype(preferred, np.unsignedinteger):
        raise TypeError(
            "`preferred_element_type` must have the same signedness as the original type, got "
            f"{preferred} for {dtype}."
        )
    if bit_width(preferred) < bit_width(dtype):
        raise TypeError(
            "`preferred_element_type` must not be narrower than the original type, got "
            f"{preferred} for {dtype}."
        )
    return preferred


def _kind(dtype: DType) -> str:
    if dtype == np.bool_ or issubdtype(dtype, np.integer):
        return "integral"
    return "complex" if issubdtype(dtype, np.complexfloating) else "floating"


_KINDS_FIT = (
    ("integral", "integral"),
    ("integral", "floating"),
    ("floating", "floating"),
    ("complex", "complex"),
)


# ---- derivatives ---------------------------------------------------------------------------------

bilinear(conv_general_dilated_p)


class _ConvParams(TypedDict):
    """The parameters of conv_general_dilated's equations."""

    window_strides: tuple[int, ...]
    padding: Pads
    lhs_dilation: tuple[int, ...]
    rhs_dilation: tuple[int, ...]
    dimension_numbers: ConvDimensionNumbers
    feature_group_count: int
    batch_group_count: int
    precision: object
    preferred_element_type: DType | None
    out_sharding: NamedSharding | None


@rules.transpose(conv_general_dilated_p)
def _(
    cotangent: ArrayLike, lhs: Operand, rhs: Operand, **params: Unpack[_ConvParams]
) -> Cotangents:
    if is_linear(rhs):
        assert not is_linear(lhs)  # The jvp rule of `bilinear` leads to one linear operand.
        return None, _cotangent_of_kernel(cotangent, lhs, rhs.aval, params)
    assert is_linear(lhs)
    return _cotangent_of_input(cotangent, lhs.aval, rhs, params), None


def _padding_of_cotangent(
    cotangent: ShapedArray, lhs: ShapedArray, rhs: ShapedArray, params: _ConvParams, of_input: bool
) -> Pads:
    """Return the padding of the convolution that makes the input's or the kernel's cotangent."""
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    pads: list[tuple[int, int]] = []
    for arrived, size, window, stride, (low, _), base, holes in zip(
        _sizes(cotangent, out_spec),
        _sizes(lhs, lhs_spec),
        _sizes(rhs, rhs_spec),
        params["window_strides"],
        params["padding"],
        params["lhs_dilation"],
        params["rhs_dilation"],
        strict=True,
    ):
        reach = dilated(window, holes) - 1
        spare = dilated(size, base) - dilated(arrived, stride)
        before, total = (reach - low, reach + spare) if of_input else (low, reach - spare)
        pads.append((before, total - before))
    return tuple(pads)


def _cotangent_of_input(
    cotangent: ArrayLike, aval: ShapedArray, rhs: ArrayLike, params: _ConvParams
) -> ArrayLike:
    """Return the input's cotangent: the result's cotangent, dilated, convolved with the kernel.

    The kernel is reversed, and the result's cotangent is dilated by the stride.
    """
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    batch_group_count = params["batch_group_count"]
    groups = max(params["feature_group_count"], batch_group_count)
    if groups > 1:
        # Output features of a group are now its input features: the groups move to the other
        # feature axis.
        rhs = _merge(_split(rhs, rhs_spec[0], groups), rhs_spec[0], rhs_spec[1])
    if len(rhs_spec) > 2:
        rhs = rev(rhs, rhs_spec[2:])
    dtype = typeof(cotangent).dtype
    sharding = cotangent_sharding(aval, cotangent, rhs)
    result = process(
        conv_general_dilated_p,
        (cotangent, convert(rhs, dtype, typeof(rhs).weak_type)),
        {
            **params,
            "window_strides": params["lhs_dilation"],
            "padding": _padding_of_cotangent(typeof(cotangent), aval, typeof(rhs), params, True),
            "lhs_dilation": params["window_strides"],
            "dimension_numbers": ConvDimensionNumbers(out_spec, _swapped(rhs_spec), lhs_spec),
            "feature_group_count": groups,
            "batch_group_count": 1,
            # Axes between which groups are moved are split over the mesh afterwards.
            "out_sharding": permuted(
                sharding,
                [
                    -1 if batch_group_count > 1 and axis in lhs_spec[:2] else axis
                    for axis in range(aval.ndim)
                ],
            ),
        },
    )
    if batch_group_count > 1:
        split = _split(result, lhs_spec[1], groups)
        result = split_as(_merge(split, lhs_spec[1], lhs_spec[0]), sharding)
    return as_cotangent(result, range(aval.ndim), aval)


def _cotangent_of_kernel(
    cotangent: ArrayLike, lhs: ArrayLike, aval: ShapedArray, params: _ConvParams
) -> Cotangent:
    """Return the kernel's cotangent: the input convolved with the cotangent of the result.

    The roles of batch and features are exchanged, so that the sum is over the batch.
    """
    if not typeof(cotangent).size:
        return Zero(aval)
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    numbers = ConvDimensionNumbers(*map(_swapped, (lhs_spec, out_spec, rhs_spec)))
    result = process(
        conv_general_dilated_p,
        (convert(lhs, typeof(cotangent).dtype, typeof(lhs).weak_type), cotangent),
        {
            **params,
            "window_strides": params["rhs_dilation"],
            "padding": _padding_of_cotangent(typeof(cotangent), typeof(lhs), aval, params, False),
            "rhs_dilation": params["window_strides"],
            "dimension_numbers": numbers,
            # Batch groups and feature groups exchange roles.
            "feature_group_count": params["batch_group_count"],
            "batch_group_count": params["feature_group_count"],
            "out_sharding": cotangent_sharding(aval, cotangent, lhs),
        },
    )
    return as_cotangent(result, range(aval.ndim), aval)


def _sizes(aval: ShapedArray, spec: Sequence[int]) -> list[int]:
    """Return the sizes of the spatial axes of a convolution's array."""
    return [aval.shape[axis] for axis in spec[2:]]


def _swapped(spec: Sequence[int]) -> tuple[int, ...]:
    return (spec[1], spec[0], *spec[2:])


# ---- batches -------------------------------------------------------------------------------------


@rules.batch(conv_general_dilated_p)
def _(
    values: ArrayLikes,
    axes: BatchAxes,
    *,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    out_sharding: NamedSharding | None,
    **params: object,
) -> Batched:
    lhs, rhs = values
    lhs_axis, rhs_axis = axes
    params["out_sharding"] = None
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    size = batch_size(values, axes)
    params["dimension_numbers"] = dimension_numbers
    if not size:
        return _batch_of_none(values, axes, feature_group_count, batch_group_count, params), 0
    groups = max(feature_group_count, batch_group_count)
    result_axis = out_spec[1]
    if lhs_axis is not None and rhs_axis is not None:
        # The batch axis multiplies the number of groups.
        lhs = _merge(lhs, lhs_axis, lhs_spec[0 if batch_group_count > 1 else 1])
        rhs = _merge(rhs, rhs_axis, rhs_spec[0])
        if batch_group_count > 1:
            batch_group_count *= size
        else:
            feature_group_count *= size
        groups = 1
    elif lhs_axis is not None:
        # The batch axis becomes part of the convolution's batch.
        if batch_group_count > 1:
            lhs = _within_groups(lhs, lhs_axis, lhs_spec[0], groups)
        else:
            lhs = _merge(lhs, lhs_axis, lhs_spec[0])
        result_axis, groups = out_spec[0], 1
    else:
        assert rhs_axis is not None
        # The batch axis becomes part of the output features, of each group.
        if groups > 1:
            rhs = _within_groups(rhs, rhs_axis, rhs_spec[0], groups)
        else:
            rhs = _merge(rhs, rhs_axis, rhs_spec[0])
    params["feature_group_count"] = feature_group_count
    params["batch_group_count"] = batch_group_count
    # The axis into which the batch axis is merged is split only after both are separate again.
    params["out_sharding"] = permuted(
        out_sharding, [-1 if i == result_axis else i for i in range(len(out_spec))]
    )
    result = process(conv_general_dilated_p, (lhs, rhs), params)
    if groups > 1:
        result = _merge(_split(result, result_axis, groups, size), result_axis, result_axis + 1)
    else:
        result = _split(result, result_axis, size)
    return split_as(
        result, with_batch_axis_of(out_sharding, result_axis, values, axes)
    ), result_axis


def _batch_of_none(
    values: ArrayLikes,
    axes: BatchAxes,
    feature_group_count: int,
    batch_group_count: int,
    params: Params,
) -> ArrayLike:
    """Return the empty result of a batch of size 0, which groups cannot express."""
    avals = [
        aval if axis is None else aval.update(shape=without_axes(aval.shape, (axis,)))
        for aval, axis in zip(map(typeof, values), axes, strict=True)
    ]
    params["feature_group_count"] = feature_group_count
    params["batch_group_count"] = batch_group_count
    out = _infer(*avals, **params)
    return zeros_of(out.update(shape=(0, *out.shape)))


def _split(x: ArrayLike, axis: int, *sizes: int) -> Array:
    """Return `x` with an axis split into several, which have `sizes` and the remaining size."""
    shape = typeof(x).shape
    left = shape[axis] // math.prod(sizes)
    return reshape(x, (*shape[:axis], *sizes, left, *shape[axis + 1 :]))


def _merge(x: ArrayLike, source: int, target: int) -> Array:
    """Return `x` with axis `source` merged into axis `target` as its major part.

    `target` is counted in the array without axis `source`.
    """
    shape = typeof(x).shape
    order = [axis for axis in range(len(shape)) if axis != source]
    merged = [shape[axis] for axis in order]
    merged[target] *= shape[source]
    order.insert(target, source)
    return reshape(x, merged, order)


def _within_groups(x: ArrayLike, source: int, target: int, groups: int) -> Array:
    """Return `x` with axis `source` merged into each of the groups that form axis `target`.

    `target` is counted in the array without axis `source`.
    """
    x = _split(x, target + (source <= target), groups)
    source += source > target
    shape = typeof(x).shape
    order = [axis for axis in range(len(shape)) if axis != source]
    merged = [shape[axis] for axis in order]
    merged[target : target + 2] = [math.prod(merged[target : target + 2]) * shape[source]]
    order.insert(target + 1, source)
    return reshape(x, merged, order)
