"""The primitive ragged_dot_general, which contracts groups of rows or columns."""

from collections.abc import Sequence

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import issubdtype
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, DType, DTypeLike, Params, Shape
from hlofront.bridge.jaxlib_types import NamedSharding
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import BatchResult, infer
from hlofront.core.sharding.requested_shardings import (
    cotangent_sharding,
    permuted,
    requested,
    with_batch_axis_of,
)
from hlofront.core.symbolic_zeros import BatchAxes, Cotangents, Operand
from hlofront.core.trace import process
from hlofront.primitives.arrays.reducing import without_axes
from hlofront.primitives.arrays.shaping import broadcast_in_dim, transpose
from hlofront.primitives.linalg.contraction_numbers import (
    CanonicalNumbers,
    DotDimensionNumbers,
    ascending_axes,
    batched_contraction,
    canonical_axes,
    canonical_numbers,
    check_contraction,
    remaining_axes,
)
from hlofront.primitives.linalg.dot_general import (
    PrecisionLike,
    as_cotangent,
    bilinear,
    canonical_element_type,
    canonical_precision,
    dot_general_p,
    flipped_precision,
    product_dtype,
)
from hlofront.primitives.rules.batching import batch_size, move_axis, shifted, with_new_axis
from hlofront.primitives.rules.derivatives import aval_of_operand, is_linear, known

# ---- ragged dot ----------------------------------------------------------------------------------


class RaggedDotDimensionNumbers:
    """The contracting and batch axes of a ragged dot, and the axis that is divided into groups.

    Args:
      dot_dimension_numbers: the contracting and batch axes, as for `dot_general`.
      lhs_ragged_dimensions: the axis of lhs that is divided into groups, as a sequence of one.
      rhs_group_dimensions: the axis of rhs with one index per group, if the ragged axis is neither
        a batch axis nor contracted; else empty.
    """

    __slots__ = ("dot_dimension_numbers", "lhs_ragged_dimensions", "rhs_group_dimensions")

    dot_dimension_numbers: CanonicalNumbers
    lhs_ragged_dimensions: Shape
    rhs_group_dimensions: Shape

    def __init__(
        self,
        dot_dimension_numbers: DotDimensionNumbers,
        lhs_ragged_dimensions: Sequence[int],
        rhs_group_dimensions: Sequence[int],
    ):
        self.dot_dimension_numbers = canonical_numbers(dot_dimension_numbers)
        self.lhs_ragged_dimensions = canonical_axes(lhs_ragged_dimensions)
        self.rhs_group_dimensions = canonical_axes(rhs_group_dimensions)

    def _fields(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        fields = zip(self.__slots__, self._fields(), strict=True)
        return f"{type(self).__name__}({', '.join(f'{k}={v}' for k, v in fields)})"

    @property
    def mode(self) -> str:
        """The kind of the ragged axis: "batch", "contracting" or "noncontracting"."""
        (ragged,) = self.lhs_ragged_dimensions
        (lhs_contracting, _), (lhs_batch, _) = self.dot_dimension_numbers
        if ragged in lhs_batch:
            return "batch"
        return "contracting" if ragged in lhs_contracting else "noncontracting"

    def outer_axes(self, ndim: int) -> tuple[int, ...]:
        """Return the axes of lhs, of rank `ndim`, along which group sizes may vary, in order."""
        (ragged,) = self.lhs_ragged_dimensions
        (lhs_contracting, _), (lhs_batch, _) = self.dot_dimension_numbers
        if self.mode == "batch":
            return lhs_batch[: lhs_batch.index(ragged)]
        if self.mode == "contracting":
            return (*lhs_batch, *lhs_contracting[: lhs_contracting.index(ragged)])
        free = [axis for axis in range(ndim) if axis not in (*lhs_batch, *lhs_contracting)]
        return (*lhs_batch, *free[: free.index(ragged)])


ragged_dot_general_p = Primitive("ragged_dot_general")


@boundary
def ragged_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
    out_sharding: object = None,
) -> Array:
    """Compute a dot_general in which one axis of lhs is divided into consecutive groups.

    If that axis is neither contracted nor a batch axis, each group is multiplied by its own slice
    of rhs, and the result is zero for rows beyond all groups. If it is contracted, each group is
    summed separately, and a new leading axis holds the sums. If it is a batch axis, this is
    dot_general.

    Args:
      lhs, rhs: arrays.
      group_sizes: integers of shape (g,); or of shape (..., g), if sizes vary along the batch axes
        and along the axes of the ragged axis's kind that precede it.
      ragged_dot_dimension_numbers: a RaggedDotDimensionNumbers.
      precision, preferred_element_type: see `dot_general`.
      group_offset: must be None.
      out_sharding: the sharding of the result over axes of type Explicit.

    Raises:
      TypeError: if axes, sizes or dtypes do not fit.
    """
    if group_offset is not None:
        raise TypeError(
            f"group_offset of a ragged dot must be None, got {group_offset!r}: slice group_sizes "
            "and rhs to the groups you need."
        )
    if out_sharding is not None:
        out_sharding = requested("ragged_dot_general", out_sharding)
    if not isinstance(ragged_dot_dimension_numbers, RaggedDotDimensionNumbers):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            "ragged_dot_dimension_numbers must be a lax.RaggedDotDimensionNumbers, got "
            f"{ragged_dot_dimension_numbers!r}."
        )
    params = {
        "ragged_dot_dimension_numbers": ragged_dot_dimension_numbers,
        "precision": canonical_precision(precision),
        "preferred_element_type": canonical_element_type(
            preferred_element_type, "ragged_dot_general"
        ),
        "group_offset": None,
        "out_sharding": out_sharding,
    }
    return process(ragged_dot_general_p, (lhs, rhs, group_sizes), params)


@boundary
def ragged_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    precision: PrecisionLike | None = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
    out_sharding: object = None,
) -> Array:
    """Multiply a matrix whose rows are divided into groups by one matrix per group.

    Args:
      lhs: an array of shape (m, k).
      rhs: an array of shape (g, k, n).
      group_sizes: the number of rows of each group, integers of shape (g,). Rows beyond all groups
        are zero in the result.
      precision: see `ragged_dot_general`, also for the other arguments.

    Returns:
      An array of shape (m, n).
    """
    return ragged_dot_general(
        lhs,
        rhs,
        group_sizes,
        _MATRICES,
        precision,
        preferred_element_type,
        group_offset,
        out_sharding,
    )


_MATRICES = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))


@infer(ragged_dot_general_p)
def _(
    lhs: ShapedArray,
    rhs: ShapedArray,
    group_sizes: ShapedArray,
    *,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: object,
    preferred_element_type: DType | None,
    group_offset: object,
    out_sharding: object,
) -> ShapedArray:
    numbers = ragged_dot_dimension_numbers
    contracting, batch = numbers.dot_dimension_numbers
    check_contraction("dot_general", lhs, rhs, (contracting, batch))
    groups = _check_groups(lhs, rhs, group_sizes, numbers)
    dtype = product_dtype("lax.ragged_dot_general", lhs.dtype, rhs.dtype, preferred_element_type)
    shape = (
        *([groups] if numbers.mode == "contracting" else []),
        *(lhs.shape[axis] for axis in batch[0]),
        *without_axes(lhs.shape, (*batch[0], *contracting[0])),
        *without_axes(rhs.shape, (*batch[1], *contracting[1], *numbers.rhs_group_dimensions)),
    )
    return ShapedArray(shape, dtype)


def _check_groups(
    lhs: ShapedArray,
    rhs: ShapedArray,
    group_sizes: ShapedArray,
    numbers: RaggedDotDimensionNumbers,
) -> int:
    """Return the number of groups; raise TypeError if group axes or group sizes do not fit."""
    name = "ragged_dot_general"
    if len(numbers.lhs_ragged_dimensions) != 1:
        raise TypeError(
            f"{name} expects exactly one lhs ragged dimension, got {numbers.lhs_ragged_dimensions}."
        )
    (ragged,) = numbers.lhs_ragged_dimensions
    if not 0 <= ragged < lhs.ndim:
        raise TypeError(
            f"{name} requires lhs ragged dimension numbers to be nonnegative and less than the "
            f"number of axes of the lhs value, got {ragged} for lhs of rank {lhs.ndim}."
        )
    if not issubdtype(group_sizes.dtype, np.integer):
        raise TypeError(
            f"{name} requires that group_sizes.dtype is subtype of np.integer, got "
            f"{group_sizes.dtype}."
        )
    if group_sizes.ndim == 0:
        raise TypeError("expected rank of group_sizes to be >=1, got a scalar.")
    groups = group_sizes.shape[-1]
    outer = tuple(lhs.shape[axis] for axis in numbers.outer_axes(lhs.ndim))
    if group_sizes.shape[:-1] not in ((), outer):
        raise TypeError(
            f"expected group_sizes to have shape {(*outer, groups)}, got {group_sizes.shape}."
        )
    group_axes = numbers.rhs_group_dimensions
    if numbers.mode != "noncontracting":
        if group_axes:
            raise TypeError(
                f"{name} requires zero group dimensions in the rhs when lhs ragged dimension is "
                f"contracting or batch, got {group_axes}."
            )
        return groups
    if len(group_axes) != 1:
        raise TypeError(
            f"{name} requires exactly one rhs group dimension when lhs ragged dimension is "
            f"noncontracting, got {group_axes}."
        )
    (_, rhs_contracting), (_, rhs_batch) = numbers.dot_dimension_numbers
    (axis,) = group_axes
    if not 0 <= axis < rhs.ndim or axis in (*rhs_contracting, *rhs_batch):
        raise TypeError(
            f"{name} requires rhs group dimension numbers to be distinct from contracting and "
            f"batch dimensions, and less than the number of axes of rhs, {rhs.ndim}; got {axis}."
        )
    if rhs.shape[axis] != groups:
        raise TypeError(f"expected rhs group dimension size to be {groups}, got {rhs.shape[axis]}.")
    return groups


# ---- derivatives of ragged dot -------------------------------------------------------------------

bilinear(ragged_dot_general_p)


@rules.transpose(ragged_dot_general_p)
def _(
    cotangent: ArrayLike,
    lhs: Operand,
    rhs: Operand,
    group_sizes: ArrayLike,
    *,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: object,
    preferred_element_type: DType | None,
    **_: object,
) -> Cotangents:
    params = {
        "precision": precision,
        "preferred_element_type": preferred_element_type,
        "out_sharding": None,
    }
    numbers = ragged_dot_dimension_numbers
    if numbers.mode == "batch":
        dot_numbers = numbers.dot_dimension_numbers
        incoming = rules.transpose[dot_general_p](
            cotangent, lhs, rhs, dimension_numbers=dot_numbers, **params
        )
        return *incoming, None
    params["group_offset"] = None
    rule = _transpose_by_group if numbers.mode == "noncontracting" else _transpose_summed
    return *rule(cotangent, lhs, rhs, group_sizes, numbers, params), None


def _bind_ragged(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    dot_numbers: CanonicalNumbers,
    ragged: int,
    group_axes: Shape,
    params: Params,
) -> Array:
    numbers = RaggedDotDimensionNumbers(dot_numbers, (ragged,), group_axes)
    params = {**params, "ragged_dot_dimension_numbers": numbers}
    return process(ragged_dot_general_p, (lhs, rhs, group_sizes), params)


def _transpose_by_group(
    cotangent: ArrayLike,
    lhs: Operand,
    rhs: Operand,
    group_sizes: ArrayLike,
    numbers: RaggedDotDimensionNumbers,
    params: Params,
) -> tuple[ArrayLike | None, ArrayLike | None]:
    """Return cotangents (lhs, rhs), or None, of a ragged dot in mode "noncontracting"."""
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = numbers.dot_dimension_numbers
    (ragged,), group_axes = numbers.lhs_ragged_dimensions, numbers.rhs_group_dimensions
    lhs_aval, rhs_aval = aval_of_operand(lhs), aval_of_operand(rhs)
    lhs_kept = remaining_axes(lhs_aval.ndim, lhs_batch, lhs_contracting)
    rhs_kept = remaining_axes(rhs_aval.ndim, rhs_batch, rhs_contracting, group_axes)
    batch, of_lhs, of_rhs = _ranges(lhs_batch, lhs_kept, rhs_kept)
    pairs = list(zip(lhs_contracting, rhs_contracting, strict=True))
    if is_linear(lhs):
        dot_numbers = ((of_rhs, rhs_kept), (batch, rhs_batch))
        ragged = of_lhs[lhs_kept.index(ragged)]
        regained = [own for own, _ in sorted(pairs, key=lambda pair: pair[1])]
        axes = (*lhs_batch, *lhs_kept, *regained)
        other = known(rhs)
        params = {
            **params,
            "out_sharding": _sharding_of_cotangent(lhs_aval, axes, cotangent, other),
        }
        result = _bind_ragged(
            cotangent, other, group_sizes, dot_numbers, ragged, group_axes, params=params
        )
        return as_cotangent(result, axes, lhs_aval), None
    # Either factor may come first: prefer the order whose result needs no transpose.
    regained = [own for _, own in sorted(pairs)]
    options = {**params}
    axes = (*group_axes, *rhs_batch, *regained, *rhs_kept)
    other = known(lhs)
    first, second = other, cotangent
    contracting, batches = (lhs_kept, of_lhs), (lhs_batch, batch)
    flipped = (*group_axes, *rhs_batch, *rhs_kept, *regained)
    if ascending_axes(flipped) and not ascending_axes(axes):
        axes, first, second = flipped, second, first
        contracting, batches = (of_lhs, lhs_kept), (batch, lhs_batch)
        ragged = of_lhs[lhs_kept.index(ragged)]
        options["precision"] = flipped_precision(params["precision"])
    options["out_sharding"] = _sharding_of_cotangent(rhs_aval, axes, cotangent, other)
    result = _bind_ragged(first, second, group_sizes, (contracting, batches), ragged, (), options)
    return None, as_cotangent(result, axes, rhs_aval)


def _sharding_of_cotangent(
    aval: ShapedArray, axes: Sequence[int], *beside: ArrayLike
) -> NamedSharding | None:
    """Return the sharding of a cotangent whose axis i is axis `axes[i]` of an operand."""
    return permuted(cotangent_sharding(aval, *beside), axes)


def _transpose_summed(
    cotangent: ArrayLike,
    lhs: Operand,
    rhs: Operand,
    group_sizes: ArrayLike,
    numbers: RaggedDotDimensionNumbers,
    params: Params,
) -> tuple[ArrayLike | None, ArrayLike | None]:
    """Return cotangents (lhs, rhs), or None, of a ragged dot in mode "contracting"."""
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = numbers.dot_dimension_numbers
    lhs_aval, rhs_aval = aval_of_operand(lhs), aval_of_operand(rhs)
    lhs_kept = remaining_axes(lhs_aval.ndim, lhs_batch, lhs_contracting)
    rhs_kept = remaining_axes(rhs_aval.ndim, rhs_batch, rhs_contracting)
    _, batch, of_lhs, of_rhs = _ranges((0,), lhs_batch, lhs_kept, rhs_kept)
    if is_linear(lhs):
        aval, other, rest, arrived = lhs_aval, known(rhs), rhs_kept, (of_rhs, of_lhs)
        own, others = (lhs_batch, lhs_contracting), (rhs_batch, rhs_contracting)
        own_kept = lhs_kept
    else:
        aval, other, rest, arrived = rhs_aval, known(lhs), lhs_kept, (of_lhs, of_rhs)
        own, others = (rhs_batch, rhs_contracting), (lhs_batch, lhs_contracting)
        own_kept = rhs_kept
    ragged_index = lhs_contracting.index(numbers.lhs_ragged_dimensions[0])
    other_batch, other_contracting = others
    if typeof(group_sizes).ndim > 1:
        # Group sizes follow the order of the contracted axes, so the other operand must as well.
        order = (*other_batch, *other_contracting, *rest)
        other = transpose(other, order)
        other_batch, other_contracting, rest = _ranges(other_batch, other_contracting, rest)
    regained = [i for _, i in sorted(zip(other_contracting, own[1], strict=True))]
    axes = (*own[0], *regained, *own_kept)
    params = {**params, "out_sharding": _sharding_of_cotangent(aval, axes, cotangent, other)}
    result = _bind_ragged(
        other,
        cotangent,
        group_sizes,
        dot_numbers=((rest, arrived[0]), (other_batch, batch)),
        ragged=other_contracting[ragged_index],
        group_axes=(0,),
        params=params,
    )
    summed = as_cotangent(result, axes, aval)
    return (summed, None) if is_linear(lhs) else (None, summed)


def _ranges(*parts: Sequence[int]) -> list[tuple[int, ...]]:
    """Return, per sequence, the indices of its elements in the concatenation of all."""
    ranges: list[tuple[int, ...]] = []
    start = 0
    for part in parts:
        ranges.append(tuple(range(start, start + len(part))))
        start += len(part)
    return ranges


# ---- batches of ragged dot -----------------------------------------------------------------------


@rules.batch(ragged_dot_general_p)
def _(
    values: ArrayLikes,
    axes: BatchAxes,
    *,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    out_sharding: NamedSharding | None,
    **params: object,
) -> BatchResult:
    lhs, rhs, group_sizes = values
    lhs_axis, rhs_axis, groups_axis = axes
    size = batch_size(values, axes)
    numbers = ragged_dot_dimension_numbers
    (ragged,) = numbers.lhs_ragged_dimensions
    group_axes = numbers.rhs_group_dimensions
    grouped = numbers.mode == "noncontracting"
    if groups_axis is not None:
        # Group sizes can differ along a batch axis and, if the ragged axis is neither contracted
        # nor a batch axis, along such an axis of lhs before it.
        if lhs_axis is None:
            lhs, lhs_axis = with_new_axis(lhs, size), 0
        if grouped and rhs_axis is None and lhs_axis > ragged:
            lhs, lhs_axis = move_axis(lhs, lhs_axis, 0), 0
        if not grouped and rhs_axis is None:
            rhs, rhs_axis = with_new_axis(rhs, size), 0
    lhs_ndim = typeof(lhs).ndim
    dot_numbers, axis = batched_contraction(
        lhs_ndim, typeof(rhs).ndim, (lhs_axis, rhs_axis), numbers.dot_dimension_numbers
    )
    if lhs_axis is None and rhs_axis is not None and group_axes:
        # The result does not have the group axis of rhs.
        axis -= group_axes[0] < rhs_axis
    had_outer = bool(numbers.outer_axes(lhs_ndim - (lhs_axis is not None)))
    if lhs_axis is not None:
        ragged += ragged >= lhs_axis
    if rhs_axis is not None:
        group_axes = shifted(group_axes, rhs_axis)
    numbers = RaggedDotDimensionNumbers(dot_numbers, (ragged,), group_axes)
    outer = numbers.outer_axes(lhs_ndim)
    ndim_without_groups = typeof(group_sizes).ndim - (groups_axis is not None)
    if lhs_axis in outer and (groups_axis is not None or ndim_without_groups > 1):
        index = outer.index(lhs_axis)
        if groups_axis is None:
            group_sizes = with_new_axis(group_sizes, size, index)
        elif ndim_without_groups == 1 and had_outer:
            # Group sizes only vary along the new axis.
            group_sizes = move_axis(group_sizes, groups_axis, 0)
            shape = (*[typeof(lhs).shape[i] for i in outer], typeof(group_sizes).shape[-1])
            group_sizes = broadcast_in_dim(group_sizes, shape, (index, len(outer)))
        else:
            group_sizes = move_axis(group_sizes, groups_axis, index)
    params["ragged_dot_dimension_numbers"] = numbers
    axis += numbers.mode == "contracting"
    params["out_sharding"] = with_batch_axis_of(
        out_sharding, axis, (lhs, rhs), (lhs_axis, rhs_axis)
    )
    return process(ragged_dot_general_p, (lhs, rhs, group_sizes), params), axis
