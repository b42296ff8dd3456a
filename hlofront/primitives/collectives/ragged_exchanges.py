"""The exchange of slices of different lengths along a named axis: ragged_all_to_all."""

from collections.abc import Hashable, Sequence

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import int32
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, NumPyArray
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.axes import AxisData
from hlofront.core.primitive import Primitive
from hlofront.core.rules import JvpResult, batch_with_axis, infer, jvp, transpose
from hlofront.core.sharding.forbidden_collectives import communicating
from hlofront.core.symbolic_zeros import BatchAxes, Batched, Cotangents, Operand, Tangents, Zero
from hlofront.core.trace import process
from hlofront.primitives.arrays.creation import iota
from hlofront.primitives.arrays.cumulative import cumsum
from hlofront.primitives.arrays.gathering import GatherDimensionNumbers, GatherScatterMode, gather
from hlofront.primitives.arrays.scattering import ScatterDimensionNumbers, scatter_add
from hlofront.primitives.arrays.shaping import broadcast_in_dim, reshape
from hlofront.primitives.collectives.batching import rows
from hlofront.primitives.collectives.collectives import (
    Groups,
    GroupsLike,
    as_names,
    checked_groups,
    group_size,
)
from hlofront.primitives.collectives.exchanges import all_gather_p, all_to_all_p
from hlofront.primitives.collectives.varying import varying_along
from hlofront.primitives.elementwise.compare import gt, select_n
from hlofront.primitives.elementwise.converting import convert_element_type
from hlofront.primitives.elementwise.elementwise import add, sub
from hlofront.primitives.rules.batching import to_front
from hlofront.primitives.rules.derivatives import (
    aval_of_operand,
    instantiate,
    is_linear,
    known,
    zeros_of,
)

ragged_all_to_all_p = Primitive("ragged_all_to_all")


@boundary
def ragged_all_to_all(
    operand: ArrayLike,
    output: ArrayLike,
    input_offsets: ArrayLike,
    send_sizes: ArrayLike,
    output_offsets: ArrayLike,
    recv_sizes: ArrayLike,
    *,
    axis_name: object,
    axis_index_groups: GroupsLike = None,
) -> Array:
    """Send slices of rows, of any lengths, to the other indices of a named axis.

    With an axis of n indices and k = n * m slices, slices m * i to m * (i + 1) - 1 go to index i.
    The slices that an index receives must not overlap.

    Args:
      operand: the rows to send, of shape (rows, ...).
      output: the rows of the result where no slice is received, of shape (rows of the result, ...)
        and of the operand's dtype.
      input_offsets: the first row of each slice in `operand`: integers of shape (k,).
      send_sizes: the number of rows of each slice: integers of shape (k,).
      output_offsets: the row of the receiver's result at which each sent slice begins: integers of
        shape (k,).
      recv_sizes: the number of rows of each received slice, in the order of senders: integers of
        shape (k,), as `all_to_all(send_sizes, axis_name, 0, 0, tiled=True)` returns them.
      axis_name: a name, or a tuple of names.
      axis_index_groups: lists of axis indices, of equal length: slices are sent within each group.

    Returns:
      `output` with the slices that this index receives.

    Raises:
      NameError: if no axis of that name is in scope.
      TypeError: if the dtypes of `operand` and `output` differ.
      ValueError: if the shapes do not fit, or offsets and sizes are not integers.

    Example:
      Two indices. The first sends its row 0 to itself and rows 1 and 2 to the second:

      >>> ragged_all_to_all(
      ...     rows, zeros, offsets, sizes, targets, received, axis_name="i"
      ... )  # doctest: +SKIP
    """
    names = as_names(axis_name)
    groups = checked_groups(axis_index_groups, names)
    group_size(groups, names)
    operands = operand, output, input_offsets, send_sizes, output_offsets, recv_sizes
    params = {"axis_index_groups": groups, "axis_name": names}
    return process(ragged_all_to_all_p, tuple([varying_along(x, names) for x in operands]), params)


@infer(ragged_all_to_all_p)
def _(operand: ShapedArray, output: ShapedArray, *numbers: ShapedArray, **_: object) -> ShapedArray:
    for name, aval in zip(_NUMBERS, numbers, strict=True):
        if not issubdtype(aval.dtype, np.integer):
            raise ValueError(
                f"ragged_all_to_all {name} must be integer type: got {aval.str_short()}"
            )
        if aval.ndim != 1 or aval.shape[0] < 1:
            raise ValueError(
                f"ragged_all_to_all {name} must be rank 1 with positive dimension size, but got "
                f"shape {aval.shape}"
            )
    counts = {aval.shape[0] for aval in numbers}
    if len(counts) > 1:
        raise ValueError(
            f"ragged_all_to_all requires {', '.join(_NUMBERS)} of equal length: got lengths "
            f"{[aval.shape[0] for aval in numbers]}"
        )
    if operand.dtype != output.dtype:
        raise TypeError(
            "ragged_all_to_all requires an operand and an output of equal dtype: got "
            f"{operand.str_short()} and {output.str_short()}"
        )
    if not operand.ndim or operand.shape[1:] != output.shape[1:]:
        raise ValueError(
            "ragged_all_to_all requires an operand and an output whose shapes differ only in axis "
            f"0: got {operand.shape} and {output.shape}"
        )
    return output.update(weak_type=False)


_NUMBERS = ("input_offsets", "send_sizes", "output_offsets", "recv_sizes")


# ---- slices of rows ------------------------------------------------------------------------------


def with_slices(
    operand: ArrayLike, output: ArrayLike, sources: Array, targets: Array, sizes: Array
) -> Array:
    """Return `output` with slices of rows of `operand` written to it, which do not overlap there.

    Args:
      operand: the rows.
      output: the rows of the result that are in no slice.
      sources, targets, sizes: int32 arrays of equal length: the first row of each slice in the
        operand and in the result, and its number of rows.
    """
    count = typeof(output).shape[0]
    offset = _sum_over_slices(targets, sizes, sub(sources, targets), count)
    source = add(offset, iota(int32, count))
    shape = typeof(operand).shape
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(range(1, len(shape))), collapsed_slice_dims=(0,), start_index_map=(0,)
    )
    taken = gather(
        operand,
        broadcast_in_dim(source, (count, 1), (0,)),
        numbers,
        (1, *shape[1:]),
        mode=GatherScatterMode.CLIP,
    )
    inside = _in_slices(targets, sizes, count)
    return select_n(broadcast_in_dim(inside, typeof(output).shape, (0,)), output, taken)


def _in_slices(begins: Array, sizes: Array, count: int) -> Array:
    """Return booleans: whether each of `count` rows lies in one of the slices."""
    ones = broadcast_in_dim(np.int32(1), typeof(begins).shape, ())
    return gt(_sum_over_slices(begins, sizes, ones, count), np.int32(0))


def _sum_over_slices(begins: Array, sizes: Array, amounts: Array, count: int) -> Array:
    """Return for each of `count` rows the sum of the amounts of the slices that contain it."""
    numbers = ScatterDimensionNumbers(
        update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
    )
    changes = np.zeros(count, int32)
    for where, change in ((begins, amounts), (add(begins, sizes), sub(np.int32(0), amounts))):
        indices = broadcast_in_dim(where, (*typeof(where).shape, 1), (0,))
        changes = scatter_add(changes, indices, change, numbers)
    return cumsum(changes)


def _int32(x: ArrayLike) -> Array:
    return convert_element_type(x, int32)


def by_gathering(
    operand: ArrayLike,
    output: ArrayLike,
    input_offsets: ArrayLike,
    send_sizes: ArrayLike,
    output_offsets: ArrayLike,
    recv_sizes: ArrayLike,
    *,
    axis_name: Sequence[Hashable],
    axis_index_groups: Groups,
) -> Array:
    """Compute ragged_all_to_all by collectives that every platform has.

    All rows are sent to all indices of the named axis, and each index selects its rows.
    """
    count = group_size(axis_index_groups, axis_name)
    params = {
        "all_gather_dimension": 0,
        "axis_index_groups": axis_index_groups,
        "axis_name": tuple(axis_name),
        "axis_size": count,
        "tiled": True,
    }
    rows_of_all = process(all_gather_p, (operand,), params)
    sources, sizes, targets = [
        _exchanged(_int32(x), axis_name, axis_index_groups)
        for x in (input_offsets, send_sizes, output_offsets)
    ]
    slices_per_sender = typeof(sources).shape[0] // count
    first_rows = np.repeat(np.arange(count), slices_per_sender) * typeof(operand).shape[0]
    sources = add(sources, first_rows.astype(int32))
    return with_slices(rows_of_all, output, sources, targets, sizes)


def _exchanged(x: ArrayLike, axis_name: Sequence[Hashable], groups: Groups) -> Array:
    """Return what this index of a named axis receives from all indices, in equal shares."""
    params = {
        "axis_index_groups": groups,
        "axis_name": tuple(axis_name),
        "concat_axis": 0,
        "split_axis": 0,
        "tiled": True,
    }
    return process(all_to_all_p, (x,), params)


# ---- derivatives ---------------------------------------------------------------------------------


@jvp(ragged_all_to_all_p)
def _(primals: ArrayLikes, tangents: Tangents, **params: object) -> JvpResult:
    result = process(ragged_all_to_all_p, tuple(primals), params)
    moving = tangents[:2]
    if all(type(tangent) is Zero for tangent in moving):
        return result, Zero.of(result)
    operands = (*map(instantiate, moving), *primals[2:])
    return result, process(ragged_all_to_all_p, operands, params)


@transpose(ragged_all_to_all_p)
def _(
    cotangent: ArrayLike,
    operand: Operand,
    output: Operand,
    *numbers: Operand,
    axis_name: Sequence[Hashable],
    axis_index_groups: Groups,
) -> Cotangents:
    input_offsets, send_sizes, output_offsets, recv_sizes = map(known, numbers)
    targets = _exchanged(output_offsets, axis_name, axis_index_groups)
    rows_sent = rows_kept = None
    if is_linear(operand):
        sources = _exchanged(input_offsets, axis_name, axis_index_groups)
        zero = varying_along(zeros_of(aval_of_operand(operand)), axis_name)
        rows_sent = process(
            ragged_all_to_all_p,
            (cotangent, zero, targets, recv_sizes, sources, send_sizes),
            {"axis_name": axis_name, "axis_index_groups": axis_index_groups},
        )
    if is_linear(output):
        shape = typeof(cotangent).shape
        received = _in_slices(_int32(targets), _int32(recv_sizes), shape[0])
        zero = varying_along(zeros_of(typeof(cotangent)), axis_name)
        rows_kept = select_n(broadcast_in_dim(received, shape, (0,)), cotangent, zero)
    return [rows_sent, rows_kept, None, None, None, None]


# ---- batches -------------------------------------------------------------------------------------


@batch_with_axis(ragged_all_to_all_p)
def _(
    data: AxisData,
    values: ArrayLikes,
    batch_axes: BatchAxes,
    /,
    *,
    axis_name: Sequence[Hashable],
    axis_index_groups: Groups,
) -> Batched:
    values = [to_front(x, axis, data.size) for x, axis in zip(values, batch_axes, strict=True)]
    operand, output = map(_merged, values[:2])
    heights = [typeof(x).shape[1] for x in values[:2]]
    sources, send_sizes, targets, recv_sizes = map(_int32, values[2:])
    if data.name not in axis_name:
        # The rows of all examples are exchanged together: each example has its own slices.
        sources, targets = [
            add(x, _first_rows(data.size, height, typeof(x).shape))
            for x, height in zip((sources, targets), heights, strict=True)
        ]
        exchanged = [_merged(_by_slice(x)) for x in (sources, send_sizes, targets, recv_sizes)]
        params = {"axis_name": axis_name, "axis_index_groups": axis_index_groups}
        result = process(ragged_all_to_all_p, (operand, output, *exchanged), params)
        return reshape(result, typeof(values[1]).shape), 0
    if len(axis_name) > 1:
        raise NotImplementedError(  # JAX raises this class.
            f"ragged_all_to_all over several named axes, {tuple(axis_name)}, is not supported if "
            "vmap maps one of them: use one axis."
        )
    groups = axis_index_groups or (tuple(range(data.size)),)
    senders = np.zeros((data.size, len(groups[0])), np.int32)
    positions = np.zeros(data.size, np.int32)
    for group in groups:
        senders[list(group)] = group
        positions[list(group)] = np.arange(len(group))
    sources = add(sources, _first_rows(data.size, heights[0], typeof(sources).shape))
    received = [
        _shares(x, senders * len(groups[0]) + positions[:, None])
        for x in (sources, targets, send_sizes)
    ]
    received[1] = add(received[1], _first_rows(data.size, heights[1], typeof(targets).shape))
    result = with_slices(operand, output, *map(_merged, received))
    return reshape(result, typeof(values[1]).shape), 0


def _merged(x: ArrayLike) -> Array:
    """Return an array with its first two axes merged into one."""
    shape = typeof(x).shape
    return reshape(x, (shape[0] * shape[1], *shape[2:]))


def _by_slice(x: ArrayLike) -> ArrayLike:
    """Swap the first two axes: from (examples, slices, ...) to (slices, examples, ...)."""
    return to_front(x, 1, 0)


def _first_rows(examples: int, height: int, shape: tuple[int, ...]) -> NumPyArray:
    """Return the number of each example's first row among the rows of all examples, as an array."""
    return np.broadcast_to(np.arange(examples, dtype=int32)[:, None] * height, shape)


def _shares(x: ArrayLike, numbers: NumPyArray) -> Array:
    """Cut each row of x into equal shares, numbered across rows; select `numbers[i]` for row i."""
    shape = typeof(x).shape
    share = shape[1] // numbers.shape[1]
    all_shares = reshape(x, (shape[0] * numbers.shape[1], share))
    return reshape(rows(all_shares, numbers), shape)


communicating(ragged_all_to_all_p)
