"""Rules of operations on padded operands that move elements: slices, gathers and scatters."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.core.aval import typeof
from hlofront.core.jaxpr import Equation
from hlofront.primitives.arrays import dynamic_slicing, gathering, scattering, shaping, slicing
from hlofront.primitives.arrays.creation import full, full_like
from hlofront.primitives.arrays.gathering import GatherScatterMode
from hlofront.primitives.elementwise.compare import lt, select_n
from hlofront.primitives.elementwise.converting import convert_element_type
from hlofront.primitives.elementwise.elementwise import bitwise_not, clamp, sub
from hlofront.runtime.buckets.bounding import Bounded, Size, described, padded_axes, rule, symbolic


def _read(operand: Any, starts: Sequence[Any], sizes: Sequence[int]) -> Any:
    """Return a slice from int32 starts that are not negative."""
    return dynamic_slicing.dynamic_slice(operand, starts, sizes, allow_negative_indices=False)


def _write(operand: Any, update: Any, starts: Sequence[Any]) -> Any:
    return dynamic_slicing.dynamic_update_slice(
        operand, update, starts, allow_negative_indices=False
    )


def _int32(x: Any) -> Any:
    return convert_element_type(x, np.int32)


def _shifted(bounded: Bounded, operand: Any, axis: int, start: Any, size: int) -> Any:
    """Return `size` elements along an axis, from a start that may be traced."""
    shape = typeof(operand).shape
    starts = [_int32(start if i == axis else 0) for i in range(len(shape))]
    return _read(operand, starts, slicing.with_entry(shape, axis, size))


# ---- slices at known places ----------------------------------------------------------------------


@rule(slicing.slice_p)
def _(bounded: Bounded, equation: Equation, operand: Any) -> Any:
    params, result = equation.params, equation.outvars[0].aval
    starts, limits = list(params["start_indices"]), list(params["limit_indices"])
    for axis, start in enumerate(starts):
        if symbolic(start):
            if params["strides"] is not None and params["strides"][axis] != 1:
                bounded.refuse(equation, "it begins and steps by a length", "Slice in two steps")
            _check_start(bounded, equation, start)
            size = bounded.size(result.shape[axis])
            operand = _shifted(bounded, operand, axis, bounded.length(start), size)
            starts[axis], limits[axis] = 0, size
    limits = tuple(map(bounded.size, limits))
    return bounded.bind(equation, operand, start_indices=tuple(starts), limit_indices=limits)


def _check_start(bounded: Bounded, equation: Equation, start: Size) -> None:
    """Check that a part of an axis that is padded to the bucket ends within it."""
    if not bounded.grows(start):
        bounded.refuse(
            equation,
            f"it may begin at {start}, which is greater for smaller lengths",
            "Begin where the index grows with the length",
        )


@rule(slicing.split_p)
def _(bounded: Bounded, equation: Equation, operand: Any) -> Any:
    axis, start = equation.params["axis"], 0
    parts: list[Any] = []
    for size in equation.params["sizes"]:
        parts.append(_shifted(bounded, operand, axis, bounded.length(start), bounded.size(size)))
        start = start + size
    return parts


@rule(slicing.concatenate_p)
def _(bounded: Bounded, equation: Equation, *operands: Any) -> Any:
    """Write each operand where the elements of the preceding ones end, over their padding."""
    axis = equation.params["dimension"]
    sizes = [atom.aval.shape[axis] for atom in equation.invars]
    if not any(map(symbolic, sizes[:-1])):
        return bounded.bind(equation, *operands)
    aval = equation.outvars[0].aval
    result = full(bounded.known(aval.shape), 0, aval.dtype)
    start: Any = 0
    for size, operand in zip(sizes, operands, strict=True):
        starts = [_int32(bounded.length(start) if i == axis else 0) for i in range(aval.ndim)]
        result = _write(result, operand, starts)
        start = start + size
    return result


@rule(shaping.rev_p)
def _(bounded: Bounded, equation: Equation, operand: Any) -> Any:
    """Reverse the array, and begin after the padding, which is then first."""
    shape = equation.invars[0].aval.shape
    result = bounded.bind(equation, operand)
    for axis in padded_axes(equation.invars[0].aval, equation.params["dimensions"]):
        size = bounded.size(shape[axis])
        twice = slicing.concatenate([result, result], axis)
        start = sub(np.int32(size), _int32(bounded.length(shape[axis])))
        result = _shifted(bounded, twice, axis, start, size)
    return result


# ---- slices at computed places -------------------------------------------------------------------


def _clamped(bounded: Bounded, start: Any, size: Size, part: Size) -> Any:
    """Return the int32 start of a part of an axis, clamped as XLA does without padding."""
    last = size - part
    if typeof(start).dtype.itemsize < 4:
        start = _int32(start)
    return _int32(clamp(_like(0, start), start, _like(bounded.length(last), start)))


def _like(x: Any, other: Any) -> Any:
    return convert_element_type(x, typeof(other).dtype)


@rule(dynamic_slicing.dynamic_slice_p)
def _(bounded: Bounded, equation: Equation, operand: Any, *starts: Any) -> Any:
    shape, parts = equation.invars[0].aval.shape, equation.params["slice_sizes"]
    for size, part in zip(shape, parts, strict=True):
        _check_start(bounded, equation, size - part)
    clamped = [
        _clamped(bounded, start, size, part)
        for start, size, part in zip(starts, shape, parts, strict=True)
    ]
    return _read(operand, clamped, bounded.known(parts))


@rule(dynamic_slicing.dynamic_update_slice_p)
def _(bounded: Bounded, equation: Equation, operand: Any, update: Any, *starts: Any) -> Any:
    """Write an update, except where it is padding: the operand keeps its elements there."""
    aval, part_aval = (atom.aval for atom in equation.invars[:2])
    clamped = [
        _clamped(bounded, start, size, part)
        for start, size, part in zip(starts, aval.shape, part_aval.shape, strict=True)
    ]
    parts = typeof(update).shape
    rows = [
        (0, size if symbolic(part) else 0, 0)
        for size, part in zip(parts, part_aval.shape, strict=True)
    ]
    wide = slicing.pad(operand, full((), 0, aval.dtype), rows)
    inside = bounded.inside(update, part_aval.shape, range(aval.ndim))
    if inside is not None:
        update = select_n(inside, _read(wide, clamped, parts), update)
    written = _write(wide, update, clamped)
    return slicing.slice(written, (0,) * aval.ndim, typeof(operand).shape)


# ---- gather and scatter --------------------------------------------------------------------------


def _columns(
    bounded: Bounded,
    equation: Equation,
    indices: Any,
    index_map: Sequence[int],
    parts: Sequence[Size],
    drops: bool,
) -> list[Any]:
    """Return the indices along each axis, treated as out of bounds where they are without padding.

    Args:
      bounded: the interpreter.
      equation: a gather or scatter.
      indices: the padded indices, whose last axis has one for each of `index_map`.
      index_map: the axes of the operand that are indexed.
      parts: the sizes of the slice that is read or written at an index, by axis of the operand.
      drops: whether indices out of bounds stay out of bounds; otherwise they are clamped.
    """
    shape = equation.invars[0].aval.shape
    columns: list[Any] = []
    for position, axis in enumerate(index_map):
        column = slicing.slice_in_dim(indices, position, position + 1, axis=-1)
        last = bounded.length(shape[axis] - parts[axis])
        if not drops:
            column = clamp(_like(0, column), column, _like(last, column))
        elif symbolic(shape[axis]):
            column = _beyond(bounded, lt(_like(last, column), column), column, shape[axis])
        columns.append(column)
    return columns


def _beyond(bounded: Bounded, where: Any, column: Any, size: Size) -> Any:
    """Return indices along an axis, moved out of the bucket where the mask `where` is true."""
    return select_n(where, column, full_like(column, bounded.size(size)))


def _is_moved(part: Size, size: Size) -> bool:
    return symbolic(part) and part != size


def _refuse_part(bounded: Bounded, equation: Equation) -> None:
    bounded.refuse(
        equation,
        "what it reads or writes at each index has a padded size",
        "Use lax.dynamic_slice or lax.dynamic_update_slice",
    )


@rule(gathering.gather_p)
def _(bounded: Bounded, equation: Equation, operand: Any, indices: Any) -> Any:
    params, shape = equation.params, equation.invars[0].aval.shape
    parts, index_map = params["slice_sizes"], params["dimension_numbers"].start_index_map
    if any(_is_moved(parts[axis], shape[axis]) for axis in index_map):
        _refuse_part(bounded, equation)
    if any(symbolic(shape[axis]) for axis in index_map):
        if typeof(indices).dtype.itemsize < 4:
            indices = _int32(indices)
        drops = params["mode"].name in ("FILL_OR_DROP", "ONE_HOT")
        columns = _columns(bounded, equation, indices, index_map, parts, drops)
        indices = slicing.concatenate(columns, typeof(indices).ndim - 1)
    return bounded.bind(equation, operand, indices)


@rule(
    scattering.scatter_p,
    scattering.scatter_add_p,
    scattering.scatter_sub_p,
    scattering.scatter_mul_p,
    scattering.scatter_min_p,
    scattering.scatter_max_p,
)
def _(bounded: Bounded, equation: Equation, operand: Any, indices: Any, updates: Any) -> Any:
    """Scatter, dropping updates that are padding."""
    params = equation.params
    aval, index_aval, update_aval = (atom.aval for atom in equation.invars)
    numbers = params["dimension_numbers"]
    windows = scattering.window_sizes(numbers, aval.shape, update_aval.shape)
    parts = [windows.get(axis, 1) for axis in range(aval.ndim)]
    index_map = numbers.scatter_dims_to_operand_dims
    batch = padded_axes(index_aval, range(index_aval.ndim - 1))
    if any(map(_is_moved, parts, aval.shape)) or (batch and not index_map):
        _refuse_part(bounded, equation)
    if typeof(indices).dtype.itemsize < 4:
        indices = _int32(indices)
    drops = params["mode"].name != "CLIP"
    columns = _columns(bounded, equation, indices, index_map, parts, drops)
    if batch:
        inside = bounded.inside(columns[0], index_aval.shape, batch)
        columns[0] = _beyond(bounded, bitwise_not(inside), columns[0], aval.shape[index_map[0]])
        bounded.masked.setdefault(described(equation))
    if columns:
        indices = slicing.concatenate(columns, index_aval.ndim - 1)
    return bounded.bind(
        equation,
        operand,
        indices,
        updates,
        mode=GatherScatterMode.FILL_OR_DROP,
        indices_are_sorted=False,
        unique_indices=params["unique_indices"] and not batch,
    )
