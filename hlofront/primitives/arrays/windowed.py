"""Primitives over sliding windows: reduce_window_sum, _max and _min, and select_and_scatter_add."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypedDict, Unpack

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import issubdtype
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, Params, Shape
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import BatchResult, infer
from hlofront.core.sizes.dimensions import integers
from hlofront.core.symbolic_zeros import BatchAxes, Cotangents, Operand, UndefinedPrimal
from hlofront.core.trace import process
from hlofront.primitives.arrays.creation import scalar_like
from hlofront.primitives.arrays.reducing import greatest_value, least_value
from hlofront.primitives.arrays.slicing import pad, slice
from hlofront.primitives.elementwise.compare import ge_p, le_p
from hlofront.primitives.rules.batching import with_same_axis
from hlofront.primitives.rules.derivatives import (
    ContributionOfOne,
    derivative,
    linear,
    linear_in_first,
)

Pads = tuple[tuple[int, int], ...]


# ---- windows -------------------------------------------------------------------------------------


def dilated(size: int, dilation: int) -> int:
    """Return the size of an axis with `dilation - 1` holes inserted between its elements."""
    return 0 if size == 0 else 1 + dilation * (size - 1)


@boundary
def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
) -> list[tuple[int, int]]:
    """Return the padding (before, after) of each axis for "SAME", "SAME_LOWER" or "VALID".

    Args:
      in_shape: the sizes of the operand's axes.
      window_shape: the sizes of the window.
      window_strides: the strides of the window.
      padding: a name in any case: "VALID" for no padding; "SAME" for ceil(size / stride) windows,
        with the odd element of padding after; "SAME_LOWER" for the same with it before.

    Returns:
      A list of pairs of integers, one per axis.

    Raises:
      RuntimeError: for another name.
      TypeError: if `padding` is not a name.

    Example:
      >>> lax.padtype_to_pads((7, 8), (3, 3), (2, 2), "SAME")
      [(1, 1), (0, 1)]
    """
    name = padding if isinstance(padding, str) else getattr(padding, "name", None)
    if not isinstance(name, str):
        raise TypeError(
            f"Unknown padding type: {padding!r}, expected 'VALID', 'SAME' or 'SAME_LOWER'"
        )
    name = name.upper()
    if name == "VALID":
        return [(0, 0)] * len(in_shape)
    if name not in ("SAME", "SAME_LOWER"):
        raise RuntimeError(
            f"Unrecognized padding type: expected 'VALID', 'SAME', or 'SAME_LOWER', got {padding}."
        )
    pads: list[tuple[int, int]] = []
    for size, window, stride in zip(
        integers(in_shape, "in_shape"),
        integers(window_shape, "window_shape"),
        integers(window_strides, "window_strides"),
        strict=True,
    ):
        windows = -(-size // stride)
        missing = max((windows - 1) * stride + window - size, 0)
        half = missing // 2
        pads.append((half, missing - half) if name == "SAME" else (missing - half, half))
    return pads


class Windows(NamedTuple):
    """The window parameters of a reduce_window primitive, one entry per axis of the operand."""

    window_dimensions: tuple[int, ...]
    window_strides: tuple[int, ...]
    padding: Pads
    base_dilation: tuple[int, ...]
    window_dilation: tuple[int, ...]


class WindowParams(TypedDict):
    """The fields of Windows as the parameters of an equation."""

    window_dimensions: tuple[int, ...]
    window_strides: tuple[int, ...]
    padding: Pads
    base_dilation: tuple[int, ...]
    window_dilation: tuple[int, ...]


def canonical_windows(
    shape: tuple[int, ...],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None,
    padding: str | Sequence[Sequence[int]],
    base_dilation: Sequence[int] | None,
    window_dilation: Sequence[int] | None,
) -> Windows:
    """Return window parameters as Windows: None becomes ones, and named padding becomes pairs.

    Args:
      shape: the operand's shape.
      window_dimensions: the sizes of the window.
      window_strides: the strides of the window, or None for ones.
      padding: pairs (before, after), or a name: see `padtype_to_pads`.
      base_dilation: the dilation of the operand, or None for ones.
      window_dilation: the dilation of the window, or None for ones.

    Raises:
      TypeError: if the padding is a name and the numbers of axes differ.
    """
    ones = (1,) * len(shape)
    window = integers(window_dimensions, "window_dimensions")
    strides = ones if window_strides is None else integers(window_strides, "window_strides")
    base = ones if base_dilation is None else integers(base_dilation, "base_dilation")
    holes = ones if window_dilation is None else integers(window_dilation, "window_dilation")
    if isinstance(padding, str):
        check_window_ranks("reduce_window", shape, window, strides, base, holes)
        # Named padding ignores the base dilation, as in JAX.
        pads = padtype_to_pads(shape, tuple(map(dilated, window, holes)), strides, padding)
    else:
        pads = padding
    return Windows(window, strides, canonical_pads(pads), base, holes)


def canonical_pads(padding: Iterable[Sequence[int]]) -> Pads:
    """Return padding as a tuple of pairs of integers (before, after), one per axis.

    Raises:
      ValueError: if an entry is not a pair.
    """
    pads: list[tuple[int, int]] = []
    for pair in padding:
        entry = integers(pair, "each entry of padding")
        if len(entry) != 2:
            raise ValueError(f"padding must be pairs (before, after), one per axis; got {padding}.")
        pads.append(entry)
    return tuple(pads)


def check_window_ranks(
    name: str,
    shape: Shape,
    window: tuple[int, ...],
    strides: tuple[int, ...],
    base_dilation: tuple[int, ...],
    window_dilation: tuple[int, ...],
) -> None:
    if len(window) != len(shape):
        raise TypeError(
            f"{name} got the wrong number of window_dimensions for operand: got operand shape "
            f"{shape} with window_dimensions {window}."
        )
    for what, values in (
        ("window_strides", strides),
        ("base_dilation", base_dilation),
        ("window_dilation", window_dilation),
    ):
        if len(values) != len(window):
            raise TypeError(
                f"{name} got inconsistent {what} and window_dimensions: got {what} {values} and "
                f"window_dimensions {window}."
            )


def window_output_shape(name: str, shape: tuple[int, ...], windows: Windows) -> tuple[int, ...]:
    """Return the number of windows that fit along each axis of an operand.

    Args:
      name: the operation's name, for messages.
      shape: the operand's shape.
      windows: the window parameters.

    Raises:
      TypeError: if numbers of axes differ, or sizes, strides or dilations are not positive.
      ValueError: if the number of padding pairs is not that of the axes.
    """
    window, strides, padding, base_dilation, window_dilation = windows
    check_window_ranks(name, shape, window, strides, base_dilation, window_dilation)
    if len(padding) != len(shape):
        raise ValueError(
            f"{name} requires one pair of padding for each of the {len(shape)} axes of the "
            f"operand, got {padding}."
        )
    for what, values in (("window_dimensions", window), ("window_strides", strides)):
        if any(value <= 0 for value in values):
            raise TypeError(
                f"{name} {what} must have every element be strictly positive, got {values}."
            )
    for dilations in (base_dilation, window_dilation):
        if any(dilation <= 0 for dilation in dilations):
            raise TypeError(f"All dilations must be positive, got {dilations}.")
    sizes: list[int] = []
    for size, extent, stride, (before, after), dilation, holes in zip(shape, *windows, strict=True):
        room = dilated(size, dilation) + before + after - dilated(extent, holes)
        sizes.append(0 if room < 0 else room // stride + 1)
    return tuple(sizes)


@boundary
def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """Return the shape of the result of `reduce_window` from its operand's shape and its windows.

    Args:
      operand_shape: the operand's shape.
      window_dimensions: the sizes of the window, per axis.
      window_strides: the strides of the window, per axis.
      padding: pairs (before, after), per axis; or "SAME", "SAME_LOWER", "VALID".
      base_dilation: the dilation of the operand, per axis; None for ones.
      window_dilation: the dilation of the window, per axis; None for ones.

    Raises:
      TypeError: if numbers of axes differ, or sizes, strides or dilations are not positive.
      ValueError: if the number of padding pairs is not that of the axes.

    Example:
      >>> lax.reduce_window_shape_tuple((7, 8), (3, 3), (2, 2), [(0, 0), (1, 1)])
      (3, 4)
    """
    shape = tuple(operand_shape)
    windows = canonical_windows(
        shape,
        window_dimensions=window_dimensions,
        window_strides=window_strides,
        padding=padding,
        base_dilation=base_dilation,
        window_dilation=window_dilation,
    )
    return window_output_shape("reduce_window", shape, windows)


# ---- reductions of windows -----------------------------------------------------------------------


def _window_reduction(which: str) -> tuple[Primitive, Callable[..., Array]]:
    name = f"reduce_window_{which}"
    primitive = Primitive(name)

    def rule(operand: ShapedArray, **windows: Unpack[WindowParams]) -> ShapedArray:
        if which == "sum" and not issubdtype(operand.dtype, np.number):
            raise TypeError(f"operand to {name} must have a number dtype, got {operand.dtype}")
        return operand.update(shape=window_output_shape(name, operand.shape, Windows(**windows)))

    rule.__name__ = f"{name}_infer"
    infer(primitive)(rule)

    def function(
        operand: ArrayLike,
        window_dimensions: tuple[int, ...],
        window_strides: tuple[int, ...] | None = None,
        padding: str | Sequence[tuple[int, int]] = "VALID",
        base_dilation: tuple[int, ...] | None = None,
        window_dilation: tuple[int, ...] | None = None,
    ) -> Array:
        windows = canonical_windows(
            typeof(operand).shape,
            window_dimensions=window_dimensions,
            window_strides=window_strides,
            padding=padding,
            base_dilation=base_dilation,
            window_dilation=window_dilation,
        )
        return process(primitive, (operand,), windows._asdict())

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"""The {which} over each window. The arguments are those of reduce_window."""
    )
    return primitive, function


reduce_window_sum_p, reduce_window_sum = _window_reduction("sum")
reduce_window_max_p, reduce_window_max = _window_reduction("max")
reduce_window_min_p, reduce_window_min = _window_reduction("min")


# ---- scatter to and gather from the extreme elements of windows ----------------------------------

select_and_scatter_add_p = Primitive("select_and_scatter_add")
select_and_gather_add_p = Primitive("select_and_gather_add")


def select_and_scatter_add(
    source: ArrayLike,
    operand: ArrayLike,
    select_prim: Primitive,
    window_dimensions: tuple[int, ...],
    window_strides: tuple[int, ...],
    padding: Pads,
) -> Array:
    """Scatter-add each element of `source` to the selected position of its window in `operand`.

    Args:
      source: an array with one element per window, of the dtype of `operand`.
      operand: the array that the windows slide over.
      select_prim: ge_p or le_p, which selects the greatest or the least element of a window.
      window_dimensions: sizes of the window, per axis.
      window_strides: its strides, per axis.
      padding: pairs (before, after), per axis.

    Returns:
      An array like `operand`, zero where nothing is added.
    """
    params = {
        "select_prim": select_prim,
        "window_dimensions": integers(window_dimensions, "window_dimensions"),
        "window_strides": integers(window_strides, "window_strides"),
        "padding": canonical_pads(padding),
    }
    return process(select_and_scatter_add_p, (source, operand), params)


@infer(select_and_scatter_add_p)
def _(
    source: ShapedArray,
    operand: ShapedArray,
    *,
    select_prim: Primitive,
    window_dimensions: tuple[int, ...],
    window_strides: tuple[int, ...],
    padding: Pads,
) -> ShapedArray:
    if source.dtype != operand.dtype:
        raise TypeError(
            "select_and_scatter_add requires source and operand of equal dtype, got "
            f"{source.dtype} and {operand.dtype}."
        )
    check_source_shape(
        "select_and_scatter_add", source, operand, window_dimensions, window_strides, padding
    )
    weak = source.weak_type and operand.weak_type
    return operand.update(weak_type=weak)


def check_source_shape(
    name: str,
    source: ShapedArray,
    operand: ShapedArray,
    dimensions: tuple[int, ...],
    strides: tuple[int, ...],
    padding: Pads,
) -> None:
    """Raise TypeError unless there is one element in `source` for each window on `operand`."""
    ones = (1,) * operand.ndim
    windows = Windows(dimensions, strides, padding, ones, ones)
    expected = window_output_shape(name, operand.shape, windows)
    if source.shape != expected:
        raise TypeError(
            f"{name} got source.shape {source.shape}, but an operand of shape {operand.shape} has "
            f"windows of shape {expected}."
        )


def select_and_gather_add(
    tangents: ArrayLike,
    operand: ArrayLike,
    select_prim: Primitive,
    window_dimensions: tuple[int, ...],
    window_strides: tuple[int, ...],
    padding: str | Sequence[tuple[int, int]],
    base_dilation: tuple[int, ...],
    window_dilation: tuple[int, ...],
) -> Array:
    """Return, for each window, the element of `tangents` at the selected position in `operand`.

    Args:
      tangents: an array of the shape and dtype of `operand`.
      operand: the array that the windows slide over.
      select_prim: ge_p or le_p, which selects the greatest or the least element of a window.
      window_dimensions: sizes of the window, per axis.
      window_strides: its strides, per axis.
      padding: pairs (before, after), per axis, or a name.
      base_dilation: the dilation of the operand, per axis.
      window_dilation: the dilation of the window, per axis.

    Returns:
      An array with one element per window.
    """
    windows = canonical_windows(
        typeof(operand).shape,
        window_dimensions=window_dimensions,
        window_strides=window_strides,
        padding=padding,
        base_dilation=base_dilation,
        window_dilation=window_dilation,
    )
    params = {"select_prim": select_prim, **windows._asdict()}
    return process(select_and_gather_add_p, (tangents, operand), params)


@infer(select_and_gather_add_p)
def _(
    tangents: ShapedArray,
    operand: ShapedArray,
    *,
    select_prim: Primitive,
    **windows: Unpack[WindowParams],
) -> ShapedArray:
    if tangents.shape != operand.shape or tangents.dtype != operand.dtype:
        raise TypeError(
            "select_and_gather_add tangents and operand must have equal shapes and dtypes, got "
            f"{tangents} and {operand}."
        )
    shape = window_output_shape("select_and_gather_add", operand.shape, Windows(**windows))
    return ShapedArray(shape, operand.dtype, tangents.weak_type and operand.weak_type)


# ---- derivatives ---------------------------------------------------------------------------------

linear(reduce_window_sum_p)


@rules.transpose(reduce_window_sum_p)
def _(cotangent: ArrayLike, operand: UndefinedPrimal, **params: Unpack[WindowParams]) -> Cotangents:
    windows = Windows(**params)
    # The cotangent of an element is the sum of the cotangents of the windows that contain it: a
    # window sum over the cotangent, dilated by the strides.
    padding: list[tuple[int, int]] = []
    for size, count, extent, stride, (before, _), base_dilation, holes in zip(
        operand.aval.shape, typeof(cotangent).shape, *windows, strict=True
    ):
        reach = dilated(extent, holes) - 1
        low = reach - before
        needed = dilated(size, base_dilation) + reach
        padding.append((low, needed - low - dilated(count, stride)))
    if any(stride > 1 for stride in windows.window_strides):
        # XLA's CPU code for windows with base dilation is slower than padding the interior first.
        strides = windows.window_strides
        rows = [(*pair, stride - 1) for pair, stride in zip(padding, strides, strict=True)]
        cotangent = pad(cotangent, scalar_like(cotangent, 0), rows)
        padding = [(0, 0)] * len(rows)
    transposed = windows._replace(
        window_strides=windows.base_dilation,
        padding=tuple(padding),
        base_dilation=(1,) * len(padding),
    )
    return [process(reduce_window_sum_p, (cotangent,), transposed._asdict())]


def _of_selected(select: Primitive) -> ContributionOfOne:
    """Return the derivative of reducing each window to the element that `select` selects."""

    def tangent_of_selected(t: ArrayLike, x: ArrayLike, /, **windows: object) -> ArrayLike:
        return process(select_and_gather_add_p, (t, x), {"select_prim": select, **windows})

    return tangent_of_selected


derivative(reduce_window_max_p, _of_selected(ge_p))
derivative(reduce_window_min_p, _of_selected(le_p))


# The selected position is locally constant in the operand, so that only `tangents` or `source` has
# a derivative.
linear_in_first(select_and_gather_add_p)
linear_in_first(select_and_scatter_add_p)


@rules.transpose(select_and_gather_add_p)
def _(
    cotangent: ArrayLike,
    tangents: Operand,
    operand: ArrayLike,
    *,
    select_prim: Primitive,
    **params: Unpack[WindowParams],
) -> Cotangents:
    windows = Windows(**params)
    if any(holes != 1 for holes in windows.window_dilation):
        raise NotImplementedError(  # JAX raises this class.
            "VJP not implemented for select_and_gather (MaxPool) with window dilation, got "
            f"window_dilation={windows.window_dilation}: differentiate it forward, with jvp or "
            "jacfwd, or take the maximum of slices."
        )
    rows = tuple([(0, 0, dilation - 1) for dilation in windows.base_dilation])
    has_gaps = any(between for _, _, between in rows)
    if has_gaps:
        # Fill the holes with the identity of the selection, so that no hole is selected.
        dtype = typeof(operand).dtype
        nothing = (least_value if select_prim is ge_p else greatest_value)(dtype)
        operand = pad(operand, nothing[()], rows)
    selection = {
        "select_prim": select_prim,
        "window_dimensions": windows.window_dimensions,
        "window_strides": windows.window_strides,
        "padding": windows.padding,
    }
    result = process(select_and_scatter_add_p, (cotangent, operand), selection)
    if has_gaps:
        shape = typeof(result).shape
        result = slice(result, (0,) * len(shape), shape, windows.base_dilation)
    return [result, None]


@rules.transpose(select_and_scatter_add_p)
def _(cotangent: ArrayLike, source: Operand, operand: Operand, **params: object) -> Cotangents:
    ones = (1,) * typeof(operand).ndim
    params = {**params, "base_dilation": ones, "window_dilation": ones}
    return [process(select_and_gather_add_p, (cotangent, operand), params), None]


# ---- batches -------------------------------------------------------------------------------------


def batched_windows(windows: Params, axis: int) -> Params:
    """Return window parameters by name, with a window of size one inserted at a batch axis."""
    return {
        name: (*values[:axis], (0, 0) if name == "padding" else 1, *values[axis:])
        for name, values in windows.items()
    }


def _batch(primitive: Primitive) -> None:
    def rule(
        values: ArrayLikes,
        axes: BatchAxes,
        *,
        select_prim: Primitive | None = None,
        **windows: object,
    ) -> BatchResult:
        values, axis = with_same_axis(values, axes)
        params = batched_windows(windows, axis)
        if select_prim is not None:
            params["select_prim"] = select_prim
        return process(primitive, values, params), axis

    rule.__name__ = rule.__qualname__ = f"{primitive.name}_batch"
    rules.batch(primitive)(rule)


for _primitive in (
    reduce_window_sum_p,
    reduce_window_max_p,
    reduce_window_min_p,
    select_and_scatter_add_p,
    select_and_gather_add_p,
):
    _batch(_primitive)
