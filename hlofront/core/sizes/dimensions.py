"""Canonical forms of users' shapes and axes: tuples of ints, and nonnegative ints."""

# Parameters, literals and users' shapes may be anything, so their types stay unknown here.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.base import errors
from hlofront.core.aval import SymbolicSize
from hlofront.core.trace import Tracer

Shape = tuple[int, ...]
# The axes of an array, by number.
Axes = tuple[int, ...]


def canonical_shape(shape: Any, context: str = "") -> Shape:
    """Return a shape as a tuple of ints; a single integer is a shape of one axis.

    Args:
      shape: a sequence of integers, such as a tuple, list or NumPy array, or one integer.
      context: a sentence on the purpose of the shape, for the end of the error message.

    Raises:
      TypeError: if a size is not an integer, or is a traced value.
    """
    if type(shape) is tuple:
        for size in shape:
            if type(size) is not int:
                break
        else:
            return shape
    try:
        return tuple(map(as_size, shape))
    except TypeError:
        pass
    try:
        return (as_size(shape),)
    except TypeError:
        raise _no_shape(shape, context) from None


def as_size(size: Any) -> Any:
    """Return a size, or a position along an axis, as an int or a symbolic size.

    Raises:
      TypeError: if it is neither.
    """
    if isinstance(size, SymbolicSize):
        return size
    return operator.index(size)


def _no_shape(shape: object, context: str) -> TypeError:
    shown = tuple(shape) if isinstance(shape, tuple | list) else shape
    text = f"Shapes must be 1D sequences of concrete values of integer type, got {shown}." + (
        f" {context}" if context else ""
    )
    members = shown if type(shown) is tuple else (shown,)
    tracers = [member for member in members if isinstance(member, Tracer)]
    if tracers:
        text += (
            "\nIf using `jit`, try using `static_argnums` or applying `jit` to smaller "
            "subfunctions."
        )
        for tracer in tracers:
            origin = tracer._origin_message()  # pyright: ignore[reportPrivateUsage]
            if origin:
                text += "\n" + origin.strip("\n")
    return TypeError(text)


def integers(values: Any, what: str) -> tuple[int, ...]:
    """Return a sequence of axes, indices or strides as a tuple of ints, of any sign.

    Raises:
      TypeError: if one is not an integer, or `values` is not a sequence; the message says `what`.
    """
    if type(values) is tuple:
        for value in values:
            if type(value) is not int:
                break
        else:
            return values
    try:
        return tuple(map(as_size, values))
    except TypeError:
        if isinstance(values, Tracer) or (
            isinstance(values, tuple | list) and any(isinstance(v, Tracer) for v in values)
        ):
            raise _no_shape(values, f"It was given as {what}.") from None
        raise TypeError(f"{what} must be a sequence of integers, got {values!r}.") from None


def canonical_axis(axis: Any, ndim: int) -> int:
    """Return an axis counted from 0; negative ones count from the end.

    Raises:
      numpy.exceptions.AxisError, a ValueError and IndexError: if an array of `ndim` axes has no
        such axis.
      TypeError: if the axis is not an integer, or is a tracer.
    """
    if isinstance(axis, Tracer):
        raise errors.ConcretizationTypeError(axis, "An axis must be known while tracing.")
    try:
        index = axis if type(axis) is int else operator.index(axis)
    except TypeError:
        raise TypeError(
            f"an axis must be an integer, got {axis!r} of type {type(axis).__name__}"
        ) from None
    if 0 <= index < ndim:
        return index
    if -ndim <= index < 0:
        return index + ndim
    raise np.exceptions.AxisError(index, ndim)


def canonical_axes(axes: Any, ndim: int) -> tuple[int, ...]:
    """Return one or several axes as a tuple, each counted from 0, in unchanged order.

    Raises:
      numpy.exceptions.AxisError, a ValueError and IndexError: if an array of `ndim` axes has no
        such axis.
      TypeError: if an axis is not an integer, or is a tracer.
    """
    if isinstance(axes, Tracer):
        raise errors.ConcretizationTypeError(axes, "An axis must be known while tracing.")
    if not isinstance(axes, Sequence) and (
        not hasattr(axes, "__iter__") or getattr(axes, "ndim", 1) == 0
    ):
        axes = (axes,)
    return tuple([canonical_axis(axis, ndim) for axis in axes])


def check_nonnegative(name: str, what: str, values: tuple[int, ...]) -> None:
    """Raise TypeError if a value of parameter `what` of operation `name` is negative."""
    for value in values:
        if value < 0:
            raise TypeError(f"{name} {what} must have every element be nonnegative, got {values}.")
