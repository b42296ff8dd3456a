"""hlofront.scipy.ndimage: interpolation of array elements at fractional coordinates."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Sequence

import numpy as np

import hlofront.numpy as jnp
from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import int32
from hlofront.base.lazy import dir_of
from hlofront.base.typing import Array, ArrayLike, NumPyArray
from hlofront.core.aval import typeof
from hlofront.primitives.elementwise import elementwise
from hlofront.primitives.elementwise.converting import convert
from hlofront.runtime.dispatch.operation import operation

__all__ = ["map_coordinates"]
__dir__ = dir_of(__name__)


def _mirrored(index: Array, size: int) -> Array:
    """Return indices reflected about the centers of the first and the last element."""
    last = size - 1
    if not last:
        return jnp.zeros_like(index)
    return jnp.abs(jnp.mod(index + last, 2 * last) - last)


def _reflected(index: Array, size: int) -> Array:
    """Return indices reflected at the outer edges of the first and the last element."""
    # Mirroring runs over twice as many elements; only every second one exists.
    return jnp.floor_divide(_mirrored(2 * index + 1, 2 * size + 1), 2)


def _nearest(index: Array, size: int) -> Array:
    """Return indices moved to the nearest element."""
    return jnp.clip(index, 0, size - 1)


def _wrapped(index: Array, size: int) -> Array:
    """Return indices of an axis that starts over at its end."""
    return jnp.mod(index, size)


def _unchanged(index: Array, size: int) -> Array:
    """Return indices unchanged, as elements outside of the axis have a constant value."""
    return index


_INDICES: dict[str, Callable[[Array, int], Array]] = {
    "reflect": _reflected,
    "mirror": _mirrored,
    "wrap": _wrapped,
    "nearest": _nearest,
    "constant": _unchanged,
}


def _rounded(x: Array) -> Array:
    """Return the nearest integers, with halves rounded away from zero."""
    return elementwise.round(x) if issubdtype(typeof(x).dtype, np.inexact) else x


def _around(coordinate: Array, order: int) -> list[tuple[Array, ArrayLike]]:
    """Return the indices of the elements around a coordinate, each with its weight."""
    if order == 0:
        return [(convert(_rounded(coordinate), int32, False), 1)]
    below = jnp.floor(coordinate)
    share = jnp.subtract(coordinate, below)
    index = convert(below, int32, False)
    return [(index, 1 - share), (index + 1, share)]


@operation(static_argnames=("order", "mode"))
def _map_coordinates(
    x: Array, coordinates: Sequence[Array], cval: ArrayLike, order: int, mode: str
) -> Array:
    aval = typeof(x)
    cval = convert(jnp.asarray(cval), aval.dtype, False)
    choices = []
    for coordinate, size in zip(coordinates, aval.shape, strict=True):
        neighbors = []
        for index, weight in _around(coordinate, order):
            inside = jnp.logical_and(index >= 0, index < size) if mode == "constant" else None
            neighbors.append((_INDICES[mode](index, size), inside, weight))
        choices.append(neighbors)
    total: Array | None = None
    for corner in itertools.product(*choices):
        indices = tuple([index for index, _, _ in corner])
        value = x[indices]
        if mode == "constant":
            inside = functools.reduce(jnp.logical_and, [flag for _, flag, _ in corner])
            value = jnp.where(inside, value, cval)
        for _, _, weight in corner:
            value = value if isinstance(weight, int) else value * weight
        total = value if total is None else total + value
    if issubdtype(aval.dtype, np.integer):
        total = _rounded(total)
    return convert(total, aval.dtype, False)


def map_coordinates(
    input: ArrayLike,
    coordinates: Array | NumPyArray | Sequence[ArrayLike],
    order: int,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
) -> Array:
    """Interpolate the values of an array at fractional coordinates.

    Args:
      input: an array.
      coordinates: an array of coordinates for each of the axes; they broadcast together.
      order: 0 for the nearest element, 1 for lines between elements.
      mode: the values outside: "constant" is `cval`; "nearest" is the nearest element; "wrap"
        repeats the array; "mirror" reflects it without repeating its last element; "reflect"
        reflects it and repeats its last element.
      cval: the value outside with mode "constant".

    Returns:
      An array of the coordinates' shape and the dtype of `input`.

    Raises:
      ValueError: if there are not as many coordinates as axes.
      NotImplementedError: for other orders and modes.
    """
    x = jnp.asarray(input)
    coordinates = [jnp.asarray(c) for c in coordinates]
    if len(coordinates) != typeof(x).ndim:
        raise ValueError(
            "coordinates must be a sequence of length input.ndim, but "
            f"{len(coordinates)} != {typeof(x).ndim}"
        )
    if mode not in _INDICES:
        raise NotImplementedError(  # JAX raises this class.
            f"jax.scipy.ndimage.map_coordinates does not yet support mode {mode}. Currently "
            f"supported modes are {', '.join(_INDICES)}."
        )
    order = operator.index(order)
    if order not in (0, 1):
        raise NotImplementedError(  # JAX raises this class.
            f"jax.scipy.ndimage.map_coordinates currently requires order<=1, got {order}"
        )
    return _map_coordinates(x, coordinates, cval, order, mode)
