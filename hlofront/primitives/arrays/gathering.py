"""The gather primitive: slices of an array at computed indices, and out-of-bounds modes."""

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import iinfo, issubdtype
from hlofront.base.elements import ExtendedDType, exact_dtype
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, DType, Shape
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import AnyBatchAxes, infer
from hlofront.core.sizes.dimensions import Axes, canonical_axes, canonical_shape, integers
from hlofront.core.sizes.symbolic import min_dim
from hlofront.core.symbolic_zeros import BatchAxis, Batched, Dual, Tangents, Zero
from hlofront.core.trace import process
from hlofront.primitives.arrays.shaping import expand_dims
from hlofront.primitives.arrays.slicing import concatenate, sequence_of
from hlofront.primitives.elementwise.compare import lt_p, select_n_p
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import add_p, rem_p
from hlofront.primitives.rules.batching import move_axis, shifted


class GatherScatterMode(enum.Enum):
    """The treatment of an index that is out of bounds.

    CLIP: the index is moved until the slice lies within the array.
    FILL_OR_DROP: gather returns a fill value there; scatter drops the update.
    PROMISE_IN_BOUNDS: the caller promises that no index is out of bounds; if one is, any element
      may be returned or updated.
    ONE_HOT: gather returns zeros there, as a product with one-hot vectors would.
    """

    CLIP = 1
    FILL_OR_DROP = 2
    PROMISE_IN_BOUNDS = 3
    ONE_HOT = 4

    # Whether the caller chose the mode, rather than a function by default.
    is_chosen = enum.nonmember(False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GatherScatterMode) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)

    @property
    def chosen(self) -> "GatherScatterMode":
        """This mode, marked as chosen by the caller; it is equal to this one.

        Under checkify an out-of-bounds index is not an error if the caller chose its treatment.
        """
        return _chosen[self]

    @staticmethod
    def from_any(mode: "str | GatherScatterMode | None") -> "GatherScatterMode":
        """Return the mode for a mode or the name of one.

        Names are clip, fill, drop, promise_in_bounds and one_hot; None is FILL_OR_DROP.

        Raises:
          ValueError: for anything else.
        """
        if isinstance(mode, GatherScatterMode):
            return mode
        try:
            return _modes[mode]
        except (KeyError, TypeError):
            raise ValueError(
                f'Unknown gather mode "{mode}": expected a GatherScatterMode or one of '
                f"{', '.join(repr(name) for name in _modes if name)}."
            ) from None


def _as_chosen(mode: GatherScatterMode) -> GatherScatterMode:
    copied = object.__new__(GatherScatterMode)
    vars(copied).update(vars(mode), is_chosen=True)
    return copied


# The promise that indices are in bounds does not say how to treat indices out of bounds.
_chosen = {
    mode: mode if mode.name == "PROMISE_IN_BOUNDS" else _as_chosen(mode)
    for mode in GatherScatterMode
}
_modes: dict[Any, GatherScatterMode] = {
    "clip": GatherScatterMode.CLIP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
    "one_hot": GatherScatterMode.ONE_HOT,
    None: GatherScatterMode.FILL_OR_DROP,
}


def requested_mode(mode: str | GatherScatterMode | None) -> GatherScatterMode:
    """Return the mode that an argument requests, marked as chosen by the caller if it is a name."""
    member = GatherScatterMode.from_any(mode)
    return member.chosen if isinstance(mode, str) else member


class GatherDimensionNumbers(NamedTuple):
    """The correspondence between the axes of gather's operand, indices and result.

    The last axis of the indices holds one index per entry of `start_index_map`: where a slice
    begins. All its other axes are batch axes of the result.

    Attributes:
      offset_dims: the axes of the result that are axes of the slices, in ascending order.
      collapsed_slice_dims: the axes of the operand along which slices have size 1 and the result
        does not have, in ascending order.
      start_index_map: the axis of the operand that each index counts along.
      operand_batching_dims: the batch axes of the operand, ascending: the slices at each position
        of the indices' batch axes are taken from the operand at that position.
      start_indices_batching_dims: the corresponding batch axes of the indices, in that order.
    """

    offset_dims: Axes
    collapsed_slice_dims: Axes
    start_index_map: Axes
    operand_batching_dims: Axes = ()
    start_indices_batching_dims: Axes = ()


gather_p = Primitive("gather")


@boundary
def gather(
    operand: ArrayLike,
    start_indices: ArrayLike | ArrayLikes,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Return slices of an array, all of equal size, that begin at computed indices.

    Args:
      operand: the array to slice.
      start_indices: integers; the last axis holds the start of one slice.
      dimension_numbers: the correspondence of the operand's, indices' and result's axes.
      slice_sizes: the size of the slices along each axis of the operand.
      unique_indices: a promise that no two slices overlap. It is not checked.
      indices_are_sorted: a promise that the indices ascend. It is not checked.
      mode: a GatherScatterMode, or its name, for out-of-bounds indices; None is PROMISE_IN_BOUNDS.
      fill_value: the scalar that FILL_OR_DROP returns; by default NaN, the least signed or
        greatest unsigned integer, or True.

    Raises:
      TypeError: if the dimension numbers or slice sizes do not fit the shapes.
      ValueError: if the mode is unknown or the indices are not integers.

    Example:
      >>> numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
      >>> x, rows = jnp.array([[1, 2], [3, 4], [5, 6]]), jnp.array([[2], [0]])
      >>> lax.gather(x, rows, numbers, slice_sizes=(1, 2))
      Array([[5, 6],
             [1, 2]], dtype=int32)
    """
    if mode is None:
        mode = GatherScatterMode.PROMISE_IN_BOUNDS
    else:
        mode = requested_mode(mode)
    if mode != GatherScatterMode.FILL_OR_DROP:
        fill_value = None
    elif fill_value is None:
        fill_value = default_fill_value(typeof(operand).dtype)
    else:
        fill_value = _static_scalar(fill_value)
    return process(
        gather_p,
        (operand, start_indices),
        {
            "dimension_numbers": canonical_numbers(dimension_numbers, GatherDimensionNumbers),
            "slice_sizes": canonical_shape(slice_sizes),
            "indices_are_sorted": bool(indices_are_sorted),
            "unique_indices": bool(unique_indices),
            "mode": mode,
            "fill_value": fill_value,
        },
    )


# A single object, because in a cache key a NaN equals only itself.
_NAN = float("nan")


def default_fill_value(dtype: DType) -> float | int | bool:
    """Return gather's default fill value for a dtype: NaN, an extreme integer or True.

    Raises:
      ValueError: if the dtype has none.
    """
    if issubdtype(dtype, np.inexact):
        return _NAN
    if issubdtype(dtype, np.signedinteger):
        return int(iinfo(dtype).min)
    if issubdtype(dtype, np.unsignedinteger):
        return int(iinfo(dtype).max)
    if dtype == np.bool_:
        return True
    if isinstance(dtype, ExtendedDType):
        return default_fill_value(dtype.physical(())[1])
    raise ValueError(f"gather has no default fill value for dtype {dtype}: give fill_value.")


def _static_scalar(value: ArrayLike) -> ArrayLike | None:
    aval = typeof(value)
    if aval.shape:
        raise TypeError(f"fill_value of gather must be a scalar, got shape {aval.shape}.")
    if not isinstance(value, bool | int | float | complex | np.generic):
        value = np.asarray(value)[()]
    return _NAN if not isinstance(value, complex) and value != value else value


def canonical_numbers(numbers: Any, class_: type) -> Any:
    """Return dimension numbers with each field converted to a tuple of ints.

    Args:
      numbers: dimension numbers, whose fields are sequences of integers.
      class_: the NamedTuple class that they must belong to.

    Raises:
      TypeError: if `numbers` is not a `class_`, or a field is not a sequence of integers.
    """
    if type(numbers) is not class_ and not isinstance(numbers, class_):
        raise TypeError(
            f"dimension_numbers must be a {class_.__name__}, got {numbers!r} of type "
            f"{type(numbers).__name__}."
        )
    for field in numbers:
        if type(field) is not tuple:
            return class_(*[integers(field, "each of dimension_numbers") for field in numbers])
    return numbers


# ---- shapes --------------------------------------------------------------------------------------


@infer(gather_p)
def _(
    operand: ShapedArray,
    indices: ShapedArray,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Shape,
    **_: object,
) -> ShapedArray:
    check_index_dtype(indices)
    numbers = dimension_numbers
    batch = check_indices("gather", indices, len(numbers.start_index_map), "start_index_map")
    offset, collapsed = numbers.offset_dims, numbers.collapsed_slice_dims
    batching = numbers.operand_batching_dims
    rank = len(offset) + len(batch)
    check_sorted_axes("gather", "offset_dims", offset, rank)
    check_sorted_axes("gather", "collapsed_slice_dims", collapsed, operand.ndim)
    check_batching_axes(
        "gather",
        operand,
        indices,
        numbers.start_index_map,
        batching,
        numbers.start_indices_batching_dims,
        ("start_index_map", "start_indices_batching_dims"),
    )
    check_disjoint("gather", "collapsed_slice_dims", collapsed, "operand_batching_dims", batching)
    if len(slice_sizes) != operand.ndim:
        raise TypeError(
            "Gather op must have one slice size for every input dimension; got: "
            f"len(slice_sizes)={len(slice_sizes)}, input_shape.rank={operand.ndim}."
        )
    for i, (size, bound) in enumerate(zip(slice_sizes, operand.shape, strict=True)):
        if not 0 <= size <= bound:
            raise TypeError(
                f"Slice size at index {i} in gather op is out of range, must be within "
                f"[0, {bound} + 1), got {size}."
            )
    for what, axes in (
        ("collapse slice dims with bound 1", collapsed),
        ("have operand batching dims with bound 0/1", batching),
    ):
        for i, axis in enumerate(axes):
            if slice_sizes[axis] > 1:
                raise TypeError(
                    f"Gather op can only {what}, but bound is {slice_sizes[axis]} for index "
                    f"{axis} at position {i}."
                )
    window = [
        size
        for axis, size in enumerate(slice_sizes)
        if axis not in collapsed and axis not in batching
    ]
    if len(window) != len(offset):
        raise TypeError(
            "All components of the offset index in a gather op must either be a offset dimension "
            f"or explicitly collapsed/batching; got len(slice_sizes)={len(slice_sizes)}, "
            f"output_slice_sizes={offset}, collapsed_slice_dims={collapsed}, "
            f"operand_batching_dims={batching}."
        )
    in_window, in_batch = iter(window), iter(batch)
    shape = tuple([next(in_window if axis in offset else in_batch) for axis in range(rank)])
    return ShapedArray(shape, operand.dtype, operand.weak_type)


def check_index_dtype(indices: ShapedArray) -> None:
    if not issubdtype(indices.dtype, np.integer):
        raise ValueError(f"indices must have an integer type, got {indices.dtype}")


def check_indices(name: str, indices: ShapedArray, count: int, field: str) -> tuple[int, ...]:
    """Return the shape of indices without the last axis, whose size must be `count`.

    Args:
      name: the operation's name, for the message.
      indices: the aval of the indices.
      count: the number of entries in the dimension number `field`.
      field: the name of that field, for the message.

    Raises:
      TypeError: if the indices are a scalar, or their last axis is not of size `count`.
    """
    if not indices.shape:
        raise TypeError(
            f"{name.capitalize()} index leaf dimension must be within [0, rank(indices) + 1). "
            f"rank(indices) is 0 and {name} index leaf dimension is -1."
        )
    *batch, depth = indices.shape
    if depth != count:
        raise TypeError(
            f"{name.capitalize()} op has {count} elements in {field} and the bound of dimension "
            f"index_vector_dim={len(batch)} of indices is {depth}. These two numbers must be equal."
        )
    return tuple(batch)


def check_sorted_axes(name: str, field: str, axes: Axes, ndim: int) -> None:
    """Raise TypeError unless `axes` are distinct, ascending and in [0, ndim)."""
    check_axes(name, field, axes, ndim)
    if tuple(sorted(axes)) != axes:
        raise TypeError(f"{field} in {name} op must be sorted; got {axes}")


def check_axes(name: str, field: str, axes: Axes, ndim: int) -> None:
    """Raise TypeError unless `axes` are distinct and in [0, ndim)."""
    for axis in axes:
        if not 0 <= axis < ndim:
            raise TypeError(
                f"Invalid {field} set in {name} op; valid range is [0, {ndim}); got: {axis}."
            )
    if len(set(axes)) != len(axes):
        raise TypeError(f"{field} in {name} op must not repeat; got: {axes}.")


def check_disjoint(name: str, field: str, axes: Axes, other: str, other_axes: Axes) -> None:
    if not set(axes).isdisjoint(other_axes):
        raise TypeError(
            f"{field} and {other} in {name} op must be disjoint; got: {axes} and {other_axes}."
        )


def check_batching_axes(
    name: str,
    operand: ShapedArray,
    indices: ShapedArray,
    index_map: tuple[int, ...],
    batching: tuple[int, ...],
    indices_batching: tuple[int, ...],
    fields: tuple[str, str],
) -> None:
    """Raise TypeError unless the batch axes of operand and indices are valid and of equal sizes.

    Args:
      name: the operation's name, for messages.
      operand: the operand's aval.
      indices: the indices' aval.
      index_map: the axis of the operand that each index counts along.
      batching: the batch axes of the operand, ascending and disjoint from `index_map`.
      indices_batching: the corresponding batch axes of the indices, not the last.
      fields: the names of `index_map` and `indices_batching` in the dimension numbers.
    """
    map_field, indices_field = fields
    check_axes(name, map_field, index_map, operand.ndim)
    if not batching and not indices_batching:
        return
    check_sorted_axes(name, "operand_batching_dims", batching, operand.ndim)
    check_axes(name, indices_field, indices_batching, indices.ndim)
    check_disjoint(name, map_field, index_map, "operand_batching_dims", batching)
    if indices.ndim - 1 in indices_batching:
        raise TypeError(
            f"{name.capitalize()} op cannot have the index vector dimension as a batching "
            f"dimension; got {indices_batching}."
        )
    if len(batching) != len(indices_batching):
        raise TypeError(
            f"{name.capitalize()} op requires equal numbers of operand_batching_dims and "
            f"{indices_field}, got {batching} and {indices_batching}."
        )
    sizes = tuple([operand.shape[axis] for axis in batching])
    batch_shape = tuple([indices.shape[axis] for axis in indices_batching])
    if sizes != batch_shape:
        raise TypeError(
            f"{name.capitalize()} op requires operand batching dimensions and indices batching "
            f"dimensions to have the same shape, got {sizes} and {batch_shape}."
        )


# ---- derivatives ---------------------------------------------------------------------------------
# The transpose is in scattering.py.


@rules.jvp(gather_p)
def _(primals: ArrayLikes, tangents: Tangents, **params: object) -> Dual:
    result = process(gather_p, tuple(primals), params)
    tangent = tangents[0]
    if type(tangent) is Zero:
        return result, Zero.of(result)
    if params["fill_value"] is not None:
        # The fill value is constant: its tangent is zero.
        params = {**params, "fill_value": 0}
    return result, process(gather_p, (tangent, primals[1]), params)


# ---- batches -------------------------------------------------------------------------------------


@rules.batch(gather_p)
def _(
    values: ArrayLikes,
    axes: AnyBatchAxes,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Shape,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: GatherScatterMode,
    fill_value: object,
) -> Batched:
    operand, indices = values
    axis: BatchAxis
    indices_axis: BatchAxis
    axis, indices_axis = axes
    offset, collapsed, index_map, batching, indices_batching = dimension_numbers
    if indices_axis is None:
        # Slices span the whole batch axis, which becomes an offset axis of the result right after
        # the slice axes that precede it in the operand.
        assert axis is not None
        left_out = {*collapsed, *batching}
        before = sum(i not in left_out for i in range(axis))
        result_axis: int = offset[before - 1] + 1 if before else 0
        offset = with_axis(shifted(offset, result_axis), result_axis)
    else:
        rank = typeof(indices).ndim - 1
        if indices_axis == rank:
            # The index vector axis has to remain the last.
            indices, indices_axis = move_axis(indices, rank, 0), 0
        batch_dimensions = [i for i in range(rank - 1 + len(offset)) if i not in offset]
        result_axis: int = batch_dimensions[indices_axis - 1] + 1 if indices_axis else 0
        offset = shifted(offset, result_axis)
        indices_batching = shifted(indices_batching, indices_axis)
        if axis is None:
            # Promises that hold for each batch element may not hold for all together.
            indices_are_sorted = unique_indices = False
    if axis is not None:
        # Without indices of its own, each batch element is sliced from the whole batch.
        size: int = typeof(operand).shape[axis]
        size = size if indices_axis is None else min_dim(size, 1)
        slice_sizes = (*slice_sizes[:axis], size, *slice_sizes[axis:])
        collapsed, index_map = shifted(collapsed, axis), shifted(index_map, axis)
        batching = shifted(batching, axis)
        if indices_axis is not None:
            batching, indices_batching = with_pair(batching, indices_batching, axis, indices_axis)
    result = process(
        gather_p,
        (operand, indices),
        {
            "dimension_numbers": GatherDimensionNumbers(
                offset, collapsed, index_map, batching, indices_batching
            ),
            "slice_sizes": slice_sizes,
            "indices_are_sorted": indices_are_sorted,
            "unique_indices": unique_indices,
            "mode": mode,
            "fill_value": fill_value,
        },
    )
    return result, result_axis


def with_axis(axes: Axes, axis: int) -> Axes:
    """Return ascending axes with one more axis inserted."""
    return tuple(sorted((*axes, axis)))


def with_pair(batching: Axes, partners: Axes, axis: int, partner: int) -> tuple[Axes, Axes]:
    """Return ascending batch axes and their partners with one pair of axes inserted.

    Args:
      batching: the batch axes of the operand, ascending.
      partners: the corresponding batch axes of the indices.
      axis: the operand's new batch axis.
      partner: the indices' new batch axis.
    """
    position = sum(other < axis for other in batching)
    return (
        (*batching[:position], axis, *batching[position:]),
        (*partners[:position], partner, *partners[position:]),
    )


# ---- one index per axis --------------------------------------------------------------------------


@boundary
def index_take(src: ArrayLike, idxs: object, axes: Sequence[int]) -> Array:
    """Return the slices of an array at one index per axis, where indices wrap around.

    Args:
      src: the array to slice.
      idxs: for each of the axes an array of n integers, taken modulo the size of the axis.
      axes: the axes of `src` to index.

    Returns:
      An array of the n slices, stacked along its first axis, which the other axes of `src` follow.

    Example:
      >>> lax.index_take(jnp.array([[1, 2], [3, 4]]), (jnp.array([0, -1]),), axes=(0,))
      Array([[1, 2],
             [3, 4]], dtype=int32)
    """
    shape = typeof(src).shape
    axes = canonical_axes(axes, len(shape))
    indices = concatenate([expand_dims(index, (1,)) for index in sequence_of(idxs)], 1)
    return gather(
        src,
        _modulo(indices, [shape[axis] for axis in axes]),
        GatherDimensionNumbers(
            offset_dims=tuple(range(1, len(shape) - len(axes) + 1)),
            collapsed_slice_dims=tuple(sorted(axes)),
            start_index_map=axes,
        ),
        tuple([1 if axis in axes else size for axis, size in enumerate(shape)]),
    )


def _modulo(indices: ArrayLike, sizes: list[int]) -> Array:
    """Return nonnegative indices, of shape (n, len(sizes)), modulo the sizes of their axes."""
    dtype = typeof(indices).dtype
    if max(sizes, default=0) > int(iinfo(dtype).max):
        dtype = np.dtype(np.int32)
        indices = convert(indices, dtype, False)
    bounds = exact_dtype(np.asarray([sizes]).astype(dtype))
    remainder = process(rem_p, (indices, bounds), {})
    if not issubdtype(dtype, np.signedinteger):
        return remainder
    zeros = exact_dtype(np.zeros((1, len(sizes)), dtype))
    moved = process(add_p, (remainder, bounds), {})
    return process(select_n_p, (process(lt_p, (remainder, zeros), {}), remainder, moved), {})
